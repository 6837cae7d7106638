# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that only a comparison replaces the report, and that the commands of its page work [C9]."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]
EDITED = ("1.0.0", "2.0.0")
PASSWORD = "extra-password-1234567890"


class Team:
    """A folder with settings, as in the tutorial, whose versions were edited by hand."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.folder, self._environment = folder, playbook.environment(folder)
        del self._environment["ANSIBLE_CALLBACKS_ENABLED"]
        login = connections.connection("tracker", sandbox.urls["tracker"])
        settings = {
            "servers": {"tracker": login},
            "export_connections": "{{ servers }}",
            "enforce_connections": "{{ servers }}",
            "export_services": ["tracker"],
            "desired_state_folder": "desired",
            "drift_report": "reports/last run",
        }
        (folder / "settings.yml").write_text(json.dumps(settings), "utf-8")
        self.report = folder / "reports/last run"
        (folder / "desired").mkdir()
        exported = {"dest": str(folder / "desired"), **login}
        assert in_process.run("tracker_export", exported)["changed"]
        self._commit()
        for name in EDITED:
            options = {"project": "REL", "name": name, "description": "by hand"}
            assert in_process.run("tracker_version", {**options, **login})["changed"]

    def _commit(self) -> None:
        for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm x"):
            subprocess.run(["git", *command.split()], cwd=self.folder / "desired", check=True)

    def run(self, name: str, *arguments: str, stdout: str = "default") -> int:
        arguments = (f"delivery.toolchain.{name}", "-e", "@settings.yml", *arguments)
        environment = {**self._environment, "ANSIBLE_STDOUT_CALLBACK": stdout}
        done = playbook.execute(arguments, self.folder, environment)
        self.output = done.stdout
        return done.returncode

    def paste(self, command: str) -> str:
        """Run a command in a shell, as a person does; return its output."""
        program, *rest = shlex.split(command)
        assert program == "ansible-playbook"
        done = playbook.execute(rest, self.folder, self._environment)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def page(self) -> dict[str, Any]:
        text = (self.report / "report.html").read_text("utf-8")
        found = re.search(r'id="data">(.*?)</script>', text)
        assert found is not None
        data: dict[str, Any] = json.loads(found[1])
        return data

    def files(self) -> Mapping[str, bytes]:
        names = ("report.html", "report.json", "report.md", "history.json", "plan.json")
        return {name: (self.report / name).read_bytes() for name in names}


def test_only_a_comparison_replaces_the_report(fresh: Fresh, tmp_path: Path) -> None:
    team = Team(fresh("real"), tmp_path)
    assert team.run("drift") == 0, team.output
    before = team.files()
    failing = {
        "enforce": ("-e", "enforce_plan=missing.json"),
        "adopt": ("-e", "adopt_findings=0000"),
        "release": ("-e", '{"release_builds": [{"build_name": "a", "build_number": "b"}]}'),
        "housekeeping": ("-e", "repo_housekeeping_rules=many"),
        "drift_tickets": (),
    }
    for name, arguments in failing.items():
        assert team.run(name, *arguments) != 0, team.output
        assert team.files() == before, name
    assert team.run("export", "-e", "export_folder=other") == 0
    assert team.files() == before
    (tmp_path / "desired/tracker.yml").write_text("versions: [", "utf-8")
    assert team.run("drift") != 0
    # the plan of an earlier run must not be applied after a run that failed
    assert not (team.report / "plan.json").exists()
    (team.report / "plan.json").write_bytes(before["plan.json"])
    assert team.files() == before


def test_commands_of_the_page_work(fresh: Fresh, tmp_path: Path) -> None:
    team = Team(fresh("real"), tmp_path)
    inventory = 'localhost ansible_python_interpreter="{{ ansible_playbook_python }}"\n'
    (tmp_path / "my hosts").write_text(inventory, "utf-8")
    limit = ("--limit", "localhost", "-i", "my hosts")
    password = ("-e", f"ci_password={PASSWORD}")
    assert team.run("drift", *limit, *password, stdout="delivery.toolchain.plan") == 0
    data = team.page()
    ids = {one["name"]: one["id"] for one in data["report"]["findings"]}
    assert set(ids) == {f"REL/{name}" for name in EDITED}
    commands = data["commands"]
    assert commands["secrets"] == "ci_password"
    assert PASSWORD not in json.dumps(data)
    assert PASSWORD not in team.output
    *_more, adopt, enforce, secrets, result = team.output.splitlines()
    chosen = ",".join(one["id"] for one in data["report"]["findings"])
    assert adopt.endswith(f"{commands['adopt']} -e adopt_findings={chosen}")
    assert enforce.endswith(f"  {commands['enforce']}")
    assert secrets == "Add -e with ci_password, which are not shown."
    assert result == "Result: differs"
    settings = "-i 'my hosts' --limit localhost -e @settings.yml"
    assert commands["adopt"].startswith(f"ansible-playbook delivery.toolchain.adopt {settings} ")
    first, second = (ids[f"REL/{name}"] for name in EDITED)
    team.paste(f"{commands['enforce']} -e enforce_only={first}")
    report = json.loads((team.report / "report.json").read_text("utf-8"))
    # what the command has left alone is neither in sync nor resolved
    assert (report["resolved"], [one["id"] for one in report["unread"]]) == ([], [second])
    # the page is still open: its other finding can be adopted
    team.paste(f"{commands['adopt']} -e adopt_findings={second}")
    assert "by hand" in (tmp_path / "desired/tracker.yml").read_text("utf-8")
    assert team.run("drift") == 0
    assert team.page()["report"]["counts"]["drift"] == 0
