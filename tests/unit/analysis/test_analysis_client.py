# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis import client
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.client import (
    AnalysisClient,
    Call,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.unit.analysis.server import LTOKEN, Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply


def ask(stub: Stub, call: Call, *, read_only: bool = False) -> list[dict[str, object]]:
    task, _ignored = task_for(stub, read_only=read_only)
    return AnalysisClient(task).ask("doing it", call)


def failure(reply: Reply, action: str = "roles") -> ToolchainError:
    with Stub(reply) as stub, pytest.raises(ToolchainError) as caught:
        ask(stub, Call(action, {"name": "x"}))
    assert LTOKEN not in str(caught.value)
    return caught.value


def test_every_action_is_a_read_or_a_write() -> None:
    assert len(client.READING) + len(client.WRITING) == len(client.ACTIONS) == 43
    writing = re.compile(r"(create|update|delete|import)_(?!status$)|update_status$")
    assert {name for name in client.ACTIONS if writing.match(name)} == client.WRITING


def test_form_is_sent_as_utf8_and_encoded() -> None:
    parameters = {
        "search": "+C++ & größe=50%",
        "limit": 7,
        "summary": True,
        "group": False,
        "view": None,
        "empty": "",
        "paths": ["**/a,b/*", "back\\slash", "plain"],
        "users": [],
    }
    with Stub(Reply()) as stub:
        ask(stub, Call("search", parameters))
    (seen,) = stub.seen
    assert seen.headers["Content-Type"] == "application/x-www-form-urlencoded;charset=UTF-8"
    assert b"search=%2BC%2B%2B%20%26%20gr%C3%B6%C3%9Fe%3D50%25" in seen.body
    assert sent(stub) == [
        {
            "action": "search",
            "search": "+C++ & größe=50%",
            "limit": "7",
            "summary": "true",
            "group": "false",
            "empty": "",
            "paths": r"**/a\,b/*,back\\slash,plain",
            "users": "",
        }
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_comma_list_can_be_decoded(values: list[str]) -> None:
    parts = re.findall(r"(?:[^\\,]|\\.)+", client.comma_list(values), re.S)
    assert [re.sub(r"\\(.)", r"\1", part, flags=re.S) for part in parts] == values


def test_check_mode_sends_reads_only() -> None:
    with Stub(lines({"name": "a"})) as stub:
        assert ask(stub, Call("roles"), read_only=True) == [{"name": "a"}]
        for action in sorted(client.WRITING):
            with pytest.raises(ToolchainError, match="check mode"):
                ask(stub, Call(action), read_only=True)
    assert len(stub.seen) == 1


def test_unknown_action_counts_as_a_write() -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match="check mode"):
        ask(stub, Call("version_of_another_day"), read_only=True)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_empty_response_to_a_write_is_accepted(status: int) -> None:
    with Stub(Reply(status)) as stub:
        assert ask(stub, Call("delete_role", {"name": "a"})) == []


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "Role a already exists", "conflict"),
        (409, "Role a is there", "conflict"),
        (500, "Duplicate entry", "conflict"),
        (400, "Project p does not exist", "not_found"),
        (400, "No such issue", "not_found"),
        (404, "Module m", "not_found"),
        (400, "Unknown action: x", "rejected"),
        (400, "Missing required parameter: paths", "rejected"),
        (401, "User authentication failed. Please run kwauth", "auth"),
        (400, "Invalid token", "auth"),
        (403, "Role a is read-only", "permission"),
        (400, "You do not have permission to do this", "permission"),
        (429, "Slow down", "rate_limited"),
        (500, "Project p not found in cache", "server"),
        (0, "strange", "rejected"),
    ],
)
@pytest.mark.parametrize("same_status", [True, False])
def test_kind_of_error_object(status: int, message: str, kind: str, same_status: bool) -> None:
    error = failure(refusal(status, message, answered=status if same_status and status else 200))
    assert (error.kind, error.status, error.detail) == (kind, status, message)
    assert str(error).startswith(f"doing it: the server returned {status}: {message}")


def test_error_object_after_records_is_found() -> None:
    reply = Reply(body='{"name": "a"}\n{"status": 500, "message": "lost the database"}\n')
    assert failure(reply).kind == "server"


def test_rejected_login_suggests_what_to_check() -> None:
    assert "check username and ltoken" in str(failure(refusal(401, "User authentication failed")))


def test_write_rejected_with_status_200_is_not_counted() -> None:
    with Stub(refusal(400, "Role a already exists", answered=200)) as stub:
        task, _ignored = task_for(stub)
        with pytest.raises(ToolchainError) as caught:
            AnalysisClient(task).ask("creating the role 'a'", Call("create_role", {"name": "a"}))
    assert task.failure(caught.value)["changed"] is False
    assert task.accounting.writes == 1


def test_search_records_with_status_and_message_are_not_errors() -> None:
    issue = {"id": 1, "status": "Analyze", "message": "Null pointer"}
    with Stub(lines(issue, {"summary": {"total": 1}})) as stub:
        assert ask(stub, Call("search")) == [issue, {"summary": {"total": 1}}]


@pytest.mark.parametrize("status", [200, 302, 401, 403, 404, 500, 502])
def test_html_response_names_the_address(status: int) -> None:
    page = "<!DOCTYPE html><html><head><title>Web API Reference</title></head><p>x</p></html>"
    error = failure(Reply(status, page, {"Content-Type": "text/html"}))
    kinds = {200: "protocol", 302: "protocol", 401: "auth", 403: "permission", 404: "not_found"}
    assert error.kind == kinds.get(status, "server")
    assert error.status == status
    assert error.url is not None
    assert error.url.endswith("/base/review/api")
    assert "<" not in str(error)
    if status in (200, 404):
        assert f"{error.url}" in str(error)
        assert "check url" in str(error)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(body='{"name": "a"}\n{"na'), "truncated"),
        (Reply(body="Hello"), "not JSON"),
        (Reply(status=201, body="[]"), "returned 201"),
    ],
)
def test_malformed_response_is_a_protocol_error(reply: Reply, words: str) -> None:
    error = failure(reply)
    assert error.kind == "protocol"
    assert words in str(error)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(body="Role a has been deleted"), "protocol"),
        (Reply(201, "<html><title>Done</title></html>"), "protocol"),
        (Reply(500, "no"), "server"),
        (Reply(503, "no"), "server"),
        (Reply(429, '{"status": 429, "message": "slow down"}'), "rate_limited"),
        (Reply(400, '{"status": 500, "message": "no"}'), "server"),
        (Reply(502, "Bad Gateway"), "server"),
        (Reply(504, "<html><title>Gateway Timeout</title></html>"), "server"),
    ],
)
def test_ambiguous_response_to_a_write_has_an_unknown_outcome(reply: Reply, kind: str) -> None:
    for call, lost in ((Call("delete_role", {"name": "a"}), True), (Call("roles"), False)):
        with Stub(reply) as stub, pytest.raises(ToolchainError) as caught:
            ask(stub, call)
        assert (caught.value.kind, caught.value.outcome_unknown) == (kind, lost)


@pytest.mark.parametrize(
    "reply", [Reply(501, "no"), Reply(500, '{"status": 500, "message": "x already exists"}')]
)
def test_write_rejected_by_the_server_has_a_known_outcome(reply: Reply) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError) as caught:
        ask(stub, Call("delete_role", {"name": "a"}))
    assert not caught.value.outcome_unknown


def test_truncated_body_is_a_network_error() -> None:
    error = failure(Reply(body='{"name": "a"}\n{"name": "b"}\n', truncate=14))
    assert error.kind == "network"


def test_rejected_undocumented_parameters_are_omitted_from_then_on() -> None:
    call = Call("groups", {"search": "*"}, {"list_users": True})
    group = {"name": "developers"}
    with Stub(refusal(400, "Unknown parameter: list_users"), lines(group), lines(group)) as stub:
        assert ask(stub, call) == [group]
        assert ask(stub, call) == [group]
    assert [form.get("list_users") for form in sent(stub)] == ["true", None, None]


def test_accepted_undocumented_parameters_are_kept() -> None:
    call = Call("update_group", {"name": "a"}, {"remove_all": True})
    with Stub(Reply(), Reply()) as stub:
        task, _ignored = task_for(stub)
        server = AnalysisClient(task)
        server.ask("updating", call)
        server.ask("updating", call)
    assert [form["remove_all"] for form in sent(stub)] == ["true", "true"]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_rejection_other_than_400_keeps_the_parameters(status: int) -> None:
    with Stub(refusal(status, "no")) as stub, pytest.raises(ToolchainError):
        ask(stub, Call("groups", {}, {"list_users": True}))
    assert len(stub.seen) == 1


def test_rejection_without_the_parameters_is_reported() -> None:
    replies = (refusal(400, "Unknown parameter: remove_all"), refusal(400, "No such group"))
    with Stub(*replies) as stub, pytest.raises(ToolchainError, match="No such group"):
        ask(stub, Call("update_group", {"name": "a"}, {"remove_all": True}))


def test_both_rejections_are_reported_if_neither_is_conclusive() -> None:
    replies = (refusal(400, "No such project: p"), refusal(400, "Missing parameter: project"))
    with Stub(*replies) as stub, pytest.raises(ToolchainError) as caught:
        ask(stub, Call("fchurns", {"component": "a"}, {"project": "p"}))
    message = str(caught.value)
    assert "Missing parameter: project" in message
    assert message.endswith("with project the server returned: No such project: p")


def test_login_is_sent_only_in_the_body() -> None:
    with Stub(Reply()) as stub:
        ask(stub, Call("delete_role"))
    (seen,) = stub.seen
    assert LTOKEN not in seen.target + str(seen.headers)
    assert parse_qs(seen.body.decode())["ltoken"] == [LTOKEN]
