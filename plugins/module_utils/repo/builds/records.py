# SPDX-License-Identifier: GPL-3.0-or-later
"""Read build records [W2.1, repo-11].

Server fact [repo-32]: every project has separate build records, also for equal names and numbers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...core import address
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import unexpected_body
from ..client import RepoClient, object_of

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
