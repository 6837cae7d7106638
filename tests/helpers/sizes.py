# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a benchmark measures: as much as its promises need, or just enough to show it runs."""

from __future__ import annotations

import os
from typing import TypeVar

#: A variable of the environment: the processes that a benchmark starts read the same sizes.
VARIABLE = "TOOLCHAIN_BENCHMARK_SIZE"

Number = TypeVar("Number", int, float)


def smallest() -> bool:
    """Whether the benchmarks only show that they run."""
    return os.environ.get(VARIABLE) == "smallest"


def size(full: Number, least: Number) -> Number:
    """The size to measure with."""
    return least if smallest() else full
