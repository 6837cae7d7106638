# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the names of users by the keys that a wiki mentions."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_user_info import (
    WikiUserInfoOperation,
    WikiUserInfoOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Stub, connection_to


def users(stub: Stub, *keys: str, dialect: str = "auto") -> list[dict[str, Any]]:
    login = {"username": "reporter", "password": Secret("reporter-password")}
    settings = {"retries": 0, "retry_max_wait": 0, "dialect": dialect}
    connection = connection_to(stub.url, "wiki", settings=settings, **login)
    operation = WikiUserInfoOperation(
        Task(connection, lambda text: None, read_only=True),
        build(WikiUserInfoOptions, keys=list(keys), parallel=1),
    )
    found: list[dict[str, Any]] = operation.plan().result["users"]
    return found


def test_keys_are_read_once() -> None:
    alice = {"username": "alice", "userKey": "ff80", "displayName": "Alice"}
    with Stub(Reply(body=alice), Reply(404), Reply(body=alice)) as stub:
        assert users(stub, "ff80", "ff81", "ff80") == [
            {"key": "ff80", "account": "alice", "display_name": "Alice"},
            {"key": "ff81", "account": None, "display_name": None},
        ]
        assert stub.seen[0].target.endswith("/rest/api/user?key=ff80")


def test_other_server_is_an_error() -> None:
    with Stub(Reply(404), Reply(404)) as stub, pytest.raises(ToolchainError) as caught:
        users(stub, "ff80")
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize(
    "body",
    [{"type": "anonymous"}, {"username": "reporter", "userKey": "ff90"}],
    ids=["without a name", "another user"],
)
def test_response_with_another_user_is_an_error(body: dict[str, str]) -> None:
    with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
        users(stub, "ff80")
    assert caught.value.kind == "protocol"


def test_cloud_has_no_keys() -> None:
    with Stub() as stub, pytest.raises(ToolchainError) as caught:
        users(stub, "ff80", dialect="cloud")
    assert (caught.value.kind, caught.value.message) == (
        "invalid",
        "keys: users of the cloud have no keys, only account IDs",
    )
