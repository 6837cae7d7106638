# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tasks of a role in a forked process, without Ansible, one response at a time.

A run takes a tenth of the processor time that it takes in a playbook. It reads the files of the
role, evaluates their expressions with Jinja and the filters of the collection, and runs the
modules. It skips `ansible.builtin.assert`, which sends no request, and rejects unknown keywords.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import multiprocessing
import re
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any
from unittest import mock

import jinja2
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials import (
    wanted,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import progress
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Accounting,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from tests.helpers import in_process, playbook
from tests.helpers.cases import CASES

_ROOT = Path(__file__).parents[2]
_FILTERS = "ansible_collections.delivery.toolchain.plugins.filter"
_SECONDS = 60
#: Seconds before the first poll: the builds of the sandbox end at once.
_POLL_SECONDS = 0.01
_OMITTED = object()
_EXPRESSION = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.DOTALL)
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_KEYWORDS = {"name", "vars", "when", "register", "check_mode", "changed_when", "no_log"}
_CONDITIONS = ("when", "changed_when")
_FORK = multiprocessing.get_context("fork")


def _jinja() -> jinja2.Environment:
    """Return an environment with the filters of the collection and the tests that roles use."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.tests["changed"] = lambda result: bool(result["changed"])
    environment.filters["combine"] = lambda one, other: {**one, **other}
    for path in (_ROOT / "plugins/filter").glob("[!_]*.py"):
        module = importlib.import_module(f"{_FILTERS}.{path.stem}")
        for name, function in module.FilterModule().filters().items():
            environment.filters[f"{playbook.NAMESPACE}.{name}"] = function
    return environment


_JINJA = _jinja()


@functools.cache
def _condition(text: str) -> Callable[..., Any]:
    return _JINJA.compile_expression(text)


@functools.cache
def _template(text: str) -> jinja2.Template | Callable[..., Any]:
    """Compile a string of a role; an expression alone keeps the type of its value."""
    alone = _EXPRESSION.fullmatch(text)
    if alone is None:
        return _JINJA.from_string(text)
    return _JINJA.compile_expression(alone[1], undefined_to_none=False)


def _compile(value: Any, key: str = "") -> None:
    """Compile all expressions in a file of a role, for all runs: they are forks."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            _compile(each, name)
    elif isinstance(value, list):
        for each in value:
            _compile(each, key)
    else:
        # assertions, which are not run, have filters of Ansible
        with contextlib.suppress(jinja2.TemplateAssertionError):
            (_condition if key in _CONDITIONS else _template)(str(value))


@functools.cache
def _files(role: str) -> dict[str, Any]:
    """Return the files of a role by path, compile their expressions, and import its modules.

    The process that starts the runs does this once, so that no run has to.
    """
    folder = _ROOT / "roles" / role
    found = {}
    for path in folder.glob("*/*.yml"):
        found[str(path.relative_to(folder))] = yaml.safe_load(path.read_text("utf-8"))
    for name, content in found.items():
        _compile(content)
        for task in content if name.startswith("tasks/") else ():
            for each in task.get("block", [task]):
                for module in CASES.keys() & {key.rpartition(".")[2] for key in each}:
                    in_process.loaded(module)
    return found


class Run:
    """A run of the role of a play in its own process; its modules stop after every response."""

    def __init__(self, play: Mapping[str, Any]) -> None:
        (role,) = play["roles"]
        tasks = _Tasks(play, _files(role["role"].removeprefix(f"{playbook.NAMESPACE}.")))
        self._signals, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_run, args=(tasks, theirs), daemon=True)
        self._process.start()
        theirs.close()
        #: The message of the failed task; empty after success, `None` before the end.
        self.failure: str | None = None
        #: The results that a playbook would print.
        self.printed = ""
        self._started = False

    def advance(self) -> bool:
        """Let the run continue until its next response; return whether there was one."""
        if self.failure is not None:
            return False
        if self._started:
            self._signals.send(None)
        self._started = True
        assert wait([self._signals], _SECONDS), "the run does not respond"
        self.failure, printed = self._signals.recv()
        self.printed += printed
        if self.failure is not None:
            self._process.join()
        return self.failure is None

    def finish(self) -> str:
        """Let the run continue until its end; return the message of the failed task, or ""."""
        while self.advance():
            pass
        assert self.failure is not None
        return self.failure

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _run(tasks: _Tasks, signals: Connection) -> None:
    count = Accounting.add

    def pausing(accounting: Accounting, **counts: float) -> None:
        count(accounting, **counts)
        if "seconds" in counts and accounting.total is None:
            signals.send((None, tasks.printed()))
            signals.recv()

    try:
        with (
            mock.patch.object(Accounting, "add", pausing),
            mock.patch.object(progress, "_FIRST_PAUSE", _POLL_SECONDS),
            # a run compares the records of earlier runs; half of its time is for their digests
            mock.patch.object(wanted, "_ROUNDS", 1),
        ):
            tasks.include("main.yml", {})
    except _TaskFailed as failed:
        signals.send((str(failed), tasks.printed()))
    else:
        signals.send(("", tasks.printed()))


class _TaskFailed(Exception):
    """A task has failed; the message is that of its module."""


class _Tasks:
    """The tasks of a role, and the variables that they set."""

    def __init__(self, play: Mapping[str, Any], files: Mapping[str, Any]) -> None:
        self._files, self._logins = files, play["module_defaults"]
        self._variables = {**files["defaults/main.yml"], **play["vars"], "omit": _OMITTED}
        self._variables["ansible_check_mode"] = False
        self._printed: list[str] = []

    def printed(self) -> str:
        """Return the results that are to be printed since the last call."""
        lines, self._printed = self._printed, []
        return "\n".join(lines)

    def include(self, file: str, inherited: Mapping[str, Any]) -> None:
        """Run the tasks of a file with the variables of the task that includes it."""
        self._run_all(self._files[f"tasks/{file}"], inherited)

    def _run_all(self, tasks: Sequence[Mapping[str, Any]], inherited: Mapping[str, Any]) -> None:
        for task in tasks:
            if "block" in task:
                self._run_block(task, inherited)
            elif "ansible.builtin.assert" not in task:
                self._run(task, inherited)

    def _run_block(self, task: Mapping[str, Any], inherited: Mapping[str, Any]) -> None:
        assert set(task) <= {"name", "block", "rescue", "always"}, task
        try:
            self._run_all(task["block"], inherited)
        except _TaskFailed as failed:
            if "rescue" not in task:
                raise
            self._variables["ansible_failed_result"] = {"msg": str(failed)}
            self._run_all(task["rescue"], inherited)
        finally:
            self._run_all(task.get("always", ()), inherited)

    def _run(self, task: Mapping[str, Any], inherited: Mapping[str, Any]) -> None:
        ((action, arguments),) = ((key, value) for key, value in task.items() if "." in key)
        assert set(task) <= _KEYWORDS | {action}, task
        local = dict(inherited)
        for name, value in task.get("vars", {}).items():
            local[name] = self._rendered(value, {**self._variables, **local})
        known = {**self._variables, **local}
        if not self._holds(task.get("when", []), known):
            result: dict[str, Any] = {"changed": False, "skipped": True}
        elif action == "ansible.builtin.include_tasks":
            self.include(self._rendered(arguments, known), local)
            return
        else:
            result = self._result(action, self._rendered(arguments, known), task, known)
        if "register" in task:
            self._variables[task["register"]] = result
            if "changed_when" in task:
                known = {**self._variables, **local}
                result["changed"] = self._holds(task["changed_when"], known)

    def _result(
        self, action: str, arguments: Any, task: Mapping[str, Any], known: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Run the action of a task. Raises if it fails."""
        if action == "ansible.builtin.set_fact":
            self._variables |= arguments
            return {"changed": False}
        if action == "ansible.builtin.fail":
            self._printed.append(arguments["msg"])
            raise _TaskFailed(arguments["msg"])
        if action == f"{playbook.NAMESPACE}.bookkeeping":
            return self._bookkeeping(dict(arguments), known)
        namespace, _, module = action.rpartition(".")
        login = self._logins[f"group/{namespace}.{CASES[module]['service']}"]
        checks = self._rendered(task.get("check_mode", False), known)
        internal = {"_ansible_check_mode": checks, "_toolchain_findings": True}
        result = in_process.run(module, {**login, **arguments, **internal})
        if not self._rendered(task.get("no_log", False), known):
            self._printed.append(json.dumps(result))
        if result.get("failed"):
            raise _TaskFailed(result["msg"])
        return result

    def _bookkeeping(self, values: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        """Run a step of the action `bookkeeping`, except the check of the role's variables."""
        step = values.pop("step")
        if step == "check":
            return {"changed": False}
        run = bookkeeping.Run(known, lambda value: self._rendered(value, known), str)
        try:
            return {"changed": False, **bookkeeping.perform(step, run, values)}
        except bookkeeping.StepError as error:
            raise _TaskFailed(str(error)) from None

    def _holds(self, conditions: Any, known: Mapping[str, Any]) -> bool:
        """Return whether all conditions of a task are true."""
        listed = conditions if isinstance(conditions, list) else [conditions]
        return all(_condition(str(each))(**known) for each in listed)

    def _rendered(self, value: Any, known: Mapping[str, Any]) -> Any:
        if isinstance(value, Mapping):
            found = {name: self._rendered(each, known) for name, each in value.items()}
            return {name: each for name, each in found.items() if each is not _OMITTED}
        if isinstance(value, list):
            return [self._rendered(each, known) for each in value]
        if not isinstance(value, str):
            return value
        compiled = _template(value)
        if isinstance(compiled, jinja2.Template):
            return compiled.render(known)
        result = compiled(**known)
        assert not isinstance(result, jinja2.Undefined), value
        # as ansible-core before 2.19 does with `jinja2_native`
        if isinstance(result, str) and _NUMBER.fullmatch(result):
            return int(result)
        return result
