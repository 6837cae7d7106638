# SPDX-License-Identifier: GPL-3.0-or-later
"""A page, and how it is read out of what the server shows of it [W2.3, wiki-1]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Page:
    """A page; C(body) is C(None) where the server does not send it, C(parent) an id.

    C(shows_parent): the server says where the page stands (C(parent) C(None): at the top).
    C(labels): C(None) where they were not asked for, or are not all shown.
    C(home), C(has_children): whether it is the home page of its space, and whether pages are below
    it; C(None) where that was not asked for, or is not shown. C(content): the server's object.
    """

    id: str
    title: str
    space: str | None
    version: int
    url: str
    status: str = "current"
    type: str = "page"
    body: str | None = None
    parent: str | None = None
    shows_parent: bool = False
    labels: tuple[str, ...] | None = None
    home: bool | None = None
    has_children: bool | None = None
    content: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def ancestors(self) -> list[str]:
        """The ids of the pages above it, as far as the server shows them."""
        above = self.content.get("ancestors")
        return [str(member(one, "id")) for one in above] if isinstance(above, list) else []

    def shown(self) -> dict[str, Any]:
        """The C(page) return value."""
        names = ("id", "title", "space", "version", "url")
        return {name: getattr(self, name) for name in names}


def page_of(content: Any, space: str | None, base: str) -> Page | None:
    """A page from the server's object; C(None) where that has no id, title or version.

    :param space: the key of its space, where the server does not show it
    :param base: the address of the wiki
    """
    version = number(member(content, "version", "number"))
    page_id, title = member(content, "id"), member(content, "title")
    if page_id is None or not isinstance(title, str) or version is None:
        return None
    ancestors = member(content, "ancestors")
    shows_parent = isinstance(ancestors, list)
    parent = member(ancestors[-1], "id") if shows_parent and ancestors else None
    body = member(content, "body", "storage", "value")
    return Page(
        id=str(page_id),
        title=title,
        space=member(content, "space", "key") or space,
        version=version,
        url=_url(str(page_id), content, base),
        status=member(content, "status") or "current",
        type=member(content, "type") or "page",
        body=body if isinstance(body, str) else None,
        parent=None if parent is None else str(parent),
        shows_parent=shows_parent,
        labels=_labels(member(content, "metadata", "labels")),
        home=_is_home(content),
        has_children=_has_any(member(content, "children", "page", "results")),
        content=content,
    )


def _url(page_id: str, content: Any, own: str) -> str:
    base, page = member(content, "_links", "base"), member(content, "_links", "webui")
    if isinstance(page, str):
        return f"{(base if isinstance(base, str) and base else own).rstrip('/')}{page}"
    return f"{own}/pages/viewpage.action?pageId={page_id}"


def member(value: Any, *names: str) -> Any:
    """C(value[a][b]), or C(None) where a step is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def number(value: Any) -> int | None:
    """A number that a server may have written as text."""
    return int(value) if str(value).isdecimal() else None


def label_names(entries: Iterable[Any]) -> tuple[str, ...]:
    """Labels that everybody sees; those of a person or of a team have another prefix."""
    found = [member(one, "name") for one in entries if member(one, "prefix") in (None, "global")]
    return tuple(sorted(name for name in found if isinstance(name, str)))


def _labels(listing: Any) -> tuple[str, ...] | None:
    """The labels in a page; C(None) where it shows none, or not all of them."""
    results, following = member(listing, "results"), member(listing, "_links", "next")
    return label_names(results) if isinstance(results, list) and following is None else None


def _is_home(content: Any) -> bool | None:
    home = member(content, "space", "homepage", "id")
    return None if home is None else str(home) == str(member(content, "id"))


def _has_any(results: Any) -> bool | None:
    return bool(results) if isinstance(results, list) else None
