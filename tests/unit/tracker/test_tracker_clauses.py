# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the filters `jql` and `jql_quote`."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.filter.jql import FilterModule as JqlFilters
from ansible_collections.delivery.toolchain.plugins.filter.jql_quote import (
    FilterModule as QuoteFilters,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.jql import (
    RESERVED_WORDS,
    require_no_offsets,
)
from sandbox.tracker.search import jql as server
from sandbox.tracker.search.jql_words import RESERVED_WORDS as WORDS_OF_THE_SERVER

jql = JqlFilters().filters()["jql"]
jql_quote = QuoteFilters().filters()["jql_quote"]


@pytest.mark.parametrize(
    ("clauses", "options", "query"),
    [
        ({"project": "REL"}, {}, 'project = "REL"'),
        (
            {"project": "REL", "status": ["Open", "In Progress"], "assignee": None},
            {},
            'project = "REL" AND status in ("Open", "In Progress") AND assignee is EMPTY',
        ),
        ({"status !=": "Done"}, {}, 'status != "Done"'),
        ({"status!=": ["Done", "Open"]}, {}, 'status not in ("Done", "Open")'),
        ({"status NOT  IN": ["Done"]}, {}, 'status not in ("Done")'),
        ({"status in": "Done"}, {}, 'status in ("Done")'),
        ({"assignee is not": None}, {}, "assignee is not EMPTY"),
        ({"assignee is": "EMPTY"}, {}, "assignee is EMPTY"),
        ({"assignee !=": None}, {}, "assignee is not EMPTY"),
        ({"created >=": "-4w", "created <": "-1d"}, {}, 'created >= "-4w" AND created < "-1d"'),
        ({"summary ~": 'a "b" \\ c'}, {}, r'summary ~ "a \"b\" \\ c"'),
        ({"summary !~": "x"}, {}, 'summary !~ "x"'),
        ({"Story Points >": 3}, {}, '"Story Points" > 3'),
        ({"cf[10001]": "1.5"}, {}, 'cf[10001] = "1.5"'),
        ({"Order": "x"}, {}, '"Order" = "x"'),
        ({"flagged": True}, {}, 'flagged = "true"'),
        ({"due <=": datetime.date(2026, 1, 2)}, {}, 'due <= "2026-01-02"'),
        ({"due": datetime.datetime(2026, 1, 2, 3, 4)}, {}, 'due = "2026-01-02 03:04"'),  # noqa: DTZ001 - as YAML gives it
        ({"fixVersion": ["1.0", None]}, {}, '(fixVersion in ("1.0") OR fixVersion is EMPTY)'),
        (
            {"fixVersion !=": ["1.0", None]},
            {},
            '(fixVersion not in ("1.0") AND fixVersion is not EMPTY)',
        ),
        ({"assignee": {"function": "currentUser"}}, {}, "assignee = currentUser()"),
        (
            {"created >": {"function": "startOfDay()", "arguments": ["-1d"]}},
            {},
            'created > startOfDay("-1d")',
        ),
        (
            {"assignee in": {"function": "membersOf", "arguments": "it's us"}},
            {},
            'assignee in (membersOf("it\'s us"))',
        ),
        ({"x": "1", "y": "2"}, {"join": "or"}, 'x = "1" OR y = "2"'),
        ([{"project": "REL"}, {"status": "Open"}], {}, 'project = "REL" AND status = "Open"'),
        (
            [{"project": "REL", "status": "Open"}, {"key": "OPS-1"}],
            {"join": "or"},
            '(project = "REL" AND status = "Open") OR key = "OPS-1"',
        ),
        (
            [{"field": "created", "operator": ">=", "value": "-1d"}, "a = 1 OR b = 2"],
            {},
            'created >= "-1d" AND (a = 1 OR b = 2)',
        ),
        (
            {"project": "REL", "or": [{"status": "Open"}, {"labels": "x"}]},
            {},
            'project = "REL" AND (status = "Open" OR labels = "x")',
        ),
        ({"not": {"status": "Done"}}, {}, 'NOT (status = "Done")'),
        ("a = 1", {"order_by": "created DESC"}, "a = 1 ORDER BY created DESC"),
        (
            {"project": "REL"},
            {"order_by": ["priority desc", "Story Points", "key"]},
            'project = "REL" ORDER BY priority DESC, "Story Points", key',
        ),
        ("a = 1", {"order_by": "b desc, c d"}, 'a = 1 ORDER BY b DESC, "c d"'),
        ("a = 1", {"order_by": "b desc,\nc\n"}, "a = 1 ORDER BY b DESC, c"),
        ("a = 1", {"order_by": ""}, "a = 1"),
    ],
)
def test_clauses_become_a_query(clauses: Any, options: dict[str, Any], query: str) -> None:
    assert jql(clauses, **options) == query


@pytest.mark.parametrize(
    ("clauses", "options", "words"),
    [
        ({"status": []}, {}, "empty"),
        ({"status": [[]]}, {}, "but must be a string, a number"),
        ({"created >": None}, {}, "cannot be compared with nothing"),
        ({"created >": ["1"]}, {}, "cannot be compared with a list"),
        ({"a": {"unknown": 1}}, {}, "function"),
        ({"a": {"function": "x) OR (1"}}, {}, "function"),
        ([{"field": "a", "operator": "like", "value": 1}], {}, "not an operator"),
        ({"or": []}, {}, "has no clause"),
        ({"not": {}}, {}, "has no clause"),
        ({"a": 1}, {"join": "xor"}, "joined with"),
        (5, {}, "a dict, a list or a string"),
        ({}, {}, "every issue"),
        ([], {"order_by": "key"}, "every issue"),
        ("", {}, "empty"),
        ([{"a": 1}, " "], {"join": "or"}, "empty"),
        ([{"a": 1}, {}], {"join": "or"}, "no clause"),
        ({"fixVersion": 1.1}, {}, "fixVersion is the number 1.1"),
        ({"fixVersion": ["1.0", 1.1]}, {}, r"fixVersion\[1\] is the number 1.1"),
        ({"a": {"function": "f", "arguments": 1.1}}, {}, "YAML reads 1.10 as 1.1"),
        ({"project": ""}, {}, "project is empty: use null"),
        ({"status in": ["Open", " "]}, {}, r"status\[1\] is empty"),
        ({"created =>": "-1w"}, {}, "'=>' is not an operator of the query language: write '>='"),
        ({"created=<": "-1w"}, {}, "write '<='"),
        ({"status ==": "Open"}, {}, "write '='"),
        ({"status <>": "Done"}, {}, "write '!='"),
        ({"status!": "Done"}, {}, "write '!='"),
        ({"status not": "Done"}, {}, "write '!='"),
        ({"status notin": ["Done"]}, {}, "write 'not in'"),
        ({"status NOT_IN": ["Done"]}, {}, "write 'not in'"),
        ({"assignee isnot": None}, {}, "write 'is not'"),
        ({"summary like": "x"}, {}, "write '~'"),
        ({"summary not like": "x"}, {}, "write '!~'"),
        ({"created gte": "-1w"}, {}, "write '>='"),
        ({"created =!=": "-1w"}, {}, "which has = !="),
        ({"status was": "Open"}, {}, "as a string"),
        ({"status Was not IN": ["Open"]}, {}, "as a string"),
        ({"project = REL": "x"}, {}, "not a field followed by an operator"),
        ([{"field": "a", "operator": "=>", "value": 1}], {}, "write '>='"),
    ],
)
def test_invalid_clauses_are_rejected(clauses: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        jql(clauses, **options)


AWARE = datetime.datetime(2026, 5, 31, 10, 0, 59, tzinfo=datetime.timezone.utc)
WITH_OFFSET: list[Any] = [
    "2026-05-31T10:00:00+02:00",
    "2026-05-31T10:00:00Z",
    "2026-05-31T10:00:00.000+0200",
    "2026-05-31 10:00 +02",
    "2026-05-31 10:00 UTC",
    "2026-05-31t10:00z",
    AWARE,
]


@pytest.mark.parametrize("value", WITH_OFFSET)
@pytest.mark.parametrize("key", ["created >=", "created", "created in"])
def test_time_with_an_offset_is_rejected(key: str, value: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"write '2026-05-31 10:00' in that time zone"):
        jql({"project": "REL", key: value})


@pytest.mark.parametrize(
    "query",
    [
        'created >= "2026-05-31T10:00:00+02:00"',
        "created >= 2026-05-31T10:00Z",
        "summary ~ 'x' AND status changed AFTER '2026-05-31 10:00 +0200'",
        'created in ("2026-05-30", "2026-05-31T10:00Z")',
    ],
)
def test_time_with_an_offset_in_a_string_is_rejected(query: str) -> None:
    with pytest.raises(ToolchainError, match="a relative time such as '-2h'") as caught:
        require_no_offsets(query)
    assert caught.value.kind == "invalid"
    with pytest.raises(AnsibleFilterError, match="the time zone of the account"):
        jql([{"project": "REL"}, query])


@pytest.mark.parametrize(
    "query",
    [
        'summary ~ "2026-05-31T10:00:00+02:00"',
        'summary !~ "2026-05-31T10:00:00Z"',
        'created >= "2026-05-31 10:00"',
        'created >= "2026/05/31" AND updated >= -2h',
        'labels = "after 2026-05-31T10:00Z"',
    ],
)
def test_other_values_are_accepted(query: str) -> None:
    require_no_offsets(query)


def test_time_without_an_offset_becomes_minutes() -> None:
    assert jql({"created >=": AWARE.replace(tzinfo=None)}) == 'created >= "2026-05-31 10:00"'


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
            lambda name: name.strip() == name and not set(name) & set("=<>~!") and " " not in name
        ),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
        min_size=1,
    ).filter(lambda clauses: not {name.lower() for name in clauses} & {"and", "or", "not"})
)
def test_any_field_and_value_reach_the_server_unchanged(clauses: dict[str, str]) -> None:
    parsed = server.parse(jql(clauses)).where
    parts = parsed.parts if isinstance(parsed, server.And) else (parsed,)
    assert parts == tuple(
        server.Clause(name, "=", server.Operand("value", (value,)))
        for name, value in clauses.items()
    )


def test_reserved_words_are_quoted_as_fields() -> None:
    assert WORDS_OF_THE_SERVER <= RESERVED_WORDS
    for word in WORDS_OF_THE_SERVER - {"and", "or", "not"}:
        assert jql({word.upper(): "x"}) == f'"{word.upper()}" = "x"'


@pytest.mark.parametrize(
    ("value", "text"), [("a", '"a"'), (5, '"5"'), (True, '"true"'), ("\n\x00", r'"\n\u0000"')]
)
def test_value_is_quoted(value: Any, text: str) -> None:
    assert jql_quote(value) == text


@pytest.mark.parametrize("value", [None, ["a"], {"a": 1}, "\udc00"])
def test_non_scalar_is_rejected(value: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="jql_quote"):
        jql_quote(value)
