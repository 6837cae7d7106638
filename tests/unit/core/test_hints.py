# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the hints that error messages contain."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.unit.stub import Reply, Stub, connection_to

PAGE = "<html><head><title>404 Not Found</title></head></html>"


def said(reply: Reply, **fields: Any) -> tuple[str, str]:
    """Return the message of a failed read, and the address of the server."""
    with Stub(response=lambda seen: reply) as stub:
        task = Task(connection_to(stub.url, settings={"retries": 0}, **fields), print, False)
        with pytest.raises(ToolchainError) as caught:
            task.transport().read("reading", "x")
        message: str = task.failure(caught.value)["msg"]
    return message, stub.url


@pytest.mark.parametrize("body", ["", PAGE, "404 page not found", "[]"])
@pytest.mark.parametrize("server", ["nginx/1.25", ""])
def test_other_server_at_the_address_is_reported(body: str, server: str) -> None:
    message, url = said(Reply(404, body, headers={"Server": server} if server else {}))
    responder = f" ({server} responded)" if server else ""
    assert message.endswith(
        f"; it is uncertain whether {url} is the repo service{responder}: check url"
    )


@pytest.mark.parametrize(
    ("service", "reply"),
    [
        ("wiki", Reply(404, {"message": "no such page"})),
        ("ci", Reply(404, PAGE, headers={"X-Jenkins": "2.4"})),
        ("repo", Reply(404, "gone", headers={"x-artifactory-id": "1"})),
        ("repo", Reply(404, "gone", headers={"X-JFrog-Version": "1"})),
        ("tracker", Reply(404, "gone", headers={"X-AREQUESTID": "1"})),
        ("wiki", Reply(404, "gone", headers={"X-AUSERNAME": "me"})),
        ("repo", Reply(400, PAGE)),
    ],
)
def test_expected_service_is_not_reported(service: str, reply: Reply) -> None:
    message, url = said(reply, service=service)
    assert "nothing shows" not in message
    assert message.endswith(f"; if it exists, check url ({url})") == (reply.status == 404)


def test_another_service_at_the_address_is_reported() -> None:
    message, _url = said(Reply(404, PAGE, headers={"X-Jenkins": "2.4"}), service="repo")
    assert "it is uncertain whether" in message


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Basic Authentication has been disabled on this instance."},
        "Basic authentication with passwords is deprecated.",
    ],
)
def test_server_without_passwords_suggests_a_token(body: Any) -> None:
    login = {"username": "u", "password": Secret("pass-12345"), "login": "the password"}
    message, _url = said(Reply(403, body), **login)
    assert "accepts no passwords: use a personal access token" in message
    assert message.endswith("; the task sent the password")
    message, _url = said(Reply(403, body), token=Secret("t-12345"))
    assert "use a personal access token" not in message


def test_rejected_login_is_described() -> None:
    login = "the token, from the environment"
    message, _url = said(Reply(401, "no"), token=Secret("t-12345"), login=login)
    assert message.endswith(
        "the server returned 401: no; the task sent the token, from the environment"
    )


def test_missing_login_is_described() -> None:
    assert "no login: set one in the task" in said(Reply(401, "no"))[0]
