# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the actors of project roles, on servers and in the cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_project_role import (
    TrackerProjectRoleOperation,
    TrackerProjectRoleOptions,
)
from sandbox.client import Sandbox
from tests.helpers.tracker import DEVELOPER, Done, Tracker


@pytest.fixture
def tracker(fresh: Callable[[str], Sandbox]) -> Iterator[Tracker]:
    sandbox = fresh("real")
    yield Tracker(sandbox, TrackerProjectRoleOperation, TrackerProjectRoleOptions)
    sandbox.clear_faults()


def rel(tracker: Tracker, role: str, **options: Any) -> Done:
    """Run in check mode, then for real, then again."""
    predicted = tracker(project="REL", role=role, check=True, **options)
    done = tracker(project="REL", role=role, **options)
    assert predicted.diff == done.diff
    assert predicted.values == done.values
    assert not tracker(project="REL", role=role, **options).changed
    return done


@pytest.mark.parametrize("cloud", [False, True])
def test_actors_are_set_added_and_removed(tracker: Tracker, *, cloud: bool) -> None:
    before = "account-" if cloud else ""
    if cloud:
        tracker.sandbox.settings("tracker", deployment="Cloud")
    users = ["Boris Beispiel" if cloud else "BORIS", "chloé" if not cloud else "account-chloé"]
    done = rel(tracker, "developers", users=users)
    assert len(done.writes) == 1
    assert done.values["role"] == {
        "name": "Developers",
        "users": [f"{before}boris", f"{before}chloé"],
        "groups": ["developers"],
    }
    more = [f"{before}alice"]
    done = rel(tracker, "Developers", users=more, groups=["administrators"], mode="add")
    assert len(done.writes) == 2
    assert done.values["role"]["groups"] == ["administrators", "developers"]
    gone = {"users": [f"{before}boris", "nobody"], "groups": ["developers"], "mode": "remove"}
    done = rel(tracker, "Developers", **gone)
    assert done.values["role"] == {
        "name": "Developers",
        "users": [f"{before}alice", f"{before}chloé"],
        "groups": ["administrators"],
    }
    assert rel(tracker, "Developers", users=[], groups=[]).values["role"]["users"] == []


def test_own_account_stays_administrator(tracker: Tracker) -> None:
    for check in (True, False):
        lost = {"project": "REL", "role": "administrators", "users": ["alice"], "check": check}
        tracker.refused("invalid", "task's account reporter would", **lost)
    # the own account is in the group
    done = rel(tracker, "Administrators", users=["alice"], groups=["administrators"])
    assert done.changed
    tracker.refused(
        "invalid",
        "set force",
        project="REL",
        role="Administrators",
        groups=["administrators"],
        mode="remove",
    )
    assert rel(tracker, "Administrators", groups=[], force=True).changed


def test_missing_objects_are_named(tracker: Tracker) -> None:
    for check in (True, False):
        tracker.refused(
            "not_found", "'Users', 'Dev", project="REL", role="Guests", users=[], check=check
        )
        tracker.refused(
            "not_found",
            "users: there is no such account",
            project="REL",
            role="Users",
            users=["nobody"],
            check=check,
        )
    tracker.refused("not_found", "NONE", project="NONE", role="Users", users=[])
    unknown = {"project": "REL", "role": "Users", "groups": ["nobody"]}
    for check in (True, False):
        tracker.refused("not_found", "there is no group 'nobody'", **unknown, check=check)
    # an account that may not browse groups does not know which groups exist
    users = {"limited": {"password": "limited", "permissions": {"REL": ["browse", "administer"]}}}
    known = {"users": users, "tokens": {"limited-token": "limited"}}
    people = {"limited": {"displayName": "Limited"}}
    tracker.sandbox.seed({"tracker": {"credentials": known, "users": people}})
    login = {"token": "limited-token"}
    assert tracker(**unknown, check=True, login=login).changed
    tracker.refused("not_found", "directory", **unknown, login=login)
    tracker.refused("invalid", "users or groups is missing", project="REL", role="Users")
    tracker.refused("permission", project="REL", role="Users", users=[], login=DEVELOPER)


def test_entries_take_a_list_per_project_and_a_read_per_role(tracker: Tracker) -> None:
    entries = [
        {"project": "REL", "role": "Developers", "users": ["boris"]},
        {"project": "REL", "role": "Users", "groups": ["developers"], "mode": "add"},
    ]
    done = tracker(entries=entries)
    assert [result["action"] for result in done.values["results"]] == ["updated", "updated"]
    again = tracker(entries=entries)
    assert not again.changed
    assert len(again.requests) <= 3
    with pytest.raises(AssertionError, match="one of the following is required: project, entries"):
        tracker(role="x", users=[])
