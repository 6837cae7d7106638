# SPDX-License-Identifier: GPL-3.0-or-later
"""Test edits of issues that a search shows as they were before a write of the run [tracker-20]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

FIELDS: dict[str, Any] = {"summary": {}, "labels": {}}


class Tracker:
    """A tracker with an issue. Its search index always shows the summary `first`."""

    def __init__(self) -> None:
        self.fields = {"summary": "first"}
        self.edits = 0

    def issue(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"id": "7", "key": "APP-7", "fields": fields, "editmeta": {"fields": FIELDS}}

    def response(self, seen: Seen) -> Reply:
        if seen.method == "PUT":
            self.edits += 1
            self.fields |= json.loads(seen.body)["fields"]
            return Reply(204)
        if "search" in seen.path:
            return Reply(body={"issues": [self.issue({"summary": "first"})], "total": 1})
        assert seen.path.endswith("/issue/APP-7")
        return Reply(body=self.issue(self.fields))


@pytest.mark.parametrize("selection", ["jql", "match"])
def test_issue_that_the_run_has_written_is_read_by_its_key(
    selection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    new = {"project": "APP", "type": "Task"} if selection == "match" else {}
    tracker = Tracker()
    with Stub(response=tracker.response) as stub:

        def run(summary: str, timeout: int) -> bool:
            """Run the module with a connection of its own, as another worker does."""
            given = {selection: "labels = x", "summary": summary, **new}
            options = build(TrackerIssueOptions, **given)
            settings: dict[str, Any] = {"dialect": "server", "timeout": timeout}
            found = Run(stub, TrackerIssueOperation, options, read_only=False, **settings)()
            return bool(found["changed"])

        assert run("second", 6)
        assert run("first", 7)
        assert (tracker.fields["summary"], tracker.edits) == ("first", 2)
        assert not run("first", 8)
