# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of a project: read, made, changed, deleted [tracker-15, tracker-16]."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import Response, json_or_none, unexpected_body
from ..client import TrackerClient
from ..fields.documents import plain_lines

_API = "rest/api/2"
#: Our names of what can be set, and the server's.
_MEMBERS = {
    "name": "name",
    "description": "description",
    "released": "released",
    "archived": "archived",
    "start_date": "startDate",
    "release_date": "releaseDate",
}
MOVE = "moveUnfixedIssuesTo"
_MORE_THAN_WRITTEN = "the written interface of the tracker knows no versions"


@dataclass(frozen=True)
class Version:
    """A version; C(address) is what other versions name it by. Without a value a member is absent
    on the server [tracker-16].
    """

    id: str
    address: str
    name: str
    description: str
    released: bool
    archived: bool
    start_date: str | None
    release_date: str | None

    @classmethod
    def of(cls, bean: Any) -> Version | None:
        """C(None) where the server's object is no version."""
        if not isinstance(bean, Mapping) or "id" not in bean or "name" not in bean:
            return None
        return cls(
            str(bean["id"]),
            str(bean.get("self", "")),
            str(bean["name"]),
            str(bean.get("description") or ""),
            bean.get("released") is True,
            bean.get("archived") is True,
            bean.get("startDate") or None,
            bean.get("releaseDate") or None,
        )

    def settable(self) -> dict[str, Any]:
        """What can be set, by our names."""
        return {name: getattr(self, name) for name in _MEMBERS}

    def differing(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The entries of C(wanted) that the version does not have."""
        have = {**self.settable(), "description": plain_lines(self.description)}
        return {
            name: value
            for name, value in wanted.items()
            if have[name] != (plain_lines(value) if name == "description" else value)
        }


def same_name(one: str, other: str) -> bool:
    """Names are unique whatever the letter case [tracker-17]; nobody sees of what characters an
    umlaut is made.
    """
    return _plain_name(one) == _plain_name(other)


def _plain_name(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()


def named(versions: list[Version], name: str) -> Version | None:
    return next((one for one in versions if same_name(one.name, name)), None)


class ProjectVersions:
    """The versions of one project."""

    def __init__(self, client: TrackerClient, project: str) -> None:
        self._client, self._project = client, project
        self._day: str | None = None

    def all(self) -> list[Version]:
        """All of them, in the project's order; C(not_found) for a project that is not there."""
        what = f"reading the versions of the project '{self._project}'"
        place = f"{_API}/project/{path(self._project)}/versions"
        try:
            response = self._client.read(what, place)
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint(
                    f"there is no such project for this account, or {_MORE_THAN_WRITTEN}"
                )
            raise
        beans = response.json()
        found = [Version.of(bean) for bean in beans] if isinstance(beans, list) else [None]
        versions = [version for version in found if version is not None]
        if len(versions) < len(found):
            raise unexpected_body(response, "a list of versions")
        self._day = None if response.date is None else response.date.date().isoformat()
        return versions

    def today(self) -> str:
        """The server's day. Server fact [tracker-16]: dates are days in the zone of the server."""
        response = self._client.read(
            "asking for the server's day", f"{_API}/serverInfo", expect=(200, 404)
        )
        told = json_or_none(response.body)
        day = str(told.get("serverTime") if isinstance(told, Mapping) else "")[:10]
        try:
            return date.fromisoformat(day).isoformat()
        except ValueError:
            return self._day or datetime.now(timezone.utc).date().isoformat()

    def unresolved(self, version: Version) -> int:
        """How many issues without a resolution name the version, those that are not seen too."""
        what = f"counting the unresolved issues of the version '{version.name}'"
        response = self._client.read(what, self._place(version, "unresolvedIssueCount"))
        told = response.json()
        count = told.get("issuesUnresolvedCount") if isinstance(told, Mapping) else None
        if not isinstance(count, int):
            raise unexpected_body(response, "a number of issues")
        return count

    def create(self, wanted: Mapping[str, Any]) -> Version:
        """Make a version. One that somebody else has made at the same time counts as found.

        Server fact [tracker-18]: a missing right looks as a missing project, which was read.
        """
        name = wanted["name"]
        what = f"creating the version '{name}' of the project '{self._project}'"
        members = {**_sent(wanted), "project": self._project}
        try:
            response = self._client.write(
                what,
                "POST",
                f"{_API}/version",
                json=members,
                verify=lambda: named(self.all(), name) is not None,
            )
        except ToolchainError as error:
            if error.status == 404:
                raise _as_permission(error) from None
            found = named(self.all(), name) if error.status in (400, 409) else None
            if found is None:
                raise
            return found
        made = Version.of(json_or_none(response.body)) or named(self.all(), name)
        if made is None:
            raise response.error("protocol", "the server does not show the version that it made")
        return made

    def update(
        self, version: Version, wanted: Mapping[str, Any], target: Version | None = None
    ) -> Version:
        """Set what is wanted; C(target): where unresolved issues move.

        Server fact [tracker-16]: the parts of it are stored one after the other, so that a refusal
        may leave some of them done.
        """
        what = f"changing the version '{version.name}' of the project '{self._project}'"
        members = _sent(wanted)
        if target is not None:
            members[MOVE] = target.address or f"{self._client.url}/{self._place(target)}"

        def done() -> bool:
            now = self.read(version)
            return now is not None and not now.differing(wanted)

        try:
            response = self._client.write(
                what, "PUT", self._place(version), json=members, verify=done, repeatable=True
            )
        except ToolchainError as error:
            if error.status not in (400, 403, 404):
                raise
            raise self._refused(error, version) from None
        now = Version.of(json_or_none(response.body)) or self.read(version)
        left = list(wanted) if now is None else list(now.differing(wanted))
        if now is None or left:
            said = f"the server took it, but does not show what was set: {', '.join(left)}"
            raise response.error("rejected", said)
        return now

    def _refused(self, error: ToolchainError, version: Version) -> ToolchainError:
        """The error with what became of the version in spite of it."""
        now = self.read(version)
        if now is None:
            return error
        error.result["changed"] = now != version
        return _as_permission(error) if error.status == 404 else error

    def delete(self, version: Version, target: Version | None) -> None:
        """Delete a version; its issues get C(target), or lose it."""
        moved = {} if target is None else dict.fromkeys(_TARGETS, target.id)
        self._client.write(
            f"deleting the version '{version.name}' of the project '{self._project}'",
            "DELETE",
            self._place(version),
            query=moved,
            verify=lambda: self.read(version) is None,
            repeatable=True,
        )

    def read(self, version: Version) -> Version | None:
        """The version as it is now; C(None) where it is gone."""
        what = f"reading the version '{version.name}'"
        response = self._client.read(what, self._place(version), expect=(200, 404))
        if response.status == 404:
            return None
        return _read(response)

    def _place(self, version: Version, *below: str) -> str:
        return f"{_API}/version/{path(version.id, *below)}"


_TARGETS = ("moveFixIssuesTo", "moveAffectedIssuesTo")


def _read(response: Response) -> Version:
    found = Version.of(response.json())
    if found is None:
        raise unexpected_body(response, "a version")
    return found


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {_MEMBERS[name]: value for name, value in wanted.items()}


def _as_permission(error: ToolchainError) -> ToolchainError:
    error.kind = "permission"
    return error.with_hint(
        "what it does not find is there: the account may not administer the project"
    )
