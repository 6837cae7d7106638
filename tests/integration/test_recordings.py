# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of real servers that public clients keep for their tests: the modules read them rightly.

The fixtures are our own and say whose answer they have the shape of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import connections, playbook
from tests.unit.stub import Reply, Seen, Stub
from tools.witnesses import RECORDINGS

FOUND: list[dict[str, Any]] = yaml.safe_load(RECORDINGS.read_text(encoding="utf-8"))
NAMES = [each["name"] for each in FOUND]


class Server:
    """Each recording has a server of its own, below a folder with its number."""

    def __call__(self, seen: Seen) -> Reply:
        _empty, _base, number, rest = seen.path.split("/", 3)
        answers = FOUND[int(number)]["answers"]
        found = answers.get(f"{seen.method} /{rest}")
        if found is None:
            return Reply(404, "{}", {"X-Jenkins": "2.0"})
        if not isinstance(found, dict) or "status" not in found:
            return Reply(200, found, {"Content-Type": "application/json"})
        host = seen.headers["Host"]
        headers = {"Content-Type": "application/json"}
        if "location" in found:
            headers["Location"] = f"http://{host}/base/{number}/{found['location']}"
        return Reply(found["status"], found.get("body", b""), headers)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    folder: Path = tmp_path_factory.mktemp("recordings")
    with Stub(answer=Server()) as server:
        tasks = [
            playbook.task(
                each["module"],
                {
                    **connections.connection(each["service"], f"{server.url}/{number}"),
                    **({"dialect": "jfrog"} if each["service"] == "repo" else {}),
                    **each["arguments"],
                },
                each["name"],
            )
            for number, each in enumerate(FOUND)
        ]
        return playbook.run(folder, [playbook.play(tasks)])


@pytest.mark.parametrize("recording", FOUND, ids=NAMES)
def test_it_is_read(run: playbook.Run, recording: dict[str, Any]) -> None:
    result = run.event(recording["name"]).result
    failed = run.event(recording["name"]).status == "failed"
    assert failed is ("error" in recording["expect"]), result.get("msg")
    assert _part(result, recording["expect"]) == recording["expect"], result.get("msg", result)


def _part(found: Any, wanted: Any) -> Any:
    """What `wanted` names of `found`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: _part(found.get(name), each) for name, each in wanted.items()}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_part(one, each) for one, each in zip(found, wanted, strict=True)]
    return found
