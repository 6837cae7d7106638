# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_version`: manage versions of projects, including their release [C8.7]."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.address import path
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, not_found, protocol, rejected
from ...core.http.messages import expected
from ...core.json_text import as_text, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Objects, entries_of
from ...core.plan import Plan
from ...core.verification import not_saved
from ..issues.jql_search import JqlSearchOperation, JqlSearchOptions
from ..service import SERVICE
from .project_objects import (
    API,
    NamedEntry,
    ObjectItem,
    ProjectObject,
    ProjectObjectKind,
    ProjectState,
    as_permission,
    same_lines,
    same_name,
)

DATES = ("start_date", "release_date")
#: Value of a date option that means no date.
NO_DATE = "none"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
#: Names of options that the server spells differently.
_MEMBERS = {"start_date": "startDate", "release_date": "releaseDate"}
#: Member of a request that releases: the address of the version that gets the unresolved issues.
_MOVE = "moveUnfixedIssuesTo"
#: Maximum number of unresolved issues in a message.
_MAX_KEYS = 20
#: Values that the option `state` sets.
_STATES: dict[str, dict[str, bool]] = {
    "present": {},
    "released": {"released": True, "archived": False},
    "unreleased": {"released": False, "archived": False},
    "archived": {"archived": True},
}


@dataclass(frozen=True)
class VersionEntry(NamedEntry):
    """Options of a version."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("new_name", "description", *DATES)),
        Rule("move_to", requires="state=absent"),
    )

    start_date: str | None = None
    release_date: str | None = None
    state: Literal["present", "released", "unreleased", "archived", "absent"] = "present"
    unresolved: str = "warn"
    move_to: str | None = None
    create: bool = True

    def check(self) -> None:
        """Raise `invalid` for invalid dates and names."""
        for option in DATES:
            day = getattr(self, option)
            if day is not None and day != NO_DATE and not _is_day(day):
                raise invalid(
                    f"{option} is '{day}', but must be a date such as 2026-05-31, or {NO_DATE}"
                )
        if _is_late(self.start_date, self.release_date):
            raise invalid(
                f"start_date ({self.start_date}) is after release_date ({self.release_date})"
            )
        super().check()
        if self.move_to is not None and same_name(self.move_to, self.name):
            raise invalid(
                f"move_to is '{self.move_to}', the version to delete: use another version"
            )


@dataclass(frozen=True)
class TrackerVersionOptions(VersionEntry):
    """The options of `tracker_version`."""

    entries: Annotated[list[VersionEntry] | None, Option(empty=False)] = None


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_late(start: str | None, release: str | None) -> bool:
    """Return whether the start date is after the release date."""
    days = [day for day in (start, release) if day not in (None, NO_DATE)]
    return days != sorted(days)


def _same_day(current: Any, desired: Any) -> tuple[bool, Any]:
    day = None if desired == NO_DATE else desired
    return current == day, day


VersionItem: TypeAlias = ObjectItem[VersionEntry]


class VersionKind(ProjectObjectKind[VersionEntry]):
    """Versions of projects. A single request reads all versions of a project."""

    noun = "version"
    no_project = (
        "the project does not exist, the account cannot see it, or the tracker supports only the"
        " documented interface, which has no versions"
    )
    comparisons: ClassVar = {"description": same_lines, **dict.fromkeys(DATES, _same_day)}
    blank: ClassVar = {
        "name": "",
        "description": "",
        "released": False,
        "archived": False,
        **dict.fromkeys(DATES),
    }

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a version. The server omits members without a value [tracker-16]."""
        return {
            "name": str(record["name"]),
            "description": str(record.get("description") or ""),
            "released": record.get("released") is True,
            "archived": record.get("archived") is True,
            "start_date": record.get("startDate") or None,
            "release_date": record.get("releaseDate") or None,
        }

    def members(self, wanted: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        """Return wanted values as members of a request. A null removes a date [tracker-16]."""
        return {
            _MEMBERS.get(name, name): value
            for name, value in wanted.items()
            if not (is_new and value is False)
        }

    def shown(self, project: str, number: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
        names = ("name", "released", "archived", "release_date", "start_date", "description")
        url = f"{self._client.site}/projects/{project}/versions/{number}"
        shown = {name: values[name] for name in names}
        return {"id": number, **shown, "url": None if number is None else url}

    # -- planning ---------------------------------------------------------------------------------

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        #: Number of unresolved issues that earlier entries move to a version, by its id.
        self._moved: Counter[str] = Counter()

    def load(self, items: Sequence[VersionItem]) -> None:
        self._moved.clear()
        super().load(items)

    def compare(self, item: VersionItem) -> Plan:
        options = item.entry
        if options.state == "absent":
            removal = self.removal(item, "move_to", options.move_to)
            return removal.with_result(unresolved_count=None)
        current = self.managed(item)
        if current is None:
            name = options.last_name
            self.reject_pattern(name)
            if not options.create and not self.is_predicted(options.project, name):
                raise not_found(
                    f"the project '{options.project}' has no version '{options.name}': check the"
                    " name, or set create"
                )
        releases = options.state == "released" and not (current and current.values["released"])
        count, target, moved = None, None, 0
        if releases or (options.state == "released" and not item.place):
            count = 0 if current is None else self._unresolved(current)
            if releases:
                moved = count + (0 if current is None else self._moved[current.id])
                target = self._destination(item, current, moved)
            if target is not None:
                self._moved[target.id] += moved
        desired = self._desired(item, current, releases=releases)
        found = self.planned(item, current, desired)
        if target is not None and current is not None:
            found.before["unresolved_issues"] = {current.name: moved}
            found.after["unresolved_issues"] = {target.name: moved}
        return found.with_result(unresolved_count=count).with_data((current, target))

    def _destination(
        self, item: VersionItem, current: ProjectObject | None, count: int
    ) -> ProjectObject | None:
        """Return the version to which the unresolved issues of a release move, or None.

        Depending on the option `unresolved`, warn about unresolved issues or raise `failed`.

        :param count: number of these issues, with those that earlier entries move to the version
        """
        options, mode = item.entry, item.entry.unresolved
        if mode == "ignore":
            return None
        if mode not in ("warn", "fail"):
            target = self.target(item, "unresolved", mode)
            is_released = current is not None and target.id == current.id
            if is_released or same_name(mode, options.last_name):
                raise invalid(
                    f"unresolved is '{mode}', the version to release: use another version"
                )
            return target if count else None
        if count:
            issues = "issue is" if count == 1 else "issues are"
            message = f"{count} {issues} unresolved in the version '{options.name}'"
            if mode == "fail" and current is not None:
                keys: list[str] = []
                with suppress(ToolchainError):  # if the search fails, the message has no keys
                    keys = self._issues(current, _MAX_KEYS)
                if keys:
                    more = count - len(keys)
                    message += f": {', '.join(keys)}" + (f" and {more} more" if more > 0 else "")
                result = {"unresolved_count": count, "unresolved_issues": keys}
                raise ToolchainError("failed", message, result=result)
            self._task.warn(message)
        return None

    def _desired(
        self, item: VersionItem, current: ProjectObject | None, *, releases: bool
    ) -> dict[str, Any]:
        """Return the desired values. A version that is released gets a release date.

        Raises `rejected` if the start is after the release, which the server would reject.
        """
        options = item.entry
        days = {name: getattr(options, name) for name in DATES}
        known = {} if current is None else current.values
        if releases and days["release_date"] is None and known.get("release_date") is None:
            days["release_date"] = self._today(self.known(item).read_at)
        if current is None:  # a new version has no dates to remove
            days = {name: None if day == NO_DATE else day for name, day in days.items()}
        desired = self.desired(options, current, **days, **_STATES[options.state])
        start, release = ({**known, **desired}.get(name) for name in DATES)
        if _is_late(start, release):
            raise rejected(
                f"the version '{options.name}' would start on {start}, after its release on"
                f" {release}"
            )
        return desired

    def _today(self, read_at: datetime | None) -> str:
        """Return the current date in the server's time zone, which dates of versions use.

        :param read_at: used if the server does not report its time; None means the local clock
        """
        reported = self._client.read_optional("reading the server's date", f"{API}/serverInfo")
        try:
            return date.fromisoformat(str(member(reported, "serverTime"))[:10]).isoformat()
        except ValueError:
            return (read_at or datetime.now(timezone.utc)).date().isoformat()

    def _unresolved(self, version: ProjectObject) -> int:
        """Return the number of unresolved issues with the version."""
        address, member = "unresolvedIssueCount", "issuesUnresolvedCount"
        return self.count(version, "unresolved issues", address, member)

    # -- writing ----------------------------------------------------------------------------------

    def delete(
        self, item: VersionItem, found: ProjectObject, target: ProjectObject | None
    ) -> ProjectObject | None:
        names = ("moveFixIssuesTo", "moveAffectedIssuesTo")
        targets = {} if target is None else dict.fromkeys(names, int(target.id))
        return self.send_deletion(item, found, "POST", "removeAndSwap", json=targets)

    def put(self, item: VersionItem, found: ProjectObject, **more: Any) -> ProjectObject | None:
        """Change a version. The result of an error says if the rejected request has changed it.

        Server fact [tracker-16]: the server saves the members one after the other, so a rejected
        request may have saved some of them.
        """
        try:
            return super().put(item, found, **more)
        except ToolchainError as error:
            if error.status not in (400, 403, 404):
                raise
            now = self.read(found)
            if now is not None and now.values != found.values:
                error.result["changed"] = True  # otherwise earlier requests of the task decide
            if now is None or error.status != 404:
                raise
            raise as_permission(error) from None

    def update(
        self, item: VersionItem, found: ProjectObject, target: ProjectObject | None
    ) -> ProjectObject | None:
        """Change a version. If it is released, move its unresolved issues to `target`.

        The issues are moved one by one if the server does not support moving them or does not do it
        [tracker-16].
        """
        if target is None:
            return self.put(item, found)
        address = as_text(target.record.get("self")) or f"{self._client.url}/{self.route(target)}"
        try:
            version = self.put(item, found, **{_MOVE: address})
        except ToolchainError as error:
            if error.status != 400 or _MOVE not in str(error.detail):
                raise
            self._move_all(found, target)
            version = self.put(item, found)
        if version is None or self.left_of(item, version):
            return version  # not released, so the issues stay
        count = self._unresolved(version)
        if count:
            # not counted again, because the count may lag behind the moves [tracker-20]
            count -= self._move_all(version, target)
            if count > 0:
                self._task.warn(
                    f"{count} unresolved issues of the version '{version.name}' could not be moved,"
                    " because this account cannot see them"
                )
        return version

    def _issues(self, version: ProjectObject, most: int | None = None) -> list[str]:
        """Return the keys of the visible unresolved issues, at most `most`; None means all.

        Raises `protocol` if all issues are wanted and the search is incomplete.
        """
        jql = f"fixVersion = {version.id} AND resolution is EMPTY"
        options = JqlSearchOptions(jql, fields=["key"], max_results=most)
        found = JqlSearchOperation(self._task, options).search()
        if most is None and not found.complete:
            raise protocol(f"the search '{jql}' did not return every match")
        return [str(issue["key"]) for issue in found.issues]

    def _move_all(self, version: ProjectObject, target: ProjectObject) -> int:
        """Replace a version of its visible unresolved issues by another, and return their number.

        They keep their other versions.
        """

        def move(key: str) -> None:
            verbs = [{"remove": {"id": version.id}}, {"add": {"id": target.id}}]
            route = f"{API}/issue/{path(key)}"

            def done() -> bool:
                query = {"fields": "fixVersions"}
                response = self._client.read(f"reading the issue '{key}'", route, query=query)
                found = expected(response, list, "an issue", "fields", "fixVersions")
                ids = {str(member(fix_version, "id")) for fix_version in found}
                return target.id in ids and version.id not in ids

            purpose = (
                f"moving the issue '{key}' from the version '{version.name}' to '{target.name}'"
            )
            self._client.write(
                purpose,
                "PUT",
                route,
                json={"update": {"fixVersions": verbs}},
                verify=done,
                repeatable=True,
            )
            if not done():
                raise not_saved(purpose, ["fix_versions"], changed=True)

        keys = self._issues(version)
        spread(4, move, keys)
        return len(keys)


class TrackerVersionOperation(Objects[VersionEntry, ProjectState]):
    """Manage versions of projects. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("browse"),
            **dict.fromkeys(("create", "release", "order", "delete"), writes("administer")),
        },
        kind="version",
        name="{project}/{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: TrackerVersionOptions) -> None:
        super().__init__(VersionKind(task), *entries_of(options, VersionEntry))
