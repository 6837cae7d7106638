# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the search on the wire: parameters, headers, dialects, rejected logins."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import progress
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.predictions import (
    Predictions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.client import (
    TrackerClient,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.jql_search import (
    JqlSearchOperation,
    JqlSearchOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub, connection_to

NO_ISSUES = Reply(body={"issues": [], "total": 0})
REMOVED = Reply(
    410, {"errorMessages": ["The requested API has been removed. Please migrate"], "errors": {}}
)


class Run:
    """A search; `warnings` are the warnings of the task."""

    def __init__(self, stub: Stub, settings: dict[str, Any] | None = None, **params: Any) -> None:
        self.warnings: list[str] = []
        kind = {"dialect": "auto", "accept_language": None, **(settings or {})}
        login = {"username": "reporter", "password": Secret("reporter-password")}
        connection = connection_to(stub.url, "tracker", settings=kind, **login)
        self.options = build(JqlSearchOptions, **{"jql": "project = REL", **params})
        self.task = Task(connection, self.warnings.append, read_only=True)

    def __call__(self) -> dict[str, Any]:
        operation = JqlSearchOperation(self.task, self.options)
        plan = operation.plan()
        assert not plan.changed
        return dict(plan.result)


def query(seen: Seen) -> dict[str, str]:
    found = parse_qs(urlsplit(seen.target).query, keep_blank_values=True, strict_parsing=True)
    return {name: value for name, (value,) in found.items()}


def test_search_sends_only_the_given_options() -> None:
    with Stub(NO_ISSUES) as stub:
        assert Run(stub)() == {"issues": [], "issue_keys": [], "total": 0, "complete": True}
        (seen,) = stub.seen
    assert seen.method == "GET"
    assert seen.target == (
        "/base/rest/api/2/search?jql=project%20%3D%20REL%20ORDER%20BY%20key"
        "&startAt=0&maxResults=100"
    )
    assert seen.headers["Accept"] == "application/json"
    assert "Accept-Language" not in seen.headers


def test_every_option_reaches_the_server() -> None:
    with Stub(Reply(body={"issues": [], "warningMessages": ["odd"]})) as stub:
        run = Run(
            stub,
            {"accept_language": "en"},
            fields=["summary", "-comment"],
            expand=["names", "schema"],
            properties=["release"],
            fields_by_keys=True,
            validate_query="warn",
            max_results=7,
            start_at=5,
            page_size=50,
        )
        assert run()["total"] is None
        (seen,) = stub.seen
    assert query(seen) == {
        "jql": "project = REL ORDER BY key",
        "fields": "summary,-comment",
        "expand": "names,schema",
        "properties": "release",
        "fieldsByKeys": "true",
        "startAt": "5",
        "maxResults": "7",
        "validateQuery": "warn",
    }
    assert seen.headers["Accept-Language"] == "en"
    assert seen.headers["X-Force-Accept-Language"] == "true"
    assert len(run.warnings) == 1
    assert run.warnings[0].endswith(": odd")


def test_empty_fields_return_the_keys() -> None:
    with Stub(NO_ISSUES) as stub:
        Run(stub, fields=[], expand=[], properties=[])()
        asked = query(stub.seen[0])
    assert asked["fields"] == "key"
    assert not {"expand", "properties"} & set(asked)


LONG = f"key in ({', '.join(['REL-1'] * 400)})"


def test_long_query_is_sent_by_post() -> None:
    with Stub(NO_ISSUES) as stub:
        Run(stub, jql=LONG, fields=["summary"], validate_query="false")()
        (seen,) = stub.seen
    assert (seen.method, seen.target) == ("POST", "/base/rest/api/2/search")
    assert json.loads(seen.body) == {
        "jql": f"{LONG} ORDER BY key",
        "fields": ["summary"],
        "startAt": 0,
        "maxResults": 100,
        "validateQuery": False,
    }
    assert seen.headers["X-Atlassian-Token"] == "no-check"


@pytest.mark.parametrize("status", [404, 405, 501])
def test_long_query_falls_back_to_get(status: int) -> None:
    page = Reply(body={"issues": [{"key": "REL-1"}], "total": 2})
    with Stub(Reply(status), page, Reply(body={"issues": [{"key": "REL-2"}], "total": 2})) as stub:
        assert Run(stub, jql=LONG, page_size=1)()["issue_keys"] == ["REL-1", "REL-2"]
        assert [seen.method for seen in stub.seen] == ["POST", "GET", "GET"]


def cloud(seen: Seen) -> Reply:
    """Simulate a cloud server with two pages; its old search no longer exists."""
    if not seen.path.endswith("/search/jql"):
        return REMOVED
    if "nextPageToken" in query(seen):
        return Reply(body={"issues": [{"id": "2", "key": "REL-2"}], "isLast": True})
    return Reply(body={"issues": [{"id": "1", "key": "REL-1"}], "nextPageToken": "next"})


def test_removed_search_falls_back_to_its_successor_from_then_on() -> None:
    with Stub(response=cloud) as stub:
        first = Run(stub)()
        assert first["issue_keys"] == ["REL-1", "REL-2"]
        assert first["total"] is None
        assert first["complete"] is True
        again = Run(stub, validate_query="warn", expand=["names", "schema"])
        assert again()["issue_keys"] == ["REL-1", "REL-2"]
        paths = [seen.path.removeprefix("/base/rest/api/2/") for seen in stub.seen]
        assert paths == ["search", *["search/jql"] * 4]
        asked = query(stub.seen[4])
    assert asked == {
        "jql": "project = REL ORDER BY key",
        "fields": "*navigable",
        "expand": "names,schema",
        "maxResults": "100",
        "nextPageToken": "next",
    }
    assert any("validate_query" in line for line in again.warnings)


def test_successor_may_exist_only_in_version_3() -> None:
    def response(seen: Seen) -> Reply:
        return Reply(404) if "/api/2/" in seen.path else cloud(seen)

    with Stub(response=response) as stub:
        assert Run(stub, {"dialect": "cloud"})()["issue_keys"] == ["REL-1", "REL-2"]
        assert [seen.path.removeprefix("/base/rest/api/") for seen in stub.seen] == [
            "2/search/jql",
            "3/search/jql",
            "3/search/jql",
        ]


@pytest.mark.parametrize(
    ("dialect", "others"), [("server", []), ("auto", [REMOVED] * 2), ("auto", [Reply(404)] * 2)]
)
def test_removed_search_names_its_successor(dialect: str, others: list[Reply]) -> None:
    with Stub(REMOVED, *others) as stub:
        with pytest.raises(ToolchainError, match="search/jql") as caught:
            Run(stub, {"dialect": dialect})()
        assert stub.replies == []
    assert caught.value.kind == "not_found"
    assert caught.value.status == 410
    assert str(caught.value.url).partition("?")[0].endswith("/rest/api/2/search")


def test_rejection_by_the_successor_is_reported() -> None:
    refusal = Reply(400, {"errorMessages": ["Unbounded JQL"]})
    with Stub(REMOVED, refusal) as stub, pytest.raises(ToolchainError, match="Unbounded") as caught:
        Run(stub)()
    assert caught.value.kind == "rejected"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (
            Reply(body={"issues": []}, headers={"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"}),
            "AUTHENTICATED_FAILED",
        ),
        (
            Reply(headers={"X-Seraph-LoginReason": "OUT, AUTHENTICATION_DENIED"}),
            "AUTHENTICATION_DENIED",
        ),
        (Reply(body={"issues": []}, headers={"X-AUSERNAME": "anonymous"}), "anonymous"),
        (
            Reply(400, {"errorMessages": ["no such project"]}, {"X-AUSERNAME": "anonymous"}),
            "anonymous",
        ),
        (
            Reply(
                403,
                "<html>locked</html>",
                {"X-Authentication-Denied-Reason": "CAPTCHA_CHALLENGE; login-url=http://x/login"},
            ),
            "CAPTCHA_CHALLENGE",
        ),
        (
            Reply(401, "no", {"X-Seraph-LoginReason": "AUTHENTICATION_DENIED"}),
            "log in with a browser, which may ask for a CAPTCHA",
        ),
        (Reply(401, "<html><title>Unauthorized</title></html>"), "Unauthorized"),
        (Reply(302, headers={"Location": "/base/login.jsp"}), "login page"),
    ],
)
def test_rejected_login_is_not_retried(reply: Reply, words: str) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError, match=words) as caught:
        Run(stub)()
    assert caught.value.kind == "auth"
    assert "reporter-password" not in str(caught.value.as_dict()) + caught.value.message


def test_finally_accepted_login_is_valid() -> None:
    headers = {"X-Seraph-LoginReason": "OUT, OK", "X-AUSERNAME": "reporter"}
    with Stub(Reply(body={"issues": []}, headers=headers)) as stub:
        assert Run(stub)()["complete"] is True


def test_anonymous_user_is_accepted_without_credentials() -> None:
    with Stub(Reply(body={"issues": []}, headers={"X-AUSERNAME": "anonymous"})) as stub:
        run = Run(stub)
        connection = connection_to(stub.url, "tracker", settings={"dialect": "auto"})
        run.task = Task(connection, run.warnings.append, read_only=True)
        assert run()["complete"] is True


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (
            Reply(
                500,
                '<?xml version="1.0"?><status><status-code>500</status-code>'
                "<message>Search limit &lt;exceeded&gt;</message></status>",
            ),
            "server",
            "500: Search limit <exceeded>",
        ),
        (Reply(400, {"errorMessages": ["Error in the JQL Query"]}), "rejected", "Error in the JQL"),
        (Reply(body="<html><h1>Welcome</h1></html>"), "protocol", "Welcome"),
        (Reply(body=""), "protocol", "empty body"),
        (Reply(body='{"issues": 5}'), "protocol", "list of issues"),
        (Reply(body='{"issues": ["a"]}'), "protocol", "list of issues"),
        (Reply(404, "<html><h1>Not here</h1></html>"), "not_found", "Not here"),
    ],
)
def test_error_message_of_the_server_is_shown(reply: Reply, kind: str, words: str) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub)()
    assert caught.value.kind == kind
    assert words in f"{caught.value.message} {caught.value.detail}"
    assert "project = REL" in caught.value.message


@pytest.mark.parametrize(
    ("option", "value"), [("start_at", -1), ("max_results", -1), ("page_size", 0), ("parallel", 0)]
)
def test_invalid_numbers_are_rejected_before_any_request(option: str, value: int) -> None:
    params: dict[str, Any] = {option: value}
    with Stub() as stub, pytest.raises(ToolchainError, match=option) as caught:
        Run(stub, **params)()
    assert caught.value.kind == "invalid"


def pages_of(count: int) -> Callable[[Seen], Reply]:
    def response(seen: Seen) -> Reply:
        asked = query(seen)
        start, size = int(asked["startAt"]), int(asked["maxResults"])
        numbers = range(start, min(start + size, count))
        issues = [{"id": str(number), "key": f"OPS-{number}"} for number in numbers]
        return Reply(body={"startAt": start, "maxResults": size, "total": count, "issues": issues})

    return response


def test_time_with_an_offset_is_rejected_before_any_request() -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match="write '2026-05-31 10:00'"):
        Run(stub, jql='created > "2026-05-31T10:00:00+02:00"')()


def test_pages_use_the_allowed_number_of_connections() -> None:
    with Stub(response=pages_of(500)) as stub:
        found = Run(stub, page_size=10, parallel=3)()
        assert found["issue_keys"] == [f"OPS-{number}" for number in range(500)]
        assert len(stub.seen) <= 50
        assert 1 < stub.connections <= 3


def test_long_search_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    pages = [Reply(body={"issues": [{"key": f"REL-{n}"}], "total": 2}) for n in (1, 2)]
    reported: list[str] = []
    with Stub(*pages) as stub, progress.progress_to(reported.append):
        Run(stub, page_size=1, parallel=1)()
    assert reported == ["reading the issues: 1", "reading the issues: 2"]


SEVEN = ", ".join(f"field{number}" for number in range(7))


@pytest.mark.parametrize(
    ("order", "sent"),
    [
        ("field0", "field0, key"),
        (SEVEN.removesuffix(", field6"), SEVEN.removesuffix(", field6") + ", key"),
        (SEVEN, SEVEN),
    ],
)
def test_cloud_order_has_at_most_seven_fields(order: str, sent: str) -> None:
    with Stub(Reply(body={"issues": [], "isLast": True})) as stub:
        Run(stub, {"dialect": "cloud"}, jql=f"project = REL ORDER BY {order}")()
        assert query(stub.seen[0])["jql"] == f"project = REL ORDER BY {sent}"


@pytest.mark.parametrize(
    ("jql", "found"),
    [
        ('fixVersion = "1.0"', True),
        ("fixVersion=1.0", True),
        ("fixVersion IN (0.9,1.0)", True),
        ("fixVersion = 1.0.5", False),
        ("fixVersion = 11.0", False),
        ("fixVersion = v1.0-rc", False),
    ],
)
def test_only_a_query_with_a_predicted_version_finds_nothing(
    jql: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    with Stub(Reply(400, {"errorMessages": ["unknown version"], "errors": {}})) as stub:
        run = Run(stub, {"dialect": "server"}, jql=jql)
        predictions = Predictions(stub.url, check_mode=True)
        predictions.add("new version", "", "1.0")
        run.task = replace(run.task, predictions=predictions)
        if found:
            assert run()["issues"] == []
        else:
            with pytest.raises(ToolchainError, match="unknown version"):
                run()


def test_server_order_has_a_unique_field() -> None:
    with Stub(NO_ISSUES) as stub:
        Run(stub, {"dialect": "server"}, jql=f"project = REL ORDER BY {SEVEN}")()
        assert query(stub.seen[0])["jql"].endswith(", field6, key")


def test_created_issues_are_included_in_a_cloud_search() -> None:
    with Stub(*[Reply(body={"issues": [], "isLast": True})] * 2) as stub:
        run = Run(stub, {"dialect": "cloud"})
        operation = JqlSearchOperation(run.task, run.options)
        client = TrackerClient(run.task, connections=run.options.parallel)
        for number in range(60):
            client.note_written(str(number))
        client.note_written(None)
        operation.plan()
        (seen,) = stub.seen
        assert seen.method == "POST"
        assert json.loads(seen.body)["reconcileIssues"] == list(range(10, 60))
        Run(stub, {"dialect": "cloud", "timeout": 6})()
        assert "reconcileIssues" not in stub.seen[1].target


def test_written_issues_of_other_tasks_are_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    with Stub(Reply(body={"issues": [], "isLast": True})) as stub:
        TrackerClient(Run(stub, {"timeout": 6}).task).note_written(7)
        TrackerClient(Run(stub, {"timeout": 7}).task).note_written(5)
        Run(stub, {"dialect": "cloud"})()
        assert json.loads(stub.seen[0].body)["reconcileIssues"] == [5, 7]


@pytest.mark.parametrize(
    ("issue", "word"),
    [
        ({"fields": {"comment": {"comments": [{}] * 20, "total": 45}}}, "comment"),
        ({"fields": {"worklog": {"worklogs": [{}] * 20, "total": 21}}}, "worklog"),
        ({"changelog": {"histories": [{}] * 20}}, "changelog"),
        ({"changelog": {"histories": [{}] * 20, "total": 20}}, ""),
        ({"changelog": {"histories": [{}] * 3}}, ""),
        ({"changelog": {"histories": [{}] * 3, "maxResults": 3}}, "changelog"),
        ({"fields": {"comment": None}}, ""),
    ],
)
def test_truncated_lists_give_a_warning(issue: dict[str, Any], word: str) -> None:
    issues = [{"id": str(number), "key": f"REL-{number}", **issue} for number in range(12)]
    with Stub(Reply(body={"issues": issues, "isLast": True})) as stub:
        run = Run(stub, {"dialect": "cloud"})
        run()
    if not word:
        assert run.warnings == []
        return
    (warning,) = run.warnings
    assert f"{word}: a search truncates" in warning
    assert "REL-0, " in warning
    assert "and 2 more" in warning


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}])
def test_rate_limit_of_a_429_is_reported(headers: dict[str, str]) -> None:
    reply = Reply(429, {}, {"RateLimit-Reason": "jira-burst-based", **headers})
    with Stub(reply) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub, {"retries": 0})()
    assert caught.value.kind == "rate_limited"
    assert "(jira-burst-based)" in str(caught.value)
