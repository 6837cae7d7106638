# SPDX-License-Identifier: GPL-3.0-or-later
"""Import the modules that the lines of the input name.

The arguments are the only libraries that can be imported, beside the standard library.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _Allowed(PathFinder):
    """Finds the allowed libraries, and no others."""

    _known = frozenset({*sys.stdlib_module_names, *sys.argv[1:]})

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = fullname.partition(".")[0] in cls._known
        return super().find_spec(fullname, path, target) if known else None


def main() -> None:
    sys.meta_path[sys.meta_path.index(PathFinder)] = _Allowed
    for line in sys.stdin:
        importlib.import_module(line.strip())


if __name__ == "__main__":
    main()
