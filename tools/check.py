# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the jobs of `tools/jobs.mk` in parallel and add up their results.

    python -m tools.check              the group test, then `tools/setup dev`, then the group rest
    python -m tools.check test         a group: test, rest, lint, static
    python -m tools.check unit mypy    single jobs, by name

All jobs work on one copy of the checkout in a temporary folder. You can keep editing meanwhile, and
no files are left behind. Each job prints a line at its start and at its end, and its output if it
fails. The last line is the sum: every test of pytest counts, and any other job counts as 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tools import tree

JOBS = tree.ROOT / "tools" / "jobs.mk"
CACHE = Path(sys.prefix) / "mypy"
# Settings of the caller that would change the behaviour of the collection or of a tool.
FOREIGN_PREFIXES = ("ANSIBLE_", "KLOCWORK_", "MAKE", "MFLAGS", "MOLECULE_", "PYTEST_", "TOOLCHAIN_")


def environment(collections: Path, programs: Path = Path(sys.executable).parent) -> dict[str, str]:
    """Return the variables of a job on a collections path, with the programs of an environment."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)
    }
    return {
        **inherited,
        **tree.environment(collections),
        "LC_ALL": "C.UTF-8",
        "MYPYPATH": str(collections),
        "NO_COLOR": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "no_proxy": "127.0.0.1,localhost",
    }


def run(names: Sequence[str], folder: Path, workers: int) -> int:
    """Run jobs on the copy in `folder/collections`; return the exit status of `make`."""
    out = folder / "out"
    out.mkdir()
    command = ["make", "--no-print-directory", "--keep-going"]
    command += [f"--jobs={workers}", f"--file={JOBS}", f"OUT={out}", f"MYPY_CACHE={CACHE}", *names]
    copy = folder / "collections" / tree.COLLECTION
    variables = environment(folder / "collections")
    process = subprocess.Popen(command, cwd=copy, env=variables, start_new_session=True)
    try:
        return process.wait()
    finally:
        # after an interrupt jobs still run, and after a normal end a job may have left a server
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def counts(status: int, report: Path) -> tuple[int, int]:
    """Return the passed and failed tests of a pytest report, or 1 for a job without a report."""
    if not report.exists():
        return int(status == 0), int(status != 0)
    sums = dict.fromkeys(("tests", "skipped", "failures", "errors"), 0)
    for suite in ET.parse(report).getroot().iter("testsuite"):
        for name in sums:
            sums[name] += int(suite.get(name, 0))
    failed = max(sums["failures"] + sums["errors"], int(status != 0))
    return max(sums["tests"] - sums["skipped"] - failed, 0), failed


def summarize(out: Path) -> tuple[int, int]:
    """Print a line for every job that has ended; return the sums of passed and failed."""
    all_passed = all_failed = all_processor = 0
    for file in sorted(out.glob("*.status")):
        status, seconds, processor = map(int, file.read_text(encoding="utf-8").split())
        passed, failed = counts(status, file.with_suffix(".xml"))
        all_passed, all_failed = all_passed + passed, all_failed + failed
        all_processor += processor
        verdict = "FAILED" if failed else "passed"
        print(
            f"{file.stem:20s} {verdict} {seconds:5d} s {processor:5d} s of processor time"
            f" {passed:5d} passed {failed:4d} failed"
        )
    print(f"{all_processor} s of processor time")
    return all_passed, all_failed


def check(names: Sequence[str], workers: int, reports: Path | None) -> tuple[int, int]:
    """Run jobs on a copy of the checkout; return how many passed and failed.

    :param reports: folder for the reports of pytest
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="toolchain-check-") as name:
        folder = Path(name)
        tree.copy_tree(folder / "collections")
        status = run(names, folder, workers)
        print("=== summary")
        passed, failed = summarize(folder / "out")
        if reports:
            for report in (folder / "out").glob("*.xml"):
                shutil.copy(report, reports)
    print(f"{time.monotonic() - started:.0f} s", flush=True)
    return passed, failed or int(status != 0)


def main() -> int:
    """Run the jobs of the command line; return 0 if all passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["all"], help="jobs or groups, else all")
    # one more than processors: jobs wait for processes and timeouts a third of their time
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--reports", type=Path, help="folder to keep the reports of pytest in")
    options = parser.parse_args()
    if importlib.util.find_spec("pytest") is None:
        raise SystemExit("The tools of the tests are not installed here: run `tools/setup test`.")
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    if options.reports:
        options.reports.mkdir(parents=True, exist_ok=True)
    everything = options.names == ["all"]
    names = ["test"] if everything else options.names
    passed, failed = check(names, options.workers, options.reports)
    if everything and failed:
        print("The other jobs did not run, because jobs of `make test` failed.")
    elif everything:
        subprocess.run([tree.ROOT / "tools" / "setup", "dev"], check=True)
        more, failed = check(["rest"], options.workers, options.reports)
        passed += more
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
