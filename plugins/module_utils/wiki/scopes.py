# SPDX-License-Identifier: GPL-3.0-or-later
"""Scopes that a token of the cloud needs for a request [tracker-40]."""

from __future__ import annotations

import re

_WRITES = {"POST": "write", "PUT": "write", "DELETE": "write"}
#: Part of a path, from the most to the least specific, and the object in the name of the scope.
_OBJECTS = (
    (r"/label", "label"),
    (r"/propert(?:y|ies)\b", "content.property"),
    (r"/attachment|/download/", "attachment"),
    (r"/(?:inline-|footer-)?comment", "comment"),
    (r"/restriction", "content.restriction"),
    (r"/descendants\b|/direct-children\b", "hierarchical-content"),
    (r"/api/v2/folders\b", "folder"),
    (r"/spaces?(?:/[^/]+)?/?$", "space"),
    (r"/api/v2/(?:pages|spaces)\b", "page"),
    (r"/user\b", "user"),
)
#: Version 1 names the content of a read otherwise.
_CONTENT = {"read": "content-details", "write": "content"}


def scopes_of(method: str, path: str) -> str:
    """Return the scopes of a request for messages."""
    deed = _WRITES.get(method, "read")
    found = next((name for pattern, name in _OBJECTS if re.search(pattern, path)), None)
    if found is None:
        found = _CONTENT[deed]
    if found == "page" and method == "DELETE":
        deed = "delete"
    return f"{deed}:{found}:confluence"
