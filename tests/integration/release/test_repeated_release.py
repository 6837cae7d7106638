# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that a repeated release leaves the files of the build record in the target repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

SOURCE, TARGET, PATH = "generic-snapshot-local", "generic-release-local", "app/1/app.txt"
BUILD = {"build_name": "app", "build_number": "1"}
#: By task: whether it changes something, and the files that it reports as missing in the target.
EXPECTED: dict[str, tuple[bool, list[str]]] = {
    "tested": (True, []),
    "released": (True, []),
    "tested before": (False, []),
    "unchanged": (False, []),
    "new content": (True, [PATH]),
    "unchanged again": (False, []),
    "deleted": (True, [PATH]),
    "released before": (False, []),
    "released after all": (True, []),
}


def deploy(name: str, content: str) -> dict[str, Any]:
    wanted = {"repo": SOURCE, "path": PATH, "content": content}
    return playbook.task("artifact_deploy", wanted, name)


def publish(name: str, **options: Any) -> dict[str, Any]:
    artifacts = [{"repo": SOURCE, "path": PATH}]
    return playbook.task("build_publish", {**BUILD, "artifacts": artifacts, **options}, name)


def promote(name: str, status: str = "released", **options: Any) -> dict[str, Any]:
    wanted = {**BUILD, "status": status, "target_repo": TARGET, **options}
    given = {option: value for option, value in wanted.items() if value is not None}
    return playbook.task("build_promote", given, name)


def delete(name: str) -> dict[str, Any]:
    wanted = {"repo": TARGET, "path": PATH, "state": "absent"}
    return playbook.task("artifact_deploy", wanted, name)


TASKS = [
    deploy("deploy", "first"),
    publish("publish"),
    promote("tested", "tested", target_repo="generic-staging-local"),
    promote("released"),
    promote("tested before", "tested", target_repo="generic-staging-local"),
    promote("unchanged"),
    deploy("deploy other content", "second"),
    publish("replace the record", replace=True),
    promote("new content"),
    playbook.task(
        "artifact_download", {"repo": TARGET, "path": PATH, "dest": "fetched.txt"}, "fetch"
    ),
    promote("unchanged again"),
    delete("delete"),
    promote("deleted"),
    delete("delete again"),
    promote("conflict", copy=False),
    promote("withdrawn", "withdrawn", target_repo=None),
    promote("released before"),
    promote("released after all", force=True),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repeated")


@pytest.fixture(scope="module")
def run(fresh: Fresh, folder: Path) -> playbook.Run:
    sandbox = fresh("real")
    play = playbook.play(TASKS, module_defaults=connections.module_defaults(sandbox.urls))
    return playbook.run(folder, [play], controls={"localhost": sandbox.control})


@pytest.mark.parametrize("name", EXPECTED)
def test_promotion_compares_the_target_with_the_record(run: playbook.Run, name: str) -> None:
    event = run.event(name)
    assert event.status == "ok", event.result.get("msg")
    assert (event.result["changed"], event.result["missing_files"]) == EXPECTED[name]
    assert len(event.writes) == int(event.result["changed"])


@pytest.mark.parametrize("name", ["unchanged", "unchanged again"])
def test_unchanged_promotion_takes_two_requests(run: playbook.Run, name: str) -> None:
    assert len(run.event(name).requests) <= 2


@pytest.mark.usefixtures("run")
def test_target_serves_the_new_content(folder: Path) -> None:
    assert (folder / "fetched.txt").read_text(encoding="utf-8") == "second"


def test_record_of_a_promoted_build_is_replaced_with_a_warning(run: playbook.Run) -> None:
    warnings = run.event("replace the record").result["warnings"]
    assert any("promoted to 'generic-release-local'" in warning for warning in warnings)


def test_files_that_cannot_be_promoted_again_are_a_conflict(run: playbook.Run) -> None:
    event = run.event("conflict")
    assert (event.status, event.result["error"]["kind"]) == ("failed", "conflict")
    assert PATH in event.result["msg"]
    assert event.writes == []


def test_earlier_promotion_with_missing_files_gives_a_warning(run: playbook.Run) -> None:
    event = run.event("released before")
    (warning,) = event.result["warnings"]
    assert f"'{TARGET}' lacks" in warning
    assert "warnings" not in run.event("tested before").result
