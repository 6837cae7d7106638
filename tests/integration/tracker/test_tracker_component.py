# SPDX-License-Identifier: GPL-3.0-or-later
"""Test components of a project, on servers and in the cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_component import (
    TrackerComponentOperation,
    TrackerComponentOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import DEVELOPER, Done, Tracker

SERVERS: dict[str, dict[str, Any]] = {"server": {}, "cloud": {"deployment": "Cloud"}}


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerComponentOperation, TrackerComponentOptions)
    sandbox.clear_faults()


def rel(tracker: Tracker, name: str, **options: Any) -> Done:
    return tracker(project="REL", name=name, **options)


def shown(tracker: Tracker, name: str) -> dict[str, Any] | None:
    found = tracker.get("project/REL/components")
    return next((one for one in found if one["name"] == name), None)


@pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
def test_component_is_created_updated_and_deleted(
    tracker: Tracker, settings: dict[str, Any]
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    life: list[dict[str, Any]] = [
        {"description": "größe", "lead": "alice", "assignee_type": "component_lead"},
        {"new_name": "setup", "lead": ""},
        {"new_name": "SETUP", "assignee_type": "unassigned", "description": ""},
        {"new_name": "setup", "state": "present", "lead": "boris"},
    ]
    if settings:
        life[0]["lead"], life[3]["lead"] = "Alice Example", "account-boris"
    for step in life:
        predicted = rel(tracker, "installer", check=True, **step)
        done = rel(tracker, "installer", **step)
        assert (predicted.changed, done.changed) == (True, True)
        assert predicted.diff == done.diff
        assert {**done.values["component"], "id": None} == {
            **predicted.values["component"],
            "id": None,
        }
        assert len(done.writes) == 1
        again = rel(tracker, "installer", **step)
        assert not again.changed
        # another account may have the display name, so it is searched for
        assert len(again.requests) <= (3 if step.get("lead") == "Alice Example" else 1)
    rel(tracker, "setup", state="absent")
    assert shown(tracker, "setup") is None


def test_issues_of_a_deleted_component_are_moved_or_cleared(tracker: Tracker) -> None:
    issues = [{"key": "REL-90", "summary": "x", "components": ["server"]}]
    tracker.sandbox.seed({"tracker": {"issues": issues}})
    server, client = shown(tracker, "server"), shown(tracker, "client")
    assert server is not None
    assert client is not None
    count = tracker.get(f"component/{server['id']}/relatedIssueCounts")["issueCount"]
    assert count
    for check in (True, False):
        refusal = {"name": "server", "state": "absent", "check": check}
        error = tracker.refused("conflict", "move_issues_to", project="REL", **refusal)
        assert "force" in error.message
    done = rel(tracker, "server", state="absent", move_issues_to="Client")
    assert done.changed
    assert tracker.get(f"component/{client['id']}/relatedIssueCounts")["issueCount"] >= count
    assert rel(tracker, "client", state="absent", force=True).changed
    tracker.refused(
        "not_found",
        "no component 'nowhere'",
        project="REL",
        name="documentation",
        state="absent",
        move_issues_to="nowhere",
    )


def test_server_without_archiving_is_reported(tracker: Tracker) -> None:
    assert rel(tracker, "server", archived=True).values["component"]["archived"]
    tracker.sandbox.settings("tracker", component_archive=False)
    tracker.refused("rejected", "archived", project="REL", name="client", archived=True)
    tracker.sandbox.settings("tracker", deployment="Cloud")
    given = {"project": "REL", "name": "client", "archived": True, "check": True}
    tracker.refused("rejected", "components of Jira Cloud cannot be archived", **given)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("archived cannot be combined with state=absent", {"state": "absent", "archived": False}),
        ("force requires state=absent", {"force": True}),
        ("move_issues_to requires state=absent", {"move_issues_to": "server"}),
        ("use another component", {"state": "absent", "move_issues_to": "CLIENT"}),
        ("more than 255 characters", {"new_name": "x" * 256}),
        ("a line break", {"new_name": "x\ty"}),
    ],
)
def test_contradictory_options_are_rejected(
    tracker: Tracker, words: str, options: dict[str, Any]
) -> None:
    tracker.refused("invalid", words, project="REL", name="client", **options)


def test_missing_objects_are_named_in_both_modes(tracker: Tracker) -> None:
    for check in (True, False):
        lead = {"project": "REL", "name": "client", "lead": "nobody", "check": check}
        tracker.refused("not_found", "lead: there is no such account", **lead)
        hidden = {"project": "NONE", "name": "client", "check": check}
        tracker.refused("not_found", "the project does not exist", **hidden)


def test_name_in_use_is_a_conflict_and_missing_permission_an_error(tracker: Tracker) -> None:
    tracker.refused("conflict", "'server'", project="REL", name="client", new_name="server")
    tracker.refused("permission", project="REL", name="new", login=DEVELOPER)


def test_entries_are_compared_with_one_request_per_project(tracker: Tracker) -> None:
    entries = [
        {"project": "REL", "name": "client", "description": "all that users see"},
        {"project": "REL", "name": "server"},
        {"project": "OPS", "name": "network", "lead": "boris"},
        {"project": "REL", "name": "documentation", "state": "absent"},
    ]
    predicted = tracker(entries=entries, check=True)
    done = tracker(entries=entries)
    assert predicted.diff == done.diff
    assert [(result["name"], result["action"]) for result in done.values["results"]] == [
        ("REL/client", "updated"),
        ("REL/server", "unchanged"),
        ("OPS/network", "created"),
        ("REL/documentation", "deleted"),
    ]
    assert done.values["results"][2]["lead"] == "boris"
    again = tracker(entries=entries)
    assert not again.changed
    assert len(again.requests) <= 2


def test_failed_entry_does_not_stop_the_others(tracker: Tracker) -> None:
    entries = [
        {"project": "NONE", "name": "client"},
        {"project": "REL", "name": "client", "lead": "nobody"},
        {"project": "REL", "name": "server", "description": "new"},
    ]
    error = tracker.refused("not_found", "entries[0]", "2 of 3 entries failed", entries=entries)
    actions = [result["action"] for result in error.result["results"]]
    assert actions == ["unchanged", "unchanged", "updated"]
    found = shown(tracker, "server")
    assert found is not None
    assert found["description"] == "new"
    twins = [{"project": "REL", "name": "x"}, {"project": "REL", "name": "X"}]
    tracker.refused("invalid", "list each object once", entries=twins)
    with pytest.raises(AssertionError, match="one of the following is required: project, entries"):
        tracker(name="x")
    wildcard = {"project": "REL", "name": "x*", "state": "absent"}
    tracker.refused("invalid", "must name a single component", **wildcard)


@pytest.mark.parametrize(
    ("given", "method", "response", "failure"),
    [
        ({"state": "absent"}, "DELETE", (204, ""), ("failed", "but the object still exists")),
        ({"description": "x"}, "PUT", (200, "ECHO"), ("rejected", "did not save description")),
        ({"description": "x"}, "PUT", (200, "{}"), ("rejected", "did not save description")),
    ],
)
def test_accepted_change_that_is_not_stored_fails_in_every_run(
    tracker: Tracker,
    given: dict[str, Any],
    method: str,
    response: tuple[int, str],
    failure: tuple[str, str],
) -> None:
    status, body = response
    current = rel(tracker, "installer").values["component"]
    echo = json.dumps({"id": current["id"], "name": "installer", "description": "x"})
    for _run in range(2):
        tracker.sandbox.fault(
            service="tracker",
            method=method,
            path="/component/[0-9]+$",
            status=status,
            body=body.replace("ECHO", echo),
        )
        error = tracker.refused(*failure, project="REL", name="installer", **given)
        assert not error.result.get("changed")
