# SPDX-License-Identifier: GPL-3.0-or-later
"""Test who can see a comment, and comments that go with a transition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

ME = {"name": "reporter", "key": "reporter"}
ROLE = {"type": "role", "value": "Developers"}
INTERNAL = [{"key": "sd.public.comment", "value": {"internal": True}}]


def comment(**members: Any) -> dict[str, Any]:
    return {"id": "7", "author": ME, "body": "Done", **members}


class Tracker:
    """A server with an issue in the status `Open` and its comments.

    :param drops: whether it ignores the comment of a transition
    :param required: whether the transition requires a comment
    """

    def __init__(self, *comments: Any, drops: bool = False, required: bool = False) -> None:
        self.comments, self.status = list(comments), {"name": "Open", "id": "1"}
        self._drops, self._required = drops, required
        self.written: list[tuple[str, str, Any]] = []

    def __call__(self, seen: Seen) -> Reply:
        route = seen.path.partition("/rest/api/2/")[2]
        if seen.method != "GET":
            self.written.append((seen.method, route, json.loads(seen.body)))
            return self._write(route, self.written[-1][2])
        if route.endswith("/comment"):
            shown = self.comments
            if "expand=properties" not in seen.target:
                shown = [{**each, "properties": None} for each in shown]
            return Reply(body={"startAt": 0, "total": len(shown), "comments": shown})
        fields = {"comment": {"comments": self.comments, "total": len(self.comments)}}
        screen = {"comment": {"required": self._required, "name": "Comment"}}
        step = {"id": "5", "name": "Close", "to": {"name": "Closed"}, "fields": screen}
        bodies: dict[str, Any] = {
            "issue/A-1": {"id": "1", "key": "A-1", "fields": {**fields, "status": self.status}},
            "issue/A-1/transitions": {"transitions": [step]},
            "myself": ME,
            "serverInfo": {"deploymentType": "Server"},
        }
        return Reply(body=bodies[route])

    def _write(self, route: str, members: Any) -> Reply:
        if not route.endswith("/transitions"):
            kept = [each for each in self.comments if not route.endswith(each["id"])]
            self.comments = [*kept, comment(**members)]
            return Reply(201, comment(**members))
        self.status = {"name": "Closed"}
        for verb in members.get("update", {}).get("comment", []):
            self.comments += [] if self._drops else [comment(**verb["add"])]
        return Reply(204)

    def run(self, **options: Any) -> Any:
        with Stub(response=self) as stub:
            chosen = build(TrackerIssueOptions, issue="A-1", comment="Done", **options)
            found = Run(stub, TrackerIssueOperation, chosen, read_only=False)()
        return [change["field"] for change in found["issues"][0]["changes"]]


ADDED = ("POST", "issue/A-1/comment")
EDITED = ("PUT", "issue/A-1/comment/7")


@pytest.mark.parametrize(
    ("options", "there", "route", "more"),
    [
        ({"comment_visibility": ROLE}, None, ADDED, {"visibility": ROLE}),
        ({"comment_visibility": ROLE}, {}, EDITED, {"visibility": ROLE}),
        (
            {"comment_visibility": ROLE},
            {"visibility": {"type": "group", "value": "developers"}},
            EDITED,
            {"visibility": ROLE},
        ),
        ({"comment_internal": True}, None, ADDED, {"properties": INTERNAL}),
        (
            {"comment_internal": True},
            {"visibility": ROLE},
            EDITED,
            {"visibility": ROLE, "properties": INTERNAL},
        ),
        # a comment keeps its visibility if its text changes
        (
            {"comment_find": "Do"},
            {"visibility": ROLE, "body": "Doing"},
            EDITED,
            {"visibility": ROLE},
        ),
    ],
)
def test_audience_of_a_comment_is_written(
    options: Any, there: Any, route: tuple[str, str], more: Any
) -> None:
    tracker = Tracker(*([] if there is None else [comment(**there)]))
    assert tracker.run(**options)
    assert tracker.written == [(*route, {"body": "Done", **more})]
    assert tracker.run(**options) == []


@pytest.mark.parametrize(
    ("options", "there"),
    [
        ({}, {"visibility": ROLE, "properties": INTERNAL}),
        ({"comment_visibility": ROLE}, {"visibility": {"type": "role", "value": "developers"}}),
        ({"comment_internal": True}, {"properties": INTERNAL}),
        ({"comment_internal": True}, {"jsdPublic": False}),
        ({"comment_internal": False}, {"jsdPublic": True}),
        ({"comment_internal": False}, {}),
    ],
)
def test_equal_audience_is_unchanged(options: Any, there: Any) -> None:
    tracker = Tracker(comment(**there))
    assert tracker.run(**options) == []
    assert tracker.written == []


@pytest.mark.parametrize("option", [{"comment_visibility": ROLE}, {"comment_internal": True}])
def test_audience_needs_a_comment(option: Any) -> None:
    with pytest.raises(ToolchainError, match="requires comment") as caught:
        build(TrackerIssueOptions, issue="A-1", status="Closed", **option)
    assert caught.value.kind == "invalid"


def test_comment_goes_with_the_transition() -> None:
    tracker = Tracker(required=True)
    options = {"status": "Closed", "comment_visibility": ROLE, "comment_internal": True}
    changes = ["status", "comment", "comment_visibility", "comment_internal"]
    assert tracker.run(**options) == changes
    added = {"body": "Done", "visibility": ROLE, "properties": INTERNAL}
    members = {"transition": {"id": "5"}, "update": {"comment": [{"add": added}]}}
    assert tracker.written == [("POST", "issue/A-1/transitions", members)]
    assert tracker.run(**options) == []


def test_comment_that_a_transition_drops_is_added_afterwards() -> None:
    tracker = Tracker(drops=True)
    assert tracker.run(status="Closed") == ["status", "comment"]
    assert [route for _method, route, _body in tracker.written] == [
        "issue/A-1/transitions",
        "issue/A-1/comment",
    ]


def test_transition_that_requires_a_comment_needs_a_new_one() -> None:
    tracker = Tracker(comment(), required=True)
    with pytest.raises(ToolchainError, match="requires a comment: set comment to a text") as caught:
        tracker.run(status="Closed")
    assert (caught.value.kind, tracker.written) == ("rejected", [])
