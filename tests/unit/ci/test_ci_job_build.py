# SPDX-License-Identifier: GPL-3.0-or-later
"""Test starting builds: once, or not at all if there is a matching build already."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds import (
    ci_job_build as job_build,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.modules import ci_job_build
from tests.helpers.options import build as options_of
from tests.unit.arguments import given_to_a_module
from tests.unit.ci.server import (
    OPTIONS,
    Ci,
    Played,
    build,
    created,
    definition,
    left,
    parameters,
    waiting,
)
from tests.unit.stub import Reply, Seen, Stub

VERSION = definition("VERSION", "String", "0.0.0")
PUBLISH = definition("PUBLISH", "Boolean", True)


def play(ci: Ci, *, read_only: bool = False, **options: Any) -> tuple[dict[str, Any], Played]:
    with Stub(response=ci) as stub:
        played = Played(stub, options, read_only)
        return played.run(), played


def failed(ci: Ci, **options: Any) -> tuple[ToolchainError, Played]:
    with Stub(response=ci) as stub:
        played = Played(stub, options)
        with pytest.raises(ToolchainError) as caught:
            played.run()
        return caught.value, played


def test_build_without_parameters_is_started_once_and_followed() -> None:
    values, played = play(Ci(job={"property": [{}]}))
    (post,) = played.posts
    assert post.target == "/base/job/folder/job/job/build"
    assert post.body == b""
    assert values == {
        "changed": True,
        "build": {
            "number": 7,
            "url": f"{played.stub.url}/job/folder/job/job/7/",
            "result": "SUCCESS",
            "duration": 1.5,
            "timestamp": "2023-11-14T22:13:20.000Z",
            "parameters": {},
            "queue_id": 14,
            "input": None,
        },
        "queue_id": 14,
        "console": ["one", "two", "Finished: SUCCESS"],
        "joined": False,
    }


def test_parameters_are_sent_as_form_with_delay_in_seconds() -> None:
    ci = Ci().defines(VERSION, PUBLISH)
    _ignored, played = play(ci, parameters={"VERSION": "1 & 2", "PUBLISH": False}, delay=5)
    (post,) = played.posts
    assert post.target == "/base/job/folder/job/job/buildWithParameters?delay=5sec"
    assert post.form == {"VERSION": "1 & 2", "PUBLISH": "false"}


def test_omitted_parameters_get_defaults_of_the_server() -> None:
    _ignored, played = play(Ci().defines(VERSION))
    (post,) = played.posts
    assert post.path.endswith("/buildWithParameters")
    assert post.body == b""


def test_check_mode_predicts_the_build_and_sends_nothing() -> None:
    ci = Ci().defines(VERSION)
    values, played = play(ci, read_only=True, parameters={"VERSION": "1"})
    assert played.posts == []
    assert values["changed"] is True
    assert values["build"]["parameters"] == {"VERSION": "1"}
    assert len(played.stub.seen) == 1


def test_queue_item_is_returned_without_wait() -> None:
    values, played = play(Ci(), wait=False)
    assert values["queue_id"] == values["build"]["queue_id"] == 14
    assert values["build"]["number"] is None
    assert played.clock.pauses == []


def test_build_merged_into_a_queued_one_is_joined_and_changed() -> None:
    values, _ignored = play(Ci(trigger=created(14, status=303)))
    assert (values["joined"], values["changed"]) == (True, True)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(302, headers={"Location": "http://inner/ci/job/a/"}), "rejected", "queued nothing"),
        (Reply(302, headers={"Location": "/login?from=%2F"}), "auth", "login page"),
        (Reply(409, headers={"X-Error": "job is not buildable"}), "conflict", "not buildable"),
        (Reply(400, headers={"X-Error": "Nothing is submitted"}), "rejected", "Nothing is subm"),
        (
            Reply(500, "<html><h1>Oops!</h1><p>Logging ID=ab-12</p></html>"),
            "server",
            "Oops!; Logging ID=ab-12.*check the values of the parameters",
        ),
        (
            Reply(403, "<html>", {"X-Required-Permission": "hudson.model.Item.Build"}),
            "permission",
            "lacks the permission hudson.model.Item.Build",
        ),
        (
            Reply(500, "java.lang.IllegalStateException: job is not parameterized"),
            "rejected",
            "not p",
        ),
        (Reply(401), "auth", "401"),
        (Reply(307, headers={"Location": "https://elsewhere/"}), "protocol", "redirects"),
    ],
)
def test_rejected_trigger_is_an_error_and_changes_nothing(
    reply: Reply, kind: str, words: str
) -> None:
    error, played = failed(Ci(trigger=reply))
    assert error.kind == kind
    assert error.result["changed"] is False
    assert re.search(words, error.message), error.message
    assert len(played.posts) == 1


def test_disabled_job_folder_and_missing_job_are_distinguished_before_any_write() -> None:
    disabled, first = failed(Ci(job={"buildable": False}))
    folder, second = failed(Ci(job={"jobs": []}))
    with Stub(Reply(404)) as stub, pytest.raises(ToolchainError) as caught:
        Played(stub, {}).run()
    assert [disabled.kind, folder.kind, caught.value.kind] == ["conflict", "rejected", "not_found"]
    assert first.posts == second.posts == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wait_timeout": -1}, "wait_timeout"),
        (
            {"wait_timeout": 0},
            "wait_timeout is 0: set it to more than 0 seconds, or set wait=false",
        ),
        ({"poll_interval": 0}, "poll_interval"),
        ({"lookback": 0}, "lookback"),
        ({"console_lines": -1}, "console_lines"),
        ({"delay": -1}, "delay"),
        ({"job": "a//b"}, "job"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    options: dict[str, Any], words: str
) -> None:
    error, played = failed(Ci(), **options)
    assert error.kind == "invalid"
    assert words in error.message
    assert played.stub.seen == []


def test_rejected_repeated_parameter_suggests_a_solution() -> None:
    ci = Ci(trigger=Reply(500, "Illegal number of parameter values for VERSION: 2"))
    error, played = failed(ci.defines(VERSION), parameters={"VERSION": ["1", "2"]})
    assert (error.kind, error.status) == ("rejected", 500)
    assert "VERSION may accept only one value: set list_style to comma" in error.message
    assert "set list_style to comma" in played.warnings[0]
    assert played.posts[0].body == b"VERSION=1&VERSION=2"


def test_crumb_error_is_not_attributed_to_parameters() -> None:
    class Broken(Ci):
        def __call__(self, seen: Seen) -> Reply:
            return Reply(500, "boom") if "crumbIssuer" in seen.path else super().__call__(seen)

    error, played = failed(Broken())
    assert error.message == "requesting a crumb: the server returned 500: boom"
    assert played.posts == []


CUT = Reply(cut=True)
LOST = [CUT, Reply(502), Reply(504), Reply(201), Reply(200)]


@pytest.mark.parametrize("reply", LOST)
def test_lost_response_is_resolved_by_the_builds(reply: Reply) -> None:
    before = build(6, values={"VERSION": "1"}, user="builder")
    others = [
        build(9, values={"VERSION": "1"}, user="somebody"),
        build(8, None, values={"VERSION": "2"}, user="builder"),
    ]
    own = build(7, None, values={"VERSION": "1"}, user="Builder")
    ci = Ci(
        job={"builds": [before], "nextBuildNumber": 7},
        after={"builds": [*others, own, before]},
        trigger=reply,
    ).defines(VERSION)
    values, played = play(ci, parameters={"VERSION": "1"})
    assert (values["build"]["number"], values["changed"]) == (7, True)
    assert len(played.posts) == 1


def test_build_that_is_just_starting_is_not_triggered_again() -> None:
    before = build(6, values={"VERSION": "1"}, user="builder")
    own = build(7, values={"VERSION": "1"}, user="builder")
    first = {"builds": [before], "nextBuildNumber": 7, "inQueue": False}
    starts = {**first, "nextBuildNumber": 8}
    reply = Reply(503, headers={"Retry-After": "0"})
    ci = Ci(trigger=reply, jobs=[first, starts, {**starts, "builds": [own, before]}])
    for state in ci.jobs:
        state["property"] = [{"parameterDefinitions": [VERSION]}]
    with Stub(response=ci) as stub:
        played = Played(stub, {"parameters": {"VERSION": "1"}}, settings={"retries": 2})
        assert played.run()["build"]["number"] == 7
    assert len(played.posts) == 1


def test_lost_response_is_resolved_by_the_queue() -> None:
    item = {"id": 14, "actions": parameters({"VERSION": "1"})}
    ci = Ci(trigger=CUT, after={"queueItem": item, "inQueue": True}).defines(VERSION)
    values, played = play(ci, parameters={"VERSION": "1"})
    assert (values["queue_id"], values["build"]["number"]) == (14, 7)
    assert len(played.posts) == 1


def test_lost_response_without_build_is_an_error_and_not_resent() -> None:
    old = {"id": 14, "actions": parameters({"VERSION": "1"})}
    job = {"builds": [build(6, None, values={"VERSION": "1"})], "nextBuildNumber": 7}
    ci = Ci(job={**job, "queueItem": old}, trigger=CUT).defines(VERSION)
    error, played = failed(ci, parameters={"VERSION": "1"})
    assert error.kind == "network"
    assert error.outcome_unknown
    assert "not repeated" in error.message
    assert len(played.posts) == 1
    assert len(played.stub.seen) < 25


@pytest.mark.parametrize("place", ["/queue/item/14/", "queue/item/14", "//a.b/x/queue/item/14/"])
def test_queue_item_number_is_read_from_any_location(place: str) -> None:
    values, _ignored = play(Ci(trigger=Reply(201, headers={"Location": place})), wait=False)
    assert values["queue_id"] == 14


def test_redirect_to_job_counts_only_without_a_build() -> None:
    own = build(7, values={"VERSION": "1"}, user="builder")
    reply = Reply(302, headers={"Location": "http://inner/ci/job/folder/job/job/"})
    ci = Ci(trigger=reply, after={"builds": [own]}).defines(VERSION)
    values, played = play(ci, parameters={"VERSION": "1"})
    assert (values["build"]["number"], len(played.posts)) == (7, 1)


def bare(number: int, **more: Any) -> dict[str, Any]:
    """Return a build of a server that does not name queue items."""
    return {name: value for name, value in build(number, **more).items() if name != "queueId"}


def test_without_queue_item_only_a_new_build_counts() -> None:
    old = bare(6, values={"VERSION": "1"})
    new = bare(7, values={"VERSION": "1"})
    for trigger, items in ((Reply(201), [left(7)]), (created(14), [Reply(404)])):
        ci = Ci(job={"builds": [old]}, after={"builds": [new, old]}, trigger=trigger, items=items)
        values, played = play(ci.defines(VERSION), parameters={"VERSION": "1"})
        assert (values["build"]["number"], len(played.posts)) == (7, 1)


@pytest.mark.parametrize(("sent", "stored"), [(" 1.0 ", "1.0"), ("one\r\ntwo\r\n", "one\ntwo")])
def test_build_with_a_trimmed_value_is_found(sent: str, stored: str) -> None:
    """[ci-7]: the server stores another value than the task sends."""
    new = bare(7, values={"VERSION": stored})
    for trigger in (Reply(201), CUT):
        ci = Ci(job={"builds": []}, after={"builds": [new]}, trigger=trigger).defines(VERSION)
        values, played = play(ci, parameters={"VERSION": sent})
        assert (values["build"]["number"], len(played.posts)) == (7, 1)
    ci = Ci(job={"builds": [new]}).defines(VERSION)
    values, played = needed(ci, parameters={"VERSION": sent})
    assert (values["changed"], values["build"]["number"], played.posts) == (False, 7, [])


def test_unawaited_build_needs_no_number() -> None:
    values, played = play(Ci(trigger=Reply(201)), wait=False)
    assert values["changed"] is True
    assert (values["queue_id"], values["build"]["number"]) == (None, None)
    assert "does not contain the queue item" in played.warnings[0]
    error, _ignored = failed(Ci(trigger=Reply(201)))
    assert error.kind == "protocol"


def needed(ci: Ci, **options: Any) -> tuple[dict[str, Any], Played]:
    return play(ci, trigger="unless_successful", **options)


def test_successful_build_with_equal_parameters_is_unchanged() -> None:
    twin = build(3, values={"VERSION": "1", "PUBLISH": True})
    newer = [
        build(6, values={"VERSION": "2", "PUBLISH": True}),
        build(5, values={"VERSION": "1", "PUBLISH": False}),
        build(4, "FAILURE", values={"VERSION": "1", "PUBLISH": True}),
    ]
    ci = Ci(job={"builds": [*newer, twin, build(2)]}).defines(VERSION, PUBLISH)
    values, played = needed(ci, parameters={"VERSION": 1}, console_lines=2)
    assert (values["changed"], values["joined"], values["build"]["number"]) == (False, False, 3)
    assert values["console"] == ["two", "Finished: SUCCESS"]
    assert played.posts == []
    assert len(played.stub.seen) <= 2


BEGINNING = {"builds": [build(6, "FAILURE")], "inQueue": False, "nextBuildNumber": 8}


def test_build_between_queue_and_list_is_joined() -> None:
    begun = {**BEGINNING, "builds": [build(7, None), build(6, "FAILURE")]}
    values, played = needed(Ci(jobs=[BEGINNING, BEGINNING, begun]))
    assert (values["changed"], values["joined"], values["build"]["number"]) == (False, True, 7)
    assert played.posts == []


def test_deleted_newest_build_delays_the_start_shortly() -> None:
    values, played = needed(Ci(job=BEGINNING))
    assert (values["changed"], len(played.posts)) == (True, 1)
    assert sum(played.clock.pauses) < 5
    assert len(played.stub.seen) < 12
    _values, played = play(Ci(job=BEGINNING), wait=False)
    assert played.clock.pauses == []


@pytest.mark.parametrize("shown", [["number", "url"], ["id", "number", "duration", "timestamp"]])
def test_builds_listed_without_result_are_read_individually(shown: list[str]) -> None:
    twin = build(6, values={"VERSION": "1"})
    others = [build(8, None, values={"VERSION": "2"}), build(7, values={"VERSION": "2"})]
    listed = [{name: other.get(name) for name in shown} for other in [*others, twin, build(5)]]
    ci = Ci(job={"builds": listed}, running=[*others, twin]).defines(VERSION)
    values, played = needed(ci, parameters={"VERSION": "1"}, console_lines=0)
    assert (values["changed"], values["build"]["number"]) == (False, 6)
    assert len(played.stub.seen) <= 4


def test_lookback_is_enforced_on_longer_lists() -> None:
    builds = [build(2, values={"VERSION": "1"}), build(3, values={"VERSION": "2"}), None]
    ci = Ci(job={"builds": builds}).defines(VERSION)
    assert needed(ci, parameters={"VERSION": "1"}, lookback=1)[0]["changed"] is True


def test_numbers_and_booleans_may_be_strings() -> None:
    texts = {"number": "7", "queueId": "107", "duration": "1500", "timestamp": "1700000000000"}
    done = {**build(7), **texts, "building": "false"}
    values, _ignored = needed(Ci(job={"builds": [done]}))
    assert (values["changed"], values["queue_id"]) == (False, 107)
    assert (values["build"]["number"], values["build"]["duration"]) == (7, 1.5)
    assert values["build"]["timestamp"] == "2023-11-14T22:13:20.000Z"
    values, played = play(Ci(running=[{**done, "building": "true"}, done]))
    assert (values["build"]["number"], len(played.clock.pauses)) == (7, 2)


def test_queue_is_searched_if_the_job_omits_it() -> None:
    twin = {"id": 14, "task": {"url": "http://inner/ci/job/folder/job/job/"}, "actions": []}
    values, played = needed(Ci(queue=[twin]))
    assert (values["joined"], values["queue_id"], played.posts) == (True, 14, [])
    for reply in (400, 404, 405):
        assert needed(NoQueue(reply))[0]["joined"] is False


class NoQueue(Ci):
    """A server without a readable queue; `status` is the status of its response."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    def __call__(self, seen: Seen) -> Reply:
        listing = seen.path == "/base/queue/api/json"
        return Reply(self.status) if listing else super().__call__(seen)


def test_accepted_result_is_unchanged() -> None:
    ci = Ci(job={"builds": [build(3, "UNSTABLE")]})
    assert needed(ci, accept=["SUCCESS", "UNSTABLE"])[0]["changed"] is False
    assert needed(Ci(job={"builds": [build(3, "UNSTABLE")]}))[0]["changed"] is True


def test_unfinished_build_with_result_is_awaited() -> None:
    at_work = build(7, "SUCCESS", inProgress=True)
    ci = Ci(job={"builds": [at_work]}, running=[at_work, build(7, inProgress=False)])
    values, played = needed(ci)
    assert (values["changed"], values["joined"], values["build"]["number"]) == (False, True, 7)
    assert len(played.clock.pauses) == 1


def test_running_equal_build_is_joined_and_its_failure_reported() -> None:
    ci = Ci(job={"builds": [build(7, None)]}, running=[build(7, None), build(7, "FAILURE")])
    error, played = failed(ci, trigger="unless_successful")
    assert error.kind == "failed"
    assert (error.result["changed"], error.result["joined"]) == (False, True)
    assert played.posts == []


@pytest.mark.parametrize("listed", [True, False])
def test_queued_equal_build_is_joined(listed: bool) -> None:
    twin = {
        "id": 14,
        "task": {"url": "http://inner/ci/job/folder/job/job/"},
        "actions": parameters({"VERSION": "1"}),
    }
    other = {**twin, "id": 15, "actions": parameters({"VERSION": "2"})}
    stranger = {**twin, "id": 16, "task": {"url": "http://inner/ci/job/job/"}}
    queue = [stranger, other, twin] if listed else None
    job = {"inQueue": True, "queueItem": other if listed else twin}
    values, played = needed(Ci(job=job, queue=queue).defines(VERSION), parameters={"VERSION": "1"})
    assert (values["changed"], values["joined"], values["queue_id"]) == (False, True, 14)
    assert played.posts == []


def test_running_equal_build_is_returned_without_wait() -> None:
    values, _ignored = needed(Ci(job={"builds": [build(7, None)]}), wait=False)
    assert (values["changed"], values["joined"]) == (False, True)
    assert (values["build"]["number"], values["build"]["result"]) == (7, None)


@pytest.mark.parametrize(("lookback", "name"), [(100, "builds"), (101, "allBuilds")])
def test_more_than_one_hundred_builds_are_requested_by_name(lookback: int, name: str) -> None:
    _ignored, played = needed(Ci(), lookback=lookback)
    tree = parse_qs(urlsplit(played.stub.seen[0].target).query)["tree"][0]
    assert f",{name}[" in tree
    assert tree.endswith(f"{{0,{lookback}}}")


def test_passwords_are_not_compared_and_never_shown() -> None:
    secret = definition("KEY", "Password")
    twin = build(3, values={"VERSION": "0.0.0", "KEY": ...})
    ci = Ci(job={"builds": [twin]}).defines(VERSION, secret)
    values, played = needed(ci, parameters={"KEY": "geheim"})
    assert values["changed"] is False
    assert values["build"]["parameters"] == {"VERSION": "0.0.0", "KEY": "***"}
    assert "KEY" in played.warnings[0]
    assert played.hidden == ["geheim"]


def test_secret_is_masked_in_the_log() -> None:
    ci = Ci(running=[build(7, None), build(7)], log=b"using geheim\n")
    ci.defines(definition("KEY", "Password"))
    _ignored, played = play(ci, parameters={"KEY": "geheim"})
    assert any("using ***" in line for line in played.lines)
    assert "geheim" not in str(played.lines)


def test_parameter_named_like_a_secret_is_masked_without_types() -> None:
    running = [build(7, None), build(7)]
    ci = Ci(job={"property": None}, running=running, log=b"using geheim\n")
    _ignored, played = play(ci, parameters={"PASSWORD": "geheim"})
    assert any("using ***" in line for line in played.lines)
    assert "geheim" not in str(played.lines)


def test_system_log_contains_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **more: logged.append(text))
    with Stub(response=Ci().defines(definition("KEY", "Password"))) as stub:
        url = stub.url.replace("://", "://builder:in-the-url@")
        arguments = {"url": url, "job": "folder/job", "parameters": {"KEY": "geheim"}}
        with given_to_a_module(arguments), pytest.raises(SystemExit):
            ci_job_build.main()
    (line,) = logged
    assert "job=folder/job" in line
    assert "geheim" not in line
    assert "in-the-url" not in line


def test_unsuccessful_build_is_an_error_with_its_details() -> None:
    log = b"compiling\nERROR: tests failed\nFinished: FAILURE\n"
    error, _ignored = failed(Ci(running=[build(7, "FAILURE")], log=log))
    assert (error.kind, error.detail) == ("failed", "ERROR: tests failed")
    assert "#7 ended with FAILURE instead of SUCCESS" in error.message
    assert (error.result["changed"], error.result["build"]["result"]) == (True, "FAILURE")
    assert error.result["console"][-1] == "Finished: FAILURE"


class Stoppable(Ci):
    """A server with a build that runs until it is stopped, and a queue item that can be cancelled."""

    stop = Reply(302, headers={"Location": "."})
    cancel = Reply(204)

    def __call__(self, seen: Seen) -> Reply:
        if seen.path.endswith("/stop"):
            self.running = [build(7, "ABORTED")]
            return self.stop
        if seen.path.endswith("/cancelItem"):
            return self.cancel
        return super().__call__(seen)


def test_timed_out_build_continues_unless_stop_is_requested() -> None:
    error, played = failed(Stoppable(running=[build(7, None)]), wait_timeout=10.0)
    assert (error.kind, len(played.posts)) == ("timeout", 1)
    assert "is running" in error.message
    ci = Stoppable(running=[build(7, None)])
    error, played = failed(ci, wait_timeout=10.0, stop_on_timeout=True)
    assert (error.kind, error.result["build"]["result"]) == ("timeout", "ABORTED")
    assert "build #7 was stopped" in error.message
    assert "wait_timeout (10 s) expired" in error.message
    assert [post.path for post in played.posts[1:]] == ["/base/job/folder/job/job/7/stop"]


@pytest.mark.parametrize("status", [204, 302])
def test_timed_out_queue_item_is_cancelled(status: int) -> None:
    ci = Stoppable(items=[left(None)])
    ci.cancel = Reply(status)
    error, played = failed(ci, wait_timeout=10.0, stop_on_timeout=True)
    assert "queue item 14 was cancelled" in error.message
    assert played.posts[1].target == "/base/queue/cancelItem?id=14"


@pytest.mark.parametrize("status", [404, 422])
def test_item_that_just_left_the_queue_is_stopped_as_a_build(status: int) -> None:
    ci = Stoppable(items=[left(None), left(None), left(7)])
    ci.cancel, ci.running = Reply(status), [build(7, None)]
    error, played = failed(ci, wait_timeout=0.7, stop_on_timeout=True)
    assert "build #7 was stopped" in error.message
    assert [post.path.rpartition("/")[2] for post in played.posts] == [
        "build",
        "cancelItem",
        "stop",
    ]


def test_failed_stop_is_reported() -> None:
    ci = Stoppable(items=[left(None)])
    ci.cancel = Reply(403, headers={"X-Required-Permission": "hudson.model.Item.Cancel"})
    error, _ignored = failed(ci, wait_timeout=5.0, stop_on_timeout=True)
    assert error.kind == "timeout"
    assert "is still in the queue" in error.message
    assert "could not be stopped" in error.message
    assert "hudson.model.Item.Cancel" in error.message


@pytest.mark.parametrize("status", [201, 303])
def test_only_a_started_build_is_stopped(status: int) -> None:
    ci = Stoppable(trigger=created(14, status), running=[build(7, None)])
    _error, played = failed(ci, wait_timeout=10.0, stop_on_timeout=True)
    assert len(played.posts) == (2 if status == 201 else 1)
    ci = Stoppable(job={"builds": [build(7, None)]}, running=[build(7, None)])
    options = {"trigger": "unless_successful", "wait_timeout": 10.0, "stop_on_timeout": True}
    error, played = failed(ci, **options)
    assert (error.kind, played.posts) == ("timeout", [])


@pytest.mark.parametrize("stop", [True, False])
def test_interrupt_stops_a_started_build_on_request(stop: bool) -> None:
    with Stub(response=Stoppable(running=[build(7, None)])) as stub:
        played = Played(stub, {"stop_on_timeout": stop})
        pauses: list[float] = []

        def interrupted(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                raise KeyboardInterrupt

        played.clock.sleep = interrupted  # type: ignore[method-assign]
        message = "asked to stop" if stop else "is running"
        with pytest.raises(ToolchainError, match=rf"interrupted; .*build #7 .*{message}"):
            played.run()
    assert len(played.posts) == 1 + int(stop)


def test_file_parameter_is_rejected_but_may_be_omitted() -> None:
    file = definition("UPLOAD", "File")
    error, played = failed(Ci().defines(VERSION, file), parameters={"UPLOAD": "/etc/hosts"})
    assert (error.kind, played.posts) == ("rejected", [])
    assert "'UPLOAD' is a file" in error.message
    values, played = play(Ci().defines(VERSION, file), parameters={"VERSION": "1"})
    assert (values["changed"], played.posts[0].form) == (True, {"VERSION": "1"})


def test_unresponsive_server_does_not_extend_the_timeout() -> None:
    class Silent(Ci):
        def __call__(self, seen: Seen) -> Reply:
            return Reply(hold=True) if "queue/item" in seen.path else super().__call__(seen)

    with Stub(response=Silent()) as stub:
        played = Played(stub, {"wait_timeout": 1.5, "poll_interval": 0.1}, settings={"retries": 9})
        options = options_of(job_build.CiJobBuildOptions, **{**OPTIONS, **played.options})
        with pytest.raises(ToolchainError) as caught:
            played.run(lambda task: job_build.CiJobBuildOperation(task, options))
    assert caught.value.kind == "timeout"
    assert len([seen for seen in stub.seen if "queue/item" in seen.path]) == 1


def test_interrupt_reports_the_running_build() -> None:
    with Stub(response=Ci(items=[left(None)])) as stub:
        played = Played(stub, {})

        def interrupted(seconds: float) -> None:
            raise KeyboardInterrupt

        played.clock.sleep = interrupted  # type: ignore[method-assign]
        with pytest.raises(ToolchainError, match=r"interrupted; .*queue item 14") as caught:
            played.run()
    assert caught.value.result["changed"] is True


WAITING = {**build(7, None), "actions": [waiting("Deploy", TARGET="StringParameterDefinition")]}


@pytest.mark.parametrize("on_input", ["fail", "wait"])
@pytest.mark.parametrize("many", [False, True])
def test_build_waiting_for_input_is_an_error(on_input: str, many: bool) -> None:
    server = Ci(job={"property": [{}]}, running=[WAITING])
    given: dict[str, Any] = {"job": None, "builds": [{"job": "folder/job"}]} if many else {}
    with Stub(response=server) as stub:
        played = Played(stub, {"on_input": on_input, **given})
        with pytest.raises(ToolchainError) as failure:
            played.run()
    error = failure.value
    assert error.kind == "waiting"
    assert "build #7 waits for the input 'Deploy?' (id Deploy; parameters TARGET)" in error.message
    assert ("wait_timeout (60 s) expired" in error.message) is (on_input == "wait")
    values = error.result["builds"][0] if many else error.result
    assert values["build"]["input"] == {
        "id": "Deploy",
        "message": "Deploy?",
        "ok": "Proceed",
        "submitter": None,
        "parameters": [{"name": "TARGET", "type": "StringParameterDefinition"}],
    }
    assert error.result["changed"] is True


def test_build_continues_after_its_input() -> None:
    server = Ci(job={"property": [{}]}, running=[WAITING, build(7)])
    with Stub(response=server) as stub:
        values = Played(stub, {"on_input": "wait"}).run()
    assert (values["build"]["result"], values["build"]["input"]) == ("SUCCESS", None)
