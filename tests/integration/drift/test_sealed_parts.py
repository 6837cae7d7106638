# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a module with several changes writes only the changes of a sealed plan, in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, in_process

Fresh = Callable[[str], Sandbox]
SALT = {"salt": "salt"}
ADMIN = {"repo": {"token": "repo-admin-token-1234567890", "dialect": "jfrog"}}


class Sealed:
    """A module on a sandbox, planned by `drift` and written by `enforce`."""

    def __init__(
        self, sandbox: Sandbox, service: str, module: str, given: Mapping[str, Any]
    ) -> None:
        self._sandbox, self._service, self._module = sandbox, service, module
        more = ADMIN.get(service, {})
        login = connections.connection(service, sandbox.urls[service], **more)
        self._given = {**login, **given}
        self._writes: list[str] = []

    def __call__(self, sealed: Mapping[str, Any], *, check: bool = False) -> dict[str, Any]:
        mark = self._sandbox.mark()
        internal = {"_ansible_check_mode": check, "_toolchain_sealed": {**SALT, **sealed}}
        result = in_process.run(self._module, {**self._given, **internal})
        log = self._sandbox.requests(self._service, writes=True, since=mark)
        self.writes = [f"{each['method']} {each['path']}" for each in log]
        return result

    def drift(self) -> list[str]:
        """Return the digests of what differs now."""
        result = self({}, check=True)
        assert not result.get("failed"), result
        found = flat(result["findings"])
        assert len(found) == len(set(found))
        return found

    def enforce(self, plan: Sequence[str], rest: str = "fail") -> dict[str, Any]:
        return self({"writes": list(plan), "rest": rest})

    def refused(self, plan: Sequence[str]) -> str:
        """Return the message of a conflict, and verify that nothing was written."""
        result = self.enforce(plan)
        assert result.get("failed"), result
        assert (result["error"]["kind"], self.writes) == ("conflict", [])
        return str(result["msg"])


def flat(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the digests of all objects."""
    return [digest for each in objects for digest in each.get("digests", [])]


def publish(sandbox: Sandbox, name: str, number: str, started: str) -> None:
    login = connections.connection("repo", sandbox.urls["repo"], dialect="jfrog")
    files = [{"repo": "generic-snapshot-local", "path": "agent/1.0.0/agent.txt"}]
    given = {"build_name": name, "build_number": number, "started": started, "artifacts": files}
    assert in_process.run("build_publish", {**login, **given})["changed"]


RETENTION = {"build_name": "nightly", "count": 2}


def test_build_missing_in_the_plan_is_kept(fresh: Fresh) -> None:
    sandbox = fresh("real")
    retention = Sealed(sandbox, "repo", "build_retention", RETENTION)
    plan = retention.drift()
    assert len(plan) == 2
    publish(sandbox, "nightly", "105", "2026-06-01T00:00:00.000+0000")
    assert "the change of nightly/103 is not in the sealed plan" in retention.refused(plan)
    result = retention.enforce(plan, "skip")
    assert (result["discarded"], result["kept"]) == (["102", "101"], ["105", "104", "103"])
    assert result["plan_skipped"] == ["nightly/103"]
    assert retention.enforce(plan, "skip")["changed"] is False


def test_build_published_during_the_write_displaces_no_other(fresh: Fresh) -> None:
    sandbox = fresh("real")
    retention = Sealed(sandbox, "repo", "build_retention", RETENTION)
    retention.enforce(retention.drift())
    body = sandbox.requests("repo", writes=True)[-1]["body"]
    assert '"buildNumbersNotToBeDiscarded": ["103", "104"]' in body


def test_artifacts_are_deleted_with_builds_only_if_planned(fresh: Fresh) -> None:
    sandbox = fresh("real")
    plan = Sealed(sandbox, "repo", "build_retention", RETENTION).drift()
    given = {**RETENTION, "delete_artifacts": True}
    assert Sealed(sandbox, "repo", "build_retention", given).refused(plan)


def discard(sandbox: Sandbox, path: str) -> None:
    """Move a file to the trash."""
    rule = {"repo": REPO, "name": path.rpartition("/")[2]}
    cleanup = Sealed(sandbox, "repo", "artifact_cleanup", {"rules": [rule]})
    assert cleanup.enforce(cleanup.drift())["deleted"]


def test_parts_of_an_image_stay_if_it_was_pushed_again(fresh: Fresh) -> None:
    """Verify that a part in the plan is not deleted if its index is not in the plan anymore."""
    sandbox = fresh("real")
    child = json.dumps({"label": "child"})
    digest = f"sha256:{hashlib.sha256(child.encode()).hexdigest()}"

    def push(tag: str, content: str) -> None:
        image = {"repo": "docker-staging-local", "image": "app", "tag": tag, "content": content}
        sandbox.seed({"repo": {"images": [image]}})

    def push_index(label: str) -> None:
        kind = "application/vnd.oci.image.index.v1+json"
        index = {"mediaType": kind, "manifests": [{"digest": digest}], "label": label}
        push("1.0", json.dumps(index))

    push(digest, child)
    push_index("old")
    rule = {"repo": "docker-staging-local", "keep_last_by": "image", "name": "1.*"}
    cleanup = Sealed(sandbox, "repo", "artifact_cleanup", {"rules": [rule]})
    plan = cleanup.drift()
    assert len(plan) == 2
    push_index("new, and longer")
    assert "the change of docker-staging-local/app/1.0" in cleanup.refused(plan)
    result = cleanup.enforce(plan, "skip")
    assert (result["deleted"], cleanup.writes) == ([], [])
    assert len(result["plan_skipped"]) == 2
    result = cleanup.enforce(cleanup.drift())
    assert [entry["path"] for entry in result["deleted"]] == ["app/1.0", f"app/{digest}"]


REPO = "generic-snapshot-local"
STATES: dict[str, dict[str, Any]] = {
    "empty": {"state": "empty"},
    "repository": {"state": "clean", "repo": REPO, "force": True},
    "folder": {"state": "clean", "repo": REPO, "path": "nightly/agent"},
    "item": {"state": "clean", "repo": REPO, "path": "nightly/agent/0.txt"},
}


@pytest.mark.parametrize("state", STATES)
def test_only_planned_items_are_removed_from_the_trash(fresh: Fresh, state: str) -> None:
    """Verify that a file stays which an earlier task of the run has moved to the trash."""
    sandbox = fresh("real")
    trash = Sealed(sandbox, "repo", "artifact_trash", STATES[state])
    plan = trash.drift()
    assert len(plan) == 1
    discard(sandbox, "nightly/agent/1.txt")
    result = trash.enforce(plan)
    assert (result["changed"], result["children"]) == (True, [REPO])
    new = [] if state == "item" else [f"{REPO}/nightly/agent/1.txt"]
    assert result.get("plan_skipped", []) == new
    assert trash.writes == [f"DELETE /api/trash/clean/{REPO}/nightly/agent/0.txt"]
    assert trash.enforce(plan)["changed"] is False
    assert len(trash.drift()) == len(new)
    if new:
        assert trash.enforce(trash.drift())["children"] == []


def test_items_of_a_repository_belong_to_its_finding(fresh: Fresh) -> None:
    sandbox = fresh("real")
    discard(sandbox, "nightly/agent/1.txt")
    trash = Sealed(sandbox, "repo", "artifact_trash", STATES["empty"])
    (one,) = trash({}, check=True)["findings"]
    assert (one["name"], len(one["digests"])) == (REPO, 2)


FILES = {
    "index.md": "# Guidebook\n\nRead it.\n",
    "a/index.md": "# Chapter A\n",
    "a/one.md": "# One\n",
    "b.md": "# Chapter B\n",
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def tree(sandbox: Sandbox, folder: Path, files: Mapping[str, str], **more: Any) -> Sealed:
    write(folder, files)
    given = {"src": str(folder), "space": "REL", "parent_id": "1003", "prune": True}
    return Sealed(sandbox, "wiki", "wiki_tree", {**given, **more})


def actions(result: Mapping[str, Any]) -> dict[str, str]:
    return {each["path"]: each["action"] for each in result["pages"]}


def test_pages_of_a_tree_are_approved_individually(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    pages = tree(sandbox, tmp_path, FILES)
    plan = pages.drift()
    assert len(plan) == 4
    write(tmp_path, {"b.md": "# Chapter B\n\nwith more\n"})
    assert "the change of REL/Chapter B is not in the sealed plan" in pages.refused(plan)
    result = pages.enforce(plan, "skip")
    created = dict.fromkeys(("index.md", "a/index.md", "a/one.md"), "created")
    assert (actions(result), result["plan_skipped"]) == (created, ["REL/Chapter B"])
    assert pages.drift() != plan[3:]
    assert actions(pages.enforce(pages.drift()))["b.md"] == "created"
    assert pages.drift() == []


def test_page_is_omitted_with_its_dependents(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    pages = tree(sandbox, tmp_path, FILES)
    plan = pages.drift()
    write(tmp_path, {"a/index.md": "# Chapter A\n\nchanged\n"})
    result = pages.enforce(plan, "skip")
    assert result["plan_skipped"] == ["REL/Chapter A", "REL/One"]
    assert actions(result) == {"index.md": "created", "b.md": "created"}
    write(tmp_path, {"index.md": "# Guidebook\n\nRead all of it.\n"})
    result = pages.enforce(plan, "skip")
    assert result["changed"] is False
    assert result["plan_skipped"] == ["REL/Guidebook", "REL/Chapter A", "REL/One"]


def test_omitted_root_page_omits_the_tree(fresh: Fresh, tmp_path: Path) -> None:
    pages = tree(fresh("real"), tmp_path, FILES)
    plan = pages.drift()
    write(tmp_path, {"index.md": "# Guidebook\n\nRead all of it.\n"})
    assert len(pages.enforce(plan, "skip")["plan_skipped"]) == 4
    assert pages.writes == []


def test_page_above_a_kept_page_is_not_deleted(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    pages = tree(sandbox, tmp_path, FILES)
    pages.enforce(pages.drift())
    (tmp_path / "a/one.md").rename(tmp_path / "one.md")
    (tmp_path / "a/index.md").unlink()
    (tmp_path / "a").rmdir()
    plan = pages.drift()
    assert len(plan) == 2
    write(tmp_path, {"one.md": "# One\n\nchanged\n"})
    result = pages.enforce(plan, "skip")
    assert (result["changed"], result["plan_skipped"]) == (False, ["REL/One", "REL/Chapter A"])
    result = pages.enforce(pages.drift())
    assert actions(result) | {"index.md": ""} == {
        "index.md": "",
        "b.md": "unchanged",
        "one.md": "moved",
        "a/index.md": "deleted",
    }


def test_title_is_taken_only_when_free(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    pages = tree(sandbox, tmp_path, FILES)
    pages.enforce(pages.drift())
    write(tmp_path, {"b.md": "# Chapter C\n", "a/one.md": "# Chapter B\n"})
    plan = pages.drift()
    write(tmp_path, {"b.md": "# Chapter C\n\nchanged\n"})
    result = pages.enforce(plan, "skip")
    assert result["changed"] is False
    assert sorted(result["plan_skipped"]) == ["REL/Chapter B", "REL/Chapter C"]


def test_objects_of_a_configuration_require_their_dependencies(fresh: Fresh) -> None:
    sandbox = fresh("real")
    given: dict[str, Any] = {
        "users": [{"name": "eve", "password": "a-password-1234567890"}],
        "groups": [{"name": "quality", "users": ["eve"]}],
    }
    old = Sealed(sandbox, "analysis", "analysis_config", given)
    plan = old.drift()
    users = [{"name": "eve", "password": "another-password-1234567890"}]
    new = Sealed(sandbox, "analysis", "analysis_config", {**given, "users": users})
    result = new.enforce(plan, "skip")
    assert (result["changed"], result["plan_skipped"]) == (False, ["users eve", "groups quality"])
    assert old.enforce(plan)["changed"] is True


@pytest.mark.parametrize("flat", [True, False])
def test_omitted_object_is_returned(fresh: Fresh, flat: bool) -> None:
    one = {"name": "quality", "description": "all"}
    given = one if flat else {"entries": [one]}
    group = Sealed(fresh("real"), "repo", "repo_group", given)
    result = group.enforce([], "skip")
    assert (result["changed"], result["plan_skipped"]) == (False, ["quality"])
    assert ("results" in result) is not flat
    assert group.enforce(group.drift())["changed"] is True
