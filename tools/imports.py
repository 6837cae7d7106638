# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow the imports between the Python files of the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from tools import tree

Direction: TypeAlias = Literal["dependencies", "dependents"]


def closure(paths: Iterable[str], direction: Direction, *, steps: int = -1) -> set[str]:
    """Return files, given as paths in the repository, with those that they import or that import
    them, at any number of removes, or at most `steps`.
    """
    known, reached = _graph(direction), set(paths)
    new = reached
    while new and steps:
        new = {each for path in new for each in known.get(path, ())} - reached
        reached = reached | new
        steps -= 1
    return reached


@cache
def _graph(direction: Direction) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory(prefix="toolchain-imports-") as name:
        root = tree.link_tree(Path(name))
        # the folders of the collection are packages without __init__.py
        folders = [root.parents[1], root.parent, root, *(root / "plugins").rglob("*/")]
        packages = [str(each.relative_to(name)) for each in folders if each.is_dir()]
        settings = {"namespace-packages": packages, "src": [name, str(root)]}
        command = [str(Path(sys.executable).parent / "ruff"), "analyze", "graph", "--preview"]
        command += ["--direction", direction, str(tree.COLLECTION)]
        for key, value in settings.items():
            command += ["--config", f"{key} = {json.dumps(value)}"]
        done = subprocess.run(command, check=True, cwd=name, capture_output=True, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout.replace(f"{tree.COLLECTION}/", ""))
    return found
