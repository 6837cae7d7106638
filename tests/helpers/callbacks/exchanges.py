# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin that sends every exchange with a server to the process that started the play."""

from __future__ import annotations

import os
from multiprocessing.connection import Client
from typing import Any

from ansible.plugins.callback import CallbackBase

from tests.helpers.exchanges import passed_to

DOCUMENTATION = """
name: exchanges
type: aggregate
short_description: Send the exchanges of modules that run in the worker to a socket
description:
  - E(EXCHANGES_SOCKET) is the path of the socket, E(EXCHANGES_KEY) the key that it expects.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "exchanges"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._task = ""
        # until the process ends
        self._passing = passed_to(self._send)
        self._passing.__enter__()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._task = task.get_name().strip()

    def _send(self, exchange: dict[str, Any]) -> None:
        """Send an exchange from the worker, which was forked when the task had started."""
        key = os.environ["EXCHANGES_KEY"].encode()
        with Client(os.environ["EXCHANGES_SOCKET"], authkey=key) as socket:
            socket.send({"task": self._task, **exchange})
