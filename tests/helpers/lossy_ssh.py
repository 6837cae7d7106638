# SPDX-License-Identifier: GPL-3.0-or-later
"""A program `ssh` that runs what it is told on this machine; the first worker that it starts is killed
in the middle of its work. What all processes were called meanwhile is kept beside it.

    lossy_ssh.install(folder, b"a text in the stream upon which it is killed")
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_PROGRAM = "#!{python}\nfrom tests.helpers import lossy_ssh\nlossy_ssh.main()\n"
_SIGN = "sign"
_CALLED = "called"


def install(folder: Path, sign: bytes) -> dict[str, str]:
    """Put the program into a folder; the environment that finds it."""
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(_PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    (folder / _SIGN).write_bytes(sign)
    root = str(Path(__file__).resolve().parents[2])
    paths = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {"PATH": os.pathsep.join(paths), "PYTHONPATH": root}


def called(folder: Path) -> str:
    """The command lines that there were when the worker was killed."""
    return (folder / _CALLED).read_bytes().decode("utf-8", "replace").replace("\0", " ")


def folders(folder: Path) -> list[Path]:
    """The folders that slices had on workers, in their order."""
    return [Path(line) for line in (folder / "folders").read_text("utf-8").split()]


def main() -> None:
    own, script = Path(sys.argv[0]).parent, sys.argv[-1]
    first = not (own / "folders").exists()
    there = script.split()[-1]
    with (own / "folders").open("a", encoding="utf-8") as log:
        log.write(f"{there}\n")
    sign = (own / _SIGN).read_bytes() if first else None
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        for line in shell.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if sign is not None and sign in line:
                (own / _CALLED).write_bytes(b"\n".join(name for _process, name in _processes()))
                _kill(there.encode())
                sign = None
    sys.exit(shell.wait())


def _kill(there: bytes) -> None:
    """Kill the worker, which has no time to clean up."""
    (worker,) = (
        pid
        for pid, name in _processes()
        if b"\0worker\0" in name and there in name and b"worker.sh" not in name
    )
    os.kill(worker, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
