# SPDX-License-Identifier: GPL-3.0-or-later
"""Read repositories and the storage summary [C2.12, W2.1, W4.1].

Examples are `1,234`, `3.48 GB` and `32.22 GB (15.77%)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core import address
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import RepoClient, object_of, repository_key
from ..repositories import kind_of, listed, unknown
from ..service import SERVICE

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_QUANTITY = re.compile(
    rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>%|bytes?|B|[KMGTPE]i?B)?"
    rf"(?:\s*\(\s*(?P<share>{_NUMBER})\s*%\s*\))?\s*",
    re.IGNORECASE,
)
_POWERS = "KMGTPE"


@dataclass(frozen=True)
class Quantity:
    """Parsed number: a count, a size in bytes, or a percentage; missing values are `None`."""

    count: float | None = None
    size: int | None = None
    percent: float | None = None


def quantity(text: str) -> Quantity | None:
    """Parse a formatted number; return `None` if the string has another format."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    unit, number = (found["unit"] or "").upper(), _number(found["number"])
    share = None if found["share"] is None else _number(found["share"])
    if unit == "%":
        return Quantity(percent=number)
    if unit == "":
        return Quantity(count=number, percent=share)
    power = _POWERS.find(unit[0]) + 1  # 0 for bytes
    return Quantity(size=round(number * 1024**power), percent=share)


def _number(text: str) -> float:
    digits = text.replace(",", "")
    return float(digits) if "." in digits else int(digits)


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SUMMARIES = ("binariesSummary", "fileStoreSummary")
_REPOSITORIES = "repositoriesSummaryList"


@dataclass(frozen=True)
class RepoInfoOptions:
    """The options of `repo_info`."""

    repo: str | None = None
    project: str | None = None
    storage: bool = False


class RepoInfoOperation(ReadOnly):
    """Read a repository or all repositories, and the storage summary on request."""

    descriptor: ClassVar = Descriptor(
        SERVICE, {"repositories": reads("read"), "storage": reads("admin")}
    )

    def __init__(self, task: Task, options: RepoInfoOptions) -> None:
        if options.repo is not None:
            repository_key("repo", options.repo)
        self._options, self._client = options, RepoClient(task)

    def plan(self) -> Plan:
        client, key, project = self._client, self._options.repo, self._options.project
        if key is not None and project is None:
            found = [_one(client, key)]
        else:
            response, entries = listed(client, project)
            client.require_projects(project)
            found = [_shown(entry) for entry in entries]
            if key is not None:
                if not any(entry.get("key") == key for entry in entries):
                    raise unknown(key, response).with_hint(f"project is '{project}'")
                found = [_one(client, key)]
        storage = None
        if self._options.storage:
            response = client.transport.read("reading the storage summary", "api/storageinfo")
            storage = summary(object_of(response, "a storage summary"))
        return unchanged({"repositories": found, "storage": storage})


def _one(client: RepoClient, key: str) -> dict[str, Any]:
    """Return a repository, or its entry in the list of repositories if it cannot be read.

    Server fact [repo-9]: the server returns 400 or 404 for an unknown key, but also 400 for any key
    without a licence.
    """
    response = client.transport.read(
        f"reading the repository '{key}'",
        f"api/repositories/{address.path(key)}",
        expect=(200, 400, 403, 404),
    )
    if response.status == 200:
        return _shown({"key": key, **object_of(response, "a repository")})
    for entry in listed(client)[1]:
        if entry.get("key") == key:
            return _shown(entry)
    raise unknown(key, response)


def _shown(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the server's fields of a repository and its `type` in upper case.

    Server fact [repo-9]: an empty `defaultDeploymentRepo` means none.
    """
    found = {**entry, "type": kind_of(entry)}
    if found["type"] == "VIRTUAL" and "defaultDeploymentRepo" in found:
        found["defaultDeploymentRepo"] = found["defaultDeploymentRepo"] or None
    return found


def summary(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a storage summary to snake case, with sizes as `..._bytes` and `..._percent`.

    `repositories` in the result has a dict for each repository; `raw` is the unchanged summary.
    """
    found: dict[str, Any] = {}
    for part in _SUMMARIES:
        summary = raw.get(part)
        found.update(_numbers(summary if isinstance(summary, Mapping) else {}))
    used, total = found.get("used_space_bytes"), found.get("total_space_bytes")
    if used is not None and total and "used_percent" not in found:
        found["used_percent"] = round(100 * used / total, 2)
    found["repositories"] = [_numbers(row) for row in json_objects(raw.get(_REPOSITORIES))]
    return {**found, "raw": dict(raw)}


def _numbers(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a section in snake case, and the numbers parsed from their strings.

    Server fact [repo-10]: newer releases also return the exact size of a repository.
    """
    found: dict[str, Any] = {}
    for field, value in part.items():
        name = _HUMP.sub("_", field).lower()
        numbers = quantity(value) if isinstance(value, str) else None
        found[name] = value
        # a field with a name must not become a number
        if numbers is None or name.endswith(("_key", "_type", "_directory")):
            continue
        if numbers.count is not None:
            found[name] = numbers.count
        if numbers.size is not None:
            found[f"{name}_bytes"] = numbers.size
        if numbers.percent is not None:
            share = name.removesuffix("_space")
            found[share if share == "percentage" else f"{share}_percent"] = numbers.percent
    exact = part.get("usedSpaceInBytes")
    if isinstance(exact, int):
        found["used_space_bytes"] = exact
    return found
