# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks of the project side by side and add up what they say.

    python -m tools.check              everything
    python -m tools.check static       a group: static, tests
    python -m tools.check unit ruff    single jobs, by name

All jobs work on one copy of the checkout in a temporary folder, so that editing goes on
undisturbed and nothing is left behind. A job's output is printed when it ends. The last line is
the sum: every test counts, and every other job counts as one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools import tree

# Far above what any job needs, so that only one that hangs is ended by it.
JOB_SECONDS = 1200
# Settings of the caller that would change what the collection, or a tool, does.
FOREIGN_PREFIXES = ("ANSIBLE_", "KLOCWORK_", "MOLECULE_", "PYTEST_", "TOOLCHAIN_")
PLUGINS = str(tree.COLLECTION / "plugins")


@dataclass(frozen=True)
class Job:
    """One command; `folder` is where it runs, below the collections path.

    `own_home` keeps what a tool leaves in, or finds in, the home folder away from the real one.
    """

    name: str
    command: tuple[str, ...]
    group: str = "static"
    folder: Path = tree.COLLECTION
    own_home: bool = True


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its counts, wall time in seconds and output."""

    job: Job
    passed: int
    failed: int
    seconds: float
    output: str


def _pytest(name: str) -> Job:
    return Job(name, ("pytest", f"tests/{name}", "--junitxml", "{report}"), group="tests")


# The longest come first: what is short fills the gaps at the end.
JOBS = (
    _pytest("integration"),
    _pytest("contract"),
    _pytest("faults"),
    _pytest("unit"),
    Job(
        "molecule",
        ("molecule", "--base-config", ".config/molecule/config.yml", "test", "--all"),
        group="tests",
    ),
    # It makes a home of its own, with the settings of pip from the real one.
    Job("sanity", ("python", "-m", "tools.sanity"), own_home=False),
    *(
        # They look for interpreters, and install, as the user does.
        Job(
            f"core-{pair}",
            ("python", "-m", "tools.matrix", "--brief", pair),
            group="tests",
            own_home=False,
        )
        for pair in ("oldest", "newest")
    ),
    Job("galaxy-importer", ("python", "-m", "tools.importer")),
    Job("benchmarks", ("python", "-m", "tests.benchmarks", "--smallest"), group="tests"),
    Job("ansible-lint", ("ansible-lint", "--offline", "--config-file", ".ansible-lint")),
    Job(
        "antsibull-docs",
        (
            *("antsibull-docs", "lint-collection-docs", "--plugin-docs"),
            *("--check-extra-docs-refs", "--validate-collection-refs", "self", "."),
        ),
    ),
    Job(
        "mypy-plugins",
        (
            *("mypy", "--config-file", str(tree.COLLECTION / "pyproject.toml")),
            # the oldest Python that modules run on
            *("--python-version", "3.10", PLUGINS),
        ),
        folder=Path(),
    ),
    # What it says of the plugins that the tests import is for the job above.
    Job("mypy", ("mypy", "--follow-imports", "silent", "sandbox", "tools", "tests", "conftest.py")),
    Job("docs", ("python", "-m", "tools.docs", "{report}.d")),
    Job("licences", ("python", "-m", "tools.licences")),
    Job("antsibull-changelog", ("antsibull-changelog", "lint")),
    Job("yamllint", ("yamllint", "--strict", ".")),
    Job("shellcheck", ("shellcheck", "tools/setup", ".ci/run")),
    Job("ruff", ("ruff", "check", ".")),
    Job("ruff-format", ("ruff", "format", "--check", ".")),
)


@dataclass
class Runner:
    """Runs jobs on the copy in `folder/collections`; `stop` ends all that is running.

    `programs` is the folder of the environment that they run in, `variables` are added to theirs.
    A job that takes longer than `limit` seconds is ended.
    """

    folder: Path
    programs: Path = Path(sys.executable).parent
    variables: Mapping[str, str] = field(default_factory=dict)
    limit: int = JOB_SECONDS
    stopped: bool = False
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, job: Job) -> Outcome:
        """Run one job to its end, or to the limit of time."""
        started = time.monotonic()
        log = self.folder / f"{job.name}.log"
        report = self.folder / f"{job.name}.xml"
        with log.open("wb") as stream:
            try:
                code = self._execute(job, report, stream.fileno())
            except OSError as error:
                stream.write(f"{job.command[0]}: {error}\n".encode())
                code = 127
        passed, failed = _counts(code, report)
        seconds = time.monotonic() - started
        return Outcome(job, passed, failed, seconds, log.read_text(errors="replace"))

    def stop(self) -> None:
        """End every running job with all that it started, and start no other."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                _end(process)

    def _execute(self, job: Job, report: Path, output: int) -> int:
        command = [part.format(report=report) for part in job.command]
        with self.lock:
            if self.stopped:
                return 1
            process = subprocess.Popen(
                command,
                cwd=self.folder / "collections" / job.folder,
                env=self._environment(job),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.running.add(process)
        try:
            return process.wait(self.limit)
        except subprocess.TimeoutExpired:
            os.write(output, f"\nended after {self.limit} seconds\n".encode())
            return 1
        finally:
            # Also after a good end: a job must not leave a server behind.
            _end(process)
            with self.lock:
                self.running.discard(process)

    def _environment(self, job: Job) -> dict[str, str]:
        own = self.folder / "home" / job.name
        (own / "tmp").mkdir(parents=True, exist_ok=True)
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN_PREFIXES)
        }
        if job.own_home:
            variables["HOME"] = str(own)
        return {
            **variables,
            **tree.environment(self.folder / "collections"),
            "ANSIBLE_HOME": str(own / "ansible"),
            "LC_ALL": "C.UTF-8",
            "MYPYPATH": str(self.folder / "collections"),
            "MYPY_CACHE_DIR": str(own / "mypy"),
            "NO_COLOR": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "PATH": os.pathsep.join([str(self.programs), os.environ["PATH"]]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(own / "tmp"),
            "XDG_CACHE_HOME": str(own / "cache"),
            "no_proxy": "127.0.0.1,localhost",
            **self.variables,
        }


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _counts(code: int, report: Path) -> tuple[int, int]:
    """Passed and failed tests of a pytest report; without a report the job itself counts."""
    if not report.exists():
        return int(code == 0), int(code != 0)
    tests = failed = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        tests += int(suite.get("tests", 0)) - int(suite.get("skipped", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    if code != 0:
        failed = max(failed, 1)
    return max(tests - failed, 0), failed


def _chosen(names: Sequence[str]) -> list[Job]:
    known = {job.name for job in JOBS} | {job.group for job in JOBS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(
            f"No such job: {', '.join(unknown)}. There are {', '.join(sorted(known))}."
        )
    return [job for job in JOBS if not names or job.name in names or job.group in names]


def print_outcome(outcome: Outcome) -> None:
    """Show how a job ended and what it said."""
    verdict = "FAILED" if outcome.failed else "passed"
    print(f"=== {outcome.job.name}: {verdict} in {outcome.seconds:.0f} s", flush=True)
    print(outcome.output.rstrip(), flush=True)
    print(flush=True)


def _print_summary(outcomes: Sequence[Outcome], seconds: float) -> None:
    print("=== summary")
    for outcome in sorted(outcomes, key=lambda each: -each.seconds):
        verdict = "FAILED" if outcome.failed else "passed"
        counts = f"{outcome.passed:5d} passed {outcome.failed:4d} failed"
        print(f"{outcome.job.name:20s} {verdict} {outcome.seconds:5.0f} s {counts}")
    print(f"{len(outcomes)} jobs in {seconds:.0f} s")
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{passed} passed, {failed} failed", flush=True)


def _run_all(runner: Runner, jobs: Sequence[Job], workers: int) -> list[Outcome]:
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(runner.run, job) for job in jobs]
            for future in concurrent.futures.as_completed(futures):
                outcomes.append(future.result())
                print_outcome(outcomes[-1])
        finally:
            runner.stop()
    return outcomes


def end_when_interrupted() -> None:
    """End as by `sys.exit` on what asks a program to end, also where a shell has it ignore that."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, _frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Run what the command line names; the exit status is 0 when all of it passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="jobs or groups; without any: everything")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    jobs = _chosen(options.names)
    started = time.monotonic()
    end_when_interrupted()
    with tempfile.TemporaryDirectory(prefix="toolchain-check-") as folder:
        tree.copy_tree(Path(folder) / "collections")
        outcomes = _run_all(Runner(Path(folder)), jobs, options.workers)
    _print_summary(outcomes, time.monotonic() - started)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
