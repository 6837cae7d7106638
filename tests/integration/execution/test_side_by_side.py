# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that hosts can create the same object with the same content at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, interleaving, playbook
from tests.helpers.cases import CASES

PAGES = Path(__file__).parents[2] / "contract" / "folders" / "wiki_tree" / "first"
HOSTS = [f"host{number}" for number in range(5)]
#: A small object of every kind that a module creates.
OBJECTS: dict[str, dict[str, Any]] = {
    "analysis_group": {"name": "side-by-side"},
    "analysis_role": {"name": "Side by side", "permissions": {"access_source_files": True}},
    "analysis_user": {"name": "sidebyside"},
    "artifact_deploy": {"repo": "generic-staging-local", "path": "side/by.txt", "content": "side"},
    "artifact_properties": {
        "repo": "generic-snapshot-local",
        "path": "agent/1.0.0/agent.txt",
        "properties": {"side.by": "side"},
    },
    "artifact_copy": {
        "repo": "generic-snapshot-local",
        "path": "agent/1.0.0/agent.txt",
        "target_repo": "generic-staging-local",
        "target_path": "side/copied.txt",
    },
    "build_publish": {
        "build_name": "side",
        "build_number": "1",
        "artifacts": [{"repo": "generic-snapshot-local", "path": "agent/1.0.0/agent.txt"}],
    },
    "ci_plugin": {"plugins": [{"name": "timestamper"}], "poll_interval": 0.1},
    "ci_job": {"job": "side-by-side", "config": "<project><description>s</description></project>"},
    "tracker_version": {"project": "REL", "name": "side-by-side"},
    "wiki_page": {"space": "REL", "title": "Side by side", "parent_id": "1003", "body": "<p>s</p>"},
    "wiki_tree": {"src": str(PAGES), "space": "REL", "parent_id": "1003", "title_prefix": "Side "},
}


@pytest.fixture(scope="module")
def ran(fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Create every object on all hosts at the same time."""
    folder, sandbox = tmp_path_factory.mktemp("side"), fresh("real")
    hosts: dict[str, Any] = {
        "vars": {"ansible_connection": "local"},
        "hosts": {name: {} for name in HOSTS},
    }
    hosts["vars"]["ansible_python_interpreter"] = "{{ ansible_playbook_python }}"
    (folder / "inventory.json").write_text(json.dumps({"all": hosts}), encoding="utf-8")
    # delay the first read of every host, so that no host sees the object of another host
    slow = {"delay": 0.5, "times": len(HOSTS)}
    tasks = [
        playbook.task(
            module,
            options,
            module,
            vars={"sandbox_faults": [{"service": CASES[module]["service"], **slow}]},
        )
        for module, options in OBJECTS.items()
    ]
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play(tasks, hosts="all", module_defaults=defaults)
    arguments = ["-i", str(folder / "inventory.json"), "--forks", str(len(HOSTS))]
    controls = {HOSTS[0]: sandbox.control}
    return playbook.run(folder, [play], arguments=arguments, controls=controls)


@pytest.mark.parametrize("module", OBJECTS)
def test_module_succeeds_on_parallel_hosts(ran: playbook.Run, module: str) -> None:
    events = [ran.event(module, host) for host in HOSTS]
    assert [event.result.get("msg") for event in events if event.status != "ok"] == []
    assert any(event.result["changed"] for event in events)


def _failures(sandbox: Sandbox, module: str, *states: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Run two tasks in every interleaving of their responses. Return the failures.

    The second task runs between two responses of the first, or the first between two responses of
    the second. All `states` except the last are set up before.
    """
    service = CASES[module]["service"]
    *before, last = [
        interleaving.Work(service, sandbox.urls[service], module, state) for state in states
    ]
    failures = []
    for first in (0, 1):
        second, responses = 1, 1
        while second <= responses:
            sandbox.reset()
            for work in before:
                interleaving.run(work, interleaving.paused_after(0, 0), 1)
            outcomes = interleaving.run(last, interleaving.paused_after(first, second))
            assert any(outcome.changed for outcome in outcomes)
            failures += [(first, second, str(one.error)) for one in outcomes if one.error]
            second, responses = second + 1, outcomes[1].responses
    return failures


@pytest.mark.parametrize("module", OBJECTS)
def test_module_succeeds_in_any_order_of_requests(
    fresh: Callable[[str], Sandbox], module: str
) -> None:
    one_by_one = {"parallel": 1} if module == "wiki_tree" else {}
    assert _failures(fresh("real"), module, {**OBJECTS[module], **one_by_one}) == []


def test_tree_is_updated_in_any_order_of_requests(fresh: Callable[[str], Sandbox]) -> None:
    tree = {**OBJECTS["wiki_tree"], "parallel": 1}
    update = {**tree, "src": str(PAGES.parent / "second"), "prune": True}
    assert _failures(fresh("real"), "wiki_tree", tree, update) == []
