# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_job_build` with `state: finished`: it waits for a build that an earlier task started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_job_build import (
    CiJobBuildOperation,
    CiJobBuildOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.predictions import (
    Predictions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.run_folder import (
    VARIABLE,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from tests.helpers.options import build as options_of
from tests.unit.ci.server import OPTIONS, STARTED, Ci, Played, build, left, waiting
from tests.unit.stub import Reply, Stub

JOB = "http://inner/ci/job/folder/job/job/"


def item(number: int | None = None, job: str = JOB, **more: Any) -> dict[str, Any]:
    """Return a queue item with its job: a waiting item, or an item that has become a build."""
    return {**left(number), "task": {"url": job}, **more}


def play(
    ci: Ci, *, read_only: bool = False, **options: Any
) -> tuple[dict[str, Any] | ToolchainError, Played]:
    """Return the values of the task, or its error; it must not send a write."""
    with Stub(response=ci) as stub:
        played = Played(stub, {"state": "finished", **options}, read_only)
        try:
            found: dict[str, Any] | ToolchainError = played.run()
        except ToolchainError as error:
            found = error
    assert played.posts == []
    return found, played


def test_queue_item_is_found_after_a_restart_by_its_parameters() -> None:
    actions = build(1, values={"V": "1"}, user="me")["actions"]
    before = item(actions=actions, inQueueSince=STARTED)
    ours = build(8, queueId=3, values={"V": "1"}, user="me", timestamp=STARTED + 1)
    earlier = {**ours, "number": 7, "timestamp": STARTED - 1}
    other = build(9, values={"V": "1"}, user="you", timestamp=STARTED + 2)
    waiting_item = Reply(body=before, headers={"X-Jenkins-Session": "a"})
    ci = Ci(
        items=[waiting_item, waiting_item, Reply(404)],
        job={"builds": [other, ours, earlier]},
        running=[ours],
        mark="b",
    )
    values, _played = play(ci, queue_id=14)
    assert isinstance(values, dict)
    assert values["build"]["number"] == 8


@pytest.mark.parametrize("given", [{"queue_id": 14}, {"build": "7"}, {"build": "lastBuild"}])
def test_running_build_is_awaited(given: dict[str, Any]) -> None:
    ci = Ci(items=[item(), item(7)], running=[build(7, None), build(7, None), build(7)])
    values, played = play(ci, **given)
    assert isinstance(values, dict)
    assert (values["changed"], values["joined"]) == (False, True)
    assert (values["build"]["number"], values["build"]["result"]) == (7, "SUCCESS")
    assert values["console"][-1] == "Finished: SUCCESS"
    assert values["queue_id"] == given.get("queue_id", 107)
    assert played.clock.pauses


def test_last_build_that_is_just_starting_is_awaited() -> None:
    begins: dict[str, Any] = {"nextBuildNumber": 8, "lastBuild": {"number": 6}}
    ci = Ci(jobs=[begins, begins, {**begins, "lastBuild": {"number": 7}}], running=[build(7)])
    values, played = play(ci, build="lastBuild")
    assert isinstance(values, dict)
    assert values["build"]["number"] == 7
    assert len(played.clock.pauses) == 2
    _values, played = play(Ci(job=begins, running=[build(6)]), build="lastBuild")
    assert sum(played.clock.pauses) <= 2
    _values, played = play(Ci(job=begins, running=[build(6)]), build="6")
    assert played.clock.pauses == []


@pytest.mark.parametrize("read_only", [False, True])
def test_completed_build_is_returned_immediately(read_only: bool) -> None:
    values, played = play(Ci(items=[item(7)]), read_only=read_only, queue_id=14)
    assert isinstance(values, dict)
    assert (values["changed"], values["joined"]) == (False, False)
    assert (values["build"]["result"], values["queue_id"]) == ("SUCCESS", 14)
    assert played.clock.pauses == []


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("ci", "given", "kind", "words"),
    [
        (Ci(items=[item(7)], running=[build(7, "FAILURE")]), {}, "failed", "ended with FAILURE"),
        (Ci(items=[item(cancelled=True)]), {}, "failed", "14 was cancelled before it was built"),
        (Ci(items=[item(7, f"{JOB}2/")]), {}, "invalid", "item 14 does not belong to the job"),
        (Ci(items=[Reply(404)]), {}, "not_found", "queue item 14 is unknown"),
        (Ci(running=[Reply(404)]), {"build": "9"}, "not_found", "has no build 9"),
        (
            Ci(running=[build(7, None, actions=[waiting("Deploy")])]),
            {"build": "7"},
            "waiting",
            "build #7 waits for the input 'Deploy",
        ),
    ],
)
def test_unsuccessful_build_fails_in_both_modes(
    ci: Ci, given: dict[str, Any], kind: str, words: str, read_only: bool
) -> None:
    error, _played = play(ci, read_only=read_only, **(given or {"queue_id": 14}))
    assert isinstance(error, ToolchainError)
    assert error.kind == kind
    assert words in error.message
    assert error.result["changed"] is False


def test_error_names_the_item_of_a_build_that_never_began() -> None:
    error, _played = play(Ci(items=[item(cancelled=True)]), queue_id=14)
    assert isinstance(error, ToolchainError)
    assert (error.kind, error.result["queue_id"]) == ("failed", 14)
    assert error.result["build"]["queue_id"] == 14


def test_failure_while_waiting_leaves_changed_false() -> None:
    ci = Ci(running=[build(7, None), build(7, None), build(7, "FAILURE")])
    error, played = play(ci, build="7")
    assert isinstance(error, ToolchainError)
    assert (error.kind, error.result["changed"]) == ("failed", False)
    assert error.result["build"]["result"] == "FAILURE"
    assert played.clock.pauses


def test_item_no_longer_queued_is_found_among_the_builds() -> None:
    ci = Ci(job={"builds": [build(7, queueId=14)]}, items=[Reply(404)])
    values, _played = play(ci, queue_id=14)
    assert isinstance(values, dict)
    assert values["build"]["number"] == 7


def test_unknown_item_is_read_again() -> None:
    values, _played = play(Ci(items=[Reply(404), item(7)]), queue_id=14)
    assert isinstance(values, dict)
    assert values["build"]["number"] == 7


def test_check_mode_does_not_wait() -> None:
    values, played = play(Ci(items=[item()]), read_only=True, queue_id=14)
    assert isinstance(values, dict)
    assert (values["changed"], values["joined"], values["queue_id"]) == (False, True, 14)
    assert (values["build"]["number"], played.clock.pauses) == (None, [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"queue_id": 14, "parameters": {"A": "1"}},
            "parameters cannot be combined with state=finished",
        ),
        ({"queue_id": 14, "files": {"A": "x"}}, "files cannot be combined with state=finished"),
        ({"build": "7", "delay": 0}, "delay cannot be combined with state=finished"),
        (
            {"build": "7", "trigger": "unless_successful"},
            "trigger cannot be combined with state=finished",
        ),
        ({"queue_id": 14, "state": "started"}, "queue_id requires state=finished"),
        ({"build": "7", "state": "started"}, "build requires state=finished"),
        ({"build": "7", "queue_id": 14}, "build cannot be combined with queue_id"),
        ({"build": "7", "wait": False}, "wait=false cannot be combined"),
        ({"build": "first one"}, "set it to a number or a permalink"),
        ({"queue_id": 0}, "queue_id is 0"),
        ({}, "requires queue_id or build"),
        ({"job": None, "builds": [{"job": "a", "state": "started", "build": "7"}]}, "builds[0]:"),
        *(
            ({"job": None, "builds": [{"job": "a", "state": "started"}, entry]}, "builds[1]:")
            for entry in ({"job": "b"}, {"job": "b", "queue_id": 0}, {"job": "b", "build": "a b"})
        ),
    ],
)
def test_contradictory_options_are_rejected_before_any_request(
    given: dict[str, Any], words: str
) -> None:
    error, played = play(Ci(), **given)
    assert isinstance(error, ToolchainError)
    assert error.kind == "invalid"
    assert words in error.message
    assert played.stub.seen == []


def test_builds_of_earlier_tasks_are_awaited_together_with_new_ones() -> None:
    ci = Ci(
        job={
            "builds": [build(7, queueId=14), build(6, "FAILURE", queueId=13)],
            "nextBuildNumber": 7,
            "property": [],
        },
        items=[item(7)],
        running=[build(6, "FAILURE", queueId=13), build(7, None, queueId=14)],
    )
    entries = [
        {"job": "folder/job", "state": "finished", "build": "6"},
        {"job": "folder/job", "state": "finished", "queue_id": 14},
    ]
    error, _played = play(ci, job=None, state="started", trigger="unless_successful",
                          builds=entries, parallel=1)  # fmt: skip
    assert isinstance(error, ToolchainError)
    bad, good = error.result["builds"]
    assert (bad["build"]["result"], bad["ok"], bad["joined"]) == ("FAILURE", False, False)
    assert (good["build"]["result"], good["ok"], good["joined"]) == ("SUCCESS", True, True)
    assert error.result["changed"] is False


def test_check_mode_accepts_a_predicted_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with Stub(response=Ci()) as stub:
        made = Played(stub, read_only=True).task()
        predictions = Predictions(stub.url, check_mode=True)
        task = Task(made.connection, made.warn, read_only=True, predictions=predictions)
        start = options_of(CiJobBuildOptions, **OPTIONS, wait=False)
        wait = options_of(CiJobBuildOptions, **OPTIONS, state="finished")
        with pytest.raises(ToolchainError, match="requires queue_id or build"):
            CiJobBuildOperation(task, wait)
        first = CiJobBuildOperation(task, start)
        first.predict(first.plan())
        plan = CiJobBuildOperation(task, wait).plan()
    assert (plan.changed, plan.waits) == (False, False)
    assert plan.result["build"]["number"] is None
