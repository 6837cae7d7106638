# SPDX-License-Identifier: GPL-3.0-or-later
"""Test following a build from the queue to its end, with all possible disturbances."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds.build_log import (
    BuildLog,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.waiting import Outage
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.ci.server import Ci, Played, build, definition, left, parameters
from tests.unit.ci.tasks import Clock
from tests.unit.stub import Reply, Seen, Stub, transport_to

WAITING = {"id": 14, "why": "In the quiet period. Expires in 4.9 sec"}
GONE = Reply(404)


def play(ci: Ci, **options: Any) -> tuple[dict[str, Any], Played]:
    with Stub(response=ci) as stub:
        played = Played(stub, options)
        return played.run(), played


def failed(ci: Ci, **options: Any) -> tuple[ToolchainError, Played]:
    with Stub(response=ci) as stub:
        played = Played(stub, options)
        with pytest.raises(ToolchainError) as caught:
            played.run()
        return caught.value, played


def test_queue_item_leads_to_the_build_number() -> None:
    items = [WAITING, {"id": 14, "why": "Blocked", "stuck": True}, left(None), GONE, left(7)]
    values, played = play(Ci(items=items))
    assert values["build"]["number"] == 7
    assert played.lines[:2] == [
        "folder/job: queued as item 14: In the quiet period. Expires in 4.9 sec",
        "folder/job: queued as item 14 (stuck): Blocked",
    ]


def test_line_differing_only_in_numbers_is_shown_once() -> None:
    items = [{"id": 14, "why": f"Expires in {n}.5 sec"} for n in (3, 2, 1)]
    _ignored, played = play(Ci(items=[*items, left(7)]))
    assert len([line for line in played.lines if "queued" in line]) == 1


def test_pauses_start_short_and_grow_to_the_interval() -> None:
    _ignored, played = play(Ci(items=[WAITING] * 9 + [left(7)]), poll_interval=2)
    pauses = played.clock.pauses
    assert pauses[0] == 0.5
    assert pauses == sorted(pauses)
    assert max(pauses) == pauses[-1] == 2


def test_cancelled_item_is_an_error() -> None:
    error, _ignored = failed(Ci(items=[WAITING, {"id": 14, "cancelled": True, "executable": None}]))
    assert error.kind == "failed"
    assert "queue item 14 was cancelled" in error.message
    assert error.result["changed"] is True


def test_vanished_item_is_found_by_id_among_the_builds() -> None:
    after = {"builds": [build(9), build(8, queueId=14), build(7)]}
    values, _ignored = play(Ci(items=[GONE], after=after, running=[build(8, queueId=14)]))
    assert (values["build"]["number"], values["queue_id"]) == (8, 14)


def test_hidden_item_waits_as_long_as_its_job_is_queued() -> None:
    ci = Ci(items=[GONE], after={"inQueue": True, "queueItem": WAITING})
    error, played = failed(ci, wait_timeout=40.0)
    assert error.kind == "timeout"
    assert "queue item 14 is still in the queue (In the quiet period" in error.message
    assert played.clock.time == pytest.approx(40)


def test_vanished_item_without_build_is_an_error() -> None:
    error, played = failed(Ci(items=[GONE]))
    assert error.kind == "failed"
    assert "disappeared without starting a build" in error.message
    assert 15 <= played.clock.time < 30


def test_vanished_build_is_an_error() -> None:
    error, _ignored = failed(Ci(running=[build(7, None), GONE]))
    assert "build #7 is no longer on the server" in error.message
    assert error.result["build"]["number"] == 7


def test_server_restart_is_awaited() -> None:
    away = [Reply(503, "<html><h1>Please wait while Jenkins is restarting</h1>"), Reply(cut=True)]
    ci = Ci(items=[*away, left(7)], running=[build(7, None), *away, Reply(502), build(7)])
    values, played = play(ci)
    assert values["build"]["result"] == "SUCCESS"
    assert any("does not respond" in line for line in played.lines)
    assert len(played.posts) == 1


def test_rejected_login_of_a_starting_server_is_awaited() -> None:
    starting = Reply(503, "<html><h1>Please wait while Jenkins is getting ready to work</h1>")
    ci = Ci(items=[Reply(401), left(7)], running=[Reply(401), build(7)], login_page=starting)
    values, played = play(ci)
    assert values["build"]["result"] == "SUCCESS"
    assert len(played.posts) == 1


@pytest.mark.parametrize(("login_page", "passes"), [(Reply(503), True), (Reply(200), False)])
def test_login_may_be_rejected_for_longer_while_the_server_starts(
    login_page: Reply, passes: bool
) -> None:
    clock = Clock()
    with Stub(response=lambda seen: login_page) as stub:
        outage = Outage(transport_to(stub.url), lambda: clock.time)
        rejected = ToolchainError("auth", "rejected", status=401)
        assert outage.passes(rejected)
        clock.sleep(60)
        assert outage.passes(rejected) is passes


def test_rejected_login_of_a_server_that_shuts_down_is_awaited() -> None:
    ci = Ci(items=[Reply(401), Reply(503), left(7)], running=[build(7, None), Reply(401), build(7)])
    values, played = play(ci)
    assert values["build"]["result"] == "SUCCESS"
    assert len(played.posts) == 1


def test_permanently_rejected_login_ends_waiting() -> None:
    error, played = failed(Ci(running=[build(7, None), Reply(401)]))
    assert error.kind == "auth"
    assert 15 <= played.clock.time < 30


@pytest.mark.parametrize("number", [None, 8])
def test_queue_item_with_another_id_after_a_restart_is_found(number: int | None) -> None:
    values = {"V": "1"}
    task = {"url": "/job/folder/job/job"}
    item = {"id": 3, "why": "x", "task": task, "actions": parameters(values)}
    # the old id belongs to somebody else's build of the same job
    other = Reply(body=left(9), headers={"X-Jenkins-Session": "b"})
    earlier = build(6, queueId=14, values=values)
    ours = [] if number is None else [build(8, queueId=3, values=values)]
    ci = Ci(
        items=[other if number is None else GONE, left(8)],
        job={"builds": [earlier], "nextBuildNumber": 7},
        after={"builds": [build(9, values={"V": "2"}), *ours, earlier], "inQueue": True},
        running=[build(8, queueId=3, values=values)],
        queue=[item] if number is None else [],
        mark="a",
        mark_after="b",
    ).defines(definition("V", "String", "0"))
    found, played = play(ci, parameters=values)
    assert (found["build"]["number"], found["queue_id"]) == (8, 3)
    assert len(played.posts) == 1


def test_build_that_is_not_found_after_a_restart_is_an_error() -> None:
    other = build(9, queueId=14, user="other")
    error, played = failed(Ci(items=[GONE], after={"builds": [other]}, mark="a", mark_after="b"))
    assert error.kind == "failed"
    assert "the CI server was restarted" in error.message
    assert "before you start a build again" in error.message
    assert len(played.posts) == 1


@pytest.mark.parametrize("reply", [Reply(403), Reply(200, "<html>a page</html>")])
def test_permanent_error_ends_waiting(reply: Reply) -> None:
    error, played = failed(Ci(running=[build(7, None), reply]))
    assert error.kind in ("auth", "permission", "protocol")
    assert error.result["build"]["number"] == 7
    assert len(played.clock.pauses) == 2


def test_build_is_complete_if_neither_building_nor_in_progress() -> None:
    running = [
        build(7, None),
        build(7, "SUCCESS", building=True),
        build(7, "SUCCESS", inProgress=True),
        build(7, None, building=False),
        build(7, "SUCCESS", inProgress=False),
    ]
    values, played = play(Ci(running=running))
    assert values["build"]["result"] == "SUCCESS"
    assert len(played.clock.pauses) == 5


def test_late_result_is_read_after_a_long_pause() -> None:
    running = [*[build(7, None)] * 9, build(7, None, building=False), build(7, "SUCCESS")]
    values, played = play(Ci(running=running), poll_interval=10, wait_timeout=600)
    assert values["build"]["result"] == "SUCCESS"
    assert played.clock.pauses[-1] > 3


def test_build_that_ends_without_result_is_an_error() -> None:
    error, played = failed(Ci(running=[build(7, None), build(7, None, building=False)]))
    assert (error.kind, error.result["changed"]) == ("failed", True)
    assert "build #7 ended with no result instead of SUCCESS" in error.message
    assert error.result["console"] == ["one", "two", "Finished: SUCCESS"]
    assert played.clock.time < 20


def test_build_may_omit_its_number() -> None:
    running = [{"building": True, "result": None}, {"building": False, "result": "SUCCESS"}]
    values, _ignored = play(Ci(running=list(running)))
    assert (values["build"]["number"], values["build"]["result"]) == (7, "SUCCESS")


def test_timeout_names_the_running_build() -> None:
    error, played = failed(Ci(running=[build(7, None)]), wait_timeout=10.0)
    assert error.kind == "timeout"
    assert "build #7 is running (http://127.0.0.1" in error.message
    assert error.result["changed"] is True
    assert error.result["build"]["number"] == 7
    assert played.clock.time == pytest.approx(10)


def test_progress_shows_percentage_remaining_time_and_last_line() -> None:
    started = 1_700_000_000_000
    at = "Tue, 14 Nov 2023 22:13:24 GMT"
    running = [build(7, None, timestamp=started), build(7)]
    replies = [Reply(body=running[0], headers={"Date": at}), running[1]]
    _ignored, played = play(Ci(running=replies, log=b"Checking out\nCompiling\n"))
    assert played.lines == [
        f"folder/job #7: started ({played.stub.url}/job/folder/job/job/7/)",
        "folder/job #7: running, 40 %, about 6 s left: Compiling",
    ]


def test_progress_is_not_shown_more_often_than_the_interval() -> None:
    begins = [4_000_000_000_000 + 10_000 * n for n in range(20)]
    running = [build(7, None, timestamp=begin) for begin in begins]
    _ignored, played = play(Ci(running=[*running, build(7)]), wait_timeout=600.0)
    times = sum(played.clock.pauses)
    assert 1 < len([line for line in played.lines if "running" in line]) <= times / 5 + 1


def test_log_is_not_read_if_no_lines_are_requested() -> None:
    values, played = play(Ci(running=[build(7, None), build(7)]), console_lines=0)
    assert values["console"] == []
    assert not any("logText" in seen.target for seen in played.stub.seen)


class Log:
    """A log that grows by a chunk per request."""

    def __init__(self, *parts: bytes) -> None:
        self.parts, self.text = list(parts), b""

    def __call__(self, seen: Seen) -> Reply:
        start = int(seen.target.rpartition("start=")[2])
        self.text += self.parts.pop(0) if self.parts else b""
        known = self.text[start:] if start <= len(self.text) else self.text
        return Reply(body=known, headers={"X-Text-Size": str(len(self.text))})


def test_log_is_read_in_chunks() -> None:
    text = "one\ntwo\r\ngröße\n".encode()
    log = Log(text[:5], text[5:12], text[12:], b"", b"end")
    with Stub(response=log) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 3)
        for _ignored in range(5):
            console.read()
    assert console.lines() == ["two", "größe", "end"]
    assert stub.seen[-1].target.endswith(f"start={len(text)}")
    assert console.error is None


NOTE = b"\x1b[8mha:////4Ab+/wAAAJh+LCAAA=\x1b[0m"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 200])
def test_notes_of_the_server_leave_the_log(size: int) -> None:
    text = b"Started by " + NOTE + b"user\r\n\x1b[31mred\x1b[0m\r\n" + NOTE + b"end" + NOTE
    log = Log(*[text[start : start + size] for start in range(0, len(text), size)])
    with Stub(response=log) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 9)
        while log.parts:
            console.read()
            assert "ha:" not in "".join(console.lines())
    assert console.lines() == ["Started by user", "\x1b[31mred\x1b[0m", "end"]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("a\nERROR: first\nERROR: second\nb\n", "ERROR: first"),
        ("[INFO] a\r\n[ERROR] COMPILATION ERROR : \r\n[INFO] BUILD FAILURE\r\n", "[ERROR] COM"),
        ("[2026-11-27T10:00:00.000Z] FATAL: no space\nb\n", "[2026-11-27T10:00:00.000Z] FATAL"),
        ("2026-11-27 10:00:00 ERROR Main - no\nb\n", "2026-11-27 10:00:00 ERROR Main - no"),
        ("[INFO] BUILD FAILURE\n[INFO] done\n", "[INFO] BUILD FAILURE"),
        ("java.io.IOException: no space\n\tat a.b(C.java)\n", "java.io.IOException: no space"),
        ("Also:   hudson.AbortException\nb\n", "Also:   hudson.AbortException"),
        ("Traceback\nValueError: x\nb\n", "ValueError: x"),
        ("Tests run: 1, Errors: 0\nno ERRORS found\nlog level=ERROR\nlast\n", "last"),
        ("set ErrorAction\nlast\nFinished: FAILURE\n", "last"),
    ],
)
def test_reason_of_a_failed_build_is_its_first_error(log: str, reason: str) -> None:
    with Stub(response=Log(log.encode())) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 2)
        console.read()
    assert console.reason().startswith(reason)


def test_truncated_chunk_is_read_again() -> None:
    size = {"X-Text-Size": "8"}
    replies = [
        Reply(body=b"one\ntwo\n", headers=size, truncate=6),
        Reply(body=b"one\ntwo\n", headers=size),
    ]
    with Stub(*replies) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 9)
        console.read()
        assert console.error is not None
        console.read()
    assert console.lines() == ["one", "two"]


def test_restarted_log_replaces_the_lines_read() -> None:
    replies = [
        Reply(body=b"old\nold\n", headers={"X-Text-Size": "8"}),
        Reply(body=b"new\n", headers={"X-Text-Size": "4"}),
    ]
    with Stub(*replies) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 9)
        console.read()
        console.read()
    assert console.lines() == ["new"]


@pytest.mark.parametrize("status", [400, 404, 405, 501])
def test_log_without_chunks_is_read_at_the_end(status: int) -> None:
    with Stub(Reply(status), Reply(body=b"a\nb\nc\n")) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 2)
        console.read_to_end()
    assert console.lines() == ["b", "c"]
    assert stub.seen[-1].path == "/base/job/a/1/consoleText"


def test_complete_log_with_equal_offset_is_not_new() -> None:
    with Stub(*[Reply(body=b"a\nb\n", headers={"X-Text-Size": "4"})] * 2) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 9)
        console.read()
        console.read_to_end()
    assert console.lines() == ["a", "b"]


def test_unreadable_log_gives_a_warning() -> None:
    class Silent(Ci):
        def __call__(self, seen: Seen) -> Reply:
            return Reply(403) if "Text" in seen.path else super().__call__(seen)

    values, played = play(Silent())
    assert values["console"] == []
    assert "console log is missing" in played.warnings[0]


def test_long_log_without_line_breaks_is_bounded() -> None:
    with Stub(Reply(body=b"x" * 1_000_000, headers={"X-Text-Size": "1000000"})) as stub:
        console = BuildLog(transport_to(stub.url), "job/a/1", 2)
        console.read()
    assert sum(map(len, console.lines())) <= 1 << 16


def test_build_is_polled_at_its_expected_end() -> None:
    begin, date = 1_700_000_000_000, "Tue, 14 Nov 2023 22:13:{} GMT"
    running: list[Any] = [
        Reply(body=build(7, None, timestamp=begin), headers={"Date": date.format(20 + seconds)})
        for seconds in (1, 3, 7, 9, 12)
    ]
    _ignored, played = play(Ci(items=[WAITING] * 8 + [left(7)], running=[*running, build(7)]))
    assert played.clock.pauses[-5:] == [5, 5, 3, 1, 5]
