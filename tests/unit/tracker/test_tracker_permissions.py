# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the permissions of an account, if the server reports them and if it does not."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.accounts import (
    lacking,
    require_permissions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.client import (
    TrackerClient,
)
from tests.unit.stub import Reply, Stub, connection_to

HAS, LACKS = {"havePermission": True}, {"havePermission": False}


def client(stub: Stub, dialect: str = "auto") -> TrackerClient:
    settings = {"dialect": dialect, "accept_language": None, "retries": 0}
    connection = connection_to(stub.url, "tracker", settings=settings)
    warnings: list[str] = []
    return TrackerClient(Task(connection, warnings.append, read_only=True))


def told(**shown: Any) -> Reply:
    return Reply(body={"permissions": shown})


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        (told(ADMINISTER_PROJECTS=LACKS, ADMINISTER=LACKS), ["ADMINISTER_PROJECTS"]),
        (told(ADMINISTER_PROJECTS=LACKS, ADMINISTER=HAS), []),
        (told(ADMINISTER_PROJECTS=HAS, ADMINISTER=LACKS), []),
        # a permission that is not reported does not count as a denial
        (told(ADMINISTER_PROJECTS=LACKS), []),
        (told(ADMINISTER_PROJECTS="no", ADMINISTER=None), []),
        (Reply(body={"permissions": []}), []),
        (Reply(body="[]"), []),
        (Reply(body="<html>a page</html>"), []),
        (Reply(404, {"errorMessages": ["No project could be found with key 'REL'."]}), []),
        (Reply(500), []),
    ],
)
def test_missing_permissions_of_an_account(reply: Reply, missing: list[str]) -> None:
    with Stub(reply) as stub:
        assert lacking(client(stub), ["ADMINISTER_PROJECTS"], projectKey="REL") == missing
    [seen] = stub.seen
    assert parse_qs(urlsplit(seen.target).query) == {"projectKey": ["REL"]}


@pytest.mark.parametrize("dialect", ["auto", "cloud"])
def test_cloud_gets_the_names_of_the_permissions(dialect: str) -> None:
    rejected = Reply(400, {"errorMessages": ["The 'permissions' query parameter is required."]})
    known = told(ADMINISTER_PROJECTS=LACKS, ADMINISTER=LACKS)
    with Stub(*([rejected] if dialect == "auto" else []), known) as stub:
        missing = lacking(client(stub, dialect), ["ADMINISTER_PROJECTS"], projectKey="REL")
    assert missing == ["ADMINISTER_PROJECTS"]
    names = parse_qs(urlsplit(stub.seen[-1].target).query)["permissions"]
    assert names == ["ADMINISTER_PROJECTS,ADMINISTER"]


def test_rejection_names_each_permission_once() -> None:
    shown = told(LINK_ISSUES=LACKS, ADD_COMMENTS=LACKS, EDIT_ISSUES=HAS)
    needs = ["EDIT_ISSUES", "LINK_ISSUES", "LINK_ISSUES", "ADD_COMMENTS"]
    with Stub(shown) as stub, pytest.raises(ToolchainError) as caught:
        require_permissions(client(stub), "changing the issue 'REL-1'", needs, issueKey="REL-1")
    assert caught.value.kind == "permission"
    assert caught.value.message == (
        "changing the issue 'REL-1': the account lacks the permission LINK_ISSUES and ADD_COMMENTS"
    )


def test_no_request_without_required_permissions() -> None:
    with Stub() as stub:
        require_permissions(client(stub), "nothing", [], issueKey="REL-1")
    assert stub.seen == []
