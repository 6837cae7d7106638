# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the bounds of YAML that others wrote."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.yaml_text import (
    MAX_DEPTH,
    UnreadableYaml,
    parse_yaml,
    reason_of,
)


def bomb(levels: int, join: str = "[{}]") -> str:
    """Return lines of which each repeats the line before ten times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels + 1):
        body = join.format(", ".join([f"*a{level - 1}"] * 10))
        lines.append(f"a{level}: &a{level} {body}")
    return "\n".join(lines)


def chain(length: int) -> str:
    """Return lines whose values nest: each line is one level deeper than the previous one."""
    lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, length))]
    return "\n".join(lines)


class Tagged(str):
    """A subclass of str, as the strings of variables since ansible-core 2.19."""

    __slots__ = ()


def test_string_of_a_variable_is_read() -> None:
    assert parse_yaml(Tagged("- a\n- {b: 1}")) == ["a", {"b": 1}]


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (bomb(9), "aliases stand for more than", 7),
        (bomb(9, "{{<<: [{}]}}"), "aliases stand for more than", 7),
        ("[" * 1500 + "]" * 1500, "nested deeper than 100 levels", 1),
        ("[" * 200_000, "nested deeper than 100 levels", 1),
        ("{a: " * 101 + "1" + "}" * 101, "nested deeper than 100 levels", 1),
        ("\n".join(" " * n + "a:" for n in range(300)), "nested deeper than 100 levels", 101),
        (chain(200), "nested deeper than 100 levels", 100),
        ("x: &a\n  y: *a", "a value contains itself", 2),
        ("- &a [1]\n- &a [2]", "second occurrence", 2),
        ("x: &a [&b {c: *a}]", "a value contains itself", 1),
        ("a: [1", "expected", None),
        ("x: 1\ny: *b", "undefined alias", 2),
        ("2026-13-45", "month must be in 1..12", None),
        ("a\0b", "control characters are not allowed", None),
    ],
    ids=range(14),
)
def test_hostile_text_is_one_sentence(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(UnreadableYaml, match=reason) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 200
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: &x {b: 1}\nc: [*x, *x]", {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        (b"\xef\xbb\xbfa: \xc3\xb6", {"a": "ö"}),
    ],
)
def test_aliases_within_the_bounds_are_resolved(text: str | bytes, value: object) -> None:
    assert parse_yaml(text) == value


def test_allowed_nesting_is_parsed() -> None:
    assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert len(parse_yaml(f"[{'1, ' * 10_000}]")) == 10_000


def test_limit_of_newer_libyaml_has_the_same_sentence() -> None:
    class ScannerError(Exception):
        problem = "exceeded maximum nesting depth"

    assert reason_of(ScannerError()) == f"it is nested deeper than {MAX_DEPTH} levels"
