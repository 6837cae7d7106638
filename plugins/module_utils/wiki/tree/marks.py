# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark on every page of a tree: a content property that names the tree and the file
[wiki-6].
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...core.errors import ToolchainError
from ...core.json_text import member
from ..client import WikiClient
from ..page import Page, number

KEY = "delivery-toolchain-tree"
#: Member to expand for the mark of a page.
EXPANSION = f"metadata.properties.{KEY}"


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
    value = member(page.content, "metadata", "properties", KEY, "value")
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


def write_mark(client: WikiClient, page: Page, mark: TreeMark) -> None:
    """Write the mark of a page. After a conflict, read the current mark before the next attempt."""
    purpose = f"marking the page '{page.title}' ({page.id})"
    known = member(page.content, "metadata", "properties", KEY)
    try:
        _write(client, page.id, mark, purpose, known)
    except ToolchainError as error:
        if error.status != 409:
            raise
        found = _read(client, page.id, purpose)
        if member(found, "value") != mark.shown():
            _write(client, page.id, mark, purpose, found)


def _write(client: WikiClient, page_id: str, mark: TreeMark, purpose: str, known: Any) -> None:
    value: dict[str, Any] = {"key": KEY, "value": mark.shown()}
    version = number(member(known, "version", "number"))
    if version is not None:
        value["version"] = {"number": version + 1}

    def is_marked() -> bool:
        return bool(member(_read(client, page_id, purpose), "value") == mark.shown())

    client.write_property(purpose, page_id, value, None if version is None else known, is_marked)


def _read(client: WikiClient, page_id: str, purpose: str) -> Any:
    return client.read_property(purpose, page_id, KEY)


def with_mark(client: WikiClient, page: Page) -> Mapping[str, Any]:
    """Read the mark of a page and add it to the page's JSON object.

    This is for servers that do not expand properties.
    """
    found = _read(client, page.id, f"reading the mark of the page '{page.title}' ({page.id})")
    metadata = member(page.content, "metadata") or {}
    properties = {} if found is None else {KEY: found}
    return {**page.content, "metadata": {**metadata, "properties": properties}}


def _text(value: Any, name: str) -> str | None:
    found = member(value, name)
    return found if isinstance(found, str) else None
