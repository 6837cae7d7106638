# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: plan
type: stdout
short_description: Show only the summary of drift and enforce
version_added: 1.0.0
description:
  - Shows the services when the run reaches them, messages of M(ansible.builtin.debug), warnings, and the list that the callback
    P(delivery.toolchain.report#callback) shows after the playbooks C(delivery.toolchain.drift), C(delivery.toolchain.enforce) and
    C(delivery.toolchain.drift_summary).
  - In other playbooks it shows tasks that changed something or failed, too.
  - Select it with E(ANSIBLE_STDOUT_CALLBACK).
author: delivery.toolchain contributors (@delivery-toolchain)
options: {}
"""

from collections.abc import Mapping
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display

from ..plugin_utils._lib import ansible_internals
from ..plugin_utils._lib.descriptors import descriptor_of
from ..plugin_utils._lib.report import switch, terminal
from ..plugin_utils._lib.report.recorder import module_of, name_without_role

_DEBUG = ("debug", "ansible.builtin.debug")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "delivery.toolchain.plan"

    def __init__(self) -> None:
        super().__init__()
        self._failures: list[terminal.Line] = []
        self._services: set[str] = set()

    def _progress(self, task: Any, values: Mapping[str, Any]) -> None:
        """Display a service when the run reaches it, because a run can take minutes."""
        module = module_of(task, values)
        service = descriptor_of(module).service_name if module else ""
        if service and service not in self._services:
            self._services.add(service)
            Display().display(f"{service} ...")

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if not (task.when or task.loop):  # it may still be skipped
            self._progress(task, {})

    def v2_runner_on_ok(self, result: Any) -> None:
        self._warn(result)
        self._show(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._warn(result)
        self._show(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._warn(result)
        if not ignore_errors:
            self._keep(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._keep(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Display failures and counts, unless the report lists findings."""
        if switch.lists_findings():
            return
        for line in self._failures:
            Display().display(line.text, color=line.colour)
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            failed = counts["failures"] + counts["unreachable"]
            Display().display(f"{host}: {counts['changed']} changed, {failed} failed")

    def _show(self, result: Any) -> None:
        host, task, values = ansible_internals.result_parts(result)
        self._progress(task, values)
        if isinstance(values.get("results"), list) and task.loop:
            return  # each item of the loop has been displayed
        if task.action in _DEBUG:
            message = values.get("msg", "")
            for line in message if isinstance(message, list) else [message]:
                Display().display(str(line))
        elif values.get("changed") and not switch.lists_findings():
            label = ansible_internals.item_label(values)
            name = name_without_role(task)
            name = name if label is None else f"{name}: {label}"
            line = terminal.change(host.get_name(), name)
            Display().display(line.text, color=line.colour)

    def _warn(self, result: Any) -> None:
        _host, _task, values = ansible_internals.result_parts(result)
        for warning in values.get("warnings") or ():
            Display().warning(str(warning))

    def _keep(self, result: Any) -> None:
        host, task, values = ansible_internals.result_parts(result)
        name = name_without_role(task)
        self._failures.append(
            terminal.failure(host.get_name(), name, values.get("msg") or "failed")
        )
