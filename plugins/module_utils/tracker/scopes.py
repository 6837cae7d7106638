# SPDX-License-Identifier: GPL-3.0-or-later
"""OAuth scopes that a token of the cloud needs for a request [tracker-40]."""

from __future__ import annotations

import re

_READ, _WRITE = "read:jira-work", "write:jira-work"
_PROJECT = re.compile(r"/rest/api/[^/]+/(?:version|component|project)\b")
_USER = re.compile(r"/rest/api/[^/]+/(?:user|myself)\b")


def scope_of(method: str, path: str, *, reads: bool) -> str:
    """Return the scope that a request requires, for error messages.

    :param reads: whether the request only reads, which some POST requests do
    """
    if _USER.search(path):
        return "read:jira-user"
    if method == "GET" or reads:
        return _READ
    return "manage:jira-project" if _PROJECT.search(path) else _WRITE
