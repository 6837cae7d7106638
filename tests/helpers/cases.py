# SPDX-License-Identifier: GPL-3.0-or-later
"""Load the case files of the contract test: arguments for every module, valid in the sandbox."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
from ansible.module_utils.common.yaml import yaml_load

_FOLDER = Path(__file__).parents[1] / "contract"

#: Maps names to cases. A name is the module's name; further cases of a module add a suffix.
CASES: dict[str, dict[str, Any]] = {
    path.stem: yaml_load(path.read_text(encoding="utf-8"))
    for path in sorted((_FOLDER / "cases").glob("*.yml"))
}


#: The cases that are named after their module: one for each module that contacts a server.
MODULES = sorted(
    name for name, case in CASES.items() if name == case["module"] and "service" in case
)

#: The cases of the fault tests: those above, and those of the wiki with version 2 of the cloud.
FAULT_CASES = sorted(
    [
        *MODULES,
        *(
            name
            for name, case in CASES.items()
            if name == f"{case['module']}_cloud" and case["service"] == "wiki"
        ),
    ]
)

#: The steps that share the number of requests under `unchanged`.
_UNCHANGED = ("create again", "update again", "run again")


def problems(case: Mapping[str, Any]) -> list[str]:
    """Return the violations of the schema `case.schema.json` in a case."""
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(case)]


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((_FOLDER / "case.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def module_of(name: str) -> str:
    return str(CASES[name]["module"])


def first_arguments(module: str) -> dict[str, Any]:
    """Return arguments that change something on a fresh sandbox (or just read, for a read-only
    module).
    """
    case = CASES[module]
    return dict(next(case[step] for step in ("create", "run", "update") if step in case))


def connection_options(name: str, flavour: str) -> dict[str, Any]:
    """Return the extra connection options of a case: its dialect, or a special login."""
    dialects, login = CASES[name].get("dialect", {}), CASES[name].get("login", {})
    return {**({"dialect": dialects[flavour]} if flavour in dialects else {}), **login}


def settings(name: str) -> dict[str, dict[str, Any]]:
    """Return the sandbox settings of a case, by service."""
    case = CASES[name]
    return {case["service"]: dict(case.get("settings", {}))} if "service" in case else {}


def seed(name: str) -> dict[str, dict[str, Any]]:
    """Return the seeds that a case adds to those of the sandbox, by service."""
    more: dict[str, dict[str, Any]] = CASES[name].get("seed", {})
    return more


def promised(name: str, step: str, flavour: str) -> int | None:
    """Return the promised number of requests of a step, or None.

    The case lists the number under the name of the step. `unchanged` covers all steps that change
    nothing, except a repeated deletion. A number may differ between flavours.
    """
    told: dict[str, Any] = CASES[name].get("requests", {})
    shared = told.get("unchanged") if step in _UNCHANGED else None
    figure = told.get(step, shared)
    return figure.get(flavour) if isinstance(figure, dict) else figure
