# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the export and import of a configuration, and the quality gate, in a playbook."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

ROOT = Path(__file__).resolve().parents[3]
ENFORCING = "Apply the desired state of the code analysis server"
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


def exporting(file: Path) -> list[dict[str, Any]]:
    """Return the tasks from the documentation that read a configuration and write it to a file."""
    text = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
    (block,) = (each for each in re.findall(r"```yaml\n(.*?)```", text, re.S) if "export:" in each)
    reading, writing = yaml.safe_load(block)
    writing["ansible.builtin.copy"]["dest"] = str(file)
    return [{**reading, "name": "export"}, writing]


@pytest.fixture(scope="module", params=["real", "written"])
def played(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> playbook.Run:
    """Run the tasks of all tests in a single playbook, for both flavours of the server."""
    sandbox, folder = fresh(request.param), tmp_path_factory.mktemp("analysis")
    lists = {kind: f"{{{{ exported.config.{kind} }}}}" for kind in KINDS}
    taken = {**lists, "purge": [kind for kind in KINDS if kind != "defect_types"]}
    tasks = [
        *exporting(folder / "analysis.yml"),
        playbook.task("analysis_config", taken, "take over", diff=True),
        playbook.task("analysis_issue_info", GATE, "gate"),
        playbook.task("analysis_issue_info", {**GATE, "build": "build_9"}, "no build"),
        playbook.task("analysis_issue_info", {**GATE, "limit": 1}, "cut"),
    ]
    defaults = connections.module_defaults(sandbox.urls)
    role = {"vars_files": ["analysis.yml"], "roles": ["delivery.toolchain.analysis_config"]}
    plays = [
        playbook.play(tasks, module_defaults=defaults),
        playbook.play([], module_defaults=defaults, **role),
    ]
    return playbook.run(folder, plays, controls={"localhost": sandbox.control})


def test_exported_configuration_is_unchanged(played: playbook.Run) -> None:
    config = played.event("export").result["config"]
    assert sorted(config) == sorted(KINDS)
    assert all(config.values())
    taken = played.event("take over")
    assert taken.status == "ok", taken.result.get("msg")
    assert taken.result["changed"] is False, taken.result["plan"]
    assert taken.result["plan"] == []
    assert taken.writes == []


def test_file_of_the_export_is_accepted_by_the_role(played: playbook.Run) -> None:
    taken = played.event("delivery.toolchain.analysis_config : " + ENFORCING)
    assert taken.status == "ok", taken.result.get("msg")
    assert taken.result["changed"] is False, taken.result["plan"]
    assert taken.result["counts"]["unchanged"] > 0


def test_failed_gate_fails_its_task_with_a_reason(played: playbook.Run) -> None:
    result = played.event("gate").result
    assert played.event("gate").status == "failed"
    assert result["error"]["kind"] == "failed"
    assert "1 issue with severity Critical and state New (max 0)" in result["msg"]
    assert "#102 NPD.FUNC.MUST /src/ui/tree.c https://analysis.example.com/" in result["msg"]
    assert [threshold["count"] for threshold in result["thresholds"]] == [1, 1]
    assert [threshold["exceeded"] for threshold in result["thresholds"]] == [True, False]
    assert [offender["id"] for offender in result["offenders"]] == [102]
    assert result["complete"] is True


def test_gate_fails_for_an_unknown_build(played: playbook.Run) -> None:
    unknown = played.event("no build")
    assert (unknown.status, unknown.result["error"]["kind"]) == ("failed", "not_found")
    cut = played.event("cut")
    assert (cut.status, cut.result["error"]["kind"]) == ("failed", "failed")
    assert cut.result["complete"] is False
