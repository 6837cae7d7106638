# SPDX-License-Identifier: GPL-3.0-or-later
"""Build records and the promotions that they list in C(statuses) [W2.1, repo-11]."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import unexpected_body
from .. import aql
from ..client import RepoClient, object_of, objects
from ..times import moment_of

#: Seconds before a record that is not there is looked for once more: a promotion rewrites it.
_REWRITE = 0.5
_OLDEST = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Promotion:
    """One entry of C(statuses); what it does not have is C(None)."""

    status: str | None
    repository: str | None
    timestamp: str | None = None
    user: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "repository": self.repository,
            "timestamp": self.timestamp,
            "user": self.user,
        }


def read_record(client: RepoClient, name: str, number: str) -> Mapping[str, Any]:
    """The C(buildInfo) of a build. Raises C(not_found) where it is missing twice."""
    for option, given in (("build_name", name), ("build_number", number)):
        if given in (".", ".."):
            raise invalid(f"{option} is '{given}', which is no build")
    what, path = f"reading the build '{name}' #{number}", f"api/build/{address.path(name, number)}"
    try:
        response = client.transport.read(what, path, expect=(200, 404))
        if response.status == 404:
            time.sleep(_REWRITE)
            response = client.transport.read(what, path)
    except ToolchainError as error:
        if error.status == 400 and "%2F" in path:
            error.with_hint("the server may refuse an encoded slash in addresses")
        raise
    record = object_of(response, "a build record").get("buildInfo")
    if not isinstance(record, Mapping):
        raise unexpected_body(response, "a build record")
    return record


def promotions(record: Mapping[str, Any]) -> list[Promotion]:
    """The promotions of a build, the oldest first; empty where the record shows none.

    One without a time that can be read stays behind the one before it.
    """
    found: list[tuple[datetime, Promotion]] = []
    moment = _OLDEST
    for entry in objects(record.get("statuses")):
        moment = moment_of(entry.get("timestamp")) or moment
        found.append((moment, _promotion(entry)))
    return [promotion for _time, promotion in sorted(found, key=lambda pair: pair[0])]


def _promotion(entry: Mapping[str, Any]) -> Promotion:
    names = ("status", "repository", "timestamp", "user")
    return Promotion(*(_text(entry.get(name)) for name in names))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def relocated(
    client: RepoClient,
    name: str,
    number: str,
    record: Mapping[str, Any],
    target: str,
    *,
    copied: bool,
) -> bool | None:
    """Whether the files of a build are in the target (a moved build's nowhere else); C(None):
    cannot tell.

    Server fact [repo-15, repo-30]: a promotion without a status leaves no trace in the record;
    files belong to a build by the properties build.name and build.number.
    """
    if not client.dialect.query_by_property:
        return None
    criteria = {"@build.name": name, "@build.number": number}
    what = f"looking for the files of the build '{name}' #{number}"
    rows = aql.ask_if_told(client, what, criteria, ["actual_sha1"])
    if rows is None:
        return None
    there = {row.get("actual_sha1") for row in rows if row.get("repo") == target}
    elsewhere = {row.get("actual_sha1") for row in rows if row.get("repo") != target}
    complete = bool(there) and (elsewhere | _recorded(record)) <= there
    return complete and (copied or not elsewhere)


def _recorded(record: Mapping[str, Any]) -> set[Any]:
    """SHA-1 of the artifacts that a record names."""
    return {
        artifact["sha1"]
        for module in objects(record.get("modules"))
        for artifact in objects(module.get("artifacts"))
        if artifact.get("sha1")
    }
