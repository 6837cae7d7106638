# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker whose parent has been killed: it reports, and starts no further item of its loop.

The worker has the signal handlers of ansible-core 2.16 to 2.18. `test_interrupt.py` kills real runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARENT = """
import multiprocessing, os, signal, sys, time
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.waiting import (
    interruptible,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import in_process

def work(ready, parent):
    if sys.argv[1] == "before":
        ready.set()
        while os.getppid() == parent:
            time.sleep(0.01)
    for item in "ab":
        in_process._end_with_parent(os.getpid())
        with interruptible():
            try:
                ready.set()
                signal.pause()
            except KeyboardInterrupt:
                print(item, "is interrupted", flush=True)

context = multiprocessing.get_context("fork")
ready = context.Event()
context.Process(target=work, args=(ready, os.getpid())).start()
ready.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", ["before", "while"])
def test_worker_of_a_killed_parent_starts_no_further_item(killed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARENT, killed],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
        stdout=subprocess.PIPE,  # until the worker ends
        text=True,
        timeout=120,
        check=False,
    )
    # a worker that is told before it waits has nothing to report
    assert done.stdout.removeprefix("a is interrupted\n") == ""
