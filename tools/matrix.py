# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks on pairs of ansible-core and Python, and write their results to the documentation.

    python -m tools.matrix                       every pair, into docs/platforms.md
    python -m tools.matrix 2.18-3.11             one pair, into docs/platforms.md
    python -m tools.matrix --brief oldest newest   a part of the checks, written nowhere
    python -m tools.matrix --first 2.20-3.12       the tests of modules in `make test`
    python -m tools.matrix --prepare oldest        the environment, for runs without a network

The sessions of antsibull-nox for several versions install ansible-core from GitHub and need
containers, and keep no results of earlier runs.

Every pair has its own environment, below the environment that runs this tool and the sandbox. If a
Python is not installed, its pairs are reported as not run, which is a failure only for a pair that
the command line names.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools import check, tree

PLATFORMS = tree.ROOT / "docs" / "platforms.md"
_ENVIRONMENTS = Path(sys.prefix) / "matrix"
_NOT_RUN = "not run"
_MARKS = ("<!-- written by make matrix -->", "<!-- end -->")
_REQUIREMENTS = (
    *("ansible-runner", "cryptography", "hypothesis", "jsonschema", "lxml", "markdown-it-py"),
    *("oauthlib[signedtoken]", "pytest"),
    *("requests", "requests-oauthlib", "starlette", "trustme", "uvicorn"),
)
#: Unit tests of documents and tools: the results are the same on every pair.
_OF_THE_PROJECT = (
    *("architecture", "build", "citations", "licences", "linear_time", "matrix", "metadata"),
    *("new_module", "patterns", "quick", "tools"),
)
#: Unit tests of the code that uses Ansible directly.
_ON_ANSIBLE = (
    "tests/unit/test_ansible_internals.py",
    "tests/unit/core/test_module_internals.py",
    "tests/unit/core/test_runner.py",
)
_FEATURES = "tests/integration/execution/test_features.py"
_INVENTORY = "tests/integration/ci/test_ci_nodes.py"
_EXPORT = "tests/integration/drift/test_desired_state.py::test_exported_state_has_no_drift"
_SEPARATE = "tests/integration/execution/test_separate_processes.py"
#: Unit tests of the service packages: with the same Python, every core has the same results.
_SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
#: A whole matrix takes hours, and the machine also runs other work meanwhile.
_JOB_SECONDS = 2 * 60 * 60
#: The columns after `ansible-core` contain the results of the checks.
_COLUMNS = ("release", "Python", "ansible-core", "sanity", "unit", "contract", "demo", "loop")


#: Release and Python of each pair, from the oldest to the newest.
PAIRS = (
    *("2.16.0-3.10", "2.16-3.10", "2.16-3.11", "2.16-3.12", "2.17-3.12", "2.18-3.11"),
    *("2.19.0-3.11", "2.19-3.13", "2.20-3.12", "2.21-3.13", "2.21-3.14"),
    *("2.22-3.13", "2.22-3.14", "2.22-3.15"),
)
_BETA = "2.22"
#: The oldest and the newest pair that are supported: every pull request runs them.
SUPPORTED = ("2.20-3.12", "2.22-3.13")
#: Parts of the checks, whose results are written nowhere.
_PARTS = {
    "brief": "what differs between releases of ansible-core, in a minute",
    "first": "the tests of modules in `make test`",
    "prepare": "only the environments",
}
#: A missing Python is no failure of these parts.
_LENIENT = ("brief", "prepare")
#: `make test-all` runs both, on Pythons that most machines have.
NICKNAMES = {"oldest": PAIRS[0], "newest": "2.22-3.13"}
#: The jobs run the checks in a deeply nested folder of its own.
_SHORT_PATH = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108 - a folder of its own in it


def environment(pair: str) -> Path | None:
    """Return the folder with the programs of a pair; None if its Python is not installed.

    A missing or incomplete environment is created.
    """
    release, python = pair.split("-")
    core = f"=={release}" if release.count(".") == 2 else f"=={release}.*"
    core = f">={release}a0" if release == _BETA else core
    folder = _ENVIRONMENTS / pair
    finished, wanted = folder / ".installed", f"{core} {_REQUIREMENTS}"
    if not finished.exists() or finished.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        # virtualenv itself searches PATH, where the Pythons of pyenv may be hidden
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        create = [sys.executable, "-m", "virtualenv", "--quiet", "--python", python]
        unpacked = Path(sys.prefix) / "pythons" / python / "bin"
        for program in (*pyenv.glob(f"{python}.*/bin/python"), *unpacked.glob("python*")):
            create += ["--try-first-with", str(program)]
        if subprocess.run([*create, str(folder)], check=False).returncode != 0:
            return None
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        packages = [f"ansible-core{core}", *_REQUIREMENTS]
        subprocess.run([*pip, "install", "--quiet", *packages], check=True)
        finished.write_text(wanted, encoding="utf-8")
    return folder / "bin"


def commands(pair: str, part: str = "") -> dict[str, list[str]]:
    """Return all checks of a pair, or a part of `_PARTS`."""
    pytest = ["pytest", "-q", "-p", "no:cacheprovider"]
    demo = ["python", "-m", "tools.demo"]
    # the sandbox itself runs on the Python of this environment alone
    skipped = ["sandbox", *(f"test_{name}.py" for name in _OF_THE_PROJECT)]
    if pair != next(each for each in PAIRS if each.split("-")[1] == pair.split("-")[1]):
        skipped += _SERVICES
    ignore = [word for name in skipped for word in ("--ignore", f"tests/unit/{name}")]
    found = {
        # pylint of the newest core requires an archive that is in no package index
        "sanity": ["python", "-m", "tools.sanity"]
        + ["--skip-test", "pylint"] * pair.startswith(_BETA),
        "unit": [*pytest, "tests/unit", *ignore],
        "contract": [*pytest, "tests/contract", _SEPARATE, _EXPORT],
        "demo": demo,
        "loop": ["python", "-m", "tests.benchmarks.once"],
    }
    if part == "prepare":
        return {}
    if part == "brief":
        # the demo also exports and compares, but only the newest release runs all of it
        newest = pair == NICKNAMES["newest"]
        return {
            "unit": [*pytest, *_ON_ANSIBLE],
            "features": [*pytest, _FEATURES, _INVENTORY, *([] if newest else [_EXPORT])],
            "demo": demo if newest else [*demo, "--once"],
        }
    if part == "first":
        # other files import packages of other jobs
        tests = tree.ROOT / "tests"
        files = [*tests.glob("faults/**/test_*.py"), *tests.glob("integration/**/test_*.py")]
        marked = (file for file in files if "mark.first" in file.read_text("utf-8"))
        first = sorted(str(file.relative_to(tree.ROOT)) for file in marked)
        contract, first = [*pytest, "tests/contract"], [*pytest, "-m", "first", *first]
        return {"unit": found["unit"], "contract": contract, "first": first}
    return found


def run(pair: str, folder: Path, part: str = "") -> dict[str, str]:
    """Return the cells of a pair by their column."""
    programs = environment(pair)
    if programs is None:
        missing = f"{_NOT_RUN}: no Python {pair.split('-')[1]} here"
        print(f"=== {pair}: {missing}", flush=True)
        return {"ansible-core": missing}
    version = "from ansible import release; print(release.__version__)"
    cells = {"ansible-core": _done(["python", "-c", version], folder, programs)[1].strip()}
    for name, command in commands(pair, part).items():
        passed, output = _done(command, folder, programs)
        print(f"=== {pair}-{name}: {'passed' if passed else 'FAILED'}\n{output}", flush=True)
        cells[name] = "passed" if passed else "failed"
        if name == "loop" and passed:
            times = json.loads(output.splitlines()[-1])
            cells[name] = " / ".join(f"{seconds:.1f} s" for seconds in times.values())
    return cells


def _done(command: Sequence[str], folder: Path, programs: Path) -> tuple[bool, str]:
    """Run a check on the copy below `folder/collections`; return success and output."""
    collections = folder / "collections"
    done = subprocess.run(
        command,
        cwd=collections / tree.COLLECTION,
        env={**check.environment(collections, programs), "SANDBOX_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_JOB_SECONDS,
        check=False,
    )
    return done.returncode == 0, done.stdout


def write(cells: Mapping[str, Mapping[str, str]]) -> None:
    """Write the table; a pair that did not run now keeps its row."""
    text = PLATFORMS.read_text(encoding="utf-8")
    head, rest = text.split(_MARKS[0])
    before, tail = rest.split(_MARKS[1])
    rows = {"-".join(line.split(" | ")[:2]).strip("| "): line for line in before.splitlines()}
    for pair, found in cells.items():
        row = [*pair.split("-"), *(found.get(name, "") for name in _COLUMNS[2:])]
        rows[pair] = f"| {' | '.join(row)} |"
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    table = "\n".join([*lines, *(rows[pair] for pair in PAIRS if pair in rows)])
    whole = f"{head}{_MARKS[0]}\n\n{table}\n\n{_MARKS[1]}{tail}"
    PLATFORMS.write_text(whole, encoding="utf-8")


def main() -> int:
    """Run the pairs of the command line; return 0 if no check failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="*", help="as 2.18-3.11, oldest or newest; else all")
    parts = parser.add_mutually_exclusive_group()
    for name, text in _PARTS.items():
        parts.add_argument(f"--{name}", dest="part", action="store_const", const=name, help=text)
    options = parser.parse_args()
    names = {NICKNAMES.get(name, name) for name in options.pairs}
    chosen = [pair for pair in PAIRS if not names or pair in names]
    if len(chosen) < len(names):
        raise SystemExit(f"The pairs are {', '.join(PAIRS)}.")
    cells: dict[str, dict[str, str]] = {}
    # ansible-core 2.22 creates a socket in this folder; the path of a socket has at most 107
    # characters
    with tempfile.TemporaryDirectory(prefix="matrix-", dir=_SHORT_PATH) as folder:
        collections = Path(folder, "collections")
        if (tree.ROOT / ".git").exists():
            tree.copy_tree(collections)
        else:
            # the copy of `make test`
            collections.symlink_to(tree.ROOT.parents[2], target_is_directory=True)
        for pair in chosen:
            cells[pair] = run(pair, Path(folder), options.part)
            if not options.part:
                write(cells)
    ends = {cell for each in cells.values() for cell in each.values()}
    missing = bool(names) and options.part not in _LENIENT and any(_NOT_RUN in end for end in ends)
    return int("failed" in ends or missing)


if __name__ == "__main__":
    sys.exit(main())
