# SPDX-License-Identifier: GPL-3.0-or-later
"""Test whether two names refer to the same interpreter: links do, virtual environments do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import interpreters


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Create two Pythons, more names of the first, its environment, and a link to that."""
    system, environment = tmp_path / "usr" / "bin", tmp_path / "venv" / "bin"
    for folder in (system, environment):
        folder.mkdir(parents=True)
    for name in ("python3.12", "python3.13"):
        (system / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (system / name).chmod(0o755)
    (system / "python3").symlink_to("python3.12")
    (environment / "python").symlink_to(system / "python3.12")
    (environment / "python3").symlink_to("python")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = usr/bin\n", encoding="utf-8")
    (tmp_path / "current").symlink_to("venv")
    (tmp_path / "bin").symlink_to("usr/bin")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("usr/bin/python3.12", "usr/bin/python3.12", True),
        ("usr/bin/python3", "usr/bin/python3.12", True),
        ("bin/python3", "usr/bin/python3.12", True),
        ("venv/bin/python3", "venv/bin/python", True),
        ("current/bin/python", "venv/bin/python", True),
        ("venv/bin/../bin/python", "venv/bin/python", True),
        ("usr/bin/python3.12", "venv/bin/python", False),
        ("usr/bin/python3.13", "usr/bin/python3.12", False),
        ("usr/bin/python3.11", "usr/bin/python3.12", False),
    ],
)
def test_paths_of_the_same_interpreter_are_recognized(
    tree: Path, one: str, other: str, same: bool
) -> None:
    assert interpreters.is_same(str(tree / one), str(tree / other)) is same


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ("python3", True),
        ("/usr/bin/env python3", True),
        ("python3.13", False),
        ("python3 -I", False),
        ("", False),
    ],
)
def test_names_without_folder_are_searched_in_path(tree: Path, asked: str, same: bool) -> None:
    path = os.pathsep.join([str(tree / "usr" / "bin"), str(tree / "venv" / "bin")])
    running = str(tree / "usr" / "bin" / "python3.12")
    assert interpreters.is_same(asked, running, path) is same
