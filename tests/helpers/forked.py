# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tasks of a play in a forked process, without Ansible.

A task takes a tenth of the processor time that it takes in a playbook. As in the workers of Ansible,
each task has new connections and tokens, and no values to mask of earlier tasks. The contract test
verifies that Ansible returns what a module prints, and the canaries search the output of Ansible.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import jinja2

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import (
    short_lived,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import hidden
from sandbox.client import Sandbox
from tests.helpers import in_process, playbook
from tests.helpers.cases import CASES

#: Runs a module with these arguments; returns the result that it prints.
RunModule: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]
_SECONDS = 60
_UTILS = "ansible_collections.delivery.toolchain.plugins.module_utils._lib.core"


def run(
    folder: Path,
    play: Mapping[str, Any],
    sandbox: Sandbox | None = None,
    host: str = "localhost",
) -> playbook.Run:
    """Run the tasks of a play of modules in `folder`; return their events.

    The variables `sandbox_reset`, `sandbox_seed` and `sandbox_faults` of a task have the meaning
    that `callbacks/recorder.py` documents.

    :param host: the value of `inventory_hostname`
    """
    names = {_module_of(task)[0] for task in play["tasks"]}
    for name in names:
        in_process.loaded(name)
    with worker(folder) as run_module:
        events = [_event(run_module, play, task, sandbox, host) for task in play["tasks"]]
    recorded = json.dumps([event.result for event in events])
    return playbook.Run(0, "", events, recorded)


def _event(
    run_module: RunModule,
    play: Mapping[str, Any],
    task: Mapping[str, Any],
    sandbox: Sandbox | None,
    host: str,
) -> playbook.Event:
    module, arguments = _module_of(task)
    group = f"group/{playbook.NAMESPACE}.{CASES[module].get('service')}"
    mark = _prepare(sandbox, task.get("vars", {})) if sandbox is not None else 0
    started = time.monotonic()
    result = run_module(
        module,
        {
            **play["module_defaults"].get(group, {}),
            **rendered(arguments, host),
            "_ansible_check_mode": task.get("check_mode", False),
            "_ansible_diff": task.get("diff", False),
        },
    )
    seconds = time.monotonic() - started
    status = "failed" if result.get("failed") else "ok"
    requests = sandbox.requests(since=mark) if sandbox is not None else []
    return playbook.Event(task["name"], host, status, seconds, result, requests)


def _module_of(task: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the module of a task, and its arguments."""
    ((name, arguments),) = ((key, value) for key, value in task.items() if "." in key)
    return name.removeprefix(f"{playbook.NAMESPACE}."), arguments


def _prepare(sandbox: Sandbox, variables: Mapping[str, Any]) -> int:
    """Prepare the sandbox for a task; return the number of the newest request in its log."""
    faults = variables.get("sandbox_faults", [])
    if "sandbox_reset" not in variables:
        return sandbox.replace_faults(faults)
    settings, seed = variables["sandbox_reset"], variables.get("sandbox_seed", {})
    return sandbox.reset(settings, seed, faults)


def rendered(value: Any, host: str = "localhost") -> Any:
    """Return arguments of a case with the values of their expressions."""
    if isinstance(value, Mapping):
        return {name: rendered(each, host) for name, each in value.items()}
    if isinstance(value, list):
        return [rendered(each, host) for each in value]
    if isinstance(value, str) and "{{" in value:
        known = {"inventory_hostname": host, "inventory_file": __file__, "lookup": _lookup}
        return jinja2.Template(value, undefined=jinja2.StrictUndefined).render(known)
    return value


def _lookup(name: str, setting: str) -> list[str]:
    assert (name, setting) == ("ansible.builtin.config", "COLLECTIONS_PATHS")
    return [str(playbook.collections_path())]


def module_result(module: str, arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run a module in a fork of this process, in `folder`; return the result that it prints."""
    in_process.loaded(module)
    with worker(folder) as run_module:
        return run_module(module, arguments)


@contextlib.contextmanager
def worker(folder: Path) -> Iterator[RunModule]:
    """Fork this process; yield a function that runs a module in the fork, in `folder`.

    A fork takes ten times as long as a module that rejects its input.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            os.chdir(folder)
            with theirs.makefile("rw", encoding="utf-8") as stream:
                _serve(stream)
        finally:  # the process must not continue with the tests
            os._exit(0)
    theirs.close()
    try:
        with ours, ours.makefile("rw", encoding="utf-8") as stream:

            def run_module(module: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
                print(json.dumps([module, arguments]), file=stream, flush=True)
                result: dict[str, Any] = json.loads(stream.readline())
                return result

            yield run_module
    finally:
        os.waitpid(child, 0)


def _serve(stream: TextIO) -> None:
    """Run the modules that a stream names, until it ends; write their results."""
    connections = importlib.import_module(f"{_UTILS}.http.connections")
    for line in stream:
        signal.alarm(_SECONDS)
        try:
            text = json.dumps(in_process.run(*json.loads(line)))
        except BaseException as error:  # noqa: BLE001 - the process must continue with the next module
            text = json.dumps({"failed": True, "msg": repr(error), "trace": traceback.format_exc()})
        hidden.clear()
        connections.cached_session.cache_clear()
        short_lived.shared_tokens.cache_clear()
        print(text, file=stream, flush=True)
