# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a job of `tools/jobs.mk`: print its start and end, and its output if it fails.

    python -m tools.job unit /tmp/out pytest tests/unit

The folder gets `unit.log` with the output, and `unit.status` with the exit status, the seconds, and
the seconds of processor time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

#: Far above what any job needs.
_SECONDS = 60 * 60


def main(name: str, out: str, *command: str) -> int:
    """Return the exit status of the command."""
    log = Path(out, f"{name}.log")
    print(f"=== {name}: started", flush=True)
    started = time.monotonic()
    with log.open("wb") as file:
        # the command stays in the process group that `tools/check.py` ends
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            status = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    seconds = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime
    Path(out, f"{name}.status").write_text(f"{status} {seconds:.0f} {processor:.0f}\n", "utf-8")
    if status:
        print(log.read_text(encoding="utf-8", errors="replace"), end="")
    verdict = f"FAILED with status {status}" if status else "passed"
    print(f"=== {name}: {verdict} after {seconds:.0f} s ({processor:.0f} s of processor time)")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
