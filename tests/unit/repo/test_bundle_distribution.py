# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the distribution of release bundles [repo-33]."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles.release_bundle_distribute import (
    ReleaseBundleDistributeOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

API = "/lifecycle/api/v2"
TRACKERS = f"GET {API}/distribution/trackers/agent/1"
DISTRIBUTE = f"POST {API}/distribution/distribute/agent/1?async=true"
DELETE = f"POST {API}/distribution/remote_delete/agent/1?async=true"
EXISTS, STATUS = (
    f"GET {API}/release_bundle/existence/agent/1",
    f"GET {API}/release_bundle/statuses/agent/1",
)
WIDE = {"site_name": "*", "city_name": "*", "country_codes": ["*"]}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)


def wanted(**given: Any) -> dict[str, Any]:
    return {"name": "agent", "version": "1", **given}


def tracker(identity: Any, *sites: str, status: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    places = [{"status": status, "target_artifactory": {"name": name}} for name in sites]
    return {"id": identity, "type": "distribute", "status": status, "sites": places, **more}


def deleted(identity: Any, *sites: str, **more: Any) -> dict[str, Any]:
    return tracker(identity, *sites, **{"type": "delete_release_bundle_version", **more})


def has(server: Server, *trackers: dict[str, Any]) -> None:
    body: Any = list(trackers)
    server.on |= {
        TRACKERS: Reply(body=json.dumps(body)),
        EXISTS: Reply(body={"exists": True}),
        STATUS: Reply(body={"status": "COMPLETED"}),
        DISTRIBUTE: Reply(202, {"id": 9}),
        DELETE: Reply(202, {"id": 9}),
        f"{TRACKERS}/9": Reply(body=tracker(9, "edge-1", "edge-2")),
    }


def is_changed(server: Server, *sites: str, **given: Any) -> bool:
    if sites:
        given["rules"] = [{"site": site} for site in sites]
    operation = ReleaseBundleDistributeOperation
    return server.run(operation, wanted(**given), check=True)[0].changed


def test_bundle_is_distributed_to_all_sites(server: Server) -> None:
    has(server)
    running = tracker(9, "edge-1", status="In progress")
    server.on[f"{TRACKERS}/9"] = [Reply(body=running), Reply(body=tracker(9, "edge-1", "edge-2"))]
    given = wanted(create_repositories=True, mappings=[{"input": "(.*)", "output": "x/$1"}])
    plan, values = server.run(ReleaseBundleDistributeOperation, given)
    assert plan.action == "create"
    assert values["distribution"] == {
        "id": "9",
        "status": "COMPLETED",
        "sites": [
            {"name": "edge-1", "status": "COMPLETED"},
            {"name": "edge-2", "status": "COMPLETED"},
        ],
    }
    assert server.bodies(DISTRIBUTE) == [
        {
            "dry_run": False,
            "auto_create_missing_repositories": True,
            "distribution_rules": [WIDE],
            "modifications": {"mappings": [{"input": "(.*)", "output": "x/$1"}]},
        }
    ]


def test_rules_are_sent(server: Server) -> None:
    has(server)
    rules = [{"site": "edge-*", "city": "Bern", "countries": ["CH"]}, {"site": "edge-2"}]
    server.run(ReleaseBundleDistributeOperation, wanted(rules=rules))
    assert server.bodies(DISTRIBUTE)[0]["distribution_rules"] == [
        {"site_name": "edge-*", "city_name": "Bern", "country_codes": ["CH"]},
        {**WIDE, "site_name": "edge-2"},
    ]


def test_rule_that_the_server_ignored_is_an_error(server: Server) -> None:
    has(server, tracker(1, "edge-3"))
    rules = [{"site": "edge-1"}, {"site": "edge-3"}, {"site": "EDGE-2"}]
    error = server.fails(ReleaseBundleDistributeOperation, wanted(rules=rules))
    assert error.kind == "rejected"
    assert error.message.endswith("to edge-1, edge-2, but not to 'EDGE-2': correct rules")
    assert error.result["changed"]


def test_distributed_bundle_is_unchanged(server: Server) -> None:
    has(server, tracker(1, "edge-1", "edge-2"))
    assert not is_changed(server)
    assert not is_changed(server, "edge-1")
    assert not is_changed(server, "edge-2", "edge-*")
    assert is_changed(server, "edge-3")
    assert is_changed(server, "other-*")


def test_site_with_later_deletion_lacks_the_bundle(server: Server) -> None:
    has(server, deleted(2, "edge-1"), tracker(1, "edge-1", "edge-2"))
    assert is_changed(server)
    assert is_changed(server, "edge-1")
    assert not is_changed(server, "edge-2")
    has(server, deleted(2, "edge-1"), tracker(10, "edge-1"), tracker(1, "edge-1", "edge-2"))
    assert not is_changed(server)


def test_newest_tracker_counts(server: Server) -> None:
    early, late = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
    has(server, tracker("b", "edge-1", created=late), deleted("c", "edge-1", created=early))
    assert not is_changed(server, "edge-1")
    has(server, tracker("b", "edge-1"), deleted("a", "edge-1"))
    assert is_changed(server, "edge-1")


def test_failed_distribution_counts_for_completed_sites(server: Server) -> None:
    broken = tracker(1, "edge-1", "edge-2", status="Failed")
    broken["sites"][0]["status"] = "Completed"
    has(server, broken)
    assert not is_changed(server, "edge-1")
    assert is_changed(server, "edge-2")


def test_narrower_earlier_rule_is_not_enough(server: Server) -> None:
    narrow = [{**WIDE, "site_name": "edge-1"}]
    has(server, tracker(1, "edge-1", distribution_rules=narrow))
    assert is_changed(server)
    assert is_changed(server, "edge-*")
    assert not is_changed(server, "edge-1")
    has(server, tracker(1, "edge-1", distribution_rules=[WIDE]))
    assert not is_changed(server)
    assert not is_changed(server, rules=[{"city": "Bern", "countries": ["CH"]}])
    swiss = [{**WIDE, "country_codes": ["CH"]}]
    has(server, tracker(1, "edge-1", distribution_rules=swiss))
    assert is_changed(server)
    assert not is_changed(server, rules=[{"countries": ["CH"]}])


def test_trackers_without_sites_are_read_individually(server: Server) -> None:
    short = {"id": 1, "type": "distribute", "status": "COMPLETED"}
    has(server, short)
    server.on[f"{TRACKERS}/1"] = Reply(body=tracker(1, "edge-1"))
    assert not is_changed(server, "edge-1")


def test_running_distribution_is_joined(server: Server) -> None:
    has(server, tracker(7, "edge-1", status="In progress"))
    server.on[f"{TRACKERS}/7"] = Reply(body=tracker(7, "edge-1"))
    operation = server.operation(ReleaseBundleDistributeOperation, wanted())
    plan = operation.plan()
    assert not plan.changed
    assert plan.waits
    assert operation.apply(plan)["distribution"]["status"] == "COMPLETED"
    assert DISTRIBUTE not in server.asked


def test_lost_response_is_verified(server: Server) -> None:
    has(server, tracker(1, "edge-1"))
    after = json.dumps([tracker(1, "edge-1"), tracker(9, "edge-2")])
    server.on[TRACKERS] = [server.on[TRACKERS], Reply(body=after)]  # type: ignore[list-item]
    server.on[DISTRIBUTE] = Reply(cut=True)
    given = wanted(rules=[{"site": "edge-2"}])
    _plan, values = server.run(ReleaseBundleDistributeOperation, given)
    assert values["distribution"]["id"] == "9"
    assert server.asked.count(DISTRIBUTE) == 1


def test_response_without_id_is_an_error(server: Server) -> None:
    has(server)
    server.on[DISTRIBUTE] = Reply(200, {})
    error = server.fails(ReleaseBundleDistributeOperation, wanted())
    assert "lists no new tracker" in error.message


def test_failed_distribution_is_an_error(server: Server) -> None:
    has(server)
    broken = tracker(9, "edge-1", status="FAILED")
    broken["sites"][0]["general_error"] = "no space left"
    server.on[f"{TRACKERS}/9"] = Reply(body=broken)
    error = server.fails(ReleaseBundleDistributeOperation, wanted())
    assert error.kind == "failed"
    assert "edge-1: no space left" in error.message
    assert error.result["changed"] is True
    assert error.result["distribution"]["status"] == "FAILED"


def test_timeout_and_no_waiting(server: Server) -> None:
    has(server)
    server.on[f"{TRACKERS}/9"] = Reply(body=tracker(9, "edge-1", status="In queue"))
    error = server.fails(ReleaseBundleDistributeOperation, wanted(wait_timeout=0.01))
    assert error.kind == "timeout"
    _plan, values = server.run(ReleaseBundleDistributeOperation, wanted(wait=False))
    assert values["distribution"]["status"] == "IN_QUEUE"


def test_bundle_is_deleted_from_sites(server: Server) -> None:
    has(server, tracker(1, "edge-1", "edge-2"))
    server.on[f"{TRACKERS}/9"] = Reply(body=deleted(9, "edge-1"))
    given = wanted(state="absent", rules=[{"site": "edge-1"}])
    plan, values = server.run(ReleaseBundleDistributeOperation, given)
    assert plan.action == "delete"
    assert values["distribution"]["sites"] == [{"name": "edge-1", "status": "COMPLETED"}]
    rules = [{**WIDE, "site_name": "edge-1"}]
    assert server.bodies(DELETE) == [{"dry_run": False, "distribution_rules": rules}]


def test_undistributed_bundle_is_absent(server: Server) -> None:
    has(server)
    assert not is_changed(server, state="absent")
    has(server, deleted(2, "edge-1"), tracker(1, "edge-1"))
    assert not is_changed(server, state="absent")
    server.on[TRACKERS] = Reply(404, {"errors": [{"code": "NOT_FOUND"}]})
    assert not is_changed(server, state="absent")


def test_missing_interface_is_an_error_in_both_states(server: Server) -> None:
    for state in ("present", "absent"):
        error = server.fails(ReleaseBundleDistributeOperation, wanted(state=state))
        assert "requires Artifactory 7.63.2 or newer" in error.message


def test_missing_bundle_is_not_found(server: Server) -> None:
    has(server)
    server.on[EXISTS] = Reply(body={"exists": False})
    assert server.fails(ReleaseBundleDistributeOperation, wanted()).kind == "not_found"


def test_project_and_repository_key_are_sent(server: Server) -> None:
    has(server, tracker(1, "edge-1"))
    server.on[f"{TRACKERS}?project=pay&repository_key=own"] = server.on[TRACKERS]
    assert not is_changed(server, "edge-1", project="pay", repository_key="own")


def test_options_of_the_other_state_are_invalid(server: Server) -> None:
    given = wanted(state="absent", create_repositories=True)
    assert server.fails(ReleaseBundleDistributeOperation, given).kind == "invalid"


@pytest.mark.parametrize(
    "body", [{}, [{"status": "COMPLETED", "sites": []}], [{"id": 1, "sites": []}]]
)
def test_malformed_trackers_are_a_protocol_error(server: Server, body: Any) -> None:
    has(server)
    server.on[TRACKERS] = Reply(body=json.dumps(body))
    assert server.fails(ReleaseBundleDistributeOperation, wanted()).kind == "protocol"


def test_request_is_sent_once(server: Server) -> None:
    has(server)

    def refused(_seen: Seen) -> Reply:
        return Reply(403, {"errors": [{"code": "FORBIDDEN", "message": "no rights"}]})

    server.on[DISTRIBUTE] = refused
    error = server.fails(ReleaseBundleDistributeOperation, wanted())
    assert (error.kind, server.asked.count(DISTRIBUTE)) == ("permission", 1)
