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
  - Shows no plays and tasks, only warnings and the list that the callback P(delivery.toolchain.report#callback) shows after the playbooks
    C(delivery.toolchain.drift), C(delivery.toolchain.enforce) and C(delivery.toolchain.drift_summary).
  - In other playbooks it shows failed tasks, too.
  - Select it with E(ANSIBLE_STDOUT_CALLBACK).
author: delivery.toolchain contributors (@delivery-toolchain)
options: {}
"""

from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.plugin_utils import ansible_internals
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import switch, terminal


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "delivery.toolchain.plan"

    def __init__(self) -> None:
        super().__init__()
        self._failures: list[terminal.Line] = []

    def v2_runner_on_ok(self, result: Any) -> None:
        self._warn(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._warn(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._warn(result)
        if not ignore_errors:
            self._keep(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._keep(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Display the failures, unless the report lists them with its findings."""
        if not switch.lists_findings():
            for line in self._failures:
                Display().display(line.text, color=line.colour)

    def _warn(self, result: Any) -> None:
        _host, _task, values = ansible_internals.result_parts(result)
        for warning in values.get("warnings") or ():
            Display().warning(str(warning))

    def _keep(self, result: Any) -> None:
        host, task, values = ansible_internals.result_parts(result)
        name = task.get_name().strip()
        self._failures.append(
            terminal.failure(host.get_name(), name, values.get("msg") or "failed")
        )
