# SPDX-License-Identifier: GPL-3.0-or-later
"""List the missing parts of a module.

    python -m tools.module_check wiki_label      one module
    python -m tools.module_check                 all modules

The list contains missing files and FILL_IN marks, options without documentation or test, operations
that no third party confirms, permissions and requests unknown to the sandbox, a missing changelog
fragment, and stale generated files. Exits with 1 if something is missing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

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
    playbook,
)
from tests.helpers.permissions import KNOWN  # noqa: E402 (imports plugins)

_FRAGMENTS = "ansible_collections.delivery.toolchain.plugins.doc_fragments"
_TESTS = tree.ROOT / "tests"
_USED = re.compile(r"""["'](\w+)(?=["'])|\b(\w+)=""")


def missing(module: str) -> list[str]:
    """Return a sentence for every missing part of the module."""
    files = _files(module)
    absent = [f"{path} is missing" for path in files if not (tree.ROOT / path).exists()]
    if absent:
        return absent
    marks = (
        f"{path}:{number} is to be filled in"
        for path in files
        for number, line in enumerate(_text(tree.ROOT / path).splitlines(), 1)
        if MARK in line
    )
    return [
        *marks,
        *_options(module),
        *_case(module),
        *_unknown_permissions(module),
        *_unconfirmed(module),
        *_changelog(module),
    ]


def _files(module: str) -> list[Path]:
    """Return documentation, operation and case of a module, as paths below the checkout."""
    utils = tree.ROOT / "plugins" / "module_utils" / "_lib"
    operation = next(utils.rglob(f"{module}.py"), utils / f"{module}.py")
    written = [*(_TESTS / "unit").rglob(f"test_{module}.py")]
    written += (tree.ROOT / "changelogs" / "fragments").glob(f"{module.replace('_', '-')}.yml")
    return [
        Path("plugins", "modules", f"{module}.py"),
        operation.relative_to(tree.ROOT),
        Path("tests", "contract", "cases", f"{module}.yml"),
        *(path.relative_to(tree.ROOT) for path in written),
    ]


def _exists(module: str) -> bool:
    return all((tree.ROOT / path).exists() for path in _files(module))


def _options(module: str) -> Iterator[str]:
    """Compare the options with the documentation, and search for them in the module's tests."""
    _operation, options = interleaving.operation_of(module)
    spec = typed_options.argument_spec(options)
    own, shared = _documented(module)
    for name in sorted((spec.keys() - own - shared) | (own - spec.keys())):
        where = "the documentation" if name in spec else "the options of the operation"
        yield f"option {name} is missing in {where}"
    about = {module, *(one.__name__ for one in options.__mro__[:-1])}
    used = set().union(
        *(test.names for test in _tests() if module in test.name or about & test.words)
    )
    for place in _places(spec):
        if place.rpartition(".")[2] not in used:
            yield f"option {place} has no test: none of the module names it"


@dataclass(frozen=True)
class _Test:
    """A test or case: its words, and the names that it uses as a string or as a keyword."""

    name: str
    words: set[str]
    names: set[str]


@cache
def _tests() -> list[_Test]:
    """Return every test and case. They are searched once, not once for each module."""
    texts = [(path.stem, _text(path)) for path in _TESTS.rglob("*.py")]
    texts += ((name, json.dumps(case, default=str)) for name, case in cases.CASES.items())
    return [
        _Test(
            name,
            set(re.findall(r"\w+", text)),
            {string or keyword for string, keyword in _USED.findall(text)},
        )
        for name, text in texts
    ]


def _places(spec: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, option in spec.items():
        yield f"{prefix}{name}"
        yield from _places(option.get("options") or {}, f"{prefix}{name}.")


def _documented(module: str) -> tuple[set[str], set[str]]:
    """Return the options that a module documents itself, and the options of its fragments."""
    documentation = yaml_load(playbook.documentation(module, "DOCUMENTATION"))
    shared: set[str] = set()
    for fragment in documentation["extends_documentation_fragment"]:
        name, _dot, section = fragment.removeprefix("delivery.toolchain.").partition(".")
        fragments = importlib.import_module(f"{_FRAGMENTS}.{name}").ModuleDocFragment
        text = getattr(fragments, section.upper() or "DOCUMENTATION")
        shared |= set(yaml_load(text).get("options") or {})
    return set(documentation.get("options") or {}), shared


def _case(module: str) -> Iterator[str]:
    for problem in cases.problems(cases.CASES[module]):
        yield f"tests/contract/cases/{module}.yml: {problem}"
    counted = {one.module for one in operations.OPERATIONS.values() if one.requests is not None}
    if module not in counted and "requests" not in cases.CASES[module]:
        yield f"tests/contract/cases/{module}.yml promises no number of requests"


def _unknown_permissions(module: str) -> Iterator[str]:
    known = KNOWN.get(DESCRIPTORS[module].service_name, set())
    for name, access in DESCRIPTORS[module].operations.items():
        for permission in sorted({*access.needs, *access.unforeseen} - known):
            yield (
                f"permission '{permission}' of {module}.{name} is unknown: use one of those in"
                " tests/helpers/permissions.py, or add it there and to the sandbox"
            )


@cache
def _witnessed() -> tuple[Collection[str], str]:
    """Return the confirmed operations, and the modules for which witnesses were searched."""
    data = witnesses.load()
    return witnesses.confirmed(witnesses.witnesses(data)), " ".join(data["looked_for"])


def _unconfirmed(module: str) -> Iterator[str]:
    confirmed, sought = _witnessed()
    for name in DESCRIPTORS[module].operations:
        if f"{module}.{name}" not in confirmed and module not in sought:
            yield (
                f"no witness confirms {module}.{name}: add one to tests/strangers/witnesses.yml, or"
                " name the module under looked_for"
            )


def unknown_requests(module: str, sandbox: Sandbox) -> Iterator[str]:
    """Run the first step of the case, in check mode and not; yield the requests without a route.

    :param sandbox: a running sandbox, with the flavour `real`
    """
    case = cases.CASES[module]
    if "service" not in case:
        return
    service, flavour = case["service"], case["flavours"][-1]
    login = cases.connection_options(module, flavour)
    unknown: dict[str, None] = {}
    for check_mode in (True, False):
        sandbox.reset()
        for name, changes in cases.settings(module).items():
            sandbox.settings(name, **changes)
        sandbox.seed(cases.seed(module))
        arguments = {
            **connections.connection(service, sandbox.urls[service], **login),
            **cases.first_arguments(module),
            "_ansible_check_mode": check_mode,
        }
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                in_process.run(module, arguments)
            except Exception as error:  # noqa: BLE001 (any mistake in the new code)
                kind = type(error).__name__
                unknown[f"the first step of the case breaks the module: {kind}: {error}"] = None
        for entry in sandbox.requests(service):
            if not entry["routed"]:
                name = f"{entry['method']} {entry['path']}"
                unknown[f"the sandbox has no route for {name}"] = None
    yield from unknown


@cache
def _changelogs() -> str:
    return "\n".join(map(_text, (tree.ROOT / "changelogs").rglob("*.y*ml")))


def _changelog(module: str) -> Iterator[str]:
    if not re.search(rf"\b{module}\b", _changelogs()):
        yield "no fragment in changelogs/fragments names the module"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Print the missing parts of the modules; return 1 if there are any."""
    with Sandbox.start(flavour="real") as sandbox:
        lines: list[str] = []
        for module in arguments or DESCRIPTORS:
            lines += (f"{module}: {line}" for line in missing(module))
            if _exists(module):
                lines += (f"{module}: {line}" for line in unknown_requests(module, sandbox))
    if all(map(_exists, arguments)):
        lines += generated.problems()
    print(*lines, f"{len(lines)} missing", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
