# SPDX-License-Identifier: GPL-3.0-or-later
"""One action for all modules: it fills in connections that are given by variables, and runs a
module inside the worker that Ansible has forked anyway, where that is the same.

To run one there it replaces three steps of Ansible's own way (how the module is packed, whether it
is piped, how it is executed) and leaves everything else to it, so that both ways give the same
result to the letter.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ansible import constants
from ansible.executor import task_result
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils.core.http.sessions import (
    names_proxies,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.progress import progress_to
from ansible_collections.delivery.toolchain.plugins.plugin_utils import (
    ansible_internals,
    interpreters,
    lookup_answers,
    variables,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import switch

# For the workers: the process that forks them loads this file, so that none of them pays for it,
# nor for what sessions load when they need it (cookies, and the library that reads proxies).
importlib.import_module(
    "ansible_collections.delivery.toolchain.plugins.module_utils.core.module.runner"
)
importlib.import_module("http.cookiejar")
if names_proxies():
    with contextlib.suppress(ImportError):
        importlib.import_module("requests.utils")

# Ansible takes the terminal away from its workers, and shows nothing more of what they send once
# it was interrupted. The process that forks them keeps its standard error here for their last
# words. Closed: nobody hears them.
try:
    _STDERR = os.dup(2)
except OSError:
    _STDERR = -1

_HERE = ("localhost", "127.0.0.1", "::1")
_OLDEST_PYTHON = (3, 10)
#: Up to ansible-core 2.20 `no_log` takes a return value C(results) for the items of a loop, and
#: hides only those that are marked.
_HIDES_MARKED_ROWS_ONLY = hasattr(task_result, "censor_result")

_INTERNALS: ansible_internals.Internals | None = None
_MISSING = ""
try:
    _INTERNALS = ansible_internals.find()
except ansible_internals.Missing as missing:
    _MISSING = str(missing)


class Action(NormalAction):
    """Run a module of this collection, in the worker where that is the same as in a process of its
    own.

    C(service) is that of the module; C(None) where it speaks to no server.
    """

    service: str | None = None
    _in_process = False
    _arguments: Mapping[str, Any] = {}
    _module = ""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self._in_process = self._may_run_here(task_vars or {})
        result: dict[str, Any] = super().run(tmp, task_vars)
        if (
            self._task.no_log
            and _HIDES_MARKED_ROWS_ONLY
            and isinstance(result.get("results"), list)
        ):
            for row in result["results"]:
                if isinstance(row, dict):
                    row["_ansible_no_log"] = True
        if not self._in_process and _has_broken_off(result):
            self._name_an_old_python(result)
        return result

    def _name_an_old_python(self, result: dict[str, Any]) -> None:
        """Say what is needed where a module broke off because its Python is too old for it."""
        program = str(self._used_interpreter or "").removeprefix("#!").strip()
        if not program:
            return
        asked = self._low_level_execute_command(
            f'{program} -c "import sys; print(sys.version_info[:2] < {_OLDEST_PYTHON})"',
            sudoable=False,
        )
        if asked["stdout"].strip() == "True":
            oldest = ".".join(str(number) for number in _OLDEST_PYTHON)
            result["msg"] = (
                f"The modules of delivery.toolchain need Python {oldest} or newer where they run,"
                f" and {program} is older: name another one in the variable"
                " ansible_python_interpreter"
            )
            for told in ("exception", "module_stderr", "module_stdout"):
                result.pop(told, None)

    def _may_run_here(self, task_vars: Mapping[str, Any]) -> bool:
        task = self._task
        elsewhere = task.delegate_to is not None and task.delegate_to not in _HERE
        if self._connection.transport != "local" or elsewhere:
            return False
        if self._play_context.become or task.become or task.async_val:
            return False
        wanted = self._templar.template(task_vars.get("toolchain_in_process", True))
        if not boolean(wanted) or not self._same_interpreter(task_vars):
            return False
        if _INTERNALS is None:
            Display().warning(
                "The modules of delivery.toolchain run in processes of their own, which takes"
                f" longer: this ansible-core is not known to them ({_MISSING})."
            )
        return _INTERNALS is not None

    def _same_interpreter(self, task_vars: Mapping[str, Any]) -> bool:
        """Whether the interpreter that the user asks for, if any, is the one that runs the
        worker.
        """
        asked = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        asked = self._templar.template(asked)
        if asked is None or str(asked).startswith("auto"):
            return True
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        if _is_own_interpreter(str(asked), environment.get("PATH")):
            return True
        _say_once(
            f"{self._task.action} runs in a process of its own, which takes longer:"
            f" ansible_python_interpreter is {asked}, Ansible runs on {sys.executable}",
            str(task_vars.get("inventory_hostname")),
        )
        return False

    def _execute_module(
        self, module_name: str | None = None, module_args: Any = None, **rest: Any
    ) -> dict[str, Any]:
        """In both ways with the connection options that variables name. The task itself does not
        keep them: what shows a task does not show them.
        """
        arguments = dict(self._task.args if module_args is None else module_args)
        if self.service is not None:
            arguments.update(
                variables.from_variables(
                    self.service, arguments, rest.get("task_vars") or {}, self._templar.template
                )
            )
        rest["task_vars"] = {**(rest.get("task_vars") or {}), **switch.variables()}
        shown = self._task.diff
        # a report needs both sides; restored, so that Ansible shows a diff with --diff only
        self._task.diff = shown or switch.is_on()
        try:
            result: dict[str, Any] = super()._execute_module(module_name, arguments, **rest)
        finally:
            self._task.diff = shown
        if self.service is not None and (result.get("http") or {}).get("writes") != 0:
            lookup_answers.forget()
        return result

    def _configure_module(
        self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any], **rest: Any
    ) -> tuple[Any, ...]:
        if not self._in_process or _INTERNALS is None:
            built: tuple[Any, ...] = super()._configure_module(
                module_name, module_args, task_vars, **rest
            )
            return built
        self._module, self._arguments = _module_of(type(self)), module_args
        path = str(importlib.import_module(self._module).__file__)
        return _INTERNALS.built(f"#!{sys.executable}", path)

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        """In the worker nothing is copied to a temporary folder first."""
        return self._in_process or bool(super()._is_pipelining_enabled(module_style, wrap_async))

    def _low_level_execute_command(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not self._module or _INTERNALS is None:
            executed: dict[str, Any] = super()._low_level_execute_command(*args, **kwargs)
            return executed
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        with (
            progress_to(Display().display, last=_last_words),
            _as_on_a_target(environment, self._loader.get_basedir()),
            _INTERNALS.ready_for(self._arguments),
        ):
            rc, stdout, stderr = _run_module(self._module, _INTERNALS)
        return {
            "rc": rc,
            "stdout": stdout,
            "stdout_lines": stdout.splitlines(),
            "stderr": stderr,
            "stderr_lines": stderr.splitlines(),
        }


def _module_of(action: type[Action]) -> str:
    """The module of an action: the one of its name beside it, as everywhere in this collection.

    Ansible's search for it would take longer than the rest of what is done here for an item.
    """
    return action.__module__.replace(".plugins.action.", ".plugins.modules.")


@functools.cache
def _is_own_interpreter(name: str, search_path: str | None) -> bool:
    """Looked for once: the items of a loop share their worker."""
    return interpreters.is_same(name, sys.executable, search_path)


@functools.cache
def _say_once(line: str, host: str) -> None:
    """Say it at C(-v), once a task: the items of a loop share their worker."""
    Display().v(line, host=host)


def _has_broken_off(result: Mapping[str, Any]) -> bool:
    """Whether a module ended without a result of its own."""
    thrown = "module_stderr" in result or "exception" in result
    return bool(result.get("failed")) and thrown and "error" not in result


def _last_words(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{line}\n".encode())


def _run_module(module: str, internals: ansible_internals.Internals) -> tuple[int, str, str]:
    """Run C(main) of a module as if in a process of its own; its exit code and what it printed."""
    stdout, stderr = io.StringIO(), io.StringIO()
    rc = 0
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            _main(module, internals)
        except SystemExit as exit_:
            rc = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return rc, stdout.getvalue(), stderr.getvalue()


def _main(module: str, internals: ansible_internals.Internals) -> None:
    raised: Exception | None = None
    try:
        importlib.import_module(module).main()
    except Exception as error:  # noqa: BLE001 - it must not take the worker down
        raised = error
    internals.end_without_result(raised)


@contextlib.contextmanager
def _as_on_a_target(environment: Mapping[str, Any], folder: str) -> Iterator[None]:
    """What a module finds in a process of its own; afterwards everything is as it was before.

    A process on a local connection is started in the folder of the playbook (C(folder)).
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
