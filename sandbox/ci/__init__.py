# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI server of the sandbox [W4.4, ci-0]. Its commands over SSH do not import the service."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "SERVICE":
        return import_module("sandbox.ci.service").CiService
    raise AttributeError(name)
