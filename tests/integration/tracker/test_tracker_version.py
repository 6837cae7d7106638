# SPDX-License-Identifier: GPL-3.0-or-later
"""Test versions of a project, on servers and in the cloud: releases, renames, moves, rejections
[C8.7].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_version import (
    TrackerVersionOperation,
    TrackerVersionOptions,
)
from sandbox.client import Sandbox
from tests.helpers import connections, in_process
from tests.helpers.tracker import DEVELOPER, READER, Done, Tracker

SERVERS: dict[str, dict[str, Any]] = {
    "server": {},
    "old server": {"version_post_ignores_states": True},
    "cloud": {"deployment": "Cloud"},
}
#: A server's response to an unknown member in a PUT request.
UNKNOWN_MEMBER = {
    "service": "tracker",
    "method": "PUT",
    "path": "/version/",
    "status": 400,
    "body": '{"errorMessages":["Unrecognized field \\"moveUnfixedIssuesTo\\""]}',
}


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerVersionOperation, TrackerVersionOptions)
    sandbox.clear_faults()


def shown(tracker: Tracker, name: str) -> dict[str, Any] | None:
    """Return a version of REL from the server."""
    found = tracker.get("project/REL/versions")
    return next((one for one in found if one["name"] == name), None)


def versions_of(tracker: Tracker, key: str) -> list[str]:
    fields = tracker.get(f"issue/{key}", fields="fixVersions")["fields"]
    return [version["name"] for version in fields["fixVersions"]]


def unresolved(tracker: Tracker, name: str) -> int:
    version = shown(tracker, name)
    assert version is not None
    count: int = tracker.get(f"version/{version['id']}/unresolvedIssueCount")[
        "issuesUnresolvedCount"
    ]
    return count


def rel(tracker: Tracker, name: str, **options: Any) -> Done:
    return tracker(project="REL", name=name, **options)


def test_empty_date_is_removed(tracker: Tracker) -> None:
    days = {"start_date": "2026-05-01", "release_date": "2026-05-31"}
    none = dict.fromkeys(days, "none")
    assert rel(tracker, "8.1", **none).values["version"]["release_date"] is None
    assert not rel(tracker, "8.1", **none).changed
    rel(tracker, "8.1", **days)
    predicted = rel(tracker, "8.1", check=True, **none)
    done = rel(tracker, "8.1", **none)
    assert (predicted.changed, done.changed) == (True, True)
    assert predicted.values["version"] == done.values["version"]
    found = shown(tracker, "8.1")
    assert found is not None
    assert days.keys() & found.keys() == set()
    # with the date `none`, the version is released without a date
    assert rel(tracker, "8.1", **none, state="released").values["version"]["release_date"] is None


@pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
def test_version_is_planned_released_and_archived(
    tracker: Tracker, settings: dict[str, Any]
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    life: list[dict[str, Any]] = [
        {"start_date": "2026-05-01", "description": "größe"},
        {"state": "released", "release_date": "2026-05-31"},
        {"state": "archived"},
        {"state": "unreleased"},
    ]
    for options in life:
        checked = rel(tracker, "9.0", check=True, **options)
        done = rel(tracker, "9.0", **options)
        again = rel(tracker, "9.0", **options)
        assert (checked.changed, done.changed, again.changed) == (True, True, False), options
        assert checked.diff == done.diff
        assert checked.writes == again.writes == []
        assert again.values["version"] == done.values["version"]
    version = done.values["version"]
    assert version == {
        "id": version["id"],
        "name": "9.0",
        "released": False,
        "archived": False,
        "release_date": "2026-05-31",
        "start_date": "2026-05-01",
        "description": "größe",
        "url": f"{tracker.sandbox.urls['tracker']}/projects/REL/versions/{version['id']}",
    }


@pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
def test_version_is_created_and_released_in_one_task(
    tracker: Tracker, settings: dict[str, Any]
) -> None:
    tracker.sandbox.settings("tracker", **settings)
    done = rel(tracker, "9.0", state="released", release_date="2026-05-31")
    made = shown(tracker, "9.0")
    assert made is not None
    assert (made["released"], made["releaseDate"]) == (True, "2026-05-31")
    assert done.values["unresolved_count"] == 0
    assert not rel(tracker, "9.0", state="released").changed


def test_release_without_date_gets_the_date_of_the_server(tracker: Tracker) -> None:
    today = tracker.get("serverInfo")["serverTime"][:10]
    done = rel(tracker, "2.0.0", state="released", unresolved="ignore")
    assert done.values["version"]["release_date"] == today
    assert done.warnings == []


def test_existing_date_is_kept_and_earlier_release_gets_none(tracker: Tracker) -> None:
    rel(tracker, "2.0.0", release_date="2026-01-02")
    done = rel(tracker, "2.0.0", state="released", unresolved="ignore")
    assert done.values["version"]["release_date"] == "2026-01-02"
    earlier = rel(tracker, "1.0.0", state="released")
    assert (earlier.changed, earlier.values["version"]["release_date"]) == (False, None)


def test_present_keeps_other_states(tracker: Tracker) -> None:
    rel(tracker, "1.0.0", state="archived")
    done = rel(tracker, "1.0.0", description="first")
    assert done.changed
    assert done.values["version"]["released"] is True
    assert done.values["version"]["archived"] is True


def test_only_differences_are_sent(tracker: Tracker) -> None:
    rel(tracker, "1.1.0", start_date="2026-01-02", description="a\nb")
    done = rel(tracker, "1.1.0", start_date="2026-01-03", description="a\r\nb ")
    (write,) = [request for request in done.requests if request["write"]]
    assert write["body"] == '{"startDate": "2026-01-03"}'


def test_unresolved_issues_give_a_warning(tracker: Tracker) -> None:
    count = unresolved(tracker, "1.1.0")
    done = rel(tracker, "1.1.0", state="released", check=True)
    assert count > 1
    assert done.warnings == [f"{count} issues are unresolved in the version '1.1.0'"]
    assert done.values["unresolved_count"] == count
    assert rel(tracker, "1.1.0", state="released").warnings == done.warnings
    assert rel(tracker, "1.1.0", state="released").warnings == []


@pytest.mark.parametrize("check", [True, False])
def test_unresolved_issues_fail_before_any_write(tracker: Tracker, check: bool) -> None:
    error = tracker.refused(
        "failed",
        "unresolved in the version '1.1.0'",
        project="REL",
        name="1.1.0",
        state="released",
        unresolved="fail",
        check=check,
    )
    count, keys = unresolved(tracker, "1.1.0"), error.result["unresolved_issues"]
    assert error.result == {"unresolved_count": count, "unresolved_issues": keys}
    assert len(keys) == count
    assert ", ".join(keys) in error.message
    many = {"project": "REL", "count": 25, "first": 100, "summary": "x", "fixVersions": [["1.1.0"]]}
    tracker.sandbox.seed({"tracker": {"series": [many]}})
    release = {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "fail"}
    error = tracker.refused("failed", f"and {count + 5} more", **release, check=check)
    assert len(error.result["unresolved_issues"]) == 20
    assert tracker.sandbox.requests("tracker", writes=True) == []


@pytest.mark.parametrize("knows", [True, False], ids=["by the server", "one by one"])
def test_unresolved_issues_are_moved(tracker: Tracker, knows: bool) -> None:
    if not knows:
        tracker.sandbox.fault(**UNKNOWN_MEMBER)
    count, of_next = unresolved(tracker, "1.1.0"), unresolved(tracker, "2.0.0")
    both = versions_of(tracker, "REL-24")
    checked = rel(tracker, "1.1.0", state="released", unresolved="2.0.0", check=True)
    done = rel(tracker, "1.1.0", state="released", unresolved="2.0.0")
    assert checked.diff == done.diff
    assert done.diff[1]["unresolved_issues"] == {"2.0.0": count}
    assert (both, versions_of(tracker, "REL-24")) == (["1.1.0", "2.0.0"], ["2.0.0"])
    assert unresolved(tracker, "1.1.0") == 0
    assert unresolved(tracker, "2.0.0") == of_next + count - 1  # an issue had both versions
    assert shown(tracker, "1.1.0")["released"] is True  # type: ignore[index]
    assert len(done.writes) == (1 if knows else count + 2)
    assert done.warnings == []


def test_hidden_unresolved_issues_are_reported(tracker: Tracker) -> None:
    """Verify the warning if issues stay unresolved after the release but the search finds none."""
    count = {"body": {"issuesUnresolvedCount": 2}, "status": 200, "skip": 1, "times": 2}
    tracker.sandbox.fault(service="tracker", path="/unresolvedIssueCount$", **count)
    (warning,) = rel(tracker, "1.1.0", state="released", unresolved="2.0.0").warnings
    assert "2 unresolved issues of the version '1.1.0' could not be moved" in warning


def test_moved_issues_that_are_still_counted_give_no_warning(tracker: Tracker) -> None:
    issues = [{"id": "10024", "key": "REL-24", "fields": {}}]
    late = {"body": {"issues": issues, "total": 1}, "status": 200}
    count = {"body": {"issuesUnresolvedCount": 1}, "status": 200, "skip": 1}
    tracker.sandbox.fault(service="tracker", path="/search$", **late)
    tracker.sandbox.fault(service="tracker", path="/unresolvedIssueCount$", times=9, **count)
    done = rel(tracker, "1.1.0", state="released", unresolved="2.0.0")
    assert done.warnings == []
    assert versions_of(tracker, "REL-24") == ["2.0.0"]


def test_issues_are_moved_only_by_the_releasing_task(tracker: Tracker) -> None:
    rel(tracker, "1.1.0", state="released", unresolved="ignore")
    count = unresolved(tracker, "1.1.0")
    done = rel(tracker, "1.1.0", state="released", unresolved="2.0.0")
    assert not done.changed
    assert unresolved(tracker, "1.1.0") == count > 0


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ("fial", "not_found", "unresolved: the project 'REL' has no version 'fial'"),
        ("1.1.0", "invalid", "unresolved is '1.1.0', the version to release: use another version"),
    ],
)
def test_invalid_target_is_rejected(tracker: Tracker, target: str, kind: str, words: str) -> None:
    options = {"name": "1.1.0", "state": "released", "unresolved": target}
    tracker.refused(kind, words, project="REL", check=True, **options)


def test_version_is_renamed_once(tracker: Tracker) -> None:
    done = rel(tracker, "1.1.0", new_name="1.2.0")
    again = rel(tracker, "1.1.0", new_name="1.2.0", description="")
    assert (done.changed, again.changed) == (True, False)
    assert done.values["version"] == again.values["version"]
    assert shown(tracker, "1.1.0") is None
    assert "1.2.0" in versions_of(tracker, "REL-24")


def test_renaming_a_missing_version_creates_it(tracker: Tracker) -> None:
    done = rel(tracker, "7.0", new_name="7.1")
    assert done.changed
    assert (shown(tracker, "7.0"), shown(tracker, "7.1") is not None) == (None, True)


@pytest.mark.parametrize("check", [True, False])
def test_renaming_to_an_existing_version_is_a_conflict(tracker: Tracker, check: bool) -> None:
    options = {"name": "1.1.0", "new_name": "2.0.0", "check": check}
    tracker.refused("conflict", "'1.1.0'", "'2.0.0'", project="REL", **options)


def test_names_are_compared_like_on_the_server(tracker: Tracker) -> None:
    rel(tracker, "Spring")
    assert not rel(tracker, " sPRING ").changed
    assert rel(tracker, "spring", new_name="SPRING").changed
    assert not rel(tracker, "Spring", new_name="SPRING").changed


@pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
def test_issues_of_a_deleted_version_are_moved(tracker: Tracker, settings: dict[str, Any]) -> None:
    tracker.sandbox.settings("tracker", **settings)
    options = {"state": "absent", "move_to": "1.0.0"}
    checked = rel(tracker, "2.0.0", check=True, **options)
    done, again = rel(tracker, "2.0.0", **options), rel(tracker, "2.0.0", **options)
    assert (checked.changed, done.changed, again.changed) == (True, True, False)
    assert (done.values["version"], again.values["version"]) == (None, None)
    assert versions_of(tracker, "REL-21") == ["1.0.0"]


def test_issues_of_a_deleted_version_lose_it(tracker: Tracker) -> None:
    rel(tracker, "2.0.0", state="absent")
    assert versions_of(tracker, "REL-21") == []


@pytest.mark.parametrize("check", [True, False])
def test_missing_target_prevents_deletion(tracker: Tracker, check: bool) -> None:
    options = {"name": "2.0.0", "state": "absent", "move_to": "3.x", "check": check}
    tracker.refused("not_found", "move_to", "'3.x'", project="REL", **options)
    assert shown(tracker, "2.0.0") is not None


SLIPS: list[tuple[dict[str, Any], str]] = [
    (
        {"release_date": "31.05.2026"},
        "release_date is '31.05.2026', but must be a date such as 2026-05-31",
    ),
    ({"start_date": "2026-02-30"}, "start_date is '2026-02-30'"),
    ({"start_date": "20260531"}, "start_date is '20260531'"),
    ({"release_date": ""}, "release_date is empty"),
    (
        {"start_date": "2026-06-01", "release_date": "2026-05-01"},
        "start_date (2026-06-01) is after",
    ),
    ({"name": 1.1}, "name is the number 1.1"),
    ({"name": " "}, "name is empty"),
    ({"new_name": 1.1}, "new_name is the number 1.1"),
    ({"name": "x" * 256}, "name has more than 255 characters"),
    ({"name": "two\nlines"}, "name contains a line break, a tab or another control character"),
    ({"new_name": "a\ttab"}, "new_name contains a line break"),
    ({"project": ""}, "project is empty"),
    ({"unresolved": ""}, "unresolved is empty"),
    ({"unresolved": False}, "unresolved is the boolean false"),
    ({"move_to": "2.0.0"}, "move_to requires state=absent"),
    ({"state": "absent", "move_to": "1.1.0"}, "the version to delete"),
    ({"state": "absent", "new_name": "1.2.0"}, "new_name cannot be combined with state=absent"),
    ({"state": "absent", "description": "x"}, "description cannot be combined"),
]


@pytest.mark.parametrize(("options", "words"), SLIPS)
def test_invalid_options_are_rejected_before_any_request(
    tracker: Tracker, options: dict[str, Any], words: str
) -> None:
    given = {"project": "REL", "name": "1.1.0", **options}
    tracker.refused("invalid", words, **given)
    assert tracker.sandbox.requests("tracker") == []


@pytest.mark.parametrize("state", ["absent", "present", "released"])
def test_pattern_is_rejected_as_a_version_name(tracker: Tracker, state: str) -> None:
    tracker.refused("invalid", "wildcards", project="REL", name="1.*", state=state)


@pytest.mark.parametrize("check", [True, False])
def test_start_date_after_the_existing_release_date_is_rejected(
    tracker: Tracker, check: bool
) -> None:
    tracker.send("PUT", "version/10002", {"releaseDate": "2026-01-02"})
    given = {"name": "1.1.0", "start_date": "2026-01-03", "check": check}
    tracker.refused("rejected", "2026-01-03", "2026-01-02", project="REL", **given)


def test_unknown_project_is_named(tracker: Tracker) -> None:
    tracker.refused("not_found", "the project 'NOPE'", project="NOPE", name="1.0", state="absent")


def test_documented_interface_has_no_versions(fresh: Callable[[str], Sandbox]) -> None:
    tracker = Tracker(fresh("written"), TrackerVersionOperation, TrackerVersionOptions)
    message = "the tracker supports only the documented interface, which has no versions"
    tracker.refused("not_found", message, project="REL", name="1.0")


REFUSED: list[dict[str, Any]] = [
    {"name": "9.0"},
    {"name": "1.1.0", "description": "mine"},
    {"name": "1.1.0", "state": "absent"},
]


@pytest.mark.parametrize("settings", SERVERS.values(), ids=list(SERVERS))
@pytest.mark.parametrize("login", [DEVELOPER, READER], ids=["developer", "reader"])
@pytest.mark.parametrize("options", REFUSED, ids=["create", "update", "delete"])
def test_missing_permission_is_not_an_auth_error(
    tracker: Tracker, settings: dict[str, Any], login: dict[str, str], options: dict[str, Any]
) -> None:
    """Verify that 404, 403 and 401 are all reported as a missing permission [tracker-18]."""
    tracker.sandbox.settings("tracker", **settings)
    before = tracker.get("project/REL/versions")
    error = tracker.refused("permission", project="REL", login=login, **options)
    assert error.result.get("changed", False) is False
    assert tracker.get("project/REL/versions") == before


def test_version_created_concurrently_is_accepted(tracker: Tracker) -> None:
    listing = {"service": "tracker", "path": "/project/REL/versions", "body": "[]", "status": 200}
    tracker.sandbox.fault(**listing)
    done = rel(tracker, "1.1.0", description="ours")
    assert done.values["version"]["description"] == "ours"
    assert shown(tracker, "1.1.0")["description"] == "ours"  # type: ignore[index]


def test_dropped_value_is_reported(tracker: Tracker) -> None:
    response = '{"self": "x", "id": "10002", "name": "1.1.0", "archived": false, "released": false}'
    tracker.sandbox.fault(
        service="tracker", method="PUT", path="/version/", status=200, body=response
    )
    message = "did not save description"
    tracker.refused("rejected", message, project="REL", name="1.1.0", description="kept")


def test_date_that_the_server_keeps_is_reported(tracker: Tracker) -> None:
    rel(tracker, "8.1", release_date="2026-05-31")
    now = shown(tracker, "8.1")
    assert now is not None
    writing = {"service": "tracker", "method": "PUT", "path": "/version/"}
    tracker.sandbox.fault(**writing, status=200, body=json.dumps(now))
    without = {"project": "REL", "name": "8.1", "release_date": "none"}
    tracker.refused("rejected", "did not save release_date", **without)
    tracker.sandbox.fault(**writing, cut=True)
    error = tracker.refused("network", "nothing was changed", **without)
    assert error.result.get("changed") is not True


def test_issues_stay_if_the_version_is_not_released(tracker: Tracker) -> None:
    now = shown(tracker, "1.1.0")
    tracker.sandbox.fault(
        service="tracker", method="PUT", path="/version/", status=200, body=json.dumps(now)
    )
    mark = tracker.sandbox.mark()
    release = {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "2.0.0"}
    tracker.refused("rejected", "did not save release_date, released", **release)
    assert len(tracker.sandbox.requests("tracker", since=mark, writes=True)) == 1


def test_rejected_change_of_a_new_version_does_not_hide_its_creation(tracker: Tracker) -> None:
    """Old servers need a second request for the state of a new version."""
    tracker.sandbox.settings("tracker", version_post_ignores_states=True)
    tracker.sandbox.fault(service="tracker", method="PUT", path="/version/", status=403)
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    given = {"project": "REL", "name": "9.9", "state": "archived"}
    result = in_process.run("tracker_version", {**login, **given})
    assert shown(tracker, "9.9") is not None
    assert (result["failed"], result["changed"]) == (True, True)


def test_rejected_release_does_not_hide_that_issues_were_moved(tracker: Tracker) -> None:
    """Servers without `moveUnfixedIssuesTo` need a second request for the release."""
    tracker.sandbox.fault(**UNKNOWN_MEMBER)
    tracker.sandbox.fault(service="tracker", method="PUT", path="/version/", status=403)
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    given = {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "2.0.0"}
    result = in_process.run("tracker_version", {**login, **given})
    assert unresolved(tracker, "1.1.0") == 0
    assert (result["failed"], result["changed"]) == (True, True)


def test_many_versions_are_compared_with_one_request(tracker: Tracker) -> None:
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    entries: list[dict[str, Any]] = [
        *({"project": "REL", "name": f"9.{number}"} for number in range(5)),
        # its issues move to a version that an earlier entry creates
        {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "9.3"},
    ]
    count = unresolved(tracker, "1.1.0")
    assert count > 0
    given = {**login, "entries": entries}
    mark = tracker.sandbox.mark()
    check = in_process.run("tracker_version", {**given, "_ansible_check_mode": True})
    paths = [one["path"] for one in tracker.sandbox.requests("tracker", since=mark)]
    asked = [path.rpartition("/")[2] for path in paths]
    assert asked == ["versions", "unresolvedIssueCount", "serverInfo", "mypermissions"]
    done = in_process.run("tracker_version", given)
    assert [row["action"] for row in done["results"]] == [*["created"] * 5, "updated"]
    assert [row["changes"] for row in check["results"]] == [
        row["changes"] for row in done["results"]
    ]
    assert (unresolved(tracker, "1.1.0"), unresolved(tracker, "9.3")) == (0, count)
    mark = tracker.sandbox.mark()
    again = in_process.run("tracker_version", given)
    assert (again["changed"], len(tracker.sandbox.requests("tracker", since=mark))) == (False, 1)
    assert [row["name"] for row in again["results"]] == [f"REL/{one['name']}" for one in entries]


def test_issues_do_not_move_to_a_version_whose_creation_failed(tracker: Tracker) -> None:
    tracker.sandbox.fault(service="tracker", method="POST", path="/version", status=403)
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    entries: list[dict[str, Any]] = [
        {"project": "REL", "name": "9.3"},
        {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "9.3"},
        {"project": "REL", "name": "2.0.0", "move_to": "9.4", "state": "absent"},
        {"project": "REL", "name": "9.4"},
    ]
    count = unresolved(tracker, "1.1.0")
    result = in_process.run("tracker_version", {**login, "entries": entries})
    assert "3 of 4 entries failed" in result["msg"]
    assert shown(tracker, "2.0.0") is not None
    assert unresolved(tracker, "1.1.0") == count
    version = shown(tracker, "1.1.0")
    assert version is not None
    assert not version["released"]


def test_issues_move_to_a_version_that_an_earlier_entry_renames(tracker: Tracker) -> None:
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    entries: list[dict[str, Any]] = [
        {"project": "REL", "name": "2.0.0", "new_name": "2.1.0"},
        {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "2.1.0"},
    ]
    before = unresolved(tracker, "2.0.0")
    given = {**login, "entries": entries}
    check = in_process.run("tracker_version", {**given, "_ansible_check_mode": True})
    done = in_process.run("tracker_version", given)
    assert [row["action"] for row in done["results"]] == ["updated", "updated"]
    assert check["results"] == done["results"]
    assert unresolved(tracker, "1.1.0") == 0
    assert unresolved(tracker, "2.1.0") > before


@pytest.mark.parametrize("name", ["1.1.0", " 1.1.0 "])
def test_version_is_listed_once(tracker: Tracker, name: str) -> None:
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    entries = [{"project": "REL", "name": "1.1.0"}, {"project": "REL", "name": name}]
    result = in_process.run("tracker_version", {**login, "entries": entries})
    assert "the same as entries[0]" in result["msg"]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "more", [{"state": "released", "unresolved": "2.0.0"}, {"state": "absent", "move_to": "2.0.0"}]
)
def test_issues_do_not_move_to_a_version_that_an_earlier_entry_deletes(
    tracker: Tracker, more: dict[str, Any], *, check: bool
) -> None:
    login = connections.connection("tracker", tracker.sandbox.urls["tracker"])
    entries: list[dict[str, Any]] = [
        {"project": "REL", "name": "2.0.0", "state": "absent"},
        {"project": "REL", "name": "1.1.0", **more},
    ]
    given = {**login, "entries": entries, "_ansible_check_mode": check}
    result = in_process.run("tracker_version", given)
    assert "the project 'REL' has no version '2.0.0'" in result["msg"]


@pytest.mark.parametrize("state", ["present", "released", "archived"])
def test_missing_version_is_not_created_without_create(tracker: Tracker, state: str) -> None:
    given = {"project": "REL", "name": "9.9", "state": state, "create": False}
    tracker.refused("not_found", "has no version '9.9': check the name, or set create", **given)
    assert shown(tracker, "9.9") is None
    done = tracker(project="REL", name="9.9", state="absent", create=False)
    assert done.changed is False


def test_deletion_without_an_effect_fails(tracker: Tracker) -> None:
    path = "/version/[0-9]+/removeAndSwap$"
    tracker.sandbox.fault(service="tracker", method="POST", path=path, status=204, body="")
    words = "the version 'REL/1.0.0': the server accepted the request, but the object still exists"
    tracker.refused("failed", words, project="REL", name="1.0.0", state="absent")


def test_issue_that_does_not_get_its_new_version_is_reported(tracker: Tracker) -> None:
    tracker.sandbox.settings("tracker", unrecognized=["moveUnfixedIssuesTo"])
    for _number in range(4):
        path = "/issue/REL-[0-9]+$"
        tracker.sandbox.fault(service="tracker", method="PUT", path=path, status=204, body="")
    given = {"project": "REL", "name": "2.0.0", "state": "released", "unresolved": "1.1.0"}
    tracker.refused("rejected", "but did not save fix_versions", **given)


def names(tracker: Tracker) -> dict[str, str]:
    """Return the ids of the versions of REL by name."""
    return {one["name"]: one["id"] for one in tracker.get("project/REL/versions")}


@pytest.mark.parametrize(
    ("entries", "after"),
    [
        (
            [{"name": "2.0.0", "state": "absent"}, {"name": "1.1.0", "new_name": "2.0.0"}],
            {"1.0.0": "1.0.0", "2.0.0": "1.1.0"},
        ),
        (
            [
                {"name": "2.0.0", "state": "absent", "move_to": "1.1.0"},
                {"name": "1.1.0", "new_name": " 2.0.0"},
                # gets the issues of the renamed version, not those of the deleted one
                {"name": "1.0.0", "state": "absent", "move_to": "2.0.0"},
            ],
            {"2.0.0": "1.1.0"},
        ),
        (
            [
                {"name": "2.0.0", "new_name": "3.0.0"},
                {"name": "1.1.0", "new_name": "2.0.0"},
                {"name": "1.0.0", "new_name": "1.1.0"},
            ],
            {"1.1.0": "1.0.0", "2.0.0": "1.1.0", "3.0.0": "2.0.0"},
        ),
        (  # a new version gets a name that an earlier entry frees
            [{"name": "2.0.0", "new_name": "3.0.0"}, {"name": "9.9", "new_name": "2.0.0"}],
            {"1.0.0": "1.0.0", "1.1.0": "1.1.0", "2.0.0": "", "3.0.0": "2.0.0"},
        ),
    ],
    ids=["deleted", "merged", "shifted", "new"],
)
def test_version_gets_a_name_that_an_earlier_entry_frees(
    tracker: Tracker, entries: list[dict[str, Any]], after: dict[str, str]
) -> None:
    before = names(tracker)
    given: dict[str, Any] = {"entries": [{"project": "REL", **entry} for entry in entries]}
    checked, done, again = tracker(**given, check=True), tracker(**given), tracker(**given)
    assert checked.diff == done.diff
    assert (checked.changed, done.changed, again.changed) == (True, True, False)
    found = names(tracker)
    known = set(before.values())
    assert found == {name: before.get(former, found.get(name)) for name, former in after.items()}
    assert [name for name in found if found[name] not in known] == [
        name for name, former in after.items() if not former
    ]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (
            [{"name": "1.1.0", "new_name": " 2.0.0"}, {"name": "2.0.0", "state": "absent"}],
            "the name 'REL/2.0.0' before entries[1] frees it: put entries[1] first",
        ),
        (
            [{"name": "1.1.0", "new_name": "2.0.0"}, {"name": "2.0.0", "new_name": "1.1.0"}],
            "names can only be swapped with a third name",
        ),
        (
            [{"name": "9.9"}, {"name": "1.1.0", "new_name": "9.9"}],
            "entries[0] and entries[1] both give a version the name 'REL/9.9'",
        ),
        (
            [{"name": "1.1.0", "new_name": "x"}, {"name": "X"}],
            "entries[0] and entries[1] both give a version the name 'REL/X'",
        ),
        (
            [{"name": "1.1.0", "new_name": "9.9"}, {"name": "2.0.0", "new_name": "9.9"}],
            "entries[0] and entries[1] both give a version the name 'REL/9.9'",
        ),
        ([{"name": "9.9", "project": "10000"}], "project is '10000': write the key"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_entries_that_contradict_each_other_are_rejected_before_any_request(
    tracker: Tracker, entries: list[dict[str, Any]], words: str, *, check: bool
) -> None:
    given = [{"project": "REL", **entry} for entry in entries]
    tracker.refused("invalid", words, entries=given, check=check)
    assert tracker.sandbox.requests("tracker") == []


@pytest.mark.parametrize("check", [True, False])
def test_issues_that_an_earlier_entry_moves_are_unresolved(tracker: Tracker, check: bool) -> None:
    rel(tracker, "9.0")
    count = unresolved(tracker, "1.1.0")
    entries = [
        {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "9.0"},
        {"project": "REL", "name": "9.0", "state": "released", "unresolved": "fail"},
    ]
    words = f"{count} issues are unresolved in the version '9.0'"
    tracker.refused("failed", words, entries=entries, check=check)
    assert shown(tracker, "9.0")["released"] is False  # type: ignore[index]
