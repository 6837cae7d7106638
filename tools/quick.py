# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the static checks and the tests of the changes since the branch left main.

    python -m tools.quick            changes since main, committed or not
    python -m tools.quick --list     only print the tests

Tests are found through imports: unit tests that directly or indirectly import a changed file,
contract cases of the modules that do, and tests of the changed service that name such a module. A
changed role has its Molecule scenario, and tests that are named after it. Tests of several services
(releases, examples, documentation) are left to `make test`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import imports, tree

#: A change that reaches more modules is a change of the core: `make test` runs all contract cases.
_MAX_MODULES = 12
#: Tests that compare files of all kinds: generated files, citations, imports, roles.
_ALWAYS = tuple(
    f"tests/unit/test_{name}.py" for name in ("architecture", "citations", "metadata", "roles")
)
_STATIC = (
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--check", "--quiet", "."),
    # mypy finds the collection in a copy only
    ("python", "-m", "tools.check", "mypy", "mypy-plugins"),
)


def changed() -> set[str]:
    """Return the paths of files that differ from the branch point on main."""
    base = _git("merge-base", "HEAD", "main").strip() or "HEAD"
    listed = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    return set(listed.splitlines())


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(tree.ROOT), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def tests(paths: set[str]) -> tuple[list[str], list[str]]:
    """Return the test files to run, and the modules whose contract cases must run."""
    reached = imports.closure(paths, "dependents")
    modules = sorted(Path(path).stem for path in reached if path.startswith("plugins/modules/"))
    modules = modules if len(modules) <= _MAX_MODULES else []
    there = {path for path in paths if (tree.ROOT / path).exists()}
    cases = {Path(path).stem for path in there if path.startswith("tests/contract/cases/")}
    found = {path for path in reached if re.match(r"tests/unit/(.*/)?test_", path)}
    found |= {path for path in paths if re.match(r"tests/.*/test_", path)}
    found |= {*_naming(modules, paths), *(_ALWAYS if paths else ())}
    existing = sorted(path for path in found if (tree.ROOT / path).exists())
    return existing, sorted({*modules, *cases})


def roles(paths: set[str]) -> list[str]:
    """Return the changed roles."""
    return sorted({path.split("/")[1] for path in paths if path.startswith("roles/")})


def _naming(modules: list[str], paths: set[str]) -> Iterator[str]:
    """Yield tests of the changed services, and of sandboxes, that name one of the modules."""
    services = {path.split("/")[2] for path in paths if path.startswith("plugins/module_utils/")}
    served = {path.split("/")[1] for path in paths if path.startswith("sandbox/")}
    patterns = [f"tests/integration/sandbox/test_sandbox_{name}*.py" for name in served]
    patterns += [f"tests/integration/*/test_{name}*.py" for name in roles(paths)]
    for pattern in patterns:
        yield from (str(path.relative_to(tree.ROOT)) for path in tree.ROOT.glob(pattern))
    for service in services if modules else ():
        for path in tree.ROOT.glob(f"tests/[iu]n*/{service}/test_*.py"):
            if re.search(rf"\b({'|'.join(modules)})\b", path.read_text(encoding="utf-8")):
                yield str(path.relative_to(tree.ROOT))


def main() -> int:
    """Return 0 if all checks and tests passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print the tests")
    only_list = parser.parse_args().list
    paths = changed()
    files, modules = tests(paths)
    print(f"{len(paths)} files changed; {len(files)} test files", *files, sep="\n  ")
    print(f"contract cases of {', '.join(modules) or 'no module'}", flush=True)
    if only_list:
        return 0
    programs = Path(sys.executable).parent
    # importlib: tests of several layers may have files of the same name
    pytest = ("python", "-m", "pytest", "-q", "--import-mode=importlib", "-n", "2")
    commands = [*_STATIC, (*pytest, "--dist", "loadfile", *files)] if files else list(_STATIC)
    if modules:
        commands.append(("pytest", "-q", "tests/contract", "-k", " or ".join(modules)))
    scenarios = [f"molecule-{role}" for role in roles(paths)]
    if scenarios:
        commands.append(("python", "-m", "tools.check", *scenarios))
    failed = 0
    for program, *arguments in commands:
        done = subprocess.run([programs / program, *arguments], cwd=tree.ROOT, check=False)
        failed += done.returncode != 0
    print("all passed" if not failed else f"{failed} of {len(commands)} commands failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
