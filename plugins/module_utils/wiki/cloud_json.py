# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert JSON between version 2 and version 1 of the interface [wiki-30]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..core.http.messages import Response
from ..core.json_text import as_text, member
from .page import whole_results

_NEXT = re.compile(r'<([^<>]*)>[^<>,]*\brel="?next"?')


def content_of(shown: Any, space: Any, base: Any) -> dict[str, Any]:
    """Convert a page or folder of version 2 to the JSON of version 1.

    :param shown: page or folder, a JSON object
    :param space: its space, a JSON object or None
    :param base: base URL for links in a browser, or None
    """
    if not isinstance(shown, Mapping):
        return {}
    parts = ("id", "status", "title", "version", "body")
    content = {name: shown[name] for name in parts if name in shown}
    content["type"] = "folder" if shown.get("type") == "folder" else "page"
    links = shown.get("_links")
    shown_links = {**links} if isinstance(links, Mapping) else {}
    content["_links"] = shown_links if base is None else {**shown_links, "base": base}
    if space is not None:
        home = member(space, "homepageId")
        shown_home = {} if home is None else {"homepage": {"id": home}}
        content["space"] = {"key": member(space, "key"), **shown_home}
    if "parentId" in shown:
        parent = shown["parentId"]
        content["ancestors"] = [] if parent is None else [{"id": parent}]
    operations = whole_results(shown.get("operations"))
    if operations is not None:
        content["operations"] = operations
    content["metadata"] = _metadata(shown)
    return content


def _metadata(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels and properties in the form of version 1, without incomplete lists."""
    found: dict[str, Any] = {}
    labels = whole_results(shown.get("labels"))
    if labels is not None:
        found["labels"] = {"results": labels}
    properties = whole_results(shown.get("properties"))
    if properties is not None:
        found["properties"] = {str(member(entry, "key")): entry for entry in properties}
    return found


def attachment_of(shown: Any) -> dict[str, Any]:
    """Convert an attachment to the JSON of version 1.

    Version 2 prefixes the id with `att`. Uploads use version 1, which has no prefix.
    """
    return {
        "id": str(member(shown, "id")).removeprefix("att"),
        "title": member(shown, "title"),
        "version": member(shown, "version"),
        "extensions": {"fileSize": member(shown, "fileSize"), "comment": member(shown, "comment")},
        "_links": {
            "download": member(shown, "downloadLink") or member(shown, "_links", "download")
        },
    }


def sent(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a page of version 1 to a request body of version 2, without id, space and version."""
    storage = member(content, "body", "storage")
    body = {
        "status": "current",
        "title": content["title"],
        "body": {"representation": "storage", "value": member(storage, "value")},
    }
    above = content.get("ancestors")
    return {**body, "parentId": str(above[-1]["id"])} if above else body


def next_cursor(response: Response) -> str | None:
    """Return the cursor for the next part of a list, or None for the last part.

    Raises `protocol` if the link to the next part has no cursor.
    """
    link = member(response.json(), "_links", "next")
    if link is None:
        found = _NEXT.search(response.headers.get("Link", ""))
        link = None if found is None else found[1]
    if not link:
        return None
    cursors = parse_qs(urlsplit(str(link)).query).get("cursor")
    if not cursors:
        raise response.error("protocol", "the link to the next part of the list has no cursor")
    return cursors[0]


def parents_of(entries: Mapping[str, Mapping[str, Any]], top: str) -> list[tuple[str, str]]:
    """Return pairs of page id and parent id for the current pages, parents first.

    The parent of a page in a folder is the page above the folder.

    :param entries: all descendants by id, pages and folders
    :param top: id of the page above all of them
    """
    children: dict[str, list[str]] = {}
    for entry_id, entry in entries.items():
        children.setdefault(as_text(entry.get("parentId")), []).append(entry_id)
    pairs: list[tuple[str, str]] = []
    todo = [(entry_id, top) for entry_id in children.get(top, [])]
    while todo:
        entry_id, parent = todo.pop(0)
        is_page = entries[entry_id].get("type", "page") == "page"
        if is_page and entries[entry_id].get("status", "current") == "current":
            pairs.append((entry_id, parent))
            parent = entry_id
        todo += [(child, parent) for child in children.pop(entry_id, [])]
    return pairs
