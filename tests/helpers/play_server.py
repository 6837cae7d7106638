# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `ansible-playbook` in forks of a process that has imported Ansible and the collection.

A fork runs the code of the program and saves the imports, which take up to half of the processor
time of a short play. `serve_plays.py` names what it saves, too. Python and Ansible read most of their settings during the start.
Therefore the process runs only plays with the settings that it was started with.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools import tree

_SETTINGS = ("ANSIBLE_", "LC_", "PYTHON")
_COLLECTIONS = "ANSIBLE_COLLECTIONS_PATH"
# Ansible reads these when it needs them, or `serve_plays.py` sets them for each play.
_OF_A_PLAY = (
    "ANSIBLE_ASYNC_DIR",
    "ANSIBLE_CALLBACKS_ENABLED",
    "ANSIBLE_HOME",
    "ANSIBLE_REMOTE_TEMP",
    "ANSIBLE_SHOW_CUSTOM_STATS",
    "ANSIBLE_STDOUT_CALLBACK",
)


class PlayServer:
    """A process that starts with its first play. `folder` is for its files."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = variables
        self._process: subprocess.Popen[str] | None = None

    def supports(self, folder: Path, variables: Mapping[str, str]) -> bool:
        """Return whether a play has the settings of this process, and runs alone."""
        return (
            _settings(variables) == _settings(self._variables)
            and not (folder / "ansible.cfg").exists()
            and threading.current_thread() is threading.main_thread()
        )

    def run(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: int
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of `ansible-playbook` in `folder`; return its exit code and output.

        :raises subprocess.TimeoutExpired: the command did not end in `seconds`
        :raises EOFError: the process of this server ended; the next command starts another one
        """
        output = self._folder / "output"
        play = {
            "command": command,
            "folder": str(folder),
            "variables": variables,
            "output": str(output),
            "seconds": seconds,
        }
        with contextlib.ExitStack() as if_interrupted:
            if_interrupted.callback(self.stop)
            pid = self._started(play)
            if_interrupted.callback(os.kill, pid, signal.SIGKILL)
            code = self._number()
            if_interrupted.pop_all()
        text = output.read_text(encoding="utf-8")
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(command, seconds, text)
        return subprocess.CompletedProcess(command, code, text)

    def stop(self) -> None:
        """End the process, if it runs: it reads the end of its input."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _started(self, play: Mapping[str, Any]) -> int:
        """Start a play; return its process ID."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.helpers.serve_plays"],
                cwd=self._folder,
                env=self._variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        print(json.dumps(play), file=self._process.stdin, flush=True)
        return self._number()

    def _number(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("The process that runs the plays ended. Its output says why.")
        return int(line)


def _settings(variables: Mapping[str, str]) -> dict[str, str]:
    found = {
        name: value
        for name, value in variables.items()
        if name.startswith(_SETTINGS) and name not in _OF_A_PLAY
    }
    # several paths may lead to the same collection
    if _COLLECTIONS in found:
        first, *others = found[_COLLECTIONS].split(os.pathsep)
        own = os.path.realpath(Path(first, tree.COLLECTION))
        found[_COLLECTIONS] = os.pathsep.join([own, *others])
    return found
