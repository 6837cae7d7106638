# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of modules that write, and their arguments for tests with misbehaving servers."""

from __future__ import annotations

from typing import Any

from tests.helpers.cases import FAULT_CASES, first_arguments, module_of
from tools.descriptors import DESCRIPTORS

WRITERS = [name for name in FAULT_CASES if DESCRIPTORS[module_of(name)].writes]
#: Options with another value: short polling intervals, and no `unless` check by the user, which
#: would reveal whether a write was done.
_OTHERWISE = {"poll_interval": 0.1, "unless": None}


def arguments(module: str) -> dict[str, Any]:
    """Return arguments that cause a change immediately."""
    given = first_arguments(module)
    return {**given, **{name: _OTHERWISE[name] for name in given if name in _OTHERWISE}}
