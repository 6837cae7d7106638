# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the options of `tracker_issue` to managed parts of an issue."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import invalid
from ...core.http.messages import expected
from ...core.module.input_check import Place
from ..client import TrackerClient
from ..fields.documents import is_document, to_document
from ..fields.field_values import sent
from .comments import CommentPart, WatchersPart
from .edits import Part
from .fields import FieldsPart, WantedField
from .issue_options import IssueOptions, require_labels, require_summary
from .links import LinksPart
from .site import Site
from .transitions import StatusPart
from .upload_file import ComparedFiles, UploadFile
from .uploads import AttachmentsPart

#: Id of the field of each list option, and whether its entries are objects with a name.
_LISTS = {
    "labels": ("labels", False),
    "fix_versions": ("fixVersions", True),
    "components": ("components", True),
    "affects_versions": ("versions", True),
}
#: Checks for fields that may also be set in `fields`.
_CHECKS = {"summary": require_summary, "labels": require_labels}
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


class WantedParts:
    """The parts in the order of writing: fields, links, attachments, comment, watchers, status."""

    def __init__(self, site: Site, options: IssueOptions, files: list[UploadFile]) -> None:
        self.site, self._options = site, options
        self._names = FieldNames(site.client)
        self.compared = ComparedFiles(site, options.compare_max)
        self.fields = FieldsPart(site, self._distinct())
        self.others = list(self._others(files))

    @property
    def all(self) -> list[Part]:
        return [self.fields, *self.others]

    @property
    def names(self) -> list[str]:
        """Return the ids of the fields that the parts compare."""
        return list(dict.fromkeys(name for part in self.all for name in part.names))

    def _others(self, files: list[UploadFile]) -> Iterator[Part]:
        options, site = self._options, self.site
        if options.links:
            yield LinksPart(site, [(link.type, link.issue) for link in options.links])
        if files:
            yield AttachmentsPart(site, files, self.compared, replace=options.replace)
        if options.comment is not None or options.comment_find is not None:
            yield CommentPart(site, options)
        gone = options.remove.watchers if options.remove else None
        if options.watchers or gone:
            yield WatchersPart(site, options.watchers or [], gone or [])
        if options.status is not None:
            extra = list(self._named("transition_fields", options.transition_fields or {}))
            filled = self.fields.filled
            yield StatusPart(site, options.status, options.transition, extra, filled)

    def _distinct(self) -> list[WantedField]:
        """Return the wanted fields. Raises `invalid` if two options set the same field."""
        found: dict[str, WantedField] = {}
        for field in (*self._own(), *self._named("fields", self._options.fields or {})):
            other = found.setdefault(field.id, field)
            if other is not field:
                raise invalid(
                    f"fields.{field.name} is the same field as {other.name}: set only one of them"
                )
        return list(found.values())

    def _own(self) -> Iterator[WantedField]:
        """Yield the fields of the dedicated options, such as `summary`."""
        options = self._options
        if options.summary is not None:
            yield WantedField("summary", "summary", options.summary.strip())
        if options.description is not None:
            text = self._text(options.description)
            by_text = is_document(text)
            yield WantedField("description", "description", text, by_text=by_text)
        if options.priority is not None:
            yield WantedField("priority", "priority", {"name": options.priority.strip()})
        if options.assignee is not None:
            yield self._assignee(options.assignee.strip())
        for name, (number, named) in _LISTS.items():
            if getattr(options, name, None) is not None:
                yield WantedField(number, name, _listed(options, name, named=named))
            added = _listed(options.add, name, named=named)
            gone = _listed(options.remove, name, named=named)
            if added or gone:
                yield WantedField(number, name, added, adds=True, gone=tuple(gone))

    def _text(self, text: str) -> Any:
        if not text.strip():
            return None
        return to_document(text) if self.site.cloud else text

    def _assignee(self, name: str) -> WantedField:
        """Return the assignee.

        An empty name takes the assignee off. On a server, issues contain the name, so the account
        is only searched for if it differs.
        """
        if not name:
            return WantedField("assignee", "assignee", None)
        accounts = self.site.accounts
        if self.site.cloud:
            found = {accounts.member: accounts.id_of(name, "assignee")}
            return WantedField("assignee", "assignee", found)
        check = partial(accounts.id_of, name, "assignee")
        return WantedField("assignee", "assignee", {"name": name}, check=check)

    def _named(self, option: str, values: Mapping[str, Any]) -> Iterator[WantedField]:
        for name, value in values.items():
            place = f"{option}.{name}"
            kind = self._names.find(str(name), place)
            accounts = self.site.accounts if self.site.cloud else None
            wanted = sent(value, kind.schema, Place(place), accounts)
            if kind.id in _CHECKS:
                _CHECKS[kind.id](place, wanted)
            by_text = isinstance(value, str) and is_document(wanted)
            yield WantedField(kind.id, str(name), wanted, by_text=by_text)


def _listed(source: Any, name: str, *, named: bool) -> list[Any]:
    """Return the entries of a list option in the server's form, without duplicates."""
    entries = dict.fromkeys(getattr(source, name, None) or ())
    return [{"name": entry.strip()} if named else entry for entry in entries]


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
