# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the life of Maven snapshots on a sandbox: deploying, publishing, promoting, deleting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, in_process

Fresh = Callable[[str], Sandbox]
Modules = Callable[..., dict[str, Any]]

ADMIN = "repo-admin-token-1234567890"
FOLDER = "g/app/1.2-SNAPSHOT"


@pytest.fixture
def run(fresh: Fresh) -> Modules:
    """Return a function that runs a module on a server with Maven repositories."""
    sandbox = fresh("real")
    login = connections.connection("repo", sandbox.urls["repo"], dialect="jfrog", token=ADMIN)

    def call(name: str, *, check: bool = False, **given: Any) -> dict[str, Any]:
        return in_process.run(name, {**login, **given, "_ansible_check_mode": check})

    for key in ("snapshots", "releases"):
        call("repo_repository", key=key, rclass="local", package_type="maven")
    return call


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder as Maven's local repository has it."""
    ends = (".jar", ".pom", ".jar.sha1", "-sources.jar", ".jar.asc")
    for name in (*(f"app-1.2-SNAPSHOT{end}" for end in ends), "maven-metadata.xml"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_snapshots_from_the_build_to_the_cleanup(run: Modules, source: Path) -> None:
    given = {"repo": "snapshots", "path": f"{FOLDER}/", "src": f"{source}/", "parallel": 1}
    first = run("artifact_deploy", **given, properties={"team": "a"})
    paths = [artifact["path"] for artifact in first["artifacts"]]
    assert len(paths) == 4
    assert all("SNAPSHOT" not in path.rpartition("/")[2] for path in paths)
    again = run("artifact_deploy", **given, properties={"team": "a"})
    assert (again["changed"], [file["path"] for file in again["artifacts"]]) == (False, paths)

    build = {"build_name": "app", "build_number": "1", "artifacts": first["artifacts"]}
    assert run("build_publish", **build)["changed"]
    assert not run("build_publish", **build)["changed"]
    literal = [{"repo": "snapshots", "path": f"{FOLDER}/app-1.2-SNAPSHOT.jar"}]
    other = run("build_publish", build_name="app", build_number="2", artifacts=literal)
    assert other["build"]["modules"][0]["artifacts"][0]["path"] in paths

    (source / "app-1.2-SNAPSHOT.jar").write_text("new")
    second = run("artifact_deploy", **given)
    new = [file["path"] for file in second["artifacts"] if file["action"] != "unchanged"]
    assert len(new) == 1

    rules = [{"repo": "snapshots", "path": "g/**", "keep_last": 1}]
    # the newest POM is still in use
    assert not run("artifact_cleanup", rules=rules)["changed"]
    for path in source.iterdir():
        path.write_text(f"new {path.name}")
    run("artifact_deploy", **given)
    gone = {
        item["path"] for item in run("artifact_cleanup", rules=rules, max_deletions=2)["deleted"]
    }
    assert {*paths, *new} <= gone
    assert not run("artifact_cleanup", rules=rules)["changed"]
