# SPDX-License-Identifier: GPL-3.0-or-later
"""Comments of readers, below a page or within its text [wiki-17].

POST /content with `type` `comment` and the page in `container` adds a comment. With `extensions:
{location: inline, inlineProperties: {originalSelection, matchIndex}}` it marks the selected text in
the body of the page, which gets no new version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from lxml import etree

from sandbox.wiki.errors import bad_request, forbidden, member
from sandbox.wiki.pages import Pages
from sandbox.wiki.storage import Element, name_of, parse, qualified, serialize
from sandbox.wiki.views import Views

Json = dict[str, Any]

_KIND = "wiki.comment"
_MARKER = "ac:inline-comment-marker"
#: Elements whose text cannot be selected.
_CLOSED = ("ac:parameter", "ac:plain-text-body", "ac:plain-text-link-body", _MARKER)


def create(pages: Pages, data: Json) -> Json:
    """Add a comment to a page, and return it."""
    page = pages.get(str(member(data, "container", "id")))
    text = member(data, "body", "storage", "value")
    if not isinstance(text, str) or not text.strip():
        raise bad_request("The body of a comment cannot be empty")
    if pages.user == "anonymous":
        raise forbidden("anonymous users cannot comment")
    properties = member(data, "extensions", "inlineProperties") or {}
    is_inline = member(data, "extensions", "location") == "inline"
    with pages.store.transaction():
        reference = _mark(pages, page, properties) if is_inline else None
        comment = {
            "id": str(500_000 + pages.store.next_id(_KIND)),
            "page": page["id"],
            "body": text,
            "by": pages.user,
            "when": pages.now(),
            "reference": reference,
            "selection": properties.get("originalSelection") if is_inline else None,
        }
        pages.store.put(_KIND, f"{page['id']}/{comment['id']}", comment)
    return comment


def _mark(pages: Pages, page: Json, properties: Json) -> str:
    """Mark the selected text in the body of a page. Return the reference of the marker."""
    selection, index = properties.get("originalSelection"), int(properties.get("matchIndex") or 0)
    if not isinstance(selection, str) or not selection.strip():
        raise bad_request("inlineProperties.originalSelection is required for an inline comment")
    root = parse(page["body"])
    places = list(_places(root, selection))
    if not 0 <= index < len(places):
        raise bad_request(f"The selected text was not found: {selection}")
    element, is_tail, at = places[index]
    text = (element.tail if is_tail else element.text) or ""
    reference = str(uuid4())
    marker = etree.Element(qualified(_MARKER), {qualified("ac:ref"): reference})
    marker.text, marker.tail = selection, text[at + len(selection) :]
    if is_tail:
        element.tail = text[:at]
        element.addnext(marker)
    else:
        element.text = text[:at]
        element.insert(0, marker)
    pages.store.put("wiki.page", page["id"], {**page, "body": serialize(root).lstrip("\n")})
    return reference


def _places(root: Element, selection: str) -> list[tuple[Element, bool, int]]:
    """Return where a text is: the element, whether it is the text behind it, and the position."""
    found: list[tuple[Element, bool, int]] = []

    def search(element: Element, text: str | None, *, is_tail: bool) -> None:
        at = (text or "").find(selection)
        while at >= 0:
            found.append((element, is_tail, at))
            at = (text or "").find(selection, at + len(selection))

    def walk(element: Element) -> None:
        if name_of(element) not in _CLOSED:
            search(element, element.text if isinstance(element.tag, str) else "", is_tail=False)
            for child in element:
                walk(child)
                search(child, child.tail, is_tail=True)

    walk(root)
    return found


def of_page(pages: Pages, page: Json) -> list[Json]:
    """Return the comments of a page, the oldest first."""
    return [comment for _key, comment in pages.store.items(_KIND, f"{page['id']}/")]


def view(views: Views, comment: Json, expand: Sequence[str]) -> Json:
    """Return the JSON of a comment."""
    page = views.pages.get(comment["page"])
    is_inline = comment["reference"] is not None
    extensions: Json = {"location": "inline" if is_inline else "footer"}
    if is_inline:
        properties = {"markerRef": comment["reference"], "originalSelection": comment["selection"]}
        extensions |= {"inlineProperties": properties, "resolution": {"status": "open"}}
    shown: Json = {
        "id": comment["id"],
        "type": "comment",
        "status": "current",
        "title": f"Re: {page['title']}",
        "extensions": extensions,
        "_links": {"webui": f"/pages/viewpage.action?pageId={page['id']}"},
    }
    if "version" in expand:
        shown["version"] = {
            "number": 1,
            "when": comment["when"],
            "by": views.user(comment["by"]),
            "minorEdit": False,
        }
    if "body.storage" in expand:
        shown["body"] = {"storage": {"value": comment["body"], "representation": "storage"}}
    if "container" in expand:
        shown["container"] = {"id": page["id"], "type": "page", "title": page["title"]}
    return shown
