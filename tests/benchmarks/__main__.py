# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare wall and processor seconds with those of peers, and count the requests per operation in the sandbox.

    python -m tests.benchmarks               all benchmarks
    python -m tests.benchmarks loop ci       the named benchmarks
    python -m tests.benchmarks --smallest    shows that they run, and verifies no promise

Every other module of this folder with a function `run` is a benchmark. It prints its tables and
returns whether every promise is kept. The program exits with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.helpers import playbook, sizes
from tools import tree

HELPERS = {"__main__", "costs", "once", "peers", "promises", "servers"}
NAMES = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - HELPERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks (default: all). Return the exit status: 0 if all promises hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    parser.add_argument("--smallest", action="store_true", help="the smallest size, no judgement")
    chosen = parser.parse_args(arguments)
    if chosen.smallest:
        # The benchmarks, and the processes that they start, read this during import.
        os.environ[sizes.VARIABLE] = "smallest"
    tree.make_importable()
    # times are those of programs; without times, plays share the imports of Ansible
    with playbook.served() if chosen.smallest else nullcontext():
        broken = _run(chosen.names or NAMES)
    if chosen.smallest:
        print("\neach benchmark runs; at this size no promise is judged")
        return 0
    if broken:
        print(f"\npromises not kept: {', '.join(broken)}")
    return 1 if broken else 0


def _run(names: Sequence[str]) -> list[str]:
    """Run the benchmarks in sequence. Return the names of those with a broken promise."""
    broken = []
    for name in names:
        print(f"\n== {name}", flush=True)
        if not importlib.import_module(f"tests.benchmarks.{name}").run():
            broken.append(name)
    return broken


if __name__ == "__main__":
    sys.exit(main())
