# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall time and requests of a large `analysis_config`, against a loop of `ansible.builtin.uri`.

1,000 roles, 1,000 groups and 200 modules in 4 projects, all of them unchanged; and 1,000 roles that
differ, on a server that takes 20 ms longer for each answer and does not look at permissions, which
would keep its one processor busy, one write after the other and 8 at once. How much faster 8 at once
are is told of the changes alone (from the first write to the last, by the log of the server) and of
the whole task: about a second of it is the same however they are sent, a third of that before and
after the action, in Ansible's own hands. What a loop of `uri` takes is measured on fewer items and
scaled by their number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import configuration, connections, playbook
from tests.helpers.sizes import size
from tools import tree

URI_ITEMS = size(40, 2)
DELAY_MS = 20
PARALLEL = 8
MOST_SECONDS = 5.0
MOST_REQUESTS = 12  # beyond one per kind and project
CHANGES_RATIO, TASK_RATIO = 7.0, 5.0
URI_RATIO = 50.0

OBJECTS, CHANGES = configuration.OBJECTS, configuration.ROLES
UNCHANGED = f"{OBJECTS:,} objects, all unchanged"
ONE, MANY = f"{CHANGES:,} changes, parallel: 1", f"{CHANGES:,} changes, parallel: {PARALLEL}"
URI_READ, URI_WRITE = f"uri: {URI_ITEMS} reads", f"uri: {URI_ITEMS} writes"


def _uri(name: str, url: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """A loop of requests, of which each names another role."""
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
    """The events by name: first what is unchanged, then on a slower server what differs."""
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
    print(f"{name:<36}{event.seconds:>9.2f}{each:>12.2f}{requests:>10}{writes:>8}")


def _writing(event: playbook.Event) -> float:
    """Seconds from the first write to the last one, as the server saw them arrive."""
    times = [write["time"] for write in event.writes]
    return float(max(times) - min(times)) / 1000


def _promise(text: str, value: float, bound: str, limit: float) -> bool:
    kept = value <= limit if bound == "at most" else value >= limit
    print(f"{text}: {value:.1f}, promised {bound} {limit:g}: {'yes' if kept else 'NO'}")
    return kept


def run() -> bool:
    """Print the tables; whether the promises are kept."""
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-bench-") as folder,
        Sandbox.start(seed=configuration.seed(), flavour="real") as sandbox,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        events = _measure(sandbox, collections)
    print(f"\n{'what':<36}{'seconds':>9}{'ms/object':>12}{'requests':>10}{'writes':>8}")
    sizes = {UNCHANGED: OBJECTS, URI_READ: URI_ITEMS, ONE: CHANGES, MANY: CHANGES}
    for name, items in {**sizes, URI_WRITE: URI_ITEMS}.items():
        _line(name, events[name], items)
    seconds = {name: event.seconds for name, event in events.items()}
    read, write = (seconds[name] / URI_ITEMS for name in (URI_READ, URI_WRITE))
    beyond = len(events[UNCHANGED].requests) - (2 + configuration.PROJECTS)
    print(f"\nuri is scaled from {URI_ITEMS} items to the number of objects\n")
    kept = [
        _promise("unchanged, seconds", seconds[UNCHANGED], "at most", MOST_SECONDS),
        _promise("requests beyond one per kind and project", beyond, "at most", MOST_REQUESTS),
        _promise(
            f"parallel: {PARALLEL}, the changes alone, times",
            _writing(events[ONE]) / _writing(events[MANY]),
            "at least",
            CHANGES_RATIO,
        ),
        _promise(
            f"parallel: {PARALLEL}, the whole task, times",
            seconds[ONE] / seconds[MANY],
            "at least",
            TASK_RATIO,
        ),
        _promise(
            "unchanged against uri, times",
            read * OBJECTS / seconds[UNCHANGED],
            "at least",
            URI_RATIO,
        ),
        _promise(
            "changes against uri, times", write * CHANGES / seconds[MANY], "at least", URI_RATIO
        ),
    ]
    return all(kept)
