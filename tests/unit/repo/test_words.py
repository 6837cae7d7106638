# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that for every known shape of error body, the message contains the error message of the
repository manager.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import client
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

LICENCE = (
    "This REST API is available only in Artifactory Pro (see: jfrog.com/artifactory/features)."
)


def error_of(server: Server, reply: Reply) -> ToolchainError:
    server.on["GET /x"] = reply
    with pytest.raises(ToolchainError) as caught:
        server.client().transport.read("reading x", "x")
    return caught.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"errors": [{"status": 404, "message": "Unable to find item"}]}, "Unable to find item"),
        ({"messages": [{"level": "error", "message": "no room"}]}, "ERROR: no room"),
        (
            {"errors": [], "error massages": [{"level": "WARNING", "message": "kept"}]},
            "kept",
        ),
        (
            {"errors": [{"code": "NAME_UNKNOWN", "message": "unknown", "detail": {"name": "a"}}]},
            "unknown",
        ),
        ("Max count retention needs to be a positive number", "Max count retention needs"),
        ("<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        ("[" * 100_000, "[[["),
        (LICENCE, "this edition of the server does not support it: This REST API"),
    ],
)
def test_error_text_is_extracted(server: Server, body: Any, said: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    error = error_of(server, Reply(400, text))
    assert (error.kind, error.status) == ("rejected", 400)
    assert said in error.message
    assert error.message.startswith("reading x: the server returned 400: ")
    assert "<" not in error.message


def test_empty_body_is_reported(server: Server) -> None:
    error = error_of(server, Reply(404))
    assert error.kind == "not_found"
    assert error.message == "reading x: the server returned 404 without an error message"


def test_request_id_is_part_of_the_error(server: Server) -> None:
    error = error_of(server, Reply(500, "broken", {"X-Request-Id": "4711"}))
    assert error.detail == "broken (request 4711)"


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (403, "Bad API key", "auth"),
        (403, "Props Authentication Token not found", "auth"),
        (403, "", "permission"),
        (403, "Forbidden", "permission"),
        (401, "Bad credentials", "auth"),
        (403, "Not enough permissions for 'r' (user: 'u' needs READ permission)", "permission"),
        (403, "User u is not permitted to deploy", "permission"),
    ],
)
def test_rejected_api_key_suggests_tokens(
    server: Server, status: int, said: str, kind: str
) -> None:
    task = server.task()
    keyed = replace(task.connection, api_key=Secret("key-12345"))
    client = RepoClient(Task(keyed, task.warn, False))
    server.on["GET /x"] = Reply(status, said)
    with pytest.raises(ToolchainError) as caught:
        client.transport.read("reading x", "x")
    assert caught.value.kind == kind
    assert ("use a token instead" in caught.value.message) is (kind == "auth")


def test_403_without_api_key_is_permission_error(server: Server) -> None:
    error = error_of(server, Reply(403, "Forbidden"))
    assert (error.kind, "token" in error.message) == ("permission", False)


@pytest.mark.parametrize("body", ["", "text", "[]", "{}", '{"messages": {}}', '{"messages": null}'])
def test_body_without_messages_gives_an_empty_list(body: str) -> None:
    assert client.messages_of(body) == []


def test_messages_have_a_level() -> None:
    body = '{"messages": ["plain", {"message": "m"}, {"level": "warn", "message": null}]}'
    assert client.messages_of(body) == [
        {"level": "INFO", "message": "plain"},
        {"level": "INFO", "message": "m"},
        {"level": "WARN", "message": ""},
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"errors": [{"message": "no room"}]}', "no room"),
        ('{"\\u0065rrors": [{"message": "no room"}]}', "no room"),
        ('{"mess\\u0061ges": [{"level": "error", "message": "no room"}]}', "no room"),
        ('{"path": "errors", "said": "messages"}', ""),
        ('{"errors": []}', ""),
    ],
)
def test_errors_are_found_in_any_form(body: str, expected: str) -> None:
    assert client.errors_in(body) == expected
