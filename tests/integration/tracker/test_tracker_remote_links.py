# SPDX-License-Identifier: GPL-3.0-or-later
"""Test remote links of issues [tracker-44, C8.8]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import READER, Done, Tracker

URL = "https://ci.example.com/job/1/"
each_server = pytest.mark.parametrize("deployment", ["Server", "Cloud"])
each_mode = pytest.mark.parametrize("check", [True, False], ids=["check", "run"])


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerIssueOperation, TrackerIssueOptions)
    sandbox.clear_faults()


def stored(tracker: Tracker) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tracker.get("issue/REL-22/remotelink")
    return found


def thrice(tracker: Tracker, *links: dict[str, Any]) -> Done:
    """Run a task in check mode, in run mode and again, and verify that it is idempotent."""
    given: dict[str, Any] = {"issue": "REL-22", "remote_links": list(links)}
    checked, done, again = tracker(check=True, **given), tracker(**given), tracker(**given)
    assert (checked.changed, done.changed, again.changed) == (True, True, False)
    assert checked.diff == done.diff
    assert checked.writes == again.writes == []
    return done


@each_server
def test_link_is_added_changed_and_removed(tracker: Tracker, deployment: str) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    done = thrice(tracker, {"url": URL})
    (change,) = done.values["issues"][0]["changes"]
    assert (change["before"], change["after"]) == (None, {"url": URL, "title": URL})
    more = {"title": "Build", "summary": "green", "relationship": "built by"}
    assert len(thrice(tracker, {"url": URL, **more}).writes) == 1
    assert not tracker(issue="REL-22", remote_links=[{"url": URL, "title": "Build"}]).changed
    thrice(tracker, {"url": URL, "summary": "", "relationship": ""})
    (link,) = stored(tracker)
    assert (link["globalId"], link["object"]["title"]) == (URL, "Build")
    assert "relationship" not in link
    assert "summary" not in link["object"]
    thrice(tracker, {"url": URL, "state": "absent"})
    assert stored(tracker) == []


def test_global_id_keeps_a_link_whose_address_changes(tracker: Tracker) -> None:
    for number in ("1", "2"):
        link = {"url": f"https://ci.example.com/{number}", "global_id": "newest", "title": number}
        thrice(tracker, link, {"url": "https://other.example.com", "title": number})
    assert len(stored(tracker)) == 2
    thrice(tracker, {"url": "https://gone.example.com", "global_id": "newest", "state": "absent"})
    assert [link["object"]["url"] for link in stored(tracker)] == ["https://other.example.com"]


def test_link_of_a_user_without_a_global_id_is_the_same_link(tracker: Tracker) -> None:
    icon = {"url16x16": "https://ci.example.com/icon.png"}
    linked = {"url": URL, "title": "By hand", "icon": icon}
    tracker.send(
        "POST", "issue/REL-22/remotelink", {"object": linked, "application": {"name": "CI"}}
    )
    assert not tracker(issue="REL-22", remote_links=[{"url": URL}]).changed
    done = thrice(tracker, {"url": URL, "title": "Build"})
    assert [write.split()[0] for write in done.writes] == ["PUT"]
    (link,) = stored(tracker)
    assert (link["object"]["icon"], link["application"]) == (icon, {"name": "CI"})
    assert link["object"]["title"] == "Build"


def test_link_with_another_global_id_is_another_link(tracker: Tracker) -> None:
    other = {"globalId": "other", "object": {"url": URL, "title": "other"}}
    tracker.send("POST", "issue/REL-22/remotelink", other)
    absent = tracker(issue="REL-22", remote_links=[{"url": URL, "state": "absent"}])
    assert not absent.changed
    thrice(tracker, {"url": URL})
    assert len(stored(tracker)) == 2


def test_new_issue_gets_its_links(tracker: Tracker) -> None:
    given: dict[str, Any] = {
        "match": "project = REL AND labels = once",
        "project": "REL",
        "type": "Task",
        "summary": "Made once",
        "labels": ["once"],
        "remote_links": [{"url": URL}, {"url": "https://gone.example.com", "state": "absent"}],
    }
    checked, done = tracker(check=True, **given), tracker(**given)
    assert checked.diff == done.diff
    assert [write.split()[1] for write in done.writes][-1].endswith("/issue/REL-26/remotelink")
    assert not tracker(**given).changed


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"url": "ci/job/1"}, "remote_links[0]: url must be an absolute address"),
        ({"url": "https://u:p@ci.example.com"}, "url contains a secret"),
        ({"url": ""}, "remote_links[0].url is empty"),
        ({"url": URL, "title": ""}, "remote_links[0].title is empty"),
        ({"url": URL, "titel": "x"}, "remote_links[0].titel is not an option"),
        ({"url": URL, "global_id": "x" * 256}, "global_id (by default the url) has more than 255"),
        ({"url": URL, "state": "absent", "title": "x"}, "remote_links[0]"),
        ({"title": "x"}, "remote_links[0]: url is missing"),
    ],
)
@each_mode
def test_invalid_link_is_rejected_before_any_request(
    tracker: Tracker, link: dict[str, Any], words: str, check: bool
) -> None:
    tracker.refused("invalid", words, issue="REL-22", remote_links=[link], check=check)
    assert tracker.sandbox.requests("tracker") == []


def test_two_entries_of_a_link_are_rejected(tracker: Tracker) -> None:
    links = [{"url": URL}, {"url": "https://b.example.com", "global_id": URL}]
    words = "remote_links[1] is the same link as remote_links[0]"
    tracker.refused("invalid", words, issue="REL-22", remote_links=links)


def test_missing_permission_is_reported(tracker: Tracker) -> None:
    links = [{"url": URL}]
    tracker.refused("permission", "Link", issue="REL-22", remote_links=links, login=READER)
    tracker.sandbox.settings("tracker", linking=False)
    words = "links may be disabled on this server"
    tracker.refused("permission", words, issue="REL-22", remote_links=links, check=True)
