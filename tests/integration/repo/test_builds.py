# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the life of build records with the modules on a sandbox: from the files to their promotion."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]
Modules = Callable[..., dict[str, Any]]

STAGING, RELEASE = "generic-staging-local", "generic-release-local"


@pytest.fixture
def run(fresh: Fresh) -> Modules:
    """Return a function that runs a module and returns its result."""
    sandbox = fresh("real")
    login = connections.connection("repo", sandbox.urls["repo"], dialect="jfrog")

    def call(name: str, *, check: bool = False, **given: Any) -> dict[str, Any]:
        return in_process.run(name, {**login, **given, "_ansible_check_mode": check})

    return call


def publish(run: Modules, build: str, **contents: str) -> None:
    """Deploy files and publish their build record; `_` in a name is a slash."""
    name, _slash, number = build.rpartition("/")
    files = [
        run("artifact_deploy", repo=STAGING, path=path.replace("_", "/"), content=content)
        for path, content in contents.items()
    ]
    artifacts = [artifact for file in files for artifact in file["artifacts"]]
    given = {"build_name": name, "build_number": number, "artifacts": artifacts}
    assert run("build_publish", **given)["changed"]


def promote(run: Modules, build: str, **given: Any) -> dict[str, Any]:
    name, _slash, number = build.rpartition("/")
    wanted = {"build_name": name, "build_number": number, "status": "released"}
    return run("build_promote", **wanted, target_repo=RELEASE, **given)


def warnings(result: dict[str, Any]) -> str:
    return " ".join(map(str, result.get("warnings", [])))


@pytest.mark.parametrize("check", [True, False])
def test_one_of_two_equal_files_is_promoted_again(run: Modules, check: bool) -> None:
    publish(run, "equal/1", a_empty="same", b_empty="same")
    assert promote(run, "equal/1")["changed"]
    assert not promote(run, "equal/1")["changed"]
    run("artifact_deploy", repo=RELEASE, path="b/empty", state="absent")
    again = promote(run, "equal/1", check=check)
    assert (again["changed"], again["missing_files"]) == (True, ["b/empty"])
    assert "lacks b/empty" in warnings(again)
    assert promote(run, "equal/1")["changed"] is check


def test_equal_files_are_downloaded_or_missed(run: Modules, tmp_path: Path) -> None:
    publish(run, "equal/1", a_empty="same", b_empty="same")
    given = {"build_name": "equal", "build_number": "1", "dest": f"{tmp_path}/"}
    assert len(run("artifact_download", **given)["files"]) == 2
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("empty")) == [
        "a/empty",
        "b/empty",
    ]
    run("artifact_deploy", repo=STAGING, path="b/empty", state="absent")
    missed = run("artifact_download", **given)
    assert (missed["failed"], missed["error"]["kind"]) == (True, "not_found")
    assert "b/empty" in missed["msg"]


def test_equal_files_are_two_files_of_a_record(run: Modules) -> None:
    publish(run, "equal/1", a_empty="same")
    file = run("artifact_deploy", repo=STAGING, path="b/empty", content="same")["artifacts"]
    given = {"build_name": "equal", "build_number": "1", "artifacts": file}
    refused = run("build_publish", **given)
    assert refused["error"]["kind"] == "conflict"
    assert "lacks: artifacts b/empty" in refused["msg"]
    assert run("build_publish", replace=True, **given)["changed"]
    assert not run("build_publish", **given)["changed"]


def test_replaced_file_of_a_promoted_build_is_named(run: Modules) -> None:
    publish(run, "team/app/7", app_1="one", app_2="two")
    given = {"repo": STAGING, "path": "app/1", "content": "other"}
    before = run("artifact_deploy", check=True, **given)
    assert (before["changed"], warnings(before)) == (True, "")
    promote(run, "team/app/7")
    same = run("artifact_deploy", repo=STAGING, path="app/1", content="one")
    assert (same["changed"], warnings(same)) == (False, "")
    for check in (True, False):
        replaced = run("artifact_deploy", check=check, **given)
        assert replaced["changed"]
        assert f"'{STAGING}/app/1' (build team/app/7)" in warnings(replaced)
    # the promoted copy belongs to the build too
    copy = run("artifact_deploy", repo=RELEASE, path="app/2", content="other")
    assert f"'{RELEASE}/app/2' (build team/app/7)" in warnings(copy)


def test_replaced_files_of_a_folder_take_one_query(run: Modules, tmp_path: Path) -> None:
    publish(run, "app/7", app_1="one", app_2="two", app_3="three")
    promote(run, "app/7")
    for name, content in {"1": "other", "2": "another", "3": "three", "4": "new"}.items():
        (tmp_path / name).write_text(content)
    replaced = run("artifact_deploy", repo=STAGING, path="app/", src=f"{tmp_path}/")
    assert replaced["changed"]
    text = warnings(replaced)
    assert "replaces files of promoted builds" in text
    assert ("app/1' (build app/7)" in text, "app/2' (build app/7)" in text) == (True, True)
    assert "app/3" not in text


def test_aggregated_build_is_promoted_by_its_references(run: Modules, tmp_path: Path) -> None:
    publish(run, "team/lib/2", lib_1="lib")
    publish(run, "app/7", app_1="app")
    modules = [{"id": "team/lib/2", "type": "build"}, {"id": "app/7", "type": "build"}]
    record = {"build_name": "all", "build_number": "1", "modules": modules}
    assert run("build_publish", **record)["changed"]
    assert not run("build_publish", **record)["changed"]
    for check in (True, False):
        refused = promote(run, "all/1", check=check)
        assert refused["error"]["kind"] == "conflict"
        assert "team/lib/2, app/7" in refused["msg"]
    done = promote(run, "all/1", aggregated="follow")
    assert [build["changed"] for build in done["aggregated"]] == [True, True]
    assert promote(run, "all/1", aggregated="follow")["changed"] is False
    given = {"build_name": "all", "build_number": "1", "repo": RELEASE, "dest": f"{tmp_path}/"}
    assert run("artifact_download", **given)["error"]["kind"] == "conflict"
    fetched = run("artifact_download", aggregated="follow", **given)
    assert sorted(file["path"] for file in fetched["files"]) == ["app/1", "lib/1"]


def test_role_promotes_aggregated_builds(fresh: Fresh, run: Modules, tmp_path: Path) -> None:
    sandbox = fresh("real")
    publish(run, "app/7", app_1="app")
    record = {
        "build_name": "all",
        "build_number": "1",
        "modules": [{"id": "app/7", "type": "build"}],
    }
    assert run("build_publish", **record)["changed"]
    entry = {
        "build_name": "all",
        "build_number": "1",
        "target_repo": RELEASE,
        "aggregated": "follow",
    }
    builds = [{**entry, "status": status} for status in ("tested", "released")]
    role = {"name": "delivery.toolchain.release_promote"}
    task = {"name": "Promote", "ansible.builtin.include_role": role}
    login = {
        f"toolchain_repo_{name}": value
        for name, value in connections.connection("repo", sandbox.urls["repo"]).items()
    }
    play = playbook.play([task], vars={**login, "release_promote_builds": builds})
    for changed in (True, False):
        done = playbook.run(tmp_path, [play])
        assert done.code == 0, done.output
        assert any(event.result.get("changed") for event in done.events) is changed
    info = run("build_info", build_name="app", build_number="7")["build"]
    assert [entry["status"] for entry in info["statuses"]] == ["tested", "released"]


def test_published_record_has_no_secrets(run: Modules) -> None:
    publish(run, "kept/1", a="x")
    canary = "canary-12345"
    values = {
        "DB_PASS": canary,
        "dsn": f"Server=db;Password={canary};Encrypt=true",
        "kept": "git",
    }
    (artifact,) = run("artifact_deploy", repo=STAGING, path="a", content="x")["artifacts"]
    given = {
        "build_name": "app",
        "build_number": "1",
        "modules": [{"id": "app", "artifacts": [artifact], "properties": values}],
        "vcs": [{"url": "ssh://git@host/group/git-tools.git", "message": "Use git"}],
        "environment": values,
        "properties": values,
    }
    published = run("build_publish", **given)
    assert published["changed"]
    assert len(published["withheld"]) == 6
    assert "6 values are left out" in warnings(published)
    stored = run("build_info", build_name="app", build_number="1")["build"]
    assert canary not in json.dumps([published, stored])
    assert stored["properties"]["kept"] == "git"
    assert stored["vcs"] == [{"url": "ssh://host/group/git-tools.git", "message": "Use git"}]
    assert not run("build_publish", **given)["changed"]
