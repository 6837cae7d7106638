# SPDX-License-Identifier: GPL-3.0-or-later
"""What hangs on a page: content properties and labels [wiki-6, wiki-14]."""

from __future__ import annotations

from typing import Any

from sandbox.service import json_body
from sandbox.wiki.errors import bad_request, conflict, error, json_object, member
from sandbox.wiki.pages import Pages

Json = dict[str, Any]


def find_property(page: Json, key: str) -> None:
    """404 where the page has no such property."""
    if key not in page["properties"]:
        raise error(404, f"Could not find property with key {key} on content {page['id']}")


def create_property(pages: Pages, page: Json, body: bytes) -> str:
    """POST `{key, value}`: 409 where it is there already; the key of the new property."""
    data = json_object(body)
    key = data.get("key")
    if not isinstance(key, str) or not key or "value" not in data:
        raise bad_request("A property needs a key and a value")
    if key in page["properties"]:
        raise conflict(f"A property with key {key} exists already")
    _store(pages, page, key, data["value"], 1)
    return key


def replace_property(pages: Pages, page: Json, key: str, body: bytes) -> None:
    """PUT with the next version number; number 1 creates."""
    data = json_object(body)
    known = page["properties"].get(key)
    expected = known["version"] + 1 if known is not None else 1
    if "value" not in data:
        raise bad_request("A property needs a value")
    if member(data, "version", "number") != expected:
        raise conflict(f"Version of property {key} must be {expected}")
    _store(pages, page, key, data["value"], expected)


def delete_property(pages: Pages, page: Json, key: str) -> None:
    find_property(page, key)
    del page["properties"][key]
    pages.store.put("wiki.page", page["id"], page)


def _store(pages: Pages, page: Json, key: str, value: Any, version: int) -> None:
    page["properties"][key] = {"value": value, "version": version}
    pages.store.put("wiki.page", page["id"], page)


def add_labels(pages: Pages, page: Json, body: bytes) -> None:
    """POST `[{prefix, name}]`: adds to what is there."""
    data = json_body(body)
    given = data if isinstance(data, list) else [data]
    for entry in given:
        name = member(entry, "name")
        if not isinstance(name, str) or not name or " " in name:
            raise bad_request(f"Not a label: {name}")
        if name.lower() not in page["labels"]:
            page["labels"].append(name.lower())
    pages.store.put("wiki.page", page["id"], page)


def remove_label(pages: Pages, page: Json, name: str) -> None:
    if name not in page["labels"]:
        raise error(404, f"Label {name} is not on content {page['id']}")
    page["labels"].remove(name)
    pages.store.put("wiki.page", page["id"], page)
