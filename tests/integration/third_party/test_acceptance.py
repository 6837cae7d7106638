# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the acceptance suites on the sandbox, and their parts on servers that others wrote."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.acceptance import recordings
from tests.acceptance import run as acceptance
from tests.acceptance.pseudonyms import interface_of
from tests.helpers import connections, hudson, installed, nginx, registry, replay

Fresh = Callable[[str], Sandbox]
REGISTRY = installed.program("docker-registry")

VALUES: dict[str, dict[str, str]] = {
    file.stem: yaml.safe_load(file.read_text("utf-8"))["sandbox"]
    for file in sorted(acceptance.SUITES.glob("*.yml"))
}


def failed(outcomes: list[acceptance.Outcome]) -> list[acceptance.Outcome]:
    assert outcomes
    return [outcome for outcome in outcomes if not outcome.passed]


def responses(file: Path) -> dict[str, set[int]]:
    """Return the statuses of each request in a recording."""
    head, *rest = recordings.read(file)
    interface = interface_of(head["service"])
    found: dict[str, set[int]] = defaultdict(set)
    for record in rest:
        if "method" in record:
            found[replay.label(record, interface)].add(record["status"])
    return dict(found)


def test_every_service_has_a_suite() -> None:
    assert {acceptance.suite_of(name)["service"] for name in VALUES} == set(connections.LOGINS)


@pytest.mark.parametrize("service", VALUES)
def test_sandbox_passes_and_equals_its_recording(
    service: str, fresh: Fresh, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = fresh("real")
    kind = acceptance.suite_of(service)["service"]
    login = connections.connection(kind, sandbox.urls[kind])
    begin = sandbox.mark()
    assert failed(acceptance.run(service, login, VALUES[service], write=False)) == []
    assert [request for request in sandbox.requests(since=begin) if request["write"]] == []
    file = tmp_path / "recording.jsonl"
    outcomes = acceptance.run(
        service, login, VALUES[service], write=True, product="sandbox", record=file
    )
    assert failed(outcomes) == []
    assert "Read the file before you send it" in capsys.readouterr().out
    text = file.read_text("utf-8")
    hidden = [*connections.secrets(connections.LOGINS[kind]), *VALUES[service].values()]
    assert [one for one in (*hidden, sandbox.urls[kind], "127.0.0.1") if one in text] == []
    assert replay.Comparison(recordings.read(file), fresh("real").urls).differences == {}
    deleted = any(outcome.step.name == "delete again" for outcome in outcomes)
    assert deleted == (service != "registry")


def test_objects_are_deleted_after_a_failure(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.fault(service="wiki", method="PUT", status=403, times=9)
    login = connections.connection("wiki", sandbox.urls["wiki"])
    outcomes = acceptance.run("wiki", login, VALUES["wiki"], write=True, only=["wiki_page"])
    names = [one.step.name for one in failed(outcomes)]
    assert names == ["update", "update again"]
    assert "| wiki_page | update | FAILED | permission: " in acceptance.table(
        outcomes, sandbox.urls["wiki"]
    )


@pytest.mark.skipif(
    installed.java_files("hudson") is None, reason="no Java and Maven on this machine"
)
def test_another_ci_server_passes_as_recorded(ci_server: hudson.Hudson, tmp_path: Path) -> None:
    login = {"url": ci_server.url, "username": hudson.USER, "password": hudson.PASSWORD}
    file = tmp_path / "recording.jsonl"
    assert failed(acceptance.run("ci", login, {}, write=True, only=["ci_job"], record=file)) == []
    text = file.read_text("utf-8")
    assert re.findall(rf"\b(?:{hudson.USER}|{hudson.PASSWORD})\b", text) == []
    # a build that takes longer leads to further requests
    kept = responses(recordings.KEPT / "ci-hudson-3.3.2.jsonl")
    assert {
        request: statuses for request, statuses in responses(file).items() if request in kept
    } == kept


@pytest.mark.skipif(nginx.PROGRAM is None, reason="no nginx on this machine")
def test_plain_store_passes_as_recorded(plain_store: nginx.Store, tmp_path: Path) -> None:
    (plain_store.files / "accepted").mkdir()
    login = {"username": nginx.USER, "password": nginx.PASSWORD, "dialect": "generic"}
    outcomes = acceptance.run(
        "repo",
        {"url": plain_store.url, **login},
        {"repo": "accepted"},
        write=True,
        only=["artifact_deploy"],
        record=tmp_path / "recording.jsonl",
    )
    # such a store shows no digests, and no list by which a deletion could be verified
    assert {one.step.name for one in failed(outcomes)} == {
        *("create again", "update again"),
        *("delete", "delete again"),
    }

    kept = recordings.KEPT / "repo-nginx-1.22.1.jsonl"
    assert responses(tmp_path / "recording.jsonl") == responses(kept)


@pytest.mark.skipif(REGISTRY is None, reason="no docker-registry on this machine")
def test_registry_passes_as_recorded(tmp_path: Path) -> None:
    kind = "application/vnd.oci.image.manifest.v1+json"
    config: dict[str, Any] = {"mediaType": "application/vnd.oci.image.config.v1+json", "size": 2}
    config["digest"] = registry.digest_of(b"{}")
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": []}
    file = tmp_path / "recording.jsonl"
    assert REGISTRY is not None
    with registry.running(REGISTRY, tmp_path) as running:
        running.push_blob("team/app", b"{}")
        for tag in ("1.0.0", "1.1.0"):
            running.push_manifest("team/app", tag, json.dumps(manifest).encode(), kind)
        login = {"url": running.url, "dialect": "jfrog", "username": "any", "password": "any"}
        values = {"repo": "any", "image": "team/app"}
        outcomes = acceptance.run("registry", login, values, write=False, record=file)
    assert failed(outcomes) == []
    assert "team" not in file.read_text("utf-8")
    kept = recordings.KEPT / "registry-docker-registry-2.8.2.jsonl"
    assert responses(file) == responses(kept)


def test_missing_and_unknown_values_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for given, said in (
        (["wiki", "http://127.0.0.1:1", "title=x"], "give space=..., the key of a space"),
        (["ci", "http://127.0.0.1:1", "space=REL"], "space: not known"),
        (["ci", "http://127.0.0.1:1", "--record", "file"], "give --product"),
    ):
        with pytest.raises(SystemExit):
            acceptance.main(given)
        assert said in capsys.readouterr().err


def test_unavailable_server_fails_every_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = ["--record", str(tmp_path / "file"), "--product", "none"]
    assert acceptance.main(["wiki", "http://127.0.0.1:1", "space=REL", "title=x", *record]) == 1
    printed = capsys.readouterr().out
    assert "No exchange was recorded" in printed
    assert "| FAILED | " in printed
    assert "127.0.0.1:1" not in printed.partition("| FAILED | ")[2]
