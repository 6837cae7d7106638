# SPDX-License-Identifier: GPL-3.0-or-later
"""Create links from objects in a report to their pages on the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_HTTP = re.compile(r"https?://[^\s/]")


def link(finding: Mapping[str, Any]) -> str:
    """Return the URL of an object, or of its server if the URL of the object is unknown.

    Returns "" if the server is unknown or has no HTTP URL.
    """
    server = str(finding["server"]).rstrip("/")
    if not _HTTP.match(server):
        return ""
    path = _path(finding["service"], finding["kind"], finding["name"])
    return f"{server}/{path}"


def _path(service: str, kind: str, name: str) -> str:
    words = [_quoted(word) for word in name.split("/")]
    place = (service, kind)
    if place == ("repo", "item") and len(words) > 1:
        return "/".join(words)
    if place == ("tracker", "issue"):
        return f"browse/{_quoted(name)}"
    if place == ("tracker", "version"):
        return (
            f"projects/{words[0]}?selectedItem=com.atlassian.jira.jira-projects-plugin:release-page"
        )
    if place == ("wiki", "page"):
        if name.isdecimal():
            return f"pages/viewpage.action?pageId={name}"
        return f"display/{words[0]}/{_quoted(name.partition('/')[2])}" if words[1:] else ""
    if place == ("ci", "job"):
        return "/".join(f"job/{word}" for word in words) + "/"
    if place == ("ci", "build") and len(words) > 1:
        return "/".join(f"job/{word}" for word in words[:-1]) + f"/{words[-1]}/"
    if place == ("ci", "plugin"):
        return "pluginManager/installed"
    return ""


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
