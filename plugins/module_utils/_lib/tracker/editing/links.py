# SPDX-License-Identifier: GPL-3.0-or-later
"""Link issues [tracker-26]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
            as_text(link["type"].get("id")) == self.type_id and self.issue.is_same(link[side])
            for link in links or []
            for side in sides
            if side in link
        )

    def shown(self) -> str:
        return f"{self.phrase} {self.issue.key}"


class LinksPart:
    """Add links to an issue. Its other links stay.

    :param wanted: pairs of a link type, or a phrase of that type, and the key of another issue
    """

    names = ("issuelinks",)
    needs = ("LINK_ISSUES",)

    def __init__(self, site: Site, wanted: Sequence[tuple[str, str]]) -> None:
        self._site = site
        types = self._types()
        self._links = [_wanted(types, number, *pair) for number, pair in enumerate(wanted)]

    def _types(self) -> list[Mapping[str, Any]]:
        purpose = "reading the types of links"
        try:
            response = self._site.client.read(purpose, "rest/api/2/issueLinkType")
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint("links may be disabled on this server")
            raise
        return expected(response, list, "the types of links", "issueLinkTypes")

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
            Edit((_change(link),), partial(self._write, issue, link), self.needs)
            for link in self._missing(issue)
        ]

    def expected(self) -> tuple[Change, ...]:
        return tuple(map(_change, self._missing(TrackerIssue("", {}))))

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        return list(map(_change, self._missing(now)))

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
            other = TrackerIssue(issue.strip(), {})
            return WantedLink(type_name, type_id, phrase, other, is_subject, symmetric)
    known = quoted((type_.get("name") for type_ in types), len(types))
    raise invalid(f"links[{number}].type is '{kind}', but the tracker has only the types {known}")
