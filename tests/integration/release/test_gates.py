# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a release waits at its gates, and writes nothing before [C7]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.integration.release.test_release import Fresh, Release, environment_of, release

BUILD = {"build_name": "app", "build_number": "1"}
SOAK = {"status": "staged", "for": "2h"}
RELEASED = {**BUILD, "status": "released", "soak": SOAK}
IMAGE = {
    "repo": "docker-staging-local",
    "target_repo": "docker-release-local",
    "image": "team/app",
    "tag": "1",
    "soak": SOAK,
}
BUNDLE = {
    "name": "app",
    "version": "1",
    "environment": "PROD",
    "soak": {"environment": "QA", "for": "2h"},
}


def _ago(age: timedelta) -> datetime:
    return datetime.now(timezone.utc) - age


def _seed(sandbox: Sandbox, age: timedelta) -> None:
    """Make a build, an image of it and a bundle that came into their stage at this age."""
    staged = _ago(age)
    statuses = [{"status": "staged", "timestamp": f"{staged:%Y-%m-%dT%H:%M:%S}.000+0000"}]
    image = {"repo": IMAGE["repo"], "image": IMAGE["image"], "tag": "1", "content": "{}"}
    marks = {"build.name": ["app"], "build.number": ["1"]}
    entered = {"environment": "QA", "created": int(staged.timestamp() * 1000)}
    sandbox.seed(
        {
            "repo": {
                "builds": [{"name": "app", "number": "1", "statuses": statuses}],
                "images": [{**image, "properties": marks}],
                "bundles": [{"name": "app", "version": "1", "promotions": [entered]}],
            }
        }
    )


def _variables(folder: Path, **given: Any) -> dict[str, Any]:
    file = folder / "app.txt"
    file.write_text("the application", encoding="utf-8")
    files = [{"src": str(file), "path": "app/1.0/"}]
    return {"release_repo": "generic-staging-local", "release_files": files, **given}


def _run(sandbox: Sandbox, folder: Path, variables: Mapping[str, Any], *more: str) -> Release:
    shown = {**environment_of(sandbox.urls), "ANSIBLE_SHOW_CUSTOM_STATS": "1"}
    return release(folder, variables, *more, environment=shown)


def _waiting(done: Release) -> Any:
    """Return the artifact of a job in AWX."""
    found = re.search(r"RUN: (\{.*\})", done.output)
    return json.loads(found[1])["waiting"] if found else None


@pytest.mark.parametrize(
    "given",
    [
        {"release_builds": [RELEASED]},
        {"release_images": [IMAGE]},
        {"release_bundles": [BUNDLE]},
        {"release_builds": [RELEASED], "release_again": True},
        {"release_hold": [{"jql": "project = REL", "reason": "REL is not done"}]},
        {"release_freeze": [{"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}]},
    ],
    ids=["build", "image", "bundle", "again", "hold", "freeze"],
)
def test_release_waits_and_writes_nothing(
    fresh: Fresh, tmp_path: Path, given: dict[str, Any]
) -> None:
    sandbox = fresh("real")
    _seed(sandbox, timedelta(hours=1))
    variables = _variables(tmp_path, **given)
    mark, found = sandbox.mark(), []
    for arguments in ((), ("--check",)):
        done = _run(sandbox, tmp_path, variables, *arguments)
        assert done.code == 2, done.output
        found.append(_waiting(done))
    assert sandbox.requests(writes=True, since=mark) == []
    assert found[0] == found[1]
    assert set(found[0]) == {"reason", "until"}


def test_release_passes_its_gates_once(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _seed(sandbox, timedelta(hours=3))
    over = {"from": "2020-01-01T00:00:00Z", "to": "2021-01-01T00:00:00Z"}
    now = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
    variables = _variables(
        tmp_path,
        release_builds=[RELEASED],
        release_images=[IMAGE],
        release_bundles=[BUNDLE],
        release_hold='project = REL AND summary ~ "nowhere"',
        release_freeze=[over, {**now, "except": ["app", "team/app"]}],
    )
    predicted = _run(sandbox, tmp_path, variables, "--check")
    done = _run(sandbox, tmp_path, variables)
    assert (predicted.code, done.code) == (0, 0), predicted.output + done.output
    assert predicted.counts["changed"] == done.counts["changed"] == 4
    assert _waiting(done) is None
    mark = sandbox.mark()
    again = _run(sandbox, tmp_path, variables)
    assert (again.code, again.counts["changed"]) == (0, 0), again.output
    assert sandbox.requests(writes=True, since=mark) == []


def test_entry_waits_for_an_earlier_entry_of_the_run(fresh: Fresh, tmp_path: Path) -> None:
    """What follows the closed gate is not promoted. Check mode says the same."""
    sandbox = fresh("real")
    _seed(sandbox, timedelta(hours=3))
    staged, sold = ({**BUILD, "status": status} for status in ("staged again", "sold"))
    gated = {**RELEASED, "soak": {"status": "staged again", "for": "2h"}}
    variables = _variables(tmp_path, release_builds=[staged, gated, sold])
    predicted = _run(sandbox, tmp_path, variables, "--check")
    mark = sandbox.mark()
    done = _run(sandbox, tmp_path, variables)
    for each in (predicted, done):
        assert each.code == 2, each.output
        assert "must stay in 'staged again' for 2h" in _waiting(each)["reason"]
        assert "sold" not in json.dumps(_waiting(each))
    writes = sandbox.requests(writes=True, since=mark)
    assert [write for write in writes if "promote" in str(write)] == [
        write for write in writes if "/api/build/promote/" in str(write)
    ]
    assert len([write for write in writes if "promote" in str(write)]) == 1


def test_failure_is_not_taken_for_a_wait(fresh: Fresh, tmp_path: Path) -> None:
    """A job of a workflow has waited before, and its artifact is a variable of this one."""
    sandbox = fresh("real")
    before = {"reason": "it waited", "until": None}
    mark = sandbox.mark()
    for given in (
        {"release_hold": "project = NOWHERE"},
        {"release_hold": ["project = REL AND"]},
        {"release_builds": [{**BUILD, "build_number": "2", "status": "released", "soak": SOAK}]},
        {"release_freeze": [{"from": "2020-01-01", "to": "2100-01-01"}]},
        {"release_hold": ""},
    ):
        done = _run(sandbox, tmp_path, {**_variables(tmp_path, **given), "waiting": before})
        assert done.code == 2, done.output
        assert _waiting(done) == {}
    assert sandbox.requests(writes=True, since=mark) == []


def test_role_promotes_nothing_before_all_may_come(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _seed(sandbox, timedelta(hours=1))
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    role = {
        "ansible.builtin.include_role": {"name": "delivery.toolchain.release_promote"},
        "vars": {
            "release_promote_builds": [
                {"build_name": "agent", "build_number": "12", "status": "tried"},
                RELEASED,
            ]
        },
    }
    mark = sandbox.mark()
    done = playbook.run(tmp_path, [playbook.play([role], module_defaults=defaults)])
    assert done.code == 2, done.output
    assert sandbox.requests(writes=True, since=mark) == []
    errors = [
        item["error"]["kind"]
        for event in done.events
        for item in event.result.get("results", ())
        if item.get("failed")
    ]
    assert errors == ["waiting"]
