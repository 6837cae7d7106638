# SPDX-License-Identifier: GPL-3.0-or-later
"""The private parts of Ansible that are needed to run a module in the worker: all of them, and
only here.

They are looked up one by one. Where one is missing, or is not what it was, modules run in the
ordinary way.
"""

from __future__ import annotations

import importlib
import inspect
import json
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible.release import __version__

from ansible_collections.delivery.toolchain.plugins.plugin_utils.masking import masked

_BASIC = "ansible.module_utils.basic"
_JSON = "ansible.module_utils.common.json"
_WARNINGS = "ansible.module_utils.common.warnings"
_ACTION = "ansible.plugins.action:ActionBase"
_LOADER = "ansible.module_utils._internal._ansiballz._loader"
_PROFILE = "legacy"

#: What every core has, as C(module:name).
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
#: What a run leaves behind where the core has it; nothing needs it.
_LEFT_BEHIND = f"{_BASIC}:_PARSED_MODULE_ARGS"
#: Masks the result of a module up to ansible-core 2.21; then the controller does.
_REMOVE_VALUES = f"{_BASIC}:remove_values"


class Missing(Exception):
    """A private part of Ansible is not there, or is not what it was."""


class Internals(ABC):
    """What differs between the generations of Ansible when a module runs in the worker."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.found: dict[str, Any] = {name: _look_up(name) for name in names}

    @abstractmethod
    def built(self, shebang: str, path: str) -> tuple[Any, ...]:
        """What C(_configure_module) returns for a module that is neither packed nor sent."""

    @abstractmethod
    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        """The arguments of a module as it reads them."""

    @abstractmethod
    def end_without_result(self, error: Exception | None) -> None:
        """Print what a process prints whose module raised C(error), or came back (C(None)), and
        exit.
        """

    def replaced(self, arguments: bytes) -> dict[str, Any]:
        """Names of Ansible and what they have to be while a module runs."""
        values: dict[str, Any] = {f"{_BASIC}:_ANSIBLE_ARGS": arguments}
        for name, value in ((_LEFT_BEHIND, None), (_REMOVE_VALUES, masked)):
            if _exists(name):
                values[name] = value
        return values

    @contextmanager
    def ready_for(self, arguments: Mapping[str, Any]) -> Iterator[None]:
        """Let a module that is called in the block find its arguments; afterwards all is as it was
        before.
        """
        wanted = self.replaced(self.encoded(arguments))
        before = {name: _look_up(name) for name in wanted}
        _assign(wanted)
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

    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        encoder = self.found[f"{_JSON}:AnsibleJSONEncoder"]
        whole = {"ANSIBLE_MODULE_ARGS": arguments}
        return json.dumps(whole, cls=encoder, vault_to_text=True).encode()

    def end_without_result(self, error: Exception | None) -> None:
        if error is None:
            print('{"msg": "New-style module did not handle its own exit", "failed": true}')
        else:
            traceback.print_exception(error)
        raise SystemExit(1)


class _Since219(Internals):
    """ansible-core 2.19 and newer: results have a serialization profile."""

    def built(self, shebang: str, path: str) -> tuple[Any, ...]:
        return self.found["ansible.executor.module_common:_BuiltModule"](
            b_module_data=b"", module_style="new", shebang=shebang, serialization_profile=_PROFILE
        ), path

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
            # Warnings of a module belong to its result; on the controller they would go to the
            # display at once.
            "ansible.module_utils._internal:is_controller": False,
        }


def find(version: str = __version__) -> Internals:
    """The private parts of the running Ansible, each tried once; raises C(Missing) with the name
    of one.
    """
    new = tuple(int(number) for number in version.split(".")[:2]) >= (2, 19)
    internals = _Since219((*COMMON, *SINCE_2_19)) if new else _Before219((*COMMON, *BEFORE_2_19))
    try:
        internals.built("#!python", "path")
        internals.encoded({})
        if new:
            handler = internals.found[f"{_LOADER}:_handle_exception"]
            inspect.signature(handler).bind(RuntimeError(), _PROFILE)
        for name in ("_global_warnings", "_global_deprecations"):
            internals.found[f"{_WARNINGS}:{name}"].clear  # noqa: B018 - whether it can be
    except (AttributeError, TypeError, ValueError) as error:
        raise Missing(str(error)) from error
    return internals


def _look_up(name: str) -> Any:
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
        _look_up(name)
    except Missing:
        return False
    return True


def _assign(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        module, _colon, attribute = name.partition(":")
        setattr(importlib.import_module(module), attribute, value)
