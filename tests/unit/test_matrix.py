# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the table of tested versions: pairs that ran now, that ran before, and that could not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import matrix, tree

OLDEST, NEWEST = matrix.PAIRS[0], matrix.PAIRS[-1]
DONE = {"ansible-core": "2.16.0", "sanity": "passed", "unit": "1 failed", "contract": "passed"}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a copy of the page without pairs."""
    head, rest = matrix.PLATFORMS.read_text(encoding="utf-8").split(
        "<!-- written by make matrix -->"
    )
    copy = tmp_path / "platforms.md"
    tail = rest.partition("<!-- end -->")[2]
    copy.write_text(f"{head}<!-- written by make matrix --><!-- end -->{tail}", encoding="utf-8")
    monkeypatch.setattr(matrix, "PLATFORMS", copy)
    return copy


def test_pair_keeps_its_row_until_the_next_run(page: Path) -> None:
    before = page.read_text(encoding="utf-8")
    matrix.write({OLDEST: DONE, NEWEST: {"ansible-core": "not run: no Python 3.13 here"}})
    first = page.read_text(encoding="utf-8")
    assert "| release | Python | ansible-core | sanity | unit |" in first
    assert "| 2.16.0 | 3.10 | 2.16.0 | passed | 1 failed | passed |" in first
    assert "not run: no Python 3.13 here" in first
    matrix.write({OLDEST: {**DONE, "unit": "passed"}})
    second = page.read_text(encoding="utf-8")
    assert second == first.replace("| passed | 1 failed |", "| passed | passed |")
    assert second.partition("<!-- written")[0] == before.partition("<!-- written")[0]
    assert second.endswith(before.partition("<!-- end -->")[2])


def test_pairs_are_unique() -> None:
    assert len(set(matrix.PAIRS)) == len(matrix.PAIRS)


@pytest.mark.parametrize(
    ("names", "status"),
    [((), 0), (("2.21-3.14",), 1), (("2.21-3.14", "--first"), 1), (("oldest", "--brief"), 0)],
)
def test_named_pair_that_cannot_run_is_a_failure(
    names: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "environment", lambda pair: None)
    monkeypatch.setattr(matrix, "write", lambda cells: None)
    monkeypatch.setattr(tree, "copy_tree", lambda target: None)
    monkeypatch.setattr("sys.argv", ["matrix", *names])
    assert matrix.main() == status


def test_first_part_runs_the_tests_of_modules() -> None:
    found = matrix.commands(matrix.SUPPORTED[0], "first")
    commands = {name: " ".join(parts) for name, parts in found.items()}
    assert "tests/unit --ignore tests/unit/sandbox" in commands["unit"]
    assert commands["contract"].endswith("tests/contract")
    files = commands["first"].partition(" -m first ")[2].split()
    assert files
    for file in files:
        assert "pytest.mark.first" in (tree.ROOT / file).read_text(encoding="utf-8")


def test_brief_parts_together_run_the_export_and_the_whole_demo() -> None:
    oldest, newest = (matrix.commands(pair, "brief") for pair in matrix.NICKNAMES.values())
    assert oldest["features"][-1].endswith("test_exported_state_has_no_drift")
    assert newest["features"][-1].endswith("test_ci_nodes.py")
    assert (oldest["demo"][-1], newest["demo"][-1]) == ("--once", "tools.demo")


def test_platforms_and_readme_say_until_when_a_release_is_supported() -> None:
    page = matrix.PLATFORMS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (2\.\d+) \| until (\w+ \d+) \| (.*) \|$", page, re.M)
    dates = {release: date for release, date, _ours in rows}
    assert set(dates) == {".".join(pair.split("-")[0].split(".")[:2]) for pair in matrix.PAIRS}
    corrected = [release for release, _date, ours in rows if ours.startswith("corrections")]
    # three releases are supported at a time: the fourth ends when the newest appears
    assert corrected == list(dates)[-3:]
    oldest, middle, newest = corrected
    assert [pair.split("-")[0] for pair in matrix.SUPPORTED] == [oldest, newest]
    readme = " ".join((tree.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"support {oldest} until {dates[oldest]}, {middle} until {dates[middle]}, and {newest};"
        in readme
    )
    assert f"We correct errors on {oldest} and newer" in readme
