# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_version`: manage a version of a project, including its release [C8.7]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import expected
from ...core.json_text import member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Item, Objects
from ...core.plan import Plan, plan, unchanged, without_none
from ...core.verification import not_saved
from ..editing.screens import predicted
from ..issues.jql_search import JqlSearchOperation, JqlSearchOptions
from ..service import SERVICE
from .project_kind import ProjectObjectKind
from .project_objects import (
    KnownObjects,
    ProjectObjects,
    as_permission,
    is_object,
    named,
    reject_pattern,
    require_name,
    same_lines,
    same_name,
)

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

    def delete(self, version: Version, target: Version | None) -> Version | None:
        """Delete a version. Move its issues to `target`, or only remove it from them if None.

        Returns the version if the server still has it.
        """
        targets = {} if target is None else dict.fromkeys(_TARGETS, int(target.id))
        return self._delete(version, "POST", "removeAndSwap", json=targets)


_TARGETS = ("moveFixIssuesTo", "moveAffectedIssuesTo")


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return wanted values as members of a request. A null removes a date [tracker-16]."""
    return {
        _MEMBERS[name]: None if name in DATES and value == NO_DATE else value
        for name, value in wanted.items()
    }


#: Maximum number of unresolved issues in a message.
_MAX_KEYS = 20
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MODES = ("ignore", "warn", "fail")
_BLANK = Version("", "", "", "", released=False, archived=False, start_date=None, release_date=None)
#: Values that the option `state` sets.
_STATES: dict[str, dict[str, bool]] = {
    "present": {},
    "released": {"released": True, "archived": False},
    "unreleased": {"released": False, "archived": False},
    "archived": {"archived": True},
}
#: Options that cannot be combined with `state=absent`.
_ONLY_PRESENT = ("new_name", "description", "start_date", "release_date")


@dataclass(frozen=True)
class TrackerVersionOptions:
    """The options of `tracker_version`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=_ONLY_PRESENT),
        Rule("move_to", requires="state=absent"),
    )

    project: str
    name: str
    new_name: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    start_date: str | None = None
    release_date: str | None = None
    state: Literal["present", "released", "unreleased", "archived", "absent"] = "present"
    unresolved: str = "warn"
    move_to: str | None = None
    create: bool = True

    def check(self) -> None:
        """Raise `invalid` for invalid dates and names."""
        for option in DATES:
            _require_day(option, getattr(self, option))
        if _is_late(self.start_date, self.release_date):
            raise invalid(
                f"start_date ({self.start_date}) is after release_date ({self.release_date})"
            )
        for option in ("name", "new_name"):
            require_name(option, getattr(self, option))
        if self.move_to is not None and same_name(self.move_to, self.name):
            raise invalid(
                f"move_to is '{self.move_to}', the version to delete: use another version"
            )


def _is_late(start: str | None, release: str | None) -> bool:
    """Return whether the start date is after the release date."""
    days = [day for day in (start, release) if day not in (None, NO_DATE)]
    return days != sorted(days)


def _require_day(option: str, value: str | None) -> None:
    if value is None or value == NO_DATE:
        return
    try:
        if _DAY.fullmatch(value) is None or not date.fromisoformat(value):
            raise ValueError
    except ValueError:
        raise invalid(
            f"{option} is '{value}', but must be a date such as 2026-05-31, or {NO_DATE}"
        ) from None


@dataclass(frozen=True)
class VersionSnapshot:
    """A version before the task, and the values that its write needs.

    :param desired: desired values by option name
    :param target: version that gets the issues of the released or deleted version
    """

    current: Version | None
    desired: Mapping[str, Any] = field(default_factory=dict)
    target: Version | None = None


class VersionKind(ProjectObjectKind[TrackerVersionOptions, Version]):
    """Versions of projects. A single request reads all versions of a project."""

    noun = "version"

    def objects(self, project: str) -> ProjectVersions:
        return ProjectVersions(self._client, project)

    def compare(self, item: Item[TrackerVersionOptions, KnownObjects[Version]]) -> Plan:
        options, known = item.entry, self.known(item)
        versions = self.objects(options.project)
        if options.state == "absent":
            return self._removal(options, known.objects)
        current = versions.managed(known.objects, options.name, options.new_name)
        if current is None:
            self._require_creation(options)
        count, target = None, None
        if options.state == "released":
            count = 0 if current is None else versions.unresolved(current)
            target = self._target(options, known.objects, current, count)
        desired = self._desired(options, current, known.read_at)
        before = None if current is None else current.settable()
        _require_order(options.name, {**(before or {}), **desired})
        found = plan(before, desired, versions.comparisons)
        if target is not None and current is not None:
            found.before["unresolved_issues"] = {current.name: count}
            found.after["unresolved_issues"] = {target.name: count}
        after = {**_BLANK.settable(), **(before or {}), **found.after}
        number = None if current is None else current.id
        shown = self._shown(options.project, number, after)
        snapshot = VersionSnapshot(current, desired, target)
        return found.with_result(version=shown, unresolved_count=count).with_data(snapshot)

    def _require_creation(self, options: TrackerVersionOptions) -> None:
        """Raise `not_found` for a missing version that the task must not create."""
        name = options.new_name or options.name
        reject_pattern(name, "version")
        if not options.create and not predicted(self._task, "fix_versions", options.project, name):
            raise ToolchainError(
                "not_found",
                f"the project '{options.project}' has no version '{options.name}': check the name,"
                " or set create",
            )

    def _removal(self, options: TrackerVersionOptions, known: list[Version]) -> Plan:
        current, target = named(known, options.name), None
        if current is None:
            reject_pattern(options.name, "version")
            return unchanged({"version": None, "unresolved_count": None})
        if options.move_to is not None:
            target = self._required(options, known, "move_to", options.move_to)
        found = plan(current.settable(), None).with_data(VersionSnapshot(current, target=target))
        if target is not None:  # in the diff, so that a sealed plan contains it
            found.after["move_to"] = target.name
        return found.with_result(version=None, unresolved_count=None)

    def _required(
        self, options: TrackerVersionOptions, known: list[Version], option: str, name: str
    ) -> Version:
        found = named(known, name)
        if found is None and predicted(self._task, "fix_versions", options.project, name):
            return replace(_BLANK, name=name)
        if found is None:
            message = f"{option}: the project '{options.project}' has no version '{name}'"
            raise ToolchainError("not_found", message)
        return found

    def _target(
        self,
        options: TrackerVersionOptions,
        known: list[Version],
        current: Version | None,
        count: int,
    ) -> Version | None:
        """Return the version to which unresolved issues move, or None.

        Depending on the option `unresolved`, warn about unresolved issues or raise `failed`. Only
        done if this task releases the version.
        """
        mode = options.unresolved
        if not _releases(options, current) or mode == "ignore":
            return None
        if mode not in _MODES:
            target = self._required(options, known, "unresolved", mode)
            if target == current or same_name(mode, options.new_name or options.name):
                raise invalid(
                    f"unresolved is '{mode}', the version to release: use another version"
                )
            return target if count else None
        if count:
            issues = "issue is" if count == 1 else "issues are"
            message = f"{count} {issues} unresolved in the version '{options.name}'"
            if mode == "fail" and current is not None:
                raise self._unresolved(current, message, count)
            self._task.warn(message)
        return None

    def _unresolved(self, version: Version, message: str, count: int) -> ToolchainError:
        """Return the error for unresolved issues, with the keys of the first issues."""
        keys: list[str] = []
        with suppress(ToolchainError):  # if the search fails, the message has no keys
            keys = self._issues(version, _MAX_KEYS)
        more = count - len(keys)
        if keys:
            message += f": {', '.join(keys)}" + (f" and {more} more" if more > 0 else "")
        result = {"unresolved_count": count, "unresolved_issues": keys}
        return ToolchainError("failed", message, result=result)

    def _desired(
        self, options: TrackerVersionOptions, current: Version | None, read_at: datetime | None
    ) -> dict[str, Any]:
        name = options.new_name or (options.name if current is None else current.name)
        day, known = options.release_date, None if current is None else current.release_date
        if day is None and known is None and _releases(options, current):
            day = self.objects(options.project).today(read_at)
        values = {
            "name": name.strip(),
            "description": options.description,
            "start_date": options.start_date,
            "release_date": day,
        }
        if current is None:  # a new version has no dates to remove
            values |= {name: None for name in DATES if values[name] == NO_DATE}
        return without_none({**values, **_STATES[options.state]})

    def _shown(self, project: str, number: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a version as the return value `version`."""
        names = ("name", "released", "archived", "release_date", "start_date", "description")
        url = f"{self._client.site}/projects/{project}/versions/{number}"
        shown = {name: fields[name] for name in names}
        return {"id": number, **shown, "url": None if number is None else url}

    # -- writing ----------------------------------------------------------------------------------

    def write(self, item: Item[TrackerVersionOptions, KnownObjects[Version]]) -> None:
        """Delete or create the version, or change what differs.

        Server fact [tracker-16]: older servers ignore `released` and `archived` of a new version,
        so a second request sets them.
        """
        project, snapshot = item.entry.project, item.plan.data
        versions, now = self.objects(project), snapshot.current
        if item.plan.action == "delete":
            self.store(item, versions.delete(now, snapshot.target))
            return
        if now is None:
            sent = {name: value for name, value in snapshot.desired.items() if value is not False}
            now = versions.create(sent)
        differing = versions.differing(now, snapshot.desired)
        if differing and snapshot.target is None:
            now = versions.update(now, differing)
        elif differing:
            now = self._released(versions, now, differing, snapshot.target)
        self.store(item, now)
        if now is not None:
            item.returned = {"version": self._shown(project, now.id, now.settable())}

    def _released(
        self,
        versions: ProjectVersions,
        current: Version,
        differing: Mapping[str, Any],
        target: Version,
    ) -> Version | None:
        """Release the version and move its unresolved issues to `target`.

        The issues are moved one by one if the server does not support moving them or does not do it
        [tracker-16].
        """
        try:
            version = versions.update(current, differing, target)
        except ToolchainError as error:
            if error.status != 400 or MOVE not in str(error.detail):
                raise
            self._move_all(current, target)
            version = versions.update(current, differing)
        if version is None or versions.differing(version, differing):
            return version  # not released, so the issues stay
        if versions.unresolved(version):
            self._move_all(version, target)
            count = versions.unresolved(version)
            if count:
                self._task.warn(
                    f"{count} unresolved issues of the version '{version.name}' could not be moved,"
                    " because this account cannot see them"
                )
        return version

    def _issues(self, version: Version, most: int | None = None) -> list[str]:
        """Return the keys of the visible unresolved issues, at most `most`; None means all.

        Raises `protocol` if all issues are wanted and the search is incomplete.
        """
        jql = f"fixVersion = {version.id} AND resolution is EMPTY"
        options = JqlSearchOptions(jql, fields=["key"], max_results=most)
        found = JqlSearchOperation(self._task, options).search()
        if most is None and not found.complete:
            raise ToolchainError("protocol", f"the search '{jql}' did not return every match")
        return [str(issue["key"]) for issue in found.issues]

    def _move_all(self, version: Version, target: Version) -> None:
        """Replace a version of its unresolved issues by another. They keep their other versions."""
        spread(4, lambda key: self._move(key, version, target), self._issues(version))

    def _move(self, key: str, version: Version, target: Version) -> None:
        verbs = [{"remove": {"id": version.id}}, {"add": {"id": target.id}}]
        route = f"rest/api/2/issue/{path(key)}"

        def done() -> bool:
            query = {"fields": "fixVersions"}
            response = self._client.read(f"reading the issue '{key}'", route, query=query)
            found = expected(response, list, "an issue", "fields", "fixVersions")
            ids = {str(member(fix_version, "id")) for fix_version in found}
            return target.id in ids and version.id not in ids

        purpose = f"moving the issue '{key}' from the version '{version.name}' to '{target.name}'"
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


def _releases(options: TrackerVersionOptions, current: Version | None) -> bool:
    released = current is not None and current.released
    return options.state == "released" and not released


def _require_order(name: str, after: Mapping[str, Any]) -> None:
    """Raise `rejected` if the start is after the release, which the server would reject."""
    start, release = after.get("start_date"), after.get("release_date")
    if _is_late(start, release):
        message = f"the version '{name}' would start on {start}, after its release on {release}"
        raise ToolchainError("rejected", message)


class TrackerVersionOperation(Objects[TrackerVersionOptions, KnownObjects[Version]]):
    """Manage a version of a project. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("browse"),
            **dict.fromkeys(("create", "release", "order", "delete"), writes("administer")),
        },
        kind="version",
        name="{project}/{name}",
    )

    def __init__(self, task: Task, options: TrackerVersionOptions) -> None:
        super().__init__(VersionKind(task), [options], listed=False)
