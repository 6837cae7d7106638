# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the checkout importable as `ansible_collections.delivery.toolchain`, also for programs.

`make test` has done that already when it starts pytest; this is for pytest started by hand.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

from tools import tree


def _importable() -> bool:
    try:
        return importlib.util.find_spec("ansible_collections.delivery.toolchain") is not None
    except ModuleNotFoundError:
        return False


if not _importable():
    _folder = tempfile.TemporaryDirectory(prefix="toolchain-tree-")
    tree.link_tree(Path(_folder.name))
    os.environ.update(tree.environment(Path(_folder.name)))
    sys.path.insert(0, _folder.name)
    importlib.invalidate_caches()
