# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark of a page with the title that its task gives it, by which a renamed page is found."""

from __future__ import annotations

from threading import Lock
from typing import Any

from ...core.concurrency import spread
from ...core.errors import ToolchainError
from ...core.json_text import member
from ...core.plan import Change
from .. import properties
from ..client import WikiClient
from ..page import Page, composed, same_title

KEY = "delivery-toolchain-page"
EXPANSION = f"{properties.EXPANSION}.{KEY}"


def _title_on(page: Page) -> str | None:
    """Return the title in the mark of a page. A copied page has the id of the original in it."""
    value = member(properties.known(page, KEY), "value")
    title = member(value, "title")
    return title if isinstance(title, str) and member(value, "page") == page.id else None


class MarkedPages:
    """The marked pages of spaces. All pages of a task share one search in each space."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._marked: dict[str, list[tuple[str, Page]]] = {}

    def find(self, client: WikiClient, space: str, title: str, parallel: int) -> Page | None:
        """Return the page that is marked with a title although it has another one now, or None.

        Raises `conflict` if several pages are.
        """
        purpose = f"searching for the renamed page '{title}' in the space {space}"
        with self._lock:
            marked = self._marked.get(space.lower())
            if marked is None:
                marked = self._marked[space.lower()] = _marked_in(client, purpose, space, parallel)
        found = [page for known, page in marked if same_title(known, title)]
        if len(found) > 1:
            names = ", ".join(f"'{page.title}' ({page.id})" for page in found)
            message = f"the pages {names} in the space {space} are all marked as the page '{title}'"
            raise ToolchainError("conflict", f"{message}: set page_id")
        return client.require(purpose, found[0].id, space) if found else None


def _marked_in(
    client: WikiClient, purpose: str, space: str, parallel: int
) -> list[tuple[str, Page]]:
    """Return the titles in the marks of a space, with their pages."""
    listed = client.possibly_renamed(purpose, space, EXPANSION)
    pages = spread(parallel, lambda page: properties.with_property(client, page, KEY), listed)
    return [(title, page) for page in pages if (title := _title_on(page)) is not None]


class PageMark:
    """The mark of a page, compared with the server.

    :param current: title in the present mark
    """

    noun = "mark"

    def __init__(self, client: WikiClient, title: str, current: str | None = None) -> None:
        self._client, self._title, self._current = client, composed(title), current

    def on(self, page: Page | None) -> PageMark:
        current = None
        if page is not None:
            current = _title_on(properties.with_property(self._client, page, KEY))
        return PageMark(self._client, self._title, current)

    @property
    def change(self) -> Change | None:
        if self._current is not None and same_title(self._current, self._title):
            return None
        return Change("mark", self._current, self._title)

    def text(self, *, after: bool) -> str:
        return f"mark: {(self._title if after else self._current) or '-'}\n"

    def result(self) -> Any:
        return self._title

    def apply(self, page: Page) -> None:
        if self.change is not None:
            marked = properties.with_property(self._client, page, KEY)
            value = {"title": self._title, "page": page.id}
            properties.write_property(self._client, marked, KEY, value)
