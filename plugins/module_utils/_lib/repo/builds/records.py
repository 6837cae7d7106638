# SPDX-License-Identifier: GPL-3.0-or-later
"""Read build records and the promotions in them [W2.1, repo-11].

Server fact [repo-32]: every project has separate build records, also for equal names and numbers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

from ...core import address
from ...core.errors import ToolchainError, conflict, shorten
from ...core.http.messages import Response, expected
from ...core.json_text import as_text, json_objects
from ...core.times import moment_of
from ..client import RepoClient

#: Seconds before a missing record is read again: it is missing briefly while a promotion rewrites
#: it.
_REWRITE = 0.5

#: Sort key of a time that cannot be parsed.
OLDEST = datetime.min.replace(tzinfo=timezone.utc)
Aggregated: TypeAlias = Literal["fail", "follow", "ignore"]
#: Maximum number of references from the build of a task to another build.
_MAX_DEPTH = 10


@dataclass(frozen=True)
class BuildKey:
    """Name, number and project of a build; the project is `None` for builds outside projects."""

    name: str
    number: str
    project: str | None = None

    def __str__(self) -> str:
        return f"the build '{self.name}' #{self.number}"

    def as_dict(self) -> dict[str, str]:
        return {"build_name": self.name, "build_number": self.number}

    @property
    def criteria(self) -> dict[str, str]:
        """Return the criteria of a query for the items with the properties of the build."""
        return {"@build.name": self.name, "@build.number": self.number}

    @property
    def prediction(self) -> tuple[str, str, str]:
        return self.project or "", self.name, self.number


@dataclass(frozen=True)
class AggregatedBuild:
    """A build with its record."""

    key: BuildKey
    record: Mapping[str, Any]


def aggregated_modules(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the modules of a record that refer to another build."""
    modules = json_objects(record.get("modules"))
    return [module for module in modules if as_text(module.get("type")).lower() == "build"]


def references(record: Mapping[str, Any], key: BuildKey) -> list[BuildKey]:
    """Return the builds to which a record refers: its modules of the type `build`.

    The id of such a module is `name/number`. The referenced build has the project of the referring
    build, unless the module has another `project`.

    :param key: the referring build
    :raises ToolchainError: `conflict` if an id does not name a build
    """
    found: dict[BuildKey, None] = {}
    for module in aggregated_modules(record):
        label = as_text(module.get("id"))
        name, _slash, number = label.rpartition("/")
        if not name.strip() or not number.strip():
            raise conflict(
                f"the record of {key} has a module of the type build with the id '{label}', which"
                " does not name a build: publish the record with an id such as nightly/104"
            )
        found[BuildKey(name, number, as_text(module.get("project")) or key.project)] = None
    return list(found)


def read_builds(
    client: RepoClient, key: BuildKey, mode: Aggregated
) -> tuple[AggregatedBuild, list[AggregatedBuild]]:
    """Return a build, and the builds to which it refers, directly or not.

    A build comes after the builds to which it refers. With `ignore` the list is empty.

    :raises ToolchainError: `conflict` if the build refers to other builds and the mode is `fail`,
        for references that form a loop, and for more than 10 references in a row; `not_found`
    """
    record = expected_record(client, key)
    own = AggregatedBuild(key, record)
    if mode == "follow":
        return own, referenced_builds(client, own)
    if mode == "fail" and (found := references(record, key)):
        raise conflict(
            f"{key} refers to other builds, whose files are not in its record: {named(found)}. Set"
            " aggregated to follow, to include these builds, or to ignore"
        )
    return own, []


def referenced_builds(
    client: RepoClient, own: AggregatedBuild, *, missing_ok: bool = False
) -> list[AggregatedBuild]:
    """Return the builds to which a build refers, as :func:`read_builds` with `follow`.

    :param missing_ok: warn of a referenced build without a record instead of raising `not_found`
    """
    found: list[AggregatedBuild] = []
    #: Number of references in the longest chain that begins at a build.
    heights: dict[BuildKey, int] = {}

    def visit(key: BuildKey, above: Sequence[BuildKey], record: Mapping[str, Any] | None) -> int:
        """Add the builds to which a build refers, then the build itself; return its height.

        :param above: the builds that lead to this build
        :param record: the record of the build; `None` without one
        """
        others = [] if record is None else references(record, key)
        below = [descend(other, (*above, key)) for other in others]
        heights[key] = max((height + 1 for height in below), default=0)
        if record is not None:
            found.append(AggregatedBuild(key, record))
        return heights[key]

    def descend(key: BuildKey, above: Sequence[BuildKey]) -> int:
        if key in above:
            chain = " -> ".join(f"{one.name}/{one.number}" for one in (*above, key))
            raise conflict(f"{above[0]} refers to itself: {shorten(chain, 400)}")
        if len(above) + heights.get(key, 0) > _MAX_DEPTH:
            raise conflict(
                f"{above[0]} leads to other builds over more than {_MAX_DEPTH} references in a row:"
                f" set aggregated to ignore, and use a task for {above[1]} and one for each further"
                " build"
            )
        if key in heights:
            return heights[key]
        record = None
        try:
            record = expected_record(client, key)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            if not missing_ok:
                raise error.with_hint(f"{above[-1]} refers to {key}") from None
            client.warn(f"{above[-1]} refers to {key}, which has no build record")
        return visit(key, above, record)

    visit(own.key, (), own.record)
    return found[:-1]


def named(keys: Sequence[BuildKey]) -> str:
    """Return the names and numbers of builds for a message."""
    return shorten(", ".join(f"{key.name}/{key.number}" for key in keys), 400)


def name_projects(error: ToolchainError, project: str | None) -> ToolchainError:
    """Add a hint about the option `project` to a `not_found` error, and return the error."""
    if error.kind == "not_found" and project is None:
        error.with_hint("builds of a project are only found if the option project is set")
    elif error.kind == "not_found":
        error.with_hint(f"project is '{project}'")
    return error


def predicted_record(client: RepoClient, key: BuildKey) -> Mapping[str, Any] | None:
    """Return the record that an earlier task would publish in check mode; `None` without one."""
    record: Mapping[str, Any] | None = client.predictions.get("build", *key.prediction)
    return record


def expected_record(client: RepoClient, key: BuildKey) -> Mapping[str, Any]:
    """Return the predicted record of check mode if there is one, otherwise read the record.

    Raises the errors of `read_record()`.
    """
    predicted = predicted_record(client, key)
    return read_record(client, key) if predicted is None else predicted


def read_record(
    client: RepoClient, key: BuildKey, *, started: str | None = None
) -> Mapping[str, Any]:
    """Return the `buildInfo` of a build. Parameters and errors are those of `record_response()`."""
    response = record_response(client, key, started=started)
    record: Mapping[str, Any] = expected(response, dict, "a build record", "buildInfo")
    return record


def record_response(client: RepoClient, key: BuildKey, *, started: str | None = None) -> Response:
    """Return the response with the record of a build.

    :param started: start time in the server's format, which selects one of several builds with the
        same number
    :raises ToolchainError: `not_found` if the record is still missing after a second read
    """
    for option, value in (("build_name", key.name), ("build_number", key.number)):
        address.require_segment(option, value)
    purpose = f"reading {key}"
    path, query = f"api/build/{address.path(key.name, key.number)}", {"project": key.project}
    query["started"] = started
    try:
        response = client.transport.read(purpose, path, query=query, expect=(200, 404))
        if response.status == 404:
            time.sleep(_REWRITE)
            response = client.transport.read(purpose, path, query=query)
    except ToolchainError as error:
        if error.status == 400 and "%2F" in path:
            error.with_hint("the server may reject an encoded slash in addresses")
        raise name_projects(error, key.project) from None
    client.require_projects(key.project)
    return response


@dataclass(frozen=True)
class Promotion:
    """An entry of `statuses` in a build record; missing values are `None`."""

    status: str | None
    repository: str | None
    timestamp: str | None = None
    user: str | None = None

    def status_and_repository(self) -> dict[str, Any]:
        return {"status": self.status, "repository": self.repository}

    def as_dict(self) -> dict[str, Any]:
        return {**self.status_and_repository(), "timestamp": self.timestamp, "user": self.user}


def promotions(record: Mapping[str, Any]) -> list[Promotion]:
    """Return the promotions in a build record, oldest first.

    A promotion without a valid timestamp stays behind its predecessor in the record.
    """
    found: list[tuple[datetime, Promotion]] = []
    moment = OLDEST
    for entry in json_objects(record.get("statuses")):
        moment = moment_of(entry.get("timestamp")) or moment
        values = map(entry.get, ("status", "repository", "timestamp", "user"))
        texts = (None if value is None else str(value) for value in values)
        found.append((moment, Promotion(*texts)))
    return [promotion for _time, promotion in sorted(found, key=lambda pair: pair[0])]


def shown_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as a return value: `properties` is always a mapping."""
    found = record.get("properties")
    return {**record, "properties": found if isinstance(found, Mapping) else {}}
