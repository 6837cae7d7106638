# SPDX-License-Identifier: GPL-3.0-or-later
"""All uses of private names of Ansible in plugins on the controller.

If a name that runs modules in the worker is missing or has changed, modules run in separate
processes, and a warning is shown. If another name is missing, the plugin fails with an error, or
uses the fallback that the function documents. The private names in modules are in
`module_utils/_lib/core/module/ansible_internals.py`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ansible.errors import AnsibleError
from ansible.executor import task_result as core_task_result
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.plugins.lookup import LookupBase
from ansible.release import __version__

from ...module_utils._lib.core.module.ansible_internals import MODULE_MASKS_RESULTS
from ...module_utils._lib.core.module.masking import mask_values
from .bytecode import with_bytecode

_BASIC = "ansible.module_utils.basic"
_JSON = "ansible.module_utils.common.json"
_WARNINGS = "ansible.module_utils.common.warnings"
_ACTION = "ansible.plugins.action:ActionBase"
_LOADER = "ansible.module_utils._internal._ansiballz._loader"
_OMIT = "ansible._internal._templating._utils:_OmitType"
_PROFILE = "legacy"

#: Names that all releases of ansible-core have, as `module:name`.
COMMON = (
    f"{_BASIC}:_ANSIBLE_ARGS",
    f"{_WARNINGS}:_global_warnings",
    f"{_WARNINGS}:_global_deprecations",
    f"{_ACTION}._configure_module",
    f"{_ACTION}._is_pipelining_enabled",
    f"{_ACTION}._low_level_execute_command",
    f"{_ACTION}._compute_environment_string",
)
BEFORE_2_19 = (f"{_JSON}:AnsibleJSONEncoder",)
SINCE_2_19 = (
    f"{_BASIC}:_ANSIBLE_PROFILE",
    f"{_JSON}:Direction.CONTROLLER_TO_MODULE",
    f"{_JSON}:get_module_encoder",
    f"{_LOADER}:_handle_exception",
    "ansible.executor.module_common:_BuiltModule",
    "ansible.module_utils._internal:is_controller",
)
#: Cache of the arguments of a module, which must be reset before the next module. Optional.
_PARSED_ARGUMENTS = f"{_BASIC}:_PARSED_MODULE_ARGS"
#: Function that masks the result of a module up to ansible-core 2.21. Optional.
_REMOVE_VALUES = f"{_BASIC}:remove_values"


class Missing(Exception):
    """A private name of Ansible is missing or has changed."""


class Internals(ABC):
    """The parts of running a module in the worker that depend on the release of ansible-core."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.found: dict[str, Any] = {name: _imported(name) for name in names}

    @abstractmethod
    def built(self, shebang: str, path: str) -> tuple[Any, ...]:
        """Return the value of `_configure_module` for a module that runs in the worker."""

    @abstractmethod
    def with_bytecode(self, built: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the value of `_configure_module` with bytecode in the program of the module."""

    @abstractmethod
    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the arguments of a module as JSON, as the module reads them."""

    @abstractmethod
    def end_without_result(self, error: Exception | None) -> None:
        """Print the output of a module that ended without a result, and exit.

        :param error: exception that the module raised, `None` if it returned
        """

    def replaced(self, arguments: bytes) -> dict[str, Any]:
        """Return the temporary values of private names while a module runs."""
        values: dict[str, Any] = {f"{_BASIC}:_ANSIBLE_ARGS": arguments}
        if _exists(_PARSED_ARGUMENTS):
            values[_PARSED_ARGUMENTS] = None
        if MODULE_MASKS_RESULTS and _exists(_REMOVE_VALUES):
            values[_REMOVE_VALUES] = mask_values
        return values

    @contextmanager
    def ready_for(self, arguments: Mapping[str, Any]) -> Iterator[None]:
        """Provide the arguments of a module during the block, and restore all values afterwards."""
        values = self.replaced(self.encoded(arguments))
        before = {name: _imported(name) for name in values}
        _assign(values)
        try:
            yield
        finally:
            _assign(before)
            self.found[f"{_WARNINGS}:_global_warnings"].clear()
            self.found[f"{_WARNINGS}:_global_deprecations"].clear()


class _Before219(Internals):
    """ansible-core 2.16 to 2.18."""

    def built(self, shebang: str, path: str) -> tuple[Any, ...]:
        return "new", shebang, b"", path

    def with_bytecode(self, built: tuple[Any, ...]) -> tuple[Any, ...]:
        style, shebang, program, path = built
        return style, shebang, with_bytecode(program), path

    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        encoder = self.found[f"{_JSON}:AnsibleJSONEncoder"]
        payload = {"ANSIBLE_MODULE_ARGS": arguments}
        return json.dumps(payload, cls=encoder, vault_to_text=True).encode()

    def end_without_result(self, error: Exception | None) -> None:
        if error is None:
            print('{"msg": "New-style module did not handle its own exit", "failed": true}')
        else:
            traceback.print_exception(error)
        raise SystemExit(1)


class _Since219(Internals):
    """ansible-core 2.19 and newer, with serialization profiles."""

    def built(self, shebang: str, path: str) -> tuple[Any, ...]:
        return self.found["ansible.executor.module_common:_BuiltModule"](
            b_module_data=b"", module_style="new", shebang=shebang, serialization_profile=_PROFILE
        ), path

    def with_bytecode(self, built: tuple[Any, ...]) -> tuple[Any, ...]:
        data, path = built
        return replace(data, b_module_data=with_bytecode(data.b_module_data)), path

    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        direction = self.found[f"{_JSON}:Direction.CONTROLLER_TO_MODULE"]
        encoder = self.found[f"{_JSON}:get_module_encoder"](_PROFILE, direction)
        return json.dumps({"ANSIBLE_MODULE_ARGS": arguments}, cls=encoder).encode()

    def end_without_result(self, error: Exception | None) -> None:
        error = error or RuntimeError("New-style module did not handle its own exit.")
        self.found[f"{_LOADER}:_handle_exception"](error, _PROFILE)

    def replaced(self, arguments: bytes) -> dict[str, Any]:
        return {
            **super().replaced(arguments),
            f"{_BASIC}:_ANSIBLE_PROFILE": _PROFILE,
            # Otherwise warnings of the module would be displayed immediately, and would be missing
            # in its result.
            "ansible.module_utils._internal:is_controller": False,
        }


def find(version: str = __version__) -> Internals:
    """Find and check the private names of the running ansible-core.

    Raises `Missing` if a name is missing or has changed.
    """
    new = _is_2_19(version)
    internals = _Since219((*COMMON, *SINCE_2_19)) if new else _Before219((*COMMON, *BEFORE_2_19))
    try:
        internals.with_bytecode(internals.built("#!python", "path"))
        internals.encoded({})
        if new:
            handler = internals.found[f"{_LOADER}:_handle_exception"]
            inspect.signature(handler).bind(RuntimeError(), _PROFILE)
        for name in ("_global_warnings", "_global_deprecations"):
            internals.found[f"{_WARNINGS}:{name}"].clear  # noqa: B018 - raises if it is missing
    except (AttributeError, TypeError, ValueError) as error:
        raise Missing(str(error)) from error
    return internals


class HookedAction(NormalAction):
    """Ansible's action for modules, with the hooks `arguments_for` and `run_in_worker`.

    The task and other objects are taken from the keywords of the constructor, which are public.
    """

    #: Python module to run in the worker, "" for a separate process.
    worker_module = ""
    internals: Internals | None = None
    _hook_called = False

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.task, self.connection = parts["task"], parts["connection"]
        self.loader, self.template = parts["loader"], parts["templar"].template
        self.play_context = parts.get("play_context")
        self.module_arguments: Mapping[str, Any] = {}

    def arguments_for(
        self, arguments: dict[str, Any], task_vars: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments and the variables for the module."""
        raise NotImplementedError

    def executed(
        self,
        arguments: Mapping[str, Any],
        task_vars: Mapping[str, Any],
        execute: Callable[[], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the result of the module, which `execute` runs."""
        return execute()

    def run_in_worker(self) -> tuple[int, str, str]:
        """Run `worker_module` with `module_arguments`. Return exit code, stdout and stderr."""
        raise NotImplementedError

    def run_module(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the result of the module.

        Raises AnsibleError if Ansible does not call `arguments_for`. The module would then ignore
        the connection in variables, and might write to another server.
        """
        unsupported = (
            f"The modules of delivery.toolchain do not run on ansible-core {__version__}, which"
            " does not call ActionBase._execute_module. Use a release of ansible-core that the"
            " collection supports."
        )
        if not hasattr(NormalAction, "_execute_module"):
            raise AnsibleError(unsupported)
        result: dict[str, Any] = super().run(None, task_vars)
        if not self._hook_called and not result.get("skipped"):
            raise AnsibleError(unsupported)
        return result

    def used_interpreter(self) -> str:
        """Return the path of the Python interpreter that runs the module, or "" if unknown."""
        return str(getattr(self, "_used_interpreter", None) or "").removeprefix("#!").strip()

    def output_of(self, command: str) -> str:
        """Run a command on the host and return its standard output, or "" if that is impossible."""
        if self.internals is None:
            return ""
        return str(self._low_level_execute_command(command, sudoable=False)["stdout"])

    def environment(self) -> dict[str, Any]:
        """Return the variables of the keyword `environment`. Requires `internals`."""
        found: dict[str, Any] = {}
        self._compute_environment_string(found)
        return found

    def _execute_module(
        self, module_name: str | None = None, module_args: Any = None, **rest: Any
    ) -> dict[str, Any]:
        self._hook_called = True
        arguments, rest["task_vars"] = self.arguments_for(
            dict(self.task.args if module_args is None else module_args),
            rest.get("task_vars") or {},
        )
        execute = super()._execute_module
        return self.executed(
            arguments, rest["task_vars"], lambda: execute(module_name, arguments, **rest)
        )

    def _configure_module(
        self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any], **rest: Any
    ) -> tuple[Any, ...]:
        if not self.worker_module or self.internals is None:
            built: tuple[Any, ...] = super()._configure_module(
                module_name, module_args, task_vars, **rest
            )
            is_own = module_name == self.task.action  # not async_wrapper
            if self.internals is None or self.connection.transport != "local" or not is_own:
                return built
            return self.internals.with_bytecode(built)
        self.module_arguments = module_args
        path = importlib.import_module(self.worker_module).__file__
        return self.internals.built(f"#!{sys.executable}", str(path))

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        # with pipelining, Ansible copies no module to a temporary folder
        return bool(self.worker_module) or bool(
            super()._is_pipelining_enabled(module_style, wrap_async)
        )

    def _low_level_execute_command(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not self.worker_module:
            executed: dict[str, Any] = super()._low_level_execute_command(*args, **kwargs)
            return executed
        rc, stdout, stderr = self.run_in_worker()
        return {
            "rc": rc,
            "stdout": stdout,
            "stdout_lines": stdout.splitlines(),
            "stderr": stderr,
            "stderr_lines": stderr.splitlines(),
        }


def mark_rows_as_secret(result: dict[str, Any]) -> None:
    """Hide the return value `results` of a task with `no_log`.

    ansible-core 2.19 and 2.20 treat `results` as loop items, and hide only marked items.
    """
    rows = result.get("results")
    if hasattr(core_task_result, "censor_result") and isinstance(rows, list):
        for row in rows:
            if isinstance(row, dict):
                row["_ansible_no_log"] = True


def template_of(lookup: LookupBase) -> Callable[[Any], Any]:
    """Return the function of a lookup that evaluates templates."""
    templar = getattr(lookup, "_templar", None)
    if templar is None:
        raise AnsibleError(
            f"The lookups of delivery.toolchain do not run on ansible-core {__version__}, which has"
            " no LookupBase._templar. Use a release of ansible-core that the collection supports."
        )
    template: Callable[[Any], Any] = templar.template
    return template


def is_omitted(value: Any) -> bool:
    """Return whether the value of an option of a lookup is `omit`.

    Up to ansible-core 2.18, `omit` is a string, which the input checks detect. In newer releases it
    is an object. If its class is missing, the input checks reject the object.
    """
    return _exists(_OMIT) and isinstance(value, _imported(_OMIT))


def origins_of(task: Any, variables: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the extra variables, the facts of earlier tasks, and the variables of the task.

    If the facts cannot be told from other variables, all of them count as facts.

    :param variables: all variables of the task
    """
    manager = task.get_variable_manager()
    try:
        facts = _either(manager, "_nonpersistent_fact_cache")
    except Missing:
        return manager.extra_vars, variables, task.get_vars()
    return manager.extra_vars, facts.get(variables.get("inventory_hostname"), {}), task.get_vars()


def _is_2_19(version: str = __version__) -> bool:
    """Return whether this is ansible-core 2.19 or newer."""
    return tuple(int(number) for number in version.split(".")[:2]) >= (2, 19)


#: `module_defaults` by task, host and module, and whether they refer to the item of a loop. All
#: items run in one process.
_DEFAULTS: dict[tuple[str, str, str], tuple[dict[str, Any], bool]] = {}
#: Names in a template.
_NAME = re.compile(r"[A-Za-z_]\w*")


def module_arguments(
    name: str, options: Mapping[str, Any], task: Any, templar: Any, variables: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a module with its `module_defaults`, and without those that are `omit`.

    Raises AnsibleError if this release of ansible-core has no function for the defaults. The module
    would use another connection without them.

    :param name: full name of the module
    :param variables: variables of the task
    """
    try:
        key = task_id(task), str(variables.get("inventory_hostname")), name
        # evaluating them takes 2 ms, so only those that refer to the item are evaluated for each
        defaults, refers = _DEFAULTS.get(key, ({}, True))
        if refers:
            defaults = _module_defaults(name, task, templar)
            # the variables contain templates as they are written, so the first item decides
            refers = key in _DEFAULTS or _refers_to_item(task.module_defaults, variables)
            _DEFAULTS[key] = defaults, refers
    except (Missing, TypeError) as error:
        raise AnsibleError(
            f"The role desired_state does not run on ansible-core {__version__}, which applies"
            f" module_defaults in another way ({error}). Use a release of ansible-core that the"
            " collection supports."
        ) from None
    omit = variables.get("omit")
    given = {
        name: value
        for name, value in options.items()
        if not is_omitted(value) and not (isinstance(omit, str) and value == omit)
    }
    return {**defaults, **given}


def _refers_to_item(defaults: Any, variables: Mapping[str, Any]) -> bool:
    """Return whether templates refer to the item of the loop, also through other variables."""
    loop_names = map(variables.get, ("ansible_loop_var", "ansible_index_var"))
    item_names, seen = {"ansible_loop", *filter(None, loop_names)}, set[str]()
    pending = [defaults]
    while pending:
        text = str(pending.pop())
        is_template = "{{" in text or "{%" in text
        new = set(_NAME.findall(text)) - seen if is_template else set()
        if new & item_names:
            return True
        seen |= new
        values = map(variables.get, new)
        pending += [value for value in values if isinstance(value, (str, list, dict))]
    return False


def _module_defaults(name: str, task: Any, templar: Any) -> dict[str, Any]:
    """Return the `module_defaults` of a module, with their templates evaluated."""
    if _is_2_19():
        defaults: Any = _imported("ansible.executor.module_common:_apply_action_arg_defaults")
        found: dict[str, Any] = defaults(name, task, {}, templar)
    else:
        defaults = _imported("ansible.executor.module_common:get_action_args_with_defaults")
        groups = _either(_either(_either(task, "_parent"), "_play"), "_action_groups")
        found = defaults(name, {}, task.module_defaults, templar, action_groups=groups)
    return found


def hosts_of_play(
    task: Any, template: Callable[[Any], Any]
) -> tuple[list[str], Callable[[str], dict[str, Any]]]:
    """Return the hosts of the play of a task, and a function that returns the variables of one.

    Hosts outside of a limit, and those of another batch (`serial`), are hosts of the play too.
    Raises `Missing`.
    """
    manager, block = _either(task, "_variable_manager"), task
    while block is not None and not hasattr(block, "_play"):
        block = getattr(block, "_parent", None)
    play, inventory = _either(block, "_play"), _either(manager, "_inventory")
    found = inventory.get_hosts(template(play.hosts), ignore_limits=True, ignore_restrictions=True)

    def variables(name: str) -> dict[str, Any]:
        host = inventory.get_host(name)
        values: dict[str, Any] = manager.get_vars(play=play, host=host, task=task)
        return values

    return [str(host.name) for host in found], variables


def result_parts(result: Any) -> tuple[Any, Any, Mapping[str, Any]]:
    """Return host, task and values of the result that Ansible passes to a callback.

    Their names are public since ansible-core 2.19. Raises `Missing`.
    """
    host, task, values = (_either(result, name, f"_{name}") for name in ("host", "task", "result"))
    return host, task, values


def task_id(task: Any) -> str:
    """Return the id of a task. Raises `Missing`."""
    return str(_either(task, "_uuid"))


def playbook_file(playbook: Any) -> str:
    """Return the path of a playbook. Raises `Missing`."""
    return str(_either(playbook, "_file_name"))


def item_label(result: Mapping[str, Any]) -> Any:
    """Return the label of a loop item, or `None` for a task without a loop.

    Raises `Missing` if the item has no label.
    """
    if "ansible_loop_var" not in result:
        return None
    if "_ansible_item_label" not in result:
        raise Missing("the results of loops have no _ansible_item_label")
    return result["_ansible_item_label"]


class InventoryPlugin(BaseInventoryPlugin, Constructable, Cacheable):
    """Gives public names to what the developer guide of Ansible documents for such plugins."""

    def read_config(self, path: str) -> dict[str, Any]:
        """Read a file of the plugin, and set the options from it."""
        values: dict[str, Any] = self._read_config_data(path)
        return values

    def cached(self, key: str, query: Callable[[], Any], *, may_be_old: bool) -> Any:
        """Return the result of a query, from the cache if the user wants one."""
        if not self.get_option("cache"):
            return query()
        if not (may_be_old and key in self._cache):
            self._cache[key] = query()
        return self._cache[key]

    def construct(self, host: str, variables: Mapping[str, Any]) -> None:
        """Add the variables and groups that the options of the fragment `constructed` describe."""
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict)


def _either(owner: Any, *names: str) -> Any:
    for name in names:
        if hasattr(owner, name):
            return getattr(owner, name)
    raise Missing(f"{type(owner).__name__} has no {' or '.join(names)}")


def _imported(name: str) -> Any:
    module, _colon, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise Missing(f"{module} has no {path}") from None
    return found


def _exists(name: str) -> bool:
    try:
        _imported(name)
    except Missing:
        return False
    return True


def _assign(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        module, _colon, attribute = name.partition(":")
        setattr(importlib.import_module(module), attribute, value)
