# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the language of patterns [C1.7]."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.globs import (
    Patterns,
    crossing,
    hint,
    matcher,
    with_content,
)

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
PATHS = ("a.txt", "d/b.txt", "d/e/c.txt", "n", "d/[x]")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["a.txt"]),
        ("*", ["a.txt", "n"]),
        ("**", [*PATHS]),
        ("**/*.txt", ["a.txt", "d/b.txt", "d/e/c.txt"]),
        ("**.txt", ["a.txt", "d/b.txt", "d/e/c.txt"]),
        ("d/", ["d/b.txt", "d/e/c.txt", "d/[x]"]),
        ("d/**", ["d/b.txt", "d/e/c.txt", "d/[x]"]),
        ("d/*", ["d/b.txt", "d/[x]"]),
        ("d/**/*.txt", ["d/b.txt", "d/e/c.txt"]),
        ("d/**/e/**/c.txt", ["d/e/c.txt"]),
        ("d/?.txt", ["d/b.txt"]),
        ("d?b.txt", []),
        ("d/[x]", ["d/[x]"]),
        ("[a].txt", []),
        ("A.TXT", []),
    ],
)
def test_pattern_matches_expected_paths(pattern: str, expected: list[str]) -> None:
    patterns = Patterns("exclude", [pattern])
    assert [path for path in PATHS if patterns.fits(path)] == expected
    assert patterns.unused == ([] if expected else [pattern])


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("*b.txt", "**/*b.txt"),
        ("d/*c.txt", "d/**/*c.txt"),
        ("d*", "d**"),
        ("*/c.txt", "*/**/c.txt"),
        ("d*e/", "d**e/"),
        ("*.iso", None),
        ("N", None),
        ("d?b.txt", None),
    ],
)
def test_single_star_across_folders_gives_a_hint(pattern: str, instead: str | None) -> None:
    patterns = Patterns("exclude", [pattern])
    assert not [path for path in PATHS if patterns.fits(path)]
    (warning,) = patterns.warnings("no file")
    if instead is None:
        assert (warning, patterns.hints) == (f"exclude: '{pattern}' matches no file", [])
        return
    assert warning.endswith(f": * does not match slashes, write '{instead}'")
    assert patterns.hints == [warning]
    better = Patterns("exclude", [instead])
    assert [path for path in PATHS if better.fits(path)]


def test_pattern_without_wider_meaning_gives_no_hint() -> None:
    patterns = Patterns("exclude", ["**/*.txt"])
    assert any(patterns.fits(path) for path in PATHS)
    assert list(patterns.warnings("no file")) == []


def test_match_by_one_name_gives_no_hint() -> None:
    patterns = Patterns("exclude", ["*.txt"])
    assert patterns.fits("a.txt", "repo/a.txt")
    assert list(patterns.warnings("no file")) == []


def test_matching_pattern_that_could_match_more_gives_a_hint() -> None:
    patterns = Patterns("exclude", ["*.txt"])
    assert [path for path in PATHS if patterns.fits(path)] == ["a.txt"]
    assert list(patterns.warnings("no file")) == [
        "exclude: '*.txt' does not match 'd/b.txt': * does not match slashes, write '**/*.txt'"
    ]


TEXTS = st.text("ab/.*?+[", min_size=1, max_size=6)


@given(TEXTS, TEXTS)
def test_suggested_pattern_matches(pattern: str, name: str) -> None:
    found = hint(pattern, [name])
    if found:
        assert not matcher(with_content(pattern))(name)
        instead = Patterns("exclude", [found.rpartition("write '")[2].removesuffix("'")])
        assert instead.fits(name)


@given(TEXTS, TEXTS)
def test_crossing_pattern_matches_at_least_as_much(pattern: str, name: str) -> None:
    assert matcher(crossing(pattern))(name) or not matcher(pattern)(name)


def test_no_other_pattern_language_is_used() -> None:
    """`glob` finds the local files of `artifact_deploy`, which `matcher` then filters."""
    using = {
        path.name: sorted(set(re.findall(r"\b(?:fnmatch|import glob)\b", text)))
        for path in PLUGINS.rglob("*.py")
        if re.search(r"\bfnmatch|^import glob", text := path.read_text("utf-8"), re.M)
    }
    assert using == {"sources.py": ["import glob"]}


_MEANINGS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?"]), max_size=8),
    st.lists(st.text("ab/", max_size=9), min_size=5, max_size=20),
)
def test_pattern_equals_its_naive_expression(tokens: list[str], paths: list[str]) -> None:
    """Compare with the expression that may try every combination, and so may take hours."""
    pattern = "".join(tokens)
    found = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern)
    plain = re.compile("".join(_MEANINGS.get(each) or re.escape(each) for each in found))
    expected = [plain.fullmatch(path) is not None for path in paths]
    assert [matcher(pattern)(path) for path in paths] == expected
