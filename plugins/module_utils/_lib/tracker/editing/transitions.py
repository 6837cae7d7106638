# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the status of an issue with an available transition [tracker-24]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import ToolchainError, invalid, quoted, rejected
from ...core.http.messages import expected, unexpected_body
from ...core.json_text import as_text, member
from ...core.plan import Change
from ..issues.field_values import shown
from .comments import CommentPart
from .fields import Screen, WantedField
from .site import Edit, Part, Site, TrackerIssue, is_moved

Transition = Mapping[str, Any]


class StatusPart(Part):
    """Move an issue to a status.

    :param status: name of the status
    :param transition: name or id of the transition; None if only one leads to the status
    :param fields: values for the screen of the transition
    :param filled: ids of the fields that already have a value
    """

    needs = ("TRANSITION_ISSUES",)

    def __init__(
        self,
        site: Site,
        status: str,
        transition: str | None,
        fields: Sequence[WantedField],
        filled: Collection[str],
    ) -> None:
        super().__init__(site)
        self._status, self._transition = status.strip(), transition
        self._fields, self._filled = list(fields), {*filled, *(field.id for field in fields)}
        #: Status to which the planned transition of an issue leads, by key of the issue.
        self._targets: dict[str, Any] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return ("status", *(field.id for field in self._fields))

    def differs(self, issue: TrackerIssue) -> bool:
        return not self._is(issue.fields.get("status"))

    def _is(self, status: Any) -> bool:
        return as_text(member(status, "name")).strip().casefold() == self._status.casefold()

    def expected(self) -> tuple[Change, ...]:
        return (Change("status", None, self._status),)

    def edits(self, issue: TrackerIssue, comment: Mapping[str, Any] | None = None) -> list[Edit]:
        """Return the transition. `comment`: the comment to add with it."""
        if not self.differs(issue):
            return []
        current = issue.fields.get("status")
        chosen = self._chosen(issue, self._offered(issue))
        if _same_id(chosen.get("to"), current):
            return []  # the same status with its name in another language
        self._require_fields(issue, chosen, () if comment is None else ("comment",))
        fields = self._spelled(issue, chosen)
        self._targets[issue.key] = chosen.get("to")
        change = Change("status", shown(current), self._status)
        return [Edit((change,), lambda: self._write(issue, chosen, fields, comment), self.needs)]

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        """See `Part`. Warns if the workflow moved the issue on [tracker-24]."""
        if now.key not in self._targets:
            return []
        old, status = before.fields.get("status"), now.fields.get("status")
        if _same_id(status, old) or shown(status) == shown(old):
            return [Change("status", shown(old), self._status)]
        if not self._is(status) and not _same_id(status, self._targets[now.key]):
            self._site.task.warn(
                f"the issue '{now.key}' was moved to '{self._status}', and its workflow moved it on"
                f" to '{shown(status)}'"
            )
        fields = [(field, before.fields.get(field.id)) for field in self._fields]
        return [
            replace(field.change(old), field=f"transition_fields.{field.name}")
            for field, old in fields
            if field.id in now.fields
            and field.differs(old)
            and field.differs(now.fields[field.id])
            and now.fields[field.id] == old
        ]

    def _spelled(self, issue: TrackerIssue, chosen: Transition) -> list[WantedField]:
        """Return the fields for the screen of a transition, with the server's spelling.

        Raises `invalid` for a value that a field does not accept, and `rejected` for a field that
        is not on the screen.
        """
        metadata = _screen(chosen)
        purpose = _title(issue, chosen)
        screen = Screen(self._site.task, purpose, issue.project, metadata, "invalid")
        known = quoted(field.get("name") or number for number, field in metadata.items())
        for field in self._fields:
            if metadata and field.id not in metadata:
                raise rejected(
                    f"{purpose}: the field {field.name} of transition_fields is not on its screen,"
                    f" which has {known}"
                )
        return [screen.spelled(field) for field in self._fields]

    def _offered(self, issue: TrackerIssue) -> list[Transition]:
        """Return the available transitions. Raises `rejected` or `permission` for an empty list.

        Without the permission, the server returns an empty list instead of an error.
        """
        purpose = f"reading the transitions of the issue '{issue.key}'"
        query = {"expand": "transitions.fields"}
        route = self._site.issue_route(issue.key, "transitions")
        response = self._site.client.read(purpose, route, query=query)
        found = expected(response, list, "a list of transitions", "transitions")
        if not all(member(item, "id") is not None for item in found):
            raise unexpected_body(response, "a list of transitions")
        if not found:
            error = rejected(f"{purpose}: no transition is available to this account")
            raise self._site.explained(error, *self.needs, issueKey=issue.key)
        return found

    def _chosen(self, issue: TrackerIssue, offered: list[Transition]) -> Transition:
        """Return the transition to the status. Raises `rejected` for none, `invalid` for many."""
        leading = [record for record in offered if self._is(record.get("to"))]
        named = [record for record in leading if self._is_named(record)]
        if len(named) == 1:
            return named[0]
        if not named:
            wanted = "" if self._transition is None or not leading else f" by '{self._transition}'"
            raise rejected(
                f"the issue '{issue.key}' cannot reach the status '{self._status}'{wanted} from"
                f" '{shown(issue.fields.get('status'))}'; the available transitions are"
                f" {_listed(offered)}"
            )
        raise invalid(
            f"status: several transitions of the issue '{issue.key}' lead to '{self._status}':"
            f" {_listed(named)}; set transition to the name or id of one of them"
        )

    def _is_named(self, transition: Transition) -> bool:
        wanted = self._transition
        if wanted is None:
            return True
        return wanted == as_text(transition.get("id")) or (
            wanted.strip().casefold() == as_text(transition.get("name")).strip().casefold()
        )

    def _require_fields(
        self, issue: TrackerIssue, chosen: Transition, filled: Collection[str]
    ) -> None:
        """Raise `rejected` if a required field of the screen has no value.

        A transition without a screen sets no fields, so `transition_fields` is rejected.
        """
        screen = _screen(chosen)
        transition = _title(issue, chosen)
        if self._fields and not screen and chosen.get("hasScreen") is False:
            raise rejected(f"{transition} has no screen, so transition_fields cannot be set")
        needed = [
            name
            for name, field in screen.items()
            if field.get("required")
            and not field.get("hasDefaultValue")
            and name not in {*self._filled, *filled}
        ]
        if "comment" in needed:
            raise rejected(
                f"{transition} requires a comment: set comment to a text that this account has not"
                " added yet"
            )
        if needed:
            current = self._site.issue(issue.key, needed).fields
            empty = [name for name in needed if current.get(name) in (None, "", [])]
            if empty:
                names = quoted(screen[name].get("name") or name for name in empty)
                raise rejected(f"{transition} requires {names}: set it in transition_fields")

    def _write(
        self,
        issue: TrackerIssue,
        chosen: Transition,
        fields: Sequence[WantedField],
        comment: Mapping[str, Any] | None,
    ) -> None:
        members: dict[str, Any] = {"transition": {"id": str(chosen["id"])}}
        if comment is not None:
            members["update"] = {"comment": [{"add": comment}]}
        if fields:
            members["fields"] = {field.id: field.value for field in fields}
        try:
            self._site.client.write(
                f"moving the issue '{issue.key}' to the status '{self._status}'",
                "POST",
                self._site.issue_route(issue.key, "transitions"),
                json=members,
                verify=lambda: self._has_arrived(issue, chosen),
            )
        except ToolchainError as error:
            # Server fact [tracker-24]: 409 if another transition of the issue is running.
            if error.status != 409 or not self._has_arrived(issue, chosen):
                raise self._site.explained(error, *self.needs, issueKey=issue.key) from None

    def _has_arrived(self, issue: TrackerIssue, chosen: Transition) -> bool:
        status = self._site.field(issue.key, "status")
        return self._is(status) or _same_id(status, chosen.get("to"))


class CommentedStatusPart(Part):
    """Move an issue to a status, and add a comment with the transition.

    Workflows may require the comment. A comment that the server drops is added afterwards.
    """

    def __init__(self, site: Site, status: StatusPart, comment: CommentPart) -> None:
        super().__init__(site)
        self._status, self._comment = status, comment
        #: Whether the comment of an issue goes with its transition, by key of the issue.
        self._together: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._comment.names, *self._status.names)

    @property
    def needs(self) -> tuple[str, ...]:
        return (*self._comment.needs, *self._status.needs)

    def differs(self, issue: TrackerIssue) -> bool:
        return self._comment.differs(issue) or self._status.differs(issue)

    def expected(self) -> tuple[Change, ...]:
        return (*self._comment.expected(), *self._status.expected())

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        comments = self._comment.edits(issue)
        added = next((edit.comment for edit in comments if edit.comment is not None), None)
        moves = self._status.edits(issue, added)
        if added is None or not moves:
            return [*comments, *moves]
        self._together.add(issue.key)
        # the comment goes with the transition
        return [*moves, *(replace(edit, write=lambda: None) for edit in comments)]

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        moves = self._status.unsaved(before, now)
        if now.key in self._together and is_moved(before, now):
            return [*moves, *self._comment.ensure(now)]
        return [*moves, *self._comment.unsaved(before, now)]


def _screen(chosen: Transition) -> Mapping[str, Mapping[str, Any]]:
    """Return the metadata of the fields on the screen of a transition, by id."""
    shown_fields = chosen.get("fields")
    fields = shown_fields.items() if isinstance(shown_fields, Mapping) else ()
    return {number: field for number, field in fields if isinstance(field, Mapping)}


def _title(issue: TrackerIssue, chosen: Transition) -> str:
    return f"the transition '{chosen.get('name')}' of the issue '{issue.key}'"


def _same_id(current: Any, target: Any) -> bool:
    """Return whether two statuses have the same id, even if their names are translated."""
    ids = [member(item, "id") for item in (current, target)]
    return None not in ids and str(ids[0]) == str(ids[1])


def _listed(transitions: Sequence[Transition]) -> str:
    return ", ".join(
        f"'{transition.get('name')}' ({transition.get('id')}) to '{shown(transition.get('to'))}'"
        for transition in transitions
    )
