# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage links from an issue to pages of other servers [tracker-44]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import ToolchainError
from ...core.http.messages import expected
from ...core.json_text import as_text, member
from ...core.plan import Change
from .issue_options import RemoteLink
from .site import Edit, Site, TrackerIssue

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


def _of(there: Sequence[Record], link: RemoteLink) -> list[Record]:
    """Return the records of a link: one with its global id, or those with its URL and none."""
    known = [record for record in there if as_text(record.get("globalId")) == link.identity]
    if known:
        return known
    return [
        record
        for record in there
        if not record.get("globalId") and member(record, "object", "url") == link.url
    ]


class RemoteLinksPart:
    """Add, change and remove remote links of an issue. Its other remote links stay."""

    names = ()

    def __init__(self, site: Site, wanted: Sequence[RemoteLink]) -> None:
        self._site, self._wanted = site, wanted

    @property
    def needs(self) -> tuple[str, ...]:
        return ("LINK_ISSUES",) if self.expected() else ()

    def differs(self, issue: TrackerIssue) -> bool:
        return True  # no search returns remote links

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        there = self._read(issue)
        return [edit for link in self._wanted for edit in self._edits(issue, link, there)]

    def _edits(self, issue: TrackerIssue, link: RemoteLink, there: Sequence[Record]) -> list[Edit]:
        known, needs = _of(there, link), ("LINK_ISSUES",)
        if link.state == "absent":
            return [
                Edit((_change(record, None),), partial(self._delete, issue, record), needs)
                for record in known
            ]
        current = known[0] if known else {}
        values = {**link.wanted(is_new=not known)}
        if {**_values(current), **values} == _values(current):
            return []
        change = _change(current, values)
        return [Edit((change,), partial(self._save, issue, link, current, values), needs)]

    def expected(self) -> tuple[Change, ...]:
        new = (link.wanted(is_new=True) for link in self._wanted if link.state == "present")
        return tuple(_change({}, values) for values in new)

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        return [change for edit in self.edits(now) for change in edit.changes]

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


def _change(current: Record, values: Mapping[str, str] | None) -> Change:
    """Return the change of a link. Values that are not managed are left out of an update."""
    before = {name: value for name, value in _values(current).items() if value}
    if values is None:
        return Change("remote_links", before, None)
    after = {name: value for name, value in {**before, **values}.items() if value}
    return Change("remote_links", before or None, after)
