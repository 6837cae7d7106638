# SPDX-License-Identifier: GPL-3.0-or-later
"""Scopes of a token in the cloud that requests to the wiki require [wiki-30]."""

from __future__ import annotations

from ..atlassian.scopes import ScopeTable

_TABLE = ScopeTable(
    (
        # version 2 of the interface
        ("GET", r"/api/v2/pages/[^/]+/properties", "read:page"),
        ("*", r"/api/v2/pages/[^/]+/properties", "write:page read:page"),
        ("GET", r"/api/v2/pages/[^/]+/labels", "read:page"),
        ("*", r"/api/v2/.*comments", "read:comment"),
        ("GET", r"/api/v2/.*attachments", "read:attachment"),
        ("DELETE", r"/api/v2/attachments", "delete:attachment"),
        ("GET", r"/api/v2/.*/(?:descendants|direct-children)", "read:hierarchical-content"),
        ("GET", r"/api/v2/.*/ancestors", "read:content.metadata"),
        ("GET", r"/api/v2/folders", "read:folder"),
        ("GET", r"/api/v2/spaces/[^/]+/(?:pages|blogposts)", "read:page"),
        ("GET", r"/api/v2/spaces", "read:space"),
        ("GET", r"/api/v2/", "read:page"),
        ("DELETE", r"/api/v2/", "delete:page"),
        ("*", r"/api/v2/", "write:page"),
        # version 1
        ("GET", r"/label", "read:label"),
        ("POST", r"/label", "write:label read:label"),
        ("*", r"/label", "write:label"),
        ("GET", r"/property\b", "read:content.property"),
        ("*", r"/property\b", "write:content.property"),
        ("GET", r"/attachment|/download/", "read:attachment"),
        ("*", r"/attachment", "write:attachment read:content-details"),
        ("*", r"/space/[^/]+/permission\b", "write:space.permission read:space.permission"),
        ("GET", r"/space(?:/[^/]+)?/?$", "read:space"),
        ("DELETE", r"/space/[^/]+/?$", "delete:space read:content.metadata"),
        ("*", r"/space(?:/[^/]+)?/?$", "write:space read:space-details write:space.permission"),
        ("GET", r"/group\b", "read:group"),
        ("GET", r"/user/memberof", "read:group read:user"),
        ("GET", "", "read:content-details"),
        ("*", r"/restriction", "write:content.restriction read:content-details"),
        ("*", "", "write:content"),
    )
)


def scopes_of(method: str, path: str) -> tuple[str, ...]:
    """Return the scopes of a request. The scope that is specific to the request is the first."""
    return tuple(f"{scope}:confluence" for scope in _TABLE.of(method, path))


def scope_of(method: str, path: str) -> str:
    """Return the scope that is specific to a request."""
    return scopes_of(method, path)[0]
