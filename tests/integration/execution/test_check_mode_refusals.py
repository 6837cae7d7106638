# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that an error detectable by a read has the same kind in check mode and in run mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

PAGES = Path(__file__).parents[2] / "contract" / "folders" / "wiki_tree" / "first"
AGENT = {"repo": "generic-snapshot-local", "path": "agent/1.0.0/agent.txt"}
#: By name: module, options and kind of the error.
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a member that is not a user": (
        "analysis_group",
        {"name": "g", "users": ["nobody"]},
        "not_found",
    ),
    "a role for nobody": (
        "analysis_role_assignment",
        {"name": "Developer", "account": "nobody"},
        "not_found",
    ),
    "a role for no group": (
        "analysis_role_assignment",
        {"name": "Developer", "account": "nobodies", "group": True},
        "not_found",
    ),
    "no role": (
        "analysis_role_assignment",
        {"name": "Nothing", "account": "analyst"},
        "not_found",
    ),
    "a role in no project": (
        "analysis_role_assignment",
        {"name": "Developer", "account": "analyst", "project": "nowhere"},
        "not_found",
    ),
    "a configuration with a member that is not a user": (
        "analysis_config",
        {"groups": [{"name": "g", "users": ["nobody"]}]},
        "not_found",
    ),
    "a module in no project": (
        "analysis_module",
        {"project": "nowhere", "name": "m", "paths": ["**/m/*"]},
        "not_found",
    ),
    "a job that is not there": ("ci_job_build", {"job": "nowhere"}, "not_found"),
    "a parameter that the job has not": (
        "ci_job_build",
        {"job": "delivery/toolchain", "parameters": {"NONE": "1"}},
        "rejected",
    ),
    "a page that is not there": ("wiki_page", {"page_id": "99999", "body": "x"}, "not_found"),
    "properties of nothing": (
        "artifact_properties",
        {"repo": "generic-snapshot-local", "path": "none.txt", "properties": {"a": "1"}},
        "not_found",
    ),
    "a download of nothing": (
        "artifact_download",
        {"repo": "generic-snapshot-local", "path": "none.txt", "dest": "fetched/"},
        "not_found",
    ),
    "a copy to no repository": (
        "artifact_copy",
        {**AGENT, "target_repo": "nowhere"},
        "not_found",
    ),
    "a build of what is not there": (
        "build_publish",
        {
            "build_name": "b",
            "build_number": "1",
            "artifacts": [{"repo": "generic-snapshot-local", "path": "none.txt"}],
        },
        "not_found",
    ),
    "a copy of no job": ("ci_job", {"job": "new", "copy_from": "nowhere"}, "not_found"),
    "a plugin that nobody offers": ("ci_plugin", {"plugins": [{"name": "nowhere"}]}, "not_found"),
    "files of no build": (
        "ci_artifact",
        {"job": "delivery/package", "build": "99", "dest": "fetched"},
        "not_found",
    ),
    "a version of no project": ("tracker_version", {"project": "NOPE", "name": "1"}, "not_found"),
    "issues of a version to no version": (
        "tracker_version",
        {"project": "REL", "name": "1.1.0", "state": "absent", "move_to": "9.9"},
        "not_found",
    ),
    "an issue for nobody": ("tracker_issue", {"issue": "REL-1", "assignee": "nobody"}, "not_found"),
    "a status out of reach": ("tracker_issue", {"issue": "REL-1", "status": "Lost"}, "rejected"),
    "pages below no page": (
        "wiki_tree",
        {"src": str(PAGES), "space": "REL", "parent_id": "99999"},
        "not_found",
    ),
}


@pytest.fixture(scope="module", params=[True, False], ids=["check", "run"])
def refused(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> playbook.Run:
    sandbox = fresh("real")
    tasks = [
        playbook.task(module, arguments, name, ignore_errors=True, check_mode=request.param)
        for name, (module, arguments, _kind) in REFUSED.items()
    ]
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play(tasks, module_defaults=defaults)
    return playbook.run(tmp_path_factory.mktemp("refused"), [play])


@pytest.mark.parametrize("name", REFUSED)
def test_both_modes_reject_with_the_same_kind(refused: playbook.Run, name: str) -> None:
    event = refused.event(name)
    assert event.status == "failed", event.result
    assert event.result["error"]["kind"] == REFUSED[name][2], event.result["msg"]


def test_configuration_may_create_its_own_references(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox = fresh("real")
    config = {
        "users": [{"name": "new", "password": "a-password-of-new"}],
        "groups": [{"name": "g", "users": ["new"]}],
        "role_assignments": [{"name": "Developer", "account": "g", "group": True}],
    }
    task = playbook.task("analysis_config", config, "both", check_mode=True)
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(
        tmp_path_factory.mktemp("brought"), [playbook.play([task], module_defaults=defaults)]
    )
    assert run.event("both").result["counts"]["create"] == 3, run.output
