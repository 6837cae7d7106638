# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the values of fields in requests to stored values [tracker-22]."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sandbox.tracker.call import Call, Json
from sandbox.tracker.errors import Unsuitable
from sandbox.tracker.fields.fields import Field
from sandbox.tracker.fields.markup import as_markup, is_document
from sandbox.tracker.projects.people import read_assignee, read_user
from sandbox.tracker.visible import Issue

_LONGEST_LINE, LONGEST_TEXT = 255, 32767
_TEXTS = ("description", "environment")
_TOO_LONG = "The entered text is too long. It exceeds the allowed limit of 32,767 characters."


class Values:
    """Parse values for the fields of an issue. Raises `Unsuitable` for invalid values."""

    def __init__(self, call: Call, issue: Issue) -> None:
        self.call = call
        self.issue = issue
        self._kinds: dict[str, Callable[[Field, Any], Any]] = {
            "string": self._string,
            "number": self._number,
            "date": self._date,
            "datetime": self._datetime,
            "user": self._user,
            "option": self._option,
            "option-with-child": self._cascading,
            "sprint": self._sprint,
            "version": self._of_project,
            "component": self._of_project,
            "priority": self._named,
            "issuetype": self._named,
            "resolution": self._named,
        }

    def read(self, field: Field, value: Any) -> Any:
        """Convert a value to its stored form."""
        if field.type != "array":
            return self.one(field, field.type, value)
        if value is None:
            return []
        if not isinstance(value, list):
            raise Unsuitable("data was not an array")
        return _distinct([self.one(field, str(field.items), item) for item in value])

    def change(self, field: Field, verb: str, value: Any, current: Any) -> Any:
        """Apply an update verb to the current value and return the new value.

        It is no error to add an item twice, or to remove a missing item.
        """
        if verb not in field.operations:
            raise Unsuitable(f"Field '{field.id}' does not support operation '{verb}'")
        if verb == "set":
            return self.read(field, value)
        item, items = self.one(field, str(field.items), value), list(current or [])
        if verb == "add":
            return _distinct([*items, item])
        return [other for other in items if other != item]

    def one(self, field: Field, kind: str, value: Any) -> Any:
        if value is None and kind not in ("version", "component", "issuetype"):
            return None if field.id != "summary" else _summary("")
        reader = self._kinds.get(kind)
        if reader is None:
            raise Unsuitable(f"Field '{field.id}' cannot be set.")
        return reader(field, value)

    def _string(self, field: Field, value: Any) -> str | Json:
        if field.id in _TEXTS and self.call.documents:
            if not is_document(value):
                raise Unsuitable("Operation value must be an Atlassian Document")
            if len(as_markup(value)) > LONGEST_TEXT:
                raise Unsuitable(_TOO_LONG)
            document: Json = value
            return document
        if not isinstance(value, str):
            raise Unsuitable("Operation value must be a string")
        if field.id == "summary":
            return _summary(value)
        if field.id == "labels":
            return _label(value)
        if len(value) > LONGEST_TEXT:
            raise Unsuitable(_TOO_LONG)
        return value

    def _number(self, field: Field, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unsuitable("Operation value must be a number")
        return float(value)

    def _date(self, field: Field, value: Any) -> str:
        return read_date(value)

    def _datetime(self, field: Field, value: Any) -> str:
        try:
            datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%S.%f%z")
        except ValueError:
            raise Unsuitable(f"Error parsing time: {value}") from None
        return str(value)

    def _user(self, field: Field, value: Any) -> str | None:
        if field.id == "assignee":
            return read_assignee(self.call, self.issue, value)
        return read_user(self.call, value)

    def _option(self, field: Field, value: Any) -> str:
        options = {field.option_id(index): text for index, text in enumerate(field.options)}
        if not isinstance(value, dict):
            raise Unsuitable("Specify the value as an object with 'value' or 'id'")
        if "id" in value:
            if str(value["id"]) not in options:
                raise Unsuitable(f"Option id '{value['id']}' is not valid")
            return options[str(value["id"])]
        if value.get("value") not in field.options:
            raise Unsuitable(f"Option value '{value.get('value')}' is not valid")
        return str(value["value"])

    def _cascading(self, field: Field, value: Any) -> list[str]:
        """Return the option, and its child if the value has one."""
        option = self._option(field, value)
        child = value.get("child")
        if child is None:
            return [option]
        if child.get("value") not in field.children_of(option):
            raise Unsuitable(f"Option value '{child.get('value')}' is not valid")
        return [option, str(child["value"])]

    def _sprint(self, field: Field, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unsuitable("Number value expected as the Sprint id.")
        return value

    def _of_project(self, field: Field, value: Any) -> str:
        kind = str(field.items if field.type == "array" else field.type)
        entries = self.call.store.values(f"tracker.{kind}", f"{self.issue['project']}/")
        return _chosen(entries, value, kind.capitalize())

    def _named(self, field: Field, value: Any) -> str:
        entries = self.call.store.values(f"tracker.{field.type}")
        try:
            return _chosen(entries, value, field.name)
        except Unsuitable:
            if field.id == "issuetype":
                raise Unsuitable("The issue type selected is invalid.") from None
            raise


def read_date(value: Any) -> str:
    """Parse a date in the format `yyyy-MM-dd`."""
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        message = f"Error parsing date string: {value}"
        raise Unsuitable(message) from None


def _chosen(entries: list[dict[str, Any]], value: Any, word: str) -> str:
    """Return the name of the entry that a value `{name}` or `{id}` refers to.

    :param word: kind of the entry, for the error message
    """
    if not isinstance(value, dict):
        raise Unsuitable("data was not an object")
    member = "id" if "id" in value else "name"
    for entry in entries:
        if str(entry[member]) == str(value.get(member)):
            return str(entry["name"])
    raise Unsuitable(f"{word} {member} '{value.get(member)}' is not valid")


def _summary(value: str) -> str:
    value = value.strip()
    if value == "":
        raise Unsuitable("You must specify a summary of the issue.")
    if "\n" in value or "\r" in value:
        raise Unsuitable("The summary is invalid because it contains newline characters.")
    if len(value) > _LONGEST_LINE:
        raise Unsuitable(f"Summary must be less than {_LONGEST_LINE} characters.")
    return value


def _label(value: str) -> str:
    if any(char.isspace() for char in value):
        raise Unsuitable(f"The label '{value}' contains spaces which is invalid.")
    if len(value) > _LONGEST_LINE:
        raise Unsuitable(f"The label '{value[:20]}...' exceeds {_LONGEST_LINE} characters.")
    return value


def _distinct(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
