# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks `enforce` and `drift`: the same roles, the second only looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

PASSWORD = "enforced-password-1234567890"
CONFIG: dict[str, Any] = {
    "analysis_config_users": [{"name": "eve", "password": PASSWORD}],
    "analysis_config_groups": [{"name": "quality", "users": ["eve"]}],
    "analysis_config_modules": [{"project": "toolchain", "name": "core"}],
    "analysis_config_purge": ["modules"],
}
ROLE = "delivery.toolchain.analysis_config : "


def _run(sandbox: Sandbox, folder: Path, name: str, variables: dict[str, Any]) -> playbook.Run:
    login = connections.connection("analysis", sandbox.urls["analysis"])
    options = {"enforce_connections": {"analysis": login}, "enforce_roles": ["analysis_config"]}
    play = {"import_playbook": f"delivery.toolchain.{name}", "vars": {**variables, **options}}
    run = playbook.run(folder, [play], controls={"localhost": sandbox.control}, arguments=["-vvv"])
    assert run.code == 0, run.output
    assert run.shows([PASSWORD, *connections.secrets(login)]) == []
    return run


def test_drift_tells_what_enforce_then_does(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    task = f"{ROLE}Bring the code analysis server into the desired state"
    before = _run(sandbox, tmp_path, "drift", CONFIG)
    assert before.event(task).result["changed"] is True
    assert before.event(task).writes == []
    (report,) = before.event("Report").items
    assert report["msg"] == [
        {"kind": "users", "name": "eve", "text": "create"},
        {"kind": "groups", "name": "quality", "text": "update users"},
        {"kind": "modules", "name": "toolchain/ui, web", "text": "delete"},
    ]
    enforced = _run(sandbox, tmp_path, "enforce", CONFIG).event(task)
    assert enforced.result["plan"] == before.event(task).result["plan"]
    assert len(enforced.writes) == 3
    after = _run(sandbox, tmp_path, "drift", CONFIG)
    assert after.event(task).result["changed"] is False
    assert after.event("Report").items[0]["msg"] == []


def test_a_role_without_variables_asks_the_server_for_nothing(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    mark = sandbox.mark()
    _run(sandbox, tmp_path, "enforce", {})
    assert sandbox.requests("analysis", since=mark) == []
