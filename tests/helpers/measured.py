# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the processor time of each test, and find the files of the checkout that its plays run."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """Measures the tests of a process, one after the other. Both measures are properties of the
    test in the report `--junitxml`, which `tools/times.py` reads.
    """

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="played-")
        os.close(descriptor)
        self._played = Path(name)
        os.environ["PLAYED_FILES"] = name  # for callbacks/played.py
        self._before = processor_seconds()

    def properties(self) -> list[tuple[str, object]]:
        """Return the measures since the last call."""
        now = processor_seconds()
        found: list[tuple[str, object]] = [("processor", f"{max(now - self._before, 0):.2f}")]
        self._before = now
        if self._played.stat().st_size:
            paths = {_in_checkout(path) for path in self._played.read_text("utf-8").splitlines()}
            self._played.write_bytes(b"")
            if played := sorted(filter(None, paths)):
                found.append(("played", " ".join(played)))
        return found

    def close(self) -> None:
        del os.environ["PLAYED_FILES"]
        self._played.unlink()


def _in_checkout(path: str) -> str:
    """Return the file of the checkout that a path below a link or a copy names, or ""."""
    parts = Path(path).parts
    names = ("/".join(parts[start:]) for start in range(1, len(parts)))
    return next((name for name in names if "/" in name and (_ROOT / name).is_file()), "")


def processor_seconds() -> float:
    """Return the processor time of this process and its descendants.

    /proc has the time of descendants that still run. A process with many threads reads many files
    there, so that it does so only if it has descendants.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return sum(os.times()[:4])
    ticks, processes = 0, [str(os.getpid())]
    for process in processes:
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for thread in os.listdir(f"/proc/{process}/task"):
                children = Path(f"/proc/{process}/task/{thread}/children")
                processes += children.read_text("utf-8").split()
    return ticks / _TICKS
