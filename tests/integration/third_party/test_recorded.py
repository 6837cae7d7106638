# SPDX-License-Identifier: GPL-3.0-or-later
"""Play the recordings of servers to the modules, and compare them with the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    cached_session,
)
from sandbox.client import Sandbox
from tests.helpers import connections, in_process
from tests.unit.stub import Reply, Seen, Stub
from tools import recordings
from tools.pseudonyms import LEFT_OUT, SERVER, rendered

Fresh = Callable[[str], Sandbox]
Record = Mapping[str, Any]
FILES = sorted(recordings.KEPT.glob("*.jsonl"))


def _asked(method: str, target: str) -> tuple[str, str, list[tuple[str, str]]]:
    path, _mark, query = target.partition("?")
    return method, unquote(path), parse_qsl(query, keep_blank_values=True)


class Player:
    """A server that responds to the requests of a step as recorded, and to no others."""

    def __init__(self) -> None:
        self.left: list[Record] = []

    def __call__(self, seen: Seen) -> Reply:
        asked = _asked(seen.method, seen.target.removeprefix("/base"))
        # the first one, because a module may send several requests at the same time
        record = next(
            (one for one in self.left if _asked(one["method"], one["path"]) == asked), None
        )
        assert record is not None, (asked, [one["path"] for one in self.left])
        self.left.remove(record)
        base = f"http://{seen.headers['Host']}/base"
        headers = json.loads(json.dumps(record["response_headers"]).replace(SERVER, base))
        length = headers.pop("content-length", "")
        if seen.method == "HEAD" and length:
            headers["Content-Length"] = length
        body = rendered(record.get("response", {"bytes": 0})).replace(
            SERVER.encode(), base.encode()
        )
        return Reply(record["status"], body, headers)


def steps_of(recording: Sequence[Record]) -> list[tuple[Record, list[Record]]]:
    """Return each step of a recording with its exchanges."""
    steps: list[tuple[Record, list[Record]]] = []
    for record in recording[1:]:
        if "step" in record:
            steps.append((record, []))
        else:
            steps[-1][1].append(record)
    return steps


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_modules_read_what_a_server_responded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    recording = recordings.read(file)
    head = recording[0]
    player = Player()
    with Stub(response=player) as stub:
        login = connections.connection(head["service"], stub.url)
        if head["dialect"]:
            login["dialect"] = head["dialect"]
        if "account" in head["values"]:
            login.pop("token", None)
            login["username"] = head["values"]["account"]
            login |= {} if "ltoken" in login else {"password": LEFT_OUT}
        for step, exchanges in steps_of(recording):
            player.left = list(exchanges)
            cached_session.cache_clear()  # each task of a play has a session of its own
            arguments = {**login, **step["options"], "_ansible_check_mode": step["check"]}
            result = in_process.run(step["module"], arguments)
            assert not stub.errors, stub.errors[0]
            found = "changed" if result.get("changed") else "unchanged"
            found = result["error"]["kind"] if result.get("failed") else found
            assert (found, player.left) == (step["result"], []), result.get("msg", step)
