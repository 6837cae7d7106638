# SPDX-License-Identifier: GPL-3.0-or-later
"""Read build records, and compare their artifacts with a repository [W2.1, repo-11].

Server fact [repo-32]: every project has separate build records, also for equal names and numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import unexpected_body
from ...core.json_text import as_text
from .. import aql
from ..client import RepoClient, object_of, objects
from ..items import listing

#: Seconds before a missing record is read again: it is missing briefly while a promotion rewrites
#: it.
_REWRITE = 0.5


def name_projects(error: ToolchainError, project: str | None) -> ToolchainError:
    """Add a hint about the option `project` to a `not_found` error, and return the error."""
    if error.kind == "not_found" and project is None:
        error.with_hint("builds of a project are only found if the option project is set")
    elif error.kind == "not_found":
        error.with_hint(f"project is '{project}'")
    return error


def predicted_record(
    client: RepoClient, name: str, number: str, project: str | None = None
) -> Mapping[str, Any] | None:
    """Return the record that an earlier task would publish in check mode; `None` without one."""
    record: Mapping[str, Any] | None = client.predictions.get("build", project or "", name, number)
    return record


def predict_record(
    client: RepoClient, name: str, number: str, project: str | None, record: Mapping[str, Any]
) -> None:
    """Store the record that the task would publish, for later tasks in check mode."""
    client.predictions.add("build", project or "", name, number, value=record)


def expected_record(
    client: RepoClient, name: str, number: str, project: str | None = None
) -> Mapping[str, Any]:
    """Return the predicted record of check mode if there is one, otherwise read the record.

    Raises the errors of `read_record()`.
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
    """Return the `buildInfo` of a build.

    :param started: start time in the server's format, which selects one of several builds with the
        same number
    :raises ToolchainError: `not_found` if the record is still missing after a second read
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
    """Return whether a promotion without a status was carried out; `None` if unknown.

    Server fact [repo-15, repo-30]: such a promotion leaves no entry in the record. So all files
    with the properties `build.name` and `build.number` must be in the target repository, and after
    a move in no other repository.

    :param target: key of the target repository
    :param project: these properties do not contain the project; so with a project, only files whose
        SHA-1 is in the record count
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
    in_target = {row.get("actual_sha1") for row in rows if row.get("repo") == target}
    elsewhere = {row.get("actual_sha1") for row in rows if row.get("repo") != target}
    complete = bool(in_target) and (elsewhere | recorded) <= in_target
    return complete and (copied or not elsewhere)


def missing_files(
    client: RepoClient, record: Mapping[str, Any], target: str, source: str | None
) -> list[str] | None:
    """Return the paths of the recorded artifacts that the target repository lacks.

    Artifacts are compared by SHA-1: the same content at another path counts as present. An artifact
    without a path is returned by name. Returns `None` if the target cannot be listed.

    :param source: repository to which the artifacts were deployed; artifacts that were deployed to
        another repository are ignored. `None` means all artifacts
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
    """Return the SHA-1 digests of a build's files in a repository; `None` if they cannot be read.

    Server fact [repo-27]: a single query finds them, because the server joins items and builds by
    SHA-1. If the server does not support such queries, the whole repository is listed.
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
            return {as_text(row.get("actual_sha1")).lower() for row in rows}
        if rows is None:
            return None
    # server fact [repo-14]: without the permission to read, a query omits the items silently, but a
    # listing is rejected
    try:
        items = listing.listing(client, target, "", deep=not client.dialect.query_by_property)
    except ToolchainError as error:
        if error.kind not in ("permission", "not_found"):
            raise
        return None
    return None if items is None else {item.sha1 for item in items.values() if item.sha1}


def artifacts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the artifacts of all modules of a record; those without a SHA-1 cannot be compared and
    are left out.
    """
    for module in objects(record.get("modules")):
        for artifact in objects(module.get("artifacts")):
            if artifact.get("sha1"):
                yield artifact


def predict_files(client: RepoClient, record: Mapping[str, Any], target: str) -> None:
    """Store the files that a promotion would put into its target, for later check-mode tasks."""
    for artifact in artifacts(record):
        if artifact.get("path"):
            sha256 = str(artifact.get("sha256") or "").lower() or None
            item = listing.StoredItem(None, sha256, str(artifact["sha1"]).lower())
            listing.predict(client, target, str(artifact["path"]).strip("/"), item)
