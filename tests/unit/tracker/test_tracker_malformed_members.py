# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that responses with members of the wrong type end in a result, or in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing import (
    issue_options,
    tracker_issue,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.documents import (
    text_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects import (
    tracker_project_role,
    tracker_version,
)
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

BLOCKS = {"id": "1", "name": "Blocks", "inward": "is blocked by", "outward": "blocks"}
CLOSE = {"id": "10", "name": "Close", "to": {"name": "Closed", "id": "5"}}


def edit(**members: Any) -> dict[str, Any]:
    """Plan labels, a link, a file, a status and a comment. `members` replace those of the responses."""
    fields = {"status": {"name": "Open", "id": "1"}, "labels": [], "issuelinks": []}
    given = {"types": [BLOCKS], "transitions": [CLOSE], **members}

    def response(seen: Seen) -> Reply:
        found: dict[str, Any] = {
            "issue/APP-1": {"id": "1", "key": "APP-1", "fields": {**fields, **members}},
            "issue/APP-2": {"id": "2", "key": "APP-2"},
            "issue/APP-1/transitions": {"transitions": given["transitions"]},
            "issue/APP-1/comment": {"total": 0, "comments": []},
            "issueLinkType": {"issueLinkTypes": given["types"]},
            "attachment/meta": {},
            "myself": {"name": "reporter"},
            "serverInfo": {"deploymentType": "Server"},
        }
        return Reply(body=found[seen.path.partition("/rest/api/2/")[2]])

    options = tracker_issue.TrackerIssueOptions(
        issue="APP-1",
        add=issue_options.IssueAdditions(labels=["new"]),
        links=[issue_options.IssueLink("Blocks", "APP-2")],
        status="Closed",
        comment="x",
        attachments=[__file__],
    )
    with Stub(response=response) as stub:
        return Run(stub, tracker_issue.TrackerIssueOperation, options)(check=True)


@pytest.mark.parametrize(
    "members",
    [
        {"labels": True},
        {"attachment": 10},
        {"attachment": [None, {"id": {}}]},
        {"issuelinks": 10},
        {"issuelinks": [1.5, {"type": 1}, {"type": {"id": "1"}, "outwardIssue": [None]}]},
        {"comment": {"total": 1, "comments": [None]}},
        {"transitions": [{**CLOSE, "fields": {"a": 1}}]},
        {"transitions": [{**CLOSE, "fields": [1]}]},
    ],
)
def test_malformed_part_of_an_issue_is_no_part(members: dict[str, Any]) -> None:
    (issue,) = edit(**members)["issues"]
    changed = [change["field"] for change in issue["changes"]]
    assert sorted(changed) == ["attachments", "comment", "labels", "links", "status"]


@pytest.mark.parametrize(
    "members",
    [
        {"types": [None]},
        {"types": [{"id": "1", "name": "Blocks"}]},
        {"transitions": [{"name": "Close", "to": CLOSE["to"]}]},
    ],
)
def test_malformed_list_is_an_error(members: dict[str, Any]) -> None:
    with pytest.raises(ToolchainError) as caught:
        edit(**members)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("content", [7, True, [None], [{"type": {"a": 1}, "content": 1}]])
def test_malformed_document_is_empty(content: Any) -> None:
    assert text_of({"type": "doc", "content": content}) == ""


@pytest.mark.parametrize("number", [{}, "x", None, 1.5])
def test_id_that_is_not_a_number_is_an_error(number: Any) -> None:
    """Some requests contain ids as numbers."""
    named = {"id": number, "name": "Developers", "actors": []}
    bodies: dict[str, Any] = {
        "versions": json.dumps([named]),
        "role": {"Developers": "x/7"},
        "7": named,
    }
    role = tracker_project_role.TrackerProjectRoleOptions("APP", "Developers", users=[])
    version = tracker_version.TrackerVersionOptions("APP", "1.0", state="absent")
    with Stub(response=lambda seen: Reply(body=bodies[seen.path.rpartition("/")[2]])) as stub:
        for make, options in (
            (tracker_project_role.TrackerProjectRoleOperation, role),
            (tracker_version.TrackerVersionOperation, version),
        ):
            with pytest.raises(ToolchainError) as caught:
                Run(stub, make, options, dialect="server")()
            assert caught.value.kind == "protocol"
