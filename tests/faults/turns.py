# SPDX-License-Identifier: GPL-3.0-or-later
"""Distribute the faults that all modules of a service have in common among these modules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from tests.helpers import connections
from tests.helpers.cases import CASES, FAULT_CASES


def in_turn(
    names: Collection[str], count: int, among: Sequence[str] = FAULT_CASES
) -> list[tuple[str, str]]:
    """Return `count` names for each module, so that every service has all names."""
    known, found = [*names], []
    for service in connections.LOGINS:
        modules = [name for name in among if CASES[name]["service"] == service]
        for number, module in enumerate(modules):
            turns = range(number * count, (number + 1) * count)
            found += [(module, known[turn % len(known)]) for turn in turns]
    return found


def marked(pairs: Sequence[tuple[str, str]], *, every_module: bool = False) -> list[Any]:
    """Mark the first test of each service and name, or also the first test of every module."""
    known: set[object] = set()
    found = []
    for module, name in pairs:
        new = {(CASES[module]["service"], name), *([module] if every_module else [])} - known
        known |= new
        found.append(pytest.param(module, name, marks=[pytest.mark.first] if new else []))
    return found


def of_every_service(
    pairs: Sequence[tuple[str, str]], names: Collection[str], among: Sequence[str] = FAULT_CASES
) -> bool:
    """Return whether every service has all names, and every module has one."""
    found = {(CASES[module]["service"], name) for module, name in pairs}
    wanted = {(service, name) for service in connections.LOGINS for name in names}
    return found == wanted and {module for module, _name in pairs} == set(among)
