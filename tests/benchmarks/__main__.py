# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall times as ratios to those of peers, and requests per operation, against the sandbox.

    python -m tests.benchmarks               all
    python -m tests.benchmarks loop ci       some, by name
    python -m tests.benchmarks --smallest    shows that they run, and judges no promise

Each other module of this folder with a function `run` is a benchmark: it prints its tables and says
whether every promise is kept. Exits with 1 where one is not.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.helpers import sizes
from tools import tree

HELPERS = {"__init__", "__main__", "once", "peers", "servers"}
NAMES = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - HELPERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are named, or all; the exit status is 0 when all promises hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    parser.add_argument("--smallest", action="store_true", help="the smallest size, no judgement")
    chosen = parser.parse_args(arguments)
    if chosen.smallest:
        # read when a benchmark is imported, by the processes that it starts as well
        os.environ[sizes.VARIABLE] = "smallest"
    tree.make_importable()
    broken = _run(chosen.names or NAMES)
    if chosen.smallest:
        print("\neach benchmark runs; at this size no promise is judged")
        return 0
    if broken:
        print(f"\npromises not kept: {', '.join(broken)}")
    return 1 if broken else 0


def _run(names: Sequence[str]) -> list[str]:
    """Run them one after the other; the names of those with a promise that is not kept."""
    broken = []
    for name in names:
        print(f"\n== {name}", flush=True)
        if not importlib.import_module(f"tests.benchmarks.{name}").run():
            broken.append(name)
    return broken


if __name__ == "__main__":
    sys.exit(main())
