# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the third parties that confirm each operation.

Servers, clients and sources are in `tests/strangers/witnesses.yml`, recordings in `recordings.yml`
next to it, with the tests that check the collection against them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from ansible.module_utils.common.yaml import yaml_load

from tools.descriptors import DESCRIPTORS
from tools.tree import ROOT

SOURCE = ROOT / "tests" / "strangers" / "witnesses.yml"
_TEMPLATE = ROOT / "tools" / "witnesses.md.j2"
PAGE = ROOT / "docs" / "interfaces" / "witnesses.md"
RECORDINGS = ROOT / "tests" / "strangers" / "recordings.yml"
TESTS = ROOT / "tests"
_KINDS = ("servers", "clients", "recordings", "sources", "documents")


@dataclass(frozen=True)
class Witness:
    """A third-party program, and the operations that its tests confirm."""

    kind: str
    who: str
    how: str
    file: str
    tests: dict[str, list[str]]


def load() -> dict[str, Any]:
    data: dict[str, Any] = yaml_load(SOURCE.read_text(encoding="utf-8"))
    return data


def operations() -> list[str]:
    """Return the operations of all modules, as `module.operation`."""
    return [f"{module}.{each}" for module, one in DESCRIPTORS.items() for each in one.operations]


def witnesses(data: dict[str, Any]) -> list[Witness]:
    """Return the programs of `data`, and the recordings."""
    found = [
        Witness(kind, _named(one["who"], one["from"]), one["how"], one["file"], one["tests"])
        for kind in ("servers", "clients", "sources", "documents")
        for one in data[kind]
    ]
    for one in yaml_load(RECORDINGS.read_text(encoding="utf-8")):
        who, _comma, path = one["source"].partition(", ")
        how = f"{one['name']}, as in its `{path}`"
        tests = {"test_recording_is_read": one["confirms"]}
        found.append(Witness("recordings", who, how, "test_recordings.py", tests))
    return found


def _named(who: str, origin: str) -> str:
    """Return the name of a program, with its version if a file of this repository pins it."""
    kind, _slash, project = origin.partition("/")
    if kind == "pypi":
        found = re.search(rf"(?m)^{re.escape(who)}==(\S+)", _text("requirements-dev.txt"))
        return f"{who} {found[1]}" if found else who
    if kind == "npm":
        pinned = json.loads(_text("tests/strangers/node/package.json"))["dependencies"]
        return f"{who} {pinned[who]} (npm)"
    if kind == "maven":
        pom = _text(f"tests/strangers/java/{project}/pom.xml")
        return f"{who} {re.findall(r'<version>(.*?)</version>', pom)[1]}"
    return who


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def confirmed(found: Iterable[Witness], kind: str = "") -> dict[str, set[str]]:
    """Map the confirmed operations to the names of their witnesses.

    :param kind: count only witnesses of this kind; "" means all
    """
    names: dict[str, set[str]] = {}
    for one in found:
        for operation in itertools.chain.from_iterable(one.tests.values()):
            if kind in ("", one.kind):
                names.setdefault(operation, set()).add(one.who)
    return names


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    data = load()
    found = witnesses(data)
    by_kind = [confirmed(found, kind) for kind in _KINDS]
    rows = []
    bare: dict[str, list[str]] = {}
    for operation in operations():
        module, _dot, name = operation.partition(".")
        cells = [sorted(names.get(operation, ()), key=str.lower) for names in by_kind]
        if any(cells):
            rows.append((module, name, [", ".join(cell) for cell in cells]))
        else:
            bare.setdefault(module, []).append(name)
    template: jinja2.Template = jinja2.Template(
        _TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    looked_for = data["looked_for"]
    text = template.render(
        kinds=_KINDS, confirmed=rows, witnesses=found, bare=bare, looked_for=looked_for
    )
    return {PAGE: text}
