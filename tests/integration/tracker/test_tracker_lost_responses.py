# SPDX-License-Identifier: GPL-3.0-or-later
"""Test every write of `tracker_issue` if the response does not show its outcome [C1.4]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import Tracker

PAGE = "<!DOCTYPE html><html><body>Welcome</body></html>"
#: Options of a write, its method, and the path that identifies the request.
WRITES: dict[str, tuple[dict[str, Any], str, str]] = {
    "labels": ({"labels": ["x"], "add": {"fix_versions": ["2.0.0"]}}, "PUT", "/issue/REL-22$"),
    "link": ({"links": [{"type": "Blocks", "issue": "REL-2"}]}, "POST", "/issueLink$"),
    "attachment": ({"attachments": [__file__]}, "POST", "/attachments$"),
    "comment": ({"comment": "hello"}, "POST", "/comment$"),
    "status": ({"status": "In Progress"}, "POST", "/transitions$"),
}
LOST: dict[str, dict[str, Any]] = {
    "lost": {"cut": True},
    "500": {"status": 500, "body": "it broke"},
    "502": {"status": 502, "body": PAGE, "content_type": "text/html"},
    "a page": {"status": 200, "body": PAGE, "content_type": "text/html"},
}
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
each_answer = pytest.mark.parametrize("response", LOST.values(), ids=list(LOST))
each_server = pytest.mark.parametrize("deployment", ["Server", "Cloud"])


Replacing = Callable[..., tuple[Tracker, dict[str, Any]]]


@pytest.fixture
def replacing(tracker: Tracker, tmp_path: Path) -> Replacing:
    """Attach a file, change its content but not its size, and inject a fault for a write."""

    def ordered(deployment: str, method: str, **fault: Any) -> tuple[Tracker, dict[str, Any]]:
        tracker.sandbox.settings("tracker", deployment=deployment)
        file = tmp_path / "report.txt"
        given: dict[str, Any] = {"issue": "REL-22", "attachments": [str(file)], "retries": 0}
        file.write_text("old", encoding="utf-8")
        tracker(**given)
        file.write_text("new", encoding="utf-8")
        path = "/attachments?(/[0-9]+)?$"
        tracker.sandbox.fault(service="tracker", method=method, path=path, **fault)
        return tracker, given

    return ordered


def attached(tracker: Tracker) -> list[dict[str, Any]]:
    """Return the attachments that the tracker lists."""
    shown = tracker.get("issue/REL-22", fields="attachment")["fields"]["attachment"]
    return [one for one in shown if one["filename"] == "report.txt"]


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerIssueOperation, TrackerIssueOptions)
    sandbox.clear_faults()


def order(tracker: Tracker, write: tuple[dict[str, Any], str, str], **fault: Any) -> dict[str, Any]:
    """Inject a fault for the write. Return the options of the affected task."""
    options, method, path = write
    tracker.sandbox.fault(service="tracker", method=method, path=path, **fault)
    return {"issue": "REL-22", "retry_max_wait": 0.05, "retries": 2, **options}


def served(tracker: Tracker) -> list[str]:
    """Return the paths of the writes that the tracker carried out."""
    asked = tracker.sandbox.requests("tracker", writes=True)
    return [record["path"] for record in asked if (record["served"] or 500) < 400]


@each_server
@each_write
@each_answer
def test_completed_write_is_not_repeated(
    tracker: Tracker,
    deployment: str,
    write: tuple[dict[str, Any], str, str],
    response: dict[str, Any],
) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    given = order(tracker, write, **response, after=True)
    done = tracker(**given)
    assert done.changed
    assert len(served(tracker)) == 1
    assert not tracker(**given).changed


@each_server
@each_write
@each_answer
def test_uncompleted_write_is_reported(
    tracker: Tracker,
    deployment: str,
    write: tuple[dict[str, Any], str, str],
    response: dict[str, Any],
) -> None:
    tracker.sandbox.settings("tracker", deployment=deployment)
    given = order(tracker, write, **response)
    with pytest.raises(Exception, match="nothing was changed") as raised:
        tracker(**given)
    assert raised.value.result["changed"] is False  # type: ignore[attr-defined]
    assert served(tracker) == []
    assert tracker(**given).changed


@each_write
@pytest.mark.parametrize("acted", [True, False], ids=["acted", "not acted"])
def test_rejected_write_is_retried_once(
    tracker: Tracker, write: tuple[dict[str, Any], str, str], acted: bool
) -> None:
    fault = {"status": 429, "headers": {"Retry-After": "0"}, "after": acted}
    assert tracker(**order(tracker, write, **fault)).changed
    assert len(served(tracker)) == 1


@each_server
@each_answer
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_completed_replacement_is_not_repeated(
    replacing: Replacing, deployment: str, response: dict[str, Any], method: str
) -> None:
    tracker, given = replacing(deployment, method, after=True, **response)
    assert tracker(**given).changed
    assert not tracker(**given).changed
    assert len(attached(tracker)) == 1


@each_server
@each_answer
@pytest.mark.parametrize(
    "stopped", [("POST", "nothing was changed", 1), ("DELETE", "set replace to false", 2)]
)
def test_uncompleted_replacement_keeps_the_older_attachment(
    replacing: Replacing, deployment: str, response: dict[str, Any], stopped: tuple[str, str, int]
) -> None:
    method, said, left = stopped
    tracker, given = replacing(deployment, method, **response)
    with pytest.raises(ToolchainError, match=said):
        tracker(**given)
    assert len(attached(tracker)) == left
    assert tracker(**given).changed
    assert not tracker(**given).changed
    assert len(attached(tracker)) == 1
