# SPDX-License-Identifier: GPL-3.0-or-later
"""List the missing parts of a module.

    python -m tools.module_check wiki_label      one module
    python -m tools.module_check                 all modules

The list contains missing files and FILL_IN marks, options without a test, operations that no third
party confirms, permissions and requests unknown to the sandbox, a missing changelog fragment, and
stale generated files. Exits with 1 if something is missing. `validate-modules` of `make quick`
compares the options with the documentation.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tools import generated, tree, witnesses
from tools.descriptors import DESCRIPTORS
from tools.new_module import MARK

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (  # noqa: E402 (made importable above)
    typed_options,
)
from tests.helpers import (  # noqa: E402 (imports plugins)
    cases,
    connections,
    in_process,
    interleaving,
    operations,
)
from tests.helpers.permissions import KNOWN  # noqa: E402 (imports plugins)

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


def unknown_requests(module: str, sandbox: Sandbox) -> Iterator[str]:
    """Run the first step of the case, in check mode and not; yield the requests without a route.

    :param sandbox: a running sandbox, with the flavour `real`
    """
    case = cases.CASES[module]
    if "service" not in case:
        return
    service, flavour = case["service"], case["flavours"][-1]
    login = cases.connection_options(module, flavour)
    arguments = {
        **connections.connection(service, sandbox.urls[service], **login),
        **cases.first_arguments(module),
    }
    unknown: dict[str, None] = {}
    for check_mode in (True, False):
        sandbox.reset()
        for name, changes in cases.settings(module).items():
            sandbox.settings(name, **changes)
        sandbox.seed(cases.seed(module))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                in_process.run(module, {**arguments, "_ansible_check_mode": check_mode})
            except Exception as error:  # noqa: BLE001 (any mistake in the new code)
                kind = type(error).__name__
                unknown[f"the first step of the case breaks the module: {kind}: {error}"] = None
        for entry in sandbox.requests(service):
            if not entry["routed"]:
                unknown[f"the sandbox has no route for {entry['method']} {entry['path']}"] = None
    yield from unknown


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Print the missing parts of the modules; return 1 if there are any."""
    lines: list[str] = []
    absent = False
    with Sandbox.start(flavour="real") as sandbox:
        for module in arguments or DESCRIPTORS:
            found = missing(module)
            if all((tree.ROOT / file).exists() for file in _files(module)):
                found += unknown_requests(module, sandbox)
            else:
                absent = True
            lines += (f"{module}: {line}" for line in found)
    lines += [] if absent else generated.problems()
    print(*lines, f"{len(lines)} missing", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
