# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that repository modules with `dialect: auto` behave like with an explicit dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.cases import CASES, MODULES, first_arguments, seed, settings

FLAVOURS = {"real": "jfrog", "written": "generic"}
MODULES_OF_REPO = [name for name in MODULES if CASES[name]["service"] == "repo"]


def _tasks(flavour: str, module: str) -> list[dict[str, Any]]:
    fresh = {"sandbox_reset": settings(module), "sandbox_seed": seed(module)}
    given = {**first_arguments(module), **CASES[module].get("login", {})}
    reported, auto = (
        playbook.task(
            module, {**given, "dialect": dialect}, f"{module} {dialect}", vars=fresh, diff=True
        )
        for dialect in (FLAVOURS[flavour], "auto")
    )
    if "dest" not in given:
        return [reported, auto]
    path = {"path": f"{{{{ playbook_dir }}}}/{given['dest']}", "state": "absent"}
    return [reported, {"name": f"take away {module}", "ansible.builtin.file": path}, auto]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_auto_gives_the_results_of_the_explicit_dialect(
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
    flavour: str,
) -> None:
    sandbox = fresh(flavour)
    modules = [name for name in MODULES_OF_REPO if flavour in CASES[name]["flavours"]]
    tasks = [task for module in modules for task in _tasks(flavour, module)]
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    folder = tmp_path_factory.mktemp(flavour)
    run = playbook.run(folder, [play], controls={"localhost": sandbox.control})
    for module in modules:
        reported, auto = (run.event(f"{module} {one}") for one in (FLAVOURS[flavour], "auto"))
        assert auto.status == "ok", auto.result.get("msg")
        assert (auto.result["changed"], auto.result["diff"]) == (
            reported.result["changed"],
            reported.result["diff"],
        ), module
        probes = [request for request in auto.requests if request["path"] == "/api/system/version"]
        assert len(auto.requests) == len(reported.requests) + len(probes), module
        assert len(probes) <= 1, module
        assert flavour == "written" or auto.requests[:1] == probes or not probes, module
