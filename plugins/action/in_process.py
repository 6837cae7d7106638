# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One action plugin for all modules: on a local connection a module runs inside the worker that Ansible forked anyway.

It replaces three steps of Ansible's own way (how the module is packed, whether it is piped, how it is executed) and
leaves everything else to it, so that both ways give the same result to the letter.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.executor import task_result
from ansible.executor.module_common import _BuiltModule
from ansible.module_utils import _internal, basic
from ansible.module_utils._internal._ansiballz import _loader
from ansible.module_utils.common import warnings
from ansible.module_utils.common.json import Direction, get_module_encoder
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.common.text.converters import to_native
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils.core.progress import shown_by

# For the workers: the process that forks them loads this file, so that none of them pays for it.
importlib.import_module(
    "ansible_collections.delivery.toolchain.plugins.module_utils.core.module.runner"
)

# Ansible takes the terminal away from its workers, and shows nothing more of what they send once it was interrupted.
# The process that forks them keeps its standard error here for their last words. Closed: nobody hears them.
try:
    _STDERR = os.dup(2)
except OSError:
    _STDERR = -1

_PROFILE = "legacy"
_HERE = ("localhost", "127.0.0.1", "::1")
#: Elements from which on a list in a result is searched for secrets as a whole.
_LARGE = 100
#: Up to ansible-core 2.20 `no_log` takes a return value C(results) for the items of a loop, and hides
#: only those that are marked.
_HIDES_MARKED_ROWS_ONLY = hasattr(task_result, "censor_result")


class ActionModule(NormalAction):
    """Run a module of this collection in the worker where that is the same as running it in a process of its own."""

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
        return result

    def _may_run_here(self, task_vars: Mapping[str, Any]) -> bool:
        task = self._task
        elsewhere = task.delegate_to is not None and task.delegate_to not in _HERE
        if self._connection.transport != "local" or elsewhere:
            return False
        if self._play_context.become or task.become or task.async_val:
            return False
        if not self._same_interpreter(task_vars):
            return False
        wanted = self._templar.template(task_vars.get("toolchain_in_process", True))
        return bool(boolean(wanted))

    def _same_interpreter(self, task_vars: Mapping[str, Any]) -> bool:
        """Whether the interpreter that the user asks for, if any, is the one that runs the worker."""
        asked = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        asked = self._templar.template(asked)
        if asked is None or str(asked).startswith("auto"):
            return True
        return os.path.abspath(str(asked)) == os.path.abspath(sys.executable)

    def _configure_module(
        self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any], **rest: Any
    ) -> tuple[Any, str]:
        if not self._in_process:
            built: tuple[Any, str] = super()._configure_module(
                module_name, module_args, task_vars, **rest
            )
            return built
        found = self._shared_loader_obj.module_loader.find_plugin_with_context(
            module_name, collection_list=self._task.collections
        )
        if not found.resolved:
            raise AnsibleError(f"The module {module_name} was not found.")
        self._module, self._arguments = found.plugin_resolved_name, module_args
        shebang = f"#!{sys.executable}"
        return _BuiltModule(
            b_module_data=b"", module_style="new", shebang=shebang, serialization_profile=_PROFILE
        ), found.plugin_resolved_path

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        """In the worker nothing is copied to a temporary folder first."""
        return self._in_process or bool(super()._is_pipelining_enabled(module_style, wrap_async))

    def _low_level_execute_command(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not self._in_process:
            executed: dict[str, Any] = super()._low_level_execute_command(*args, **kwargs)
            return executed
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        with shown_by(Display().display, last=_last_words):
            folder = self._loader.get_basedir()
            rc, stdout, stderr = _run_module(self._module, self._arguments, environment, folder)
        return {
            "rc": rc,
            "stdout": stdout,
            "stdout_lines": stdout.splitlines(),
            "stderr": stderr,
            "stderr_lines": stderr.splitlines(),
        }


def _last_words(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{line}\n".encode())


def _run_module(
    module: str, arguments: Mapping[str, Any], environment: Mapping[str, Any], folder: str
) -> tuple[int, str, str]:
    """Run C(main) of a module as if in a process of its own; its exit code and what it printed."""
    stdout, stderr = io.StringIO(), io.StringIO()
    encoder = get_module_encoder(_PROFILE, Direction.CONTROLLER_TO_MODULE)
    handed_over = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}, cls=encoder).encode()
    with (
        _as_on_a_target(handed_over, environment, folder),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            _main(module)
            rc = 0
        except SystemExit as exit_:
            rc = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return rc, stdout.getvalue(), stderr.getvalue()


def _main(module: str) -> None:
    try:
        importlib.import_module(module).main()
        raise RuntimeError("New-style module did not handle its own exit.")
    except Exception as error:  # noqa: BLE001 - whatever a module raises must not take the worker down
        _loader._handle_exception(error, _PROFILE)


@contextlib.contextmanager
def _as_on_a_target(
    arguments: bytes, environment: Mapping[str, Any], folder: str
) -> Iterator[None]:
    """What a module finds in a process of its own; afterwards everything is as it was before.

    A process on a local connection is started in the folder of the playbook (C(folder)).
    """
    before = dict(os.environ)
    folder_before = os.getcwd()
    globals_before = (basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE, _internal.is_controller)
    os.chdir(folder)
    os.environ.update({str(key): str(value) for key, value in environment.items()})
    basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = arguments, _PROFILE
    basic.remove_values = masked  # gives the same, sooner where a result is large
    # Warnings of a module belong to its result; on the controller they would go to the display at once.
    _internal.is_controller = False
    try:
        yield
    finally:
        basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE, _internal.is_controller = globals_before
        basic.remove_values = remove_values
        warnings._global_warnings.clear()
        warnings._global_deprecations.clear()
        os.environ.clear()
        os.environ.update(before)
        os.chdir(folder_before)


def masked(value: Any, secrets: Collection[str]) -> Any:
    """What C(remove_values) of Ansible gives for the result of a module (or a line of its log).

    That looks at every single value, which for tens of thousands of rows takes longer than to get them from the
    server. A large list whose text, as a whole, shows no secret stays as it is.
    """
    if not isinstance(value, dict):
        return remove_values(value, secrets)
    forms = [_in_json(to_native(secret, errors="surrogate_or_strict")) for secret in secrets]
    clean = {name for name, one in value.items() if _is_large_and_clean(one, forms)}
    others = {name: None if name in clean else one for name, one in value.items()}
    checked: dict[str, Any] = remove_values(others, secrets)
    return {name: value[name] if name in clean else one for name, one in checked.items()}


def _is_large_and_clean(value: Any, forms: list[str]) -> bool:
    """Whether C(remove_values) would find nothing in a list: in no text and, as it reads it, in no number. What JSON
    has no word for is left to that.
    """
    if not isinstance(value, list) or len(value) < _LARGE:
        return False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return not any(form in text for form in forms)


def _in_json(text: str) -> str:
    """How a part of a text looks in JSON, where each character is written for itself."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
