# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin that prints a JSON object per task, as callbacks for programs do."""

from __future__ import annotations

import json
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: json_lines
type: stdout
short_description: Print the results of all tasks as JSON lines
description: Prints one JSON object per task and host to standard output, and nothing else.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "json_lines"

    def v2_runner_on_ok(self, result: Any) -> None:
        values = getattr(result, "result", None) or result._result
        self._display.display(json.dumps({"result": self._dump_results(values)}))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self.v2_runner_on_ok(result)
