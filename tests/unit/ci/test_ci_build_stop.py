# SPDX-License-Identifier: GPL-3.0-or-later
"""Test stopping builds: once, by a stronger method if requested, and detected even if a response is
lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.ci_build_stop import (
    CiBuildStopOperation,
    CiBuildStopOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.server import Played, build, left
from tests.unit.stub import Reply, Seen, Stub

BACK = Reply(302, headers={"Location": "."})


@dataclass
class Runs:
    """A build that ends after a method of `ends_by`, and `looks` state requests, were received."""

    ends_by: tuple[str, ...] = ("stop", "term", "kill")
    answers: dict[str, Reply] = field(default_factory=dict)
    looks: int = 1
    result: str | None = None
    told: bool = False

    def __call__(self, seen: Seen) -> Reply:
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.method == "POST":
            method = seen.path.rpartition("/")[2]
            response = self.answers.get(method, BACK)
            self.told = self.told or (method in self.ends_by and response.status < 400)
            return response
        if self.told:
            self.looks -= 1
        if self.looks <= 0:
            self.result = "ABORTED"
        return Reply(body=build(7, self.result, values={"A": "1"}))


def stop(played: Played) -> dict[str, Any]:
    """Run the module with the options of the task, on build 7 by default."""
    given = {"job": "folder/job", "build": "7", **played.options}
    options = options_of(CiBuildStopOptions, **given)
    return played.run(lambda task: CiBuildStopOperation(task, options, played.clock.polling))


def play(runs: Any, *, read_only: bool = False, **options: Any) -> tuple[dict[str, Any], Played]:
    with Stub(response=runs) as stub:
        played = Played(stub, options, read_only)
        return stop(played), played


def failed(response: Any, **options: Any) -> tuple[ToolchainError, Played]:
    with Stub(response=response) as stub:
        played = Played(stub, options)
        with pytest.raises(ToolchainError) as caught:
            stop(played)
        return caught.value, played


def sent(played: Played) -> list[str]:
    return [post.path for post in played.posts]


def test_running_build_is_stopped_and_awaited() -> None:
    values, played = play(Runs(looks=3), build="lastBuild")
    assert values["changed"] is True
    assert (values["build"]["number"], values["build"]["result"]) == (7, "ABORTED")
    assert values["build"]["parameters"] == {"A": "1"}
    # the build number that the permalink refers to, not the permalink, which may change
    assert sent(played) == ["/base/job/folder/job/job/7/stop"]
    assert played.stub.seen[1].path == "/base/job/folder/job/job/lastBuild/api/json"


def test_completed_build_is_unchanged() -> None:
    values, played = play(Runs(result="SUCCESS"))
    assert (values["changed"], values["build"]["result"]) == (False, "SUCCESS")
    assert played.posts == []
    assert len(played.stub.seen) == 1


@pytest.mark.parametrize("shown", [{"building": False}, {"building": False, "result": None}])
def test_inactive_build_without_result_is_unchanged(shown: dict[str, Any]) -> None:
    states = [{"number": 7, **shown}]
    values, played = play(lambda seen: Reply(body=states[0]))
    assert (values["changed"], values["build"]["result"], played.posts) == (False, None, [])

    def ends(seen: Seen) -> Reply:
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.method == "POST":
            states.append({"number": 7, **shown})
            return BACK
        return Reply(body=states[-1])

    states[0] = {"number": 7, "building": True}
    values, played = play(ends)
    assert (values["changed"], len(played.posts)) == (True, 1)
    assert played.clock.time < 10


def test_check_mode_sends_nothing() -> None:
    values, played = play(Runs(), read_only=True)
    assert (values["changed"], values["build"]["result"], played.posts) == (True, None, [])


def test_missing_build_is_not_found() -> None:
    error, _ignored = failed(lambda seen: Reply(404))
    assert error.kind == "not_found"
    assert "the job 'folder/job' does not exist" in error.message


@pytest.mark.parametrize("method", ["stop", "term", "kill"])
def test_requested_method_is_sent(method: str) -> None:
    _values, played = play(Runs(), method=method)
    assert sent(played) == [f"/base/job/folder/job/job/7/{method}"]


def test_stronger_methods_follow_after_the_grace_time() -> None:
    values, played = play(Runs(ends_by=("kill",)), escalate=True, grace=20.0)
    assert [path.rpartition("/")[2] for path in sent(played)] == ["stop", "term", "kill"]
    assert values["build"]["result"] == "ABORTED"
    assert played.clock.time == pytest.approx(40)


def test_stronger_methods_are_not_sent_if_the_build_ends() -> None:
    _values, played = play(Runs(ends_by=("term",)), escalate=True, grace=10.0)
    assert [path.rpartition("/")[2] for path in sent(played)] == ["stop", "term"]


@pytest.mark.parametrize(
    "no", [Reply(404), Reply(302, headers={"Location": "/base/job/folder/job/job/7/term/"})]
)
def test_unsupported_methods_are_reported(no: Reply) -> None:
    error, _ignored = failed(Runs(answers={"term": no}), method="term")
    assert (error.kind, error.status) == ("rejected", 404)
    assert "does not support term for this build" in error.message
    assert error.result["changed"] is False


@pytest.mark.parametrize("method", ["term", "kill"])
def test_unsupported_methods_are_reported_in_check_mode(method: str) -> None:
    shown = {**build(7, None), "_class": "hudson.model.FreeStyleBuild"}
    with pytest.raises(ToolchainError) as caught:
        play(lambda seen: Reply(body=shown), read_only=True, method=method)
    assert caught.value.kind == "rejected"
    assert f"does not support {method} for this build" in caught.value.message


@pytest.mark.parametrize("ends", [True, False])
def test_build_without_stronger_methods_gets_the_complete_time(ends: bool) -> None:
    no = Reply(404)
    runs = Runs(("stop",) if ends else (), {"term": no, "kill": no}, looks=8)
    options: dict[str, Any] = {"escalate": True, "grace": 1.0, "wait_timeout": 30.0}
    if ends:
        values, played = play(runs, **options)
        assert values["build"]["result"] == "ABORTED"
    else:
        error, played = failed(runs, **options)
        assert error.kind == "timeout"
        assert played.clock.time == pytest.approx(30)
    assert [path.rpartition("/")[2] for path in sent(played)] == ["stop", "term", "kill"]


def test_generic_dialect_finds_running_builds_in_the_list() -> None:
    class Written(Runs):
        def __call__(self, seen: Seen) -> Reply:
            reply = super().__call__(seen)
            whole = reply.body
            if isinstance(whole, dict) and "result" in whole:
                if "allBuilds" in seen.target:
                    return Reply(body={"allBuilds": [{}, whole, build(6)]})
                return Reply(body={"actions": whole["actions"]})
            return reply

    values, played = play(Written(looks=2))
    assert (values["changed"], values["build"]["result"]) == (True, "ABORTED")
    assert len(played.posts) == 1


@pytest.mark.parametrize("shown", [{"number": None, "building": True}, {"actions": []}])
def test_build_with_incomplete_state_is_not_stopped(shown: dict[str, Any]) -> None:
    error, played = failed(lambda seen: Reply(body=shown), build="lastBuild")
    assert (error.kind, played.posts) == ("protocol", [])


def test_build_that_does_not_stop_times_out() -> None:
    error, played = failed(Runs(ends_by=()), wait_timeout=12.0)
    assert (error.kind, error.result["changed"]) == ("timeout", True)
    assert "is still running" in error.message
    assert "escalate" in error.message
    assert played.clock.time == pytest.approx(12)


def test_build_is_returned_unfinished_without_wait() -> None:
    values, played = play(Runs(looks=9), wait=False)
    assert (values["changed"], values["build"]["result"]) == (True, None)
    assert played.clock.pauses == []


@pytest.mark.parametrize("response", [Reply(cut=True), Reply(502), Reply(504)])
def test_lost_response_is_resolved_by_the_build(response: Reply) -> None:
    class Lost(Runs):
        def __call__(self, seen: Seen) -> Reply:
            self.told = self.told or (seen.method == "POST" and "crumb" not in seen.path)
            return super().__call__(seen)

    values, played = play(Lost(answers={"stop": response}, looks=2))
    assert (values["changed"], values["build"]["result"]) == (True, "ABORTED")
    assert len(played.posts) == 1
    error, played = failed(Runs(ends_by=(), answers={"stop": response}))
    assert len(played.posts) == 1
    assert error.kind in ("network", "server")


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (Reply(302, headers={"Location": "/login?from=x"}), "auth"),
        (Reply(302, headers={"Location": "https://proxy.example/elsewhere"}), "protocol"),
        (Reply(403, headers={"X-Required-Permission": "hudson.model.Item.Cancel"}), "permission"),
        (Reply(500, "boom"), "server"),
    ],
)
def test_rejection_is_reported(response: Reply, kind: str) -> None:
    error, played = failed(Runs(ends_by=(), answers={"stop": response}))
    assert error.kind == kind
    assert len(played.posts) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"build": "7/stop"},
        {"build": ""},
        {"build": "-1"},
        {"wait_timeout": -1.0},
        {"grace": -1.0},
        {"poll_interval": 0.0},
        {"escalate": True, "wait": False},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    error, played = failed(Runs(), **options)
    assert (error.kind, played.stub.seen) == ("invalid", [])


class Queue:
    """A queue whose item has these states in successive reads; the last repeats.

    `None`: the server does not know the item.
    """

    def __init__(self, *states: dict[str, Any] | None) -> None:
        self.states = list(states)

    def __call__(self, seen: Seen) -> Reply:
        if seen.path.startswith("/base/crumbIssuer"):
            return Reply(404)
        if seen.path == "/base/queue/cancelItem":
            return Reply(404 if self.states[0] and "executable" in self.states[0] else 204)
        if not seen.path.startswith("/base/queue/item/14/"):
            is_job = seen.path.endswith("/job/job/api/json")
            return Reply(body={"builds": []} if is_job else build(7, None))
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        task = {"url": "http://ci/job/folder/job/job/"}
        return Reply(404) if state is None else Reply(body={"id": 14, "task": task, **state})


def test_item_that_is_not_known_yet_is_cancelled() -> None:
    queue = Queue(None, None, {"why": "Waiting"}, {"cancelled": True})
    values, played = play(queue, build=None, queue_id=14)
    assert (values["changed"], values["build"]) == (True, None)
    assert sent(played) == ["/base/queue/cancelItem"]
    error, played = failed(Queue(None), build=None, queue_id=14)
    assert error.kind == "not_found"
    assert sum(played.clock.pauses) <= 2


def test_build_of_an_item_that_is_just_starting_is_returned() -> None:
    queue = Queue({"why": "Waiting"}, left(None), left(None), left(7))
    values, played = play(queue, build=None, queue_id=14)
    assert (values["changed"], values["build"]["number"]) == (False, 7)
    assert len(played.posts) == 1


def test_last_build_that_is_just_starting_is_stopped() -> None:
    class Starts(Runs):
        reads = 0

        def __call__(self, seen: Seen) -> Reply:
            if not seen.path.endswith("/job/job/api/json"):
                return super().__call__(seen)
            self.reads += 1
            newest = 6 if self.reads < 3 else 7
            return Reply(body={"nextBuildNumber": 8, "lastBuild": {"number": newest}})

    starts = Starts()
    values, _played = play(starts, build="lastBuild")
    assert (values["changed"], values["build"]["number"], starts.reads) == (True, 7, 3)
