# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the changelog and a benchmark, which programs in separate processes make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import tree


def test_changelog_is_that_of_its_fragments(tmp_path: Path) -> None:
    written = tmp_path / "CHANGELOG.md"
    program = str(Path(sys.executable).parent / "antsibull-changelog")
    command = [program, "generate", "--output", str(written), "--output-format", "md"]
    subprocess.run(command, cwd=tree.ROOT, check=True, capture_output=True)
    assert written.read_text(encoding="utf-8") == (tree.ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


def test_benchmark_starts_without_environment_variables() -> None:
    unset = ("ANSIBLE_COLLECTIONS_PATH", "PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--smallest", "analysis_search"],
        cwd=tree.ROOT,
        env={name: value for name, value in os.environ.items() if name not in unset},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1,000 issues" in done.stdout
