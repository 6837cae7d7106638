# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that responses parsed row by row give the same result as responses parsed whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import aql
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
ROWS = st.lists(st.dictionaries(TEXTS, st.one_of(SCALARS, st.lists(SCALARS))), max_size=5)
MEMBERS = st.dictionaries(TEXTS.filter(lambda name: name != "rows"), SCALARS, max_size=3)


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def parsed(body: bytes, size: int = 7) -> aql.StreamedObject:
    found = aql.StreamedObject()
    aql.parse(pieces(body, size), "rows", found)
    return found


WRITTEN = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 1]), "ensure_ascii": st.booleans()}
)


@given(ROWS, MEMBERS, MEMBERS, st.integers(1, 20), WRITTEN)
def test_rows_do_not_depend_on_chunk_borders(
    rows: list[dict[str, Any]],
    before: dict[str, Any],
    after: dict[str, Any],
    size: int,
    written: dict[str, Any],
) -> None:
    after = {name: value for name, value in after.items() if name not in before}
    whole = {**before, "rows": rows, **after}
    found = parsed(f"\n{json.dumps(whole, **written)}\n".encode(), size)
    assert found.rows == rows
    assert found.members == {**before, **after}


@given(ROWS, st.data())
def test_truncated_document_is_never_accepted(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    body = json.dumps({"rows": rows, "range": {"total": 1}}).encode()
    end = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(aql.InvalidJson):
        parsed(body[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"<html></html>",
        b"[]",
        b"{}",
        b'{"rows": {}}',
        b'{"rows": [}',
        b'{"rows": [1 2]}',
        b'{"rows": []} x',
        b'{"rows" []}',
    ],
)
def test_document_of_another_shape_is_rejected(body: bytes) -> None:
    with pytest.raises(aql.InvalidJson):
        parsed(body)


def test_endless_value_is_not_read_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aql, "_LONGEST", 1000)
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield b'{"rows": ["'
        while True:
            read += 1
            yield b"a" * 100

    with pytest.raises(aql.InvalidJson):
        aql.parse(endless(), "rows", aql.StreamedObject())
    assert read < 20


BROKEN = Reply(body='{"files": [{"uri": "/a"}, {"uri"')
WHOLE = Reply(body={"files": [{"uri": "/a"}, {"uri": "/b"}]})
CUT = Reply(body=b'{"files": [{"uri": "/a"}, ', headers={"Content-Length": "99"}, truncate=26)


def client(server: Server, retries: int) -> RepoClient:
    task = server.task()
    settings = {**task.connection.settings, "retries": retries}
    object.__setattr__(task.connection, "settings", settings)
    return RepoClient(task)


@pytest.mark.parametrize("first", [BROKEN, CUT])
def test_truncated_response_is_requested_again(server: Server, first: Reply) -> None:
    server.on["GET /x"] = [first, WHOLE]
    asking = client(server, retries=1)
    found = aql.read_rows(asking, "listing", "x", "files")
    assert [row["uri"] for row in found.rows] == ["/a", "/b"]
    assert asking.transport.accounting.retries == 1
    assert len(server.asked) == 2


@pytest.mark.parametrize(("first", "kind"), [(BROKEN, "protocol"), (CUT, "network")])
def test_repeatedly_truncated_response_is_an_error(server: Server, first: Reply, kind: str) -> None:
    server.on["GET /x"] = first
    with pytest.raises(ToolchainError) as caught:
        aql.read_rows(client(server, retries=1), "listing", "x", "files")
    assert caught.value.kind == kind
    assert len(server.asked) == 2
    with pytest.raises(ToolchainError):
        aql.read_rows(client(server, retries=0), "listing", "x", "files")
    assert len(server.asked) == 3


def test_html_page_is_an_error(server: Server) -> None:
    server.on["GET /x"] = Reply(body="<html><title>Welcome</title></html>")
    with pytest.raises(ToolchainError, match="HTML instead of JSON with 'files'") as caught:
        aql.read_rows(client(server, retries=1), "listing", "x", "files")
    assert caught.value.kind == "protocol"
    assert len(server.asked) == 1


def test_unpaired_surrogate_in_a_row_is_replaced() -> None:
    body = b'{"rows": [{"name": "a\\ud83d"}, {"name": "\\ud83d\\ude00"}]}'
    assert [row["name"] for row in parsed(body).rows] == ["a\ufffd", "\U0001f600"]


def test_too_deeply_nested_rows_are_rejected(server: Server) -> None:
    server.on["GET /x"] = Reply(200, '{"rows": [' + '{"a":' * 300 + "1" + "}" * 300 + "]}")
    with pytest.raises(ToolchainError, match="deeper than 200 levels") as caught:
        aql.read_rows(server.client(), "reading", "x", "rows")
    assert caught.value.kind == "protocol"
