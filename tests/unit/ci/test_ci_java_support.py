# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the Java versions that a release supports, and the filter that returns them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.filter.ci_java_support import (
    TABLE,
    FilterModule,
    ci_java_support,
)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda self, text, *rest, **more: said.append(text))
    return said


@pytest.mark.parametrize(
    ("release", "versions"),
    [
        # written interface [W9]: the long-term column
        ("2.361.1", [11, 17]),
        ("2.387.3", [11, 17]),
        ("2.346.1", [8, 11, 17]),
        ("2.346.3", [8, 11, 17]),
        # the weekly column
        ("2.419", [11, 17, 21]),
        ("2.418", [11, 17]),
        ("2.357", [11, 17]),
        ("2.356", [8, 11, 17]),
        ("2.340", [8, 11, 17]),
        # every line has its own column: as a weekly release this is past 2.357
        ("2.361", [11, 17]),
        # newer than the written interface: the vendor's policy
        ("2.426.1", [11, 17, 21]),
        ("2.479.3", [17, 21]),
        ("2.463", [17, 21]),
        ("2.533", [17, 21]),
        ("2.528.3", [17, 21]),
        ("2.534", [17, 21, 25]),
        ("2.541.1", [17, 21, 25]),
        ("2.545", [21, 25]),
        ("2.555.1", [21, 25]),
    ],
)
def test_java_versions_of_weekly_and_lts_releases(
    release: str, versions: list[int], warnings: list[str]
) -> None:
    assert ci_java_support(release) == versions
    assert ci_java_support(release, source="vendor") == versions
    assert warnings == []


def test_doubtful_table_row_is_marked(warnings: list[str]) -> None:
    """The written interface has Java 17 for a release that is older than that Java."""
    assert [row.lts for row in TABLE if row.doubtful] == ["2.164.1"]
    assert ci_java_support("2.164.1") == [8, 17]
    assert "contradict each other" in warnings.pop()
    assert ci_java_support(" 2.200 ") == [8, 17]
    assert "2.200" in warnings.pop()
    assert ci_java_support("2.339", source="vendor") == [8, 11]
    assert warnings == []


def test_rows_are_ordered_in_both_columns() -> None:
    for column in ("weekly", "lts"):
        firsts = [getattr(row, column) for row in TABLE]
        numbers = [tuple(map(int, first.split("."))) for first in firsts]
        assert numbers == sorted(numbers, reverse=True), column


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("lts", "is not a release"),
        ("2", "is not a release"),
        ("2.346.1.1", "is not a release"),
        ("2.346.x", "is not a release"),
        ("", "is not a release"),
        ("2.100", "older than the table"),
        ("2.150.3", "older than the table"),
        (2.34, "must be a string"),
        (None, "must be a string"),
    ],
)
def test_unknown_release_is_an_error(release: Any, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        ci_java_support(release)


def test_unknown_source_is_rejected() -> None:
    with pytest.raises(AnsibleFilterError, match="must be 'interface' or 'vendor'"):
        ci_java_support("2.346.1", source="somebody")


def test_filter_has_name_of_its_file() -> None:
    assert list(FilterModule().filters()) == [Path(ci_java_support.__code__.co_filename).stem]
