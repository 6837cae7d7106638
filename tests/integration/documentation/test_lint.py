# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that ansible-lint reads the options of every module from its action, without running a
module.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import playbook
from tests.unit.stub import Reply, Stub

CONFIGURATION = "profile: production\noffline: true\nenable_list: [args]\nwarn_list: []\n"
LOGIN = {"token": "a-token"}
#: By task name: module, options and expected lint message, or None.
TASKS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "A wrong option": (
        "build_info",
        {"build_name": "nightly", "bild_number": "5"},
        "Unsupported parameters",
    ),
    "A missing option": ("build_info", {}, "missing required arguments: build_name"),
    "A bad choice": (
        "artifact_deploy",
        {"repo": "r", "path": "f", "content": "c", "dialect": "klingon"},
        "value of dialect must be one of",
    ),
    "All is well": ("build_info", {"build_name": "nightly"}, None),
    "A module without a server": ("oauth_consumer", {}, "missing required arguments: certificate"),
}


def _task(name: str, module: str, options: dict[str, Any], url: str) -> dict[str, Any]:
    connection = {} if module == "oauth_consumer" else {"url": url, **LOGIN}
    return {"name": name, f"delivery.toolchain.{module}": {**options, **connection}}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """Return the lint message of every task, and the number of connections during the lint run."""
    folder = tmp_path_factory.mktemp("linted")
    (folder / "lint.yml").write_text(CONFIGURATION, encoding="utf-8")
    with Stub(response=lambda seen: Reply(body={})) as stub:
        tasks = [
            _task(name, module, options, stub.url)
            for name, (module, options, _said) in TASKS.items()
        ]
        plays = [{"name": "Play", "hosts": "localhost", "tasks": [task]} for task in tasks]
        # a line for every play, because a finding has a line; JSON is valid YAML
        lines = ",\n".join(map(json.dumps, plays))
        (folder / "plays.yml").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        finished = subprocess.run(
            [
                *(str(Path(sys.executable).parent / "ansible-lint"), "--offline", "-f", "json"),
                *("-c", "lint.yml", "plays.yml"),
            ],
            cwd=folder,
            env={**playbook.environment(folder), "PATH": str(Path(sys.executable).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        connections = stub.connections
    assert finished.stdout, finished.stderr
    said = dict.fromkeys(TASKS, "")
    for finding in json.loads(finished.stdout):
        if finding["check_name"].startswith("args"):
            place = finding["location"]
            line = (
                place["lines"]["begin"] if "lines" in place else place["positions"]["begin"]["line"]
            )
            said[list(TASKS)[line - 2]] += finding["description"] + str(finding.get("content", ""))
    return said, connections


@pytest.mark.parametrize("name", TASKS)
def test_lint_reports_invalid_options(judged: tuple[dict[str, str], int], name: str) -> None:
    expected = TASKS[name][2]
    if expected is None:
        assert judged[0][name] == ""
    else:
        assert expected in judged[0][name]


def test_lint_sends_no_request(judged: tuple[dict[str, str], int]) -> None:
    assert judged[1] == 0
