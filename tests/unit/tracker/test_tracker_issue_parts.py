# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the status and the comments of an issue, if the server reports them in an unusual form."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing import (
    tracker_issue,
)
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

ME = {"name": "reporter", "key": "reporter"}
ISSUE: dict[str, Any] = {"status": {"name": "Open", "id": "1"}, "project": {"key": "APP"}}


def comment(number: int, author: str = "other") -> dict[str, Any]:
    return {"id": str(number), "author": {"name": author, "key": author}, "body": f"Word {number}"}


def run(
    fields: dict[str, Any],
    options: tracker_issue.TrackerIssueOptions,
    *,
    size: int = 5,
    names: tuple[str | None, ...] = ("Close ", "Resolve"),
    total: int | None = None,
) -> dict[str, Any]:
    """Run in check mode, on an issue that has five comments and two transitions to the status
    `Closed`.

    The account of the task wrote the first and the last comment. `size`: comments per page.
    """
    written = [comment(0, "reporter"), *map(comment, range(1, 4)), comment(4, "reporter")]
    ways = [
        {"id": str(10 + number), "name": name, "to": {"name": "Closed", "id": "5"}}
        for number, name in enumerate(names)
    ]

    def response(seen: Seen) -> Reply:
        query = parse_qs(urlsplit(seen.target).query)
        start = int(query.get("startAt", ["0"])[0])
        found: dict[str, Any] = {
            "issue/APP-1": {"id": "1", "key": "APP-1", "fields": {**ISSUE, **fields}},
            "issue/APP-1/transitions": {"transitions": ways},
            "issue/APP-1/comment": {"total": total, "comments": written[start : start + size]},
            "myself": ME,
            "serverInfo": {"deploymentType": "Server", "version": "9.0.0"},
        }
        return Reply(body=found[seen.path.partition("/rest/api/2/")[2]])

    with Stub(response=response) as stub:
        return Run(stub, tracker_issue.TrackerIssueOperation, options)(check=True)


@pytest.mark.parametrize("name", ["Close", "Close ", " close"])
def test_blanks_around_a_transition_name_are_ignored(name: str) -> None:
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", status="Closed", transition=name)
    assert run({}, options)["changed"] is True


def test_partial_comments_are_read_from_the_first() -> None:
    shown = {"startAt": 2, "total": 5, "comments": [comment(2), comment(3)]}
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", comment="Word 0")
    assert run({"comment": shown}, options, total=5)["changed"] is False


@pytest.mark.parametrize("shown", [{"comments": [comment(1)]}, {"comments": None, "total": 0}])
@pytest.mark.parametrize("total", [None, 5])
def test_comments_are_read_to_the_end(shown: dict[str, Any], total: int | None) -> None:
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", comment="Word 4")
    assert run({"comment": shown}, options, size=2, total=total)["changed"] is False


def test_fewer_comments_than_the_total_are_an_error() -> None:
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", comment="Word 9")
    with pytest.raises(ToolchainError, match="reports 9 matches, but sends none") as caught:
        run({"comment": {}}, options, total=9)
    assert caught.value.kind == "protocol"


def test_missing_name_is_not_the_name_none() -> None:
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", status="None")
    with pytest.raises(ToolchainError, match="cannot reach the status 'None'"):
        run({"status": {"name": None, "id": "1"}}, options)
    options = tracker_issue.TrackerIssueOptions(issue="APP-1", status="Closed", transition="None")
    with pytest.raises(ToolchainError, match="'Closed' by 'None'"):
        run({"status": {"name": None, "id": "1"}}, options, names=("Close", None))
