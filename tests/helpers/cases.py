# SPDX-License-Identifier: GPL-3.0-or-later
"""The case files of the contract test: arguments for every module that the sandbox understands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

_FOLDER = Path(__file__).parents[1] / "contract"

#: Name to case: the module's name, or for a further case of a module that name and an addition.
CASES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((_FOLDER / "cases").glob("*.yml"))
}


#: The cases that are named as their modules: one for each module that speaks to a server.
MODULES = sorted(
    name for name, case in CASES.items() if name == case["module"] and "service" in case
)

#: The steps whose requests a case may promise together.
_UNCHANGED = ("create again", "update again", "run again")


def problems(case: Mapping[str, Any]) -> list[str]:
    """Return what a case has against its schema, `case.schema.json`."""
    schema = json.loads((_FOLDER / "case.schema.json").read_text(encoding="utf-8"))
    errors = jsonschema.Draft202012Validator(schema).iter_errors(case)
    return [f"{error.json_path}: {error.message}" for error in errors]


def first_arguments(module: str) -> dict[str, Any]:
    """Arguments that change something on a fresh sandbox (or just read, where a module reads)."""
    case = CASES[module]
    return dict(next(case[step] for step in ("create", "run", "update") if step in case))


def connection_options(name: str, flavour: str) -> dict[str, Any]:
    """What a case wants besides the address and the usual login: a dialect, a login of its own."""
    dialects, login = CASES[name].get("dialect", {}), CASES[name].get("login", {})
    return {**({"dialect": dialects[flavour]} if flavour in dialects else {}), **login}


def settings(name: str) -> dict[str, dict[str, Any]]:
    """Settings of the sandbox for a case, by service."""
    case = CASES[name]
    return {case["service"]: case.get("settings", {})} if "service" in case else {}


def seed(name: str) -> dict[str, dict[str, Any]]:
    """What the sandbox has for a case besides its own seeds, by service."""
    more: dict[str, dict[str, Any]] = CASES[name].get("seed", {})
    return more


def promised(name: str, step: str, flavour: str) -> int | None:
    """How many requests a step of a case sends, where that is promised: under the name of the step,
    or for all that change nothing but a deletion under `unchanged`; one figure, or one per flavour.
    """
    told: dict[str, Any] = CASES[name].get("requests", {})
    shared = told.get("unchanged") if step in _UNCHANGED else None
    figure = told.get(step, shared)
    return figure.get(flavour) if isinstance(figure, dict) else figure
