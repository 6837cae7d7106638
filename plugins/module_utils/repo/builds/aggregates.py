# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow the references of aggregated builds to other builds [repo-35]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...core.errors import ToolchainError, shorten
from ...core.json_text import as_text
from ..client import RepoClient, objects
from . import records

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


@dataclass(frozen=True)
class AggregatedBuild:
    """A build with its record."""

    key: BuildKey
    record: Mapping[str, Any]


def aggregated_modules(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the modules of a record that refer to another build."""
    modules = objects(record.get("modules"))
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
            raise ToolchainError(
                "conflict",
                f"the record of {key} has a module of the type build with the id '{label}', which"
                " does not name a build: publish the record with an id such as nightly/104",
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
    record = records.expected_record(client, key.name, key.number, key.project)
    own = AggregatedBuild(key, record)
    if mode == "follow":
        return own, referenced_builds(client, own)
    if mode == "fail" and (found := references(record, key)):
        raise ToolchainError(
            "conflict",
            f"{key} refers to other builds, whose files are not in its record: {named(found)}. Set"
            " aggregated to follow, to include these builds, or to ignore",
        )
    return own, []


def referenced_builds(
    client: RepoClient, own: AggregatedBuild, *, missing_ok: bool = False
) -> list[AggregatedBuild]:
    """Return the builds to which a build refers, as :func:`read_builds` with `follow`.

    :param missing_ok: warn of a referenced build without a record instead of raising `not_found`
    """
    walk = _RecordWalk(client, missing_ok)
    walk.visit(own.key, (), own.record)
    return walk.found[:-1]


def named(keys: Sequence[BuildKey]) -> str:
    """Return the names and numbers of builds for a message."""
    return shorten(", ".join(f"{key.name}/{key.number}" for key in keys), 400)


class _RecordWalk:
    """Read a build and all builds to which it refers; each record is read once."""

    def __init__(self, client: RepoClient, missing_ok: bool) -> None:
        self._client, self._missing_ok = client, missing_ok
        #: Number of references in the longest chain that begins at a build.
        self._heights: dict[BuildKey, int] = {}
        self.found: list[AggregatedBuild] = []

    def visit(
        self, key: BuildKey, above: Sequence[BuildKey], record: Mapping[str, Any] | None = None
    ) -> int:
        """Add the builds to which a build refers, then the build itself.

        :param above: the builds that lead to this build
        :param record: the record of the build, if it is known
        :returns: the number of references in the longest chain that begins at this build
        """
        self._require_end(key, above)
        if key not in self._heights:
            read = self._read(key, above) if record is None else record
            others = [] if read is None else references(read, key)
            below = [self.visit(other, (*above, key)) for other in others]
            self._heights[key] = max((height + 1 for height in below), default=0)
            if read is not None:
                self.found.append(AggregatedBuild(key, read))
        return self._heights[key]

    def _require_end(self, key: BuildKey, above: Sequence[BuildKey]) -> None:
        if key in above:
            chain = " -> ".join(f"{one.name}/{one.number}" for one in (*above, key))
            raise ToolchainError("conflict", f"{above[0]} refers to itself: {shorten(chain, 400)}")
        if len(above) + self._heights.get(key, 0) > _MAX_DEPTH:
            raise ToolchainError(
                "conflict",
                f"{above[0]} leads to other builds over more than {_MAX_DEPTH} references in a row:"
                f" set aggregated to ignore, and use a task for {above[1]} and one for each further"
                " build",
            )

    def _read(self, key: BuildKey, above: Sequence[BuildKey]) -> Mapping[str, Any] | None:
        try:
            return records.expected_record(self._client, key.name, key.number, key.project)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            if not self._missing_ok:
                raise error.with_hint(f"{above[-1]} refers to {key}") from None
            self._client.warn(f"{above[-1]} refers to {key}, which has no build record")
            return None
