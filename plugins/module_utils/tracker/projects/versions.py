# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete the versions of a project [tracker-15, tracker-16]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, ClassVar

from ...core.errors import ToolchainError
from ...core.json_text import member
from .project_objects import ProjectObjects, as_permission, is_object, same_lines

_API = "rest/api/2"
#: Names of options, and the server's names of the members.
_MEMBERS = {
    "name": "name",
    "description": "description",
    "released": "released",
    "archived": "archived",
    "start_date": "startDate",
    "release_date": "releaseDate",
}
DATES = ("start_date", "release_date")
#: Value of a date option that means no date.
NO_DATE = "none"
MOVE = "moveUnfixedIssuesTo"


@dataclass(frozen=True)
class Version:
    """A version of a project. `address`: its URL, which requests for other versions refer to."""

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
        """Parse a version. Return None if the object is not a version.

        The server omits members without a value [tracker-16].
        """
        if not is_object(record):
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
        """Return the values that can be changed, by the name of the option."""
        return {name: getattr(self, name) for name in _MEMBERS}


def _same_day(current: Any, desired: Any) -> tuple[bool, Any]:
    day = None if desired == NO_DATE else desired
    return current == day, day


class ProjectVersions(ProjectObjects[Version]):
    """Read and write the versions of a project."""

    noun = "version"
    no_project = (
        "the project does not exist, the account cannot see it, or the tracker supports only the"
        " documented interface, which has no versions"
    )
    comparisons: ClassVar = {"description": same_lines, **dict.fromkeys(DATES, _same_day)}
    parse = staticmethod(Version.of)

    def today(self, reported_at: datetime | None) -> str:
        """Return the current date in the server's time zone, which dates of versions use.

        :param reported_at: used if the server does not report its time; None means the local clock
        """
        reported = self._client.read_optional("reading the server's date", f"{_API}/serverInfo")
        try:
            return date.fromisoformat(str(member(reported, "serverTime"))[:10]).isoformat()
        except ValueError:
            return (reported_at or datetime.now(timezone.utc)).date().isoformat()

    def unresolved(self, version: Version) -> int:
        """Return the number of unresolved issues with the version."""
        member = "issuesUnresolvedCount"
        return self.count(version, "unresolved issues", "unresolvedIssueCount", member)

    def create(self, wanted: Mapping[str, Any]) -> Version:
        """Create a version. `wanted`: values by option name."""
        return self._create(wanted["name"], _sent(wanted))

    def update(
        self, version: Version, wanted: Mapping[str, Any], target: Version | None = None
    ) -> Version | None:
        """Change a version, and return it as stored. None if it does not exist any more.

        Server fact [tracker-16]: the server saves the members one after the other, so a rejected
        request may have saved some of them.

        :param target: version to which the server moves the unresolved issues
        """
        members = _sent(wanted)
        if target is not None:
            members[MOVE] = target.address or f"{self._client.url}/{self._route(target)}"
        try:
            return self._update(version, wanted, members)
        except ToolchainError as error:
            if error.status not in (400, 403, 404):
                raise
            raise self._rejected(error, version) from None

    def _rejected(self, error: ToolchainError, version: Version) -> ToolchainError:
        """Return the error of a change; its result says whether the version has changed."""
        now = self.read(version)
        if now is None:
            return error
        error.result["changed"] = now != version
        return as_permission(error) if error.status == 404 else error

    def delete(self, version: Version, target: Version | None) -> None:
        """Delete a version. Move its issues to `target`, or only remove it from them if None."""
        self._delete(version, {} if target is None else dict.fromkeys(_TARGETS, target.id))


_TARGETS = ("moveFixIssuesTo", "moveAffectedIssuesTo")


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return wanted values as members of a request. A null removes a date [tracker-16]."""
    return {_MEMBERS[name]: value for name, value in wanted.items()}
