# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the promotion of release bundles [repo-33]."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle_promote import (
    ReleaseBundlePromoteOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

API = "/lifecycle/api/v2"
PROMOTE = f"POST {API}/promotion/records/agent/1?async=true&operation=copy"
DETAILS = f"GET {API}/promotion/records/agent/1"
STATUS = f"GET {API}/promotion/statuses/agent/1"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)


def promotion(**given: Any) -> dict[str, Any]:
    return {"name": "agent", "version": "1", "environment": "PROD", **given}


def row(
    millis: int, environment: str = "PROD", status: str = "COMPLETED", **more: Any
) -> dict[str, Any]:
    shown = {"environment": environment, "status": status, "created": "then"}
    return {**shown, "created_millis": millis, **more}


class Lifecycle:
    """A bundle with promotions; `most` is the size of a page."""

    def __init__(self, server: Server, *rows: Mapping[str, Any], most: int = 100) -> None:
        self.server, self.rows, self._most = server, list(rows), most
        for offset in range(6):
            where = f"?include=MSG&offset={offset}&limit=100"
            server.on[f"GET {API}/promotion/records/agent/1{where}"] = self._page
        server.on[f"GET {API}/release_bundle/existence/agent/1"] = Reply(body={"exists": True})
        keys = [{"key": key, "type": "LOCAL"} for key in ("rel", "old", "new", "a", "b")]
        server.on["GET /api/repositories"] = Reply(body=json.dumps(keys))
        self.has("COMPLETED")
        server.on[PROMOTE] = self._promote

    def has(self, *statuses: str) -> None:
        """Set the status of the bundle."""
        replies = [Reply(body={"status": status}) for status in statuses]
        self.server.on[f"GET {API}/release_bundle/statuses/agent/1"] = list(replies)

    def _page(self, seen: Seen) -> Reply:
        offset = int(seen.target.partition("offset=")[2].partition("&")[0])
        return Reply(body={"promotions": self.rows[offset : offset + self._most]})

    def _promote(self, _seen: Seen) -> Reply:
        millis = self.add()
        return Reply(202, {"created_millis": millis})

    def add(self, *statuses: str) -> int:
        """Record a new promotion."""
        millis = 1 + max([record["created_millis"] for record in self.rows], default=0)
        self.rows.insert(0, row(millis))
        replies = [Reply(body={"status": status}) for status in (*statuses, "COMPLETED")]
        self.server.on[f"{STATUS}/{millis}"] = list(replies)
        return millis

    @property
    def writes(self) -> list[str]:
        return [seen.method for seen in self.server.stub.seen if seen.method == "POST"]


def test_bundle_is_promoted(server: Server) -> None:
    server_side = Lifecycle(server)
    given = promotion(
        included_repositories=["rel"], excluded_repositories=["old"], signing_key="pair"
    )
    plan, values = server.run(ReleaseBundlePromoteOperation, given)
    assert plan.action == "create"
    assert values["promotion"] == {
        "environment": "PROD",
        "status": "COMPLETED",
        "created": "then",
        "created_millis": 1,
        "included_repositories": ["rel"],
    }
    assert server.bodies(PROMOTE) == [
        {
            "environment": "PROD",
            "included_repository_keys": ["rel"],
            "excluded_repository_keys": ["old"],
        }
    ]
    sent = next(seen for seen in server.stub.seen if seen.method == "POST")
    assert sent.headers["X-JFrog-Signing-Key-Name"] == "pair"
    assert server_side.writes == ["POST"]


def test_newest_promotion_of_environment_counts_over_all_pages(server: Server) -> None:
    rows = [row(3, "QA"), row(5), row(4, "QA"), row(2, status="FAILED"), row(1)]
    server_side = Lifecycle(server, *rows, most=2)
    for environment, millis in (("QA", 4), ("PROD", 5)):
        given = promotion(environment=environment)
        plan, values = server.run(ReleaseBundlePromoteOperation, given)
        assert not plan.changed
        assert values["promotion"]["created_millis"] == millis
    assert server_side.writes == []


def test_failed_promotion_is_repeated(server: Server) -> None:
    Lifecycle(server, row(2, status="FAILED"), row(1))
    plan, values = server.run(ReleaseBundlePromoteOperation, promotion())
    assert plan.action == "update"
    assert values["promotion"]["created_millis"] == 3


@pytest.mark.parametrize(
    ("there", "changed"),
    [(["b", "a"], False), (["a"], True), (["a", "b", "c"], True), ([], True), (None, False)],
)
def test_repositories_are_compared_as_a_set(
    server: Server, there: list[str] | None, changed: bool
) -> None:
    Lifecycle(server, row(7))
    server.on[f"{DETAILS}/7"] = Reply(body={"included_repository_keys": there})
    given = promotion(included_repositories=["a", "b"])
    plan, values = server.run(ReleaseBundlePromoteOperation, given, check=True)
    assert plan.changed is changed
    assert values["promotion"]["included_repositories"] == ["a", "b"]
    assert not server.run(ReleaseBundlePromoteOperation, promotion(), check=True)[0].changed


def test_excluded_repositories_are_compared(server: Server) -> None:
    Lifecycle(server, row(7, included_repository_keys=[], excluded_repository_keys=["old"]))
    for wanted, changed in ((["old"], False), (["new"], True)):
        given = promotion(excluded_repositories=wanted)
        plan, _values = server.run(ReleaseBundlePromoteOperation, given, check=True)
        assert plan.changed is changed


def test_running_promotion_is_joined(server: Server) -> None:
    server_side = Lifecycle(server, row(7, status="STARTED"))
    server.on[f"{STATUS}/7"] = [Reply(body={"status": one}) for one in ("STARTED", "COMPLETED")]
    operation = server.operation(ReleaseBundlePromoteOperation, promotion())
    plan = operation.plan()
    assert not plan.changed
    assert plan.waits
    assert operation.apply(plan)["promotion"]["created_millis"] == 7
    assert server_side.writes == []


def test_lost_response_is_resolved_by_the_records(server: Server) -> None:
    server_side = Lifecycle(server, row(7, "QA"))

    def lost(_seen: Seen) -> Reply:
        server_side.add()
        return Reply(cut=True)

    server.on[PROMOTE] = lost
    _plan, values = server.run(ReleaseBundlePromoteOperation, promotion())
    assert values["promotion"]["created_millis"] == 8
    assert server_side.writes == ["POST"]


def test_lost_request_is_not_resent(server: Server) -> None:
    server_side = Lifecycle(server)
    server.on[PROMOTE] = Reply(502)
    error = server.fails(ReleaseBundlePromoteOperation, promotion())
    assert "nothing was changed" in error.message
    assert server_side.writes == ["POST"]


def test_response_without_identity_is_resolved_by_the_records(server: Server) -> None:
    server_side = Lifecycle(server)

    def silent(_seen: Seen) -> Reply:
        server_side.add()
        return Reply(200, {})

    server.on[PROMOTE] = silent
    _plan, values = server.run(ReleaseBundlePromoteOperation, promotion())
    assert values["promotion"]["created_millis"] == 1
    server.on[PROMOTE] = Reply(200, {})
    error = server.fails(ReleaseBundlePromoteOperation, promotion(environment="QA"))
    assert "lists no new promotion" in error.message


def test_failed_promotion_is_an_error(server: Server) -> None:
    server_side = Lifecycle(server)

    def failing(_seen: Seen) -> Reply:
        millis = server_side.add()
        reported = {"status": "FAILED", "messages": [{"text": "no rights"}]}
        server.on[f"{STATUS}/{millis}"] = Reply(body=reported)
        return Reply(202, {"created_millis": millis})

    server.on[PROMOTE] = failing
    error = server.fails(ReleaseBundlePromoteOperation, promotion())
    assert error.kind == "failed"
    assert "FAILED: no rights" in error.message
    assert error.result["changed"] is True


def test_timeout_is_an_error(server: Server) -> None:
    server_side = Lifecycle(server)

    def slow(_seen: Seen) -> Reply:
        millis = server_side.add(*["STARTED"] * 100)
        return Reply(202, {"created_millis": millis})

    server.on[PROMOTE] = slow
    given = promotion(wait_timeout=0.01)
    assert server.fails(ReleaseBundlePromoteOperation, given).kind == "timeout"


def test_promotion_is_not_awaited_without_wait(server: Server) -> None:
    Lifecycle(server)
    move = PROMOTE.replace("copy", "move")
    server.on[move] = server.on.pop(PROMOTE)
    given = promotion(wait=False, operation="move")
    server.run(ReleaseBundlePromoteOperation, given)
    assert f"{STATUS}/1" not in server.asked


def test_bundle_in_creation_is_awaited(server: Server) -> None:
    server_side = Lifecycle(server)
    server_side.has("STARTED", "STARTED", "COMPLETED")
    server.run(ReleaseBundlePromoteOperation, promotion())
    assert server_side.writes == ["POST"]


@pytest.mark.parametrize(
    ("status", "kind"), [("FAILED", "failed"), ("DELETING", "conflict"), ("DRAFT", "conflict")]
)
def test_incomplete_bundle_is_an_error(server: Server, status: str, kind: str) -> None:
    server_side = Lifecycle(server)
    server_side.has(status)
    assert server.fails(ReleaseBundlePromoteOperation, promotion()).kind == kind
    assert server_side.writes == []


@pytest.mark.parametrize("empty", [True, False])
def test_missing_bundle_is_not_found(server: Server, empty: bool) -> None:
    Lifecycle(server)
    if not empty:
        own = Reply(404, {"errors": [{"code": "NOT_FOUND", "message": "no bundle"}]})
        server.on[f"{DETAILS}?include=MSG&offset=0&limit=100"] = own
    server.on[f"GET {API}/release_bundle/existence/agent/1"] = Reply(body={"exists": False})
    assert server.fails(ReleaseBundlePromoteOperation, promotion()).kind == "not_found"


def test_missing_interface_is_reported(server: Server) -> None:
    error = server.fails(ReleaseBundlePromoteOperation, promotion())
    assert "requires Artifactory 7.63.2 or newer" in error.message


def test_promotion_without_time_is_a_protocol_error(server: Server) -> None:
    Lifecycle(server, {"environment": "PROD", "status": "COMPLETED"})
    assert server.fails(ReleaseBundlePromoteOperation, promotion()).kind == "protocol"


def test_time_of_promotion_may_be_a_string(server: Server) -> None:
    moment = "2026-01-02T03:04:05.678Z"
    Lifecycle(server, {"environment": "PROD", "status": "COMPLETED", "created": moment})
    _plan, values = server.run(ReleaseBundlePromoteOperation, promotion(), check=True)
    assert values["promotion"]["created_millis"] == 1767323045678


@pytest.mark.parametrize("option", ["included_repositories", "excluded_repositories"])
def test_unknown_repository_is_not_found_in_check_mode(server: Server, option: str) -> None:
    Lifecycle(server)
    given = promotion(**{option: ["rel", "rle"]})
    with pytest.raises(ToolchainError, match="'rle'") as caught:
        server.run(ReleaseBundlePromoteOperation, given, check=True)
    assert caught.value.kind == "not_found"
    given = promotion(**{option: ["rel"]})
    assert server.run(ReleaseBundlePromoteOperation, given, check=True)[0].changed


@pytest.mark.parametrize("option", ["included_repositories", "excluded_repositories"])
def test_invalid_repository_is_rejected_before_any_request(server: Server, option: str) -> None:
    error = server.fails(ReleaseBundlePromoteOperation, promotion(**{option: ["a/b"]}))
    assert (error.kind, option in error.message) == ("invalid", True)


def test_project_and_repository_key_are_sent(server: Server) -> None:
    where = "?project=pay&repository_key=own"
    server.on[f"{DETAILS}{where}&include=MSG&offset=0&limit=100"] = Reply(
        body={"promotions": [row(1)], "total": 1}
    )
    given = promotion(project="pay", repository_key="own")
    assert not server.run(ReleaseBundlePromoteOperation, given)[0].changed
