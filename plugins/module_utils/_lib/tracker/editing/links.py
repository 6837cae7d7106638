# SPDX-License-Identifier: GPL-3.0-or-later
"""Link an issue to others [tracker-26], and to pages of other servers [tracker-44]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...core.errors import ToolchainError, invalid, quoted
from ...core.http.messages import expected, unexpected_body
from ...core.json_text import as_text, json_objects, member
from ...core.plan import Change
from .issue_options import RemoteLink
from .site import Edit, Part, Site, TrackerIssue

#: Members of every type of links.
_OF_TYPES = ("id", "name", "inward", "outward")


@dataclass(frozen=True)
class WantedLink:
    """A link to another issue.

    `issue`: the other issue, without an id until it is read. `is_subject`: whether the edited issue
    is the subject of the phrase, as in "this issue blocks that issue".
    """

    type: str
    type_id: str
    phrase: str
    issue: TrackerIssue
    is_subject: bool
    is_symmetric: bool

    def is_among(self, links: Any) -> bool:
        """Return whether the links of an issue contain this link.

        The subject has the other issue as `outwardIssue`, the object has it as `inwardIssue`. In a
        symmetric link both occur.
        """
        sides = ["outwardIssue" if self.is_subject else "inwardIssue"]
        if self.is_symmetric:
            sides = ["outwardIssue", "inwardIssue"]
        return any(
            as_text(member(link, "type", "id")) == self.type_id
            and self.issue.is_same(link.get(side))
            for link in json_objects(links)
            for side in sides
        )

    def change(self) -> Change:
        return Change("links", None, f"{self.phrase} {self.issue.key}")


class LinksPart(Part):
    """Add links to an issue. Its other links stay.

    :param wanted: pairs of a link type, or a phrase of that type, and the key of another issue
    """

    names = ("issuelinks",)
    needs = ("LINK_ISSUES",)

    def __init__(self, site: Site, wanted: Sequence[tuple[str, str]]) -> None:
        super().__init__(site)
        purpose = "reading the types of links"
        try:
            response = site.client.read(purpose, "rest/api/2/issueLinkType")
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint("links may be disabled on this server")
            raise
        types = expected(response, list, "the types of links", "issueLinkTypes")
        if not all(member(kind, name) is not None for kind in types for name in _OF_TYPES):
            raise unexpected_body(response, "the types of links")
        self._links = [_wanted(types, number, *pair) for number, pair in enumerate(wanted)]

    def differs(self, issue: TrackerIssue) -> bool:
        there = issue.fields.get("issuelinks")
        return not all(link.is_among(there) for link in self._links)

    def _missing(self, issue: TrackerIssue) -> list[WantedLink]:
        """Return the missing links, with the present keys of the other issues.

        Raises `not_found` if another issue is missing or not visible, and `invalid` for a link to
        the issue itself.
        """
        there = issue.fields.get("issuelinks")
        found: dict[tuple[str, bool, str], WantedLink] = {}
        for link in self._links:
            if link.is_among(there):
                continue
            other = self._site.named(link.issue.key)
            if other.key == issue.key:
                raise invalid(f"links: the issue {issue.key} cannot be linked to itself")
            present = replace(link, issue=other)
            if not present.is_among(there):
                found.setdefault((link.type_id, link.is_subject, other.key), present)
        return list(found.values())

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        return [
            Edit((link.change(),), partial(self._write, issue, link), self.needs)
            for link in self._missing(issue)
        ]

    def expected(self) -> tuple[Change, ...]:
        return tuple(link.change() for link in self._missing(TrackerIssue("", {})))

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        return [link.change() for link in self._missing(now)]

    def _write(self, issue: TrackerIssue, link: WantedLink) -> None:
        """Create a link. `inwardIssue` is the subject.

        The request can be repeated: the server does not create the same link twice.
        """
        other = link.issue.key
        subject, object_ = (issue.key, other) if link.is_subject else (other, issue.key)
        self._site.write(
            f"linking the issue '{issue.key}' to '{other}'",
            "POST",
            "rest/api/2/issueLink",
            needs=self.needs,
            issue=issue.key,
            json={
                "type": {"name": link.type},
                "inwardIssue": {"key": subject},
                "outwardIssue": {"key": object_},
            },
            verify=lambda: link.is_among(self._site.field(issue.key, "issuelinks")),
            repeatable=True,
        )


def _wanted(types: Sequence[Mapping[str, Any]], number: int, kind: str, issue: str) -> WantedLink:
    """Return the link for a type name or phrase. Raises `invalid` unless one type matches.

    :param number: index in the option `links`, for messages
    """
    for names in (("name",), ("outward", "inward")):
        found = {
            str(type_["id"]): (type_, name)
            for type_ in types
            for name in reversed(names)
            if as_text(type_.get(name)).casefold() == kind.strip().casefold()
        }
        if len(found) > 1:
            several = quoted(type_["name"] for type_, _name in found.values())
            raise invalid(
                f"links[{number}].type is '{kind}', which is ambiguous: it matches {several}"
            )
        for type_, name in found.values():
            phrase = str(type_["inward" if name == "inward" else "outward"])
            phrases = {as_text(type_.get(member)).casefold() for member in ("inward", "outward")}
            type_name, type_id = str(type_["name"]), str(type_["id"])
            is_subject, symmetric = name != "inward", len(phrases) == 1
            other = TrackerIssue(issue.strip(), {})
            return WantedLink(type_name, type_id, phrase, other, is_subject, symmetric)
    known = quoted((type_.get("name") for type_ in types), len(types))
    raise invalid(f"links[{number}].type is '{kind}', but the tracker has only the types {known}")


# -- pages of other servers --------------------------------------------------------------------

#: Managed values of a link, and where a request has them.
_VALUES = {
    "url": ("object", "url"),
    "title": ("object", "title"),
    "summary": ("object", "summary"),
    "relationship": ("relationship",),
}
Record = Mapping[str, Any]


def _values(record: Record) -> dict[str, str]:
    return {name: as_text(member(record, *place)) for name, place in _VALUES.items()}


class RemoteLinksPart(Part):
    """Add, change and remove remote links of an issue. Its other remote links stay."""

    def __init__(self, site: Site, wanted: Sequence[RemoteLink]) -> None:
        super().__init__(site)
        self._wanted = wanted

    @property
    def needs(self) -> tuple[str, ...]:
        return ("LINK_ISSUES",) if self.expected() else ()

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        there = self._read(issue)
        return [edit for link in self._wanted for edit in self._edits(issue, link, there)]

    def _edits(self, issue: TrackerIssue, link: RemoteLink, there: Sequence[Record]) -> list[Edit]:
        needs = ("LINK_ISSUES",)
        # a record has the global id of the link, or its URL and no global id
        known = [record for record in there if as_text(record.get("globalId")) == link.identity]
        if not known:
            known = [
                record
                for record in there
                if not record.get("globalId") and member(record, "object", "url") == link.url
            ]
        if link.state == "absent":
            return [
                Edit((_remote_change(record, None),), partial(self._delete, issue, record), needs)
                for record in known
            ]
        current = known[0] if known else {}
        values = {**link.wanted(is_new=not known)}
        if {**_values(current), **values} == _values(current):
            return []
        change = _remote_change(current, values)
        return [Edit((change,), partial(self._save, issue, link, current, values), needs)]

    def expected(self) -> tuple[Change, ...]:
        new = (link.wanted(is_new=True) for link in self._wanted if link.state == "present")
        return tuple(_remote_change({}, values) for values in new)

    def _read(self, issue: TrackerIssue) -> list[Record]:
        purpose = f"reading the remote links of the issue '{issue.key}'"
        try:
            response = self._site.client.read(purpose, self._route(issue))
        except ToolchainError as error:
            if error.status in (403, 404):
                error.with_hint("links may be disabled on this server")
            raise
        records = expected(response, list, "a list of remote links")
        return [record for record in records if isinstance(record, Mapping)]

    def _save(
        self, issue: TrackerIssue, link: RemoteLink, current: Record, values: Mapping[str, str]
    ) -> None:
        """Create or change a link. A change removes what its request does not contain."""
        record: dict[str, Any] = {
            "globalId": link.identity,
            **{name: current[name] for name in ("globalId", "application") if current.get(name)},
        }
        linked = dict(current.get("object") or {})
        merged = {**_values(current), **values}
        linked |= {name: merged[name] or None for name in ("url", "title", "summary")}
        record["object"] = {name: value for name, value in linked.items() if value is not None}
        if merged["relationship"]:
            record["relationship"] = merged["relationship"]
        number = as_text(current.get("id"))
        self._site.write(
            f"adding the remote link '{link.url}' to the issue '{issue.key}'",
            "PUT" if number else "POST",
            self._route(issue, *filter(None, [number])),
            needs=("LINK_ISSUES",),
            issue=issue.key,
            json=record,
            verify=lambda: not self._edits(issue, link, self._read(issue)),
            repeatable=True,
        )

    def _delete(self, issue: TrackerIssue, record: Record) -> None:
        number = as_text(record.get("id"))

        def done() -> bool:
            return number not in {as_text(known.get("id")) for known in self._read(issue)}

        self._site.write(
            f"removing the remote link '{_values(record)['url']}' of the issue '{issue.key}'",
            "DELETE",
            self._route(issue, number),
            needs=("LINK_ISSUES",),
            issue=issue.key,
            verify=done,
            repeatable=True,
        )

    def _route(self, issue: TrackerIssue, *below: str) -> str:
        return self._site.issue_route(issue.key, "remotelink", *below)


def _remote_change(current: Record, values: Mapping[str, str] | None) -> Change:
    """Return the change of a link. Values that are not managed are left out of an update."""
    before = {name: value for name, value in _values(current).items() if value}
    if values is None:
        return Change("remote_links", before, None)
    after = {name: value for name, value in {**before, **values}.items() if value}
    return Change("remote_links", before or None, after)
