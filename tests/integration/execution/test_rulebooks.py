# SPDX-License-Identifier: GPL-3.0-or-later
"""The rulebooks, run by ansible-rulebook: a webhook that is signed starts a playbook, others do not."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tools import debian

Fresh = Callable[[str], Sandbox]

SECRET = "webhook-secret-1234567890"
SECONDS = 240
RULEBOOKS = Path(__file__).resolve().parents[3] / "extensions/eda/rulebooks"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Rulebook:
    """A running rulebook; what it prints is read as far as is waited for."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines = process.stdout
        self.url = f"http://127.0.0.1:{port}/"
        self.output = ""

    def wait_for(self, text: str) -> None:
        for line in self._lines:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"'{text}' was not printed:\n{self.output}")

    def post(self, payload: Any, headers: Mapping[str, str]) -> int:
        body = json.dumps(payload)
        with requests.Session() as session:
            session.trust_env = False
            return session.post(self.url, data=body, headers=headers, timeout=30).status_code


@contextmanager
def running(
    name: str, folder: Path, sandbox: Sandbox, hosts: Mapping[str, Any], **variables: Any
) -> Iterator[Rulebook]:
    """A rulebook that listens; `hosts` are variables of the inventory."""
    port = _free_port()
    inventory = {"all": {"hosts": {"localhost": {"ansible_connection": "local", **hosts}}}}
    (folder / "hosts.json").write_text(json.dumps(inventory), encoding="utf-8")
    given = {"eda_host": "127.0.0.1", "eda_port": port, **variables}
    (folder / "vars.json").write_text(json.dumps(given), encoding="utf-8")
    services = {
        f"TOOLCHAIN_{service.upper()}_{option.upper()}": value
        for service, login in connections.LOGINS.items()
        for option, value in {"url": sandbox.urls[service], **login}.items()
    }
    base = playbook.environment(folder)
    del base["ANSIBLE_CALLBACKS_ENABLED"]
    programs = Path(sys.executable).parent
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    rulebook = ("--rulebook", f"delivery.toolchain.{name}", "-i", "hosts.json", "-v")
    process = subprocess.Popen(
        [str(programs / "ansible-rulebook"), *rulebook, "--vars", "vars.json"],
        cwd=folder,
        env={**base, **debian.environment(), **services, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Reading its output would wait for ever where it hangs.
    watch = threading.Timer(SECONDS, process.kill)
    watch.start()
    try:
        yield Rulebook(process, port)
    finally:
        watch.cancel()
        process.terminate()
        process.communicate(timeout=60)


def _signed(payload: Any, header: str) -> dict[str, str]:
    digest = hmac.new(SECRET.encode(), json.dumps(payload).encode(), hashlib.sha256).hexdigest()
    return {header: f"sha256={digest}"}


def test_a_build_that_ended_well_is_promoted(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "eda_token": SECRET,
        "eda_job": "delivery/agent",
        "eda_build_name": "agent",
        "eda_status": "tried",
        "eda_target_repo": "generic-release-local",
    }
    build = {"number": 12, "phase": "FINALIZED", "status": "SUCCESS"}
    payload = {"name": "agent", "url": "job/delivery/job/agent/", "build": build}
    login = {"Authorization": f"Bearer {SECRET}"}
    with running("build_ended", tmp_path, sandbox, {}, **variables) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 401
        assert rulebook.post(payload, {"Authorization": "Bearer wrong"}) == 401
        assert rulebook.post({**payload, "build": {**build, "status": "FAILURE"}}, login) == 200
        assert rulebook.post(payload, login) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("localhost")
    assert "failed=0" in rulebook.output
    assert rulebook.output.count("PLAY [Release]") == 1
    (promotion,) = sandbox.requests("repo", writes=True)
    assert promotion["path"].endswith("/promote/agent/12")


def test_the_notes_of_a_released_version_are_published(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "eda_secret": SECRET,
        "eda_project": "REL",
        "eda_space": "REL",
        "eda_parent_id": "1003",
    }
    payload = {"webhookEvent": "jira:version_released", "version": {"name": "1.0.0"}}
    other = {**payload, "version": {"name": '1.0.0" OR project = "OPS'}}
    with running("version_released", tmp_path, sandbox, {}, **variables) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 400
        assert rulebook.post(payload, _signed(other, "X-Hub-Signature")) == 401
        assert rulebook.post(other, _signed(other, "X-Hub-Signature")) == 200
        assert rulebook.post(payload, _signed(payload, "X-Hub-Signature")) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("localhost")
    assert "failed=0" in rulebook.output
    assert rulebook.output.count("PLAY [Release]") == 1
    assert len(sandbox.requests("wiki", writes=True)) == 1
    assert [each for each in sandbox.requests() if "OPS" in json.dumps(each)] == []


def test_a_deletion_has_drift_looked_for(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    hosts = {"repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}]}
    data = {"repo_key": "generic-release-local", "path": "app/1.0/app.zip"}
    payload = {"domain": "artifact", "event_type": "deleted", "data": data}
    header = "X-JFrog-Event-Auth"
    with running("repository_changed", tmp_path, sandbox, hosts, eda_secret=SECRET) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 400
        deployed = {**payload, "event_type": "deployed"}
        assert rulebook.post(deployed, _signed(deployed, header)) == 200
        assert rulebook.post(payload, _signed(payload, header)) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("localhost")
    assert "failed=0" in rulebook.output
    assert rulebook.output.count("PLAY [Drift]") == 1
    assert sandbox.requests("repo") != []
    assert sandbox.requests(writes=True) == []
    assert SECRET not in rulebook.output


def test_every_rulebook_is_run_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert {path.stem for path in RULEBOOKS.glob("*.yml")} == {
        name for name in ("build_ended", "version_released", "repository_changed") if name in text
    }
