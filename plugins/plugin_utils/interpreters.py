# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare names of Python interpreters."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def is_same(one: str, other: str, search_path: str | None = None) -> bool:
    """Return whether both names start the same Python with the same libraries.

    A name without a folder is resolved with `search_path`. Links to the same program are equal, but
    a virtual environment, whose program is also a link, differs by its libraries.
    """
    found = _located(one, search_path)
    return found is not None and _identity(found) == _identity(other)


def _located(name: str, search_path: str | None) -> str | None:
    """Return the program in a command line, with or without `/usr/bin/env`; `None` without it."""
    words = name.split()
    if len(words) == 2 and os.path.basename(words[0]) == "env":
        words = words[1:]
    return shutil.which(words[0], path=search_path) if len(words) == 1 else None


def _identity(program: str) -> tuple[str, str | None]:
    """Return the resolved program and its virtual environment, if any.

    Python searches `pyvenv.cfg` next to the program and one folder above, before it follows links.
    """
    folder = Path(os.path.abspath(program)).parent
    for place in (folder, folder.parent):
        if (place / "pyvenv.cfg").is_file():
            return os.path.realpath(program), os.path.realpath(place)
    return os.path.realpath(program), None
