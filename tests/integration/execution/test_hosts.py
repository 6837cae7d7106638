# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that tasks that several hosts run side by side write an object once [C1.8]."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from sandbox.client import Sandbox
from tests.helpers import connections, forked, in_process, interleaving, playbook
from tests.helpers.cases import CASES, connection_options, seed, settings

#: Hosts of the play, and those of each case: two are enough to find what is written twice.
HOSTS = 3
WORKERS = 2
STEPS = ("create", "update", "delete", "run")


def _writes_once(name: str) -> bool:
    """Return whether a case has an object that hosts should write once, and needs no inventory."""
    case = CASES[name]
    descriptor = interleaving.operation_of(case["module"])[0].descriptor
    acts_always = case.get("again_changed") or "inventory_file" in json.dumps(case)
    return "service" in case and descriptor.is_locked and not acts_always


ONCE = [name for name in CASES if _writes_once(name)]


@pytest.mark.parametrize("name", ONCE)
def test_hosts_write_once(
    fresh: Callable[[str], Sandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Run each step in a worker for each of two hosts, in both at the same time."""
    case = CASES[name]
    flavour = case["flavours"][-1]
    sandbox = fresh(flavour)
    for service, changes in settings(name).items():
        sandbox.settings(service, **changes)
    sandbox.seed(seed(name))
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path / "run"))
    in_process.loaded(case["module"])
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(WORKERS) as pool:
        workers = [stack.enter_context(forked.worker(tmp_path)) for _host in range(WORKERS)]

        def on_all_hosts(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
            return list(pool.map(lambda run: run(case["module"], arguments), workers))

        options = connections.connection(case["service"], sandbox.urls[case["service"]])
        options |= connection_options(name, flavour)
        for step in (step for step in STEPS if step in case):
            sandbox.fault(service=case["service"], delay=0.2, times=WORKERS)
            mark = sandbox.mark()
            _expect_one_change(step, on_all_hosts({**options, **forked.rendered(case[step])}))
            sandbox.clear_faults()
            writes = sandbox.requests(since=mark, writes=True)
            if step in case.get("writes", {}):
                assert len(writes) == case["writes"][step], writes


def _expect_one_change(step: str, results: Sequence[Mapping[str, Any]]) -> None:
    assert [result["msg"] for result in results if result.get("failed")] == []
    changed = sorted(result["changed"] for result in results)
    assert changed == [False] * (WORKERS - 1) + [True], (step, changed)


#: By name of a way: whether it is that of the worker, and its modules. A separate process of any
#: module finds the folder of the run in the same way.
WAYS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "in process": (
        True,
        ("tracker_issue", "build_promote", "ci_job_build", "repo_token", "wiki_page"),
    ),
    "separate": (False, ("tracker_issue",)),
}


def side_by_side(way: str) -> dict[str, dict[str, Any]]:
    """Return writes whose address does not identify them."""
    label = f"hosts-{way.replace(' ', '-')}"
    return {
        "tracker_issue": {
            "match": f"project = REL AND labels = {label}",
            "project": "REL",
            "type": "Task",
            "summary": "From all hosts",
            "labels": [label],
            "comment": "once",
            "watchers": ["boris"],
            "links": [{"type": "Blocks", "issue": "REL-2"}],
            "retry_max_wait": 0.01,
        },
        "build_promote": {
            "build_name": "agent",
            "build_number": "12",
            "status": label,
            "target_repo": "generic-release-local",
        },
        "ci_job_build": {
            "job": "secret-parameters",
            "parameters": {"TARGET": label},
            "trigger": "unless_successful",
            "poll_interval": 0.1,
        },
        "repo_token": {"token_username": "deployer", "name": label, "return_value": True},
        "wiki_page": {"space": "REL", "title": label, "parent_id": "1003", "body": "<p>s</p>"},
    }


@pytest.fixture(scope="module")
def played(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> playbook.Run:
    """Run tasks on all hosts, in the workers and in separate processes."""
    folder, sandbox = tmp_path_factory.mktemp("hosts"), fresh("real")
    hosts: dict[str, Any] = {
        "vars": {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        },
        "hosts": {f"host{number}": {} for number in range(HOSTS)},
    }
    (folder / "inventory.json").write_text(json.dumps({"all": hosts}), encoding="utf-8")
    # the search finds no issue during the run
    sandbox.settings("tracker", index_lag_searches=10_000)
    tasks = []
    for way, (in_worker, modules) in WAYS.items():
        for module in modules:
            # delay the first read of every host, so that no host sees the object of another host
            slow = {"service": CASES[module]["service"], "delay": 0.5, "times": HOSTS}
            variables = {"sandbox_faults": [slow], "toolchain_in_process": in_worker}
            tasks.append(
                playbook.task(module, side_by_side(way)[module], f"{module} {way}", vars=variables)
            )
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play(tasks, hosts="all", module_defaults=defaults)
    arguments = ["-i", str(folder / "inventory.json"), "--forks", str(HOSTS)]
    return playbook.run(folder, [play], arguments=arguments, controls={"host0": sandbox.control})


@pytest.mark.parametrize(
    ("way", "module"),
    [(way, module) for way, (_worker, modules) in WAYS.items() for module in modules],
)
def test_hosts_of_a_play_write_once(played: playbook.Run, way: str, module: str) -> None:
    events = [played.event(f"{module} {way}", f"host{number}") for number in range(HOSTS)]
    assert [event.result.get("msg") for event in events if event.status != "ok"] == []
    assert sorted(event.result["changed"] for event in events) == [False] * (HOSTS - 1) + [True]
    if module == "tracker_issue":
        assert len({event.result["issues"][0]["key"] for event in events}) == 1
