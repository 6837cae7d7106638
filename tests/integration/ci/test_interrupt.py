# SPDX-License-Identifier: GPL-3.0-or-later
"""Test what ends ansible-playbook while a task waits for a build: the message, and the builds that
continue.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible_runner
import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
_SECONDS = 120


def _ended(
    sandbox: Sandbox,
    folder: Path,
    options: dict[str, Any],
    end: Callable[[int], None] | None,
    **keywords: Any,
) -> tuple[int, str]:
    """Run builds in a loop, and end the run when the first build runs. Return exit code and output.

    :param end: ends the process with an id; `None` waits for the run to end
    :param keywords: keywords of the task
    """
    path, environment = _prepared(sandbox, folder, options, keywords)
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "ansible-playbook"), str(path)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + _SECONDS
        while not _is_watched(sandbox) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        if end is not None:
            end(process.pid)
        # returns when every process has closed the pipe, also the workers
        output, _errors = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output


def _prepared(
    sandbox: Sandbox, folder: Path, options: dict[str, Any], keywords: dict[str, Any]
) -> tuple[Path, dict[str, str]]:
    """Return a playbook that runs builds in a loop, and the environment for it."""
    arguments = {"job": "{{ item }}", "poll_interval": 0.2, **options}
    keywords = {"loop": ["slow", "no-parameters"], **keywords}
    task = playbook.task("ci_job_build", arguments, "Build", **keywords)
    play = playbook.play([task], module_defaults=connections.module_defaults(sandbox.urls))
    path = folder / "project" / "playbook.json"
    path.parent.mkdir()
    path.write_text(json.dumps([play]), encoding="utf-8")
    environment = playbook.environment(folder)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    return path, environment


def _press_ctrl_c(process: int) -> None:
    # signal the process group like a terminal does; the workers are not in the group
    os.killpg(process, signal.SIGINT)


def _is_watched(sandbox: Sandbox) -> bool:
    checks = [
        request for request in sandbox.requests("ci") if request["path"] == "/job/slow/1/api/json"
    ]
    return len(checks) > 1


def _build(sandbox: Sandbox) -> dict[str, Any]:
    login = connections.LOGINS["ci"]
    response = requests.get(
        f"{sandbox.urls['ci']}/job/slow/1/api/json",
        auth=(login["username"], login["password"]),
        timeout=10,
    )
    shown: dict[str, Any] = response.json()
    return shown


@pytest.mark.parametrize("stop", [False, True])
def test_interrupt_reports_the_running_build_or_stops_it(
    fresh: Fresh, tmp_path: Path, stop: bool
) -> None:
    sandbox = fresh("real")
    code, output = _ended(sandbox, tmp_path, {"stop_on_timeout": stop}, _press_ctrl_c)
    assert code != 0
    url = f"{sandbox.urls['ci']}/job/slow/1/"
    message = f"build #1 was asked to stop ({url})" if stop else f"build #1 is running ({url})"
    (line,) = [line for line in output.splitlines() if line.startswith("interrupted; ")]
    assert message in line, output
    assert _build(sandbox)["result"] == ("ABORTED" if stop else None)
    # the next item of the loop does not start
    assert _posts(sandbox) == ["/job/slow/build", *(["/job/slow/1/stop"] if stop else [])]


@pytest.mark.parametrize(("stop", "in_process"), [(False, True), (True, True), (True, False)])
def test_worker_ends_with_its_parent(
    fresh: Fresh, tmp_path: Path, stop: bool, in_process: bool
) -> None:
    """Verify that a killed run leaves no process, no open pipe, and no build that it must stop."""
    workers: list[Path] = []

    def add_children(process: str) -> None:
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            workers.append(Path("/proc", child))
            add_children(child)

    def kill(process: int) -> None:
        add_children(str(process))
        os.kill(process, signal.SIGKILL)

    sandbox = fresh("real")
    variables = {"toolchain_in_process": in_process}
    code, _output = _ended(sandbox, tmp_path, {"stop_on_timeout": stop}, kill, vars=variables)
    assert code == -signal.SIGKILL
    assert workers
    deadline = time.monotonic() + _SECONDS
    while any(map(_runs, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert _posts(sandbox) == ["/job/slow/build", *(["/job/slow/1/stop"] if stop else [])]


def _runs(process: Path) -> bool:
    """Return whether a process runs. One that nobody has waited for remains as a zombie."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_time_limit_of_the_task_stops_the_build(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    options = {"stop_on_timeout": True}
    code, output = _ended(sandbox, tmp_path, options, None, loop=["slow"], timeout=15)
    assert "build #1 was asked to stop" in output, output
    assert _posts(sandbox) == ["/job/slow/build", "/job/slow/1/stop"]
    assert (code, _build(sandbox)["result"]) == (0, "ABORTED")  # the task has ignore_errors


def test_cancelled_job_stops_the_build(fresh: Fresh, tmp_path: Path) -> None:
    """Verify it with the program by which AWX runs and cancels jobs."""
    sandbox = fresh("real")
    path, environment = _prepared(sandbox, tmp_path, {"stop_on_timeout": True}, {})
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    job = ansible_runner.run(
        private_data_dir=str(tmp_path),
        playbook=path.name,
        envvars=environment,
        quiet=True,
        cancel_callback=lambda: _is_watched(sandbox),
    )
    assert job.status == "canceled"
    deadline = time.monotonic() + _SECONDS
    while _posts(sandbox) != ["/job/slow/build", "/job/slow/1/stop"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _posts(sandbox: Sandbox) -> list[str]:
    return [write["path"] for write in sandbox.requests("ci", writes=True)]
