# SPDX-License-Identifier: GPL-3.0-or-later
"""Test Markdown in the texts of an issue, on servers and in the cloud [C8.8]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import Done, Tracker

TEXT = "## Steps\n\n- a **b**\n- `c`\n\n```py\nd\n```\n"
MARKUP = "h2. Steps\n\n* a *b*\n* {{c}}\n\n{code:python}\nd\n{code}"
each_server = pytest.mark.parametrize("deployment", ["Server", "Cloud"])


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerIssueOperation, TrackerIssueOptions)
    sandbox.clear_faults()


def thrice(tracker: Tracker, **given: Any) -> Done:
    """Run a task in check mode, in run mode and again, and verify that it is idempotent."""
    given = {"text_format": "markdown", "issue": "REL-22", **given}
    checked, done, again = tracker(check=True, **given), tracker(**given), tracker(**given)
    assert (checked.changed, done.changed, again.changed) == (True, True, False)
    assert checked.diff == done.diff
    assert checked.writes == again.writes == checked.warnings == done.warnings == []
    return done


def stored(tracker: Tracker, deployment: str, path: str) -> Any:
    """Read from the server in the newest version of its interface."""
    return tracker.get(f"../{3 if deployment == 'Cloud' else 2}/{path}")


@each_server
def test_markdown_is_stored_as_the_server_shows_it(tracker: Tracker, deployment: str) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    thrice(tracker, description=TEXT, comment=TEXT, fields={"Environment": TEXT})
    found = stored(tracker, deployment, "issue/REL-22")["fields"]
    texts = [found["description"], found["environment"], found["comment"]["comments"][0]["body"]]
    if deployment == "Server":
        assert texts == [MARKUP] * 3
        return
    for text in texts:
        kinds = [block["type"] for block in text["content"]]
        assert kinds == ["heading", "bulletList", "codeBlock"]


@each_server
def test_markdown_with_the_same_words_is_compared_by_its_form(
    tracker: Tracker, deployment: str
) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    for text in ("Steps a", "## Steps a", "**Steps** a"):
        done = thrice(tracker, description=text, comment=text, comment_find="Steps")
        assert len(done.writes) == 2
    comments = tracker.get("issue/REL-22/comment")["comments"]
    assert len(comments) == 1


@each_server
def test_comment_in_markdown_goes_with_a_transition(tracker: Tracker, deployment: str) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    thrice(tracker, status="In Progress", comment=TEXT)
    thrice(tracker, comment=TEXT, comment_state="absent")
    assert tracker.get("issue/REL-22/comment")["comments"] == []


@each_server
def test_new_issue_has_its_text_in_markdown(tracker: Tracker, deployment: str) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    given: dict[str, Any] = {
        "match": "project = REL AND labels = once",
        "project": "REL",
        "type": "Task",
        "summary": "Made once",
        "labels": ["once"],
        "text_format": "markdown",
        "description": TEXT,
    }
    assert len(tracker(**given).writes) == 1
    assert not tracker(**given).changed
    emptied = tracker(**{**given, "description": ""})
    assert emptied.changed
    assert stored(tracker, deployment, "issue/REL-26")["fields"]["description"] is None


def test_plain_text_with_markup_in_the_cloud_gives_a_warning(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", deployment="Cloud")
    done = tracker(issue="REL-22", description=TEXT, comment="h2. a", fields={"Environment": "a"})
    assert [warning.split(" looks")[0] for warning in done.warnings] == ["description", "comment"]
    tracker.sandbox.settings("tracker", deployment="Server")
    assert tracker(issue="REL-22", description=TEXT, comment="h2. a").warnings == []


@pytest.mark.parametrize("given", [{"text_format": "html"}, {"text_format": ""}])
def test_unknown_format_is_rejected(tracker: Tracker, given: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="text_format"):
        tracker(issue="REL-22", description="a", **given)


def test_description_of_blanks_is_rejected(tracker: Tracker) -> None:
    words = "description contains only blanks"
    tracker.refused("invalid", words, issue="REL-22", description=" \n")
    assert tracker.sandbox.requests("tracker") == []
