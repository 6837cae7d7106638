# SPDX-License-Identifier: GPL-3.0-or-later
"""Scopes of a token in the cloud that requests to the tracker require [tracker-40]."""

from __future__ import annotations

from ..atlassian.scopes import ScopeTable

_TABLE = ScopeTable(
    (
        ("*", r"/(?:user|myself|configuration|groups/picker)\b", "read:jira-user"),
        ("GET", r"/auditing/record\b", "manage:jira-configuration"),
        ("GET", "", "read:jira-work"),
        ("POST", r"/project/[^/]+/role/", "manage:jira-configuration"),
        ("*", r"/(?:version|component|project)\b", "manage:jira-project"),
        ("*", "", "write:jira-work"),
    )
)


def scope_of(method: str, path: str, *, reads: bool) -> str:
    """Return the scope of a request.

    :param reads: whether the request only reads, which some POST requests do
    """
    (scope,) = _TABLE.of("GET" if reads else method, path)
    return scope
