# SPDX-License-Identifier: GPL-3.0-or-later
"""Let Ansible run the tasks of a play on a single host in the process of the play, without workers.

More than a third of the processor time of a task is that of the fork: both processes copy all memory
that they write to. Each task finds the process as a worker would, because the state that tasks leave
is removed: the environment, the secrets to mask, and what functions remember, such as connections.
A play on several hosts, unless it has a single fork, and a task with a time limit still have workers.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from unittest import mock

from ansible import context
from ansible.executor.process.worker import WorkerProcess
from ansible.plugins import strategy
from ansible.utils.display import Display

_PLUGINS = "ansible_collections.delivery.toolchain.plugins"
#: Their functions remember what a task did.
_REMEMBERING = ("module_utils._lib.core.http.connections", "plugin_utils._lib.in_process")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _TaskHere(WorkerProcess):
    """A worker that runs in this process, with copies of what a worker changes."""

    def __init__(self, **given: Any) -> None:
        self._given_host = given["host"]
        task = copy.copy(given["task"])
        values = vars(task).items()
        vars(task).update(
            {name: copy.copy(value) for name, value in values if isinstance(value, (dict, list))}
        )
        super().__init__(**{**given, "task": task, "task_vars": dict(given["task_vars"])})

    def start(self) -> None:
        host = self._given_host
        before = host.vars, host.groups
        with _as_in_a_worker():
            self.run()
        host.vars, host.groups = before

    def _detach(self) -> None:
        """Keep the output of the play."""


def use() -> None:
    """Let this process run the tasks of its plays. Releases before 2.19 keep their workers."""
    if hasattr(WorkerProcess, "_detach"):
        for stream in (sys.stdout, sys.stderr):
            # Ansible asks a worker what it has written without `Display`
            vars(stream)["getvalue"] = str
        worker = functools.partial(_worker, strategy.WorkerProcess)
        mock.patch.object(strategy, "WorkerProcess", worker).start()
        mock.patch.object(Display, "set_queue", _set_queue_of(Display.set_queue)).start()
        mock.patch.object(contextlib, "redirect_stdout", redirect_stdout).start()


class _OfThread:
    """A stream for the output of this thread. What other threads write is for another stream."""

    def __init__(self, own: TextIO, others: TextIO) -> None:
        self._own, self._others, self._thread = own, others, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        is_own = threading.get_ident() == self._thread
        return getattr(self._own if is_own else self._others, name)


@contextmanager
def redirect_stdout(target: TextIO) -> Iterator[TextIO]:
    """Redirect the output of this thread: a thread of Ansible displays results of a loop meanwhile."""
    before = sys.stdout
    vars(sys)["stdout"] = _OfThread(target, before)
    try:
        yield target
    finally:
        sys.stdout = before


def _set_queue_of(set_queue: Callable[..., None]) -> Callable[..., None]:
    """Return a function for workers that does nothing in the process of the play."""

    def set_in_fork(display: Display, queue: Any) -> None:
        if multiprocessing.parent_process() is not None:
            set_queue(display, queue)

    return set_in_fork


def _worker(forked: Callable[..., WorkerProcess], **given: Any) -> WorkerProcess:
    hosts = given["task_vars"]["ansible_play_hosts_all"]
    takes_turns = len(hosts) == 1 or context.CLIARGS["forks"] == 1
    return (_TaskHere if takes_turns and not given["task"].timeout else forked)(**given)


@contextmanager
def _as_in_a_worker() -> Iterator[None]:
    """Remove the state that a task leaves in this process."""
    # Ansible finds the collection only after the start of the process
    hidden = importlib.import_module(f"{_PLUGINS}.module_utils._lib.core.secret").hidden
    folder, secrets = os.getcwd(), dict(vars(hidden))
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    with mock.patch.dict(os.environ):
        yield
    os.chdir(folder)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    vars(hidden).update(secrets)
    for name in _REMEMBERING:
        for value in vars(importlib.import_module(f"{_PLUGINS}.{name}")).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
