# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the examples of the guide for migration: what other tools describe, and what it becomes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.delivery.toolchain.plugins.filter.terraform_repositories import (
    terraform_repositories,
)
from sandbox.client import Sandbox
from tests.helpers import connections, playbook

GUIDE = (Path(__file__).resolve().parents[3] / "docs/migration.md").read_text("utf-8")
#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"
TOKEN = {"repo": {"token": "repo-admin-token-1234567890"}}


def blocks(heading: str, language: str) -> list[str]:
    """Return the code blocks below a heading."""
    part = re.split(r"^##+ ", GUIDE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.M)[0]
    return re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)


def run_twice(folder: Path, sandbox: Sandbox, task: dict[str, Any]) -> list[bool]:
    """Run a task twice; return `changed` of each run."""
    defaults = connections.module_defaults(sandbox.urls, **TOKEN)
    tasks = [{**task, "name": name} for name in ("First", "Again")]
    run = playbook.run(folder, [playbook.play(tasks, module_defaults=defaults)])
    assert run.code == 0, run.output
    return [run.event(record["name"]).result["changed"] for record in tasks]


def test_terraform_state_converts_as_the_guide_shows(sandbox: Sandbox, tmp_path: Path) -> None:
    (state,) = blocks("Repositories of a Terraform state", "json")
    (text,) = blocks("Repositories of a Terraform state", "yaml")
    entries = yaml.safe_load(text)["repositories"]
    assert terraform_repositories(json.loads(state)) == {"repositories": entries}
    for entry in entries:
        if "remote_password" in entry:
            entry["remote_password"] = "npm-password-12345"
    task = {"delivery.toolchain.repo_repository": {"entries": entries}}
    assert run_twice(tmp_path, sandbox, task) == [True, False]


def test_tasks_of_other_modules_convert_as_the_guide_shows(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    before, after = blocks("From the modules `artifactory_*`", "yaml")
    old = yaml.safe_load(before)[0]["artifactory_repo"]
    (task,) = yaml.safe_load(after)
    assert run_twice(tmp_path, sandbox, task) == [True, False]
    found = task["delivery.toolchain.repo_repository"]
    config = old["repo_config_dict"]
    assert (found["key"], found["rclass"], found["package_type"]) == (
        old["name"],
        old["rclass"],
        old["packageType"],
    )
    assert ",".join(found["includes"]) == config["includesPattern"]
    assert found["settings"] == {"handleSnapshots": config["handleSnapshots"]}
