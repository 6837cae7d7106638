# SPDX-License-Identifier: GPL-3.0-or-later
"""Third-party programs that run during a test."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_START_SECONDS = 90.0
_LOOK_SECONDS = 0.05

Found = TypeVar("Found")


@dataclass(frozen=True)
class Program:
    """A process, and the file with its output."""

    process: subprocess.Popen[bytes]
    log: Path

    def until(self, look: Callable[[], Found | None]) -> Found:
        """Call `look` until its result is not None, and return the result."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            found = look()
            if found is not None:
                return found
            time.sleep(_LOOK_SECONDS)
        text = self.log.read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"{self.process.args!r} is not ready: {text[-4000:]}")

    def until_listening(self, port: int) -> None:
        def listening() -> bool | None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return None
            return True

        self.until(listening)


@contextmanager
def started(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]
) -> Iterator[Program]:
    """Run a program in `folder`, and terminate it at the end of the block."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=environment,
        )
    try:
        yield Program(process, log)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def kill(process: int) -> None:
    """Kill a process and all processes below it, by their ids. They may have their own groups."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(after_name[1])
    found = [process]
    for number in found:
        found += [child for child, parent in parents.items() if parent == number]
    for number in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
