# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields with their wanted values, the screens that accept them, and their edits.

All fields of an issue are edited with a single request [tracker-22], the assignee apart if
necessary [tracker-23].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...core.address import path
from ...core.errors import Kind, ToolchainError, invalid, quoted, rejected
from ...core.http.messages import Response, expected, json_or_none
from ...core.http.paged_list import PagedList
from ...core.json_text import as_text, member
from ...core.module.task import Task
from ...core.plan import Change
from ..accounts import require_permissions
from ..issues.documents import is_document, text_of
from ..issues.field_values import (
    Durations,
    is_sprint,
    missing,
    open_sprint,
    same,
    same_moment,
    shown,
)
from .site import Edit, Part, Site, TrackerIssue, is_moved

#: Field that no list of fields contains. Its value is an issue.
PARENT = "parent"
#: End of the custom type of a field whose value is the key of an epic.
_EPIC = ":gh-epic-link"


@dataclass(frozen=True)
class FieldComparison:
    """How values of a field are compared, and shown in results."""

    same: Callable[[Any, Any], bool] = same
    shown: Callable[[Any], Any] = shown


def _same_text(current: Any, wanted: Any) -> bool:
    return text_of(current) == text_of(wanted)


PLAIN = FieldComparison()
#: Compares the document of a string by its text.
BY_TEXT = FieldComparison(_same_text)


def comparison_of(schema: Mapping[str, Any], site: Site) -> FieldComparison:
    """Return the comparison for a field of the server."""
    kind = schema.get("type")
    if is_sprint(schema):
        return FieldComparison(
            lambda current, wanted: bool(open_sprint(current) == wanted), open_sprint
        )
    if kind == "datetime":
        return FieldComparison(same_moment)
    if kind == "option-with-child":
        return FieldComparison(
            lambda current, wanted: same(
                current, {"child": None, **wanted} if isinstance(wanted, Mapping) else wanted
            )
        )
    if kind == "issuelink" or str(schema.get("custom")).endswith(_EPIC):
        return FieldComparison(lambda current, wanted: _same_issue(current, wanted, site))
    if kind == "timetracking":
        durations = Durations(site.client)
        return FieldComparison(durations.same, durations.shown)
    return PLAIN


def _same_issue(current: Any, wanted: Any, site: Site) -> bool:
    """Compare issues. The wanted key may be the key of an issue before it was moved."""
    if same(current, wanted) or not current or not wanted:
        return same(current, wanted)
    there, key = issue_key(current), issue_key(wanted)
    return bool(there and key) and site.named(key).key == there


def issue_key(value: Any) -> str:
    """Return the key in the value of a field that contains an issue, or ""."""
    return as_text(value.get("key") if isinstance(value, Mapping) else value)


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
        entries = current if isinstance(current, list) else []
        return [entry for entry in entries if any(same(entry, gone) for gone in self.gone)]

    def change(self, current: Any) -> Change:
        before, after = map(self.comparison.shown, (current, self.value))
        if self.adds:
            entries, leaving = current if isinstance(current, list) else [], self.leaving(current)
            kept = [entry for entry in entries if entry not in leaving]
            after = [*shown(kept), *shown(missing(current, self.value))]
        if before == after and is_document(self.value):  # the text is the same
            before, after = current, self.value
        return Change(self.name, before, after)


# -- screens: the fields that a request can set [tracker-21] ---------------------------------------

#: Fields whose values are all in the metadata of the field.
_LISTED = ("fixVersions", "versions", "components")
#: Options that name objects of a project, and the kind of these objects.
_KINDS = {"fix_versions": "version", "affects_versions": "version", "components": "component"}


def predicted(task: Task, option: str, project: str, name: str) -> bool:
    """Return whether an earlier task in check mode would create this version or component."""
    kind = _KINDS.get(option)
    return kind is not None and task.predictions.get(kind, project, name.lower()) is not None


@dataclass(frozen=True)
class Screen:
    """The metadata of the fields that a request can set, by id.

    :param purpose: the request, for messages
    :param project: key of the project
    :param kind: kind of the error for a value that a field does not accept
    """

    task: Task
    purpose: str
    project: str
    fields: Mapping[str, Any]
    kind: Kind = "rejected"

    def spelled(self, field: WantedField) -> WantedField:
        """Return a field with its values in the server's letter case, which some servers require.

        Raises an error of `kind` for a value that the field does not accept.
        """
        known = self.fields.get(field.id)
        allowed = known.get("allowedValues") if isinstance(known, Mapping) else None
        # Servers do not list the values of every field.
        if not isinstance(allowed, list) or not (allowed or field.id in _LISTED):
            return field
        if isinstance(field.value, list):
            value: Any = [self._allowed(field, entry, allowed) for entry in field.value]
        else:
            value = self._allowed(field, field.value, allowed)
        return replace(field, value=value)

    def _allowed(self, field: WantedField, value: Any, allowed: list[Any]) -> Any:
        if not isinstance(value, Mapping):
            return value
        wanted = {name: item for name, item in value.items() if name != "child"}
        for known in allowed:
            if same(known, wanted):
                found = {**value, **{name: known[name] for name in wanted}}
                children = known.get("children")
                if value.get("child") and isinstance(children, list):
                    found["child"] = self._allowed(field, value["child"], children)
                return found
        if predicted(self.task, field.name, self.project, str(shown(value))):
            return value
        raise ToolchainError(
            self.kind,
            f"{self.purpose}: {field.name} cannot be '{shown(value)}'; allowed values:"
            f" {quoted(map(shown, allowed))}",
        )

    def require_value(self, field: WantedField) -> None:
        """Raise `rejected` for an empty value of a required field."""
        known = self.fields.get(field.id)
        is_required = isinstance(known, Mapping) and known.get("required") is True
        if is_required and field.value in (None, "", []) and not field.adds:
            raise rejected(
                f"{self.purpose}: {field.name} is a required field, but its value is empty"
            )


_ROUTE = "rest/api/2/issue/createmeta"
_PAGE_SIZE = 50
#: Members with the fields: of servers, and of the cloud.
_LISTS = ("values", "fields", "results")
#: Statuses of a server that does not support a request, or an account that may not create issues.
_UNKNOWN = (400, 403, 404)


def creation_screen(site: Site, project: str, type_id: str) -> Screen | None:
    """Return the screen for a new issue. None if the server does not report it."""
    fields = _by_page(site, project, type_id)
    if fields is None:
        fields = _of_old_server(site, project, type_id)
    purpose = f"creating an issue in the project '{project}'"
    return Screen(site.task, purpose, project, fields) if fields else None


def _read(site: Site, *below: str, **query: Any) -> Response:
    route = "/".join((_ROUTE, *([path(*below)] if below else [])))
    purpose = "reading the fields of new issues"
    return site.client.read(purpose, route, query=query, expect=(200, *_UNKNOWN))


def _by_page(site: Site, project: str, type_id: str) -> dict[str, Any] | None:
    pages, more = PagedList(_PAGE_SIZE), True
    while more:
        query = {"startAt": pages.start, "maxResults": _PAGE_SIZE}
        response = _read(site, project, "issuetypes", type_id, **query)
        if response.status != 200:
            return None
        shown = expected(response, dict, "a page of fields")
        name = next((name for name in _LISTS if name in shown), _LISTS[0])
        more = pages.add(response, shown, expected(response, list, "a list of fields", name))
    fields = (entry for entry in pages.entries if isinstance(entry, Mapping))
    return {str(field["fieldId"]): field for field in fields if field.get("fieldId")}


def _of_old_server(site: Site, project: str, type_id: str) -> dict[str, Any]:
    """Return the fields by the address of servers before 8.4. Empty if they are unknown."""
    query = {"projectKeys": project, "issuetypeIds": type_id}
    response = _read(site, **query, expand="projects.issuetypes.fields")
    listed = member(json_or_none(response.body), "projects") if response.status == 200 else None
    for record in listed if isinstance(listed, list) else ():
        for kind in member(record, "issuetypes") or ():
            fields = member(kind, "fields")
            if str(member(kind, "id")) == type_id and isinstance(fields, Mapping):
                return {name: field for name, field in fields.items() if isinstance(field, Mapping)}
    return {}


# -- editing ---------------------------------------------------------------------------------------

_ASSIGNEE = "assignee"
#: Required fields of a new issue that the server or the options set.
_ALWAYS_SET = ("project", "issuetype", "reporter")


class FieldsPart(Part):
    """Edit the managed fields of an issue."""

    def __init__(self, site: Site, wanted: Sequence[WantedField]) -> None:
        super().__init__(site)
        self._wanted = list(wanted)

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
                raise rejected(
                    f"{screen.purpose}: the field {field.name} cannot be set, because it is not on"
                    " the screen for new issues"
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
            error = rejected(
                f"{purpose}: the field {field.name} cannot be set. It is not on the edit screen, or"
                " the issue cannot be edited, or a permission is missing"
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
