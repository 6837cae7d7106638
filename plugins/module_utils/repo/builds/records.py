# SPDX-License-Identifier: GPL-3.0-or-later
"""Read build records, and compare their artifacts with a repository [W2.1, repo-11].

Builds of a project have their own records: server fact [repo-32].
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import unexpected_body
from .. import aql
from ..client import RepoClient, object_of, objects
from ..items import listing

#: Seconds before a missing record is read again: a promotion rewrites the record.
_REWRITE = 0.5


def name_projects(error: ToolchainError, project: str | None) -> ToolchainError:
    """Add projects to a `not_found` error of a build as its possible cause, and return the
    error.
    """
    if error.kind == "not_found" and project is None:
        error.with_hint("builds of a project are only found if the option project is set")
    elif error.kind == "not_found":
        error.with_hint(f"project is '{project}'")
    return error


def predicted_record(
    client: RepoClient, name: str, number: str, project: str | None = None
) -> Mapping[str, Any] | None:
    """Return the record that an earlier task in check mode would publish."""
    record: Mapping[str, Any] | None = client.predictions.get("build", project or "", name, number)
    return record


def predict_record(
    client: RepoClient, name: str, number: str, project: str | None, record: Mapping[str, Any]
) -> None:
    """In check mode, remember a record that the task would publish."""
    client.predictions.add("build", project or "", name, number, value=record)


def expected_record(
    client: RepoClient, name: str, number: str, project: str | None = None
) -> Mapping[str, Any]:
    """Return the record that an earlier task in check mode would publish, or else that of the
    server, like `read_record()`.
    """
    predicted = predicted_record(client, name, number, project)
    return read_record(client, name, number, project) if predicted is None else predicted


def read_record(
    client: RepoClient,
    name: str,
    number: str,
    project: str | None = None,
    *,
    started: str | None = None,
) -> Mapping[str, Any]:
    """Return the `buildInfo` of a build. Raises `not_found` if it is missing twice.

    :param started: start of one of several builds of the number, as the server writes it
    """
    for option, value in (("build_name", name), ("build_number", number)):
        if value in (".", ".."):
            raise invalid(f"{option} is '{value}', which is not a build")
    purpose, path = (
        f"reading the build '{name}' #{number}",
        f"api/build/{address.path(name, number)}",
    )
    query = {"project": project, "started": started}
    try:
        response = client.transport.read(purpose, path, query=query, expect=(200, 404))
        if response.status == 404:
            time.sleep(_REWRITE)
            response = client.transport.read(purpose, path, query=query)
    except ToolchainError as error:
        if error.status == 400 and "%2F" in path:
            error.with_hint("the server may reject an encoded slash in addresses")
        raise name_projects(error, project) from None
    client.require_projects(project)
    record = object_of(response, "a build record").get("buildInfo")
    if not isinstance(record, Mapping):
        raise unexpected_body(response, "a build record")
    return record


def relocated(
    client: RepoClient,
    name: str,
    number: str,
    record: Mapping[str, Any],
    target: str,
    *,
    copied: bool,
    project: str | None = None,
) -> bool | None:
    """Return whether the files of a build are in the target, and for a move nowhere else; `None` if
    unknown.

    The marks of a file do not name its project: with a project, only recorded content counts.

    Server fact [repo-15, repo-30]: a promotion without a status leaves no entry in the record;
    files belong to a build by the properties build.name and build.number.
    """
    if not client.dialect.query_by_property:
        return None
    criteria = {"@build.name": name, "@build.number": number}
    purpose = f"searching for the files of the build '{name}' #{number}"
    rows = aql.ask_if_supported(client, purpose, criteria, ["actual_sha1"])
    if rows is None:
        return None
    recorded = {artifact["sha1"] for artifact in artifacts(record)}
    if project is not None:
        rows = [row for row in rows if row.get("actual_sha1") in recorded]
    there = {row.get("actual_sha1") for row in rows if row.get("repo") == target}
    elsewhere = {row.get("actual_sha1") for row in rows if row.get("repo") != target}
    complete = bool(there) and (elsewhere | recorded) <= there
    return complete and (copied or not elsewhere)


def missing_files(
    client: RepoClient, record: Mapping[str, Any], target: str, source: str | None
) -> list[str] | None:
    """Return the recorded artifacts whose content is nowhere in the target, by path or name; `None`
    if the target cannot be listed.

    The same content at another path counts as present.

    :param source: only artifacts that were deployed to this repository, or to an unknown repository
    """
    wanted = {
        str(artifact["sha1"]).lower(): str(artifact.get("path") or artifact.get("name"))
        for artifact in artifacts(record)
        if source is None or artifact.get("originalDeploymentRepo") in (None, source)
    }
    if not wanted:
        return []
    found = _digests_in(client, record, target)
    if found is None:
        return None
    return sorted(path for sha1, path in wanted.items() if sha1 not in found)


def _digests_in(client: RepoClient, record: Mapping[str, Any], target: str) -> set[str] | None:
    """Return the SHA-1 digests of the build's artifacts that a repository holds; `None` if they
    cannot be read.

    A single query is enough, since [repo-27] joins items and builds by SHA-1. If a server does not
    know such queries, the repository is listed.
    """
    if client.dialect.query_by_property:
        criteria = {
            "repo": target,
            "artifact.module.build.name": record.get("name"),
            "artifact.module.build.number": record.get("number"),
        }
        purpose = f"comparing the files in '{target}' with the build record"
        rows = aql.ask_if_supported(client, purpose, criteria, ["actual_sha1"])
        if rows:
            return {str(row.get("actual_sha1")).lower() for row in rows}
        if rows is None:
            return None
    # server fact [repo-14]: a query omits items that may not be read, a listing is rejected
    try:
        items = listing.listing(client, target, "", deep=not client.dialect.query_by_property)
    except ToolchainError as error:
        if error.kind not in ("permission", "not_found"):
            raise
        return None
    return None if items is None else {item.sha1 for item in items.values() if item.sha1}


def artifacts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the recorded artifacts that have a SHA-1, by which queries find them."""
    for module in objects(record.get("modules")):
        yield from (obj for obj in objects(module.get("artifacts")) if obj.get("sha1"))
