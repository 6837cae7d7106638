# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that elements which the server adds to a configuration are sent at most once [C11.1]."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

#: The server adds further members to the rule for old builds.
CONFIG = """<project><canRoam>true</canRoam><properties><jenkins.model.BuildDiscarderProperty>
<strategy class="hudson.tasks.LogRotator"><daysToKeep>5</daysToKeep></strategy>
</jenkins.model.BuildDiscarderProperty></properties></project>"""


def _play(
    sandbox: Sandbox, folder: Path, *names: str, arguments: tuple[str, ...] = ()
) -> tuple[list[Any], int]:
    """Run a task for each name. Return whether they changed something, and the number of writes."""
    tasks = [playbook.task("ci_job", {"job": "x", "config": CONFIG}, name) for name in names]
    since = sandbox.mark()
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(
        folder, [playbook.play(tasks, module_defaults=defaults)], arguments=list(arguments)
    )
    assert run.code == 0, run.output
    writes = [record for record in sandbox.requests("ci", since=since) if record["write"]]
    return [run.event(name).result["changed"] for name in names], len(writes)


def test_what_the_server_adds_is_sent_once(fresh: Callable[[str], Sandbox], tmp_path: Path) -> None:
    sandbox = fresh("real")
    assert _play(sandbox, tmp_path, "first", "again") == ([True, False], 1)
    # another run does not know it: it sends the configuration once
    assert _play(sandbox, tmp_path, "first", "again") == ([False, False], 1)
    # the folder of the report keeps it
    for folder, writes in (("{{ 'rep' ~ 'ort' }}", 1), ("report", 0)):
        arguments = ("-e", f"drift_report={folder}")
        assert _play(sandbox, tmp_path, "first", arguments=arguments) == ([False], writes)
    assert len([*tmp_path.glob("report/server_values/*.json")]) == 1
