# SPDX-License-Identifier: GPL-3.0-or-later
"""Action that runs the modules of ansible-core and of other collections in the worker, as ours do.

In a separate process, a module takes ten times as much processor time.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any
from unittest import mock

from ansible.plugins import loader

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.in_process import Action


class ForeignAction(Action):
    """Replaces Ansible's action for modules that have no action of their own."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        module = _python_module(self.task.action)
        if module and self._may_run_in_worker(task_vars or {}):
            self.worker_module = module
        return super(Action, self).run_module(task_vars)

    def arguments_for(
        self, arguments: dict[str, Any], task_vars: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return arguments, dict(task_vars)


def install() -> None:
    """Let this process, and the workers that it forks, use the action."""
    load = loader.action_loader.get

    def get(name: str, *arguments: Any, **parts: Any) -> Any:
        if name != "ansible.legacy.normal" or "task" not in parts:
            return load(name, *arguments, **parts)
        parts.pop("collection_list", None)
        return ForeignAction(**parts)

    mock.patch.object(loader.action_loader, "get", get).start()


def _python_module(action: str) -> str:
    """Return the Python module of a module with a full name; empty if there is none."""
    collection, _dot, name = action.rpartition(".")
    folder = (
        "ansible.modules"
        if collection == "ansible.builtin"
        else f"ansible_collections.{collection}.plugins.modules"
    )
    found = collection.count(".") == 1 and importlib.util.find_spec(f"{folder}.{name}")
    return f"{folder}.{name}" if found else ""
