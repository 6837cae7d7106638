# SPDX-License-Identifier: GPL-3.0-or-later
"""Test writes of `tracker_issue` that the server accepts, but does not store [C11.1]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import Tracker

#: Options of a write, its method, its path, the status of the response, and the named change.
WRITES: dict[str, tuple[dict[str, Any], str, str, int, str]] = {
    "summary": ({"summary": "new"}, "PUT", "/issue/REL-22$", 204, "summary"),
    "list": ({"add": {"labels": ["x"]}}, "PUT", "/issue/REL-22$", 204, "labels"),
    "assignee": ({"assignee": "boris"}, "PUT", "/issue/REL-22$", 204, "assignee"),
    "field": ({"fields": {"Due date": "2026-06-01"}}, "PUT", "/issue/REL-22$", 204, "Due date"),
    "link": (
        {"links": [{"type": "Blocks", "issue": "REL-2"}]},
        *("POST", "/issueLink$", 201, "links 'blocks REL-2'"),
    ),
    "remote link": (
        {"remote_links": [{"url": "https://a.example.com"}]},
        *("POST", "/remotelink$", 201, "remote_links 'https://a.example.com'"),
    ),
    "watcher": ({"watchers": ["boris"]}, "POST", "/watchers$", 204, "watchers 'boris'"),
    "comment": ({"comment": "hello"}, "POST", "/comment$", 201, "comment"),
    "attachment": (
        {"attachments": [__file__]},
        *("POST", "/attachments$", 200, "attachments 'test_tracker_issue_stored.py'"),
    ),
    "status": ({"status": "In Progress"}, "POST", "/transitions$", 204, "status"),
}
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerIssueOperation, TrackerIssueOptions)
    sandbox.clear_faults()


def ignore(tracker: Tracker, method: str, path: str, status: int) -> None:
    """Let the tracker accept every such write, without storing anything."""
    for _number in range(3):
        body = "{}" if status == 201 else "[]" if status == 200 else ""
        tracker.sandbox.fault(service="tracker", method=method, path=path, status=status, body=body)


def reads_after_the_last_write(requests: list[dict[str, Any]]) -> list[str]:
    last = max(number for number, request in enumerate(requests) if request["write"])
    return [f"{request['method']} {request['path']}" for request in requests[last + 1 :]]


@pytest.mark.parametrize("deployment", ["Server", "Cloud"])
@each_write
def test_change_that_is_not_stored_is_rejected_in_every_run(
    tracker: Tracker, deployment: str, write: tuple[dict[str, Any], str, str, int, str]
) -> None:
    options, method, path, status, named = write
    tracker.sandbox.settings("tracker", deployment=deployment)
    if deployment == "Cloud" and named in ("assignee", "watchers 'boris'"):
        options = dict.fromkeys(options, "account-boris")
        named = named.replace("boris", "account-boris")
    ignore(tracker, method, path, status)
    for _run in range(2):
        error = tracker.refused("rejected", f"did not save {named}", issue="REL-22", **options)
        assert error.result["changed"] is False
        assert error.result["issues"][0]["changes"] == []


@each_write
def test_one_read_after_the_writes(
    tracker: Tracker, write: tuple[dict[str, Any], str, str, int, str]
) -> None:
    options = write[0]
    done = tracker(issue="REL-22", **options)
    assert len(reads_after_the_last_write(done.requests)) == 1
    assert not tracker(issue="REL-22", **options).writes


def test_all_parts_of_an_issue_are_read_at_once(tracker: Tracker) -> None:
    given: dict[str, Any] = {
        "summary": "new",
        "links": [{"type": "Blocks", "issue": "REL-2"}],
        "watchers": ["boris"],
        "status": "In Progress",
        "comment": "hello",
    }
    done = tracker(issue="REL-22", **given)
    # a server drops the comment of a transition without a screen, so it is added and read again
    assert reads_after_the_last_write(done.requests) == ["GET /rest/api/2/issue/REL-22"]
    paths = [request["path"] for request in done.requests if not request["write"]]
    assert paths.count("/rest/api/2/issue/REL-22/watchers") == 2
    assert paths.count("/rest/api/2/issue/REL-22") == 3


def test_stored_changes_are_returned_with_the_error(tracker: Tracker) -> None:
    ignore(tracker, "POST", "/watchers$", 204)
    given = {"issue": "REL-22", "labels": ["x"], "watchers": ["boris"]}
    error = tracker.refused("rejected", "did not save watchers 'boris'", **given)
    assert error.result["changed"] is True
    assert [change["field"] for change in error.result["issues"][0]["changes"]] == ["labels"]


def test_field_that_a_creation_ignores_is_edited(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", ignored_fields=["duedate"])
    given: dict[str, Any] = {
        "match": "project = REL AND labels = once",
        "project": "REL",
        "type": "Task",
        "summary": "Made once",
        "labels": ["once"],
        "fields": {"Due date": "2026-06-01"},
    }
    error = tracker.refused("rejected", "did not save Due date", **given)
    assert error.result["changed"] is True
    assert error.result["issues"][0]["key"] == "REL-26"
    tracker.refused("rejected", "did not save Due date", **given)
    tracker.sandbox.settings("tracker", ignored_fields=[])
    assert tracker(**given).values["issues"][0]["action"] == "updated"


def test_comment_of_a_transition_that_never_happened_is_not_added(tracker: Tracker) -> None:
    ignore(tracker, "POST", "/transitions$", 204)
    given = {"issue": "REL-22", "status": "In Progress", "comment": "moved"}
    tracker.refused("rejected", "did not save status, comment", **given)
    assert tracker.get("issue/REL-22/comment")["comments"] == []


def test_workflow_may_change_a_stored_field(tracker: Tracker) -> None:
    steps = [{"id": "1", "name": "Go", "from": ["Open"], "to": "Done", "sets": {"priority": "Low"}}]
    flow = {"workflows": {"REL": {"initial": "Open", "transitions": steps}}}
    other = {"key": "REL-90", "summary": "other", "priority": "Low"}
    tracker.sandbox.seed({"tracker": {**flow, "issues": [other]}})
    done = tracker(issue="REL-22", priority="Medium", status="Done")
    assert done.changed
    assert "the workflow of the issue 'REL-22' changed priority to 'Low'" in done.warnings[0]


def test_field_of_a_transition_that_is_not_stored_is_rejected(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", ignored_fields=["fixVersions"])
    given = {"resolution": "fixed", "Fix Version/s": ["2.0.0"]}
    tracker(issue="REL-22", status="In Progress")
    words = "did not save transition_fields.Fix Version/s"
    error = tracker.refused(
        "rejected", words, issue="REL-22", status="Done", transition_fields=given
    )
    assert error.result["changed"] is True
    assert not tracker(issue="REL-22", status="Done").changed
