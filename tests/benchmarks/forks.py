# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds and memory of `drift` over many servers with a response time of 50 ms, by the number of
forks.

More forks wait for more servers at a time, until the processors of the machine are busy.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs
from tests.benchmarks.costs import Cost
from tests.helpers import connections, playbook
from tests.helpers.sizes import size
from tools import tree

SERVERS = size(40, 2)
PROJECTS = size(100, 1)
FORKS = (1, 5, size(20, 1))
DELAY_MS = 50
#: Limit of a run in seconds.
PATIENCE = 590
NAMES = [f"project {number}" for number in range(PROJECTS)]
SEED = {"analysis": {"projects": [{"name": name} for name in NAMES]}}


class Memory:
    """The peak of the memory of `ansible-playbook` and its forks, in MiB; shared pages count once."""

    def __enter__(self) -> Memory:
        self.peak, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.peak = max(self.peak, sum(map(_pss, Path("/proc").glob("[0-9]*"))) / 1024)


def _pss(process: Path) -> int:
    """Return the proportional memory of a process of Ansible in KiB, 0 for any other."""
    try:
        if b"ansible-playbook" not in (process / "cmdline").read_bytes():
            return 0
        text = (process / "smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss: +(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def _cost(sandbox: Sandbox, collections: Path, forks: int) -> tuple[Cost, float]:
    login = connections.connection("analysis", sandbox.urls["analysis"])
    variables = {
        "analysis_config_modules": [
            {"project": name, "name": "wanted", "paths": ["**"]} for name in NAMES
        ],
        "analysis_config_parallel": 1,
        "drift_report": "report",
        "enforce_connections": {"analysis": login},
        "enforce_hosts": "all",
    }
    hosts: dict[str, Any] = {f"server{number}": {} for number in range(SERVERS)}
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as name:
        folder = Path(name)
        (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        (folder / "variables.json").write_text(json.dumps(variables))

        def drift() -> None:
            run = playbook.run(
                folder,
                [{"import_playbook": "delivery.toolchain.drift"}],
                arguments=["-i", "inventory.json", "-e", "@variables.json", "-f", str(forks)],
                collections=collections,
                seconds=PATIENCE,
            )
            if run.code != 0:
                raise SystemExit(run.output[-3000:])

        with Memory() as memory:
            cost = costs.of_processes(drift)
        counts = json.loads((folder / "report/report.json").read_text("utf-8"))["counts"]
    if {status: number for status, number in counts.items() if number} != {
        "drift": SERVERS * PROJECTS
    }:
        raise SystemExit(f"{forks} forks found {counts}")
    return cost, memory.peak


def run() -> bool:
    """Print the table, and return whether the promise is kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(seed=SEED, flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        sandbox.settings("analysis", delay_ms=DELAY_MS)
        print(f"\n{SERVERS} servers, {PROJECTS} projects each, {DELAY_MS} ms a response\n")
        print(f"{'forks':>7}{costs.HEAD}{'objects/s':>11}{'MiB':>7}")
        found = {}
        for forks in sorted(set(FORKS)):
            found[forks], peak = _cost(sandbox, collections, forks)
            rate = SERVERS * PROJECTS / found[forks].wall
            print(f"{forks:>7}{found[forks]}{rate:>11.0f}{peak:>7.0f}", flush=True)
    return costs.judge("20 forks, faster than one", found[min(found)] / found[max(found)])
