# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how a client follows a restart: signs of completion, phases to wait for, and immediate
errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_restart import (
    CiRestartOperation,
    CiRestartOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Clock, Run
from tests.unit.stub import Reply, Seen, Stub

OLD, NEW = "0ldmark1", "newmark2"
DOWN = Reply(503, "<html><h1>Please wait while Jenkins is restarting</h1></html>")
LOADING = Reply(503, "<html><h1>Please wait while Jenkins is getting ready to work</h1></html>")
GATEWAY = Reply(502, "<html><h1>Bad Gateway</h1></html>")
CUT = Reply(cut=True)


def up(mark: str | None = OLD, *, quieting: bool | None = False, version: str = "2.479.3") -> Reply:
    """Return a complete response."""
    headers = {"X-Jenkins": version, **({} if mark is None else {"X-Jenkins-Session": mark})}
    return Reply(200, {} if quieting is None else {"quietingDown": quieting}, headers)


@dataclass
class Server:
    """A restarting server. `looks` are the responses to state requests; the last repeats."""

    looks: list[Reply]
    response: Reply = field(default_factory=lambda: Reply(302, headers={"Location": "/base/"}))
    running: Reply = field(default_factory=lambda: Reply(body={"computer": []}))
    plugins: list[dict[str, Any]] = field(default_factory=list)
    updates: Reply = field(default_factory=lambda: Reply(404))
    login_page: Reply = field(default_factory=lambda: Reply(200, "<html>"))
    written: bool = False
    seen: list[Seen] = field(default_factory=list)
    crumbs: int = 0

    def __call__(self, seen: Seen) -> Reply:
        path = seen.path.removeprefix("/base/")
        self.seen.append(seen)
        if path.startswith("crumbIssuer"):
            self.crumbs += 1
            crumb = {"crumb": f"crumb{self.crumbs}", "crumbRequestField": "Jenkins-Crumb"}
            cookie = f"JSESSIONID.1=session{self.crumbs}; Path=/"
            return Reply(body=crumb, headers={"Set-Cookie": cookie})
        if path == "login":
            assert not seen.headers.get("Authorization")
            return self.login_page
        if path == "safeRestart":
            return self.response
        if path == "computer/api/json":
            return self.running
        if path == "updateCenter/api/json":
            return self.updates
        if path == "pluginManager/api/json" and "longName" in seen.target:
            return Reply(body={"plugins": self.plugins})
        if (path == "api/json") is self.written:
            return Reply(404)
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    @property
    def posts(self) -> list[str]:
        return [seen.path for seen in self.seen if seen.method == "POST"]


@dataclass
class Played:
    """Result of a task, and its duration."""

    server: Server
    run: Run
    clock: Clock
    values: dict[str, Any] = field(default_factory=dict)
    error: ToolchainError | None = None


def play(server: Server, *, read_only: bool = False, **options: Any) -> Played:
    clock = Clock()
    with Stub(response=server) as stub:
        # with the default retries: a state request is not repeated
        chosen = options_of(CiRestartOptions, **options)
        run = Run(stub.url, read_only, {"retries": 3, "timeout": 10})
        played = Played(server, run, clock)
        try:
            played.values = run.play(lambda task: CiRestartOperation(task, chosen, clock.polling))
        except ToolchainError as error:
            played.error = error
    return played


def failed(played: Played) -> ToolchainError:
    assert played.error is not None, played.values
    return played.error


def test_all_restart_phases_are_awaited() -> None:
    checks = [up(), up(quieting=True), DOWN, CUT, GATEWAY, LOADING, up(NEW, version="2.492.1")]
    played = play(Server(checks))
    assert played.values["changed"] is True
    assert played.values["version"] == "2.492.1"
    # state requests at 0, 0.5, 1.25, 2.375, 4.0625 (pauses grow to poll_interval), 6.0625
    assert played.values["downtime"] == pytest.approx(6.0625 - 0.5, abs=0.001)
    assert played.server.posts == ["/base/safeRestart"]
    assert played.run.lines == [
        "restarting the CI server: the server is about to go down",
        "restarting the CI server: the server is down",
        "restarting the CI server: the server is up again, release 2.492.1",
    ]
    assert played.run.warnings == []


def test_complete_response_with_old_session_is_not_the_end() -> None:
    """Verify this for the first response after the request, and for a server that is up briefly
    between two failures.
    """
    checks = [up(), up(), DOWN, up(quieting=True), DOWN, DOWN, up(NEW)]
    played = play(Server(checks), poll_interval=1.0)
    # the failure before the old mark was temporary: state requests at 0, 0.5, 1.25, 2.25, 3.25,
    # 4.25
    assert played.values["downtime"] == pytest.approx(2.0)


def test_unobserved_restart_has_no_downtime() -> None:
    assert play(Server([up(), up(quieting=True), up(NEW)])).values["downtime"] == 0


def test_server_without_session_mark_restarted_after_downtime() -> None:
    played = play(Server([up(None), up(None), DOWN, up(None)]))
    assert played.values["changed"] is True
    assert played.values["downtime"] > 0


def test_documented_interface_is_sufficient() -> None:
    checks = [up(quieting=None), up(quieting=None), DOWN, up(NEW, quieting=None)]
    played = play(Server(checks, running=Reply(404), written=True))
    assert played.values["version"] == "2.479.3"
    asked = [seen.path for seen in played.server.seen if "computer" in seen.path]
    assert len(asked) == 1


def test_session_mark_of_any_page_counts() -> None:
    """Server fact [ci-3]: pages have the mark, too. A response without a mark is complete only if
    it is JSON.
    """

    def page(mark: str | None) -> Reply:
        return replace(up(mark), body="<html><body>Dashboard</body></html>")

    played = play(Server([page(OLD), page(OLD), DOWN, page(None), page(NEW)]))
    assert (played.values["changed"], played.values["version"]) == (True, "2.479.3")
    assert played.values["downtime"] > 0
    assert failed(play(Server([page(None)]))).kind == "protocol"


def test_running_builds_are_shown_while_waiting() -> None:
    def executor(name: str | None) -> dict[str, Any]:
        return {"currentExecutable": None if name is None else {"fullDisplayName": name}}

    names = ["deploy #4", "nightly #2", "release #1", "site #9"]
    node = {
        "executors": [executor(None), executor(names[1]), executor(names[3])],
        "oneOffExecutors": [executor(names[0]), executor(names[2])],
    }
    odd: list[Any] = [
        None,
        {},
        {"executors": None},
        {"executors": [None, {"currentExecutable": "x"}]},
    ]
    running = Reply(body={"computer": [node, *odd]})
    checks = [up(), up(quieting=True), up(quieting=True), DOWN, up(NEW)]
    lines = play(Server(checks, running=running)).run.lines
    assert lines[0] == (
        "restarting the CI server: the server waits for 4 running builds: deploy #4, nightly #2,"
        " release #1 and 1 more"
    )
    assert len([line for line in lines if "waits for" in line]) == 1


def test_crumb_and_cookie_are_renewed_after_restart() -> None:
    server = Server([up(), DOWN, up(NEW)])
    clock = Clock()
    with Stub(response=server) as stub:
        run, options = Run(stub.url), options_of(CiRestartOptions)
        run.play(lambda task: CiRestartOperation(task, options, clock.polling))
        server.looks = [up(NEW), DOWN, up("mark3")]
        run.play(lambda task: CiRestartOperation(task, options, clock.polling))
    crumbs = [seen.headers["Jenkins-Crumb"] for seen in server.seen if seen.method == "POST"]
    cookies = [seen.headers["Cookie"] for seen in server.seen if seen.method == "POST"]
    assert crumbs == ["crumb1", "crumb2"]
    assert cookies == ["JSESSIONID.1=session1", "JSESSIONID.1=session2"]


def test_check_mode_only_reads() -> None:
    played = play(Server([up()]), read_only=True)
    assert (played.values["changed"], played.values["version"]) == (True, "2.479.3")
    assert [seen.method for seen in played.server.seen] == ["GET"]
    assert played.values["diff"] == play(Server([up(), DOWN, up(NEW)])).values["diff"]


def test_downtime_is_unknown_without_wait() -> None:
    played = play(Server([up()]), wait=False)
    assert (played.values["changed"], played.values["downtime"]) == (True, None)
    assert played.server.posts == ["/base/safeRestart"]


PENDING = {"shortName": "git", "version": "1", "enabled": True, "active": False, "deleted": False}
SETTLED = {**PENDING, "active": True}


@pytest.mark.parametrize(
    ("plugin", "updates", "pending"),
    [
        (SETTLED, Reply(404), []),
        (SETTLED, Reply(body={"restartRequiredForCompletion": False}), []),
        (SETTLED, Reply(body={"restartRequiredForCompletion": True}), ["installed updates"]),
        (PENDING, Reply(404), ["git"]),
        ({**SETTLED, "deleted": True}, Reply(404), ["git"]),
    ],
)
def test_restart_only_if_a_plugin_requires_it(
    plugin: dict[str, Any], updates: Reply, pending: list[str]
) -> None:
    server = Server([up(), DOWN, up(NEW)], plugins=[plugin], updates=updates)
    played = play(server, when_plugins_pending=True)
    assert played.values["changed"] is bool(pending)
    assert len(server.posts) == len(pending)
    assert played.values["diff"][1] == ({"restart": "safe", "pending": pending} if pending else {})
    # the plugin of this server does not change with the restart
    assert len(played.run.warnings) == len(pending)


@pytest.mark.parametrize(
    ("response", "kind", "words"),
    [
        (Reply(500, "<html><h2>Oops!</h2></html>"), "server", "unable to restart itself"),
        (
            Reply(403, "no", {"X-Required-Permission": "hudson.model.Hudson.Manage"}),
            "permission",
            "Manage",
        ),
        (Reply(405, "Form post required"), "rejected", "405"),
        (Reply(302, headers={"Location": "/base/login?from=%2F"}), "auth", "login"),
        (Reply(302, headers={"Location": "/elsewhere/page"}), "protocol", "elsewhere"),
        (Reply(307, headers={"Location": "/base/"}), "protocol", "307"),
        (Reply(503, "overloaded"), "server", "503"),
    ],
)
def test_rejection_is_reported_immediately(response: Reply, kind: str, words: str) -> None:
    played = play(Server([up()], response))
    error = failed(played)
    assert error.kind == kind
    assert words in error.message
    assert played.clock.time == 0
    assert len(played.server.posts) == 1
    assert error.result.get("changed") is None


@pytest.mark.parametrize(
    "location", [".", "/base/", "/base", "http://inner:8080/base/", "http://inner:8080/", "/"]
)
def test_redirect_to_start_page_may_use_another_address(location: str) -> None:
    response = Reply(302, headers={"Location": location})
    assert play(Server([up(), DOWN, up(NEW)], response)).values["changed"] is True


@pytest.mark.parametrize("response", [CUT, GATEWAY, Reply(504)])
def test_lost_response_of_a_restarting_server_is_not_an_error(response: Reply) -> None:
    """Verify this also for 502 and 504, which a proxy sends if the server was too slow."""
    played = play(Server([up(), up(quieting=True), DOWN, up(NEW)], response))
    assert (played.values["changed"], played.values["version"]) == (True, "2.479.3")
    assert len(played.server.posts) == 1


def test_lost_response_without_restart_is_reported_immediately() -> None:
    played = play(Server([up(), up()], CUT))
    error = failed(played)
    assert (error.kind, error.outcome_unknown) == ("network", True)
    assert error.message.endswith("; nothing was changed")
    assert played.clock.time == 0
    behind_proxy = play(Server([up(), up()], GATEWAY))
    assert (failed(behind_proxy).status, behind_proxy.clock.time) == (502, 0)
    assert failed(behind_proxy).result.get("changed") is None


def test_session_mark_decides_after_a_lost_response() -> None:
    checks = [up(quieting=None), CUT, up(quieting=None), DOWN, up(NEW, quieting=None)]
    played = play(Server(checks, CUT, written=True))
    assert played.values["changed"] is True
    never = play(Server([up(quieting=None)], CUT, written=True), wait_timeout=30.0)
    assert failed(never).kind == "network"
    assert failed(never).result.get("changed") is None
    assert never.clock.time == pytest.approx(30, abs=2)
    at_once = play(Server([up(quieting=None)], CUT, written=True), wait=False)
    assert (failed(at_once).kind, at_once.clock.time) == ("network", 0)


def test_timeout_is_an_error() -> None:
    played = play(Server([up(), up(quieting=True)]), wait_timeout=60.0)
    error = failed(played)
    assert error.kind == "timeout"
    assert "wait_timeout (60 s)" in error.message
    assert "about to go down" in error.message
    assert error.result["changed"] is True
    assert played.clock.time == pytest.approx(60, abs=2)


def test_cancelled_restart_is_an_error() -> None:
    played = play(Server([up(), up(), up(quieting=True), up()]))
    error = failed(played)
    assert error.kind == "failed"
    assert "cancelled the restart" in error.message


def test_interrupt_reports_that_the_restart_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(clock: Clock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "sleep", interrupt)
    error = failed(play(Server([up(), up(quieting=True)])))
    assert (error.kind, error.result["changed"]) == ("failed", True)
    assert "interrupted; the restart continues" in error.message


def test_rejected_login_after_restart_ends_waiting() -> None:
    """Verify that a wrong password is not sent again, because repeated failures lock accounts."""
    played = play(Server([up(), DOWN, Reply(401)]))
    assert failed(played).kind == "auth"
    assert failed(played).result["changed"] is True


def test_rejected_login_of_a_starting_server_is_awaited() -> None:
    checks = [up(), DOWN, Reply(401), Reply(401), LOADING, up(NEW)]
    played = play(Server(checks, login_page=LOADING))
    assert played.values["changed"] is True
    logins = [seen for seen in played.server.seen if seen.path == "/base/login"]
    assert len(logins) == 2


def test_wrong_address_gets_no_write() -> None:
    played = play(Server([Reply(404)]))
    assert failed(played).kind == "not_found"
    assert played.server.posts == []


@pytest.mark.parametrize(("name", "value"), [("wait_timeout", -1.0), ("poll_interval", 0.0)])
def test_invalid_numbers_are_rejected(name: str, value: float) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ToolchainError, match=f"{name} is ") as failure:
        options_of(CiRestartOptions, **options)
    assert failure.value.kind == "invalid"
