# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the last actions of a waiting task after Ctrl-C, and that its process ends then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.waiting import (
    interruptible,
)

ROOT = Path(__file__).resolve().parents[3]
#: A worker like the workers of Ansible: forked, a session leader, without a terminal, with
#: handlers.
WORKER = """
import multiprocessing, os, signal, sys, threading, time
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.waiting import (
    interruptible,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import progress_to

stderr = os.dup(2)

def heard(line):
    os.write(stderr, f"{line}\\n".encode())

def work(ready, number):
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(null, each)
    ended = lambda signum, frame: os._exit(7)
    signal.signal(signal.SIGINT, ended)
    signal.signal(signal.SIGTERM, ended)
    with progress_to(print, last=heard), interruptible() as say:
        try:
            ready.set()
            signal.pause()
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            say("build #7 goes on")
    os._exit(9)  # as the next item of a loop

context = multiprocessing.get_context("fork")
ready = context.Event()
worker = context.Process(target=work, args=(ready, 1))
worker.start()
ready.wait(60)
os.kill(worker.pid, getattr(signal, sys.argv[1]))
worker.join(60)
print("worker ended with", worker.exitcode)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_worker_reports_its_result_and_ends_by_the_previous_handler(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER, name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "worker ended with 7\n"
    assert done.stderr == "build #7 goes on\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_separate_process_reports_its_result(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    reported = []
    with interruptible() as say:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except KeyboardInterrupt:
            os.kill(os.getpid(), number)  # the second interrupt is ignored
            reported.append("interrupted")
            say("nobody hears it")
    assert reported == ["interrupted"]
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err == ""


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_thread_installs_no_handlers() -> None:
    done = []

    def work() -> None:
        with interruptible() as say:
            say("nothing")
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
