# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall time of `drift` over many servers, each of which takes 50 ms for an answer, with 1, 2 and 4
workers on this machine. All runs have one fork, here and on the workers: a worker looks at one
server after the other, at one project after the other.

Several forks wait side by side as well, at less cost than workers of the same machine: with them
one machine gets further, until its processors are busy. Workers of this machine stand for those
elsewhere, and share its processors. What they cannot share is where a run begins and ends.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.sizes import size
from tools import tree

SERVERS = size(50, 2)
PROJECTS = size(100, 1)
WORKERS = size(4, 1)
DELAY_MS = 50
#: Most seconds of a run; one worker takes about five minutes.
PATIENCE = 900
LEAST_RATIO = 2.8
NAMES = [f"project {number}" for number in range(PROJECTS)]
SEED = {"analysis": {"projects": [{"name": name} for name in NAMES]}}


def _seconds(sandbox: Sandbox, collections: Path, workers: int) -> float:
    """How long a run takes; it has to find the same, whoever looks."""
    login = connections.connection("analysis", sandbox.urls["analysis"])
    variables = {
        "analysis_config_modules": [
            {"project": name, "name": "wanted", "paths": ["**"]} for name in NAMES
        ],
        "analysis_config_parallel": 1,
        "drift_report": "report",
        "drift_workers": ["local"] * workers,
        "enforce_connections": {"analysis": login},
        "enforce_hosts": "all",
    }
    hosts: dict[str, Any] = {f"server{number}": {} for number in range(SERVERS)}
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as name:
        folder = Path(name)
        (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        (folder / "variables.json").write_text(json.dumps(variables))
        begun = time.monotonic()
        run = playbook.run(
            folder,
            [{"import_playbook": "delivery.toolchain.drift"}],
            arguments=["-i", "inventory.json", "-e", "@variables.json", "--forks", "1"],
            collections=collections,
            seconds=PATIENCE,
        )
        seconds = time.monotonic() - begun
        if run.code != 0:
            raise SystemExit(run.output[-3000:])
        counts = json.loads((folder / "report/report.json").read_text("utf-8"))["counts"]
    if counts != {"ok": 0, "drift": SERVERS * PROJECTS, "failed": 0}:
        raise SystemExit(f"{workers} workers found {counts}")
    return seconds


def run() -> bool:
    """Print the table; whether the promise is kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(seed=SEED, flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        sandbox.settings("analysis", delay_ms=DELAY_MS)
        print(f"\n{SERVERS} servers, {PROJECTS} projects each, {DELAY_MS} ms an answer\n")
        print(f"{'workers':>7}{'seconds':>9}{'requests':>10}")
        seconds = {}
        for workers in sorted({1, (WORKERS + 1) // 2, WORKERS}):
            before = sandbox.mark()
            seconds[workers] = _seconds(sandbox, collections, workers)
            requests = sandbox.mark() - before
            print(f"{workers:>7}{seconds[workers]:>9.1f}{requests:>10}", flush=True)
    ratio = seconds[1] / seconds[WORKERS]
    kept = ratio >= LEAST_RATIO
    promised = f"promised at least {LEAST_RATIO:g}: {'yes' if kept else 'NO'}"
    print(f"\n{WORKERS} workers against 1, times: {ratio:.1f}, {promised}")
    return kept
