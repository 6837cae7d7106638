# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the table of tested versions: pairs that ran now, that ran before, and that
could not run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import matrix

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
