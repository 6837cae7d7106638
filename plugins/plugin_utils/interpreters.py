# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether two names of a Python interpreter are one and the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def is_same(one: str, other: str, search_path: str | None = None) -> bool:
    """Whether both start the same Python with the same libraries.

    A name without a folder is looked for in C(search_path). Links to one program are the same,
    save that a virtual environment, whose program is a link, too, has libraries of its own.
    """
    found = _located(one, search_path)
    return found is not None and _identity(found) == _identity(other)


def _located(name: str, search_path: str | None) -> str | None:
    """The program that a command line names, C(/usr/bin/env) in front or not; C(None) where there
    is none.
    """
    words = name.split()
    if len(words) == 2 and os.path.basename(words[0]) == "env":
        words = words[1:]
    return shutil.which(words[0], path=search_path) if len(words) == 1 else None


def _identity(program: str) -> tuple[str, str | None]:
    """The file behind a name, and the virtual environment that this name belongs to: Python looks
    for its description beside the program and one folder above, before it follows links.
    """
    folder = Path(os.path.abspath(program)).parent
    for place in (folder, folder.parent):
        if (place / "pyvenv.cfg").is_file():
            return os.path.realpath(program), os.path.realpath(place)
    return os.path.realpath(program), None
