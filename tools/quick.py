# SPDX-License-Identifier: GPL-3.0-or-later
"""Run what the changes since the branch left main can break, in at most 90 seconds for one file.

    python -m tools.quick            changes since main, committed or not
    python -m tools.quick --list     only print the tests
    python -m tools.quick --list FILE ...    the tests of a change of these files

The tests near the changes run (`tools/near.py` finds them), the nearest first and then the
cheapest, until their processor time is spent (`tools/times.json` has it). The output names the
other tests: they are left to `make test` and `make test-all`. All commands run side by side.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import near, times, tree

#: Processor seconds of the tests; the static checks and the start of pytest need as much.
BUDGET = 70
#: Tests that compare files of all kinds: generated files, citations, imports, roles.
_ALWAYS = tuple(
    f"tests/unit/test_{name}.py" for name in ("architecture", "citations", "metadata", "roles")
)
#: Words of paths that are no subject.
_EVERYWHERE = {"plugi", "modul", "utils", "lib", "tests", "test", "unit", "integ", "yml", "tasks"}
#: Commands by the paths that they check.
_STATIC = {
    r".*\.py": ["ruff check --quiet .", "ruff format --check --quiet ."],
    # mypy finds the collection in a copy only
    r"(plugins|sandbox|tests|tools)/.*\.py": ["python -m tools.check mypy mypy-plugins"],
    # such as an option whose name suggests a secret
    r"plugins/(modules|module_utils|doc_fragments)/.*\.py": [
        "python -m tools.check validate-modules"
    ],
    r".*\.ya?ml": ["yamllint --strict {}"],
    r"changelogs/.*": ["python -m tools.check antsibull-changelog"],
    r"tools/(setup|third_party|debian_python)|\.ci/run": ["python -m tools.check shellcheck"],
    r"requirements.*": ["python -m tools.check licences"],
}


def changed() -> set[str]:
    """Return the paths of files that differ from the branch point on main."""
    listed = _git("diff", "--name-only", _base())
    return set((listed + _git("ls-files", "--others", "--exclude-standard")).splitlines())


def _base() -> str:
    return _git("merge-base", "HEAD", "main").strip() or "HEAD"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(tree.ROOT), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def tests(paths: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the tests to run, and those near the changes that are left."""
    distances = dict.fromkeys(_ALWAYS if paths else (), 2)
    for path in paths:
        for distance, test in near.tests(path):
            distances[test] = min(distance, distances.get(test, distance))
    # the beginnings of words: `adoption.py` is near `test_adopt.py`
    words = {word[:5] for path in paths for word in re.findall(r"[a-z]{3,}", path)} - _EVERYWHERE

    def order(test: str) -> tuple[int, int, float, str]:
        return distances[test], -sum(word in test for word in words), times.cost(test), test

    ordered = sorted(filter(times.exists, distances), key=order)
    # First come the tests that run the file itself. The nearest test of each kind is next, so that
    # no kind uses up the time of the others.
    first = [test for test in ordered if distances[test] == 0]
    for folder in ("tests/contract/", "tests/integration/", "tests/unit/"):
        alike = (test for test in ordered if test.startswith(folder))
        first += [test for test in alike if times.cost(test) <= BUDGET - 10][:1]
    chosen: dict[str, None] = {}  # in order
    taken, spent = set(), 0.0
    for test in [*first, *ordered]:
        # of an expensive test file that changed, its changed tests
        split = test in paths and times.cost(test) > BUDGET
        for part in _functions(test) if split else [test]:
            file = part.partition("::")[0]
            if part in taken or file in chosen or spent + times.cost(part) > BUDGET:
                continue
            chosen[part] = None
            taken |= {part, file}
            spent += times.cost(part)
    return list(chosen), [test for test in ordered if test not in chosen]


def _functions(path: str) -> list[str]:
    """Return the tests of a file: the changed ones first, then the cheapest."""
    lines = near.text(path).splitlines()
    hunks = re.findall(r"^@@ \S+ \+(\d+)", _git("diff", "-U0", _base(), "--", path), re.M)
    above = ["\n".join(lines[: int(number)]) for number in hunks]
    edited = [name for part in above for name in re.findall(r"^def (\w+)", part, re.M)[-1:]]
    names = sorted(
        times.functions(path),
        key=lambda name: (name not in edited, times.cost(f"{path}::{name}")),
    )
    return [f"{path}::{name}" for name in names]


def commands(paths: Collection[str], chosen: Sequence[str]) -> list[list[str]]:
    """Return the static checks of changed files and the commands that run tests."""
    found = []
    existing = [path for path in sorted(paths) if times.exists(path)]
    for pattern, lines in _STATIC.items():
        matching = [path for path in existing if re.fullmatch(pattern, path)]
        found += [line.replace("{}", " ".join(matching)).split() for line in lines if matching]
    cases = [Path(test).stem for test in chosen if test.startswith(times.CASE_FOLDER)]
    scenarios = [test for test in chosen if test.startswith("molecule-")]
    files = [test for test in chosen if not test.startswith((times.CASE_FOLDER, "molecule-"))]
    pytest = ["python", "-m", "pytest", "-q"]
    if cases:
        # Without the brackets, ci_job would also select ci_job_build.
        named = " or ".join(f"[{case}] or [{case}-" for case in cases)
        found.append([*pytest, "tests/contract", "-k", named])
    if files:
        # importlib: tests of several layers may have files of the same name
        workers = ["-n", "2", "--dist", "loadfile"] if len(files) > 2 else []
        found.append([*pytest, "--import-mode=importlib", *workers, *sorted(files)])
    if scenarios:
        found.append(["python", "-m", "tools.check", *scenarios])
    return found


def _show(title: str, names: Sequence[str], *, by_folder: bool) -> None:
    """Print tests, or the number in each folder, and their processor time."""
    if names:
        seconds = sum(map(times.cost, names))
        folders = Counter(str(Path(name.split("::")[0]).parent) for name in names)
        lines = [f"{folder}: {count}" for folder, count in folders.items()] if by_folder else names
        print(f"{title}: {len(names)}, about {seconds:.0f} s of processor time", *lines, sep="\n  ")


def main() -> int:
    """Return 0 if all checks and tests passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print the tests")
    parser.add_argument("files", nargs="*", help="changed files; by default those since main")
    options = parser.parse_args()
    paths = set(options.files) or changed()
    chosen, left = tests(paths)
    _show(f"{len(paths)} files changed. Tests that run", chosen, by_folder=False)
    # `make test` runs these, or a part of them
    of_test = {
        test
        for test in left
        if test.startswith(("tests/unit/", times.CASE_FOLDER))
        or "mark.first" in near.text(test.partition("::")[0])
    }
    for command, is_first in {"make test": True, "make test-all": False}.items():
        names = [test for test in left if (test in of_test) is is_first]
        _show(f"Left to `{command}`", names, by_folder=not options.list)
    if options.list:
        return 0
    sys.stdout.flush()
    todo = commands(paths, chosen)
    with ThreadPoolExecutor(max(len(todo), 1)) as pool:
        failures = list(filter(None, pool.map(_failure, todo)))
    print(*(failures or ["all passed"]), sep="\n")
    return int(bool(failures))


def _failure(command: Sequence[str]) -> str:
    """Run a command, and print its output at its end; return a message if it fails."""
    program = [str(near.PROGRAMS / command[0]), *command[1:]]
    out, error = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(program, cwd=tree.ROOT, check=False, stdout=out, stderr=error, text=True)
    print(done.stdout, end="", flush=True)
    return f"failed: {' '.join(command)[:100]}" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
