# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the table of tested versions: pairs that ran now, that ran before, and that could not run."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from tools import matrix, tree

OLDEST, NEWEST = matrix.PAIRS[0], matrix.PAIRS[-1]
DONE = {"ansible-core": "2.16.0", "sanity": "passed", "unit": "1 failed", "contract": "passed"}


def test_pair_keeps_its_cells_until_the_next_run() -> None:
    first = matrix.table(
        {OLDEST: DONE, NEWEST: {"ansible-core": "not run: no Python 3.13 here"}}, ""
    )
    lines = first.splitlines()
    assert lines[0].startswith("| release | Python | ansible-core | sanity | unit |")
    assert lines[2].startswith("| 2.16.0 | 3.10 | 2.16.0 | passed | 1 failed | passed |")
    assert "not run: no Python 3.13 here" in lines[3]
    second = matrix.table({OLDEST: {"unit": "passed"}}, first).splitlines()
    assert second[2] == lines[2].replace("1 failed", "passed")
    assert second[3] == lines[3]


def test_table_is_written_between_its_marks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "platforms.md"
    old = matrix.PLATFORMS.read_text(encoding="utf-8")
    page.write_text(old, encoding="utf-8")
    monkeypatch.setattr(matrix, "PLATFORMS", page)
    matrix._write({OLDEST: DONE})
    text = page.read_text(encoding="utf-8")
    assert "| 2.16.0 | 3.10 | 2.16.0 | passed |" in text
    assert text.partition("<!-- written")[0] == old.partition("<!-- written")[0]
    assert text.endswith(old.partition("<!-- end -->")[2])


def test_pairs_have_unique_names() -> None:
    names = [pair.name for pair in matrix.PAIRS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("names", "status"),
    [((), 0), (("2.21-3.14",), 1), (("2.21-3.14", "--first"), 1), (("oldest", "--brief"), 0)],
)
def test_named_pair_that_cannot_run_is_a_failure(
    names: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "environment", lambda pair: None)
    monkeypatch.setattr(matrix, "_write", lambda cells: None)
    monkeypatch.setattr(tree, "copy_tree", lambda target: None)
    monkeypatch.setattr("sys.argv", ["matrix", *names])
    assert matrix.main() == status


def test_supported_pairs_are_the_oldest_and_the_newest() -> None:
    by_name = {pair.name: pair for pair in matrix.PAIRS}
    oldest, newest = (by_name[name].release for name in matrix.SUPPORTED)
    # three releases are supported at a time: the fourth ends when the newest appears
    minor = [int(release.split(".")[1]) for release in matrix.END_OF_LIFE]
    assert newest == f"2.{max(minor)}"
    assert oldest == f"2.{max(minor) - 2}"
    assert {".".join(pair.release.split(".")[:2]) for pair in matrix.PAIRS} == set(
        matrix.END_OF_LIFE
    )


def test_first_part_runs_the_tests_of_modules() -> None:
    pair = next(pair for pair in matrix.PAIRS if pair.name == matrix.SUPPORTED[0])
    commands = {name: " ".join(parts) for name, parts in matrix.commands(pair, "first").items()}
    assert "tests/unit --ignore tests/unit/sandbox" in commands["unit"]
    assert commands["contract"].endswith("tests/contract")
    files = commands["first"].partition(" -m first ")[2].split()
    for file in files:
        assert "pytest.mark.first" in (tree.ROOT / file).read_text(encoding="utf-8")


def test_brief_parts_together_run_the_export_and_the_whole_demo() -> None:
    oldest, newest = (
        matrix.commands(pair, "brief")
        for pair in matrix.PAIRS
        if pair.name in matrix._NICKNAMES.values()
    )
    assert oldest["features"][-1].endswith("test_exported_state_has_no_drift")
    assert newest["features"][-1].endswith("test_ci_nodes.py")
    assert (oldest["demo"][-1], newest["demo"][-1]) == ("--once", "tools.demo")


def test_platforms_and_readme_say_until_when_a_release_is_supported() -> None:
    page = matrix.PLATFORMS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (2\.\d+) \| until (\w+ \d+) \| (.*) \|$", page, re.M)
    dates = {
        release: datetime.date.fromisoformat(f"{month}-01").strftime("%B %Y")
        for release, month in matrix.END_OF_LIFE.items()
    }
    assert {release: date for release, date, _ours in rows} == dates
    corrected = [release for release, _date, ours in rows if ours.startswith("corrections")]
    assert corrected == list(dates)[-3:]
    readme = " ".join((tree.ROOT / "README.md").read_text(encoding="utf-8").split())
    oldest, middle, newest = corrected
    assert (
        f"support {oldest} until {dates[oldest]}, {middle} until {dates[middle]}, and {newest};"
        in readme
    )
    assert f"We correct errors on {oldest} and newer" in readme
