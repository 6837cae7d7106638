# SPDX-License-Identifier: GPL-3.0-or-later
"""Test quoting and order of queries, with an independent reader of JQL strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.jql import (
    quote,
    with_unique_order,
)
from sandbox.tracker.search import jql as server

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def read_string(text: str) -> tuple[str, str]:
    """Return the value of the JQL string at the start of `text`, and the rest."""
    assert text[0] == '"'
    value, position = "", 1
    simple = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", " ": " "}
    while text[position] != '"':
        if text[position] != "\\":
            assert text[position] not in "\n\r\t\0"
            value, position = value + text[position], position + 1
        elif text[position + 1] == "u":
            value += chr(int(text[position + 2 : position + 6], 16))
            position += 6
        else:
            value, position = value + simple[text[position + 1]], position + 2
    return value, text[position + 1 :]


@given(TEXTS)
def test_quoted_value_is_decoded_unchanged(value: str) -> None:
    assert read_string(quote(value)) == (value, "")


@given(TEXTS, TEXTS)
def test_value_cannot_leave_its_quotes(first: str, second: str) -> None:
    query = f"summary ~ {quote(first)} AND labels = {quote(second)}"
    parsed = server.parse(query).where
    assert parsed == server.And(
        (
            server.Clause("summary", "~", server.Operand("value", (first,))),
            server.Clause("labels", "=", server.Operand("value", (second,))),
        )
    )


@given(TEXTS)
def test_order_inside_a_value_is_ignored(value: str) -> None:
    query = f"summary ~ {quote(value + ' ORDER BY key')}"
    assert with_unique_order(query) == f"{query} ORDER BY key"


def test_unpaired_surrogate_is_rejected() -> None:
    with pytest.raises(ToolchainError, match="surrogate"):
        quote("\ud83d")


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("", "ORDER BY key"),
        ("  ", "ORDER BY key"),
        ("project = REL", "project = REL ORDER BY key"),
        ("project = REL ORDER BY created DESC", "project = REL ORDER BY created DESC, key"),
        ("project = REL order\nby created", "project = REL order\nby created, key"),
        ("ORDER BY rank", "ORDER BY rank, key"),
        ("summary ~ 'order by'", "summary ~ 'order by' ORDER BY key"),
        (r'summary ~ "a\" order by key"', r'summary ~ "a\" order by key" ORDER BY key'),
        ('ORDER BY "Story Points" ASC', 'ORDER BY "Story Points" ASC, key'),
        ("text ~ reorder ORDER BY cf[10001] DESC", "text ~ reorder ORDER BY cf[10001] DESC, key"),
    ],
)
def test_query_without_unique_order_is_ordered_by_key(query: str, sent: str) -> None:
    assert with_unique_order(query) == sent


@pytest.mark.parametrize(
    "query",
    [
        "ORDER BY key",
        "project = REL ORDER BY priority, Key DESC",
        "project = REL ORDER BY issuekey ASC, created",
        'project = REL ORDER BY "id"',
        # No example parses: the server's error message must match the user's input.
        "project = REL ORDER BY",
        "project = REL ORDER BY created,",
        'summary ~ "open',
        "summary ~ 'it\\",
    ],
)
def test_uniquely_ordered_query_is_unchanged(query: str) -> None:
    assert with_unique_order(query) == query
