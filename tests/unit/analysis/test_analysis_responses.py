# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis import responses
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)

ROLE = {"name": "developers", "readonly": False}
# Members of a record; the search of real servers has both `status` and `message`.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RECORDS = st.lists(st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=5))


def read(body: bytes) -> list[dict[str, Any]]:
    return list(responses.records(body.split(b"\n")))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"\n\r\n\n", []),
        (b'{"name": "a"}', [{"name": "a"}]),
        (b'{"name": "a"}\n', [{"name": "a"}]),
        (b'{"name": "a"}\r\n\r\n{"name": "b"}\r\n', [{"name": "a"}, {"name": "b"}]),
        (b'\xef\xbb\xbf{"name": "a"}\n{"name": "b"}', [{"name": "a"}, {"name": "b"}]),
        (
            b'{\n  "rows": [\n    {"id": 1}\n  ],\n\n  "data": [[2]]\n}\n',
            [{"rows": [{"id": 1}], "data": [[2]]}],
        ),
        (b'{"url": "a\\u003db"}\n', [{"url": "a=b"}]),
        ('{"name": "größe\u2028\u0085"}\n'.encode(), [{"name": "größe\u2028\u0085"}]),
    ],
)
def test_records_are_read_with_any_line_end(body: bytes, expected: list[Any]) -> None:
    assert read(body) == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"name": "a"}\n{"name": "b', "truncated"),
        (b'{"name": "a', "truncated"),
        (b'{\n  "rows": [\n', "truncated"),
        (b'{"name": "a"}\nnonsense\n{"name": "b"}\n', "not JSON"),
        (b'{"name": "a"}\n{"name": \n{"name": "b"}\n', "not JSON"),
        (b"<html><body>Reference</body></html>", "not JSON"),
        (b"[1, 2]\n", "not a JSON object"),
        (b'"text"\n', "not a JSON object"),
        (b"null\n", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"name": "\xff"}\n', "truncated"),
    ],
)
def test_malformed_response_is_rejected(body: bytes, words: str) -> None:
    with pytest.raises(responses.UnreadableResponse, match=words):
        read(body)


def test_records_are_yielded_line_by_line() -> None:
    def lines() -> Any:
        yield b'{"id": 1}'
        raise ConnectionError("the rest never came")

    reading = responses.records(lines())
    assert next(reading) == {"id": 1}


@given(RECORDS, st.sampled_from(["\n", "\r\n", "\n\n", "\r\n \r\n"]), st.booleans())
def test_any_records_survive_any_line_end(
    records: list[dict[str, Any]], end: str, trailing: bool
) -> None:
    body = end.join(json.dumps(record, ensure_ascii=False) for record in records)
    assert read((body + (end if trailing else "")).encode()) == records


@given(RECORDS.filter(bool), st.integers(1, 10))
def test_truncated_last_line_is_never_accepted(records: list[dict[str, Any]], missing: int) -> None:
    body = "\n".join(json.dumps(record) for record in records)
    last = len(json.dumps(records[-1]))
    cut = body[: -min(missing, last - 1)]
    with pytest.raises(responses.UnreadableResponse, match="truncated"):
        read(cut.encode())


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"status": 400, "message": "bad"}, responses.Refusal(400, "bad")),
        ({"message": "bad", "status": 500}, responses.Refusal(500, "bad")),
        ({"status": 403}, responses.Refusal(403, "")),
        ({"status": "Analyze", "message": "an issue"}, None),
        ({"status": 1, "message": "an issue", "id": 7}, None),
        ({"status": True, "message": "a flag"}, None),
        ({"status": 200, "message": "done"}, None),
        ({"message": "no status"}, None),
        (ROLE, None),
    ],
)
def test_error_object_is_distinguished_from_a_record(
    record: dict[str, Any], expected: responses.Refusal | None
) -> None:
    assert responses.refusal_of(record) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        ("true", True),
        ("True", True),
        (1, True),
        ("1", True),
        (False, False),
        ("false", False),
        (0, False),
        ("", False),
        (None, False),
        ("no", False),
        ([], False),
    ],
)
def test_flag_may_be_boolean_number_or_string(value: Any, expected: bool) -> None:
    assert responses.flag(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ([], []),
        ("", []),
        (["a", "b,c"], ["a", "b,c"]),
        ("a,b", ["a", "b"]),
        (r"a\,b, c\\", ["a,b", "c\\"]),
    ],
)
def test_strings_may_be_a_list_or_comma_list(value: Any, expected: list[str]) -> None:
    assert responses.texts({"paths": value}, "paths") == expected


@pytest.mark.parametrize("value", [5, {"a": 1}, [["a"]], [None]])
def test_malformed_list_of_strings_is_reported(value: Any) -> None:
    with pytest.raises(ToolchainError, match="paths") as caught:
        responses.texts({"paths": value}, "paths")
    assert caught.value.kind == "protocol"


def test_records_without_name_are_ignored_and_numbers_are_names() -> None:
    unnamed: list[Any] = [None, [], {}, True, 1.5, ""]
    found = responses.named([{}, *({"name": name} for name in unnamed), ROLE, {"name": 7}])
    assert list(found) == [ROLE, {"name": "7"}]


def test_name_may_be_another_member() -> None:
    assert list(responses.named([{"code": "ABV"}, {"name": "ABV"}], "code")) == [{"code": "ABV"}]
