# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the third parties that confirm each operation.

    python -m tools.witnesses    writes docs/interfaces/witnesses.md

Servers, clients and sources are in `tests/strangers/witnesses.yml`, recordings in `recordings.yml`
next to it, with the tests that check the collection against them. Other knowledge about the servers
is read from the code: the facts that the files of a module cite, and the marks of certainty behind
these facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools import generated
from tools.descriptors import DESCRIPTORS
from tools.imports import closure
from tools.tree import ROOT

SOURCE = ROOT / "tests" / "strangers" / "witnesses.yml"
PAGE = ROOT / "docs" / "interfaces" / "witnesses.md"
RECORDINGS = ROOT / "tests" / "strangers" / "recordings.yml"
TESTS = ROOT / "tests" / "integration"
_UTILS = ROOT / "plugins" / "module_utils"
_READ = "test_it_is_read"
_KINDS = ("servers", "clients", "recordings", "sources")
_CITED = re.compile(r"\[((?:repo|tracker|wiki|ci|analysis)-\d+(?:,\s+[\w-]+\d+)*)\]")
_FACT = re.compile(r"^## ((?:repo|tracker|wiki|ci|analysis)-\d+) (.*?)(?=^## |\Z)", re.M | re.S)
_MARKS = re.compile(r"\(([sdcrvkiu](?:, [sdcrvkiu])*)\)")
_HEAD = """# Who confirms what

Written by `python -m tools.witnesses`; a test compares it. The same people write the sandbox and
the modules, so both may contain the same mistake about a server. This page lists the independent
code that confirms the operations of the modules:

- **servers**: the modules ran on a third-party server;
- **clients**: a third-party client did the same on the sandbox, and got the responses that it
  expects;
- **recordings**: the modules read the recorded response of a real server;
- **sources**: the modules send requests that a real server documents, or that the code of a client
  sends.

The last table lists the evidence for the rest: the facts that the code of a module cites, with
their [marks](README.md#marks-of-certainty).
"""


@dataclass(frozen=True)
class Witness:
    """A third-party program, and the operations that its tests confirm."""

    kind: str
    who: str
    how: str
    file: str
    tests: dict[str, list[str]]


def load() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
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
    for one in yaml.safe_load(RECORDINGS.read_text(encoding="utf-8")):
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


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    found = witnesses(data)
    confirmed = {each for one in found for test in one.tests.values() for each in test}
    bare = [each for each in operations() if each not in confirmed]
    parts = [_HEAD, "## Operations\n", *_operations(found), "\n## The witnesses\n"]
    parts += ["| who | kind | how | tests |\n|---|---|---|---|", *_rows(found)]
    parts += ["\n## What nobody has confirmed\n", *_bare(bare), "\n## Looked for in vain\n"]
    parts += [*(f"- {one}" for one in data["looked_for"]), "\n## What the code stands on\n"]
    parts += ["| module | facts |\n|---|---|", *_facts(bare)]
    return "\n".join(parts) + "\n"


def _operations(found: list[Witness]) -> Iterator[str]:
    yield "| module | operation | " + " | ".join(_KINDS) + " |\n|---|---|---|---|---|---|"
    for operation in operations():
        module, _dot, name = operation.partition(".")
        cells = []
        for kind in _KINDS:
            names = {
                one.who
                for one in found
                if one.kind == kind and any(operation in each for each in one.tests.values())
            }
            cells.append(", ".join(sorted(names, key=str.lower)))
        if any(cells):
            yield f"| `{module}` | {name} | " + " | ".join(cells) + " |"


def _rows(found: list[Witness]) -> Iterator[str]:
    for one in found:
        tests = ", ".join(f"`{test}`" for test in one.tests)
        yield f"| {one.who} | {one.kind[:-1]} | {one.how} | `{one.file}`: {tests} |"


def _bare(bare: list[str]) -> Iterator[str]:
    modules: dict[str, list[str]] = {}
    for operation in bare:
        module, _dot, name = operation.partition(".")
        modules.setdefault(module, []).append(name)
    for module, names in modules.items():
        yield f"- `{module}`: {', '.join(names)}"
    if not modules:
        yield "No operation: each has a row above."


def _facts(bare: list[str]) -> Iterator[str]:
    marks = _marks()
    for module in dict.fromkeys(operation.partition(".")[0] for operation in bare):
        cited = sorted(_cited(module) & marks.keys(), key=_in_order)
        names = (f"{each} ({', '.join(marks[each])})" if marks[each] else each for each in cited)
        yield f"| `{module}` | {', '.join(names) or 'none: what it does is written'} |"


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


if __name__ == "__main__":
    generated.write(files())
