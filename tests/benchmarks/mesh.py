# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds of `drift` in slices, by the number of nodes, with the commands of AWX; then the loss of
a node during `enforce`.

Each node runs one job at a time. All nodes share the processors of this machine, so more nodes only
help as long as they wait for servers. The processor seconds are those of all processes, with the
server.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs
from tests.benchmarks.costs import Cost
from tests.helpers import connections, measured, mesh
from tests.helpers.sizes import size, smallest

SERVERS = size(40, 1)
SLICES = size(4, 1)
PROJECTS = size(20, 1)
NODES = (1, 2, 4)
#: Nodes, of which the last one is lost.
LOSING = 3
DELAY_MS = 50
#: Seconds for which the server holds back the response to a write of the lost node.
HELD_BACK = 120.0
SECONDS = 300
NAMES = [f"project {number}" for number in range(PROJECTS)]
MODULES = {
    "analysis_config_modules": [
        {"project": name, "name": "wanted", "paths": ["**"]} for name in NAMES
    ],
    "analysis_config_parallel": 1,
}
SEED = {"analysis": {"projects": [{"name": name} for name in NAMES]}}


def _estate(sandbox: Sandbox, folder: Path, **given: Any) -> mesh.Estate:
    """Return the servers. Each lacks a version of its own."""
    servers = {
        name: {"desired_state_versions": [{"project": "REL", "name": f"8.{name}"}]}
        for name in (f"s{number:02}" for number in range(SERVERS))
    }
    logins = {
        service: connections.connection(service, sandbox.urls[service])
        for service in ("analysis", "tracker")
    }
    return mesh.Estate(folder, servers, SLICES, {**given, "enforce_connections": logins})


def _expect(name: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{name}: {found}, not {wanted}")


def _measure(sandbox: Sandbox, nodes: list[mesh.Node]) -> None:
    objects = SERVERS * (PROJECTS + 1)
    print(f"\n{SERVERS} servers in {SLICES} slices, {PROJECTS + 1} objects each,", end=" ")
    print(f"{DELAY_MS} ms a response\n\n{'nodes':>7}{costs.HEAD}{'objects/s':>11}")
    for count in NODES[: len(nodes)]:
        with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as name:
            checked = _estate(sandbox, Path(name), **MODULES)
            begun, before = time.monotonic(), measured.processor_seconds()
            statuses, _plans = mesh.results(checked.run("drift", nodes[:count]))
            cost = Cost(time.monotonic() - begun, measured.processor_seconds() - before)
        _expect("drift", statuses, ["successful"] * SLICES)
        print(f"{count:>7}{cost}{objects / cost.wall:>11.0f}", flush=True)


def _lose(sandbox: Sandbox, nodes: list[mesh.Node], folder: Path) -> None:
    """Enforce the plans of all slices, lose a node in the middle, and run again without it."""
    enforced = _estate(sandbox, folder)
    _statuses, plans = mesh.results(enforced.run("drift", nodes))
    differing = enforced.summary()
    _expect("summary of drift", (differing.code, "Result: differs" in differing.output), (0, True))
    sandbox.fault(service="tracker", method="POST", match="8.s02", late=HELD_BACK)
    jobs = enforced.run("enforce", nodes, artifacts=plans)
    deadline = time.monotonic() + SECONDS
    while sandbox.pending_faults() and time.monotonic() < deadline:
        time.sleep(0.05)
    nodes[-1].kill()
    _expect("enforce", mesh.results(jobs)[0], ["successful", "successful", "error", "successful"])
    lost = enforced.summary()
    missing = enforced.slice(2)
    report = json.loads((folder / "reports/summary/report.json").read_text("utf-8"))
    failed = [one["text"] for one in report["findings"] if one["status"] == "failed"]
    # the slice has the report of drift, which is not that of the last run
    found = [f"{missing[0]}: is of an earlier run" in text for text in failed]
    _expect("summary", (lost.code, found), (2, [True]))
    statuses, plans = mesh.results(enforced.run("drift", nodes[:-1]))
    _expect("drift", statuses, ["successful"] * SLICES)
    statuses, _none = mesh.results(enforced.run("enforce", nodes[:-1], artifacts=plans))
    _expect("enforce", statuses, ["successful"] * SLICES)
    _expect("summary", enforced.summary().code, 0)
    writes = Counter(str(write["body"]) for write in sandbox.requests("tracker", writes=True))
    _expect("versions written", (len(writes), set(writes.values())), (SERVERS, {1}))
    print(
        f"\na node of {LOSING} was lost: the report of its {len(missing)} servers was missing;",
        end=" ",
    )
    print(f"the next run completed, and each of {SERVERS} versions was written once")


def run() -> bool:
    """Print the tables. Every difference from the promises ends the benchmark."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as name,
        Sandbox.start(seed=SEED, flavour="real") as sandbox,
        mesh.nodes(1 if smallest() else max(NODES), Path(name) / "mesh") as nodes,
    ):
        if nodes is None:
            print("neither Receptor nor OpenSSH on this machine: nothing was measured")
            return True
        sandbox.settings("analysis", delay_ms=DELAY_MS)
        _measure(sandbox, nodes)
        if not smallest():
            _lose(sandbox, nodes[:LOSING], Path(name))
    return True
