# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that failed tasks keep the findings of what they have compared [C9]."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import in_process
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import task_findings
from tests.helpers.in_process import run
from tests.helpers.reported import reporting
from tests.unit.stub import Reply, Seen, Stub

MISSING = {"kind": "not_found", "status": 404}
ROWS = [
    {"kind": "user", "name": "a", "error": {**MISSING, "msg": "there is no group"}},
    {"kind": "user", "name": "b", "action": "create", "after": {"email": "b@x"}},
    {"kind": "user", "name": "c"},
]


def told(module: str, result: Mapping[str, Any], *, check: bool = False) -> list[str]:
    """Return the findings of a task in a report."""
    read = task_findings.failed if result.get("failed") else task_findings.compared
    found = read(module, result, {}, "the task", check=check)
    return [f"{one['text']} ({one['action']}, {one['status']})" for one in found]


def not_built(monkeypatch: pytest.MonkeyPatch, *errors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a task in check mode whose objects are built in this run."""
    result = {"failed": True, "changed": False, "msg": "2 of 3 failed", "error": errors[0]}
    result |= {"results": [{"error": error} for error in errors], "findings": ROWS}
    monkeypatch.setattr(in_process.Action, "run_module", lambda self, task_vars: result)
    task = SimpleNamespace(check_mode=True, args={}, no_log=False, loop=None)
    action: Any = object.__new__(in_process.Action)
    action.task, action.template = task, lambda value: value
    monkeypatch.setattr(in_process.Action, "_may_run_in_worker", lambda self, task_vars: False)
    return dict(action.run(None, {"toolchain_not_built": True}))


def test_what_is_not_built_yet_differs_like_the_other_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = not_built(monkeypatch, MISSING)
    assert (result["failed"], result["changed"]) == (False, True)
    assert told("repo_user", result) == [
        "user a: differs (update, drift)",
        "user b: missing (create, drift)",
        "user c: as wanted (none, ok)",
    ]


def test_another_error_fails_a_task_whose_object_is_not_built_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = not_built(monkeypatch, MISSING, {"kind": "rejected"})
    assert result["failed"]
    assert result["findings"] == ROWS


def cleanup(*, check: bool, most: int) -> list[str]:
    """Return what a cleanup of two items reports; the server keeps the second."""
    items = [{"repo": "r", "path": "a", "name": name, "type": "file", "size": 1} for name in "12"]
    listed = Reply(body=json.dumps({"results": items, "range": {"total": 2}}))
    deleted = {"/base/r/a/1": Reply(204), "/base/r/a/2": Reply(403)}
    with Stub(response=lambda seen: deleted.get(seen.path, listed)) as server:
        login = {"url": server.url, "retries": 0, "dialect": "jfrog"}
        more = {"_toolchain_findings": True, "_ansible_check_mode": check}
        options = {"rules": [{"repo": "r", "path": "a"}], "max_deletions": most, "parallel": 1}
        result = run("artifact_cleanup", {**login, **more, **options})
    return told("artifact_cleanup", result, check=check)


GOES = "not wanted, rule 1: everything that it matches (delete, drift)"


def test_cleanup_beyond_its_limit_differs_and_fails() -> None:
    """A run that would have written does not call the deletions done."""
    *found, failure = cleanup(check=True, most=1)
    assert found == [f"item r/a/1: {GOES}", f"item r/a/2: {GOES}"]
    assert failure.startswith("task the task: the rules would delete 2 items")
    assert cleanup(check=False, most=1) == [failure]


def test_cleanup_that_fails_in_the_middle_names_both_parts() -> None:
    failed, done = cleanup(check=False, most=2)
    assert failed.startswith("item r/a/2: deleting 'r/a/2'")
    assert "failed)" in failed
    assert done == f"item r/a/1: {GOES}"


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("artifact_copy", {"target_repo": "s"}),
        ("artifact_deploy", {"content": "x"}),
        ("artifact_properties", {"properties": {"x": "2"}}),
    ],
)
def test_written_files_of_a_failed_task_are_findings(module: str, options: dict[str, Any]) -> None:
    rows = [{"repo": "r", "path": "a", "action": "updated", "before": {"x": ["1"]}, "after": {}}]
    values = {"failed": True, "msg": "no", "artifacts": rows}
    found = told(module, reporting(module, values, {"repo": "r", "path": "p", **options}))
    assert found[0].startswith("item r/a: differs")
    assert found[1] == "task the task: no (none, failed)"


def test_written_issues_of_a_failed_task_are_findings() -> None:
    change = {"field": "labels", "before": [], "after": ["x"]}
    rows = [
        {"key": "A-1", "action": "update", "changes": [change]},
        {"key": "A-2", "action": "update", "changes": [], "error": {"kind": "x", "msg": "no"}},
    ]
    values = {"failed": True, "msg": "1 of 2 issues failed", "issues": rows}
    found = told("tracker_issue", reporting("tracker_issue", values, {"jql": "x", "labels": ["x"]}))
    assert found == ["issue A-1: differs in labels (update, drift)", "issue A-2: no (none, failed)"]


INSTALLED = {"version": "1", "enabled": True, "active": True, "deleted": False}
THERE = [{"shortName": "old", **INSTALLED}, {"shortName": "going", **INSTALLED, "deleted": True}]
OFFERS = [{"id": "default", "availables": [{"name": name, "version": "2"} for name in ("a", "b")]}]
WANTED = [{"name": "old", "state": "disabled"}, {"name": "a"}]


def plugins(*wanted: Mapping[str, Any], check: bool, failing: str = "") -> list[str]:
    """Return what a task of `ci_plugin` reports.

    :param failing: plugin whose installation fails
    """
    jobs: list[dict[str, Any]] = []

    def response(seen: Seen) -> Reply:
        if "installPlugins" in seen.path:
            status = {"type": "Failure" if failing else "Success"}
            jobs.append(
                {"id": 1, "type": "InstallationJob", "errorMessage": "no space", "status": status}
            )
            jobs[0]["plugin"] = {"name": "a", "version": "2"}
        if "updateCenter" in seen.path:
            body = {"sites": OFFERS} if "sites" in seen.target else {"jobs": jobs}
            return Reply(body=body)
        if "pluginManager/api" in seen.path:
            off = any("makeDisabled" in one.path for one in server.seen)
            there = [{**one, "enabled": not off or one["shortName"] != "old"} for one in THERE]
            return Reply(body={"plugins": there})
        return Reply(404) if "crumb" in seen.path else Reply(body={"status": "ok"})

    with Stub(response=response) as server:
        login = {"url": server.url, "retries": 0, "username": "builder", "password": "a-password"}
        more = {"_toolchain_findings": True, "_ansible_check_mode": check}
        result = run("ci_plugin", {**login, **more, "plugins": [*WANTED, *wanted]})
    return told("ci_plugin", result, check=check)


DISABLED = "plugin old: enabled, but should be disabled (update, drift)"
LACKING = "task the task: the update site of the server lacks plugins: unknown is unknown"


def test_plugins_that_cannot_be_installed_do_not_hide_the_others() -> None:
    *found, failure = plugins({"name": "unknown"}, check=True)
    assert found[:2] == [DISABLED, "plugin a: missing (create, drift)"]
    assert failure.startswith(LACKING)
    (failure,) = plugins({"name": "unknown"}, check=False)
    assert failure.startswith(LACKING)


def test_plugin_that_cannot_be_compared_does_not_hide_the_others() -> None:
    found = plugins({"name": "going"}, check=True)
    restart = "plugin going: the plugin going is marked for removal: restart the server first"
    assert found == [DISABLED, "plugin a: missing (create, drift)", f"{restart} (none, failed)"]


def test_plugin_whose_installation_fails_does_not_hide_the_others() -> None:
    found = plugins(check=False, failing="a")
    assert found[0] == DISABLED
    assert found[1].startswith("plugin a: 1 plugin installations failed: a: no space")
    assert "failed)" in found[1]
    assert found[2:] == []
