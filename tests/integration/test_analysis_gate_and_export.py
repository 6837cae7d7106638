# SPDX-License-Identifier: GPL-3.0-or-later
"""The round trip of a configuration, and the quality gate, as a user plays them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

KINDS = (
    "roles",
    "groups",
    "users",
    "role_assignments",
    "projects",
    "modules",
    "views",
    "defect_types",
)
GATE = {
    "project": "toolchain",
    "build": "build_10",
    "thresholds": [{"severity": ["Critical"], "state": ["New"]}, {"code": ["ABV.*"], "max": 1}],
}


@pytest.fixture(scope="module", params=["real", "written"])
def played(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> playbook.Run:
    """The tasks of all tests in one playbook, against each flavour of the server."""
    sandbox = fresh(request.param)
    lists = {kind: f"{{{{ exported.config.{kind} }}}}" for kind in KINDS}
    taken = {**lists, "purge": [kind for kind in KINDS if kind != "defect_types"]}
    tasks = [
        playbook.task("analysis_info", {"export": True}, "export", register="exported"),
        playbook.task("analysis_config", taken, "take over", diff=True),
        playbook.task("analysis_issue_info", GATE, "gate"),
        playbook.task("analysis_issue_info", {**GATE, "build": "build_9"}, "no build"),
        playbook.task("analysis_issue_info", {**GATE, "limit": 1}, "cut"),
    ]
    play = playbook.play(tasks, module_defaults=connections.module_defaults(sandbox.urls))
    folder = tmp_path_factory.mktemp("analysis")
    return playbook.run(Path(folder), [play], controls={"localhost": sandbox.control})


def test_what_was_exported_is_found_unchanged(played: playbook.Run) -> None:
    config = played.event("export").result["config"]
    assert sorted(config) == sorted(KINDS)
    assert all(config.values())
    taken = played.event("take over")
    assert taken.status == "ok", taken.result.get("msg")
    assert taken.result["changed"] is False, taken.result["plan"]
    assert taken.result["plan"] == []
    assert taken.writes == []


def test_a_gate_fails_its_task_and_says_why(played: playbook.Run) -> None:
    result = played.event("gate").result
    assert played.event("gate").status == "failed"
    assert result["error"]["kind"] == "failed"
    assert "1 issue with severity Critical and state New (max 0)" in result["msg"]
    assert "#102 NPD.FUNC.MUST /src/ui/tree.c https://analysis.example.com/" in result["msg"]
    assert [each["count"] for each in result["thresholds"]] == [1, 1]
    assert [each["exceeded"] for each in result["thresholds"]] == [True, False]
    assert [each["id"] for each in result["offenders"]] == [102]
    assert result["complete"] is True


def test_a_gate_is_not_passed_where_nobody_knows(played: playbook.Run) -> None:
    unknown = played.event("no build")
    assert (unknown.status, unknown.result["error"]["kind"]) == ("failed", "not_found")
    cut = played.event("cut")
    assert (cut.status, cut.result["error"]["kind"]) == ("failed", "failed")
    assert cut.result["complete"] is False
