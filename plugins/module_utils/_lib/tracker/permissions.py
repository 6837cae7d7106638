# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the permissions of the task's account [tracker-28]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import json_or_none
from ..core.json_text import member
from .client import TrackerClient

#: Permissions of a project, and the permission of the server that includes them [tracker-28].
_INCLUDED_IN = {"ADMINISTER_PROJECTS": "ADMINISTER"}


def lacking(client: TrackerClient, permissions: Sequence[str], **where: str) -> list[str]:
    """Return the permissions that the account lacks.

    A permission that the server does not report counts as granted.

    :param where: `issueKey` or `projectKey`
    """
    wider = [_INCLUDED_IN[name] for name in permissions if name in _INCLUDED_IN]
    known = _reported(client, ",".join([*permissions, *wider]), where)

    def is_denied(name: str) -> bool:
        return member(known, name, "havePermission") is False

    return [
        name
        for name in permissions
        if is_denied(name) and (name not in _INCLUDED_IN or is_denied(_INCLUDED_IN[name]))
    ]


def _reported(client: TrackerClient, names: str, where: Mapping[str, str]) -> Any:
    """Return the permissions by name, or None if the server does not report them.

    Only the cloud has the parameter with the names, and rejects a request without it.
    """
    purpose, route = "reading the permissions of the account", "rest/api/2/mypermissions"
    named = {**where, "permissions": names}
    try:
        query = named if client.known_cloud else where
        response = client.read(purpose, route, query=query, expect=(200, 400))
        if response.status == 400:
            response = client.read(purpose, route, query=named)
    except ToolchainError:
        return None
    return member(json_or_none(response.body), "permissions")


def require(client: TrackerClient, purpose: str, permissions: Sequence[str], **where: str) -> None:
    """Raise `permission` if the account lacks a permission for a planned write."""
    missing = lacking(client, list(dict.fromkeys(permissions)), **where) if permissions else []
    if missing:
        raise ToolchainError("permission", f"{purpose}: {describe_missing(missing)}")


def describe_missing(missing: Sequence[str]) -> str:
    """Return the error message for missing permissions."""
    return f"the account lacks the permission {' and '.join(missing)}"
