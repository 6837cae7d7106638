# SPDX-License-Identifier: GPL-3.0-or-later
"""Export and compare 2,000 repositories, 300 permissions and 200 groups of an unchanged server.

The sandbox delays each response by 20 ms. A repository costs no request of its own: one list has
their configurations. Neither Access nor the older interface has a list with whole groups or
permissions [repo-41, repo-43], so that every object costs a request. These run side by side.

A promise is broken if the comparison takes longer than promised, or sends more than 25 requests in
addition to one for each group and permission.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.benchmarks import costs, servers
from tests.benchmarks.costs import Cost
from tests.helpers import connections, playbook
from tests.helpers.sizes import size
from tools import tree

REPOSITORIES, PERMISSIONS, GROUPS = size(2000, 20), size(300, 5), size(200, 5)
DELAY_MS = 20
MOST_REQUESTS = 25
ADMIN = "repo-admin-token-1234567890"
EXPORT, _READ = "repo_export", "read the exported state"
#: List of the desired state to its module.
KINDS = {
    "repositories": "repo_repository",
    "groups": "repo_group",
    "permissions": "repo_permission",
}


def _seed() -> dict[str, Any]:
    """Return the objects of the server."""
    keys = [f"bench-{number:04}" for number in range(REPOSITORIES)]
    groups = [f"bench-{number:03}" for number in range(GROUPS)]
    return {
        "repositories": [
            {"key": key, "type": "LOCAL", "packageType": "generic", "description": f"Of {key}"}
            for key in keys
        ],
        "groups": [{"name": name, "description": f"Of {name}"} for name in groups],
        "permissions": [
            _permission(number, keys[number % REPOSITORIES], groups[number % GROUPS])
            for number in range(PERMISSIONS)
        ],
    }


def _permission(number: int, key: str, group: str) -> dict[str, Any]:
    patterns = {"include_patterns": ["**"], "exclude_patterns": []}
    actions = {"users": {}, "groups": {group: ["READ", "WRITE"]}}
    artifact = {"targets": {key: patterns}, "actions": actions}
    return {"name": f"bench-{number:03}", "resources": {"artifact": artifact}}


def _tasks(folder: Path) -> list[dict[str, Any]]:
    """Return an export task, and a task for each kind that compares the exported objects."""
    reading = {"file": str(folder / "repo.yml"), "name": "state"}
    return [
        playbook.task(EXPORT, {"dest": str(folder), "users": False}, EXPORT),
        {"name": _READ, "ansible.builtin.include_vars": reading},
        *(
            playbook.task(module, {"entries": f"{{{{ state.{kind} }}}}"}, kind)
            for kind, module in KINDS.items()
        ),
    ]


def _measure(folder: Path, sandbox: Sandbox) -> dict[str, playbook.Event]:
    collections = folder / "collections"
    tree.link_tree(collections)
    sandbox.settings("repo", delay_ms=DELAY_MS)
    defaults = connections.module_defaults(sandbox.urls, repo={"token": ADMIN})
    play = playbook.play(_tasks(folder / "state"), module_defaults=defaults)
    controls = {"localhost": sandbox.control}
    run = playbook.run(folder, [play], controls=controls, collections=collections, seconds=300)
    if any(event.status != "ok" for event in run.events):
        raise SystemExit(run.output[-3000:])
    return {event.task: event for event in run.events}


def run() -> bool:
    """Print the table. Return whether the promises are kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        servers.sandbox() as sandbox,
    ):
        sandbox.seed({"repo": _seed()})
        events = _measure(Path(folder), sandbox)
    print(f"\n{'what':<24}{'objects':>9}{costs.HEAD}{'requests':>10}")
    exported = events[EXPORT].result["exported"]
    for name, event in events.items():
        count = exported.get(name, "")
        print(f"{name:<24}{count:>9}{costs.of_task(event)}{len(event.requests):>10}")
    compared = [events[kind] for kind in KINDS]
    if any(event.result["changed"] for event in compared):
        raise SystemExit("the exported state differs from the server")
    cost = sum(map(costs.of_task, compared), Cost(0, 0))
    beyond = sum(len(event.requests) for event in compared)
    beyond -= exported["groups"] + exported["permissions"]
    return all(
        [
            costs.judge("compare 2,000 repositories with their export", cost),
            costs.verdict("requests beyond one each", beyond, MOST_REQUESTS),
        ]
    )
