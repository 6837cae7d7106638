# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees of pages: display order, moves, and links after a rename [wiki-10, wiki-11]."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sandbox.wiki.errors import bad_request
from sandbox.wiki.pages import Pages

Json = dict[str, Any]

_POSITIONS = ("append", "before", "after")


def _display_order(page: Json) -> tuple[bool, int, list[tuple[bool, int, str]]]:
    """Return the sort key of a page among its siblings.

    Siblings are sorted by position if they were ordered manually, else by title. Digits in titles
    are compared as numbers.
    """
    parts = re.findall(r"\d+|\D+", page["title"].lower())
    title = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
    position = page.get("position")
    return (position is None, position or 0, title)


def children(pages: Pages, space: str, parent: str | None) -> list[Json]:
    """Return the current children of a page in display order.

    :param parent: id of the page; None means the top of the space
    """
    found = [page for page in _current(pages, space) if page.get("parent") == parent]
    return _displayed(pages, found)


def descendants(pages: Pages, page: Json) -> Iterator[Json]:
    """Yield the descendants of a page, each page before its children."""
    by_parent: dict[str | None, list[Json]] = defaultdict(list)
    for other in _current(pages, page["space"]):
        by_parent[other.get("parent")].append(other)

    def below(parent: str) -> Iterator[Json]:
        for child in _displayed(pages, by_parent[parent]):
            yield child
            yield from below(child["id"])

    return below(page["id"])


def _current(pages: Pages, space: str) -> list[Json]:
    return [
        page
        for page in pages.store.values("wiki.page")
        if page["space"] == space and page["status"] == "current" and page["type"] == "page"
    ]


def _displayed(pages: Pages, siblings: list[Json]) -> list[Json]:
    return sorted(filter(pages.access.sees, siblings), key=_display_order)


def move(pages: Pages, page: Json, position: str, target: Json) -> None:
    """Move a page with its descendants. This creates no new version."""
    if position not in _POSITIONS:
        raise bad_request(f"Unknown position: {position}")
    pages.access.must_edit(page)
    if page["space"] != target["space"]:
        pages.access.must_add(target["space"])
    parent = target["id"] if position == "append" else target.get("parent")
    line = [target["id"], *(above["id"] for above in pages.ancestors(target))]
    if page["id"] in line:
        raise bad_request("A page cannot be its own ancestor")
    moved = {**page, "parent": parent, "space": target["space"], "position": None}
    others = [
        child for child in children(pages, target["space"], parent) if child["id"] != page["id"]
    ]
    by_hand = any(other.get("position") is not None for other in others)
    if position != "append":
        index = next(i for i, other in enumerate(others) if other["id"] == target["id"])
        others.insert(index + (position == "after"), moved)
    else:
        others.append(moved)
    if by_hand or position != "append":
        for number, sibling in enumerate(others):
            pages.store.put("wiki.page", sibling["id"], {**sibling, "position": number})
    else:
        pages.store.put("wiki.page", moved["id"], moved)
    pages.keep_title(moved)
    if moved["space"] != page["space"]:
        _move_descendants(pages, page, moved["space"])


def _move_descendants(pages: Pages, page: Json, space: str) -> None:
    for child in list(descendants(pages, page)):
        changed = {**child, "space": space}
        pages.store.put("wiki.page", child["id"], changed)
        pages.keep_title(changed)


def follow_title(pages: Pages, before: Json, after: Json) -> None:
    """Update links to a renamed page in all pages. This creates no new versions."""
    former, title = (html.escape(record["title"]) for record in (before, after))
    for _key, page in pages.store.items("wiki.page"):
        if former not in page["body"]:
            continue

        def renamed(found: re.Match[str], home: str = page["space"]) -> str:
            space = re.search(r'ri:space-key="([^"]*)"', found[0])
            if (home if space is None else space[1]) != before["space"]:
                return found[0]
            old, new = (f'ri:content-title="{name}"' for name in (former, title))
            return found[0].replace(old, new)

        body = re.sub(r"<ri:page [^>]*>", renamed, page["body"])
        if body != page["body"]:
            pages.store.put("wiki.page", page["id"], {**page, "body": body})
