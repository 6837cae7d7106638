# SPDX-License-Identifier: GPL-3.0-or-later
"""Test Ctrl-C on ansible-playbook while a task waits for a build: the message, and the builds that
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

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
_SECONDS = 120


def _interrupted(sandbox: Sandbox, folder: Path, options: dict[str, Any]) -> tuple[int, str]:
    """Run builds in a loop, and press Ctrl-C when the first build runs. Return exit code and
    output.
    """
    arguments = {"job": "{{ item }}", "poll_interval": 0.2, **options}
    task = playbook.task("ci_job_build", arguments, "Build", loop=["slow", "no-parameters"])
    play = playbook.play([task], module_defaults=connections.module_defaults(sandbox.urls))
    path = folder / "playbook.json"
    path.write_text(json.dumps([play]), encoding="utf-8")
    environment = playbook.environment(folder)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
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
            time.sleep(0.05)
        # signal the process group like a terminal does; the workers are not in the group
        os.killpg(process.pid, signal.SIGINT)
        output, _errors = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output


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
    code, output = _interrupted(sandbox, tmp_path, {"stop_on_timeout": stop})
    assert code != 0
    url = f"{sandbox.urls['ci']}/job/slow/1/"
    message = f"build #1 was asked to stop ({url})" if stop else f"build #1 is running ({url})"
    (line,) = [line for line in output.splitlines() if line.startswith("interrupted; ")]
    assert message in line, output
    assert _build(sandbox)["result"] == ("ABORTED" if stop else None)
    # the next item of the loop does not start
    posts = [write["path"] for write in sandbox.requests("ci", writes=True)]
    assert posts == ["/job/slow/build", *(["/job/slow/1/stop"] if stop else [])]
