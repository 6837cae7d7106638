# SPDX-License-Identifier: GPL-3.0-or-later
"""Test fields whose values servers return in another form than they accept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

SPRINT = {"type": "array", "items": "string", "custom": "com.pyxis.greenhopper.jira:gh-sprint"}
CASCADE = {"type": "option-with-child", "custom": "x:cascadingselect"}
FIELDS = [
    {"id": "customfield_1", "name": "Sprint", "schema": SPRINT},
    {"id": "customfield_2", "name": "Area", "schema": CASCADE},
    {"id": "customfield_3", "name": "Start", "schema": {"type": "datetime"}},
    {"id": "customfield_4", "name": "Teams", "schema": {"type": "array", "items": "option"}},
    {
        "id": "customfield_6",
        "name": "Epic Link",
        "schema": {"type": "any", "custom": "x:gh-epic-link"},
    },
    {"id": "customfield_5", "name": "Tags", "schema": {"type": "array", "items": "string"}},
    {"id": "timetracking", "name": "Time tracking", "schema": {"type": "timetracking"}},
    {"id": "timeoriginalestimate", "name": "Original estimate", "schema": {"type": "number"}},
    {"id": "fixVersions", "name": "Fix versions", "schema": {"type": "array", "items": "version"}},
]
AREAS = [{"id": "1", "value": "UI", "children": [{"id": "2", "value": "Menu"}]}]
OLD = "com.example.Sprint@1f[id={0},rapidViewId=9,state={1},name=a,state=ACTIVE,id=99,goal=]"
TRACKED = {"originalEstimate": "2d", "originalEstimateSeconds": 57600, "timeSpent": "1h"}
DAY = {"timeTrackingConfiguration": {"workingHoursPerDay": 8.0, "workingDaysPerWeek": 5.0}}


class Tracker:
    """A server with an issue. `written`: the bodies of the writes.

    :param ignores: whether the server accepts writes and ignores them
    :param hides: whether a write hides the issue, as a security level does
    """

    def __init__(self, *, ignores: bool = False, hides: bool = False, **fields: Any) -> None:
        self.fields, self._ignores, self._hides = fields, ignores, hides
        self.warnings: list[str] = []
        self.written: list[Any] = []
        self.reads: list[str] = []
        self.editable: dict[str, Any] = {str(each["id"]): {} for each in FIELDS}
        self.editable["customfield_2"] = {"allowedValues": AREAS}
        self.configuration: Any = DAY

    def __call__(self, seen: Seen) -> Reply:
        route = seen.path.partition("/rest/api/2/")[2]
        if seen.method == "PUT":
            self.written.append(json.loads(seen.body))
            if not self._ignores:
                self.fields |= self.written[-1].get("fields", {})
                self.fields |= dict.fromkeys(self.written[-1].get("update", {}))
            return Reply(204)
        self.reads.append(route)
        if self._hides and self.written:
            return Reply(404, {"errorMessages": ["Issue Does Not Exist"], "errors": {}})
        meta = {"editmeta": {"fields": self.editable}}
        bodies: Mapping[str, Any] = {
            "field": FIELDS,
            "issue/A-1": {"id": "1", "key": "A-1", "fields": self.fields, **meta},
            **{f"issue/{key}": body for key, body in OTHERS.items()},
            "configuration": self.configuration,
            "serverInfo": {"deploymentType": "Server"},
        }
        return Reply(body=bodies[route]) if bodies[route] is not None else Reply(404)

    def run(self, **fields: Any) -> Any:
        with Stub(response=self) as stub:
            options = TrackerIssueOptions(issue="A-1", fields=fields)
            run = Run(stub, TrackerIssueOperation, options, read_only=False)
            self.warnings = run.warnings
            return run()

    def changes(self, **fields: Any) -> Any:
        return self.run(**fields)["issues"][0]["changes"]


#: Issues by the requested key. X-2 is the key of A-2 before it was moved.
OTHERS = {
    "A-3": {"id": "3", "key": "A-3", "fields": {}},
    "X-2": {"id": "2", "key": "A-2", "fields": {}},
    "X-1": {"id": "1", "key": "A-1", "fields": {}},
}


def sprint(number: int, state: str) -> dict[str, Any]:
    return {"id": number, "state": state, "name": f"S {number}"}


UNCHANGED: list[tuple[dict[str, Any], str, Any]] = [
    ({"customfield_1": [sprint(6, "closed"), sprint(7, "active")]}, "Sprint", "7"),
    ({"customfield_1": [sprint(8, "future"), sprint(7, "closed")]}, "Sprint", 8),
    ({"customfield_1": [OLD.format(6, "CLOSED"), OLD.format(7, "ACTIVE")]}, "Sprint", 7),
    ({"customfield_1": [sprint(6, "closed")]}, "Sprint", None),
    ({"customfield_2": {"value": "UI", "id": "1"}}, "Area", {"value": "ui"}),
    ({"customfield_2": {"value": "UI"}}, "Area", "UI"),
    ({"customfield_3": "2026-01-05T09:00:00.000+0000"}, "Start", "2026-01-05T10:00:00+01:00"),
    ({"customfield_3": "2026-01-05T09:00:00.250+0000"}, "Start", "2026-01-05 09:00:00.25Z"),
    ({"customfield_4": [{"value": "a, b"}]}, "Teams", "a, b"),
    ({"customfield_5": ["a", "b"]}, "Tags", "a, b"),
    ({"timetracking": TRACKED}, "Time tracking", "16h"),
    ({"timetracking": TRACKED}, "timetracking", {"originalEstimate": "1d 8h"}),
    ({"timetracking": {**TRACKED, "originalEstimate": "2 Tage"}}, "timetracking", "960m"),
    ({"parent": {"key": "A-2", "id": "2"}}, "Parent", "A-2"),
    ({"parent": {"key": "A-2", "id": "2"}}, "parent", {"key": "A-2"}),
    ({"parent": {"key": "A-2", "id": "2"}}, "parent", "X-2"),
    ({"customfield_6": "A-2"}, "Epic Link", "X-2"),
]
CHANGED: list[tuple[dict[str, Any], str, Any, Any, tuple[Any, Any]]] = [
    ({"customfield_1": [sprint(6, "active")]}, "Sprint", "7", 7, (6, 7)),
    ({"customfield_1": [OLD.format(7, "CLOSED")]}, "Sprint", 7, 7, (None, 7)),
    ({"customfield_1": [sprint(7, "active")]}, "Sprint", None, None, (7, None)),
    (
        {"customfield_2": {"value": "UI"}},
        "Area",
        {"value": "ui", "child": {"value": "menu"}},
        {"value": "UI", "child": {"value": "Menu"}},
        ("UI", "UI - Menu"),
    ),
    (
        {"customfield_2": {"value": "UI", "child": {"value": "Menu"}}},
        "Area",
        "UI",
        {"value": "UI"},
        ("UI - Menu", "UI"),
    ),
    (
        {"customfield_3": None},
        "Start",
        "2026-01-05T10:00+0130",
        "2026-01-05T10:00:00.000+0130",
        (None, "2026-01-05T10:00:00.000+0130"),
    ),
    (
        {"timetracking": TRACKED},
        "timetracking",
        {"originalEstimate": "3d"},
        {"originalEstimate": "3d"},
        ({"originalEstimate": "2d"}, {"originalEstimate": "3d"}),
    ),
    ({"parent": None}, "parent", "A-3", {"key": "A-3"}, (None, "A-3")),
]


@pytest.mark.parametrize(("stored", "name", "wanted"), UNCHANGED)
def test_equal_value_in_the_form_of_the_server(
    stored: dict[str, Any], name: str, wanted: Any
) -> None:
    tracker = Tracker(**stored)
    assert tracker.changes(**{name: wanted}) == []
    assert tracker.reads.count("configuration") <= 1


@pytest.mark.parametrize(("stored", "name", "wanted", "sent", "shown"), CHANGED)
def test_changed_value_is_sent_in_the_form_of_the_server(
    stored: dict[str, Any], name: str, wanted: Any, sent: Any, shown: tuple[Any, Any]
) -> None:
    tracker = Tracker(**stored)
    tracker.editable.pop("parent", None)
    (change,) = tracker.changes(**{name: wanted})
    assert (change["before"], change["after"]) == shown
    assert tracker.written == [{"fields": dict.fromkeys(stored, sent)}]


def test_estimates_are_compared_as_text_if_the_hours_of_a_day_are_not_known() -> None:
    tracker = Tracker(timetracking=TRACKED)
    tracker.configuration = None
    assert tracker.changes(timetracking="2d") == []
    assert len(tracker.changes(timetracking="16h")) == 1


def test_parent_is_an_option_too() -> None:
    tracker = Tracker(parent={"key": "A-2"})
    options = TrackerIssueOptions(issue="A-1", parent="A-3")
    with Stub(response=tracker) as stub:
        Run(stub, TrackerIssueOperation, options, read_only=False)()
    assert tracker.written == [{"fields": {"parent": {"key": "A-3"}}}]


def test_parent_is_removed_with_its_verb() -> None:
    tracker = Tracker(parent={"key": "A-2"})
    tracker.run(parent=None)
    assert tracker.written == [{"update": {"parent": [{"set": {"none": True}}]}}]


def test_ignored_parent_is_an_error() -> None:
    tracker = Tracker(parent={"key": "A-2"}, ignores=True)
    with pytest.raises(ToolchainError, match="but did not save Parent") as caught:
        tracker.run(Parent="A-3")
    assert caught.value.kind == "rejected"


@pytest.mark.parametrize("key", ["A-1", "X-1"])
def test_issue_is_not_its_own_parent(key: str) -> None:
    tracker = Tracker(parent=None)
    tracker_of_key: dict[str, Any] = {"Parent": key}
    with pytest.raises(ToolchainError, match="A-1 cannot be its own parent") as caught:
        tracker.run(**tracker_of_key)
    assert (caught.value.kind, tracker.written) == ("invalid", [])


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("Sprint", "S 7", "invalid", "expected the id of a sprint"),
        ("Sprint", True, "invalid", "expected the id of a sprint"),
        ("Start", "2026-01-05 10:00", "invalid", "its offset from UTC"),
        ("Start", "2026-13-05T10:00Z", "invalid", "its offset from UTC"),
        ("Original estimate", "2d", "invalid", "use the option fields.timetracking.original"),
        ("Area", {"value": "UI", "child": {"value": "X"}}, "rejected", "allowed values: 'Menu'"),
    ],
)
def test_impossible_value_fails_before_a_write(
    name: str, value: Any, kind: str, words: str
) -> None:
    tracker = Tracker()
    with pytest.raises(ToolchainError, match=words) as caught:
        tracker.run(**{name: value})
    assert (caught.value.kind, tracker.written) == (kind, [])


def test_version_of_a_project_without_versions_fails_in_check_mode() -> None:
    tracker = Tracker()
    tracker.editable["fixVersions"] = {"allowedValues": []}
    options = TrackerIssueOptions(issue="A-1", fix_versions=["1.0"])
    words = "cannot be '1.0'; allowed values: none"
    with Stub(response=tracker) as stub, pytest.raises(ToolchainError, match=words):
        Run(stub, TrackerIssueOperation, options)(check=True)


def test_issue_that_its_change_hides_gives_a_warning() -> None:
    tracker = Tracker(hides=True, customfield_5=[])
    assert len(tracker.changes(Tags="a")) == 1
    (warning,) = tracker.warnings
    assert "the issue 'A-1' is not visible to this account after the change" in warning
