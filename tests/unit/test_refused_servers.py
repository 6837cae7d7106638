# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the state of servers that refused the login or the connection."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from ansible import constants

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.refused_servers import (
    Server,
    refusal_of,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import task_findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from tests.helpers.reported import reporting

URL = "https://ci.example.com"
AUTH = {"kind": "auth", "status": 401, "detail": "Unauthorized"}
NETWORK = {"kind": "network", "status": None, "detail": "the connection was refused: check host"}


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))


def server(username: str | None = "alice", password: str = "one", **options: Any) -> Server:
    given = {"url": URL, "username": username, "password": password, **options}
    return Server("ci", given, {})


def note(error: dict[str, Any] | None, seen: Server) -> None:
    with seen.alone_at_first():
        seen.note({"error": error, "http": {"requests": 1}} if error else {"http": {"requests": 1}})


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AUTH, "login refused (401)"),
        (NETWORK, "connection refused"),
        (
            {"kind": "network", "detail": "cannot resolve the host name: check url"},
            "cannot resolve the host name",
        ),
        ({"kind": "timeout", "detail": "no connection within 30 s"}, "no connection within 30 s"),
        ({"kind": "timeout", "detail": "no response within 30 s"}, ""),
        ({"kind": "permission", "status": 403}, ""),
        (None, ""),
    ],
)
def test_only_login_and_connection_concern_the_whole_server(error: Any, reason: str) -> None:
    assert refusal_of(error) == reason


def test_refused_login_concerns_the_account() -> None:
    note(AUTH, server())
    assert server(password="two").error() == AUTH  # another wrong password might lock the account
    assert Server("ci", {"url": f"{URL}/", "user": "alice"}, {}).error() == AUTH
    assert (
        Server("ci", {}, {"TOOLCHAIN_CI_URL": URL, "TOOLCHAIN_CI_USERNAME": "alice"}).error()
        == AUTH
    )
    assert server("boris").error() is None
    assert server(url="https://other.example.com").error() is None


def test_refused_token_concerns_this_token() -> None:
    note(AUTH, server(None, "one"))
    assert server(None, "one").error() == AUTH
    assert server(None, "two").error() is None


def test_second_refused_login_concerns_all_accounts() -> None:
    note(AUTH, server("alice"))
    note(AUTH, server("boris"))
    assert server("carol").error() == AUTH
    assert server("carol", url="https://other.example.com").error() is None


def test_refused_connection_concerns_all_accounts() -> None:
    note(None, server())
    assert server().error() is None
    note(NETWORK, server())
    assert server("boris").error() == NETWORK


def test_other_tasks_wait_for_the_first_response() -> None:
    started = threading.Event()
    seen: list[Any] = []

    def second() -> None:
        started.set()
        with server().alone_at_first():
            seen.append(server().error())

    with server().alone_at_first():
        thread = threading.Thread(target=second)
        thread.start()
        assert started.wait(5)
        assert seen == []
        server().note({"error": AUTH, "http": {"requests": 1}})
    thread.join(5)
    assert seen == [AUTH]


@pytest.mark.parametrize(
    ("module", "options", "count"),
    [
        ("ci_credential", {"entries": [{}, {}, {}], "id": None}, 3),
        ("ci_job", {"job": "x"}, 1),
        ("ci_plugin_info", {"required": [{}, {}]}, 2),
        ("analysis_config", {"users": [{}], "views": [{}, {}], "groups": None}, 3),
        ("ci_export", {"dest": "x"}, 0),
    ],
)
def test_objects_of_a_task_are_counted(module: str, options: dict[str, Any], count: int) -> None:
    assert task_findings.expected(module, options) == count
    (found,) = task_findings.failed(module, {"msg": "no", "error": AUTH}, options, "a task")
    assert (found["refused"], found["count"]) == ("login refused (401)", count)


def test_entry_that_could_not_be_sent_is_not_a_finding_of_its_own() -> None:
    rows = [{"name": "a", "action": "created", "error": {**NETWORK, "msg": "lost"}}]
    values = {"failed": True, "msg": "1 of 1 failed", "results": rows}
    values["error"] = {"kind": "rejected"}
    result = reporting("ci_node", values, {"entries": []})
    (found,) = task_findings.failed("ci_node", result, {}, "a task")
    assert (found["refused"], found["count"]) == ("connection refused", 1)


def test_server_is_one_finding_for_all_tasks_and_hosts() -> None:
    contents = Contents("drift", check=True)
    for host in ("two", "one"):
        contents.add_refused((host, "ci", URL), "connection refused", 10, "Manage the jobs")
    contents.add_refused(("one", "wiki", URL), "login refused (401)", 0, "Manage the pages")
    found = contents.since().since()
    assert [(finding["host"], finding["text"]) for finding in found.findings] == [
        ("one", f"server {URL}: connection refused; 20 objects not compared"),
        ("one", f"server {URL}: login refused (401)"),
    ]
    assert (found.result(), found.counts["failed"]) == ("failed", 2)
