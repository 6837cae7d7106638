# SPDX-License-Identifier: GPL-3.0-or-later
"""List the builds of a name, and read their records [W2.1, C2.9]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import unquote

from ...core import address
from ...core.concurrency import bounded
from ...core.errors import ToolchainError, error_text, not_found
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Segment
from ...core.plan import Plan, ReadOnly, unchanged
from ...core.times import iso, moment_of
from .. import repositories
from ..client import RepoClient, objects_of
from ..service import SERVICE
from . import records
from .records import OLDEST, BuildKey, Promotion, promotions, shown_record

#: Substring of a 404 message that only a repository manager sends [repo-11].
NO_BUILDS = "no build was found"
_PARALLEL = 4


@dataclass(frozen=True)
class BuildInfoOptions:
    """The options of `build_info`."""

    build_name: Segment
    build_number: Segment | None = None
    project: str | None = None


@dataclass(frozen=True)
class BuildRun:
    """A build in the list of builds; several builds may have the same number.

    :param started: start time as the server sends it
    :param moment: parsed start time; `None` if it cannot be parsed
    """

    number: str
    started: str
    moment: datetime | None

    def as_dict(self) -> dict[str, str]:
        """Return number and start time (ISO 8601 in UTC, or unchanged if it cannot be parsed)."""
        return {"number": self.number, "started": iso(self.moment) or self.started}


@dataclass(frozen=True)
class BuildList:
    """The builds of a name, newest first.

    :param now: current time by the server's clock; `None` if the server does not send it
    """

    runs: tuple[BuildRun, ...]
    now: datetime | None

    @property
    def numbers(self) -> list[str]:
        """Return the build numbers without duplicates, newest first."""
        return list(dict.fromkeys(run.number for run in self.runs))


def read_list(
    client: RepoClient, name: str, project: str | None = None, *, missing: bool = False
) -> BuildList:
    """Read the list of builds of a name.

    Server fact [repo-11]: the server percent-encodes the numbers and returns them in no order.

    :param missing: return an empty list if there are no builds, instead of raising `not_found`
    """
    expect = (200, 404) if missing else (200,)
    purpose, path = f"reading the builds of '{name}'", f"api/build/{address.path(name)}"
    try:
        response = client.transport.read(purpose, path, query={"project": project}, expect=expect)
    except ToolchainError as error:
        raise records.name_projects(error, project) from None
    client.require_projects(project)
    if response.status == 404:
        if NO_BUILDS not in error_text(response.text).lower():
            # raises if the 404 came from another kind of server
            repositories.listed(client)
        return BuildList((), response.date)
    runs = []
    for entry in objects_of(response, "buildsNumbers", "a list of builds"):
        started = str(entry.get("started") or "")
        number = unquote(str(entry.get("uri") or "").removeprefix("/"))
        runs.append(BuildRun(number, started, moment_of(started)))
    ordered = sorted(runs, key=lambda run: run.moment or OLDEST, reverse=True)
    return BuildList(tuple(ordered), response.date)


def require_builds(name: str, project: str | None, missing_ok: bool) -> None:
    """Raise the error for a name without builds, unless `missing_ok` is set.

    Otherwise a retention with a misspelt name would succeed without ever deleting a build.
    """
    if not missing_ok:
        error = not_found(f"there are no builds of '{name}'")
        records.name_projects(error, project)
        raise error.with_hint("set missing_ok: true if the first build may not exist yet")


class BuildInfoOperation(ReadOnly):
    """List the builds of a name, or read the record of one build as well."""

    descriptor: ClassVar = Descriptor(SERVICE, {"list": reads("read"), "read": reads("read")})

    def __init__(self, task: Task, options: BuildInfoOptions) -> None:
        self._options, self._client = options, RepoClient(task, connections=_PARALLEL)

    def plan(self) -> Plan:
        name, number = self._options.build_name, self._options.build_number
        project = self._options.project
        listed = read_list(self._client, name, project)
        if number is None:
            times = Counter(run.number for run in listed.runs)
            states = bounded(
                _PARALLEL,
                lambda run: self._promotions(run, selects_run=times[run.number] > 1),
                listed.runs,
            )
            rows = [
                {**run.as_dict(), **_state(history)}
                for run, history in zip(listed.runs, states, strict=True)
            ]
            return unchanged({"builds": rows})
        try:
            record = records.expected_record(self._client, BuildKey(name, number, project))
        except ToolchainError as error:
            if error.kind == "not_found":
                error.with_hint(f"the newest builds are {', '.join(listed.numbers[:5])}")
            raise
        of_record, rows = moment_of(record.get("started")), []
        for run in listed.runs:
            is_record = run.number == number and run.moment in (None, of_record)
            rows.append({**run.as_dict(), **_state(promotions(record) if is_record else None)})
        return unchanged({"builds": rows, "build": shown_record(record)})

    def _promotions(self, run: BuildRun, *, selects_run: bool) -> list[Promotion] | None:
        """Read the promotions of a build; return `None` if its record is gone or not visible.

        :param selects_run: whether to select the build by its start time, because several builds
            have its number [repo-11]
        """
        try:
            key = BuildKey(self._options.build_name, run.number, self._options.project)
            started = run.started if selects_run else None
            record = records.read_record(self._client, key, started=started)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return None
        return promotions(record)


def _state(history: Sequence[Promotion] | None) -> dict[str, Any]:
    """Return the keys `status` and `promotions` of a listed build.

    :param history: its promotions, oldest first; `None` if they were not read
    """
    if history is None:
        return {"status": None, "promotions": None}
    rows = [promotion.as_dict() for promotion in history]
    return {"status": history[-1].status if history else None, "promotions": rows}
