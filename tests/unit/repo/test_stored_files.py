# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files that a server stores under another name, or computes itself [repo-36, repo-37]."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    build_publish,
    recorded_files,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.artifact_deploy import (
    ArtifactDeployOperation,
)
from tests.unit.repo import test_copy, test_publish
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_deploy import LOCAL, actions, entry, options, stored, sums
from tests.unit.stub import Reply

FOLDER = "g/app/1.2-SNAPSHOT"
NAME = f"{FOLDER}/app-1.2-SNAPSHOT.jar"


def unique(number: int, rest: str = ".jar", time: str = "20240102.030405") -> str:
    return f"{FOLDER}/app-1.2-{time}-{number}{rest}"


def listing(files: dict[str, str], folder: str = FOLDER, **fields: Any) -> Reply:
    entries = [
        {"uri": f"/{path[len(folder) :].strip('/')}", **entry(text), **fields}
        for path, text in files.items()
    ]
    return Reply(body={"files": entries})


LIST = f"GET /api/storage/r/{FOLDER}?list"
REPOSITORIES = "GET /api/repositories"


@pytest.fixture(autouse=True)
def repository(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["POST /api/search/aql"] = Reply(body={"results": []})


def renamed(text: str, path: str) -> Reply:
    reply = stored(text)
    assert isinstance(reply.body, dict)
    return Reply(201, {**reply.body, "repo": "r", "path": f"/{path}"})


# --- renamed snapshots ----------------------------------------------------------------------------


def test_path_of_the_response_is_that_of_result_and_properties(server: Server) -> None:
    there = unique(3)
    server.on[f"PUT /r/{NAME}"] = [Reply(404), renamed("new", there)]
    server.on[f"PUT /api/storage/r/{there}?properties=k=v"] = Reply(204)
    server.on[f"GET /api/storage/r/{there}?properties"] = Reply(body={"properties": {"k": ["v"]}})
    given = options(path=NAME, content="new", properties={"k": "v"})
    _plan, values = server.run(ArtifactDeployOperation, given)
    assert actions(values) == [(there, "uploaded")]
    assert values["artifacts"][0]["url"].endswith(f"/r/{there}")
    assert f"PUT /api/storage/r/{there}?properties=k=v" in server.asked


@pytest.mark.parametrize(
    ("files", "changes"),
    [
        ({unique(9): "old", unique(10): "x"}, False),
        ({unique(9): "x", unique(10): "old"}, True),
        ({unique(9): "old", unique(1, time="20240103.000000"): "x"}, False),
        ({unique(10, "-sources.jar"): "x", unique(10, ".pom"): "x"}, True),
        ({f"{FOLDER}/other-1.2-20240102.030405-1.jar": "x"}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_newest_snapshot_of_the_same_kind_decides(
    server: Server, tmp_path: Path, files: dict[str, str], changes: bool, many: bool
) -> None:
    """A classifier or extension belongs to another file, and 10 is newer than 9."""
    server.on[LIST] = listing({**files, f"{FOLDER}/a.txt": "x"})
    given: dict[str, Any] = {"path": NAME, "content": "x"}
    if many:
        for name in ("app-1.2-SNAPSHOT.jar", "a.txt"):
            (tmp_path / name).write_text("x")
        given = {"path": f"{FOLDER}/", "src": f"{tmp_path}/"}
    plan, values = server.run(ArtifactDeployOperation, options(**given), check=True)
    assert plan.changed is changes
    path = NAME if changes else next(path for path, text in files.items() if text == "x")
    assert (path, "uploaded" if changes else "unchanged") in actions(values)
    assert server.asked == ["GET /api/repositories/r", LIST]
    # the older snapshot stays, so the file is new
    assert plan.before == {}


@pytest.mark.parametrize(
    ("modified", "changes"),
    [("2024-02-01T00:00:00.000Z", False), ("2023-02-01T00:00:00.000Z", True)],
)
def test_newest_of_both_names_decides(server: Server, modified: str, changes: bool) -> None:
    """The setting `snapshotVersionBehavior` of the repository has been changed."""
    server.on[LIST] = listing({unique(1): "old", NAME: "x"}, lastModified=modified)
    plan, _values = server.run(ArtifactDeployOperation, options(path=NAME, content="x"), check=True)
    assert plan.changed is changes


def test_missing_properties_are_set_at_the_stored_path(server: Server) -> None:
    there = unique(3)
    server.on[LIST] = listing({there: "x"})
    empty = Reply(404, "No properties could be found.")
    has = Reply(body={"properties": {"k": ["v"]}})
    server.on[f"GET /api/storage/r/{there}?properties"] = [empty, has]
    server.on[f"PUT /api/storage/r/{there}?properties=k=v"] = Reply(204)
    given = options(path=NAME, content="x", properties={"k": "v"})
    plan, values = server.run(ArtifactDeployOperation, given)
    assert actions(values) == [(there, "properties")]
    assert list(plan.after) == [f"r/{there}"]


def test_lost_response_finds_the_renamed_file(server: Server) -> None:
    there = unique(3)
    server.on[LIST] = [listing({}), listing({there: "new"})]
    server.on[f"PUT /r/{NAME}"] = [Reply(404), Reply(cut=True)]
    _plan, values = server.run(ArtifactDeployOperation, options(path=NAME, content="new"))
    assert actions(values) == [(there, "uploaded")]


@pytest.mark.parametrize("path", ["/../x", "a//b"])
def test_invalid_path_of_the_response_is_a_protocol_error(server: Server, path: str) -> None:
    server.on["PUT /r/a/b"] = [Reply(404), renamed("new", path)]
    error = server.fails(ArtifactDeployOperation, options(path="a/b", content="new"))
    assert (error.kind, path in error.message) == ("protocol", True)


@pytest.mark.parametrize("path", [None, 5, "", "/", ["a"]])
def test_response_without_a_path_counts_as_the_path_of_the_request(
    server: Server, path: Any
) -> None:
    reply = stored("new")
    assert isinstance(reply.body, dict)
    server.on["PUT /r/a/b"] = [Reply(404), Reply(201, {**reply.body, "path": path})]
    _plan, values = server.run(ArtifactDeployOperation, options(path="a/b", content="new"))
    assert actions(values) == [("a/b", "uploaded")]


def test_overwrite_false_allows_a_further_snapshot(server: Server) -> None:
    server.on[LIST] = listing({unique(1): "old"})
    given = options(path=NAME, content="new", overwrite=False)
    plan, _values = server.run(ArtifactDeployOperation, given, check=True)
    assert plan.action == "create"


def test_build_record_has_the_stored_path(server: Server) -> None:
    test_publish.serve(server)
    there = unique(3)
    server.on[LIST] = listing({unique(2): "old", there: "x"})
    server.on[f"HEAD /r/{there}"] = test_publish.head("x")
    server.on[f"GET /api/storage/r/{there}?properties"] = test_publish.marked(test_publish.MARKS)
    files = [{"repo": "r", "path": NAME}, {"repo": "r", "path": NAME, "name": "agent"}]
    modules = [{"id": "m", "artifacts": files[:1]}, {"id": "n", "artifacts": files[1:]}]
    plan, values = server.run(
        build_publish.BuildPublishOperation, test_publish.given(modules=modules)
    )
    assert plan.changed
    found = [module["artifacts"][0] for module in values["build"]["modules"]]
    assert [(file["name"], file["path"]) for file in found] == [
        (there.rpartition("/")[2], there),
        ("agent", there),
    ]
    plan, _values = server.run(
        build_publish.BuildPublishOperation, test_publish.given(modules=modules)
    )
    assert not plan.changed


# --- computed files -------------------------------------------------------------------------------


def deploy(server: Server, folder: Path, *names: str, **given: Any) -> list[str]:
    """Deploy a folder with files; return the paths of the deployed files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    given = options(**{"src": f"{folder}/", **given})
    _plan, values = server.run(ArtifactDeployOperation, given, check=True)
    return [path for path, _action in actions(values)]


def of_type(kind: str) -> Reply:
    return Reply(body=json.dumps([{"key": "r", "type": "LOCAL", "packageType": kind}]))


def test_checksums_and_metadata_are_not_sent(server: Server, tmp_path: Path) -> None:
    ends = (".md5", ".sha1", ".sha256", ".sha512", ".asc", ".asc.sha1")
    names = [f"g/a{end}" for end in ("", *ends)]
    others = ("g/maven-metadata.xml", "g/maven-metadata.xml.sha1", "g/b.sha1")
    assert deploy(server, tmp_path, *names, *others) == ["g/a", "g/a.asc", "g/b.sha1"]
    (warning,) = server.warnings
    assert warning.startswith(
        "not sent, because the server computes such files from others: 7 ('g/"
    )
    assert REPOSITORIES not in server.asked


def test_checksum_of_a_stored_file_is_not_sent(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/storage/r/g?list&deep=1"] = listing({"g/a": "x"}, "g")
    given = {"src": f"{tmp_path}/*", "path": "g"}
    assert deploy(server, tmp_path, "a.sha1", "b.sha1", **given) == ["g/b.sha1"]
    assert "1 ('g/a.sha1')" in server.warnings[0]


@pytest.mark.parametrize("name", ["maven-metadata.xml", "a.sha1", "index.yaml"])
def test_file_named_exactly_is_sent(server: Server, tmp_path: Path, name: str) -> None:
    server.on[REPOSITORIES] = of_type("helm")
    (tmp_path / "a").write_text("x")
    (tmp_path / name).write_text("x")
    artifacts = [{"src": str(tmp_path / each), "path": f"g/{each}"} for each in ("a", name)]
    given = options(artifacts=artifacts)
    _plan, values = server.run(ArtifactDeployOperation, given, check=True)
    assert [path for path, _action in actions(values)] == ["g/a", f"g/{name}"]
    assert server.warnings == []


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("conan", {"u/.timestamp", "u/index.json"}),
        ("helm", {"index.yaml"}),
        ("rpm", {"repodata/repomd.xml"}),
        ("debian", {"dists/focal/Packages"}),
        ("npm", {".npm/a/package.json"}),
        ("pypi", {".pypi/simple.html"}),
        ("generic", set()),
    ],
)
def test_index_files_of_the_package_type_are_not_sent(
    server: Server, tmp_path: Path, kind: str, left: set[str]
) -> None:
    server.on[REPOSITORIES] = of_type(kind)
    names = {
        "u/.timestamp",
        "u/index.json",
        "index.yaml",
        "repodata/repomd.xml",
        "dists/focal/Packages",
        ".npm/a/package.json",
        ".pypi/simple.html",
        "a.tgz",
    }
    assert set(deploy(server, tmp_path, *names)) == names - left
    assert server.asked.count(REPOSITORIES) == 1


def test_folder_of_computed_files_is_no_failure(server: Server, tmp_path: Path) -> None:
    assert deploy(server, tmp_path, "maven-metadata.xml") == []
    assert len(server.warnings) == 1


def test_computed_files_of_an_archive_are_not_compared(server: Server, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("b/1", "b/2", "b/maven-metadata.xml"):
            archive.writestr(name, name)
    content = {"b/1": "b/1", "b/2": "b/2", "b/maven-metadata.xml": "computed"}
    server.on["GET /api/storage/r/b?list"] = listing(content, "b")
    given = options(src=str(tmp_path / "a.zip"), explode=True)
    plan, _values = server.run(ArtifactDeployOperation, given)
    assert not plan.changed
    assert server.warnings[0].startswith("not compared")


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize("given", [{"path": "a"}, {"path": "a/**"}])
def test_computed_files_are_not_copied(server: Server, move: bool, given: dict[str, Any]) -> None:
    files = {"a/x.jar": "x", "a/x.jar.sha1": "s", "a/maven-metadata.xml": "m"}
    store = test_copy.Store(server, r=files, s={"a/maven-metadata.xml": "other"})
    options = {"repo": "r", "target_repo": "s", "move": move, **given}
    server.run(test_copy.Operation, options)
    assert store.files["s"] == {"a/x.jar": "x", "a/maven-metadata.xml": "other"}
    assert ("a/x.jar" in store.files["r"]) is not move
    # a moved folder is deleted together with the files that were computed from its content
    assert ("DELETE /r/a" in store.sent) is (move and given["path"] == "a")
    assert ["2 ('r/a/" in warning for warning in server.warnings] == [True]


def test_folder_of_computed_files_is_copied_without_a_failure(server: Server) -> None:
    test_copy.Store(server, r={"a/maven-metadata.xml": "m"})
    plan, values = server.run(test_copy.Operation, {"repo": "r", "target_repo": "s", "path": "a"})
    assert (plan.changed, values["artifacts"], len(server.warnings)) == (False, [], 1)


def test_checksum_whose_file_is_not_selected_is_not_copied(server: Server) -> None:
    store = test_copy.Store(server, r={"a/x": "x", "a/x.sha1": "s", "a/y.sha1": "s"})
    server.run(test_copy.Operation, {"repo": "r", "target_repo": "s", "path": "a/*.sha1"})
    assert store.files["s"] == {"a/y.sha1": "s"}


@pytest.mark.parametrize("path", ["a/x.sha1", "a/maven-metadata.xml"])
@pytest.mark.parametrize("listed", [False, True])
def test_computed_file_named_exactly_is_copied(server: Server, path: str, listed: bool) -> None:
    store = test_copy.Store(server, r={"a/x": "x", "a/x.sha1": "s", "a/maven-metadata.xml": "m"})
    chosen = {"artifacts": [{"path": "a/x"}, {"path": path}]} if listed else {"path": path}
    server.run(test_copy.Operation, {"repo": "r", "target_repo": "s", **chosen})
    assert path in store.files["s"]
    assert server.warnings == []


def test_computed_files_of_a_record_are_not_missing(server: Server) -> None:
    names = ["a.jar", "a.jar.sha1", "maven-metadata.xml", "b.jar"]
    artifacts = [{"name": name, "path": f"g/{name}", "sha1": sums(name)["sha1"]} for name in names]
    record = {"name": "b", "number": "1", "modules": [{"id": "m", "artifacts": artifacts}]}
    rows = [{"repo": "rel", "path": "g", "name": "a.jar", "actual_sha1": sums("a.jar")["sha1"]}]
    server.on["POST /api/search/aql"] = Reply(body={"results": rows})
    found = recorded_files.missing_files(server.client(), record, "rel", None)
    assert found == ["g/b.jar"]
