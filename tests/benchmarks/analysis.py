# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds and requests of a large `analysis_config`, compared with a loop of
`ansible.builtin.uri`.

The first task has 1,000 roles, 1,000 groups and 200 modules in 4 projects, all unchanged. The next
tasks change 1,000 roles, with sequential writes and with 8 parallel writes. For these, the server
delays each response by 20 ms. It does not check permissions, because the check would keep its
single processor busy.

Two ratios compare parallel and sequential writes: one for the changes alone (from the first write
to the last, by the log of the server), and one for the whole task. About a second of the task does
not depend on the parallelism. Ansible itself uses a third of that second, before and after the
action. The time of the `uri` loop is measured on fewer items and scaled to the number of objects.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs
from tests.benchmarks.costs import Cost
from tests.helpers import configuration, connections, playbook
from tests.helpers.sizes import size
from tools import tree

URI_ITEMS = size(40, 2)
DELAY_MS = 20
PARALLEL = 8
MAX_REQUESTS = 12  # in addition to one per kind and project

OBJECTS, CHANGES = configuration.OBJECTS, configuration.ROLES
UNCHANGED = f"{OBJECTS:,} objects, all unchanged"
ONE, MANY = f"{CHANGES:,} changes, parallel: 1", f"{CHANGES:,} changes, parallel: {PARALLEL}"
URI_READ, URI_WRITE = f"uri: {URI_ITEMS} reads", f"uri: {URI_ITEMS} writes"


def _uri(name: str, url: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a loop of requests, each for a different role."""
    login = {"user": "analyst", "ltoken": connections.LTOKEN}
    request = {
        "url": f"{url}/review/api",
        "method": "POST",
        "body_format": "form-urlencoded",
        "body": {**login, **fields},
    }
    loop = f"{{{{ range({URI_ITEMS}) | list }}}}"
    return {"name": name, "ansible.builtin.uri": request, "loop": loop}


def _play(sandbox: Sandbox, collections: Path, *tasks: dict[str, Any]) -> dict[str, playbook.Event]:
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    with tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder:
        run = playbook.run(
            Path(folder), [play], controls={"localhost": sandbox.control}, collections=collections
        )
    if any(event.status != "ok" for event in run.events):
        raise SystemExit(run.output[-3000:])
    return {event.task: event for event in run.events}


def _measure(sandbox: Sandbox, collections: Path) -> dict[str, playbook.Event]:
    """Return the events by name: first the unchanged objects, then the changes on a
    slower server.
    """
    url = sandbox.urls["analysis"]
    events = _play(
        sandbox,
        collections,
        playbook.task("analysis_config", configuration.lists(), UNCHANGED),
        _uri(URI_READ, url, {"action": "roles", "search": "+role {{ item }}"}),
    )
    sandbox.settings("analysis", delay_ms=DELAY_MS, access_control=False)
    switched = (configuration.roles(manage_roles=on) for on in (True, False))
    write = {"action": "update_role_permissions", "name": "role {{ item }}", "manage_roles": "true"}
    return events | _play(
        sandbox,
        collections,
        playbook.task("analysis_config", {"roles": next(switched), "parallel": 1}, ONE),
        playbook.task("analysis_config", {"roles": next(switched), "parallel": PARALLEL}, MANY),
        _uri(URI_WRITE, url, write),
    )


def _line(name: str, event: playbook.Event, items: int) -> None:
    requests, writes = len(event.requests), len(event.writes)
    each = 1000 * event.seconds / items
    print(f"{name:<36}{costs.of_task(event)}{each:>12.2f}{requests:>10}{writes:>8}")


def _writing(event: playbook.Event) -> Cost:
    """Return the wall time between the arrival of the first and the last write at the server, at
    least the millisecond that the log resolves.
    """
    times = [write["time"] for write in event.writes]
    return Cost(max(float(max(times) - min(times)), 1.0) / 1000, event.processor)


def run() -> bool:
    """Print the tables. Return whether the promises are kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(seed=configuration.seed(), flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        events = _measure(sandbox, collections)
    print(f"\n{'what':<36}{costs.HEAD}{'ms/object':>12}{'requests':>10}{'writes':>8}")
    sizes = {UNCHANGED: OBJECTS, URI_READ: URI_ITEMS, ONE: CHANGES, MANY: CHANGES}
    for name, items in {**sizes, URI_WRITE: URI_ITEMS}.items():
        _line(name, events[name], items)
    cost = {name: costs.of_task(event) for name, event in events.items()}
    read, write = (cost[name].per(URI_ITEMS) for name in (URI_READ, URI_WRITE))
    beyond = len(events[UNCHANGED].requests) - (2 + configuration.PROJECTS)
    print(f"\nuri is scaled from {URI_ITEMS} items to the number of objects\n")
    changes = _writing(events[ONE]) / _writing(events[MANY])
    kept = [
        costs.judge("2,200 unchanged objects", cost[UNCHANGED]),
        costs.verdict("requests beyond one per kind and project", beyond, MAX_REQUESTS),
        costs.judge("1,000 changes in parallel, the changes alone", changes),
        costs.judge("1,000 changes in parallel, the whole task", cost[ONE] / cost[MANY]),
        costs.judge(
            "2,200 unchanged objects, faster than uri", read / cost[UNCHANGED].per(OBJECTS)
        ),
        costs.judge("1,000 changes, faster than uri", write / cost[MANY].per(CHANGES)),
    ]
    return all(kept)
