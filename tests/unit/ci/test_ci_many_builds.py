# SPDX-License-Identifier: GPL-3.0-or-later
"""Test many builds in a task of `ci_job_build`: started in parallel, followed together, with
separate results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.ci.server import Played, build, created, definition
from tests.unit.stub import Reply, Seen, Stub

VERSION = definition("VERSION", "String", "0")


@dataclass
class Farm:
    """A server with jobs `a`, `b`, ... that have the parameter VERSION.

    A build starts with the first request for its job after the trigger, or never (`stuck`
    versions). It finishes after `looks` more requests, with the result that `results` has for its
    version. `lost` maps the number of a trigger with a lost response to whether the server acts on
    it. An `old` server does not report the queue item into which it folds a trigger.
    """

    looks: int = 2
    results: dict[str, str] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    down: list[str] = field(default_factory=list)
    down_status: int = 503
    odd: set[str] = field(default_factory=set)
    folds: bool = True
    unnamed: bool = False
    old: bool = False
    lost: dict[int, bool] = field(default_factory=dict)
    lost_as: Reply = field(default_factory=lambda: Reply(cut=True))
    triggers: int = 0
    builds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    queue: list[dict[str, Any]] = field(default_factory=list)
    items: int = 0

    def __call__(self, seen: Seen) -> Reply:
        path = urlsplit(seen.target).path.removeprefix("/base")
        if path.startswith("/crumbIssuer/"):
            return Reply(404)
        if path == "/login":
            return Reply(503)
        if path == "/queue/api/json":
            return Reply(body={"items": self.queue})
        item = re.fullmatch(r"/queue/item/(\d+)/api/json", path)
        if item is not None:
            gone = int(item[1]) in self.cancelled
            return Reply(body={"id": int(item[1]), "cancelled": True}) if gone else Reply(404)
        if path.startswith("/queue/cancelItem"):
            return Reply(204)
        name = path.split("/")[2]
        if seen.method == "POST":
            return self.post(seen, name)
        if path.endswith("/logText/progressiveText"):
            text = f"log of {path}\n".encode()
            return Reply(body=text, headers={"X-Text-Size": str(len(text))})
        single = re.fullmatch(r"/job/./(\d+)/api/json", path)
        if single is not None:
            return Reply(body=self.of(name)[-int(single[1])])
        return self.look(seen, name)

    def post(self, seen: Seen, name: str) -> Reply:
        if seen.path.endswith("/stop"):
            number = int(seen.path.split("/")[-2])
            self.of(name)[-number].update(building=False, result="ABORTED")
            return Reply(302, headers={"Location": "."})
        version = seen.form.get("VERSION", "0")
        if version in self.refused:
            return Reply(500, "no")
        self.triggers += 1
        if not self.lost.get(self.triggers, True):
            return self.lost_as
        response = self.queued(name, version)
        if self.triggers in self.lost:
            return self.lost_as
        return Reply(201) if self.unnamed else response

    def queued(self, name: str, version: str) -> Reply:
        same = [entry for entry in self.queue if entry["key"] == (name, version)]
        if same and self.old:
            return Reply(302, headers={"Location": f"/base/job/{name}/"})
        if same and self.folds:
            return created(same[0]["id"], status=303)
        self.items += 1
        self.queue.append(
            {"id": self.items, "key": (name, version), "why": "soon", "version": version}
        )
        return created(self.items)

    def of(self, name: str) -> list[dict[str, Any]]:
        return self.builds.setdefault(name, [])

    def look(self, seen: Seen, name: str) -> Reply:
        if name in self.missing:
            return Reply(404)
        waited_for = query(seen)["tree"][0].startswith("queueItem")
        if name in self.odd and waited_for:
            return Reply(200, "<html>a page</html>")
        if name in self.down and waited_for:
            self.down.remove(name)
            return Reply(self.down_status)
        for record in self.of(name):
            if record["building"]:
                record["left"] -= 1
                if record["left"] <= 0:
                    result = self.results.get(record["version"], "SUCCESS")
                    record.update(building=False, result=result)
        self.start(name)
        waiting = [entry for entry in self.queue if entry["key"][0] == name]
        body: dict[str, Any] = {
            "buildable": True,
            "property": [{"parameterDefinitions": [VERSION]}],
            "builds": self.of(name),
            "nextBuildNumber": len(self.of(name)) + 1,
            "inQueue": bool(waiting),
        }
        if waiting:
            body["queueItem"] = waiting[0]
        return Reply(body=body)

    def start(self, name: str) -> None:
        for entry in list(self.queue):
            if entry["key"][0] == name and entry["version"] not in self.stuck:
                self.queue.remove(entry)
                if entry["id"] in self.cancelled:
                    continue
                number = len(self.of(name)) + 1
                values = {"VERSION": entry["version"]}
                one = build(number, None, queueId=entry["id"], values=values)
                self.of(name).insert(0, {**one, "left": self.looks, "version": entry["version"]})


def query(seen: Seen) -> Mapping[str, list[str]]:
    return parse_qs(urlsplit(seen.target).query)


def wish(job: str, version: object, **more: Any) -> dict[str, Any]:
    """Return an entry of `builds`."""
    return {"job": job, "parameters": {"VERSION": version}, **more}


def play(farm: Farm, *wishes: dict[str, Any], **options: Any) -> tuple[dict[str, Any], Played]:
    with Stub(response=farm) as stub:
        read_only, settings = options.pop("read_only", False), options.pop("settings", {})
        params = {"job": None, "builds": [dict(record) for record in wishes], **options}
        played = Played(stub, params, read_only, settings=settings)
        return played.run(), played


def failed(farm: Farm, *wishes: dict[str, Any], **options: Any) -> tuple[ToolchainError, Played]:
    with Stub(response=farm) as stub:
        read_only = options.pop("read_only", False)
        played = Played(
            stub, {"job": None, "builds": [dict(record) for record in wishes], **options}, read_only
        )
        with pytest.raises(ToolchainError) as caught:
            played.run()
        return caught.value, played


def column(values: Mapping[str, Any], name: str) -> list[Any]:
    return [row[name] for row in values["builds"]]


def results(values: Mapping[str, Any]) -> list[Any]:
    return [row["build"]["result"] for row in values["builds"]]


def test_builds_of_one_job_take_one_request_per_poll() -> None:
    wishes = [wish("a", number) for number in range(20)]
    values, played = play(Farm(looks=3), *wishes, console_lines=0)
    assert results(values) == ["SUCCESS"] * 20
    assert column(values, "ok") == [True] * 20
    shown = [row["build"]["parameters"]["VERSION"] for row in values["builds"]]
    assert shown == [str(number) for number in range(20)]
    reads = [seen for seen in played.stub.seen if seen.method == "GET"]
    # the job before, then one state request per pause; the crumb is requested once
    assert len(played.posts) == 20
    assert len(reads) == 1 + 1 + len(played.clock.pauses)


def test_failed_build_does_not_hide_the_others() -> None:
    farm = Farm(results={"2": "FAILURE"}, refused={"3"}, missing={"c"}, cancelled={4})
    wishes = [wish("a", 1), wish("a", 2), wish("b", 3), wish("c", 4), wish("b", 5)]
    wishes += [wish("a", 2, accept=["FAILURE"], list_style="comma"), wish("b", 6)]
    error, played = failed(farm, *wishes, parallel=1)
    assert error.kind == "failed"
    assert error.message.startswith("4 of 7 builds failed, the first: ")
    values = error.result
    assert values["changed"] is True
    assert column(values, "ok") == [True, False, False, False, True, True, False]
    kinds = [None if row["error"] is None else row["error"]["kind"] for row in values["builds"]]
    assert kinds == [None, "failed", "server", "not_found", None, None, "failed"]
    assert "ended with FAILURE" in values["builds"][1]["msg"]
    assert "was cancelled" in values["builds"][6]["msg"]
    assert values["builds"][1]["console"] == ["log of /job/a/2/logText/progressiveText"]
    # the server folds the sixth item into the second
    assert values["builds"][5]["joined"] is True
    assert len(played.posts) == 6


def test_equal_error_kinds_become_the_kind_of_the_task() -> None:
    error, played = failed(Farm(missing={"a", "b"}), wish("a", 1), wish("b", 1))
    assert (error.kind, error.result["changed"], played.posts) == ("not_found", False, [])


def test_check_mode_predicts_and_fails_like_a_run() -> None:
    values, played = play(Farm(), wish("a", 1), wish("b", 2), read_only=True)
    assert values["changed"] is True
    assert column(values, "queue_id") == [None, None]
    assert [row["build"]["parameters"] for row in values["builds"]] == [
        {"VERSION": "1"},
        {"VERSION": "2"},
    ]
    assert played.posts == []
    error, played = failed(Farm(missing={"b"}), wish("a", 1), wish("b", 2), read_only=True)
    assert (error.kind, error.result["changed"]) == ("not_found", True)
    assert played.posts == []


def test_only_missing_builds_are_started() -> None:
    farm = Farm(looks=9)
    done = {**build(1, values={"VERSION": "1"}), "version": "1"}
    runs = {**build(2, None, values={"VERSION": "2"}), "version": "2", "left": 3}
    farm.builds["a"] = [runs, done]
    wishes = [wish("a", 1), wish("a", 2), wish("a", 3), wish("a", 3)]
    values, played = play(farm, *wishes, trigger="unless_successful", read_only=True)
    assert values["changed"] is True
    assert [row["build"]["number"] for row in values["builds"]] == [1, 2, None, None]
    assert column(values, "joined") == [False, True, False, True]
    values, played = play(farm, *wishes, trigger="unless_successful")
    assert values["changed"] is True
    assert results(values) == ["SUCCESS"] * 4
    assert column(values, "joined") == [False, True, False, True]
    assert [row["build"]["number"] for row in values["builds"]] == [1, 2, 3, 3]
    assert [post.form for post in played.posts] == [{"VERSION": "3"}]
    values, played = play(farm, *wishes, trigger="unless_successful")
    assert (values["changed"], results(values)) == (False, ["SUCCESS"] * 4)
    assert played.posts == []


@pytest.mark.parametrize("read_only", [True, False])
def test_a_failed_awaited_build_has_its_log_next_to_new_builds(read_only: bool) -> None:
    farm = Farm()
    farm.builds["a"] = [{**build(1, "FAILURE", queueId=90), "version": "1"}]
    awaited = {"job": "a", "state": "finished", "build": "1"}
    error, played = failed(farm, awaited, wish("b", 1), read_only=read_only)
    line = "log of /job/a/1/logText/progressiveText"
    assert (error.result["changed"], column(error.result, "ok")) == (True, [False, True])
    assert error.result["builds"][0]["console"] == [line]
    assert error.result["builds"][0]["msg"].endswith(f": {line}")
    assert sum("/job/a/1/logText" in seen.target for seen in played.stub.seen) == 1


@pytest.mark.parametrize(("read_only", "result"), [(True, None), (False, "SUCCESS")])
def test_running_equal_build_is_awaited_outside_of_check_mode(
    read_only: bool, result: str | None
) -> None:
    farm = Farm()
    farm.builds["a"] = [{**build(1, None, values={"VERSION": "1"}), "version": "1", "left": 4}]
    values, played = play(farm, wish("a", 1), trigger="unless_successful", read_only=read_only)
    assert (values["changed"], results(values), column(values, "joined")) == (
        False,
        [result],
        [True],
    )
    assert column(values, "build")[0]["number"] == 1
    assert (played.clock.pauses == []) is read_only


def test_queue_items_are_returned_without_wait() -> None:
    values, played = play(Farm(), wish("a", 1), wish("b", 2), wait=False, parallel=1)
    assert column(values, "queue_id") == [1, 2]
    assert played.clock.pauses == []


def test_timeout_distinguishes_queued_from_running_builds() -> None:
    farm = Farm(looks=1, stuck={"2", "3"})
    error, played = failed(
        farm, wish("a", 1), wish("a", 2), wish("a", 3), wait_timeout=30.0, poll_interval=10.0
    )
    assert error.kind == "timeout"
    words = [row["msg"] for row in error.result["builds"]]
    assert words[0] is None
    assert "queue item" in words[1]
    assert "wait_timeout (30 s) expired" in words[2]
    assert "a #1: SUCCESS (1 of 3 done)" in played.lines
    assert any("1 of 3 builds done, 0 running, 2 in the queue (soon)" in x for x in played.lines)


def test_timed_out_builds_are_stopped_on_request() -> None:
    farm = Farm(looks=99, stuck={"2"})
    error, played = failed(
        farm, wish("a", 1), wish("a", 2), wait_timeout=10.0, stop_on_timeout=True, parallel=1
    )
    first, second = error.result["builds"]
    assert first["build"]["result"] == "ABORTED"
    assert "build #1 was stopped" in first["msg"]
    assert "queue item 2 was cancelled" in second["msg"]
    paths = [urlsplit(post.target).path for post in played.posts[2:]]
    assert paths == ["/base/job/a/1/stop", "/base/queue/cancelItem"]


@pytest.mark.parametrize("status", [503, 401])
def test_temporarily_unavailable_server_is_awaited(status: int) -> None:
    values, played = play(Farm(down=["a", "a"], down_status=status), wish("a", 1))
    assert results(values) == ["SUCCESS"]
    assert "the server does not respond; still waiting" in played.lines


def test_permanent_error_ends_waiting_for_its_job_only() -> None:
    error, _played = failed(Farm(odd={"a"}), wish("a", 1), wish("b", 1), wish("a", 2))
    kinds = [None if row["ok"] else row["error"]["kind"] for row in error.result["builds"]]
    assert kinds == ["protocol", None, "protocol"]


def test_interrupt_reports_every_unfinished_build() -> None:
    with Stub(response=Farm(looks=99)) as stub:
        played = Played(stub, {"job": None, "builds": [wish("a", 1), wish("b", 2)]})

        def interrupted(seconds: float) -> None:
            raise KeyboardInterrupt

        played.clock.sleep = interrupted  # type: ignore[method-assign]
        with pytest.raises(
            ToolchainError, match="2 of 2 builds failed, the first: interrupted"
        ) as caught:
            played.run()
    assert caught.value.result["changed"] is True
    assert all("is still in the queue" in row["msg"] for row in caught.value.result["builds"])


def test_interrupt_stops_a_shared_build_once() -> None:
    with Stub(response=Farm(looks=99)) as stub:
        options = {"trigger": "unless_successful", "stop_on_timeout": True}
        played = Played(stub, {"job": None, "builds": [wish("a", 1), wish("a", 1)], **options})
        sleep = played.clock.sleep

        def interrupted(seconds: float) -> None:
            if any("1 running" in line for line in played.lines):
                raise KeyboardInterrupt
            sleep(seconds)

        played.clock.sleep = interrupted  # type: ignore[method-assign]
        with pytest.raises(ToolchainError, match=r"interrupted; .* was asked to stop"):
            played.run()
    assert [post.path.rpartition("/")[2] for post in played.posts] == [
        "buildWithParameters",
        "stop",
    ]


def test_interrupt_does_not_hide_the_result_of_an_ended_build() -> None:
    with Stub(response=Farm(results={"1": "FAILURE"}, stuck={"2"})) as stub:
        played = Played(stub, {"job": None, "builds": [wish("a", 1), wish("b", 2)]})
        sleep = played.clock.sleep

        def interrupted(seconds: float) -> None:
            if any("a #1: FAILURE" in line for line in played.lines):
                raise KeyboardInterrupt
            sleep(seconds)

        played.clock.sleep = interrupted  # type: ignore[method-assign]
        with pytest.raises(ToolchainError) as caught:
            played.run()
    first, second = caught.value.result["builds"]
    assert "ended with FAILURE" in first["msg"]
    assert second["msg"].startswith("interrupted; ")


def test_similar_builds_are_not_confused() -> None:
    """Verify this for builds that differ only in number, without named queue items."""
    values, played = play(Farm(folds=False, unnamed=True), *[wish("a", 1)] * 3)
    assert sorted(row["build"]["number"] for row in values["builds"]) == [1, 2, 3]
    assert len(set(column(values, "queue_id"))) == 3
    assert len(played.posts) == 3


@pytest.mark.parametrize("parallel", [1, 4])
def test_lost_response_is_not_resolved_by_the_build_of_another_entry(parallel: int) -> None:
    farm = Farm(folds=False, lost={2: False})
    error, played = failed(farm, *[wish("a", 1)] * 4, parallel=parallel)
    assert (error.kind, len(played.posts)) == ("network", 4)
    good = [row for row in error.result["builds"] if row["ok"]]
    assert sorted(row["build"]["number"] for row in good) == [1, 2, 3]
    assert "no matching build was found" in error.message


@pytest.mark.parametrize("lost", [{1: True}, {2: True}, {1: True, 3: True}])
def test_lost_response_is_resolved_next_to_similar_builds(lost: dict[int, bool]) -> None:
    values, played = play(Farm(folds=False, lost=lost), *[wish("a", 1)] * 4)
    assert sorted(row["build"]["number"] for row in values["builds"]) == [1, 2, 3, 4]
    assert len(played.posts) == 4


def test_merged_build_is_found_by_every_entry() -> None:
    values, _played = play(Farm(lost={1: True}), wish("a", 1), wish("a", 1), wish("a", 1))
    assert {row["build"]["number"] for row in values["builds"]} == {1}
    assert column(values, "joined") == [False, True, True]


@pytest.mark.parametrize("acted", [True, False])
def test_rejected_trigger_is_retried_once(acted: bool) -> None:
    farm = Farm(lost={1: acted}, lost_as=Reply(429))
    wishes = [wish("a", 1), wish("a", 2)]
    settings = {"retries": 1, "retry_max_wait": 0}
    values, played = play(farm, *wishes, wait=False, settings=settings)
    assert column(values, "joined") == [False, False]
    assert len(played.posts) == (2 if acted else 3)
    assert farm.items == 2


def test_equal_rejected_triggers_are_not_confused() -> None:
    farm = Farm(lost={1: False}, lost_as=Reply(429), folds=False)
    error, played = failed(farm, wish("a", 1), wish("a", 1), wait=False)
    assert len(played.posts) == 2
    assert column(error.result, "ok") == [False, True]
    assert "whether it was done is not known" in error.message


def test_old_server_merges_builds_silently() -> None:
    values, _played = play(Farm(old=True), wish("a", 1), wish("a", 1))
    assert [row["build"]["number"] for row in values["builds"]] == [1, 1]


def test_many_other_builds_do_not_hide_the_started_build() -> None:
    farm = Farm(looks=2)
    values, played = play(farm, wish("a", 1))
    trees = [query(seen)["tree"][0] for seen in played.stub.seen if "tree=" in seen.target]
    assert ",builds[" in trees[1]
    assert trees[1].endswith("{0,11}")
    assert results(values) == ["SUCCESS"]


def test_parallel_must_be_positive() -> None:
    error, played = failed(Farm(), wish("a", 1), parallel=0)
    assert (error.kind, played.stub.seen) == ("invalid", [])


def test_entries_are_compared_by_the_sent_values() -> None:
    wishes = [wish("a", "0"), wish("a", None), wish("a", 0)]
    values, played = play(Farm(), *wishes, trigger="unless_successful", console_lines=0)
    assert len(played.posts) == 1
    assert column(values, "joined") == [False, True, True]
