# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall times as ratios to those of peers, and requests per operation, against the sandbox.

    python -m tests.benchmarks            all
    python -m tests.benchmarks loop ci    some, by name

Each other module of this folder with a function `run` is a benchmark: it prints its tables and says
whether every promise is kept. Exits with 1 where one is not.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

HELPERS = {"__init__", "__main__", "peers"}
NAMES = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - HELPERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are named, or all; the exit status is 0 when all promises hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    names: list[str] = parser.parse_args(arguments).names or NAMES
    broken = []
    for name in names:
        print(f"\n== {name}", flush=True)
        if not importlib.import_module(f"tests.benchmarks.{name}").run():
            broken.append(name)
    if broken:
        print(f"\npromises not kept: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
