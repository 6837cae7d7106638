# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the pages of a tree on the server."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...core.concurrency import spread
from ...core.errors import conflict
from ...core.json_text import member
from ...core.progress import Listener, ProgressCounter
from ..client import PROPERTIES, WikiClient
from ..page import Page, number
from .source_files import ROOT
from .wanted_pages import WantedPage, title_key

KEY = "delivery-toolchain-tree"
#: Member to expand for the mark of a page.
EXPANSION = f"{PROPERTIES}.{KEY}"


@dataclass(frozen=True)
class TreeMark:
    """The tree and file of a page.

    `tree`: id of the root page; None on a new root page.
    `file`: path of the file below the folder.
    `page`: id of the page, which shows whether the page is a copy; None on a new page.
    `digest`: digest of the body that was saved as `version`.
    `source`: digest of the file content.
    """

    tree: str | None
    file: str
    page: str | None = None
    digest: str | None = None
    version: int | None = None
    source: str | None = None

    @property
    def is_finished(self) -> bool:
        """Return whether the page is finished. The first mark of a new page has no page id."""
        return self.page is not None

    def shown(self) -> dict[str, Any]:
        """Return the mark as the value of the content property."""
        return asdict(self)


def mark_of(page: Page) -> TreeMark | None:
    """Return the mark of a page, or None for a copied page or an invalid property."""
    value = member(page.content_property(KEY), "value")
    file = member(value, "file")
    if not isinstance(file, str):
        return None
    mark = TreeMark(
        _text(value, "tree"),
        unicodedata.normalize("NFC", file),
        _text(value, "page"),
        _text(value, "digest"),
        number(member(value, "version")),
        _text(value, "source"),
    )
    return mark if mark.page in (None, page.id) else None


def _text(value: Any, name: str) -> str | None:
    found = member(value, name)
    return found if isinstance(found, str) else None


@dataclass
class ExistingTree:
    """The root page and all pages below it. `pages`: by id, parents first."""

    root: Page
    pages: dict[str, Page] = field(default_factory=dict)

    def own(self) -> dict[str, TreeMark]:
        """Return the marks of the pages of this tree by page id, without the root page."""
        marks = {page_id: mark_of(page) for page_id, page in self.pages.items()}
        return {
            page_id: mark
            for page_id, mark in marks.items()
            if mark is not None and mark.tree == self.root.id and page_id != self.root.id
        }

    def children(self, page_id: str) -> list[Page]:
        return [page for page in self.pages.values() if page.parent == page_id]


class TreeReader:
    """Find pages of a space.

    :param client: client that expands the marks of pages
    :param say: reports progress
    """

    def __init__(self, client: WikiClient, space: str, parallel: int, say: Listener) -> None:
        self._client, self._space, self._parallel, self._say = client, space, parallel, say
        self._found: dict[str, Page | None] = {}

    def find(self, title: str) -> Page | None:
        """Return the page with a title in the space, or None. The result is cached.

        Raises `conflict` for an archived page.
        """
        if title not in self._found:
            found = self._client.find(f"searching for the page '{title}'", self._space, title)
            if found is not None and found.status != "current":
                message = f"the page '{title}' ({found.id}) in the space {self._space} is archived"
                raise conflict(f"{message}: restore or rename it")
            self._found[title] = None if found is None else self._with_mark(found)
        return self._found[title]

    def find_all(self, wanted: Sequence[WantedPage]) -> dict[str, Page]:
        """Return the existing pages with the titles of the wanted pages, by key of the file."""
        found = spread(self._parallel, lambda page: self.find(page.title), wanted)
        keys = [page.source.key for page in wanted]
        return {key: page for key, page in zip(keys, found, strict=True) if page is not None}

    def tree(self, root: Page) -> ExistingTree:
        """Read the root page and all pages below it."""
        found = ExistingTree(root, {root.id: root})
        level = [root]
        purpose = f"listing the pages below '{root.title}' ({root.id})"
        listed = self._client.descendants(purpose, root.id)
        if listed is not None:
            found.pages.update(self._listed(purpose, listed))
            return found
        count = ProgressCounter(self._say, f"listing the pages below '{root.title}'")
        while level:
            above = [page for page in level if page.has_children is not False]
            lists = spread(self._parallel, self._children, above)
            level = [page for pages in lists for page in pages if page.id not in found.pages]
            found.pages.update((page.id, page) for page in level)
            count.add(len(level))
        return found

    def _listed(self, purpose: str, listed: Sequence[tuple[str, str]]) -> dict[str, Page]:
        """Read pages by id, without those that are no longer found.

        :param listed: pairs of page id and parent id
        """
        count = ProgressCounter(self._say, purpose, len(listed))

        def read(entry: tuple[str, str]) -> Page | None:
            page_id, parent = entry
            page = self._client.get(f"reading the page {page_id}", page_id, self._space)
            count.add()
            if page is None or page.status != "current":
                return None
            return replace(self._with_mark(page), parent=parent)

        pages = spread(self._parallel, read, listed)
        return {page.id: page for page in pages if page is not None}

    def with_body(self, page: Page) -> Page:
        """Return the page with its body, in the newest version if it has been saved since."""
        if page.body is not None:
            return page
        purpose = f"reading the page '{page.title}' ({page.id})"
        now = self._client.require(purpose, page.id, page.space)
        if now.version == page.version:
            return replace(page, body=now.body)
        now = self._with_mark(now)
        return now if now.shows_parent else replace(now, parent=page.parent)

    def former_tree(self, wanted: Sequence[WantedPage]) -> str | None:
        """Return the id of the tree of these files if its root page had another title, or None.

        More than half of the files must be marked as unchanged files of that tree, because
        different manuals may have some titles in common.
        """
        others = [page for page in wanted if page.source.key != ROOT and page.source_digest]
        found = self.find_all(others)
        trees: Counter[str] = Counter()
        for page in others:
            mark = mark_of(found[page.source.key]) if page.source.key in found else None
            same = mark is not None and mark.source == page.source_digest
            if same and mark is not None and mark.tree and mark.file == page.source.path:
                trees[mark.tree] += 1
        for tree, count in trees.most_common(1):
            if count * 2 > len(others):
                return tree
        return None

    def new_root(self, wanted: Sequence[WantedPage]) -> Page | None:
        """Return the root page if another task created it after `find()` returned None.

        Each page of a tree is created after the root page, and its mark contains the root's id.
        `find()` caches its results, so no page of that tree can appear after this check. The root
        page is read by id, because lookups by title lag behind in the cloud [wiki-3].
        """
        title = next(page.title_key for page in wanted if page.source.key == ROOT)
        marks = map(mark_of, self.find_all(wanted).values())
        for tree in sorted({mark.tree for mark in marks if mark is not None and mark.tree}):
            root = self.root(tree)
            if root is not None and title_key(root.title) == title:
                return root
        return None

    def root(self, page_id: str) -> Page | None:
        """Return the root page with an id, or None if it does not exist any more."""
        root = self._client.get(f"reading the root page {page_id}", page_id, self._space)
        if root is None or root.status != "current":
            return None
        return self._with_mark(root)

    def _children(self, page: Page) -> list[Page]:
        purpose = f"listing the pages below '{page.title}' ({page.id})"
        children = self._client.children(purpose, page.id, self._space)
        return [replace(self._with_mark(child), parent=page.id) for child in children]

    def _with_mark(self, page: Page) -> Page:
        return self._client.with_property(page, KEY)
