# SPDX-License-Identifier: GPL-3.0-or-later
"""List the missing parts of a module.

    python -m tools.module_check wiki_label      one module
    python -m tools.module_check                 all modules

The list contains missing files and FILL_IN marks, options without a test, operations that no third
party confirms, permissions unknown to the sandbox, a missing changelog fragment, and stale
generated files. Exits with 1 if something is missing. Other checks of a module are not repeated
here: `validate-modules` compares the options with the documentation, and a test of the contract
finds requests that the sandbox does not know.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tools import generated, tree, witnesses
from tools.descriptors import DESCRIPTORS
from tools.new_module import MARK

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from tests.helpers import cases, interleaving, operations
from tests.helpers.permissions import KNOWN

_TESTS = tree.ROOT / "tests"
_USED = re.compile(r"""["'](\w+)(?=["'])|\b(\w+)=""")


def missing(module: str) -> list[str]:
    """Return a sentence for every missing part of the module."""
    files = _files(module)
    absent = [f"{file} is missing" for file in files if not (tree.ROOT / file).exists()]
    marks = [
        f"{file}:{number} is to be filled in"
        for file in (() if absent else files)
        for number, line in enumerate(_text(tree.ROOT / file).splitlines(), 1)
        if MARK in line
    ]
    return absent or [*marks, *_untested_options(module), *_unknown(module)]


def _files(module: str) -> list[Path]:
    """Return documentation, operation and case of a module, and its test and fragment, if any."""
    utils = tree.ROOT / "plugins" / "module_utils" / "_lib"
    files = [
        tree.ROOT / "plugins" / "modules" / f"{module}.py",
        next(utils.rglob(f"{module}.py"), utils / f"{module}.py"),
        _TESTS / "contract" / "cases" / f"{module}.yml",
        *(_TESTS / "unit").rglob(f"test_{module}.py"),
        *(tree.ROOT / "changelogs" / "fragments").glob(f"{module.replace('_', '-')}.yml"),
    ]
    return [file.relative_to(tree.ROOT) for file in files]


def _untested_options(module: str) -> Iterator[str]:
    """Search for the options in the tests and cases that name the module or a class of options."""
    _operation, options = interleaving.operation_of(module)
    about = {module, *(one.__name__ for one in options.__mro__[:-1])}
    used: set[str] = set()
    for name, words, names in _tests():
        if module in name or about & words:
            used |= names
    for place in _places(typed_options.argument_spec(options)):
        if place.rpartition(".")[2] not in used:
            yield f"option {place} has no test: none of the module names it"


@cache
def _tests() -> list[tuple[str, set[str], set[str]]]:
    """Return every test and case with its words, and the strings and keywords in it."""
    texts = [(path.stem, _text(path)) for path in _TESTS.rglob("*.py")]
    texts += ((name, json.dumps(case, default=str)) for name, case in cases.CASES.items())
    return [
        (name, set(re.findall(r"\w+", text)), {one or other for one, other in _USED.findall(text)})
        for name, text in texts
    ]


def _places(spec: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, option in spec.items():
        yield f"{prefix}{name}"
        yield from _places(option.get("options") or {}, f"{prefix}{name}.")


def _unknown(module: str) -> Iterator[str]:
    """Yield what the case, permissions, witnesses and changelog lack of a module."""
    case, descriptor = f"tests/contract/cases/{module}.yml", DESCRIPTORS[module]
    yield from (f"{case}: {problem}" for problem in cases.problems(cases.CASES[module]))
    counted = {one.module for one in operations.OPERATIONS.values() if one.requests is not None}
    if module not in counted and "requests" not in cases.CASES[module]:
        yield f"{case} promises no number of requests"
    confirmed, sought = _witnessed()
    for name, access in descriptor.operations.items():
        known = KNOWN.get(descriptor.service_name, set())
        for permission in sorted({*access.needs, *access.unforeseen} - known):
            yield (
                f"permission '{permission}' of {module}.{name} is unknown: use one of those in"
                " tests/helpers/permissions.py, or add it there and to the sandbox"
            )
        if f"{module}.{name}" not in confirmed and module not in sought:
            yield (
                f"no witness confirms {module}.{name}: add one to tests/strangers/witnesses.yml, or"
                " name the module under looked_for"
            )
    if not re.search(rf"\b{module}\b", _changelogs()):
        yield "no fragment in changelogs/fragments names the module"


@cache
def _witnessed() -> tuple[Collection[str], str]:
    """Return the confirmed operations, and the modules for which witnesses were searched."""
    data = witnesses.load()
    return witnesses.confirmed(witnesses.witnesses(data)), " ".join(data["looked_for"])


@cache
def _changelogs() -> str:
    return "\n".join(map(_text, (tree.ROOT / "changelogs").rglob("*.y*ml")))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Print the missing parts of the modules; return 1 if there are any."""
    lines = [f"{module}: {line}" for module in arguments or DESCRIPTORS for line in missing(module)]
    if not any(line.endswith(" is missing") for line in lines):
        lines += generated.problems()
    print(*lines, f"{len(lines)} missing", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
