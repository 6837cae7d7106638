# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of all modules. It adds connection options from variables, and runs the module in the
worker that Ansible has forked, if possible.

In the worker it replaces three steps of Ansible: packaging, piping and executing the module. All
other steps are the same, so that both modes return the same result.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ...module_utils._lib.core.connection import short_lived
from ...module_utils._lib.core.errors import ToolchainError, printable
from ...module_utils._lib.core.finding import RETURNED
from ...module_utils._lib.core.http.messages import Accounting
from ...module_utils._lib.core.module import run_folder, server_values
from ...module_utils._lib.core.module.ansible_internals import REPORTS
from ...module_utils._lib.core.module.input_check import require_whole_characters
from ...module_utils._lib.core.module.sealing import ARGUMENT
from ...module_utils._lib.core.progress import progress_to
from ...module_utils._lib.core.times import not_built
from . import ansible_internals, collection, interpreters, lookup_cache, refused_servers, variables
from .report import switch, task_findings, writing

# Import the runner and `requests` before Ansible forks the workers, to save time in each worker.
_UTILS = "ansible_collections.delivery.toolchain.plugins.module_utils._lib"
importlib.import_module(f"{_UTILS}.core.module.runner")
with contextlib.suppress(ImportError):
    # also what a module in a process of its own imports only if it needs it
    for _name in ("connections", "multipart", "network_errors"):
        importlib.import_module(f"{_UTILS}.core.http.{_name}")
# The workers share the access tokens of short-lived logins in memory that exists before the fork.
with contextlib.suppress(OSError):
    short_lived.shared_tokens()

#: Result with which the playbooks `drift` and `enforce` pass a sealed plan to all modules.
SEALED = "toolchain_sealed"
#: Variable: an object that does not exist is built in this run. Then a task in check mode would
#: change something, and does not fail.
NOT_BUILT = "toolchain_not_built"
_COMPARING_ROLES = tuple(f"delivery.toolchain.{role}" for role in collection.ROLES)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_OLDEST_PYTHON = (3, 10)
_SECONDS_BETWEEN_LOOKS = 1.0

_INTERNALS: ansible_internals.Internals | None = None
_MISSING = ""
try:
    _INTERNALS = ansible_internals.find()
except ansible_internals.Missing as missing:
    _MISSING = str(missing)


class Action(ansible_internals.HookedAction):
    """Base class of the actions of all modules."""

    #: Service of the module, `None` for a module that needs no server.
    service: str | None = None
    module = ""
    internals = _INTERNALS

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        _end_with_parent(os.getpid())
        # a temporary folder that Ansible removes at the end of the run
        os.environ[run_folder.VARIABLE] = os.path.join(constants.DEFAULT_LOCAL_TMP, "toolchain-run")
        os.environ[server_values.FOLDER] = self._folder_of_server_values(task_vars or {})
        if self._may_run_in_worker(task_vars or {}):
            # not by Ansible's search for the module, which takes longer than this whole method
            self.worker_module = self.module
        result = self.run_module(task_vars)
        if self._is_not_built(result, task_vars or {}):
            result.pop("exception", None)
            result.update(self._as_not_built(result))
        if self.task.no_log:
            ansible_internals.mark_rows_as_secret(result)
        if not self.worker_module and _has_crashed(result):
            self._explain_old_python(result)
        if self.task.loop is not None:
            _warn_of_loop_variables(result, task_vars or {})
        return result

    def _folder_of_server_values(self, task_vars: Mapping[str, Any]) -> str:
        """Return a folder in the report of the run, or without a report a folder of the run."""
        value = task_vars.get("drift_report") or os.environ.get("TOOLCHAIN_REPORT")
        named = variables.evaluated(value, self.template) if value else None
        if not named or not writing.is_path(named):
            return os.path.join(constants.DEFAULT_LOCAL_TMP, "server_values")
        return str(writing.resolved(str(named), task_vars) / "server_values")

    def _is_not_built(self, result: Mapping[str, Any], task_vars: Mapping[str, Any]) -> bool:
        """Return whether a task in check mode failed only for objects that this run will build."""
        rows = result.get("results") or ()
        errors = [result.get("error") or {}, *(row["error"] for row in rows if row.get("error"))]
        if not self.task.check_mode or any(error.get("kind") != "not_found" for error in errors):
            return False
        return self._is_on(NOT_BUILT, task_vars, default=False)

    def _as_not_built(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changed values of the result for an object that the run would build.

        With the option `soak`, the task fails as in the run: the object is too young. An object
        that exists, but that nobody has promoted, fails without a status of the server.
        """
        soak = self.task.args.get("soak")
        if not isinstance(soak, Mapping):
            found = [
                {"kind": row["kind"], "name": row.get("name", ""), "action": "update"}
                if "error" in row
                else row
                for row in result.get(RETURNED, ())
            ]
            # without findings, the report names the object from the options of the task
            return {"failed": False, "changed": True, **({RETURNED: found} if found else {})}
        if result["error"].get("status") is None:
            return {}
        stage = str(soak.get("status", soak.get("environment")))
        waits = not_built("it", stage, str(soak.get("for")))
        message = f"{str(result.get('msg')).rstrip('.')}: {waits}"
        return {**waits.result, "msg": message, "error": {**result["error"], "kind": waits.kind}}

    def _explain_old_python(self, result: dict[str, Any]) -> None:
        """Explain in the result that a module crashed because its Python is too old.

        If the interpreter is unknown, the message says that Python may be too old.
        """
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        required = f"The modules of delivery.toolchain require Python {oldest} or newer"
        remedy = "set the variable ansible_python_interpreter to another interpreter"
        program = self.used_interpreter()
        if not program:
            result["msg"] = (
                f"{result.get('msg')}; {required}: if the host has an older one, {remedy}"
            )
            return
        is_old = self.output_of(
            f'{program} -c "import sys; print(sys.version_info[:2] < {_OLDEST_PYTHON})"'
        )
        if is_old.strip() == "True":
            result["msg"] = f"{required}, but {program} is older: {remedy}"
            for name in ("exception", "module_stderr", "module_stdout"):
                result.pop(name, None)

    def _may_run_in_worker(self, task_vars: Mapping[str, Any]) -> bool:
        task, play = self.task, self.play_context
        delegated = task.delegate_to is not None and task.delegate_to not in _LOCAL_HOSTS
        if self.connection.transport != "local" or delegated or task.become or task.async_val:
            return False
        if play is not None and play.become:
            return False
        if not self._is_on("toolchain_in_process", task_vars, default=True):
            return False
        if self.internals is None or play is None:
            reason = _MISSING or "ActionBase has no play_context"
            Display().warning(
                "The modules of delivery.toolchain run in separate processes, which takes longer,"
                f" because they do not support this release of ansible-core ({reason})."
            )
            return False
        return self._has_same_environment(task_vars) and self._is_same_interpreter(task_vars)

    def _is_on(self, name: str, task_vars: Mapping[str, Any], *, default: bool) -> bool:
        """Return the value of a variable that switches something on or off."""
        try:
            return variables.is_on(name, task_vars, self.template, default=default)
        except ToolchainError as error:
            raise AnsibleActionFail(error.message, result={"error": error.as_dict()}) from None

    def _has_same_environment(self, task_vars: Mapping[str, Any]) -> bool:
        """Return whether `environment` has no variables that only a new interpreter reads."""
        names = self.environment() if any(self.task.environment or ()) else ()
        found = [name for name in names if name.startswith("PYTHON")]
        if found:
            _log_once(
                f"{self.task.action} runs in a separate process, which takes longer, because"
                f" environment sets {', '.join(found)}",
                str(task_vars.get("inventory_hostname")),
            )
        return not found

    def _is_same_interpreter(self, task_vars: Mapping[str, Any]) -> bool:
        """Return whether the configured interpreter, if any, is that of the worker."""
        configured = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        configured = variables.evaluated(configured, self.template)
        if configured is None or str(configured).startswith("auto"):
            return True
        if _is_worker_interpreter(str(configured), self.environment().get("PATH")):
            return True
        _log_once(
            f"{self.task.action} runs in a separate process, which takes longer, because"
            f" ansible_python_interpreter is {configured}, but Ansible runs on {sys.executable}",
            str(task_vars.get("inventory_hostname")),
        )
        return False

    def arguments_for(
        self, arguments: dict[str, Any], task_vars: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Add the connection options from variables to a copy of the arguments.

        The arguments of the task do not change, because Ansible may display them.
        """
        try:
            if self.service is not None:
                arguments |= variables.from_variables(
                    self.service, arguments, task_vars, self.template
                )
            require_whole_characters(arguments)
        except ToolchainError as error:
            raise AnsibleActionFail(error.message, result={"error": error.as_dict()}) from None
        if self.service is not None and task_vars.get(SEALED):
            arguments[ARGUMENT] = _sealed_of(task_vars[SEALED])
        if switch.is_on() or task_vars.get("ansible_role_name") in _COMPARING_ROLES:
            arguments[REPORTS] = True
        return arguments, {**task_vars, **switch.variables()}

    def executed(
        self,
        arguments: Mapping[str, Any],
        task_vars: Mapping[str, Any],
        execute: Callable[[], dict[str, Any]],
    ) -> dict[str, Any]:
        """Run the module, unless the server has refused an earlier task of the run."""
        if self.service is None or not self._is_on(
            refused_servers.VARIABLE, task_vars, default=False
        ):
            return execute()
        server = refused_servers.Server(self.service, arguments, os.environ)
        with server.alone_at_first():
            error = server.error()
            if error is None:
                result = execute()
                server.note(result)
                return result
        module = self.task.action.rpartition(".")[2]
        return {
            "failed": True,
            "changed": False,
            "msg": f"{server.url}: {refused_servers.refusal_of(error)} in an earlier task, so this"
            " task sent nothing",
            "error": error,
            "http": Accounting().as_dict(),
            "not_compared": task_findings.expected(module, arguments),
            "invocation": {"module_args": {"url": server.url}},
        }

    def run_module(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        with_diff = self.task.diff
        # a report needs the diff, but Ansible must display a diff only with --diff
        self.task.diff = with_diff or switch.is_on()
        try:
            result = super().run_module(task_vars)
        finally:
            self.task.diff = with_diff
        if with_diff and not self.task.no_log:
            _show_comparison(result)
        if self.service is not None and (result.get("http") or {}).get("writes") != 0:
            lookup_cache.forget()
        return result

    def run_in_worker(self) -> tuple[int, str, str]:
        if self.internals is None:
            raise RuntimeError("cannot run a module in the worker: private names are missing")
        with (
            progress_to(_show, last=functools.partial(_write_to_stderr_of, os.getppid())),
            _as_on_a_target(self.environment(), self.loader.get_basedir()),
            self.internals.ready_for(self.module_arguments),
        ):
            return _run_main(self.worker_module, self.internals)


def action_of(main: Callable[[], None], service: str | None) -> type[Action]:
    """Return the action class of a module.

    :param main: function of the module
    :param service: service of the module, `None` for a module that needs no server
    """
    return type("ActionModule", (Action,), {"module": main.__module__, "service": service})


@functools.cache
def _is_worker_interpreter(name: str, search_path: str | None) -> bool:
    return interpreters.is_same(name, sys.executable, search_path)


@functools.cache
def _log_once(line: str, host: str) -> None:
    """Display a line with `-v`, only once for all items of a loop."""
    Display().v(line, host=host)


def _show_comparison(result: Mapping[str, Any]) -> None:
    """Display the diff of an unchanged task, which Ansible does not display."""
    diff = result.get("diff")
    if result.get("changed") or not isinstance(diff, Mapping):
        return
    before, after = (str(diff.get(side) or "") for side in ("before", "after"))
    if before != after:
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), "before", "after", lineterm=""
        )
        _show("\n".join(lines))


def _show(text: str) -> None:
    """Display text on standard error, because standard output may be JSON for a program."""
    Display().display(text, stderr=True)


def _warn_of_loop_variables(result: Mapping[str, Any], task_vars: Mapping[str, Any]) -> None:
    """Warn about return values that a loop variable of the same name replaces."""
    for option in ("loop_var", "index_var"):
        name = task_vars.get(f"ansible_{option}")
        if name in result:
            Display().warning(
                f"{option} is '{name}', which replaces the return value '{name}' in the result of"
                " the loop: use another name"
            )


def _has_crashed(result: Mapping[str, Any]) -> bool:
    """Return whether a module ended without returning a result."""
    crashed = "module_stderr" in result or "exception" in result
    return bool(result.get("failed")) and crashed and "error" not in result


def _write_to_stderr_of(parent: int, line: str) -> None:
    """Write a line to the standard error of the process that forked this worker.

    Ansible detaches its workers from the terminal, and displays none of their messages after an
    interrupt. A copy of the descriptor in every worker would keep a pipe open when the parent is
    killed. Systems without `/proc` show no such line.
    """
    with contextlib.suppress(OSError):
        if os.getppid() == parent:
            with open(f"/proc/{parent}/fd/2", "ab", buffering=0) as file:
                file.write(f"{line}\n".encode())


@functools.cache
def _end_with_parent(worker: int) -> None:
    """Send SIGTERM to this worker as soon as the process that forked it has ended.

    One thread for all items of a loop. `os.getppid()` would not notice that the process has ended
    before this call.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # up to ansible-core 2.18: without a handler, an interrupted module that waits would not end
        # the worker, and the next item of a loop would start
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_signal: os.kill(worker, signal.SIGKILL))

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os.kill(worker, signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _run_main(module: str, internals: ansible_internals.Internals) -> tuple[int, str, str]:
    """Run `main` of a module as in a separate process. Return exit code, stdout and stderr."""
    stdout, stderr = io.StringIO(), io.StringIO()
    rc = 0
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        raised: Exception | None = None
        try:
            try:
                importlib.import_module(module).main()
            except Exception as error:  # noqa: BLE001 - the worker must return a result
                raised = error
            internals.end_without_result(raised)
        except SystemExit as exit_:
            rc = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return rc, stdout.getvalue(), stderr.getvalue()


@contextlib.contextmanager
def _as_on_a_target(environment: Mapping[str, Any], folder: str) -> Iterator[None]:
    """Set environment and working directory as in a separate process during the block.

    :param folder: folder of the playbook, in which a process on a local connection starts
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


def _sealed_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sealed plan that a step of a playbook has registered.

    Raises AnsibleActionFail if the step failed and its error was ignored, because the module must
    not write more than the plan allows.
    """
    if "sealed" not in result:
        problem = printable(str(result.get("msg") or "its task did not run")).rstrip(".")
        raise AnsibleActionFail(f"nothing was sent, because the sealed plan is missing: {problem}.")
    return dict(result["sealed"])
