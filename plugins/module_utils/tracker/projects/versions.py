# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete the versions of a project [tracker-15, tracker-16]."""

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
#: Our names of the settable members, and the server's.
_MEMBERS = {
    "name": "name",
    "description": "description",
    "released": "released",
    "archived": "archived",
    "start_date": "startDate",
    "release_date": "releaseDate",
}
DATES = ("start_date", "release_date")
#: The value of a date option for a version without this date.
NO_DATE = "none"
MOVE = "moveUnfixedIssuesTo"
_MORE_THAN_WRITTEN = "the written interface of the tracker knows no versions"


@dataclass(frozen=True)
class Version:
    """A version. `address` identifies it for other versions. The server omits members without a
    value [tracker-16].
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
    def of(cls, record: Any) -> Version | None:
        """Parse a version; `None` if the object is not a version."""
        if not isinstance(record, Mapping) or "id" not in record or "name" not in record:
            return None
        return cls(
            str(record["id"]),
            str(record.get("self", "")),
            str(record["name"]),
            str(record.get("description") or ""),
            record.get("released") is True,
            record.get("archived") is True,
            record.get("startDate") or None,
            record.get("releaseDate") or None,
        )

    def settable(self) -> dict[str, Any]:
        """Return the settable members by our names."""
        return {name: getattr(self, name) for name in _MEMBERS}

    def differing(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of `wanted` that differ."""
        have = {**self.settable(), "description": plain_lines(self.description)}
        adapted = {"description": plain_lines, **dict.fromkeys(DATES, _stored)}
        return {
            name: value
            for name, value in wanted.items()
            if have[name] != (adapted[name](value) if name in adapted else value)
        }


def same_name(one: str, other: str) -> bool:
    """Compare names without regard to case [tracker-17] and to the composition of umlauts."""
    return _plain_name(one) == _plain_name(other)


def _plain_name(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()


def named(versions: list[Version], name: str) -> Version | None:
    return next((version for version in versions if same_name(version.name, name)), None)


class ProjectVersions:
    """The versions of a project."""

    def __init__(self, client: TrackerClient, project: str) -> None:
        self._client, self._project = client, project
        self._day: str | None = None

    def all(self) -> list[Version]:
        """Return all versions in the project's order. Raises `not_found` for a missing project."""
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
        found = [Version.of(record) for record in beans] if isinstance(beans, list) else [None]
        versions = [version for version in found if version is not None]
        if len(versions) < len(found):
            raise unexpected_body(response, "a list of versions")
        self._day = None if response.date is None else response.date.date().isoformat()
        return versions

    def today(self) -> str:
        """Return the server's date. Server fact [tracker-16]: dates are in the server's
        time zone.
        """
        told = self._client.aside("asking for the server's day", f"{_API}/serverInfo")
        day = str(told.get("serverTime") if isinstance(told, Mapping) else "")[:10]
        try:
            return date.fromisoformat(day).isoformat()
        except ValueError:
            return self._day or datetime.now(timezone.utc).date().isoformat()

    def unresolved(self, version: Version) -> int:
        """Return the number of unresolved issues with the version, invisible ones included."""
        what = f"counting the unresolved issues of the version '{version.name}'"
        response = self._client.read(what, self._place(version, "unresolvedIssueCount"))
        told = response.json()
        count = told.get("issuesUnresolvedCount") if isinstance(told, Mapping) else None
        if not isinstance(count, int):
            raise unexpected_body(response, "a number of issues")
        return count

    def create(self, wanted: Mapping[str, Any]) -> Version:
        """Create a version. If someone else created it at the same time, return that version.

        Server fact [tracker-18]: a missing permission looks like a missing project, which was read
        before.
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
                raise as_permission(error) from None
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
        """Set the wanted members; `target` receives unresolved issues.

        Server fact [tracker-16]: the members are stored one after the other, so a rejected request
        may have an effect.
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
        """Return the error with the state of the version."""
        now = self.read(version)
        if now is None:
            return error
        error.result["changed"] = now != version
        return as_permission(error) if error.status == 404 else error

    def delete(self, version: Version, target: Version | None) -> None:
        """Delete a version; its issues get `target`, or lose the version."""
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
        """Return the current version; `None` if it does not exist."""
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
    """Return the members of a request; null removes a date [tracker-16]."""
    return {
        _MEMBERS[name]: _stored(value) if name in DATES else value for name, value in wanted.items()
    }


def _stored(value: Any) -> Any:
    return None if value == NO_DATE else value


def as_permission(error: ToolchainError) -> ToolchainError:
    error.kind = "permission"
    return error.with_hint(
        "what it does not find is there: the account may not administer the project"
    )
