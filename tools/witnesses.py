# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the third parties that confirm each operation.

Servers, clients and sources are in `tests/strangers/witnesses.yml`, recordings in `recordings.yml`
next to it, with the tests that check the collection against them.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from ansible.module_utils.common.yaml import yaml_load

from tools.descriptors import DESCRIPTORS
from tools.tree import ROOT

STRANGERS = ROOT / "tests" / "strangers"
SOURCE, RECORDINGS = STRANGERS / "witnesses.yml", STRANGERS / "recordings.yml"
LOCK = ROOT / "requirements-dev.txt"
_TEMPLATE = ROOT / "tools" / "witnesses.md.j2"
PAGE = ROOT / "docs" / "interfaces" / "witnesses.md"
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
    """Return the content of `witnesses.yml`."""
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
    files = {
        "pypi": (LOCK, rf"(?m)^{re.escape(who)}==(\S+)"),
        "npm": (STRANGERS / "node" / "package.json", rf'"{re.escape(who)}": "(.*?)"'),
        "maven": (STRANGERS / "java" / project / "pom.xml", r"(?s)<version>.*?<version>(.*?)</"),
    }
    if kind not in files:
        return who
    file, pattern = files[kind]
    found = re.search(pattern, file.read_text(encoding="utf-8"))
    return f"{who} {found[1]}{' (npm)' if kind == 'npm' else ''}" if found else who


def confirmed(found: Iterable[Witness], kind: str = "") -> dict[str, set[str]]:
    """Map the confirmed operations to the names of their witnesses.

    :param kind: count only witnesses of this kind; "" means all
    """
    names: dict[str, set[str]] = defaultdict(set)
    for one in found:
        if kind in ("", one.kind):
            for operation in itertools.chain.from_iterable(one.tests.values()):
                names[operation].add(one.who)
    return dict(names)


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    data = load()
    found = witnesses(data)
    by_kind = [confirmed(found, kind) for kind in _KINDS]
    rows, bare = [], defaultdict(list)
    for operation in operations():
        module, _dot, name = operation.partition(".")
        cells = [", ".join(sorted(names.get(operation, ()), key=str.lower)) for names in by_kind]
        if any(cells):
            rows.append((module, name, cells))
        else:
            bare[module].append(name)
    source = _TEMPLATE.read_text(encoding="utf-8")
    template = jinja2.Template(source, trim_blocks=True, undefined=jinja2.StrictUndefined)
    values = {"kinds": _KINDS, "confirmed": rows, "witnesses": found, "bare": bare}
    return {PAGE: template.render(values, looked_for=data["looked_for"])}
