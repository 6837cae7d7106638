# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the issues of drift over several nights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import since, writing
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]

TICKETS: dict[str, Any] = {"tickets_project": "REL", "tickets_type": "Task"}


class Nights:
    """Run drift and its tickets against a sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path, **variables: Any) -> None:
        self.sandbox, self.folder, self.variables = sandbox, folder, variables
        self.login = connections.connection("tracker", sandbox.urls["tracker"])

    def run(self, name: str, code: int = 0, **variables: Any) -> playbook.Run:
        play = {
            "import_playbook": f"delivery.toolchain.{name}",
            "vars": {
                "enforce_connections": {"tracker": self.login},
                "drift_report": "report",
                **self.variables,
                **variables,
            },
        }
        run = playbook.run(self.folder, [play])
        assert run.code == code, run.output
        return run

    def night(self, names: list[str], **variables: Any) -> playbook.Run:
        """Look for these versions in the project REL, and keep the issues."""
        folder = self.folder / "report"
        contents = Contents("delivery.toolchain.drift", check=True, hosts=["localhost"])
        for name in names:
            contents.add(host="localhost", service="tracker", **self._compared(_version(name)))
        writing.write(folder, contents.since(since.last_run(folder)))
        return self.run("drift_tickets", **{**TICKETS, **variables})

    def _compared(self, version: dict[str, str]) -> dict[str, Any]:
        """Compare a version in this process; return the finding that the playbook drift makes."""
        arguments = {"project": "REL", **version, **self.login, "_ansible_check_mode": True}
        differs = in_process.run("tracker_version", arguments)["changed"]
        action, words = (
            ("update", "differs in description")
            if "description" in version
            else ("create", "missing")
        )
        return {
            "server": self.login["url"],
            "kind": "version",
            "name": f"REL/{version['name']}",
            "action": action if differs else "none",
            "text": f"version REL/{version['name']}: {words if differs else 'as wanted'}",
            "status": "drift" if differs else "ok",
        }

    def version(self, name: str, **options: Any) -> None:
        arguments = {"project": "REL", "name": name, **options, **self.login}
        assert in_process.run("tracker_version", arguments)["changed"]

    def issues(self) -> list[tuple[str, str, int]]:
        """Return summary, status and number of comments of each issue of drift."""
        arguments = {
            "jql": "labels = drift ORDER BY key",
            "fields": ["summary", "status", "comment"],
            **self.login,
        }
        found = in_process.run("jql_search", arguments)["issues"]
        return [
            (
                one["fields"]["summary"].split(" on ")[0],
                one["fields"]["status"]["name"],
                one["fields"]["comment"]["total"],
            )
            for one in found
        ]


def _version(name: str) -> dict[str, str]:
    name, _separator, description = name.partition(" ")
    return {"name": name, "description": description} if description else {"name": name}


def test_every_finding_keeps_one_issue_over_five_nights(fresh: Fresh, tmp_path: Path) -> None:
    nights = Nights(fresh("real"), tmp_path)
    run = nights.night(["8.1", "8.2", "8.3"], tickets_max_new=2)
    assert "tickets_max_new is 2: 1 more wait for the next run." in " ".join(run.output.split())
    first = "version REL/8.1: missing"
    second = "version REL/8.2: missing"
    assert nights.issues() == [(first, "Open", 0), (second, "Open", 0)]
    # the open issues stay, and the postponed issue is created
    third = "version REL/8.3: missing"
    nights.night(["8.1", "8.2", "8.3"])
    assert nights.issues() == [(first, "Open", 0), (second, "Open", 0), (third, "Open", 0)]
    assert (
        nights.run("drift_tickets", **TICKETS).event("Plan the issues").result["plan"]["sentence"]
        == "All 3 objects differ on 1 server. Issues: 0 new, 0 changed, 0 ended."
    )
    # 8.1 is fixed, 8.2 differs in another field, 8.3 is not checked
    nights.version("8.1")
    nights.version("8.2", description="old")
    nights.night(["8.1", "8.2 new"])
    changed = "version REL/8.2: differs in description"
    assert nights.issues() == [(first, "Done", 1), (changed, "Open", 1), (third, "Open", 0)]
    # the server fails: nothing is closed
    nights.run("drift", 2, desired_state_versions=[{"project": "NONE", "name": "1"}])
    nights.run("drift_tickets", **TICKETS, tickets_max_new=0)
    assert nights.issues() == [(first, "Done", 1), (changed, "Open", 1), (third, "Open", 0)]
    # the difference returns: a single open issue
    nights.version("8.1", state="absent")
    nights.version("8.3")
    nights.night(["8.1", "8.2 new", "8.3"], tickets_max_new=1)
    assert [issue for issue in nights.issues() if issue[0] == first] == [
        (first, "Done", 1),
        (first, "Open", 0),
    ]
    assert (third, "Done", 1) in nights.issues()


def test_issue_of_a_server_follows_its_findings(fresh: Fresh, tmp_path: Path) -> None:
    nights = Nights(fresh("real"), tmp_path, tickets_per="server")
    versions = [{"project": "REL", "name": name} for name in ("8.1", "8.2")]
    nights.run("drift", desired_state_versions=versions)
    nights.run("drift_tickets", **TICKETS)
    assert nights.issues() == [("drift", "Open", 0)]
    nights.version("8.1")
    nights.night(["8.1", "8.2"])
    assert nights.issues() == [("drift", "Open", 1)]
    nights.version("8.2")
    nights.night(["8.1", "8.2"])
    assert nights.issues() == [("drift", "Done", 2)]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"tickets_project": ""}, "set tickets_project"),
        ({**TICKETS, "tickets_per": "host"}, "tickets_per (finding or server)"),
        ({**TICKETS, "tickets_projekt": "x"}, "tickets_projekt (did you mean tickets_project?)"),
        ({**TICKETS, "drift_report": "none"}, "no readable drift report was found"),
    ],
)
def test_invalid_option_is_reported(
    variables: dict[str, Any], words: str, fresh: Fresh, tmp_path: Path
) -> None:
    nights = Nights(fresh("real"), tmp_path)
    run = nights.run("drift_tickets", 2, **variables)
    assert words in " ".join(run.output.split())
    assert nights.sandbox.requests("tracker", writes=True) == []


def test_issue_that_cannot_be_closed_is_a_warning(fresh: Fresh, tmp_path: Path) -> None:
    nights = Nights(fresh("real"), tmp_path)
    nights.night(["8.1", "8.2"])
    nights.version("8.1")
    run = nights.night(["8.1", "8.2"], tickets_close_transition="No such transition")
    output = " ".join(run.output.split())
    assert "which stays open" in output
    assert [status for _summary, status, _comments in nights.issues()] == ["Open", "Open"]
    # the next run tries again
    nights.night(["8.1", "8.2"])
    assert [status for _summary, status, _comments in nights.issues()] == ["Done", "Open"]
