# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of all modules: it fills in connections from variables, and runs a module in the
worker that Ansible has forked, if that gives the same result.

In the worker it replaces three steps of Ansible (packaging, piping and executing the module) and
leaves the rest to Ansible, so that both modes return the same result.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils.core.plans import predictions
from ansible_collections.delivery.toolchain.plugins.module_utils.core.plans.sealing import ARGUMENT
from ansible_collections.delivery.toolchain.plugins.module_utils.core.progress import progress_to
from ansible_collections.delivery.toolchain.plugins.plugin_utils import (
    ansible_internals,
    interpreters,
    lookup_cache,
    variables,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import switch

# The process that forks the workers loads this file. Imports here cost no worker time: the runner,
# and the library that a session loads with its first request.
_UTILS = "ansible_collections.delivery.toolchain.plugins.module_utils"
importlib.import_module(f"{_UTILS}.core.module.runner")
with contextlib.suppress(ImportError):
    importlib.import_module(f"{_UTILS}.core.http.connections")

# Ansible takes the terminal away from its workers, and after an interrupt it shows nothing that
# they send. The parent keeps its standard error here for their last messages; -1: it has none.
try:
    _STDERR = os.dup(2)
except OSError:
    _STDERR = -1

#: The fact with which the playbooks `drift` and `enforce` pass a sealed plan to all modules.
SEALED = "toolchain_sealed"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_OLDEST_PYTHON = (3, 10)

_INTERNALS: ansible_internals.Internals | None = None
_MISSING = ""
try:
    _INTERNALS = ansible_internals.find()
except ansible_internals.Missing as missing:
    _MISSING = str(missing)


class Action(ansible_internals.HookedAction):
    """Run a module of this collection.

    `service` is the service of the module, `None` for a module that needs no server.
    """

    service: str | None = None
    internals = _INTERNALS

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        # a folder of this run, which Ansible removes at its end
        os.environ[predictions.FOLDER] = os.path.join(constants.DEFAULT_LOCAL_TMP, "predictions")
        if self._may_run_in_worker(task_vars or {}):
            # the module of the same name; Ansible's own search takes longer than all of this
            self.worker_module = type(self).__module__.replace(".action.", ".modules.")
        result = self.run_module(task_vars)
        if self.task.no_log:
            ansible_internals.mark_rows_as_secret(result)
        if not self.worker_module and _has_crashed(result):
            self._explain_old_python(result)
        if self.task.loop is not None:
            _warn_of_loop_variables(result, task_vars or {})
        return result

    def _explain_old_python(self, result: dict[str, Any]) -> None:
        """Name the required Python in a result if the module crashed because its Python is older.

        If the interpreter is unknown, the message names the condition.
        """
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        needed = f"The modules of delivery.toolchain need Python {oldest} or newer where they run"
        remedy = "set the variable ansible_python_interpreter to another interpreter"
        program = self.used_interpreter()
        if not program:
            result["msg"] = f"{result.get('msg')}; {needed}: if it is older, {remedy}"
            return
        is_old = self.output_of(
            f'{program} -c "import sys; print(sys.version_info[:2] < {_OLDEST_PYTHON})"'
        )
        if is_old.strip() == "True":
            result["msg"] = f"{needed}, and {program} is older: {remedy}"
            for name in ("exception", "module_stderr", "module_stdout"):
                result.pop(name, None)

    def _may_run_in_worker(self, task_vars: Mapping[str, Any]) -> bool:
        task, play = self.task, self.play_context
        delegated = task.delegate_to is not None and task.delegate_to not in _LOCAL_HOSTS
        if self.connection.transport != "local" or delegated or task.become or task.async_val:
            return False
        if play is not None and play.become:
            return False
        if not boolean(self.template(task_vars.get("toolchain_in_process", True))):
            return False
        if self.internals is None or play is None:
            reason = _MISSING or "ActionBase has no play_context"
            Display().warning(
                "The modules of delivery.toolchain run in separate processes, which takes longer,"
                f" because they do not support this release of ansible-core ({reason})."
            )
            return False
        return self._is_same_interpreter(task_vars)

    def _is_same_interpreter(self, task_vars: Mapping[str, Any]) -> bool:
        """Return whether the interpreter that the user asks for, if any, runs the worker."""
        asked = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        asked = self.template(asked)
        if asked is None or str(asked).startswith("auto"):
            return True
        if _is_worker_interpreter(str(asked), self.environment().get("PATH")):
            return True
        _log_once(
            f"{self.task.action} runs in a separate process, which takes longer, because"
            f" ansible_python_interpreter is {asked}, but Ansible runs on {sys.executable}",
            str(task_vars.get("inventory_hostname")),
        )
        return False

    def arguments_for(
        self, arguments: dict[str, Any], task_vars: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Add the connection options that variables set. The task does not keep them: output that
        shows the task does not show them.
        """
        if self.service is not None:
            arguments.update(
                variables.from_variables(self.service, arguments, task_vars, self.template)
            )
            if task_vars.get(SEALED):
                arguments[ARGUMENT] = dict(task_vars[SEALED])
        return arguments, {**task_vars, **switch.variables()}

    def run_module(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        shown = self.task.diff
        # a report needs both sides; restored, so that Ansible shows a diff with --diff only
        self.task.diff = shown or switch.is_on()
        try:
            result = super().run_module(task_vars)
        finally:
            self.task.diff = shown
        if shown and not self.task.no_log:
            _show_comparison(result)
        if self.service is not None and (result.get("http") or {}).get("writes") != 0:
            lookup_cache.forget()
        return result

    def run_in_worker(self) -> tuple[int, str, str]:
        if self.internals is None:
            raise RuntimeError("a module runs in the worker only with the internals of Ansible")
        with (
            progress_to(Display().display, last=_write_to_stderr),
            _as_on_a_target(self.environment(), self.loader.get_basedir()),
            self.internals.ready_for(self.module_arguments),
        ):
            return _run_main(self.worker_module, self.internals)


@functools.cache
def _is_worker_interpreter(name: str, search_path: str | None) -> bool:
    return interpreters.is_same(name, sys.executable, search_path)


@functools.cache
def _log_once(line: str, host: str) -> None:
    """Display a line at `-v`, once for all items of a loop, which share their worker."""
    Display().v(line, host=host)


def _show_comparison(result: Mapping[str, Any]) -> None:
    """Display the diff of a module that only compares: Ansible displays the diff of a change."""
    diff = result.get("diff")
    if result.get("changed") or not isinstance(diff, Mapping):
        return
    before, after = (str(diff.get(side) or "") for side in ("before", "after"))
    if before != after:
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), "before", "after", lineterm=""
        )
        Display().display("\n".join(lines))


def _warn_of_loop_variables(result: Mapping[str, Any], task_vars: Mapping[str, Any]) -> None:
    """Warn of return values that Ansible replaces in each item of a registered loop."""
    for option in ("loop_var", "index_var"):
        name = task_vars.get(f"ansible_{option}")
        if name in result:
            Display().warning(
                f"{option} is '{name}', which replaces the return value '{name}' in the result of"
                " the loop: use another name"
            )


def _has_crashed(result: Mapping[str, Any]) -> bool:
    """Return whether a module ended without a result of its own."""
    crashed = "module_stderr" in result or "exception" in result
    return bool(result.get("failed")) and crashed and "error" not in result


def _write_to_stderr(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{line}\n".encode())


def _run_main(module: str, internals: ansible_internals.Internals) -> tuple[int, str, str]:
    """Run `main` of a module as in a separate process; return exit code and both outputs."""
    stdout, stderr = io.StringIO(), io.StringIO()
    rc = 0
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        raised: Exception | None = None
        try:
            try:
                importlib.import_module(module).main()
            except Exception as error:  # noqa: BLE001 - it must not end the worker
                raised = error
            internals.end_without_result(raised)
        except SystemExit as exit_:
            rc = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return rc, stdout.getvalue(), stderr.getvalue()


@contextlib.contextmanager
def _as_on_a_target(environment: Mapping[str, Any], folder: str) -> Iterator[None]:
    """Set environment and working directory as in a separate process; restore them afterwards.

    A process on a local connection starts in the folder of the playbook (`folder`).
    """
    before = dict(os.environb)
    folder_before = os.getcwd()
    os.chdir(folder)
    os.environ.update({str(key): str(value) for key, value in environment.items()})
    try:
        yield
    finally:
        after = dict(os.environb)
        for name in after.keys() - before.keys():
            del os.environb[name]
        os.environb.update(before.items() - after.items())
        os.chdir(folder_before)
