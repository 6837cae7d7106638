# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that properties survive the server's parser, or are rejected before anything is sent."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.address import (
    encode as query,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import properties
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

NAMES = st.text("abcXYZ019._-äß日", min_size=1, max_size=8)
# characters that are special to the parser are more likely than other characters
CHARACTERS = st.one_of(
    st.sampled_from(list(",=|;\\ %&+#/?\"'")), st.characters(exclude_categories=["Cs"])
)
VALUES = st.lists(st.text(CHARACTERS, max_size=12), min_size=1, max_size=4)


def split(text: str, separators: str) -> list[str]:
    """Split at separators without a preceding backslash, as the server's parser does."""
    parts, last = [""], ""
    for character in text:
        if character in separators and last != "\\":
            parts.append("")
        else:
            parts[-1] += character
        last = character
    return parts


def without_trailing_empty(parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[-1] == "":
        parts.pop()
    return parts


def unescape(text: str) -> str:
    for separator in ",=|;":
        text = text.replace("\\" + separator, separator)
    return text


def parse(text: str) -> dict[str, set[str]]:
    """Parse strictly by the description of the server's parser."""
    found: dict[str, set[str]] = {}
    for entry in split(text, "|;"):
        parts = split(entry.strip(), "=")
        if len(parts) > 2:
            continue
        name, values = parts[0], parts[1] if len(parts) == 2 else ""
        found[unescape(name)] = {
            unescape(one) for one in without_trailing_empty(split(values, ","))
        }
    return found


def is_inexpressible(value: str) -> bool:
    """Return whether the value changes as the last in an entry, or among several such values."""
    return value.endswith("\\") or value[-1:].isspace() or "" < value[-1:] <= " "


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5))
def test_encoded_properties_are_decoded_equally(wanted: dict[str, list[str]]) -> None:
    if any(is_inexpressible(value) for values in wanted.values() for value in values):
        with contextlib.suppress(ToolchainError):
            assert received(properties.properties_of(wanted)) == as_sets(wanted)
    else:
        assert received(properties.properties_of(wanted)) == as_sets(wanted)


def as_sets(wanted: dict[str, list[str]]) -> dict[str, set[str]]:
    return {name: set(values) for name, values in wanted.items()}


def received(accepted: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return the properties that the server reads from the encoded addresses."""
    read: dict[str, set[str]] = {}
    for text in properties.encode(accepted):
        address = "http://server/storage/r/p?" + query({"properties": text})
        assert not {"|", "+", " "} & set(address)
        read |= parse(parse_qs(urlsplit(address).query, keep_blank_values=True)["properties"][0])
    return read


def test_ordinary_properties_fit_into_one_request() -> None:
    wanted = properties.properties_of({"a": "x=1", "b": ["y", "z,w"], "e": None})
    assert properties.encode(wanted) == {"a=x\\=1|b=y,z\\,w": wanted}


def test_value_with_final_backslash_ends_the_request() -> None:
    wanted = properties.properties_of({"a": ["C:\\", "D"], "b": "E:\\", "c": "x"})
    texts = properties.encode(wanted)
    assert list(texts) == ["a=D,C:\\", "b=E:\\", "c=x"]
    assert texts["b=E:\\"] == {"b": ["E:\\"]}


def test_long_properties_are_sent_in_parts() -> None:
    wanted = properties.properties_of({f"k{n}": "ü" * 300 for n in range(10)})
    texts = properties.encode(wanted)
    assert len(texts) == 4
    assert all(len(query({"properties": text})) < 6100 for text in texts)
    assert "|".join(texts).count("=") == 10


@pytest.mark.parametrize(
    "option",
    [
        {"a b": "x"},
        {"": "x"},
        {"a/b": "x"},
        {"a|b": "x"},
        {"a": []},
        {"a": ["x\\", "y\\"]},
        {"a": "x "},
    ],
)
def test_invalid_properties_are_rejected(option: dict[str, Any]) -> None:
    with pytest.raises(ToolchainError) as caught:
        properties.properties_of(option)
    assert caught.value.kind == "invalid"


def test_values_are_compared_as_sets() -> None:
    assert properties.are_set({"a": ["y", "x"], "b": ["z"]}, {"a": ["x", "y"]}) is True
    assert properties.are_set({"a": ["x"]}, {"a": ["x", "y"]}) is False
    assert properties.are_set({}, {"a": [""]}) is False
    assert properties.are_set(None, {"a": ["x"]}) is None


def test_item_without_properties_is_not_missing(server: Server) -> None:
    none = {"errors": [{"status": 404, "message": "No properties could be found."}]}
    server.on["GET /api/storage/r/p?properties"] = Reply(404, none)
    assert properties.read(server.client(), "r", "p") == {}
    server.on["GET /api/storage/r/p?properties"] = Reply(404, "Not Found")
    client = server.client()
    assert properties.read(client, "r", "p") is None
    assert properties.read(client, "r", "other") is None
    assert len(server.asked) == 2


def test_dropped_property_is_an_error(server: Server) -> None:
    server.on["PUT /api/storage/r/p?properties=a=1|b=2"] = Reply(204)
    server.on["GET /api/storage/r/p?properties"] = Reply(body={"properties": {"a": ["1"]}})
    with pytest.raises(ToolchainError, match=r"did not save b$") as caught:
        properties.write(server.client(), "r", "p", {"a": ["1"], "b": ["2"]})
    assert caught.value.kind == "rejected"


def test_lost_response_is_verified(server: Server) -> None:
    server.on["PUT /api/storage/r/p?properties=a=1"] = Reply(cut=True)
    server.on["GET /api/storage/r/p?properties"] = Reply(body={"properties": {"a": ["1"]}})
    properties.write(server.client(), "r", "p", {"a": ["1"]})
    assert [name.split()[0] for name in server.asked].count("PUT") == 1


def test_dialect_decides_if_properties_are_read_back(server: Server) -> None:
    server.dialect = "generic"
    server.on["PUT /storage/r/p?properties=a=1"] = Reply(204)
    properties.write(server.client(), "r", "p", {"a": ["1"]})
    assert server.asked[0] == "PUT /storage/r/p?properties=a=1"
    assert "properties=a%3D1" in server.stub.seen[0].target


def test_properties_of_a_folder_take_one_query(server: Server) -> None:
    rows = [
        {"repo": "r", "path": "d/e", "name": "f", "properties": [{"key": "k", "value": "1"}]},
        {"repo": "r", "path": "d/e", "name": "f", "properties": [{"key": "k", "value": "2"}]},
        {"repo": "r", "path": "d", "name": "g"},
    ]
    server.on["POST /api/search/aql"] = Reply(body="\n" + json.dumps({"results": rows}))
    found = properties.read_below(server.client(), "r", 'd"q')
    assert found == {"d/e/f": {"k": ["1", "2"]}, "d/g": {}}
    text = server.stub.seen[0].body.decode()
    assert text.startswith('items.find({"repo": "r", "type": "file", "$or": [{"path": "d\\"q"}')
    assert text.endswith('.include("repo", "path", "name", "property")')


def test_trimmed_query_result_is_discarded(server: Server) -> None:
    trimmed = {"results": [], "range": {"notification": "results are trimmed"}}
    server.on["POST /api/search/aql"] = Reply(body=trimmed)
    assert properties.read_below(server.client(), "r", "d") is None
