# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields that a request can set, and the values that they accept [tracker-21, tracker-22]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import Kind, ToolchainError, quoted
from ...core.module.task import Task
from ..issues.field_values import same, shown
from .wanted_field import WantedField

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
            raise ToolchainError(
                "rejected",
                f"{self.purpose}: {field.name} is a required field, but its value is empty",
            )
