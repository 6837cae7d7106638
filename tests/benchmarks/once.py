# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a loop of unchanged tasks with the installed Ansible, in the worker and in separate
processes.

The last line of the output contains the seconds as JSON. No promise is verified.

    python -m tests.benchmarks.once
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from sandbox.client import Sandbox
from tests.benchmarks import loop
from tools import tree


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        print(json.dumps(loop.once(sandbox, collections)))


if __name__ == "__main__":
    main()
