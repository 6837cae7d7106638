# SPDX-License-Identifier: GPL-3.0-or-later
"""Read repositories: types, members, and where a deployment is stored [W2.1, repo-9]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..core import address
from ..core.errors import ToolchainError, error_text, invalid, rejected
from ..core.http.messages import Response, expected
from ..core.json_text import as_text, json_objects
from .client import RepoClient, object_of

#: Statuses after which it stays unknown whether a repository exists.
_UNVERIFIABLE = frozenset({400, 404, 405})
#: Statuses of a server that cannot list repositories.
_NO_LIST = frozenset({404, 405})
#: Key of the transport's memory: whether the server is a plain file store.
_PLAIN = "is a plain store"


def deployment_target(client: RepoClient, key: str, *, certain: bool = False) -> str:
    """Return the key of the repository that stores items deployed to `key`.

    This is the `defaultDeploymentRepo` of a virtual repository, otherwise `key` itself.

    :param certain: also raise `not_found` if the server cannot list repositories (404)
    :raises ToolchainError: `not_found` if the repository does not exist, `invalid` if it does not
        accept deployments
    """
    planned = predicted(client, key)
    if planned is not None:
        return _target(client, key, planned)
    response = _response(client, key)
    if response.status not in (200, 403):
        return _target_by_list(client, key, response, certain)
    client.transport.memory[_PLAIN] = False
    if response.status == 403:
        return key
    return _target(client, key, object_of(response, "a repository"))


def _response(client: RepoClient, key: str) -> Response:
    return client.transport.read(
        f"reading the repository '{key}'",
        f"api/repositories/{address.path(key)}",
        expect=(200, 400, 403, 404, 405),
    )


def predicted(client: RepoClient, key: str) -> Mapping[str, Any] | None:
    """Return the repository that an earlier task would create in check mode; `None` without one.

    The dict has `rclass` and `defaultDeploymentRepo`.
    """
    found: Mapping[str, Any] | None = client.predictions.get("repository", key.lower())
    return found


def kind_of(found: Mapping[str, Any]) -> str:
    """Return the type of a repository in upper case, such as `LOCAL`, `REMOTE` or `VIRTUAL`.

    Server fact [repo-9]: real servers send `rclass` in lower case instead of `type`.
    """
    return str(found.get("rclass") or found.get("type") or "").upper()


def _target(client: RepoClient, key: str, found: Mapping[str, Any]) -> str:
    kind = kind_of(found)
    if kind == "REMOTE":
        raise not_stored(client, key, kind, "does not accept deployments")
    if kind != "VIRTUAL":
        return key
    target = found.get("defaultDeploymentRepo")
    if not target:
        raise not_stored(client, key, kind, "has no repository to deploy into")
    return str(target)


def _target_by_list(client: RepoClient, key: str, refused: Response, certain: bool) -> str:
    """Resolve the key with the list of repositories, if the repository could not be read.

    Server fact [repo-9]: reading a single repository returns 400 for an unknown key, but also
    without a licence. If the server cannot list repositories, return the key; the next request
    shows whether the repository exists [C1.5].

    :param refused: response to the read of the repository
    """
    try:
        _read, entries = listed(client)
    except ToolchainError as error:
        if error.status not in _UNVERIFIABLE or (certain and error.status == 404):
            raise
        client.transport.memory[_PLAIN] = error.status in _NO_LIST
        client.warn(f"cannot read the repository '{key}': {error}")
        return key
    for entry in entries:
        if entry.get("key") == key:
            # the list does not contain defaultDeploymentRepo; the server resolves it on deployment
            return key if kind_of(entry) == "VIRTUAL" else _target(client, key, entry)
    raise unknown(key, refused)


def members(client: RepoClient, key: str) -> list[str]:
    """Return the keys of a virtual repository's members.

    For other types, or if the repository cannot be read, return only its own key.
    """
    response = _response(client, key)
    found = object_of(response, "a repository") if response.status == 200 else {}
    named = found.get("repositories")
    if kind_of(found) != "VIRTUAL" or not isinstance(named, list):
        return [key]
    return [str(member) for member in named]


def listed(
    client: RepoClient, project: str | None = None
) -> tuple[Response, list[Mapping[str, Any]]]:
    """Read the list of repositories that the account may see; return the response and the list.

    :param project: key of the project; `None` means all repositories
    :raises ToolchainError: `not_found` if there is no repository manager at this address
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
    return response, json_objects(expected(response, list, "a list of repositories"))


def kinds_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the types of repositories in upper case, by key; see :func:`kind_of`."""
    return {as_text(entry.get("key")): kind_of(entry) for entry in entries}


def require(client: RepoClient, keys: Iterable[str]) -> dict[str, str]:
    """Raise `not_found` if a repository does not exist. Return the types of repositories by key.

    Call this before you report items as absent: the key may be a typo. If the server cannot list
    its repositories, the task only warns, and the result is empty.
    """
    kinds, errors = _kinds(client, keys)
    for error in errors.values():
        raise error
    return kinds


def _kinds(
    client: RepoClient, keys: Iterable[str]
) -> tuple[dict[str, str], dict[str, ToolchainError]]:
    """Return the types of repositories by key, and the error for each missing repository."""
    try:
        response, entries = listed(client)
    except ToolchainError as error:
        if error.status not in (400, 403, 405):
            raise
        named = ", ".join(f"'{key}'" for key in keys)
        client.warn(f"cannot check whether the repository {named} exists: {error}")
        return {}, {}
    kinds = kinds_of(entries)
    unknown_keys = (key for key in keys if key not in kinds and predicted(client, key) is None)
    return kinds, {key: unknown(key, response) for key in unknown_keys}


def errors_of_stores(client: RepoClient, keys: Collection[str]) -> dict[str, ToolchainError]:
    """Return the error for each repository that does not store items of its own.

    The kind is `not_found` if it does not exist, and `invalid` if it is virtual or remote.
    """
    kinds, errors = _kinds(client, keys)
    for key in keys:
        kind = kind_of(predicted(client, key) or {}) or kinds.get(key)
        if kind in ("VIRTUAL", "REMOTE"):
            errors[key] = not_stored(client, key, kind, "stores no items itself")
    return errors


def refuse_virtual(client: RepoClient, key: str, reason: str) -> None:
    """Raise `invalid` if a repository is known to be virtual.

    :param reason: predicate of the repository, such as `stores no items itself`
    """
    _response, entries = _listed_if_possible(client)
    if kinds_of(entries).get(key) == "VIRTUAL":
        raise not_stored(client, key, "VIRTUAL", reason)


def not_stored(client: RepoClient, key: str, kind: str, reason: str) -> ToolchainError:
    """Return the error for a virtual or remote repository where a local one is needed.

    :param reason: predicate of the repository, such as `stores no items itself`
    """
    behind: dict[str, None] = {}  # the local repositories behind a virtual one
    pending, seen = [key] if kind == "VIRTUAL" else [], {key}
    kinds = kinds_of(_listed_if_possible(client)[1]) if pending else {}
    while pending:
        for member in members(client, pending.pop(0)):
            if kinds.get(member) == "VIRTUAL" and member not in seen:
                pending.append(member)
            elif kinds.get(member) not in (None, "VIRTUAL", "REMOTE"):
                behind[member] = None
            seen.add(member)
    named = ", ".join(f"'{member}'" for member in behind)
    advice = f"name a local repository behind it: {named}" if behind else "name a local repository"
    return invalid(f"'{key}' is a {kind.lower()} repository, which {reason}: {advice}")


def require_shown(client: RepoClient, key: str) -> None:
    """Raise `not_found` if the list of repositories lacks a key; do nothing without a list."""
    response, entries = _listed_if_possible(client)
    known = any(entry.get("key") == key for entry in entries) or predicted(client, key)
    if response is not None and not known:
        raise unknown(key, response)


def _listed_if_possible(client: RepoClient) -> tuple[Response | None, list[Mapping[str, Any]]]:
    """Return the list of repositories with its response, which is `None` without a list."""
    try:
        return listed(client)
    except ToolchainError as error:
        if error.status not in (400, 403, 404, 405):
            raise
        return None, []


def package_type(client: RepoClient, key: str) -> str | None:
    """Return the package type of a repository in lower case; `None` if it is unknown."""
    _read, entries = _listed_if_possible(client)
    found = next((entry for entry in entries if entry.get("key") == key), {})
    return str(found.get("packageType") or "").lower() or None


def refuse_properties(client: RepoClient) -> None:
    """Raise `rejected` if the server is a plain file store.

    Such a server would store an empty file instead of setting properties [C1.5].
    """
    known = client.transport.memory
    if _PLAIN not in known:
        response = client.transport.read(
            "reading the repositories", "api/repositories", expect=(200, 400, 403, 404, 405)
        )
        known[_PLAIN] = response.status in _NO_LIST
    if known[_PLAIN]:
        raise rejected(
            "properties: this server lists no repositories, so it is a plain file store, which has"
            " no properties: omit the option, or check url"
        )


def lacking(client: RepoClient, failure: str) -> ToolchainError:
    """Return the error for an operation that the generic dialect does not support.

    Raises `not_found` if there is no repository manager at this address.
    """
    listed(client)
    return rejected(
        f"{failure}: the generic interface does not support this operation (check the option"
        " dialect)"
    )


def unknown(key: str, refused: Response) -> ToolchainError:
    """Return the error for a repository that does not exist or is not visible to the account."""
    return refused.error(
        "not_found",
        f"there is no repository '{key}', or the account cannot see it",
        error_text(refused.text),
    )
