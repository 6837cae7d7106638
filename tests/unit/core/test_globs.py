# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the one language of patterns [C1.7]."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils.core.paths.globs import (
    Patterns,
    crossing,
    hint,
    matcher,
    whole,
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
def test_patterns(pattern: str, expected: list[str]) -> None:
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
def test_a_star_that_was_meant_to_cross_folders(pattern: str, instead: str | None) -> None:
    patterns = Patterns("exclude", [pattern])
    assert not [path for path in PATHS if patterns.fits(path)]
    (warning,) = patterns.warnings("no file")
    if instead is None:
        assert (warning, patterns.hints) == (f"exclude: '{pattern}' matches no file", [])
        return
    assert warning.endswith(f": * ends at a slash, write '{instead}'")
    assert patterns.hints == [warning]
    better = Patterns("exclude", [instead])
    assert [path for path in PATHS if better.fits(path)]


def test_a_pattern_that_matches_all_that_it_could_mean_adds_no_warning() -> None:
    patterns = Patterns("exclude", ["**/*.txt"])
    assert any(patterns.fits(path) for path in PATHS)
    assert list(patterns.warnings("no file")) == []


def test_a_match_by_one_name_needs_no_hint_for_the_other_names() -> None:
    patterns = Patterns("exclude", ["*.txt"])
    assert patterns.fits("a.txt", "repo/a.txt")
    assert list(patterns.warnings("no file")) == []


def test_a_pattern_that_matches_could_have_meant_more() -> None:
    patterns = Patterns("exclude", ["*.txt"])
    assert [path for path in PATHS if patterns.fits(path)] == ["a.txt"]
    assert list(patterns.warnings("no file")) == [
        "exclude: '*.txt' does not match 'd/b.txt': * ends at a slash, write '**/*.txt'"
    ]


TEXTS = st.text("ab/.*?+[", min_size=1, max_size=6)


@given(TEXTS, TEXTS)
def test_what_to_write_matches(pattern: str, name: str) -> None:
    found = hint(pattern, [name])
    if found:
        assert not matcher(whole(pattern))(name)
        instead = Patterns("exclude", [found.rpartition("write '")[2].removesuffix("'")])
        assert instead.fits(name)


@given(TEXTS, TEXTS)
def test_a_crossing_pattern_matches_more(pattern: str, name: str) -> None:
    assert matcher(crossing(pattern))(name) or not matcher(pattern)(name)


def test_there_is_no_other_language_of_patterns() -> None:
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
def test_a_pattern_matches_as_its_plain_expression_does(
    tokens: list[str], paths: list[str]
) -> None:
    """Compare with the expression that may try every combination, and so may take hours."""
    pattern = "".join(tokens)
    found = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern)
    plain = re.compile("".join(_MEANINGS.get(each) or re.escape(each) for each in found))
    expected = [plain.fullmatch(path) is not None for path in paths]
    assert [matcher(pattern)(path) for path in paths] == expected
