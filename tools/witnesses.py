# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the third parties that confirm each operation.

Servers, clients and sources are in `tests/strangers/witnesses.yml`, recordings in `recordings.yml`
next to it, with the tests that check the collection against them. Other knowledge about the servers
is read from the code: the facts that the files of a module cite, and the marks of certainty behind
these facts.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from ansible.module_utils.common.yaml import yaml_load

from tools.descriptors import DESCRIPTORS
from tools.imports import closure
from tools.tree import ROOT

SOURCE = ROOT / "tests" / "strangers" / "witnesses.yml"
_TEMPLATE = ROOT / "tools" / "witnesses.md.j2"
PAGE = ROOT / "docs" / "interfaces" / "witnesses.md"
RECORDINGS = ROOT / "tests" / "strangers" / "recordings.yml"
TESTS = ROOT / "tests" / "integration"
_UTILS = ROOT / "plugins" / "module_utils"
_READ = "test_recording_is_read"
_KINDS = ("servers", "clients", "recordings", "sources")
_CITED = re.compile(r"\[((?:repo|tracker|wiki|ci|analysis)-\d+(?:,\s+[\w-]+\d+)*)\]")
_FACT = re.compile(r"^## ((?:repo|tracker|wiki|ci|analysis)-\d+) (.*?)(?=^## |\Z)", re.M | re.S)
_MARKS = re.compile(r"\(([sdcrvkiu](?:, [sdcrvkiu])*)\)")


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
    programs = [
        Witness(kind, _named(one["who"], one["from"]), one["how"], one["file"], one["tests"])
        for kind in ("servers", "clients", "sources")
        for one in data[kind]
    ]
    return [*programs, *_recordings()]


def _recordings() -> Iterator[Witness]:
    for one in yaml_load(RECORDINGS.read_text(encoding="utf-8")):
        who, _comma, path = one["source"].partition(", ")
        how = f"{one['name']}, as in its `{path}`"
        yield Witness("recordings", who, how, "test_recordings.py", {_READ: one["confirms"]})


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


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    return {PAGE: page(load())}


def confirmed(found: Iterable[Witness], kind: str = "") -> dict[str, set[str]]:
    """Map the confirmed operations to the names of their witnesses, of one kind or of all."""
    names: dict[str, set[str]] = {}
    for one in found:
        for operation in itertools.chain.from_iterable(one.tests.values()):
            if kind in ("", one.kind):
                names.setdefault(operation, set()).add(one.who)
    return names


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
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
    marks = _marks()
    return template.render(
        kinds=_KINDS,
        confirmed=rows,
        witnesses=found,
        bare=bare,
        looked_for=data["looked_for"],
        facts={module: _facts(module, marks) for module in bare},
    )


def _facts(module: str, marks: Mapping[str, list[str]]) -> list[str]:
    """Return the facts that a module cites, with their marks."""
    cited = sorted(_cited(module) & marks.keys(), key=_in_order)
    return [f"{each} ({', '.join(marks[each])})" if marks[each] else each for each in cited]


def _in_order(fact: str) -> tuple[str, int]:
    service, _dash, number = fact.rpartition("-")
    return service, int(number)


def _marks() -> dict[str, list[str]]:
    """Map each fact to the distinct marks in its description."""
    found: dict[str, list[str]] = {}
    for book in sorted(PAGE.parent.glob("*.md")):
        for fact in _FACT.finditer(book.read_text(encoding="utf-8")):
            letters = [each for marks in _MARKS.findall(fact[2]) for each in marks.split(", ")]
            found[fact[1]] = sorted(set(letters), key="sdcrvkiu".index)
    return found


def _cited(module: str) -> set[str]:
    """Return the facts cited by a module's file and by the files of its service that it imports."""
    start = next(_UTILS.rglob(f"{module}.py")).relative_to(ROOT)
    service = "/".join(start.parts[:3])
    files = closure([str(start)], "dependencies")
    return {
        each
        for file in files
        if file.startswith(f"{service}/")
        for found in _CITED.findall(_text(file))
        for each in re.split(r",\s+", found)
    }
