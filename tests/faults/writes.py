# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that write, and the arguments with which they meet a server that misbehaves."""

from __future__ import annotations

from typing import Any

from tests.helpers.cases import MODULES, first_arguments
from tools.descriptors import DESCRIPTORS

WRITERS = [module for module in MODULES if DESCRIPTORS[module].writes]
#: Options that get another value: short pauses between polls, and no check of the user's own, which
#: would reveal whether a write was done.
_OTHERWISE = {"poll_interval": 0.1, "unless": None}


def arguments(module: str) -> dict[str, Any]:
    """Return arguments that change something at once."""
    given = first_arguments(module)
    return {**given, **{name: _OTHERWISE[name] for name in given if name in _OTHERWISE}}
