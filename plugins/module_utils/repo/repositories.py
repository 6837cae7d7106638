# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve repository keys: types, members, and the repository that receives deployments ([W2.1,
repo-9]: repository kinds).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core import address
from ..core.errors import ToolchainError, error_text
from ..core.http.messages import Response, unexpected_body
from .client import RepoClient, object_of, objects

#: Statuses of a server that does not know a read, or that does not list repositories.
_UNVERIFIABLE, _NO_LIST = frozenset({400, 404, 405}), frozenset({404, 405})
#: Memory key: whether a server is a plain file store, if that is known.
_PLAIN = "is a plain store"


def deployment_target(client: RepoClient, key: str, *, certain: bool = False) -> str:
    """Return the local repository behind `key`: itself, or the `defaultDeploymentRepo` of a virtual
    repository.

    Raises `not_found` if no such repository is listed, `rejected` if it accepts no deployments.

    :param certain: raise `not_found` also if the server may not be a repository manager
    """
    response = client.transport.read(
        f"reading the repository '{key}'",
        f"api/repositories/{address.path(key)}",
        expect=(200, 400, 403, 404, 405),
    )
    if response.status not in (200, 403):
        return _target_by_list(client, key, response, certain)
    client.transport.memory[_PLAIN] = False
    if response.status == 403:
        return key
    return _target(response, key, object_of(response, "a repository"))


def kind_of(found: Mapping[str, Any]) -> str:
    """Return `LOCAL`, `REMOTE`, `VIRTUAL` or another type of the server.

    Written interface: `type`. Server fact [repo-9]: `rclass`, in lower case.
    """
    return str(found.get("rclass") or found.get("type") or "").upper()


def _target(response: Response, key: str, found: Mapping[str, Any]) -> str:
    kind = kind_of(found)
    if kind == "REMOTE":
        raise response.error(
            "rejected", f"'{key}' is a remote repository, which does not accept deployments"
        )
    if kind != "VIRTUAL":
        return key
    target = found.get("defaultDeploymentRepo")
    if not target:
        raise response.error(
            "rejected",
            f"the virtual repository '{key}' has no defaultDeploymentRepo: use a local repository",
        )
    return str(target)


def _target_by_list(client: RepoClient, key: str, refused: Response, certain: bool) -> str:
    """Resolve the key with the list of repositories.

    Server fact [repo-9]: the single read needs a licence, and returns 400 both for unknown keys and
    without a licence. If the server has no list either, the key stands for itself, and the next
    request shows whether it exists [C1.5].
    """
    try:
        response, entries = listed(client)
    except ToolchainError as error:
        if error.status not in _UNVERIFIABLE or (certain and error.status == 404):
            raise
        client.transport.memory[_PLAIN] = error.status in _NO_LIST
        client.warn(f"cannot read the repository '{key}': {error}")
        return key
    for entry in entries:
        if entry.get("key") == key:
            # the server resolves the deployment repository, which the list does not contain
            return key if kind_of(entry) == "VIRTUAL" else _target(response, key, entry)
    raise unknown(key, refused)


def members(client: RepoClient, key: str) -> list[str]:
    """Return the members of a virtual repository; the key itself for another type, or if it is
    unknown.
    """
    response = client.transport.read(
        f"reading the repository '{key}'",
        f"api/repositories/{address.path(key)}",
        expect=(200, 400, 403, 404, 405),
    )
    found = object_of(response, "a repository") if response.status == 200 else {}
    named = found.get("repositories")
    if kind_of(found) != "VIRTUAL" or not isinstance(named, list):
        return [key]
    return [str(member) for member in named]


def listed(
    client: RepoClient, project: str | None = None
) -> tuple[Response, list[Mapping[str, Any]]]:
    """Return all repositories that the account may see, or those of a project. Raises `not_found`
    if no repository manager responds.
    """
    response = client.transport.read(
        "reading the repositories",
        "api/repositories",
        query={"project": project},
        expect=(200, 404),
    )
    if response.status == 404:
        raise response.error(
            "not_found", "there is no repository manager at this address: check url"
        )
    found = response.json()
    if not isinstance(found, list):
        raise unexpected_body(response, "a list of repositories")
    return response, objects(found)


def require(client: RepoClient, keys: Iterable[str]) -> None:
    """Raise `not_found` for unknown repository keys, before missing content in them is reported as
    absent.

    A server that does not list its repositories gets a warning instead.
    """
    try:
        response, entries = listed(client)
    except ToolchainError as error:
        if error.status not in (400, 403, 405):
            raise
        named = ", ".join(f"'{key}'" for key in keys)
        client.warn(f"it is unknown whether the repository {named} exists: {error}")
        return
    known = {str(entry.get("key")) for entry in entries}
    for key in keys:
        if key not in known:
            raise unknown(key, response)


def require_shown(client: RepoClient, key: str) -> None:
    """Raise `not_found` if the server lists its repositories without this key."""
    try:
        response, entries = listed(client)
    except ToolchainError as error:
        if error.status not in (400, 403, 404, 405):
            raise
        return
    if not any(entry.get("key") == key for entry in entries):
        raise unknown(key, response)


def refuse_properties(client: RepoClient) -> None:
    """Raise `rejected` if properties are set on a plain file store, which would store an empty file
    [C1.5].
    """
    known = client.transport.memory
    if _PLAIN not in known:
        response = client.transport.read(
            "reading the repositories", "api/repositories", expect=(200, 400, 403, 404, 405)
        )
        known[_PLAIN] = response.status in _NO_LIST
    if known[_PLAIN]:
        raise ToolchainError(
            "rejected",
            "properties: this server lists no repositories, so it is a plain file store, which has"
            " no properties: omit the option, or check url",
        )


def lacking(client: RepoClient, failure: str) -> ToolchainError:
    """Return the error for an operation that the written interface lacks. Raises `not_found` if no
    repository manager responds.
    """
    listed(client)
    return ToolchainError(
        "rejected",
        f"{failure}: this server supports only the generic interface, which cannot do this (check"
        " the option dialect)",
    )


def unknown(key: str, refused: Response) -> ToolchainError:
    """Return the error for a key that is unknown to the account."""
    return refused.error(
        "not_found",
        f"there is no repository '{key}', or the account cannot see it",
        error_text(refused.text),
    )
