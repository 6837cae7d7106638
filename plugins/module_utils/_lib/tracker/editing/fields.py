# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit all fields of an issue with a single request [tracker-22]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import ToolchainError, quoted
from ...core.module.task import Task
from ...core.plan import Change
from ..issues import moments, sprints
from ..issues.documents import is_document, text_of
from ..issues.durations import Durations
from ..issues.field_values import missing, same, shown
from .site import Edit, Site, TrackerIssue

#: Field that no list of fields contains. Its value is an issue.
PARENT = "parent"
#: Fields whose values are all in the metadata of the field.
_LISTED = ("fixVersions", "versions", "components")
#: Options that name objects of a project, and the kind of these objects.
_KINDS = {"fix_versions": "version", "affects_versions": "version", "components": "component"}


@dataclass(frozen=True)
class FieldComparison:
    """How values of a field are compared, and shown in results."""

    same: Callable[[Any, Any], bool] = same
    shown: Callable[[Any], Any] = shown


def _same_text(current: Any, wanted: Any) -> bool:
    return text_of(current) == text_of(wanted)


def _same_choice(current: Any, wanted: Any) -> bool:
    """Compare both levels of a cascading select."""
    if isinstance(current, Mapping) and isinstance(wanted, Mapping):
        wanted = {"child": None, **wanted}
    return same(current, wanted)


PLAIN = FieldComparison()
#: Compares the document of a string by its text.
BY_TEXT = FieldComparison(_same_text)


def comparison_of(schema: Mapping[str, Any], site: Site) -> FieldComparison:
    """Return the comparison for a field of the server."""
    kind = schema.get("type")
    if sprints.is_sprint(schema):
        return FieldComparison(sprints.same, sprints.open_sprint)
    if kind == "datetime":
        return FieldComparison(moments.same)
    if kind == "option-with-child":
        return FieldComparison(_same_choice)
    if kind == "timetracking":
        durations = Durations(site.client)
        return FieldComparison(durations.same, durations.shown)
    return PLAIN


@dataclass(frozen=True)
class WantedField:
    """A field and its wanted value.

    `adds`: whether the entries of `value` are added to a list, and those of `gone` removed.
    `check`: raises an error for an impossible value, for example a missing account.
    """

    id: str
    name: str
    value: Any
    adds: bool = False
    gone: tuple[Any, ...] = ()
    check: Callable[[], object] | None = None
    comparison: FieldComparison = PLAIN

    def differs(self, current: Any) -> bool:
        if self.adds:
            return bool(missing(current, self.value) or self.leaving(current))
        return not self.comparison.same(current, self.value)

    def leaving(self, current: Any) -> list[Any]:
        """Return the entries to remove from the current list."""
        return [entry for entry in current or [] if any(same(entry, gone) for gone in self.gone)]

    def change(self, current: Any) -> Change:
        before, after = map(self.comparison.shown, (current, self.value))
        if self.adds:
            kept = [entry for entry in current or [] if entry not in self.leaving(current)]
            after = [*shown(kept), *shown(missing(current, self.value))]
        if before == after and is_document(self.value):  # the text is the same
            before, after = current, self.value
        return Change(self.name, before, after)


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
        return _needed(self.for_creation(), "CREATE_ISSUES")

    @property
    def filled(self) -> set[str]:
        """Return the ids of the fields that have a value after the task."""
        return {field.id for field in self._wanted if field.value not in (None, [])}

    def _differing(self, issue: TrackerIssue) -> list[WantedField]:
        return [field for field in self._wanted if field.differs(issue.fields.get(field.id))]

    def differs(self, issue: TrackerIssue) -> bool:
        return bool(self._differing(issue))

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        differing = [self._settable(issue, field) for field in self._differing(issue)]
        if not differing:
            return []
        changes = tuple(field.change(issue.fields.get(field.id)) for field in differing)
        needed = _needed([field.id for field in differing])
        return [Edit(changes, lambda: self._write(issue, differing), needed)]

    def expected(self) -> tuple[Change, ...]:
        for field in self._wanted:
            _check(field)
        return tuple(field.change(None) for field in self._wanted if field.differs(None))

    def for_creation(self) -> dict[str, Any]:
        """Return the value of each field for a new issue, by id."""
        members: dict[str, Any] = {}
        for field in self._wanted:
            if field.differs(None):
                members[field.id] = field.value
        return members

    def _settable(self, issue: TrackerIssue, field: WantedField) -> WantedField:
        """Return the field with its values in the server's spelling.

        Raises `rejected` for an unknown value or a field that cannot be set, and `permission` if
        the account lacks a permission. Server fact [tracker-22]: without the permission to edit, no
        field can be set.
        """
        _check(field)
        if issue.editable is None:
            return field
        known = issue.editable.get(field.id)
        if known is None and field.id == PARENT:
            return field
        if known is None:
            error = ToolchainError(
                "rejected",
                f"editing the issue '{issue.key}': the field {field.name} cannot be set. It is not"
                " on the edit screen, or the issue cannot be edited, or a permission is missing",
            )
            raise self._site.explained(error, *_needed([field.id]), issueKey=issue.key)
        if known.get("required") is True and field.value in (None, "", []):
            raise ToolchainError(
                "rejected",
                f"editing the issue '{issue.key}': {field.name} is a required field, but its value"
                " is empty",
            )
        allowed = known.get("allowedValues")
        # Servers do not list the values of every field.
        if not isinstance(allowed, list) or not (allowed or field.id in _LISTED):
            return field
        if isinstance(field.value, list):
            value: Any = [self._allowed(issue, field, entry, allowed) for entry in field.value]
        else:
            value = self._allowed(issue, field, field.value, allowed)
        return replace(field, value=value)

    def _allowed(
        self, issue: TrackerIssue, field: WantedField, value: Any, allowed: list[Any]
    ) -> Any:
        """Return a value with the server's letter case, which some servers require."""
        if not isinstance(value, Mapping):
            return value
        wanted = {name: item for name, item in value.items() if name != "child"}
        for known in allowed:
            if same(known, wanted):
                found = {**value, **{name: known[name] for name in wanted}}
                children = known.get("children")
                if value.get("child") and isinstance(children, list):
                    found["child"] = self._allowed(issue, field, value["child"], children)
                return found
        project = issue.key.rpartition("-")[0]
        if predicted(self._site.task, field.name, project, str(shown(value))):
            return value
        raise self._unknown_value(issue, field, value, allowed)

    def _unknown_value(
        self, issue: TrackerIssue, field: WantedField, value: Any, allowed: list[Any]
    ) -> ToolchainError:
        return ToolchainError(
            "rejected",
            f"editing the issue '{issue.key}': {field.name} cannot be '{shown(value)}'; allowed"
            f" values: {quoted(map(shown, allowed))}",
        )

    def _write(self, issue: TrackerIssue, fields: Sequence[WantedField]) -> None:
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
            needs=_needed([field.id for field in fields]),
            issue=issue.key,
            json={name: value for name, value in members.items() if value},
            verify=done,
            repeatable=True,
        )
        unlisted = {field.id for field in fields} - set(issue.editable or ())
        if PARENT in unlisted and not done():
            raise ToolchainError(
                "rejected",
                f"editing the issue '{issue.key}': the server accepted the new parent, but the"
                " parent did not change. The type of the issue may not allow it",
            )


def predicted(task: Task, option: str, project: str, name: str) -> bool:
    """Return whether an earlier task in check mode would create this version or component."""
    kind = _KINDS.get(option)
    return kind is not None and task.predictions.get(kind, project, name.lower()) is not None


def _needed(fields: Collection[str], first: str = "EDIT_ISSUES") -> tuple[str, ...]:
    """Return the permissions for a change of these fields."""
    return (first, *(["ASSIGN_ISSUES"] if "assignee" in fields else []))


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
