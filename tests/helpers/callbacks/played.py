# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin that names the files whose tasks a play runs."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: played
type: aggregate
short_description: Write the paths of the files whose tasks run
description:
  - Writes each path once, as a line, to the file that E(PLAYED_FILES) names.
  - It is not enabled by name, so that it also runs under the settings of a test.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "played"

    def __init__(self) -> None:
        super().__init__()
        self._file = os.environ.get("PLAYED_FILES")
        self._known: set[str] = set()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        path = (task.get_path() or "").rpartition(":")[0]
        if self._file and path and path not in self._known:
            self._known.add(path)
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(f"{path}\n")
