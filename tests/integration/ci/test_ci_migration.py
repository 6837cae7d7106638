# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the examples for Jenkins of the guide for migration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"
GUIDE = (Path(__file__).resolve().parents[3] / "docs/migration.md").read_text("utf-8")


def test_tasks_of_jenkins_modules_convert_as_the_guide_shows(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    part = GUIDE.partition("### Credentials and nodes of Jenkins\n")[2].partition("\n## ")[0]
    before, after = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
    old_credential, old_node = (_options(t) for t in _tasks(before))
    tasks = _tasks(after)
    credential, node = (_options(task) for task in tasks)
    assert credential["login_username"] == old_credential["username"]
    assert (credential["id"], node["name"]) == (old_credential["id"], old_node["name"])
    assert (node["offline_reason"], node["labels"]) == (
        old_node["offline_message"],
        old_node["labels"],
    )
    _run_twice(sandbox, tmp_path, tasks)


def test_configuration_as_code_converts_as_the_guide_shows(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    part = GUIDE.partition("## From configuration as code and job DSL\n")[2].partition("\n## ")[0]
    before, after = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
    tasks = _tasks(after)
    assert _options(tasks[0])["config"] == yaml.safe_load(before)
    _run_twice(sandbox, tmp_path, tasks)


def _run_twice(sandbox: Sandbox, folder: Path, tasks: list[dict[str, Any]]) -> None:
    """Verify that tasks change something, and nothing when they run again."""
    again = [{**task, "name": f"{task['name']} again"} for task in tasks]
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play([*tasks, *again], module_defaults=defaults)
    run = playbook.run(folder, [{**play, "vars": {"deploy_password": "pass-word-12345"}}])
    assert run.code == 0, run.output
    changed = [run.event(record["name"]).result["changed"] for record in (*tasks, *again)]
    assert changed == [True] * len(tasks) + [False] * len(tasks)


def _tasks(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(text)
    return found


def _options(task: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the module of a task."""
    found: dict[str, Any] = next(task[name] for name in task if "." in name)
    return found
