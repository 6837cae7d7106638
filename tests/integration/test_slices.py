# SPDX-License-Identifier: GPL-3.0-or-later
"""`enforce` in slices, on workers that are lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, lossy_ssh, playbook

Fresh = Callable[[str], Sandbox]

NAMES = ["9.1", "9.2", "9.3"]
LOCAL = {
    "ansible_connection": "local",
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
}
#: All that Ansible starts a process for, for a host that is refused.
REFUSED = [
    "Take the answers of a survey",
    "Make the folder of the report",
    "Forget what a play before this one has left",
    "Hold each service in its desired state",
    "Refuse what cannot be meant",
]


def test_a_worker_is_killed_and_no_write_is_sent_twice(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    # the second version is looked at when its worker is killed: what was begun has ended
    sandbox.fault(service="tracker", method="GET", path="versions", skip=1, delay=60)
    login = connections.connection("tracker", sandbox.urls["tracker"])
    variables: dict[str, Any] = {
        "desired_state_versions": [{"project": "REL", "name": name} for name in NAMES],
        "enforce_connections": {"tracker": login},
        "drift_workers": "ssh:one, ssh:two",
        "drift_slices": 1,
        "drift_report": "report",
        "enforce_hosts": "all",
    }
    # a host that is refused is no reason to leave the others alone
    hosts = {"strange": {"enforce_role": "ci_baseline"}, "localhost": LOCAL}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    programs = tmp_path / "programs"
    environment = lossy_ssh.install(programs, b"(item=REL/9.1)")
    play = {"import_playbook": "delivery.toolchain.enforce", "vars": variables}
    run = playbook.run(
        tmp_path, [play], arguments=["-vvv", "-i", "hosts.json"], variables=environment
    )
    assert run.code == 2, run.output
    assert "does not know enforce_role (is enforce_roles meant?)." in run.output
    assert [event.task for event in run.events if event.host == "strange"] == REFUSED
    writes = sandbox.requests("tracker", writes=True)
    assert [json.loads(each["body"])["name"] for each in writes] == NAMES
    lost, done = re.findall(r"slice 1 of 1(?: is run again: |: done by )(ssh:\w+)", run.output)
    assert {lost, done} == {"ssh:one", "ssh:two"}
    counts = json.loads((tmp_path / "report/report.json").read_text("utf-8"))["counts"]
    assert counts == {"ok": 1, "drift": 2, "failed": 1}
    used = lossy_ssh.folders(programs)
    assert len(used) == 2
    assert [folder for folder in used if folder.exists()] == []
    secrets = connections.secrets(login)
    assert run.shows(secrets) == []
    names = lossy_ssh.called(programs)
    assert f"--private-data-dir {used[0]}/data" in names
    assert [secret for secret in secrets if secret in names] == []
