# SPDX-License-Identifier: GPL-3.0-or-later
"""Test editing, moving and creating issues, on servers and in the cloud [C8.8]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.tracker_issue import (
    TrackerIssueOperation,
    TrackerIssueOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import DEVELOPER, READER, Done, Tracker

SERVERS: dict[str, dict[str, Any]] = {"server": {}, "cloud": {"deployment": "Cloud"}}
each_server = pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
each_mode = pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
FIELDS = {
    "customfield_10010": {"name": "Story Points", "type": "number"},
    "customfield_10011": {"name": "Target", "type": "option", "options": ["test", "production"]},
    "customfield_10012": {"name": "Story Points", "type": "number"},
    "customfield_10013": {
        "name": "Teams",
        "type": "array",
        "items": "option",
        "options": ["A", "B"],
    },
    "customfield_10014": {"name": "Weight", "type": "number"},
    "customfield_10015": {"name": "Reviewer", "type": "user"},
    "customfield_10016": {"name": "Window", "type": "date"},
}
NEW: dict[str, Any] = {
    "match": "project = REL AND labels = once",
    "project": "REL",
    "type": "Task",
    "summary": "Made once",
    "labels": ["once"],
}


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    sandbox.seed({"tracker": {"fields": FIELDS}})
    yield Tracker(sandbox, TrackerIssueOperation, TrackerIssueOptions)
    sandbox.clear_faults()


def fields_of(tracker: Tracker, key: str) -> dict[str, Any]:
    fields: dict[str, Any] = tracker.get(f"issue/{key}")["fields"]
    return fields


def changes(done: Done, number: int = 0) -> dict[str, tuple[Any, Any]]:
    """Return the changes of an issue by field."""
    listed = done.values["issues"][number]["changes"]
    return {one["field"]: (one["before"], one["after"]) for one in listed}


def comments_of(tracker: Tracker, key: str) -> list[str]:
    return [comment["body"] for comment in tracker.get(f"issue/{key}/comment")["comments"]]


def thrice(tracker: Tracker, **options: Any) -> Done:
    """Run a task in check mode, in run mode and again. Verify that it is predictable and
    idempotent.
    """
    checked = tracker(check=True, **options)
    done = tracker(**options)
    again = tracker(**options)
    assert (checked.changed, done.changed, again.changed) == (True, True, False)
    assert checked.diff == done.diff
    assert checked.writes == again.writes == []
    listed = again.values["issues"]
    assert [one["action"] for one in listed] == ["unchanged"] * len(listed)
    return done


# -- fields ------------------------------------------------------------------------------------


@each_server
def test_fields_are_set_in_one_request(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    done = thrice(
        tracker,
        issue="REL-22",
        summary="größe ",
        description="first - line\r\nsecond  \n\nthird https://example.org\n",
        labels=["b", "a"],
        fix_versions=["2.0.0", "1.1.0"],
        components=["server"],
        priority="medium",
        assignee="Boris Beispiel" if settings else "boris",
    )
    assert done.writes == [f"PUT /rest/api/{3 if settings else 2}/issue/REL-22"]
    assert changes(done)["labels"] == ([], ["b", "a"])
    assert changes(done)["fix_versions"] == ([], ["2.0.0", "1.1.0"])
    assert changes(done)["priority"] == ("High", "Medium")
    found = fields_of(tracker, "REL-22")
    assert (found["summary"], sorted(found["labels"])) == ("größe", ["a", "b"])
    assert found["assignee"]["displayName"] == "Boris Beispiel"
    assert not tracker(issue="REL-22", labels="a, b", fix_versions=["1.1.0", "2.0.0"]).changed
    tracker.refused("rejected", "'1.1.0, 2.0.0'", issue="REL-22", fix_versions="1.1.0, 2.0.0")
    taken_off = thrice(tracker, issue="REL-22", assignee="")
    name = "account-boris" if settings else "boris"
    assert changes(taken_off) == {"assignee": (name, None)}


@pytest.mark.parametrize("settings", [{}, {"deployment": "Cloud"}], ids=["server", "cloud"])
def test_values_in_the_form_of_the_server_are_set_once(
    tracker: Tracker, settings: dict[str, Any]
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    area = {"name": "Area", "type": "option-with-child", "options": {"UI": ["Menu", "Bar"]}}
    sprint = {"name": "Sprint", "type": "sprint"}
    start = {"name": "Start", "type": "datetime"}
    names = ("customfield_10501", "customfield_10502", "customfield_10503")
    fields = dict(zip(names, (area, sprint, start), strict=True))
    tracker.sandbox.seed({"tracker": {"fields": fields}})
    choice = {"value": "ui", "child": {"value": "menu"}}
    given = {"Area": choice, "Sprint": "7", "Start": "2026-01-05T09:00:00+01:00"}
    done = thrice(tracker, issue="REL-22", fields=given)
    assert len(done.writes) == 1
    assert changes(done)["Area"] == (None, "UI - Menu")
    assert changes(done)["Sprint"] == (None, 7)
    gone = thrice(tracker, issue="REL-22", fields={"Area": "UI", "Sprint": None})
    assert changes(gone) == {"Area": ("UI - Menu", "UI"), "Sprint": (7, None)}
    words = "Area cannot be 'Side'; allowed values: 'Menu', 'Bar'"
    wrong = {"Area": {"value": "UI", "child": {"value": "Side"}}}
    tracker.refused("rejected", words, issue="REL-22", fields=wrong, check=True)


def test_hidden_address_is_the_only_account_that_a_search_finds(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", deployment="Cloud")
    given = {"watchers": ["boris@example.com"], "fields": {"Reviewer": "boris@example.com"}}
    done = thrice(tracker, issue="REL-22", assignee="alice@example.com", **given)
    assert ["Alice Example (account-alice)" in warning for warning in done.warnings].count(
        True
    ) == 1
    gone = thrice(tracker, issue="REL-22", remove={"watchers": ["boris@example.com"]})
    assert changes(gone) == {"watchers": ("boris@example.com", None)}
    tracker.sandbox.seed({"tracker": {"users": {"twin": {"displayName": "Alice Example"}}}})
    for option in ({"assignee": "Alice Example"}, {"remove": {"watchers": ["Alice Example"]}}):
        words = "Alice Example (account-alice), Alice Example (account-twin)"
        tracker.refused("invalid", words, issue="REL-22", **option)


def test_document_is_compared_by_nodes_and_marks(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", deployment="Cloud")

    def document(address: str, person: str) -> dict[str, Any]:
        link = {"type": "link", "attrs": {"href": address}}
        words = {"type": "text", "text": "see ", "marks": [link]}
        mention = {"type": "mention", "attrs": {"id": person, "text": "@Alice"}}
        paragraph = {"type": "paragraph", "content": [words, mention]}
        return {"type": "doc", "version": 1, "content": [paragraph]}

    first, link = document("https://a.example.com", "1"), document("https://b.example.com", "1")
    thrice(tracker, issue="REL-22", fields={"Description": first})
    done = thrice(tracker, issue="REL-22", fields={"Description": link})
    before, after = changes(done)["Description"]
    assert before != after == link
    done = thrice(
        tracker, issue="REL-22", fields={"Description": document("https://b.example.com", "2")}
    )
    assert not tracker(issue="REL-22", description="see @Alice").changed
    assert changes(thrice(tracker, issue="REL-22", description="see")) == {
        "description": ("see @Alice", "see")
    }


@each_server
def test_field_is_found_by_name(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    given = {
        "weight": "5",
        "Target": "production",
        "Teams": ["B", "A"],
        "customfield_10010": 2.5,
        "Reviewer": "account-alice" if settings else "alice",
        "Window": "2026-06-01",
        "Due date": "2026-05-31",
    }
    done = thrice(tracker, issue="REL-22", fields=given)
    assert changes(done)["weight"] == (None, 5)
    assert changes(done)["Teams"] == (None, ["B", "A"])
    found = fields_of(tracker, "REL-22")
    assert (found["customfield_10014"], found["customfield_10010"]) == (5.0, 2.5)
    assert found["customfield_10011"]["value"] == "production"
    assert found["duedate"] == "2026-05-31"
    emptied = thrice(tracker, issue="REL-22", fields={"Weight": None, "Teams": []})
    assert changes(emptied) == {"Weight": (5.0, None), "Teams": (["B", "A"], [])}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"Story Points": 3}, "several fields are called 'Story Points'"),
        ({"Story Points": 3}, "customfield_10010, customfield_10012"),
        ({"Wait": 3}, "fields.Wait: the tracker has no field 'Wait': did you mean 'Weight'?"),
        ({"Weight": "heavy"}, "fields.Weight is the string 'heavy': expected a number"),
        ({"Target": 1.1}, "fields.Target is the number 1.1"),
        ({"Status": "Done"}, "fields.Status: use the option status"),
        ({"Labels": ["x"]}, "fields.Labels is the same field as labels"),
    ],
)
@each_mode
def test_invalid_field_is_rejected_before_any_write(
    tracker: Tracker, check: bool, fields: dict[str, Any], words: str
) -> None:
    given = {"issue": "REL-22", "fields": fields, "labels": ["later"]}
    tracker.refused("invalid", words, check=check, **given)
    assert tracker.sandbox.requests("tracker", writes=True) == []


@each_mode
def test_value_not_accepted_by_a_field_is_rejected(tracker: Tracker, check: bool) -> None:
    for given, words in (
        (
            {"fix_versions": ["9.9"]},
            "fix_versions cannot be '9.9'; allowed values: '1.0.0', '1.1.0', '2.0.0'",
        ),
        ({"priority": "Urgent"}, "priority cannot be 'Urgent'"),
        (
            {"fields": {"Target": "moon"}},
            "Target cannot be 'moon'; allowed values: 'test', 'production'",
        ),
    ):
        tracker.refused("rejected", words, issue="REL-22", check=check, **given)
    words = "assignee: there is no such account"
    tracker.refused("not_found", words, issue="REL-22", assignee="nobody", check=check)
    assert tracker.sandbox.requests("tracker", writes=True) == []


def test_lists_are_exact_and_add_only_adds(tracker: Tracker) -> None:
    more = {"labels": ["later", "x"], "fix_versions": ["1.0.0"]}
    done = thrice(tracker, issue="REL-24", add=more)
    assert changes(done)["labels"] == (["later"], ["later", "x"])
    found = fields_of(tracker, "REL-24")
    assert [version["name"] for version in found["fixVersions"]] == ["1.1.0", "2.0.0", "1.0.0"]
    thrice(tracker, issue="REL-24", labels=[], fix_versions=["2.0.0"])
    assert fields_of(tracker, "REL-24")["labels"] == []


def test_field_missing_on_the_screen_is_rejected_before_any_write(tracker: Tracker) -> None:
    project = {"key": "REL", "name": "Releases", "screens": {"edit": ["summary", "labels"]}}
    tracker.sandbox.seed({"tracker": {"projects": [project]}})
    message = "the field priority cannot be set"
    tracker.refused("rejected", message, issue="REL-22", priority="Medium", check=True)
    thrice(tracker, issue="REL-22", labels=["ok"])


@each_server
def test_assignee_needs_neither_screen_nor_edit_permission(
    tracker: Tracker, settings: dict[str, Any]
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    project = {"key": "REL", "name": "Releases", "screens": {"edit": ["summary", "labels"]}}
    tracker.sandbox.seed({"tracker": {"projects": [project]}})
    name = "account-boris" if settings else "boris"
    done = thrice(tracker, issue="REL-22", assignee=name, labels=["x"])
    api = f"/rest/api/{3 if settings else 2}/issue/REL-22"
    assert done.writes == [f"PUT {api}", f"PUT {api}/assignee"]
    assert len(thrice(tracker, issue="REL-22", assignee="").writes) == 1
    closed = {"statuses": {"Open": {"category": "new", "editable": False}}}
    tracker.sandbox.seed({"tracker": closed})
    done = thrice(tracker, issue="REL-22", fields={"Assignee": name})
    assert done.writes == [f"PUT {api}/assignee"]


# -- status ------------------------------------------------------------------------------------


@each_mode
def test_value_that_the_screen_of_a_transition_rejects_is_invalid(
    tracker: Tracker, check: bool
) -> None:
    def refused(kind: str, words: str, **fields: Any) -> None:
        fields = {"Resolution": "Fixed", **fields}
        given = {"issue": "REL-23", "status": "Done", "transition_fields": fields, "check": check}
        tracker.refused(kind, words, **given)
        assert tracker.sandbox.requests("tracker", writes=True) == []

    refused("invalid", "Resolution cannot be 'Fixt'; allowed values: '", Resolution="Fixt")
    refused("rejected", "labels of transition_fields is not on its screen", labels=["x"])


def test_resolution_is_named_without_regard_to_case(tracker: Tracker) -> None:
    thrice(tracker, issue="REL-23", status="Done", transition_fields={"resolution": "fixed"})
    assert fields_of(tracker, "REL-23")["resolution"]["name"] == "Fixed"


@each_server
def test_status_is_reached_by_name(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    done = thrice(tracker, issue="REL-22", status="in progress")
    assert changes(done) == {"status": ("Open", "in progress")}
    extra = {"Resolution": "Fixed", "fixVersions": ["2.0.0"]}
    thrice(tracker, issue="REL-22", status="Done", transition_fields=extra)
    found = fields_of(tracker, "REL-22")
    assert (found["status"]["name"], found["resolution"]["name"]) == ("Done", "Fixed")
    assert [version["name"] for version in found["fixVersions"]] == ["2.0.0"]


@each_mode
def test_unreachable_status_is_rejected(tracker: Tracker, check: bool) -> None:
    offered = "the available transitions are 'Start' (111) to 'In Progress'"
    tracker.refused("rejected", offered, issue="OPS-1", status="Done", check=check)
    tracker.refused("rejected", "'Donne'", offered, issue="OPS-1", status="Donne", check=check)
    words = "by 'Finnish'", "'Finish' (131)", "'Give up' (132)"
    given = {"issue": "OPS-2", "status": "Done", "check": check}
    tracker.refused("rejected", *words, transition="Finnish", **given)


@each_mode
def test_several_transitions_to_a_status_are_rejected(tracker: Tracker, check: bool) -> None:
    words = "status: several transitions", "'Finish' (131)", "'Give up' (132)"
    tracker.refused("invalid", *words, issue="OPS-2", status="Done", check=check)


@pytest.mark.parametrize("transition", ["give up", "132"])
def test_named_transition_is_used(tracker: Tracker, transition: str) -> None:
    thrice(tracker, issue="OPS-2", status="Done", transition=transition)
    assert fields_of(tracker, "OPS-2")["resolution"]["name"] == "Won't Fix"


@each_mode
def test_required_fields_of_a_transition_are_reported(tracker: Tracker, check: bool) -> None:
    message = "the transition 'Close' of the issue 'REL-22' requires 'Resolution'"
    tracker.refused("rejected", message, issue="REL-22", status="Done", check=check)
    steps = [
        {
            "id": "1",
            "name": "Go",
            "to": "Done",
            "screen": ["fixVersions"],
            "required": ["fixVersions"],
        }
    ]
    tracker.sandbox.seed(
        {"tracker": {"workflows": {"REL": {"initial": "Open", "transitions": steps}}}}
    )
    assert tracker(issue="REL-23", status="Done", fix_versions=["2.0.0"], check=check).changed
    message = "has no screen, so transition_fields cannot be set"
    given = {"status": "Done", "transition": "Finish", "transition_fields": {"resolution": "Done"}}
    tracker.refused("rejected", message, issue="OPS-2", check=check, **given)


def test_workflow_that_moves_the_issue_further_gives_a_warning(tracker: Tracker) -> None:
    steps = [{"id": "1", "name": "Go", "from": ["Open"], "to": "In Progress", "then": "Done"}]
    tracker.sandbox.seed(
        {"tracker": {"workflows": {"REL": {"initial": "Open", "transitions": steps}}}}
    )
    done = tracker(issue="REL-22", status="In Progress")
    (warning,) = done.warnings
    assert "moved it on to 'Done'" in warning


@each_server
def test_concurrent_transition_is_accepted(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    fault = {"service": "tracker", "path": "/transitions$", "method": "POST", "status": 409}
    tracker.sandbox.fault(**fault, after=True)
    assert tracker(issue="REL-22", status="In Progress").changed
    tracker.sandbox.fault(**fault)
    tracker.refused("conflict", "REL-23", issue="REL-23", status="In Progress")


# -- comments, links, attachments --------------------------------------------------------------


@each_server
def test_comment_is_written_once_per_account(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", cloud_comment_page=1, **settings)
    for number in range(3):
        tracker.send("POST", "issue/REL-22/comment", {"body": f"before {number}"})
    text = "Released: https://example.org \r\n- one\n- two\n\nend\n"
    done = thrice(tracker, issue="REL-22", comment=text)
    assert changes(done) == {"comment": (None, text)}
    assert len(done.writes) == 1
    other = tracker(issue="REL-22", comment=text, login=DEVELOPER)
    assert other.changed
    total = tracker.get("issue/REL-22/comment", maxResults="1")["total"]
    assert total == 5


@each_server
@pytest.mark.parametrize(
    ("kind", "side", "phrase"),
    [
        ("Blocks", "outwardIssue", "blocks REL-2"),
        ("blocks", "outwardIssue", "blocks REL-2"),
        ("is blocked by", "inwardIssue", "is blocked by REL-2"),
        ("relates to", "outwardIssue", "relates to REL-2"),
    ],
)
def test_link_has_the_direction_of_its_name(
    tracker: Tracker, settings: dict[str, Any], kind: str, side: str, phrase: str
) -> None:
    """Verify the direction of a link. In the subject, the other issue is `outwardIssue`
    [tracker-26].
    """
    tracker.sandbox.settings("tracker", **settings)
    done = thrice(tracker, issue="REL-22", links=[{"type": kind, "issue": "REL-2"}])
    assert changes(done) == {"links": (None, phrase)}
    (link,) = fields_of(tracker, "REL-22")["issuelinks"]
    assert link[side]["key"] == "REL-2"


def test_symmetric_link_is_equal_from_both_sides(tracker: Tracker) -> None:
    thrice(tracker, issue="REL-22", links=[{"type": "Relates", "issue": "REL-2"}])
    assert not tracker(issue="REL-2", links=[{"type": "Relates", "issue": "REL-22"}]).changed
    assert tracker(issue="REL-2", links=[{"type": "Blocks", "issue": "REL-22"}]).changed


@each_mode
def test_invalid_link_is_rejected(tracker: Tracker, check: bool) -> None:
    def refused(kind: str, words: str, link: dict[str, str]) -> None:
        tracker.refused(kind, words, issue="REL-22", links=[link], check=check)

    refused(
        "invalid",
        "links[0].type is 'Block', but the tracker has",
        {"type": "Block", "issue": "REL-2"},
    )
    refused("not_found", "REL-999", {"type": "Blocks", "issue": "REL-999"})
    refused("invalid", "linked to itself", {"type": "Blocks", "issue": "rel-22"})
    tracker.sandbox.settings("tracker", linking=False)
    refused("not_found", "links may be disabled", {"type": "Blocks", "issue": "REL-2"})


def move(tracker: Tracker) -> None:
    """Add the issue REL-80, which had the key OLD-8 before it was moved."""
    moved = {"key": "REL-80", "summary": "moved", "former_keys": ["OLD-8"]}
    tracker.sandbox.seed({"tracker": {"issues": [moved]}})


@each_server
def test_key_of_a_moved_issue_is_the_issue(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    move(tracker)
    links = [{"type": "Blocks", "issue": key} for key in ("OLD-8", "rel-80", "REL-80")]
    done = thrice(tracker, issue="REL-22", links=links)
    assert changes(done) == {"links": (None, "blocks REL-80")}
    assert len(done.writes) == 1
    done = thrice(tracker, issue="OLD-8", summary="found")
    assert done.values["issues"][0]["key"] == "REL-80"
    done = thrice(tracker, **NEW, links=links[:1])
    assert changes(done)["links"] == (None, "blocks REL-80")


@each_mode
@pytest.mark.parametrize("issue", ["REL-80", "OLD-8", "rel-80"])
@pytest.mark.parametrize("other", ["REL-80", "OLD-8", "rel-80"])
def test_issue_is_not_linked_to_itself(
    tracker: Tracker, check: bool, issue: str, other: str
) -> None:
    move(tracker)
    words = "links: the issue REL-80 cannot be linked to itself"
    links = [{"type": "Blocks", "issue": other}]
    tracker.refused("invalid", words, issue=issue, links=links, check=check)


@each_server
def test_files_are_attached_once(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    for name in ("größe.txt", "a & b.log", "empty"):
        (tmp_path / name).write_text("" if name == "empty" else name, encoding="utf-8")
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    done = thrice(tracker, issue="REL-22", attachments=paths)
    assert len(done.writes) == 3
    stored = {one["filename"]: one["size"] for one in fields_of(tracker, "REL-22")["attachment"]}
    assert stored == {"größe.txt": 11, "a & b.log": 9, "empty": 0}


@each_server
def test_changed_file_replaces_its_attachment(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    file = tmp_path / "report.txt"
    for text in ("one", "two", "three", ""):
        file.write_text(text, encoding="utf-8")
        done = thrice(tracker, issue="REL-22", attachments=[str(file)])
        changes = [{"field": "attachments", "before": None, "after": "report.txt"}]
        if text != "one":
            changes.append({"field": "attachments", "before": "report.txt", "after": None})
        assert done.values["issues"][0]["changes"] == changes
        assert [write.split()[0] for write in done.writes] == ["POST", "DELETE"][: len(changes)]
        (stored,) = fields_of(tracker, "REL-22")["attachment"]
        assert stored["size"] == len(text)


@each_server
def test_older_attachment_can_be_kept(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    file = tmp_path / "report.txt"
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        done = thrice(tracker, issue="REL-22", attachments=[str(file)], replace=False)
        assert [write.split()[0] for write in done.writes] == ["POST"]
    assert len(fields_of(tracker, "REL-22")["attachment"]) == 2
    done = tracker(issue="REL-22", attachments=[str(file)])
    assert [write.split()[0] for write in done.writes] == ["DELETE"]
    (stored,) = fields_of(tracker, "REL-22")["attachment"]
    assert (stored["size"], stored["filename"]) == (3, "report.txt")


@each_server
def test_undeletable_older_attachment_is_kept(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    file = tmp_path / "report.txt"
    file.write_text("one", encoding="utf-8")
    tracker(issue="REL-22", attachments=[str(file)])
    file.write_text("two", encoding="utf-8")
    tracker.sandbox.fault(service="tracker", status=403, method="DELETE")
    error = tracker.refused(
        "permission", "set replace to false", issue="REL-22", attachments=[str(file)], check=False
    )
    assert error.result["changed"] is True
    assert [one["size"] for one in fields_of(tracker, "REL-22")["attachment"]] == [3, 3]


def test_large_file_is_compared_by_size(tracker: Tracker, tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        done = tracker(issue="REL-22", attachments=[str(file)], compare_max=2)
    assert (done.changed, done.values["unknown"]) == (False, ["REL-22: report.txt"])
    assert "content was not compared: it has 3 bytes, but compare_max is 2" in done.warnings[0]


@each_mode
def test_invalid_file_is_rejected(tracker: Tracker, check: bool, tmp_path: Path) -> None:
    def refused(kind: str, words: str, *names: str) -> None:
        paths = [str(tmp_path / name) for name in names]
        tracker.refused(kind, words, issue="REL-22", attachments=paths, check=check)

    (tmp_path / "a").write_text("0123456789", encoding="utf-8")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a").write_text("", encoding="utf-8")
    refused("invalid", "No such file", "a", "missing")
    refused("invalid", "attachments[0]", "b")
    refused("invalid", "which has the same file name as", "a", "b/a")
    for name in ("x-1", "x:1"):  # a server may store the second name as the first
        (tmp_path / name).write_text(name, encoding="utf-8")
    refused("invalid", "or may get it on the server", "x-1", "x:1")
    tracker.sandbox.settings("tracker", upload_limit=5)
    refused("rejected", "has 10 bytes, but the server accepts at most 5", "a")


# -- many issues, and creation of an issue -----------------------------------------------------


@each_server
def test_many_issues_are_updated(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    jql = "project = OPS AND status = Open AND key in (OPS-1, OPS-4, OPS-7, OPS-10)"
    done = tracker(jql=jql, status="In Progress", add={"labels": ["moved"]}, parallel=3)
    assert [issue["action"] for issue in done.values["issues"]] == ["updated"] * 4
    assert len(done.writes) == 8
    again = tracker(jql=jql, status="In Progress", add={"labels": ["moved"]})
    assert (again.changed, again.values["issues"]) == (False, [])
    wide = tracker(jql=jql.replace("status = Open", "labels = moved"), status="In Progress")
    assert [issue["action"] for issue in wide.values["issues"]] == ["unchanged"] * 4
    assert len(wide.requests) <= (
        2 if settings else 1
    )  # the first request detects the search API of the cloud


@each_mode
def test_query_above_the_limit_is_rejected(tracker: Tracker, check: bool) -> None:
    given = {"jql": "project = OPS", "priority": "High", "check": check}
    tracker.refused("invalid", "jql finds more than max_issues (100) issues", **given)
    tracker.refused("invalid", "max_issues (3)", max_issues=3, **given)
    assert tracker.sandbox.requests("tracker", writes=True) == []


def test_impossible_change_of_one_issue_prevents_every_write(tracker: Tracker) -> None:
    given = {"jql": "key in (REL-1, REL-22)", "status": "In Progress", "labels": ["x"]}
    tracker.refused("rejected", "the issue 'REL-1' cannot reach", **given)
    assert tracker.sandbox.requests("tracker", writes=True) == []


def test_partial_failure_is_reported_and_completed_by_the_next_run(
    tracker: Tracker,
) -> None:
    """Verify a partial failure: the second of three transitions is rejected after the labels were
    written.
    """
    fault = {"service": "tracker", "path": "/issue/OPS-4/transitions$", "method": "POST"}
    tracker.sandbox.fault(**fault, status=403, body='{"errorMessages":["No."],"errors":{}}')
    given: dict[str, Any] = {
        "jql": "key in (OPS-1, OPS-4, OPS-7)",
        "status": "In Progress",
        "labels": ["x"],
    }
    error = tracker.refused("permission", "1 of 3 issues failed", "OPS-4", **given)
    assert error.result["changed"] is True
    found = {issue["key"]: issue for issue in error.result["issues"]}
    assert [change["field"] for change in found["OPS-4"]["changes"]] == ["labels"]
    assert found["OPS-4"]["error"]["kind"] == "permission"
    assert len(found["OPS-1"]["changes"]) == len(found["OPS-7"]["changes"]) == 2
    again = tracker(**given)
    assert [issue["key"] for issue in again.values["issues"] if issue["changes"]] == ["OPS-4"]


@each_server
def test_issue_is_created_once_with_all_fields(
    tracker: Tracker, settings: dict[str, Any], tmp_path: Path
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    file = tmp_path / "notes.txt"
    file.write_text("notes", encoding="utf-8")
    done = thrice(
        tracker,
        **NEW,
        description="one\ntwo",
        fix_versions=["2.0.0"],
        components=["server"],
        fields={"Weight": 3},
        links=[{"type": "Blocks", "issue": "REL-2"}],
        attachments=[str(file)],
        comment="hello",
        status="In Progress",
    )
    (issue,) = done.values["issues"]
    assert (issue["key"], issue["action"]) == ("REL-26", "created")
    # the sandbox in the role of a server drops the comment of a transition without a screen
    assert len(done.writes) == (4 if settings else 5)
    found = fields_of(tracker, "REL-26")
    assert (found["summary"], found["status"]["name"]) == ("Made once", "In Progress")
    assert found["customfield_10014"] == 3.0
    assert len(found["issuelinks"]) == len(found["attachment"]) == 1
    assert comments_of(tracker, "REL-26") == ["hello"]


def test_delayed_index_causes_no_second_issue(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", index_lag_searches=3)
    done = tracker(**NEW, retry_max_wait=0.01)
    assert done.warnings == []
    assert not tracker(**NEW).changed


def test_cloud_search_finds_a_new_issue_immediately(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", deployment="Cloud", index_lag_searches=9)
    done = tracker(**NEW, retry_max_wait=0.01)
    assert done.warnings == []
    searches = [
        request
        for request in tracker.sandbox.requests("tracker")
        if "search/jql" in request["path"]
    ]
    assert [search["method"] for search in searches] == ["GET", "POST"]


@pytest.mark.parametrize("settings", [{}, {"deployment": "Cloud"}])
@each_mode
def test_issue_of_this_run_is_read_by_its_key(
    tracker: Tracker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    check: bool,
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    tracker.sandbox.settings("tracker", index_lag_searches=99, **settings)
    assert tracker(**NEW, retry_max_wait=0.0).values["issues"][0]["key"] == "REL-26"
    again = tracker(**NEW, retry_max_wait=0.0, check=check)
    assert (again.changed, again.values["issues"][0]["key"]) == (False, "REL-26")
    edited = tracker(**{**NEW, "summary": "Other"}, retry_max_wait=0.0, check=check)
    assert edited.values["issues"][0] == {
        "key": "REL-26",
        "action": "updated",
        "changes": [{"field": "summary", "before": NEW["summary"], "after": "Other"}],
    }
    other = tracker(**{**NEW, "match": f"{NEW['match']} AND type = Bug"}, check=True)
    assert other.values["issues"][0]["action"] == "created"


def test_deleted_issue_of_this_run_is_created_again(
    tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    tracker(**NEW)
    tracker.sandbox.reset()
    assert tracker(**NEW).values["issues"][0]["action"] == "created"


def test_search_is_repeated_while_the_index_lags(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", index_lag_searches=7)
    tracker(**NEW, retry_max_wait=0.0)
    assert tracker(**NEW, search_lag=30).changed is False
    assert len(tracker.sandbox.requests("tracker", writes=True)) == 1


@pytest.mark.parametrize("odd", [-1, "soon", 3601])
def test_invalid_search_lag_is_rejected(tracker: Tracker, odd: Any) -> None:
    tracker.refused("invalid", "search_lag", **NEW, search_lag=odd)


def test_lost_creation_is_searched_until_indexed(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", index_lag_searches=3)
    tracker.sandbox.fault(service="tracker", method="POST", path="/issue$", cut=True, after=True)
    done = tracker(**NEW, retry_max_wait=0.01)
    assert done.values["issues"][0]["key"] == "REL-26"
    assert done.writes == ["POST /rest/api/2/issue"]


def test_unverified_creation_is_not_resent(tracker: Tracker) -> None:
    tracker.sandbox.fault(service="tracker", method="POST", path="/issue$", cut=True)
    message = "whether it was done is not known"
    tracker.refused("network", message, **NEW, retry_max_wait=0.01)
    assert len(tracker.sandbox.requests("tracker", writes=True)) == 1


def test_match_that_misses_the_created_issue_gives_a_warning(tracker: Tracker) -> None:
    given = {**NEW, "match": "project = REL AND labels = typo"}
    (warning,) = tracker(**given, retry_max_wait=0.01).warnings
    assert "match does not find the new issue REL-26" in warning


@each_mode
def test_invalid_new_issue_is_rejected_before_any_write(tracker: Tracker, check: bool) -> None:
    for given, kind, words in (
        ({"project": "NOPE"}, "not_found", "NOPE"),
        ({"type": "Tsk"}, "rejected", "type: the project 'REL' has no 'Tsk'; it has"),
        ({"fix_versions": ["9.9"]}, "rejected", "fix_versions: the project 'REL' has no '9.9'"),
        ({"add": {"components": ["x"]}}, "rejected", "components: the project 'REL' has no 'x'"),
        ({"assignee": "nobody"}, "not_found", "assignee: there is no such account"),
        ({"match": "project = OPS"}, "conflict", "match finds several issues (OPS-1, OPS-2"),
    ):
        tracker.refused(kind, words, **{**NEW, **given}, check=check)
    assert tracker.sandbox.requests("tracker", writes=True) == []


@each_mode
@pytest.mark.parametrize(
    "settings",
    [{}, {"version": "8.2.0"}, {"deployment": "Cloud"}, {"createmeta_page": 2}],
    ids=["server", "old server", "cloud", "pages"],
)
def test_required_field_of_a_new_issue_is_reported(
    tracker: Tracker, settings: dict[str, Any], check: bool
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    project = {"key": "REL", "name": "Releases", "required": ["customfield_10014", "duedate"]}
    tracker.sandbox.seed({"tracker": {"projects": [project]}})
    words = "requires a value for 'Weight (customfield_10014)': set it in fields"
    due = {"duedate": "2026-06-01"}
    tracker.refused("invalid", words, **NEW, fields=due, check=check)
    tracker.refused("invalid", words, **NEW, fields={**due, "Weight": None}, check=check)
    assert tracker.sandbox.requests("tracker", writes=True) == []
    assert tracker(**NEW, fields={**due, "Weight": 2}, check=check).changed


@each_mode
def test_field_that_is_not_on_the_screen_for_new_issues_is_rejected(
    tracker: Tracker, check: bool
) -> None:
    screen = ["summary", "labels", "priority"]
    project = {"key": "REL", "name": "Releases", "screens": {"create": screen}}
    tracker.sandbox.seed({"tracker": {"projects": [project]}})
    words = "the field Weight cannot be set, because it is not on the screen for new issues"
    tracker.refused("rejected", words, **NEW, fields={"Weight": 2}, check=check)
    assert tracker.sandbox.requests("tracker", writes=True) == []
    done = tracker(**NEW, priority="medium", assignee="boris", check=check)
    assert changes(done)["assignee"] == (None, "boris")
    if not check:
        assert fields_of(tracker, "REL-26")["assignee"]["name"] == "boris"


# -- removals, comments and watchers -----------------------------------------------------------


@each_server
def test_remove_only_removes(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    lists: dict[str, Any] = {
        "labels": ["a", "b"],
        "fix_versions": ["1.0.0", "2.0.0"],
        "components": ["server"],
    }
    tracker(issue="REL-22", **lists)
    done = thrice(
        tracker,
        issue="REL-22",
        remove={"labels": ["a", "A"], "fix_versions": ["1.0.0"], "components": ["SERVER", "none"]},
        add={"labels": ["c"]},
    )
    assert len(done.writes) == 1
    assert changes(done) == {
        "labels": (["a", "b"], ["b", "c"]),
        "fix_versions": (["1.0.0", "2.0.0"], ["2.0.0"]),
        "components": (["server"], []),
    }
    tracker(issue="REL-22", fields={"versions": ["1.0.0"]})
    assert thrice(tracker, issue="REL-22", remove={"affects_versions": ["1.0.0"]}).changed
    assert fields_of(tracker, "REL-22")["versions"] == []
    many: dict[str, Any] = {"jql": "project = REL AND labels = c", "remove": {"labels": ["c"]}}
    assert [issue["key"] for issue in tracker(**many).values["issues"]] == ["REL-22"]


@each_server
def test_own_comment_is_edited_and_deleted(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    tracker(issue="REL-22", comment="Build 1 is green.", login=DEVELOPER)
    for number in ("1", "2"):
        text = f"Build {number} is green."
        done = thrice(tracker, issue="REL-22", comment=text, comment_find="Build")
        assert len(done.writes) == 1
    assert comments_of(tracker, "REL-22") == ["Build 1 is green.", "Build 2 is green."]
    assert changes(done) == {"comment": ("Build 1 is green.", "Build 2 is green.")}
    thrice(tracker, issue="REL-22", comment_find="Build", comment_state="absent")
    assert comments_of(tracker, "REL-22") == ["Build 1 is green."]
    tracker(issue="REL-22", comment="over")
    thrice(tracker, issue="REL-22", comment="over", comment_state="absent")
    assert comments_of(tracker, "REL-22") == ["Build 1 is green."]
    absent = {**NEW, "comment_find": "Build", "comment_state": "absent"}
    assert thrice(tracker, **absent).values["issues"][0]["action"] == "created"


@each_server
def test_watchers_are_added_and_removed(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    first = "Alice Example" if settings else "alice"
    done = thrice(
        tracker, issue="REL-22", watchers=[first, "account-boris" if settings else "boris"]
    )
    assert len(done.writes) == 2
    done = thrice(tracker, issue="REL-22", remove={"watchers": [first, "nobody"]})
    shown = tracker.get("issue/REL-22/watchers")["watchers"]
    assert [one["displayName"] for one in shown] == ["Boris Beispiel"]
    done = thrice(tracker, **NEW, watchers=[first])
    assert changes(done)["watchers"] == (None, first)


@each_mode
def test_only_own_account_can_be_added_as_watcher_without_permission(
    tracker: Tracker, check: bool
) -> None:
    tracker.refused("not_found", "watchers", issue="REL-22", watchers=["nobody"], check=check)
    assert tracker(issue="REL-22", watchers=["developer"], login=DEVELOPER, check=check).changed
    if not check:
        tracker.refused("permission", issue="REL-22", watchers=["alice"], login=DEVELOPER)


# -- invalid input and permissions -------------------------------------------------------------

SLIPS: list[tuple[dict[str, Any], str]] = [
    ({"issue": "REL-22"}, "nothing to change: set at least one of summary"),
    ({"issue": "", "summary": "x"}, "issue is empty"),
    ({"jql": " ", "summary": "x"}, "jql is empty"),
    ({**NEW, "match": ""}, "match is empty"),
    ({"issue": "REL-22", "summary": ""}, "summary is empty"),
    ({"issue": "REL-22", "summary": "a\nb"}, "summary must be one line"),
    ({"issue": "REL-22", "summary": 1.1}, "summary is the number 1.1"),
    ({"issue": "REL-22", "status": ""}, "status is empty"),
    ({"issue": "REL-22", "comment": " "}, "comment is empty"),
    (
        {"issue": "REL-22", "labels": ["a b"]},
        "labels[0] is 'a b', but a label must not contain blanks",
    ),
    ({"issue": "REL-22", "add": {"labels": ["a b"]}}, "add.labels[0]"),
    ({"issue": "REL-22", "labels": [""]}, "labels[0] is empty"),
    ({"issue": "REL-22", "fix_versions": [1.1]}, "fix_versions[0] is the number 1.1"),
    ({"issue": "REL-22", "add": {"label": ["a"]}}, "add.label is not an option"),
    (
        {"issue": "REL-22", "labels": ["a"], "add": {"labels": ["b"]}},
        "add.labels cannot be combined",
    ),
    (
        {"issue": "REL-22", "add": {}},
        "add: labels or fix_versions or components is missing: set one of them",
    ),
    ({"issue": "REL-22", "links": ["REL-2"]}, "links[0]"),
    ({"issue": "REL-22", "links": [{"typ": "Blocks", "issue": "REL-2"}]}, "links[0].typ"),
    ({"issue": "REL-22", "fields": "a=1;b=2"}, "fields is a string"),
    ({"jql": "key = REL-1", "status": "Done", "max_issues": 0}, "max_issues is 0"),
    (
        {"issue": "REL-22", "remove": {}},
        "remove: labels or fix_versions or components or affects",
    ),
    (
        {"issue": "REL-22", "labels": ["a"], "remove": {"labels": ["b"]}},
        "remove.labels cannot be combined",
    ),
    (
        {"issue": "REL-22", "add": {"components": ["a"]}, "remove": {"components": ["A"]}},
        "'a' is in both add.components and remove.components",
    ),
    (
        {"issue": "REL-22", "watchers": ["a"], "remove": {"watchers": ["a"]}},
        "'a' is in both watchers and remove.watchers",
    ),
    (
        {"issue": "REL-22", "comment_find": "x"},
        "comment_find requires comment or comment_state=absent: set one of them",
    ),
    (
        {"issue": "REL-22", "comment_state": "absent", "status": "Done"},
        "requires comment or comment_find",
    ),
    (
        {"issue": "REL-22", "comment_state": "absent", "comment": "x", "comment_find": "y"},
        "omit comment",
    ),
]


@pytest.mark.parametrize(("given", "words"), SLIPS)
def test_invalid_options_are_rejected_before_any_request(
    tracker: Tracker, given: dict[str, Any], words: str
) -> None:
    tracker.refused("invalid", words, **given)
    assert tracker.sandbox.requests("tracker") == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"summary": ""}, "fields.summary must be one line"),
        ({"Summary": "a\nb"}, "fields.Summary must be one line"),
        (
            {"labels": ["x", "a b"]},
            "fields.labels[1] is 'a b', but a label must not contain blanks",
        ),
    ],
)
def test_fields_with_own_options_are_checked_equally(
    tracker: Tracker, fields: dict[str, Any], words: str
) -> None:
    tracker.refused("invalid", words, issue="REL-22", fields=fields, check=True)


@each_server
@pytest.mark.parametrize(
    "given",
    [
        {"labels": ["x"]},
        {"assignee": "reporter"},
        {"status": "In Progress"},
        {"comment": "hello"},
        {"links": [{"type": "Blocks", "issue": "REL-2"}]},
        {"attachments": [__file__]},
    ],
    ids=lambda given: next(iter(given)),
)
def test_missing_permission_is_reported_as_such(
    tracker: Tracker, settings: dict[str, Any], given: dict[str, Any]
) -> None:
    """Verify the error kind for a missing permission.

    Servers respond with 400, 401, 403 and 404, or list no possible edit [tracker-22].
    """
    tracker.sandbox.settings("tracker", **settings)
    if settings and "assignee" in given:
        given = {"assignee": "account-reporter"}
    error = tracker.refused("permission", issue="REL-22", login=READER, **given)
    assert error.result.get("changed", False) is False


@each_server
def test_missing_create_permission_is_reported(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    tracker.refused("permission", "CREATE_ISSUES", login=READER, **NEW)


def test_missing_issue_is_not_found(tracker: Tracker) -> None:
    tracker.refused("not_found", "REL-999", issue="REL-999", labels=["x"])


def test_translated_status_names_are_equal(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", account_language="de")
    before = fields_of(tracker, "REL-22")["status"]["name"]
    assert not tracker(issue="REL-22", status=before).changed


def test_documented_interface_is_sufficient(fresh: Callable[[str], Sandbox]) -> None:
    tracker = Tracker(fresh("written"), TrackerIssueOperation, TrackerIssueOptions)
    message = "does not support this change, which the documented interface does not include"
    tracker.refused("not_found", message, issue="REL-1", labels=["x"])
    assert not tracker(issue="REL-1", status="Done").changed


@pytest.mark.parametrize("settings", [{}, {"deployment": "Cloud"}], ids=["server", "cloud"])
def test_value_is_listed_twice(tracker: Tracker, settings: dict[str, Any]) -> None:
    """A server stores it once, so a second one could never be saved."""
    tracker.sandbox.settings("tracker", **settings)
    twins = {"fix_versions": ["1.0.0", "1.0.0 "], "fields": {"components": ["server", "SERVER"]}}
    done = thrice(tracker, issue="REL-23", **twins)
    changes = {change["field"]: change["after"] for change in done.values["issues"][0]["changes"]}
    assert changes == {"fix_versions": ["1.0.0"], "components": ["server"]}
