# SPDX-License-Identifier: GPL-3.0-or-later
"""Test ansible-runner like a platform that runs jobs.

Connection, variables and settings are in files. There is no terminal, `LANG=C` is set, and the job
has a separate user with a read-only home directory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

USER = 1000
SECRETS = [secret for login in connections.LOGINS.values() for secret in connections.secrets(login)]
SITE = [
    {
        "import_playbook": "delivery.toolchain.release",
        "vars": {"release_jobs": [{"job": "no-parameters"}]},
    },
    {"import_playbook": "delivery.toolchain.drift"},
]
VARIABLES = {
    "analysis_config_modules": [{"project": "toolchain", "name": "runner", "paths": ["**/r/*"]}],
    # values passed by an earlier node of a workflow
    "drift_findings": [{"text": "of an earlier run"}],
    "release_build_numbers": [0],
}


@dataclass(frozen=True)
class Job:
    """The status of a finished job, and the data that the platform stores."""

    status: str
    events: list[dict[str, Any]]
    kept: str

    @property
    def artifacts(self) -> dict[str, Any]:
        """Return the data that the job passes to the next job."""
        (last,) = [event for event in self.events if event["event"] == "playbook_on_stats"]
        found: dict[str, Any] = last["event_data"]["artifact_data"]
        return found


def _private_data(folder: Path, sandbox: Sandbox) -> Path:
    """Create the private data folder of a job, like a platform."""
    data, home = folder / "data", folder / "home"
    for name in ("env", "inventory", "project"):
        (data / name).mkdir(parents=True)
    home.mkdir(mode=0o555)
    environment = {
        f"TOOLCHAIN_{service.upper()}_{option.upper()}": value
        for service, login in connections.LOGINS.items()
        for option, value in {"url": sandbox.urls[service], **login}.items()
    }
    files = {
        "env/envvars": {
            **environment,
            "ANSIBLE_COLLECTIONS_PATH": str(playbook.collections_path()),
            "ANSIBLE_HOME": str(data / "ansible"),
            "ANSIBLE_REMOTE_TEMP": str(data / "remote"),
        },
        "env/extravars": VARIABLES,
        "env/settings": {"job_timeout": 300, "suppress_ansible_output": True},
        "inventory/hosts.json": {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}},
        "project/site.yml": SITE,
    }
    for name, content in files.items():
        (data / name).write_text(json.dumps(content), encoding="utf-8")
    return data


def _as_user(command: list[str]) -> list[str]:
    """Return a command that runs as an unprivileged user. Root needs a user namespace for this."""
    if os.getuid() != 0:
        return command
    unshare = shutil.which("unshare")
    assert unshare, "unshare of util-linux is missing: as root nothing is read-only"
    return [unshare, "--user", f"--map-user={USER}", f"--map-group={USER}", *command]


@pytest.fixture(scope="module")
def job(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("runner")
    data = _private_data(folder, fresh("real"))
    programs = Path(sys.executable).parent
    finished = subprocess.run(
        _as_user(
            [str(programs / "ansible-runner"), "run", str(data), "-p", "site.yml", "--ident", "1"]
        ),
        env={
            "HOME": str(folder / "home"),
            "LANG": "C",
            "PATH": os.pathsep.join([str(programs), os.defpath]),
            "NO_PROXY": "127.0.0.1",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        timeout=300,
        check=False,
    )
    kept = data / "artifacts" / "1"
    assert (kept / "status").exists(), finished.stdout
    texts = [path.read_text(encoding="utf-8") for path in sorted(kept.glob("job_events/*.json"))]
    texts += [(kept / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
    events = [json.loads(text) for text in texts[:-2]]
    events.sort(key=lambda event: int(event["counter"]))
    return Job((kept / "status").read_text(encoding="utf-8"), events, "\n".join(texts))


def test_job_succeeds(job: Job) -> None:
    assert job.status == "successful", job.kept[-5000:]
    assert "[WARNING]" not in job.kept
    assert "Traceback" not in job.kept


def test_no_event_of_the_job_contains_a_secret(job: Job) -> None:
    assert len(job.events) > 50
    assert [secret for secret in SECRETS if secret in job.kept] == []


def test_job_returns_only_its_own_builds_and_drift(job: Job) -> None:
    assert [type(number) for number in job.artifacts["release_build_numbers"]] == [int]
    assert job.artifacts["release_build_numbers"] != [0]
    (finding,) = job.artifacts["drift_findings"]
    assert (finding["kind"], finding["name"]) == ("module", "toolchain/runner")
