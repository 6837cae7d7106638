# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_version`: manage a version of a project, including its release [C8.7]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Comparison, Plan, plan, unchanged, without_none
from .. import permissions
from ..client import TrackerClient
from .project_objects import named, reject_pattern, same_lines, same_name
from .version_issues import VersionIssues
from .versions import DATES, MOVE, NO_DATE, ProjectVersions, Version

_LONGEST = 255
#: Maximum number of unresolved issues in a message.
_MAX_KEYS = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
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

    rules: ClassVar = (
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

    def check(self) -> None:
        """Raise `invalid` for invalid dates and names."""
        for option in DATES:
            _require_day(option, getattr(self, option))
        if _is_late(self.start_date, self.release_date):
            raise invalid(
                f"start_date ({self.start_date}) is after release_date ({self.release_date})"
            )
        for option in ("name", "new_name"):
            value = (getattr(self, option) or "").strip()
            if len(value) > _LONGEST:
                raise invalid(f"{option} has more than {_LONGEST} characters")
            if _CONTROL.search(value):
                raise invalid(f"{option} contains a line break, a tab or another control character")
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
    """A version before the task, and the values that `apply()` needs.

    :param desired: desired values by option name
    :param target: version that gets the issues of the released or deleted version
    """

    current: Version | None
    desired: Mapping[str, Any] = field(default_factory=dict)
    target: Version | None = None

    @property
    def before(self) -> dict[str, Any] | None:
        return None if self.current is None else self.current.settable()


class TrackerVersionOperation:
    """Manage a version of a project. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        "tracker",
        {
            "read": reads(),
            **dict.fromkeys(("create", "release", "order", "delete"), writes("administer")),
        },
        kind="version",
        name="{project}/{name}",
    )

    def __init__(self, task: Task, options: TrackerVersionOptions) -> None:
        self._task, self._options = task, options
        self._client = TrackerClient(task)
        self._versions = ProjectVersions(self._client, options.project)

    def plan(self) -> Plan:
        known, reported_at = self._versions.listed()
        if self._options.state == "absent":
            return self._removal(known)
        current = self._versions.managed(known, self._options.name, self._options.new_name)
        if current is None:
            reject_pattern(self._options.new_name or self._options.name, "version")
        count, target = None, None
        if self._options.state == "released":
            count = 0 if current is None else self._versions.unresolved(current)
            target = self._target(known, current, count)
        snapshot = VersionSnapshot(current, self._desired(current, reported_at), target)
        self._require_order(snapshot)
        found = plan(snapshot.before, snapshot.desired, _COMPARISONS)
        if target is not None and current is not None:
            found.before["unresolved_issues"] = {current.name: count}
            found.after["unresolved_issues"] = {target.name: count}
        predicted = self._predicted(found, snapshot)
        return found.with_result(version=predicted, unresolved_count=count).with_data(snapshot)

    def _removal(self, known: list[Version]) -> Plan:
        options = self._options
        current, target = named(known, options.name), None
        if current is None:
            reject_pattern(options.name, "version")
            return unchanged({"version": None, "unresolved_count": None})
        if options.move_to is not None:
            target = self._required(known, "move_to", options.move_to)
        found = plan(current.settable(), None).with_data(VersionSnapshot(current, target=target))
        return found.with_result(version=None, unresolved_count=None)

    def _required(self, known: list[Version], option: str, name: str) -> Version:
        found = named(known, name)
        get = self._task.predictions.get
        if found is None and get("version", self._options.project, name.lower()) is not None:
            return replace(_BLANK, name=name)
        if found is None:
            raise ToolchainError(
                "not_found",
                f"{option}: the project '{self._options.project}' has no version '{name}'",
            )
        return found

    def _releases(self, current: Version | None) -> bool:
        released = current is not None and current.released
        return self._options.state == "released" and not released

    def _target(self, known: list[Version], current: Version | None, count: int) -> Version | None:
        """Return the version to which unresolved issues move, or None.

        Depending on the option `unresolved`, warn about unresolved issues or raise `failed`. Only
        done if this task releases the version.
        """
        mode = self._options.unresolved
        if not self._releases(current) or mode == "ignore":
            return None
        if mode not in _MODES:
            target = self._required(known, "unresolved", mode)
            if target == current or same_name(mode, self._options.new_name or self._options.name):
                raise invalid(
                    f"unresolved is '{mode}', the version to release: use another version"
                )
            return target if count else None
        if count:
            issues = "issue is" if count == 1 else "issues are"
            message = f"{count} {issues} unresolved in the version '{self._options.name}'"
            if mode == "fail" and current is not None:
                raise self._unresolved(current, message, count)
            self._task.warn(message)
        return None

    def _unresolved(self, version: Version, message: str, count: int) -> ToolchainError:
        """Return the error for unresolved issues, with the keys of the first issues."""
        keys: list[str] = []
        with suppress(ToolchainError):  # if the search fails, the message has no keys
            keys = VersionIssues(self._task, self._client).of(version, _MAX_KEYS)
        more = count - len(keys)
        if keys:
            message += f": {', '.join(keys)}" + (f" and {more} more" if more > 0 else "")
        result = {"unresolved_count": count, "unresolved_issues": keys}
        return ToolchainError("failed", message, result=result)

    def _desired(self, current: Version | None, reported_at: datetime | None) -> dict[str, Any]:
        options = self._options
        name = options.new_name or (options.name if current is None else current.name)
        day, known = options.release_date, None if current is None else current.release_date
        if day is None and known is None and self._releases(current):
            day = self._versions.today(reported_at)
        values = {
            "name": name.strip(),
            "description": options.description,
            "start_date": options.start_date,
            "release_date": day,
        }
        if current is None:  # a new version has no dates to remove
            values |= {name: None for name in DATES if values[name] == NO_DATE}
        return without_none({**values, **_STATES[options.state]})

    def _require_order(self, snapshot: VersionSnapshot) -> None:
        """Raise `rejected` if the start is after the release, which the server would reject."""
        after = {**(snapshot.before or {}), **snapshot.desired}
        start, release = after.get("start_date"), after.get("release_date")
        if _is_late(start, release):
            raise ToolchainError(
                "rejected",
                f"the version '{self._options.name}' would start on {start}, after its release on"
                f" {release}",
            )

    def _predicted(self, found: Plan, snapshot: VersionSnapshot) -> dict[str, Any]:
        """Return the expected version after the task, as the return value `version`."""
        after = {**_BLANK.settable(), **(snapshot.before or {}), **found.after}
        number = None if snapshot.current is None else snapshot.current.id
        return self._shown(number, after)

    def _shown(self, number: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a version as the return value `version`."""
        names = ("name", "released", "archived", "release_date", "start_date", "description")
        url = f"{self._client.site}/projects/{self._options.project}/versions/{number}"
        shown = {name: fields[name] for name in names}
        return {"id": number, **shown, "url": None if number is None else url}

    def preflight(self, plan: Plan) -> None:
        purpose = f"the version '{self._options.name}' of the project '{self._options.project}'"
        needs = ["ADMINISTER_PROJECTS"]
        permissions.require(self._client, purpose, needs, projectKey=self._options.project)

    def predict(self, plan: Plan) -> None:
        project, name = self._options.project, str({**plan.before, **plan.after}.get("name"))
        predictions = self._task.predictions
        if plan.action == "delete":
            predictions.remove("version", project, name.lower())
        else:
            predictions.add("version", project, name.lower(), value=name)

    # -- apply ------------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        snapshot: VersionSnapshot = plan.data
        if plan.action == "delete" and snapshot.current is not None:
            self._versions.delete(snapshot.current, snapshot.target)
            return {}
        version = self._written(snapshot)
        return {"version": self._shown(version.id, version.settable())}

    def _written(self, snapshot: VersionSnapshot) -> Version:
        """Create the version, or change what differs.

        Server fact [tracker-16]: older servers ignore `released` and `archived` of a new version,
        so a second request sets them.
        """
        current = snapshot.current
        if current is None:
            sent = {name: value for name, value in snapshot.desired.items() if value is not False}
            current = self._versions.create(sent)
        differing = current.differing(snapshot.desired)
        if not differing:
            return current
        if snapshot.target is None:
            return self._versions.update(current, differing)
        return self._released(current, differing, snapshot.target)

    def _released(self, current: Version, differing: Mapping[str, Any], target: Version) -> Version:
        """Release the version and move its unresolved issues to `target`.

        The issues are moved one by one if the server does not support moving them or does not do it
        [tracker-16].
        """
        issues = VersionIssues(self._task, self._client)
        try:
            version = self._versions.update(current, differing, target)
        except ToolchainError as error:
            if error.status != 400 or MOVE not in str(error.detail):
                raise
            list(bounded(4, lambda key: issues.move(key, current, target), issues.of(current)))
            version = self._versions.update(current, differing)
        if self._versions.unresolved(version):
            list(bounded(4, lambda key: issues.move(key, version, target), issues.of(version)))
            self._warn_of_hidden_issues(version)
        return version

    def _warn_of_hidden_issues(self, version: Version) -> None:
        count = self._versions.unresolved(version)
        if count:
            self._task.warn(
                f"{count} unresolved issues of the version '{version.name}' could not be moved,"
                " because this account cannot see them"
            )


def _same_day(current: Any, desired: Any) -> tuple[bool, Any]:
    day = None if desired == NO_DATE else desired
    return current == day, day


_COMPARISONS: Mapping[str, Comparison] = {
    "description": same_lines,
    **dict.fromkeys(DATES, _same_day),
}
