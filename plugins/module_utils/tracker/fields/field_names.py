# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve fields by id or name. Names may be translated and are not unique [tracker-19]."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import invalid
from ...core.http.messages import expected
from ..client import TrackerClient

#: Key in `memory` for the fields of the server.
_FIELDS = "tracker.fields"
#: Fields that cannot be set directly, and the option to use instead.
_ELSEWHERE = {
    "attachment": "attachments",
    "comment": "comment",
    "issuelinks": "links",
    "project": "project",
    "status": "status",
}


@dataclass(frozen=True)
class FieldKind:
    """A field of the server. `schema` describes the type of its values."""

    id: str
    name: str
    schema: Mapping[str, Any]


class FieldNames:
    """Resolve names of fields. The fields of the server are read once."""

    def __init__(self, client: TrackerClient) -> None:
        self._client = client

    def find(self, name: str, place: str) -> FieldKind:
        """Return the field with an id or a name; the exact name is preferred to another case.

        Raises `invalid` if no field or several fields have the name.

        :param place: the option, for messages
        """
        fields = self._all()
        wanted = name.strip()
        for match in (
            [field for field in fields if field.id == wanted],
            [field for field in fields if field.name == wanted],
            [field for field in fields if field.name.casefold() == wanted.casefold()],
        ):
            if len(match) > 1:
                ids = ", ".join(sorted(kind.id for kind in match))
                raise invalid(
                    f"{place}: several fields are called '{name}': use the id instead ({ids})"
                )
            if match:
                return self._settable(match[0], place)
        known = sorted({text for field in fields for text in (field.id, field.name)})
        near = difflib.get_close_matches(wanted, known, 1)
        hint = f": did you mean '{near[0]}'?" if near else ""
        raise invalid(f"{place}: the tracker has no field '{name}'{hint}")

    def _settable(self, field: FieldKind, place: str) -> FieldKind:
        if field.id in _ELSEWHERE:
            raise invalid(f"{place}: use the option {_ELSEWHERE[field.id]} instead")
        return field

    def _all(self) -> list[FieldKind]:
        known = self._client.memory.get(_FIELDS)
        if known is None:
            response = self._client.read("reading the fields", "rest/api/2/field")
            known = [
                _kind(record)
                for record in expected(response, list, "a list of fields")
                if isinstance(record, Mapping) and record.get("id") is not None
            ]
            self._client.memory[_FIELDS] = known
        fields: list[FieldKind] = known
        return fields


def _kind(record: Mapping[str, Any]) -> FieldKind:
    schema = record.get("schema")
    name = str(record.get("name") or record["id"])
    return FieldKind(str(record["id"]), name, schema if isinstance(schema, Mapping) else {})
