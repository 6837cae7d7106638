# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that tasks that several hosts run side by side write an object once [C1.8]."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from sandbox.client import Sandbox
from tests.helpers import connections, forked, in_process
from tests.helpers.cases import CASES, MODULES, connection_options, seed, settings

HOSTS = 3
STEPS = ("create", "update", "delete", "run")
#: The cases that write. A module that acts in each task acts for each host, too.
ONCE = [
    name
    for name in MODULES
    if any(CASES[name].get("writes", {}).values()) and not CASES[name].get("again_changed")
]


def on_all_hosts(
    folder: Path, module: str, arguments: Mapping[str, Any], hosts: int = HOSTS
) -> list[dict[str, Any]]:
    """Run a task in a forked process for each host, all at the same time."""
    in_process.loaded(module)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(hosts) as pool:
        workers = [stack.enter_context(forked.worker(folder)) for _host in range(hosts)]
        return list(pool.map(lambda run_module: run_module(module, arguments), workers))


@pytest.mark.parametrize("name", ONCE)
def test_hosts_write_once(
    fresh: Callable[[str], Sandbox],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    case = CASES[name]
    flavour = case["flavours"][-1]
    sandbox = fresh(flavour)
    for service, changes in settings(name).items():
        sandbox.settings(service, **changes)
    sandbox.seed(seed(name))
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    options = connections.connection(case["service"], sandbox.urls[case["service"]])
    options |= connection_options(name, flavour)
    for step in (step for step in STEPS if step in case):
        sandbox.fault(service=case["service"], delay=0.2, times=HOSTS)
        mark = sandbox.mark()
        arguments = {**options, **forked.rendered(case[step])}
        results = on_all_hosts(tmp_path, case["module"], arguments)
        sandbox.clear_faults()
        assert [result["msg"] for result in results if result.get("failed")] == []
        writes = [
            f"{request['method']} {request['path']}"
            for request in sandbox.requests(since=mark)
            if request["write"]
        ]
        changed = sorted(result["changed"] for result in results)
        if step in case.get("writes", {}):
            assert len(writes) == case["writes"][step], writes
        assert changed == [False, False, True], (step, changed, writes)
