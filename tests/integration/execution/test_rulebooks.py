# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the rulebooks with ansible-rulebook: a signed webhook starts a playbook, other webhooks do
not.
"""

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
from tests.helpers import connections, installed, playbook

Fresh = Callable[[str], Sandbox]

SECRET = "webhook-secret-1234567890"
SECONDS = 240
RULEBOOKS = Path(__file__).resolve().parents[3] / "extensions/eda/rulebooks"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Rulebook:
    """A running rulebook. `wait_for` reads its output up to the expected string."""

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
    """Start a rulebook and wait for events; `hosts` are variables of the inventory."""
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
        env={**base, **installed.environment(), **services, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Kill a hanging process. Otherwise reading its output never ends.
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


def test_successful_build_is_promoted(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    variables = {
        "eda_token": SECRET,
        "eda_job": "delivery/agent",
        "eda_branch": "origin/main",
        "eda_build_name": "agent",
        "eda_status": "tried",
        "eda_target_repo": "generic-release-local",
    }
    build = {
        "number": 12,
        "phase": "FINALIZED",
        "status": "SUCCESS",
        "scm": {"branch": "origin/main"},
    }
    payload = {"name": "agent", "url": "job/delivery/job/agent/", "build": build}
    login = {"Authorization": f"Bearer {SECRET}"}
    with running("build_ended", tmp_path, sandbox, {}, **variables) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 401
        assert rulebook.post(payload, {"Authorization": "Bearer wrong"}) == 401
        assert rulebook.post({**payload, "build": {**build, "status": "FAILURE"}}, login) == 200
        for neighbour in (
            {**payload, "url": "job/other/job/agent/"},
            {**payload, "url": "job/delivery/job/agent/job/agent/"},
            {**payload, "build": {**build, "scm": {"branch": "origin/feature"}}},
        ):
            assert rulebook.post(neighbour, login) == 200
        assert rulebook.post(payload, login) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("localhost")
    assert "failed=0" in rulebook.output
    assert rulebook.output.count("PLAY [Release]") == 1
    (promotion,) = sandbox.requests("repo", writes=True)
    assert promotion["path"].endswith("/promote/agent/12")


NOTES = {
    "eda_secret": SECRET,
    "eda_project": "REL",
    "eda_space": "REL",
    "eda_parent_id": "1003",
}


def _released(sandbox: Sandbox, project: str, name: str) -> dict[str, Any]:
    """Return the tracker's event for a version. It has the id of the project like events of the
    tracker.
    """
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {connections.LOGINS['tracker']['token']}"
        listed = session.get(f"{sandbox.urls['tracker']}/rest/api/2/project", timeout=30).json()
    (number,) = [each["id"] for each in listed if each["key"] == project]
    version = {"id": "1", "name": name, "released": True, "projectId": int(number)}
    return {"webhookEvent": "jira:version_released", "version": version}


def test_notes_of_a_released_version_are_published(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    payload, other = _released(sandbox, "REL", "1.0.0"), _released(sandbox, "OPS", "1.0.0")
    forged = _released(sandbox, "REL", '1.0.0" OR project = "OPS')
    # the rulebook makes text of it, in a regular expression
    variables = {**NOTES, "eda_project_id": payload["version"]["projectId"]}
    with running("version_released", tmp_path, sandbox, {}, **variables) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 400
        assert rulebook.post(payload, _signed(forged, "X-Hub-Signature")) == 401
        assert rulebook.post(forged, _signed(forged, "X-Hub-Signature")) == 200
        assert rulebook.post(other, _signed(other, "X-Hub-Signature")) == 200
        assert rulebook.post(payload, _signed(payload, "X-Hub-Signature")) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("localhost")
    assert "failed=0" in rulebook.output
    assert rulebook.output.count("PLAY [Release]") == 1
    # the page, and its mark
    assert len(sandbox.requests("wiki", writes=True)) == 2
    assert [request for request in sandbox.requests() if "OPS" in json.dumps(request)] == []


def test_version_is_resolved_from_the_project_key(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    with running("version_released", tmp_path, sandbox, {}, **NOTES) as rulebook:
        rulebook.wait_for("Waiting for events")
        for project, name, end in (
            ("OPS", "1.0.0", "nothing is done"),
            ("REL", "1.1.0", "no released version 1.1.0"),
        ):
            payload = _released(sandbox, project, name)
            assert rulebook.post(payload, _signed(payload, "X-Hub-Signature")) == 200
            rulebook.wait_for(end)
            rulebook.wait_for("PLAY RECAP")
        assert sandbox.requests(writes=True) == []
        payload = _released(sandbox, "REL", "1.0.0")
        assert rulebook.post(payload, _signed(payload, "X-Hub-Signature")) == 200
        rulebook.wait_for("PLAY RECAP")
        rulebook.wait_for("failed=0")
    # the page, and its mark
    assert len(sandbox.requests("wiki", writes=True)) == 2


def test_deletion_starts_drift(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    hosts = {"repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}]}
    data = {"repo_key": "generic-release-local", "path": "app/1.0/app.zip"}
    payload = {"domain": "artifact", "event_type": "deleted", "data": data}
    header = "X-JFrog-Event-Auth"
    variables = {
        "eda_secret": SECRET,
        "eda_repositories": ["docker.local", "generic-release-local"],
    }
    with running("repository_changed", tmp_path, sandbox, hosts, **variables) as rulebook:
        rulebook.wait_for("Waiting for events")
        assert rulebook.post(payload, {}) == 400
        for repository in ("generic-release-local-2", "docker-local", "my-docker.local"):
            other = {**payload, "data": {**data, "repo_key": repository}}
            assert rulebook.post(other, _signed(other, header)) == 200
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


def test_every_rulebook_is_tested() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert {path.stem for path in RULEBOOKS.glob("*.yml")} == {
        name for name in ("build_ended", "version_released", "repository_changed") if name in text
    }
