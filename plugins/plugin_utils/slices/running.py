# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices in a queue, workers that take them from it, and what they bring back.

A slice that does not come back is run once more, by another worker where there is one. Where it
cannot be known whether it still runs, only one that writes nothing is.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import shorten
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.writing import OBJECTS
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.packing import (
    RUN,
    Package,
    Slice,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.units import Description
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.workers import (
    SlicesError,
    Worker,
)

#: Of what a worker tells on its way nothing is kept here: least of all its environment.
_QUIET = ("--omit-event-data", "--omit-env-files")
#: So long nothing is heard of a worker that is gone, in seconds: a sign of life comes every 20.
_SILENCE = 120.0
_BLOCK = 1 << 16
#: How often a slice is tried.
_TRIES = 2
#: A worker that lost so many slices one after the other gets no more.
_MOST_LOST = 2


@dataclass(frozen=True)
class SlicedRun:
    """What all slices of a run have in common.

    :param playbook: C(drift) or C(enforce)
    :param described: what is wanted on each host
    :param arguments: those of C(ansible-playbook)
    :param writes: whether it may write
    :param start: the folder in which relative names of files begin
    """

    playbook: str
    described: Mapping[str, Description]
    arguments: Sequence[str]
    writes: bool
    start: Path


@dataclass
class Outcome:
    """What became of a slice; C(lost) says why nothing came back."""

    part: Slice
    worker: str = ""
    objects: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lost: str = ""


class _Ended(Exception):
    """The whole run is being ended."""


@dataclass
class Runner:
    """Runs slices on workers."""

    job: SlicedRun
    workers: Sequence[Worker]
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._waiting: list[tuple[Slice, list[Worker]]] = []
        self._running = 0
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._messages: queue.Queue[str | None] = queue.Queue()
        self._outcomes: dict[int, Outcome] = {}
        self._lost: dict[int, str] = {}
        self._problems: list[Exception] = []

    def run(self, parts: Sequence[Slice]) -> list[Outcome]:
        """What became of each slice, in their order."""
        self._waiting = [(part, []) for part in parts]
        with tempfile.TemporaryDirectory(prefix="toolchain-slices-") as folder, _ending(self.stop):
            threads = [
                threading.Thread(target=self._work, args=(worker, Path(folder)), daemon=True)
                for worker in self.workers
            ]
            for thread in threads:
                thread.start()
            try:
                for _number in threads:
                    for message in iter(self._messages.get, None):
                        self.tell(message)
            finally:
                self.stop()
                for thread in threads:
                    thread.join()
        if self._problems:
            raise self._problems[0]
        for part, _tried in self._waiting:
            left = "no worker was left that could run it"
            before = self._lost.get(part.number)
            lost = f"{before}; {left}" if before else left
            self._outcomes[part.number] = Outcome(part, lost=lost)
        return [self._outcomes[part.number] for part in parts]

    def stop(self) -> None:
        """End everything that still runs."""
        with self._changed:
            self._stopped = True
            for process in self._processes:
                _terminate(process)
            self._changed.notify_all()

    def _work(self, worker: Worker, folder: Path) -> None:
        """What a worker does: one slice after the other."""
        lost = 0
        try:
            while lost < _MOST_LOST:
                taken = self._take(worker)
                if taken is None:
                    break
                part, tried = taken
                outcome, again = self._attempt(worker, part, folder)
                lost = lost + 1 if outcome.lost else 0
                self._back(part, [*tried, worker], outcome, again=again)
        except _Ended:
            pass  # whoever ended the run knows why
        except Exception as error:  # noqa: BLE001 (raised where the run was begun)
            self._problems.append(error)
            self.stop()
        finally:
            self._messages.put(None)

    def _take(self, worker: Worker) -> tuple[Slice, list[Worker]] | None:
        """The next slice: one that this worker has not lost, as long as there is another worker."""
        with self._changed:
            while True:
                if self._stopped:
                    raise _Ended
                for entry in self._waiting:
                    if worker not in entry[1] or len(set(self.workers)) == 1:
                        self._waiting.remove(entry)
                        self._running += 1
                        return entry
                if not self._running:
                    return None
                self._changed.wait()

    def _back(self, part: Slice, tried: list[Worker], outcome: Outcome, *, again: bool) -> None:
        with self._changed:
            self._running -= 1
            if outcome.lost and again and len(tried) < _TRIES:
                self._lost[part.number] = outcome.lost
                self._messages.put(f"slice {part.title} is run again: {outcome.lost}")
                self._waiting.append((part, tried))
            else:
                self._outcomes[part.number] = outcome
                told = outcome.lost or f"done by {outcome.worker}"
                self._messages.put(f"slice {part.title}: {told}")
            self._changed.notify_all()

    def _attempt(self, worker: Worker, part: Slice, folder: Path) -> tuple[Outcome, bool]:
        """Run a slice; what came back, and whether it may be run again where nothing did."""
        token = secrets.token_hex(16)
        there = f"/tmp/toolchain-slice-{token}"  # noqa: S108 (the worker refuses one that is there)
        package = Package(folder / token, f"{there}/data", self.job.start)
        package.folder.mkdir(mode=0o700)
        try:
            package.fill(part, self.job.described, self.job.arguments)
            self._messages.put(f"slice {part.title}: begun by {worker} ({_told(part)})")
            status, words = self._stream(worker, package.folder, there)
            results = package.folder / "artifacts" / RUN
            found = _read(results / OBJECTS)
            if found is not None:
                return Outcome(part, str(worker), found["objects"], found["warnings"]), False
            why = shorten(_reason(status, words, results))
        finally:
            shutil.rmtree(package.folder, ignore_errors=True)
        if self.job.writes and not worker.has_ended(status, words):
            why += "; whether it still runs there is not known, so it is not run again"
            return Outcome(part, str(worker), lost=f"{worker} brought nothing back: {why}"), False
        return Outcome(part, str(worker), lost=f"{worker} brought nothing back: {why}"), True

    def _stream(self, worker: Worker, folder: Path, there: str) -> tuple[int, str]:
        """C(transmit | worker | process); the status of the worker, and its last words."""
        program = str(Path(sys.executable).with_name("ansible-runner"))
        runner = program if Path(program).exists() else shutil.which("ansible-runner")
        if runner is None:
            raise SlicesError(
                "drift_slices needs ansible-runner, here and on the workers: pip install"
                " ansible-runner."
            )
        name = f"delivery.toolchain.{self.job.playbook}"
        common = {"env": worker.environment(), "stderr": subprocess.DEVNULL}
        with tempfile.TemporaryFile() as errors:
            sending = self._start(
                [runner, "transmit", str(folder), "-p", name, "--ident", RUN, *_QUIET],
                **{**common, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE},
            )
            working = self._start(
                worker.command(there),
                **{**common, "stdin": sending.stdout, "stdout": subprocess.PIPE, "stderr": errors},
            )
            taking = self._start(
                [runner, "process", str(folder), "--ident", RUN],
                **{**common, "stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL},
            )
            # only the next process of a pipe holds an end of it
            cast("IO[bytes]", sending.stdout).close()
            source, target = cast("IO[bytes]", working.stdout), cast("IO[bytes]", taking.stdin)
            heard = forward(source, target, _SILENCE)
            if not heard:
                _terminate(working)
            for process in (taking, working, sending):
                self._wait(process)
            errors.seek(0)
            words = errors.read().decode("utf-8", "replace")
            silent = f"nothing was heard of it for {_SILENCE:g} seconds"
            return working.returncode, words if heard else silent

    def _start(self, command: Sequence[str], **settings: Any) -> subprocess.Popen[bytes]:
        """A process in a group of its own, so that all that it starts can be ended with it."""
        with self._changed:
            if self._stopped:
                raise _Ended
            try:
                process = subprocess.Popen(command, start_new_session=True, **settings)  # noqa: S603
            except FileNotFoundError:
                process = None
            if process is not None:
                self._processes.add(process)
                return process
        raise SlicesError(f"A worker needs the program {command[0]}, which is not on this machine.")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with self._changed:
            self._processes.discard(process)


def forward(source: IO[bytes], target: IO[bytes], silence: float) -> bool:
    """Hand on a stream until it ends; false where nothing came for so many seconds."""
    with source, suppress(BrokenPipeError), target:
        while select.select([source], [], [], silence)[0]:
            data = os.read(source.fileno(), _BLOCK)
            if not data:
                return True
            target.write(data)
            target.flush()
        return False
    return True


def _terminate(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


@contextmanager
def _ending(stop: Callable[[], None]) -> Iterator[None]:
    """A signal that ends this process ends the slices before."""

    def ended(number: int, frame: Any) -> None:
        stop()
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, ended)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _read(file: Path) -> dict[str, Any] | None:
    """What a slice brought back; C(None) where it is not there, or not whole."""
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _reason(status: int, words: str, results: Path) -> str:
    """Why nothing came back: the last words of the playbook, or of the worker."""
    lines = []
    with suppress(OSError):
        lines = (results / "stdout").read_text("utf-8", "replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR!") or "[ERROR]" in line]
    last = [*words.strip().splitlines(), *errors[:1]][-1:]
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return ": ".join([f"its command {how}", *last])


def _told(part: Slice) -> str:
    hosts = part.hosts
    return ", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts"
