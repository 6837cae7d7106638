# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tasks of the guide for bad days in order, every part twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "bad-days.md"
PARTS: list[list[dict[str, Any]]] = [
    yaml.safe_load(text)
    for text in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
]
#: The image of the hotfix, which a pipeline has pushed.
PUSHED = {
    "delivery.toolchain.docker_promote": {
        "repo": "docker-release-local",
        "target_repo": "docker-staging-local",
        "image": "delivery/agent",
        "tag": "1.0.0",
        "target_tag": "1.10.1",
    }
}


def tasks_of(part: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(part[0].get("tasks", part))


def test_second_run_of_each_part_changes_nothing(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    sandbox = fresh("real")
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    assert len(PARTS) == 5
    plays = [
        playbook.play(
            [{"name": "Push an image", **PUSHED}], name="before", module_defaults=defaults
        )
    ]
    plays += [
        {
            **playbook.play(tasks_of(part)),
            "vars": part[0].get("vars", {}) if "tasks" in part[0] else {},
            "name": f"{number} {which}",
            "module_defaults": defaults,
        }
        for number, part in enumerate(PARTS)
        for which in ("first", "second")
    ]
    run = playbook.run(tmp_path, plays)
    assert run.code == 0, run.output
    events = [event for event in run.events if event.play != "before"]
    changed = {(event.play, event.task) for event in events if event.result["changed"]}
    assert {play for play, _task in changed} == {f"{number} first" for number in range(5)}
    read_only = {"Read the record"}
    tasks = {task["name"] for part in PARTS for task in tasks_of(part)} - read_only
    assert {task for _play, task in changed} == tasks
