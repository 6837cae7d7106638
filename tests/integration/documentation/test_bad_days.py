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


def test_second_run_of_each_part_changes_nothing(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    sandbox = fresh("real")
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    assert len(PARTS) == 5
    plays = [
        playbook.play(part, name=f"{number} {which}", module_defaults=defaults)
        for number, part in enumerate(PARTS)
        for which in ("first", "second")
    ]
    run = playbook.run(tmp_path, plays)
    assert run.code == 0, run.output
    changed = {(event.play, event.task) for event in run.events if event.result["changed"]}
    assert {play for play, _task in changed} == {f"{number} first" for number in range(5)}
    read_only = {"Read the record"}
    tasks = {task["name"] for part in PARTS for task in part} - read_only
    assert {task for _play, task in changed} == tasks
