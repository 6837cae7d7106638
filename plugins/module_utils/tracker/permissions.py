# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the permissions of the task's account [tracker-28]."""

from __future__ import annotations

from collections.abc import Sequence

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
    query = {**where, "permissions": ",".join([*permissions, *wider])}
    purpose = "reading the permissions of the account"
    try:
        response = client.read(purpose, "rest/api/2/mypermissions", query=query)
    except ToolchainError:
        return []
    known = member(json_or_none(response.body), "permissions")

    def is_denied(name: str) -> bool:
        return member(known, name, "havePermission") is False

    return [
        name
        for name in permissions
        if is_denied(name) and (name not in _INCLUDED_IN or is_denied(_INCLUDED_IN[name]))
    ]


def require(client: TrackerClient, purpose: str, permissions: Sequence[str], **where: str) -> None:
    """Raise `permission` if the account lacks a permission for a planned write."""
    missing = lacking(client, list(dict.fromkeys(permissions)), **where) if permissions else []
    if missing:
        raise ToolchainError("permission", f"{purpose}: {describe_missing(missing)}")


def describe_missing(missing: Sequence[str]) -> str:
    """Return the error message for missing permissions."""
    return f"the account lacks the permission {' and '.join(missing)}"
