# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tasks of a play in forked processes, as the workers of Ansible do, but without Ansible.

A task takes less than half of the processor time that it takes in a playbook. The contract test
verifies that Ansible returns what a module prints, and the canaries search the output of Ansible.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from sandbox.client import Sandbox
from tests.helpers import in_process, playbook
from tests.helpers.cases import CASES

_SECONDS = 60


def run(folder: Path, play: Mapping[str, Any], sandbox: Sandbox | None = None) -> playbook.Run:
    """Run the tasks of a play of modules; return their events.

    The variables `sandbox_reset`, `sandbox_seed` and `sandbox_faults` of a task have the meaning
    that `callbacks/recorder.py` documents.
    """
    events = [_event(folder, play, task, sandbox) for task in play["tasks"]]
    recorded = json.dumps([event.result for event in events])
    return playbook.Run(0, "", events, recorded)


def _event(
    folder: Path, play: Mapping[str, Any], task: Mapping[str, Any], sandbox: Sandbox | None
) -> playbook.Event:
    ((name, arguments),) = ((key, value) for key, value in task.items() if "." in key)
    module = name.removeprefix(f"{playbook.NAMESPACE}.")
    group = f"group/{playbook.NAMESPACE}.{CASES[module].get('service')}"
    mark = 0
    if sandbox is not None:
        _prepare(sandbox, task.get("vars", {}))
        mark = sandbox.mark()
    started = time.monotonic()
    result = module_result(
        module,
        {
            **play["module_defaults"].get(group, {}),
            **rendered(arguments),
            "_ansible_check_mode": task.get("check_mode", False),
            "_ansible_diff": task.get("diff", False),
        },
        folder,
    )
    seconds = time.monotonic() - started
    status = "failed" if result.get("failed") else "ok"
    requests = sandbox.requests(since=mark) if sandbox is not None else []
    return playbook.Event(task["name"], "localhost", status, seconds, result, requests)


def _prepare(sandbox: Sandbox, variables: Mapping[str, Any]) -> None:
    if "sandbox_reset" in variables:
        sandbox.reset()
        for service, changes in variables["sandbox_reset"].items():
            sandbox.settings(service, **changes)
        sandbox.seed(variables.get("sandbox_seed", {}))
    sandbox.clear_faults()
    for fault in variables.get("sandbox_faults", []):
        sandbox.fault(**fault)


def rendered(value: Any) -> Any:
    """Return arguments of a case with the values of their expressions."""
    if isinstance(value, Mapping):
        return {name: rendered(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rendered(each) for each in value]
    if isinstance(value, str) and "{{" in value:
        known = {"inventory_hostname": "localhost", "lookup": _lookup}
        return jinja2.Template(value, undefined=jinja2.StrictUndefined).render(known)
    return value


def _lookup(name: str, setting: str) -> list[str]:
    assert (name, setting) == ("ansible.builtin.config", "COLLECTIONS_PATHS")
    return [str(playbook.collections_path())]


def module_result(module: str, arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run a module in a fork of this process, in `folder`; return the result that it prints."""
    in_process.loaded(module)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        try:
            os.chdir(folder)
            text = json.dumps(in_process.run(module, arguments))
        except BaseException as error:  # noqa: BLE001 - the process must not continue with the tests
            text = json.dumps({"failed": True, "msg": repr(error), "trace": traceback.format_exc()})
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            stream.write(text)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(text)
    return result
