# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that a play server runs a play as the program `ansible-playbook` does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import playbook
from tests.helpers.play_server import PlayServer

_UNREACHABLE = {"url": "http://127.0.0.1:9", "token": "x", "retries": 0}
_TASKS: list[dict[str, Any]] = [
    {"ansible.builtin.debug": {"msg": "{{ lookup('env', 'HOME', 'ANSIBLE_HOME', 'EXTRA') }}"}},
    {"ansible.builtin.command": {"argv": ["pwd"]}},
    {"ansible.builtin.slurp": {"src": "playbook.json"}},
    playbook.task("repo_info", _UNREACHABLE, "In the worker"),
    playbook.task("repo_info", _UNREACHABLE, "In a process", vars={"toolchain_in_process": False}),
    {"ansible.builtin.fail": {"msg": "the end"}},
]


def _outcome(folder: Path) -> list[str]:
    """Return everything that a play leaves, without paths and times."""
    folder.mkdir()
    run = playbook.run(folder, [playbook.play(_TASKS)], variables={"EXTRA": "value"})
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    lines = [str(run.code), *run.output.splitlines(), *run.recorded.splitlines(), *files]
    names = "delta|end|start|seconds|processor|atime|mtime|ctime"
    times = rf'"({names})": ("[^"]*"|[\d.e-]+)|\d{{10,}}[\d.-]*'
    return [re.sub(times, "", line.replace(str(folder), "")) for line in lines]


@pytest.mark.first
def test_output_results_and_files_are_those_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = _outcome(tmp_path / "served")
    monkeypatch.setattr(PlayServer, "supports", lambda *_arguments: False)
    assert served == _outcome(tmp_path / "program")


def test_a_play_that_takes_too_long_ends(tmp_path: Path) -> None:
    wait = {"ansible.builtin.wait_for": {"timeout": 5}}
    with pytest.raises(subprocess.TimeoutExpired):
        playbook.run(tmp_path, [playbook.play([wait])], seconds=2)


def test_a_play_ends_with_the_tests(tmp_path: Path) -> None:
    parent = "PPid: {{ lookup('pipe', 'echo $PPID') }}"
    wait = f"echo {parent} > play; until test -e end; do sleep 0.1; done"

    def end() -> int:
        play = _play_in(tmp_path)
        os.kill(os.getpid(), signal.SIGINT)
        return play

    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(end)
        with pytest.raises(KeyboardInterrupt):
            playbook.run(tmp_path, [playbook.play([{"ansible.builtin.shell": wait}])])
    play = ending.result()
    _wait(lambda: not _status(play) or "State:\tZ" in _status(play))
    (tmp_path / "end").touch()
    assert playbook.run(tmp_path, [playbook.play(_TASKS[:1])]).code == 0


def test_server_that_ends_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nread line\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    variables = playbook.environment(tmp_path)
    with pytest.raises(EOFError):
        PlayServer(tmp_path, variables).run(["ansible-playbook"], tmp_path, variables, 60)


def _play_in(folder: Path) -> int:
    """Wait until a play has written the ID of its process; return it."""
    file = folder / "play"
    _wait(lambda: file.exists() and file.read_text(encoding="utf-8").endswith("\n"))
    return _parent(file.read_text(encoding="utf-8"))


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _status(pid: int) -> str:
    """Return the status of a process; empty if it does not exist."""
    try:
        return Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _parent(status: str) -> int:
    return int(status.split("PPid:")[1].split(maxsplit=1)[0])


def test_other_settings_and_simultaneous_plays_need_the_program(tmp_path: Path) -> None:
    variables = playbook.environment(tmp_path)
    server = PlayServer(tmp_path, variables)
    assert server.supports(tmp_path, {**variables, "ANSIBLE_HOME": "other", "OTHER": "value"})
    for changed in ({"ANSIBLE_NOCOLOR": "0"}, {"PYTHONPATH": "other"}):
        assert not server.supports(tmp_path, {**variables, **changed})
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(server.supports, tmp_path, variables).result()
    (tmp_path / "ansible.cfg").touch()
    assert not server.supports(tmp_path, variables)
