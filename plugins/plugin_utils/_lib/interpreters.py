# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare Python interpreters."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def is_same(name: str, other: str, search_path: str | None = None) -> bool:
    """Return whether two names stand for the same Python with the same libraries.

    Links to the same program are equal, unless they are in different virtual environments.

    :param name: path, name or command with `env`, such as `/usr/bin/env python3`
    :param other: path of a program
    :param search_path: folders for a name, separated as in `PATH`
    """
    words = name.split()
    if len(words) == 2 and os.path.basename(words[0]) == "env":
        words = words[1:]
    found = shutil.which(words[0], path=search_path) if len(words) == 1 else None
    return found is not None and _identity(found) == _identity(other)


def _identity(program: str) -> tuple[str, str | None]:
    """Return the path of a program with links resolved, and its virtual environment if any.

    Like Python, search `pyvenv.cfg` before links are followed: in the folder of the program, and in
    the parent folder.
    """
    folder = Path(os.path.abspath(program)).parent
    for root in (folder, folder.parent):
        if (root / "pyvenv.cfg").is_file():
            return os.path.realpath(program), os.path.realpath(root)
    return os.path.realpath(program), None
