# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback plugin that imports what the modules need before the workers are forked."""

from __future__ import annotations

import gc
import importlib

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: imports
type: aggregate
short_description: Import the runner of the modules once, for all workers
description:
  - Otherwise the worker of each task imports it, which takes a third of the processor time of a play.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "imports"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        importlib.import_module(
            "ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.runner"
        )
        # a collection would copy the memory that the workers share
        gc.freeze()
