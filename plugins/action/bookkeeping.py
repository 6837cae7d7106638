# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a step of the playbooks and roles of the collection. There is no such module."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping


class ActionModule(ActionBase):
    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.task, self.loader = parts["task"], parts["loader"]
        self.template = parts["templar"].template
        self.parts = parts

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        run = bookkeeping.run_of(self.task, self.loader, self.template, task_vars or {})
        run = replace(run, execute=partial(bookkeeping.execute, self.parts, run.variables))
        values = dict(self.task.args)
        try:
            return {"changed": False, **bookkeeping.perform(values.pop("step"), run, values)}
        except bookkeeping.StepError as error:
            # up to ansible-core 2.18, an exception would be displayed with its traceback
            failed = {"failed": True, "msg": str(error), "report": error.report}
            failed = {"changed": False, **error.values, **failed}
            return {**failed, "error": {"kind": error.kind}}
