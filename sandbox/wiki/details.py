# SPDX-License-Identifier: GPL-3.0-or-later
"""Content properties and labels of pages [wiki-6, wiki-14]."""

from __future__ import annotations

import json
from typing import Any

from sandbox.service import json_body
from sandbox.wiki.errors import bad_request, conflict, error, json_object, member
from sandbox.wiki.pages import Pages

Json = dict[str, Any]

_LONGEST_NAME, _LONGEST_VALUE = 255, 32768
_NOT_IN_LABELS = "()!#&*,.:;<>?@[]^"


def find_property(page: Json, key: str) -> None:
    """Raise a 404 if a page does not have a property."""
    if key not in page["properties"]:
        raise error(404, f"Could not find property with key {key} on content {page['id']}")


def create_property(pages: Pages, page: Json, body: bytes) -> str:
    """Create a property (POST `{key, value}`) and return its key. Raises a 409 if it exists."""
    data = json_object(body)
    key = data.get("key")
    if not isinstance(key, str) or not key or "value" not in data:
        raise bad_request("A property needs a key and a value")
    pages.access.must_edit(page)
    if key in page["properties"]:
        raise conflict(f"A property with key {key} exists already")
    _store(pages, page, key, data["value"], 1)
    return key


def replace_property(pages: Pages, page: Json, key: str, body: bytes) -> None:
    """Store the next version of a property (PUT). Raises a 409 for another version number.

    Version 1 creates the property.
    """
    data = json_object(body)
    known = page["properties"].get(key)
    expected = known["version"] + 1 if known is not None else 1
    if "value" not in data:
        raise bad_request("A property needs a value")
    pages.access.must_edit(page)
    if member(data, "version", "number") != expected:
        raise conflict(f"Version of property {key} must be {expected}")
    _store(pages, page, key, data["value"], expected)


def delete_property(pages: Pages, page: Json, key: str) -> None:
    find_property(page, key)
    pages.access.must_edit(page)
    del page["properties"][key]
    pages.store.put("wiki.page", page["id"], page)


def _store(pages: Pages, page: Json, key: str, value: Any, version: int) -> None:
    if len(key) > _LONGEST_NAME:
        raise bad_request(f"A property key has at most {_LONGEST_NAME} characters")
    if len(json.dumps(value, ensure_ascii=False)) > _LONGEST_VALUE:
        raise bad_request(f"A property value has at most {_LONGEST_VALUE} characters")
    page["properties"][key] = {"value": value, "version": version}
    pages.store.put("wiki.page", page["id"], page)


def add_labels(pages: Pages, page: Json, body: bytes) -> None:
    """Add labels (POST `[{prefix, name}]`). A name with blanks becomes several labels."""
    data = json_body(body)
    pages.access.must_edit(page)
    for entry in data if isinstance(data, list) else [data]:
        page["labels"] = with_labels(page["labels"], member(entry, "name"))
    pages.store.put("wiki.page", page["id"], page)


def with_labels(labels: list[str], name: Any) -> list[str]:
    """Return the labels and those in `name`, without duplicates."""
    names = str(name or "").lower().split()
    if not names or any(char in _NOT_IN_LABELS for label in names for char in label):
        raise bad_request(f"Not a label: {name}")
    if any(len(label) > _LONGEST_NAME for label in names):
        raise bad_request(f"A label has at most {_LONGEST_NAME} characters")
    return list(dict.fromkeys([*labels, *names]))


def remove_label(pages: Pages, page: Json, name: str) -> None:
    pages.access.must_edit(page)
    if name.lower() not in page["labels"]:
        raise error(404, f"Label {name} is not on content {page['id']}")
    page["labels"].remove(name.lower())
    pages.store.put("wiki.page", page["id"], page)
