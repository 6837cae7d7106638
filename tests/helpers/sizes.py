# SPDX-License-Identifier: GPL-3.0-or-later
"""Size of the benchmarks: large enough for their promises, or minimal to show that they run."""

from __future__ import annotations

import os
from typing import TypeVar

#: An environment variable, so that child processes of a benchmark use the same sizes.
VARIABLE = "TOOLCHAIN_BENCHMARK_SIZE"

Number = TypeVar("Number", int, float)


def smallest() -> bool:
    """Return whether the benchmarks only show that they run."""
    return os.environ.get(VARIABLE) == "smallest"


def size(full: Number, least: Number) -> Number:
    """Return the size to measure with."""
    return least if smallest() else full
