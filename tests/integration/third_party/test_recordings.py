# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that modules read responses of real servers that public clients keep for their tests.

The fixtures are ours. Each fixture names the recorded response that it imitates.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.helpers import connections, in_process
from tests.unit.stub import Reply, Seen, Stub
from tools.witnesses import RECORDINGS

FOUND: list[dict[str, Any]] = yaml.safe_load(RECORDINGS.read_text(encoding="utf-8"))
NAMES = [record["name"] for record in FOUND]


class Server:
    """Serve every recording below a folder with its number. `asked` contains the requests of a
    recording.
    """

    def __init__(self) -> None:
        self.asked: dict[int, set[str]] = defaultdict(set)
        self._written: set[int] = set()

    def __call__(self, seen: Seen) -> Reply:
        _empty, _base, number, rest = seen.path.split("/", 3)
        recording, asked = FOUND[int(number)], self.asked[int(number)]
        responses = recording["answers"]
        if seen.method != "GET":
            self._written.add(int(number))
        elif int(number) in self._written:
            responses = {**responses, **recording.get("after", {})}
        if rest == "review/api":
            # a record per line, and an empty line at the end
            action = f"action {seen.form['action']}"
            asked.add(action)
            return Reply(200, "".join(f"{json.dumps(one)}\n" for one in responses[action]) + "\n")
        asked.add(f"{seen.method} /{rest}")
        found = responses.get(f"{seen.method} /{rest}")
        if found is None:
            return Reply(404, "{}", {"X-Jenkins": "2.0"})
        if not isinstance(found, dict) or not isinstance(found.get("status"), int):
            return Reply(200, json.dumps(found), {"Content-Type": "application/json"})
        headers = {"Content-Type": "application/json", **found.get("headers", {})}
        if "location" in found:
            host = seen.headers["Host"]
            headers["Location"] = f"http://{host}/base/{number}/{found['location']}"
        return Reply(found["status"], found.get("body", b""), headers)


@pytest.fixture(scope="module")
def recorded() -> Server:
    return Server()


@pytest.fixture(scope="module")
def server(recorded: Server) -> Iterator[Stub]:
    with Stub(response=recorded) as running:
        yield running


@pytest.mark.parametrize("recording", FOUND, ids=NAMES)
def test_recording_is_read(server: Stub, recorded: Server, recording: dict[str, Any]) -> None:
    number = FOUND.index(recording)
    url = f"{server.url}/{number}"
    dialect = {"dialect": "jfrog"} if recording["service"] == "repo" else {}
    login = connections.connection(recording["service"], url)
    result = in_process.run(recording["module"], {**login, **dialect, **recording["arguments"]})
    failed = result.get("failed", False)
    assert failed is ("error" in recording["expect"]), result.get("msg")
    assert _part(result, recording["expect"]) == recording["expect"], result.get("msg", result)
    unread = set(recording["answers"]) - recorded.asked[number]
    assert not unread, f"the module did not ask for {sorted(unread)}"


def _part(found: Any, wanted: Any) -> Any:
    """Return the parts of `found` that `wanted` names."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: _part(found.get(name), each) for name, each in wanted.items()}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_part(one, each) for one, each in zip(found, wanted, strict=True)]
    return found
