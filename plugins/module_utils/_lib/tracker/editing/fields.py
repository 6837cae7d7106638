# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit all fields of an issue with a single request [tracker-22], and its assignee [tracker-23]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import ToolchainError, invalid, quoted
from ...core.plan import Change
from ..accounts import require_permissions
from ..issues.field_values import missing
from .screens import Screen
from .site import Edit, Site, TrackerIssue, is_moved
from .wanted_field import PARENT, WantedField, issue_key

_ASSIGNEE = "assignee"
#: Required fields of a new issue that the server or the options set.
_ALWAYS_SET = ("project", "issuetype", "reporter")


class FieldsPart:
    """Edit the managed fields of an issue."""

    def __init__(self, site: Site, wanted: Sequence[WantedField]) -> None:
        self._site, self._wanted = site, list(wanted)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(field.id for field in self._wanted))

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the permissions for creating an issue."""
        given = [field.id for field in self._wanted if field.differs(None)]
        return ("CREATE_ISSUES", *(["ASSIGN_ISSUES"] if _ASSIGNEE in given else []))

    @property
    def filled(self) -> set[str]:
        """Return the ids of the fields that have a value after the task."""
        return {field.id for field in self._wanted if field.value not in (None, [])}

    def _differing(self, issue: TrackerIssue) -> list[WantedField]:
        return [field for field in self._wanted if field.differs(issue.fields.get(field.id))]

    def differs(self, issue: TrackerIssue) -> bool:
        return bool(self._differing(issue))

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        """Return the edits of the fields, and of an assignee that is not on the edit screen."""
        together: list[WantedField] = []
        apart: list[WantedField] = []
        for field in self._differing(issue):
            _check(field)
            on_screen = issue.editable is None or field.id in issue.editable
            (apart if field.id == _ASSIGNEE and not on_screen else together).append(field)
        edits = []
        if together:
            settable = [self._settable(issue, field) for field in together]
            ids = [field.id for field in settable]
            needs = ("EDIT_ISSUES", *(["ASSIGN_ISSUES"] if _ASSIGNEE in ids else []))
            changes = tuple(field.change(issue.fields.get(field.id)) for field in settable)
            edits.append(Edit(changes, partial(self._write, issue, settable, needs), needs))
        for field in apart:
            purpose = f"assigning the issue '{issue.key}'"
            require_permissions(self._site.client, purpose, ["ASSIGN_ISSUES"], issueKey=issue.key)
            change = field.change(issue.fields.get(field.id))
            edits.append(Edit((change,), partial(self._assign, issue, field), ("ASSIGN_ISSUES",)))
        return edits

    def expected(self) -> tuple[Change, ...]:
        for field in self._wanted:
            _check(field)
        return tuple(field.change(None) for field in self._wanted if field.differs(None))

    def on(self, screen: Screen) -> FieldsPart:
        """Return the part with the server's spelling of the values of a new issue.

        Raises `invalid` if a required field has no value, and `rejected` for a field that is not on
        the screen, or a value that it does not accept. An assignee is set afterwards.
        """
        given = [field for field in self._wanted if field.differs(None)]
        for field in given:
            if field.id not in (*screen.fields, PARENT, _ASSIGNEE):
                raise ToolchainError(
                    "rejected",
                    f"{screen.purpose}: the field {field.name} cannot be set, because it is not on"
                    " the screen for new issues",
                )
        known = {*_ALWAYS_SET, *(field.id for field in given)}
        absent = [
            f"{metadata.get('name')} ({number})"
            for number, metadata in screen.fields.items()
            if metadata.get("required") is True
            and not metadata.get("hasDefaultValue")
            and number not in known
        ]
        if absent:
            raise invalid(
                f"{screen.purpose}: this type of issue requires a value for {quoted(absent)}: set"
                " it in fields, or in the option of that name"
            )
        return FieldsPart(self._site, [screen.spelled(field) for field in self._wanted])

    def for_creation(self, settable: Collection[str] | None) -> dict[str, Any]:
        """Return the value of each field for a new issue, by id.

        :param settable: ids of the fields that a new issue accepts; None if unknown
        """
        return {
            field.id: field.value
            for field in self._wanted
            if field.differs(None)
            and (settable is None or field.id != _ASSIGNEE or field.id in settable)
        }

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        """Return the changes that the server did not store.

        A transition of the same task may change a field after it was stored, with a warning.
        """
        moved = is_moved(before, now)
        lost = []
        for field in self._differing(now):
            old, current = before.fields.get(field.id), now.fields.get(field.id)
            if not field.differs(old):
                continue
            if moved and current != old:
                self._site.task.warn(
                    f"the workflow of the issue '{now.key}' changed {field.name} to"
                    f" '{field.comparison.shown(current)}'"
                )
            else:
                lost.append(field.change(old))
        return lost

    def _settable(self, issue: TrackerIssue, field: WantedField) -> WantedField:
        """Return the field with its values in the server's spelling.

        Raises `rejected` for an unknown value or a field that cannot be set, and `permission` if
        the account lacks a permission. Server fact [tracker-22]: without the permission to edit, no
        field can be set.
        """
        purpose = f"editing the issue '{issue.key}'"
        key = issue_key(field.value) if field.id == PARENT else ""
        if key and self._site.named(key).key == issue.key:
            raise invalid(f"{field.name}: the issue {issue.key} cannot be its own parent")
        if issue.editable is None or (field.id == PARENT and field.id not in issue.editable):
            return field
        if field.id not in issue.editable:
            error = ToolchainError(
                "rejected",
                f"{purpose}: the field {field.name} cannot be set. It is not on the edit screen, or"
                " the issue cannot be edited, or a permission is missing",
            )
            raise self._site.explained(error, "EDIT_ISSUES", issueKey=issue.key)
        screen = Screen(self._site.task, purpose, issue.project, issue.editable)
        screen.require_value(field)
        return screen.spelled(field)

    def _assign(self, issue: TrackerIssue, field: WantedField) -> None:
        """Set the assignee, which needs neither the edit screen nor the permission to edit."""
        self._site.write(
            f"assigning the issue '{issue.key}'",
            "PUT",
            self._site.issue_route(issue.key, "assignee"),
            needs=("ASSIGN_ISSUES",),
            issue=issue.key,
            json=field.value or {self._site.accounts.member: None},
            verify=lambda: not field.differs(self._site.field(issue.key, field.id)),
            repeatable=True,
        )

    def _write(
        self, issue: TrackerIssue, fields: Sequence[WantedField], needs: Sequence[str]
    ) -> None:
        """Set fields, and add and remove entries of lists. Both can be repeated safely."""

        def done() -> bool:
            now = self._site.issue(issue.key, [field.id for field in fields])
            return not any(field.differs(now.fields.get(field.id)) for field in fields)

        verbs = {field.id: _verbs(issue, field) for field in fields}
        members = {
            "fields": {field.id: field.value for field in fields if not verbs[field.id]},
            "update": {name: listed for name, listed in verbs.items() if listed},
        }
        self._site.write(
            f"editing the issue '{issue.key}'",
            "PUT",
            self._site.issue_route(issue.key),
            needs=needs,
            issue=issue.key,
            json={name: value for name, value in members.items() if value},
            verify=done,
            repeatable=True,
        )


def _verbs(issue: TrackerIssue, field: WantedField) -> list[dict[str, Any]]:
    """Return the verbs for a field. Empty for a field that the request sets."""
    if field.id == PARENT and field.value is None:
        return [{"set": {"none": True}}]
    if not field.adds:
        return []
    current = issue.fields.get(field.id)
    removed = [
        {"remove": {"name": entry["name"]} if isinstance(entry, Mapping) else entry}
        for entry in field.leaving(current)
    ]
    return [{"add": entry} for entry in missing(current, field.value)] + removed


def _check(field: WantedField) -> None:
    if field.check is not None:
        field.check()
