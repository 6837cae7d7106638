# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the permissions of the task's account [tracker-28]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import json_or_none
from .client import TrackerClient

#: Administrators of the server administer every project [tracker-28].
_OF_THE_SERVER = {"ADMINISTER_PROJECTS": "ADMINISTER"}


def lacking(client: TrackerClient, permissions: Sequence[str], **where: str) -> list[str]:
    """Return the permissions that the account lacks for an issue (`issueKey`) or a project
    (`projectKey`).

    A permission that the server does not report counts as granted.
    """
    wider = [_OF_THE_SERVER[name] for name in permissions if name in _OF_THE_SERVER]
    query = {**where, "permissions": ",".join([*permissions, *wider])}
    purpose = "reading the permissions of the account"
    try:
        response = client.read(purpose, "rest/api/2/mypermissions", query=query)
    except ToolchainError:
        return []
    reported = json_or_none(response.body)
    shown = reported.get("permissions") if isinstance(reported, Mapping) else None
    known = shown if isinstance(shown, Mapping) else {}
    return [
        name
        for name in permissions
        if _is_denied(known.get(name))
        and (name not in _OF_THE_SERVER or _is_denied(known.get(_OF_THE_SERVER[name])))
    ]


def require(client: TrackerClient, purpose: str, permissions: Sequence[str], **where: str) -> None:
    """Raise `permission` for a write that the account must not do, before it is sent."""
    missing = lacking(client, list(dict.fromkeys(permissions)), **where) if permissions else []
    if missing:
        raise ToolchainError("permission", f"{purpose}: {describe_missing(missing)}")


def describe_missing(missing: Sequence[str]) -> str:
    """Return a message for missing permissions."""
    return f"the account lacks the permission {' and '.join(missing)}"


def _is_denied(shown: Any) -> bool:
    return isinstance(shown, Mapping) and shown.get("havePermission") is False
