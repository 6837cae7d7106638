# SPDX-License-Identifier: GPL-3.0-or-later
"""Play the recordings of servers to the modules, and compare them with the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.connections import (
    cached_session,
)
from sandbox.client import Sandbox
from tests.acceptance import recordings
from tests.acceptance import run as acceptance
from tests.acceptance.pseudonyms import LEFT_OUT, SERVER
from tests.helpers import connections, exchanges, in_process, replay
from tests.unit.stub import Reply, Seen, Stub

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
        body = replay.rendered(record.get("response", {"bytes": 0})).replace(
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
            if any(one["path"] == "/scriptText" for one in exchanges):
                continue  # the results of scripts are replaced as a whole
            cached_session.cache_clear()  # each task of a play has a session of its own
            arguments = {**login, **step["options"], "_ansible_check_mode": step["check"]}
            result = in_process.run(step["module"], arguments)
            assert not stub.errors, stub.errors[0]
            found = "changed" if result.get("changed") else "unchanged"
            found = result["error"]["kind"] if result.get("failed") else found
            assert (found, player.left) == (step["result"], []), result.get("msg", step)


def test_page_describes_all_recordings(fresh: Fresh) -> None:
    assert recordings.page(lambda: fresh("real").urls) == recordings.PAGE.read_text("utf-8")


#: What the flavour `real` of the sandbox does otherwise than the flavour `written`, in the steps of the
#: suites that read.
DIFFERENT: dict[str, dict[str, list[str]]] = {
    "repo": {
        "GET /api/repositories": [
            "header x-artifactory-id, only of the sandbox",
            "header x-jfrog-version, only of the sandbox",
            "`[].description`: missing, of the sandbox string",
            "`[].packageType`: missing, of the sandbox string",
            "`[].url`: missing, of the sandbox string",
        ],
        "GET /api/storage/{}": [
            "header x-artifactory-id, only of the sandbox",
            "header x-jfrog-version, only of the sandbox",
            "`created`: missing, of the sandbox string",
            "`uri`: missing, of the sandbox string",
        ],
    },
    "tracker": {
        "GET /rest/api/{}/project/{}": ["status 404, of the sandbox 200"],
        "GET /rest/api/{}/serverInfo": ["status 404, of the sandbox 200"],
        "GET /rest/api/{}/project": [
            "header x-ausername, only of the sandbox",
            "header x-seraph-loginreason, only of the sandbox",
            "`[].avatarUrls`: missing, of the sandbox object",
            "`[].expand`: missing, of the sandbox string",
            "`[].id`: missing, of the sandbox string",
            "`[].projectTypeKey`: missing, of the sandbox string",
            "`[].self`: missing, of the sandbox string",
        ],
        "GET /rest/api/{}/search": [
            "header x-ausername, only of the sandbox",
            "header x-seraph-loginreason, only of the sandbox",
            "`expand`: missing, of the sandbox string",
            "`issues[].expand`: missing, of the sandbox string",
            "`issues[].fields.assignee`: missing, of the sandbox object",
            "`issues[].fields.attachment`: list, of the sandbox missing",
            "`issues[].fields.components`: missing, of the sandbox list",
            "`issues[].fields.description`: missing, of the sandbox null, string",
            "`issues[].fields.fixVersions`: missing, of the sandbox list",
            "`issues[].fields.issuelinks`: missing, of the sandbox list",
            "`issues[].fields.issuetype.id`: missing, of the sandbox string",
            "`issues[].fields.issuetype.self`: missing, of the sandbox string",
            "`issues[].fields.labels`: missing, of the sandbox list",
            "`issues[].fields.priority`: missing, of the sandbox object",
            "`issues[].fields.project`: missing, of the sandbox object",
            "`issues[].fields.reporter`: missing, of the sandbox object",
            "`issues[].fields.resolution`: missing, of the sandbox object",
            "`issues[].fields.status.id`: missing, of the sandbox string",
            "`issues[].fields.status.self`: missing, of the sandbox string",
            "`issues[].fields.status.statusCategory`: missing, of the sandbox object",
            "`issues[].fields.versions`: missing, of the sandbox list",
            "`issues[].id`: missing, of the sandbox string",
            "`issues[].self`: missing, of the sandbox string",
            "`maxResults`: missing, of the sandbox number",
            "`startAt`: missing, of the sandbox number",
            "`total`: missing, of the sandbox number",
        ],
    },
    "analysis": {},
}


@pytest.mark.parametrize("suite", DIFFERENT)
def test_flavours_differ_as_described(suite: str, fresh: Fresh, tmp_path: Path) -> None:
    url = fresh("written").urls[suite]
    given = yaml.safe_load((acceptance.SUITES / f"{suite}.yml").read_text("utf-8"))
    values = given["sandbox"]
    taken = []
    for step in acceptance.steps_of(given, write=False)[0]:
        found: list[dict[str, Any]] = []
        arguments = recordings.filled(step.options, values)
        cached_session.cache_clear()
        with exchanges.passed_to(found.append):
            in_process.run(step.module, {**connections.connection(suite, url), **arguments})
        taken.append((step, "unchanged", found))
    file = tmp_path / "written.jsonl"
    head = {"service": suite, "suite": suite, "product": "sandbox", "dialect": ""}
    recordings.write(file, head, url=url, prefix="toolchain-x", values=values, taken=taken)
    recording = recordings.read(file)
    assert replay.Comparison(recording, fresh("written").urls).differences == {}
    different: dict[str, list[str]] = {}
    for request, difference in replay.Comparison(recording, fresh("real").urls).differences:
        different.setdefault(request, []).append(difference)
    assert different == DIFFERENT[suite]


def test_recording_is_kept_with_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recordings, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(recordings, "PAGE", tmp_path / "page.md")
    file = next(each for each in FILES if each.stem.startswith("registry"))
    assert recordings.main([str(file)]) == 0
    assert "header x-jfrog-version, only of the sandbox" in capsys.readouterr().out
    assert (tmp_path / "kept" / file.name).read_text("utf-8") == file.read_text("utf-8")
    assert "GET /api/docker/{}/v2/_catalog`: 200, `repositories` (w)" in (
        tmp_path / "page.md"
    ).read_text("utf-8")
