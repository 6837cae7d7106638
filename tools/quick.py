# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the static checks and the tests of the changes since the branch left main.

    python -m tools.quick            changes since main, committed or not
    python -m tools.quick --list     only print the tests

Tests are found through imports: unit tests that directly or indirectly import a changed file,
contract cases of the modules that do, and tests of the changed service that name such a module. A
changed role has its Molecule scenario, and tests that are named after it. If a change reaches many
modules, only the tests of its package and a sample of the contract run. Tests of several services
(releases, examples, documentation) are left to `make test`. All commands run side by side.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tests.helpers.cases import CASES
from tools import tree

#: A change that reaches more modules is a change of the core: `make test` runs all contract cases.
_MAX_MODULES = 12
#: The module whose contract cases run after such a change.
_SAMPLE = "tracker_version"
_PROGRAMS = Path(sys.executable).parent
#: Tests that compare files of all kinds: generated files, citations, imports, roles.
_ALWAYS = tuple(
    f"tests/unit/test_{name}.py" for name in ("architecture", "citations", "metadata", "roles")
)
#: Seconds on two idle cores: the static checks, the start of the tests, and the average of a unit
#: test file, another test file, a contract case and a Molecule scenario.
_SECONDS = {"start": 30, "unit": 0.7, "others": 6, "case": 0.8, "scenario": 4}
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
    """Return the test files and the contract cases to run."""
    reached = _with_importers(paths)
    modules = {Path(path).stem for path in reached if path.startswith("plugins/modules/")}
    if len(modules) > _MAX_MODULES:
        modules, reached = {_SAMPLE}, _near(paths, reached)
    cases = {name for name, case in CASES.items() if case["module"] in modules}
    changed_cases = {Path(path).stem for path in paths if path.startswith("tests/contract/cases/")}
    found = {path for path in reached if re.match(r"tests/unit/(.*/)?test_", path)}
    found |= {path for path in paths if re.match(r"tests/.*/test_", path)}
    found |= {*_naming(modules, paths), *(_ALWAYS if paths else ())}
    existing = sorted(path for path in found if (tree.ROOT / path).exists())
    return existing, sorted(cases | (changed_cases & CASES.keys()))


def _with_importers(paths: set[str], steps: int = -1) -> set[str]:
    """Return the files, and those that import them directly or indirectly, at most `steps` away."""
    reached = new = paths
    while new and steps:
        new = {each for path in new for each in _importers().get(path, ())} - reached
        reached = reached | new
        steps -= 1
    return reached


@cache
def _importers() -> dict[str, list[str]]:
    """Map each Python file of the checkout to the files that import it."""
    with tempfile.TemporaryDirectory(prefix="toolchain-imports-") as name:
        root = tree.link_tree(Path(name))
        # the folders of the collection are packages without __init__.py
        folders = [root.parents[1], root.parent, root, *(root / "plugins").rglob("*/")]
        packages = [str(each.relative_to(name)) for each in folders if each.is_dir()]
        command = [str(_PROGRAMS / "ruff"), "analyze", "graph", "--preview"]
        command += ["--direction", "dependents", str(tree.COLLECTION)]
        for key, value in {"namespace-packages": packages, "src": [name, str(root)]}.items():
            command += ["--config", f"{key} = {json.dumps(value)}"]
        done = subprocess.run(command, check=True, cwd=name, capture_output=True, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout.replace(f"{tree.COLLECTION}/", ""))
    return found


def _near(paths: set[str], reached: set[str]) -> set[str]:
    """Return the reached tests of the changed packages, and other tests that import the change
    directly, without those of the services.
    """
    packages = {f"tests/unit/{service}" for service in _services(paths)}
    in_packages = {path for path in reached if str(Path(path).parent) in packages}
    direct = _with_importers(paths, steps=1)
    return in_packages | {path for path in direct if str(Path(path).parent) == "tests/unit"}


def _services(paths: set[str]) -> set[str]:
    """Return the services of the changed packages; `core` counts as a service."""
    return {path.split("/")[3] for path in paths if path.startswith("plugins/module_utils/_lib/")}


def roles(paths: set[str]) -> list[str]:
    """Return the changed roles."""
    return sorted({path.split("/")[1] for path in paths if path.startswith("roles/")})


def _naming(modules: set[str], paths: set[str]) -> Iterator[str]:
    """Yield tests of the changed services, and of sandboxes, that name one of the modules."""
    served = {path.split("/")[1] for path in paths if path.startswith("sandbox/")}
    patterns = [f"tests/integration/sandbox/test_sandbox_{name}*.py" for name in served]
    patterns += [f"tests/integration/*/test_{name}*.py" for name in roles(paths)]
    for pattern in patterns:
        yield from (str(path.relative_to(tree.ROOT)) for path in tree.ROOT.glob(pattern))
    for service in _services(paths) if modules else ():
        for path in tree.ROOT.glob(f"tests/[iu]n*/{service}/test_*.py"):
            if re.search(rf"\b({'|'.join(modules)})\b", path.read_text(encoding="utf-8")):
                yield str(path.relative_to(tree.ROOT))


def estimate(files: Sequence[str], cases: Sequence[str], scenarios: Sequence[str]) -> int:
    """Return about how many seconds the checks and tests take, in steps of ten."""
    unit = sum(path.startswith("tests/unit/") for path in files)
    counts = {"unit": unit, "others": len(files) - unit}
    counts |= {"start": 1, "case": len(cases), "scenario": len(scenarios)}
    return max(1, round(sum(_SECONDS[name] * count for name, count in counts.items()) / 10)) * 10


def main() -> int:
    """Return 0 if all checks and tests passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print the tests")
    options = parser.parse_args()
    paths = changed()
    files, cases = tests(paths)
    print(f"{len(paths)} files changed; {len(files)} test files", *files, sep="\n  ")
    print(f"contract cases: {', '.join(cases) or 'none'}")
    scenarios = [f"molecule-{role}" for role in roles(paths)]
    print(f"About {estimate(files, cases, scenarios)} s on two idle cores.", flush=True)
    if options.list:
        return 0
    commands: list[tuple[str, ...]] = list(_STATIC)
    if cases:
        # Without the brackets, ci_job would also select ci_job_build.
        chosen = " or ".join(f"[{case}] or [{case}-" for case in cases)
        contract = ("pytest", "-q", "tests/contract")
        commands.append((*contract, "-k", chosen))
    if files:
        # importlib: tests of several layers may have files of the same name
        pytest = ("python", "-m", "pytest", "-q", "--import-mode=importlib", "-n", "2")
        commands.append((*pytest, "--dist", "loadfile", *files))
    if scenarios:
        commands.append(("python", "-m", "tools.check", *scenarios))
    with ThreadPoolExecutor(len(commands)) as pool:
        failures = list(filter(None, pool.map(_failure, commands)))
    print(*(failures or ["all passed"]), sep="\n")
    return int(bool(failures))


def _failure(command: Sequence[str]) -> str:
    """Run a command, and print its output at its end; return a message if it fails."""
    done = subprocess.run(
        [_PROGRAMS / command[0], *command[1:]],
        cwd=tree.ROOT,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="", flush=True)
    return f"failed: {' '.join(command)[:100]}" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
