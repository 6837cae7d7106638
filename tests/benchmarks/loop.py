# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds of a loop of unchanged tasks, and requests per operation, against the sandbox.

The loop runs in the worker, in separate processes, and with `ansible.builtin.uri`, which sends the
same request. Loops of `ansible.builtin.assert` and `ansible.builtin.ping` show Ansible's overhead
for an item, in the worker and in a separate process. A promise is broken if running in the worker
is not as much faster as promised. It is also broken if a task takes more than the promised multiple
of Ansible's overhead, or if an operation sends more requests than promised.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, operations, playbook
from tests.helpers.sizes import size
from tools import tree

ITEMS = size(100, 2)
ROUNDS = size(3, 1)
LOOP = {"loop": "{{ range(items) | list }}"}
IN_PROCESS, SEPARATE, URI = "in process", "toolchain_in_process: false", "ansible.builtin.uri"
ASSERT, PING = "ansible.builtin.assert", "ansible.builtin.ping"
_IDLE: list[dict[str, Any]] = [
    {"name": ASSERT, ASSERT: {"that": True}, **LOOP},
    {"name": PING, PING: {}, **LOOP},
]


def _role(in_process: bool) -> dict[str, Any]:
    """Return a loop of a task whose role already has the wanted state."""
    arguments = {"name": "Developer", "permissions": {"access_source_files": True}}
    name = IN_PROCESS if in_process else SEPARATE
    variables = {"toolchain_in_process": in_process}
    return playbook.task("analysis_role", arguments, name, vars=variables, **LOOP)


def _uri(url: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a loop that sends the same request as the module."""
    return {
        "name": URI,
        "ansible.builtin.uri": {
            "url": f"{url}{request['path']}",
            "method": request["method"],
            "headers": {"Content-Type": request["headers"]["content-type"]},
            "body": request["body"].replace("ltoken=***", f"ltoken={connections.LTOKEN}"),
        },
        **LOOP,
    }


def _run(
    sandbox: Sandbox, collections: Path, tasks: list[dict[str, Any]], items: int
) -> dict[str, playbook.Event]:
    """Run the loops. Verify that no task changed anything, and that each loop sent one request per
    item (idle loops: none).
    """
    play = playbook.play(
        tasks, module_defaults=connections.module_defaults(sandbox.urls), vars={"items": items}
    )
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder:
        run = playbook.run(
            Path(folder),
            [play],
            controls={"localhost": sandbox.control},
            collections=collections,
        )
    for event in run.events:
        responded = [request for request in event.requests if request["status"] == 200]
        wanted = 0 if event.task in (ASSERT, PING) else items
        if event.status != "ok" or event.result["changed"] or len(responded) != wanted:
            raise SystemExit(f"{event.task} did not do what it should:\n{run.output[-3000:]}")
    return {event.task: event for event in run.events}


def _rounds(sandbox: Sandbox, collections: Path) -> dict[str, Cost]:
    """Return the median cost per execution mode."""
    request = _run(sandbox, collections, [_role(True)], 1)[IN_PROCESS].requests[0]
    tasks = [_role(True), _role(False), _uri(sandbox.urls["analysis"], request), *_IDLE]
    found: dict[str, list[Cost]] = {str(task["name"]): [] for task in tasks}
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS} ...", file=sys.stderr, flush=True)
        for name, event in _run(sandbox, collections, tasks, ITEMS).items():
            found[name].append(costs.of_task(event))
    return {name: costs.median(rounds) for name, rounds in found.items()}


def once(sandbox: Sandbox, collections: Path) -> dict[str, float]:
    """Return the seconds of a round in the worker and in separate processes."""
    events = _run(sandbox, collections, [_role(True), _role(False)], ITEMS)
    return {name: round(event.seconds, 2) for name, event in events.items()}


def _print_times(medians: Mapping[str, Cost]) -> bool:
    """Print the table of seconds. Return whether the promises are kept."""
    print(f"\n{ITEMS} unchanged analysis_role tasks in a loop, median of {ROUNDS} rounds\n")
    print(f"{'way':<30}{costs.HEAD}{'ms/item':>10}{'ratio':>10}")
    ours = medians[IN_PROCESS]
    for name, one in medians.items():
        print(f"{name:<30}{one}{1000 * one.wall / ITEMS:>10.1f}{one.wall / ours.wall:>9.1f}x")
    print()
    faster = "in process, faster than a process and than uri"
    return all(
        [
            *(costs.judge(faster, medians[name] / ours) for name in (SEPARATE, URI)),
            costs.judge("in process, against assert", ours / medians[ASSERT]),
            costs.judge("in a process, against ping", medians[SEPARATE] / medians[PING]),
        ]
    )


def _print_counts(counted: Mapping[str, operations.Counted]) -> bool:
    """Print the table of requests. Return whether every promise is kept."""
    print(f"\n{'operation':<38}{'requests':>10}{'writes':>8}   promised")
    for name, one in counted.items():
        wanted = one.operation
        few = "any" if wanted.requests is None else str(wanted.requests)
        promised = f"{few} / {wanted.writes}"
        verdict = "" if one.kept else "  NOT KEPT"
        print(f"{name:<38}{one.requests:>10}{one.writes:>8}   {promised}{verdict}")
    return all(one.kept for one in counted.values())


def run() -> bool:
    """Run both benchmarks. Return whether the promises are kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        servers.sandbox() as sandbox,
    ):
        collections, work = Path(folder) / "collections", Path(folder) / "work"
        tree.link_tree(collections)
        work.mkdir()
        counted = operations.count(sandbox, work, collections)
        sandbox.reset()
        medians = _rounds(sandbox, collections)
    few = _print_counts(counted)
    fast = _print_times(medians)
    return few and fast
