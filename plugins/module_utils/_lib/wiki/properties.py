# SPDX-License-Identifier: GPL-3.0-or-later
"""Content properties with which the collection marks its pages [wiki-6]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.errors import ToolchainError
from ..core.json_text import member
from .client import WikiClient
from .page import Page, number

#: Prefix of the member to expand for a property.
EXPANSION = "metadata.properties"


def known(page: Page, key: str) -> Any:
    """Return a property of a page as JSON, or None if the page has none or it was not expanded."""
    return member(page.content, "metadata", "properties", key)


def with_property(client: WikiClient, page: Page, key: str) -> Page:
    """Return the page with a property in its JSON object, for servers that do not expand it."""
    if member(page.content, "metadata", "properties") is not None:
        return page
    found = client.read_property(
        f"reading the mark of the page '{page.title}' ({page.id})", page.id, key
    )
    metadata = member(page.content, "metadata") or {}
    properties = {} if found is None else {key: found}
    return replace(
        page, content={**page.content, "metadata": {**metadata, "properties": properties}}
    )


def write_property(client: WikiClient, page: Page, key: str, value: Any) -> None:
    """Write a property. After a conflict, read the current one before the next attempt."""
    try:
        _write(client, page, key, value, known(page, key))
    except ToolchainError as error:
        if error.status != 409:
            raise
        found = client.read_property(_purpose(page), page.id, key)
        if member(found, "value") != value:
            _write(client, page, key, value, found)


def _write(client: WikiClient, page: Page, key: str, value: Any, before: Any) -> None:
    sent: dict[str, Any] = {"key": key, "value": value}
    version = number(member(before, "version", "number"))
    if version is not None:
        sent["version"] = {"number": version + 1}

    def is_written() -> bool:
        found = client.read_property(_purpose(page), page.id, key)
        return bool(member(found, "value") == value)

    current = None if version is None else before
    client.write_property(_purpose(page), page.id, sent, current, is_written)


def _purpose(page: Page) -> str:
    return f"marking the page '{page.title}' ({page.id})"
