# SPDX-License-Identifier: GPL-3.0-or-later
"""Link issues [tracker-26]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import ToolchainError, invalid, quoted
from ...core.http.messages import expected
from ...core.json_text import as_text
from ...core.plan import Change
from .site import Edit, Site, TrackerIssue


@dataclass(frozen=True)
class WantedLink:
    """A link to another issue.

    `issue`: key of the other issue. `is_subject`: whether the edited issue is the subject of the
    phrase, as in "this issue blocks that issue".
    """

    type: str
    type_id: str
    phrase: str
    issue: str
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
            as_text(link["type"].get("id")) == self.type_id
            and as_text(link[side].get("key")).upper() == self.issue.upper()
            for link in links or []
            for side in sides
            if side in link
        )

    def shown(self) -> str:
        return f"{self.phrase} {self.issue}"


class LinksPart:
    """Add links to an issue. Its other links stay.

    :param wanted: pairs of a link type, or a phrase of that type, and the key of another issue
    """

    names = ("issuelinks",)
    needs = ("LINK_ISSUES",)

    def __init__(self, site: Site, wanted: Sequence[tuple[str, str]]) -> None:
        self._site = site
        types = self._types()
        found = [_wanted(types, number, *pair) for number, pair in enumerate(wanted)]
        self._links = list(dict.fromkeys(found))
        self._seen: set[str] = set()

    def _types(self) -> list[Mapping[str, Any]]:
        purpose = "reading the types of links"
        try:
            response = self._site.client.read(purpose, "rest/api/2/issueLinkType")
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint("links may be disabled on this server")
            raise
        return expected(response, list, "the types of links", "issueLinkTypes")

    def _missing(self, issue: TrackerIssue) -> list[WantedLink]:
        there = issue.fields.get("issuelinks")
        return [link for link in self._links if not link.is_among(there)]

    def differs(self, issue: TrackerIssue) -> bool:
        return bool(self._missing(issue))

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        edits = []
        for link in self._missing(issue):
            if link.issue.upper() == issue.key.upper():
                raise invalid(f"links: the issue {issue.key} cannot be linked to itself")
            self._require(link.issue)
            edits.append(Edit((_change(link),), partial(self._write, issue, link), self.needs))
        return edits

    def expected(self) -> tuple[Change, ...]:
        for link in self._links:
            self._require(link.issue)
        return tuple(map(_change, self._links))

    def _require(self, key: str) -> None:
        """Raise `not_found` if the other issue is missing or not visible."""
        if key not in self._seen:
            self._site.issue(key, ["summary"])
            self._seen.add(key)

    def _write(self, issue: TrackerIssue, link: WantedLink) -> None:
        """Create a link. `inwardIssue` is the subject.

        The request can be repeated: the server does not create the same link twice.
        """
        subject, other = (issue.key, link.issue) if link.is_subject else (link.issue, issue.key)
        self._site.write(
            f"linking the issue '{issue.key}' to '{link.issue}'",
            "POST",
            "rest/api/2/issueLink",
            needs=self.needs,
            issue=issue.key,
            json={
                "type": {"name": link.type},
                "inwardIssue": {"key": subject},
                "outwardIssue": {"key": other},
            },
            verify=lambda: link.is_among(self._site.field(issue.key, "issuelinks")),
            repeatable=True,
        )


def _change(link: WantedLink) -> Change:
    return Change("links", None, link.shown())


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
            return WantedLink(type_name, type_id, phrase, issue.strip(), is_subject, symmetric)
    known = quoted((type_.get("name") for type_ in types), len(types))
    raise invalid(f"links[{number}].type is '{kind}', but the tracker has only the types {known}")
