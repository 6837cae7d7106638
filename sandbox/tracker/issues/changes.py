# SPDX-License-Identifier: GPL-3.0-or-later
"""Change an issue: apply values and verbs to its fields, and add to its history.

If a field is rejected, nothing is changed [tracker-19, tracker-22].
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from sandbox.tracker.call import Call, Json
from sandbox.tracker.errors import Unsuitable, not_on_screen, refusal
from sandbox.tracker.fields.fields import EDIT, Field
from sandbox.tracker.fields.values import Values
from sandbox.tracker.visible import Issue

#: Fields whose verbs are applied after the other fields are saved.
APART = ("comment", "issuelinks")
_HISTORY_NAMES = {"fixVersions": "Fix Version", "versions": "Version", "components": "Component"}
_NAMED_KINDS = ("status", "issuetype", "priority", "resolution")


class Changes:
    """Collect the changes of an issue. `screen`: fields that may be set, by id."""

    def __init__(self, call: Call, issue: Issue, screen: Mapping[str, Field]) -> None:
        self.call = call
        self.before = issue
        self.issue: Issue = deepcopy(issue)
        self.screen = screen
        self.ignored = call.settings["ignored_fields"]
        self.errors: dict[str, str] = {}
        #: Verbs of the fields in `APART`: `[{verb: value}]` by field.
        self.apart: dict[str, list[Json]] = {}

    def take(self, members: Json) -> None:
        """Apply the members `fields` (new values) and `update` (verbs) of a request.

        Errors are collected in `errors`. A field that is in both members is an error.
        """
        fields, update = members.get("fields") or {}, members.get("update") or {}
        if not isinstance(fields, dict) or not isinstance(update, dict):
            raise refusal(400, "Can not deserialize the members 'fields' and 'update'")
        values = Values(self.call, self.issue)
        for number, value in fields.items():
            if number in update:
                message = f"Field '{number}' cannot appear in both 'fields' and 'update'"
                self.errors[number] = message
            elif self._settable(number):
                self._set(values, self.screen[number], value)
        for number, verbs in update.items():
            if number in APART and number in self.screen:
                self.apart[number] = verbs
            elif number not in self.errors and self._settable(number):
                self._change(values, self.screen[number], verbs)

    def _settable(self, number: str) -> bool:
        if number not in self.screen:
            self.errors[number] = not_on_screen(number)
        return number in self.screen and number not in self.ignored

    def _set(self, values: Values, field: Field, value: Any) -> None:
        if "set" not in field.operations:
            self.errors[field.id] = not_on_screen(field.id)
            return
        try:
            field.put(self.issue, values.read(field, value))
        except Unsuitable as problem:
            self.errors[field.id] = str(problem)

    def _change(self, values: Values, field: Field, verbs: Any) -> None:
        """Apply verbs to a field in order."""
        try:
            for step in verbs:
                for verb, value in step.items():
                    current = field.of(self.issue)
                    field.put(self.issue, values.change(field, verb, value, current))
        except Unsuitable as problem:
            self.errors[field.id] = str(problem)
        except (AttributeError, TypeError):
            self.errors[field.id] = "Operations must be a list of objects"

    def require(self, names: Mapping[str, str]) -> None:
        """Record an error for each field without a value.

        :param names: error messages by field
        """
        for number, message in names.items():
            field = self.call.views.catalogue.all[number]
            if number not in self.errors and field.of(self.issue) in (None, "", []):
                self.errors[number] = message

    def refuse(self) -> None:
        """Raise a 400 if there are errors."""
        if self.errors:
            raise refusal(400, errors=self.errors)

    def save(self) -> Issue:
        """Save the issue and its history entry if it changed. Raises a 400 if there are errors."""
        self.refuse()
        if self.issue != self.before:
            save(self.call, self.before, self.issue)
        return self.issue


def editable(call: Call, issue: Issue) -> dict[str, Field]:
    """Return the fields that the account may set now, by id.

    Empty without the permission to edit, or if the status does not allow changes [tracker-22].
    """
    status = call.visible.named("status", issue["status"])
    if not call.may("edit", issue["project"]) or not status.get("editable", True):
        return {}
    project = call.visible.projects[issue["project"]]
    screen = call.views.catalogue.on_screen(project, EDIT)
    if not call.may("assign", issue["project"]):
        screen.pop("assignee", None)
    return screen


def save(call: Call, before: Issue, after: Issue) -> None:
    """Save a changed issue and its history entry."""
    note(call, after, _items(call, before, after))
    after["updated"] = call.now()
    call.store.put("tracker.issue", after["key"], after)


def note(call: Call, issue: Issue, items: list[Json]) -> None:
    """Add an entry to the history of an issue."""
    if not items:
        return
    number = call.next_id("history")
    entry = {"id": number, "author": call.user, "created": call.now(), "items": items}
    call.store.put("tracker.history", f"{issue['id']}/{int(number):012d}", entry)


def item(field: str, before: tuple[Any, Any], after: tuple[Any, Any]) -> Json:
    """Return an item of a history entry. `before` and `after`: pairs of id and string."""
    return {
        "field": field,
        "fieldtype": "custom" if field.startswith("customfield_") else "jira",
        "from": before[0],
        "fromString": before[1],
        "to": after[0],
        "toString": after[1],
    }


def _items(call: Call, before: Issue, after: Issue) -> list[Json]:
    items = []
    for field in call.views.catalogue.all.values():
        old, new = field.of(before), field.of(after)
        if old == new or field.id in ("updated", "attachment", "comment", "issuelinks"):
            continue
        if field.id in _HISTORY_NAMES:
            items += _entries(call, after["project"], field, old or [], new or [])
        else:
            items.append(item(field.id, _pair(call, field, old), _pair(call, field, new)))
    return items


def _entries(call: Call, project: str, field: Field, old: list[str], new: list[str]) -> list[Json]:
    """Return an item of a history entry for each added or removed version or component."""

    def pair(name: str) -> tuple[Any, Any]:
        known = call.store.get(f"tracker.{field.items}", f"{project}/{name}") or {}
        return known.get("id"), name

    name, nothing = _HISTORY_NAMES[field.id], (None, None)
    removed = [item(name, pair(entry), nothing) for entry in old if entry not in new]
    return [*removed, *(item(name, nothing, pair(entry)) for entry in new if entry not in old)]


def _pair(call: Call, field: Field, value: Any) -> tuple[Any, Any]:
    if value is None:
        return None, None
    if field.id in _NAMED_KINDS:
        return call.visible.named(field.id, value)["id"], value
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return (value if field.type == "user" else None), text
