# SPDX-License-Identifier: GPL-3.0-or-later
"""Test downloads: selection, destination, and that only complete files are kept."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import listing
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen, Stub

Operation = artifact_download.ArtifactDownloadOperation
REPOSITORIES = Reply(body=json.dumps([{"key": "r", "type": "LOCAL"}]))
QUERY = "POST /api/search/aql"


def digest(text: str, name: str = "sha256") -> str:
    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def head(text: str) -> Reply:
    sums = {f"X-Checksum-{name}": digest(text, name) for name in ("Sha1", "Sha256")}
    return Reply(200, text, sums)


def listed(files: Mapping[str, str]) -> Reply:
    entries = [
        {"uri": f"/{path}", "size": len(text), "sha1": digest(text, "sha1"), "sha2": digest(text)}
        for path, text in files.items()
    ]
    return Reply(body={"files": entries})


def rows(files: Mapping[str, str], repo: str = "r") -> Reply:
    found = []
    for path, text in files.items():
        folder, _slash, name = path.rpartition("/")
        row = {"repo": repo, "path": folder or ".", "name": name, "size": len(text)}
        found.append({**row, "sha256": digest(text), "actual_sha1": digest(text, "sha1")})
    return Reply(body={"results": found, "range": {}})


def serve(server: Server, folder: str, files: Mapping[str, str], repo: str = "r") -> None:
    """Serve a folder with these files, which can be listed and fetched."""
    server.on[f"GET /api/storage/{repo}/{folder}?list&deep=1"] = listed(files)
    for path, text in files.items():
        server.on[f"GET /{repo}/{folder}/{path}".replace("//", "/")] = Reply(body=text)


def asked_for(folder: Path, **given: Any) -> dict[str, Any]:
    return {"repo": "r", "dest": f"{folder}/", "parallel": 2, **given}


def actions(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(file["path"], file["action"]) for file in values["files"]]


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- selection


def test_file_is_downloaded(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a/b;1.txt"] = head("x")
    server.on["GET /r/a/b;1.txt"] = Reply(body="x")
    plan, values = server.run(Operation, asked_for(tmp_path / "d", path="a/b;1.txt"))
    assert plan.action == "create"
    assert values["files"] == [
        {
            "repo": "r",
            "path": "a/b;1.txt",
            "dest": f"{tmp_path}/d/b;1.txt",
            "size": 1,
            "sha256": digest("x"),
            "action": "downloaded",
        }
    ]
    assert values["downloaded_bytes"] == 1
    assert tree(tmp_path) == {"d/b;1.txt": "x"}
    assert [seen.target for seen in server.stub.seen] == ["/base/r/a/b%3B1.txt"] * 2


def test_file_of_an_earlier_task_in_check_mode_gets_the_same_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on["GET /api/repositories"] = REPOSITORIES
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    client = RepoClient(server.task(check=True))
    listing.predict(client, "r", "a/b.txt", listing.StoredItem(1))
    _plan, values = server.run(Operation, asked_for(tmp_path / "d", path="a/b.txt"), check=True)
    assert [file["dest"] for file in values["files"]] == [f"{tmp_path}/d/b.txt"]


def test_unchanged_file_takes_one_request(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a/b.txt"] = head("x")
    (tmp_path / "b.txt").write_text("x")
    plan, values = server.run(Operation, asked_for(tmp_path, path="a/b.txt"))
    assert not plan.changed
    assert actions(values) == [("a/b.txt", "unchanged")]
    assert values["downloaded_bytes"] == 0
    assert server.asked == ["HEAD /r/a/b.txt"]


def test_dest_may_name_the_file(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /r/a"] = Reply(body="x")
    server.run(Operation, asked_for(tmp_path, path="a", dest=str(tmp_path / "n" / "other.txt")))
    assert tree(tmp_path) == {"n/other.txt": "x"}


def test_dest_may_be_an_existing_folder(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /r/a"] = Reply(body="x")
    server.run(Operation, asked_for(tmp_path, path="a", dest=str(tmp_path)))
    assert tree(tmp_path) == {"a": "x"}


def test_structure_below_the_folder_is_kept(server: Server, tmp_path: Path) -> None:
    serve(server, "a/b", {"1.txt": "x", "c/2.txt": "y"})
    _plan, values = server.run(Operation, asked_for(tmp_path, path="a/b/"))
    assert tree(tmp_path) == {"1.txt": "x", "c/2.txt": "y"}
    assert values["downloaded_bytes"] == 2
    assert len(server.asked) <= 3


def test_structure_below_the_fixed_part_of_a_pattern_is_kept(
    server: Server, tmp_path: Path
) -> None:
    serve(server, "a", {"1/x.jar": "1", "2/x.jar": "2", "2/x.txt": "3", "2/3/x.jar": "4"})
    server.run(Operation, asked_for(tmp_path, path="a/*/x.jar"))
    assert tree(tmp_path) == {"1/x.jar": "1", "2/x.jar": "2"}


def test_double_star_crosses_folders(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"x.jar": "0", "1/x.jar": "1", "1/2/x.jar": "2", "1/x.txt": "3"})
    server.run(Operation, asked_for(tmp_path, path="a/**/*.jar"))
    assert tree(tmp_path) == {"1/2/x.jar": "2", "1/x.jar": "1", "x.jar": "0"}


def test_complete_repository_is_downloaded(server: Server, tmp_path: Path) -> None:
    serve(server, "", {"x": "0", "1/y": "1"})
    server.run(Operation, asked_for(tmp_path, path="/"))
    assert tree(tmp_path) == {"1/y": "1", "x": "0"}


def test_list_of_artifacts_has_several_destinations(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /r/a"] = Reply(body="x")
    serve(server, "b", {"1": "y"}, repo="s")
    entries = [{"path": "a"}, {"path": "b/", "repo": "s", "dest": f"{tmp_path}/s"}]
    server.run(Operation, asked_for(tmp_path / "d", artifacts=entries))
    assert tree(tmp_path) == {"d/a": "x", "s/1": "y"}


def test_excluded_files_are_omitted(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1.jar": "1", "1.md5": "2", "docs/x/2.jar": "3", "b/3.md5": "4"})
    given = asked_for(tmp_path, path="a/", exclude=["**/*.md5", "docs/", "none*", "*/2.jar"])
    server.run(Operation, given)
    assert tree(tmp_path) == {"1.jar": "1"}
    assert server.warnings == [
        "exclude: 'none*' matches none of the selected files",
        "exclude: '*/2.jar' does not match 'docs/x/2.jar': * does not match slashes, write '*/**/2.jar'",
    ]


def test_files_are_selected_by_properties(server: Server, tmp_path: Path) -> None:
    server.on[QUERY] = rows({"a/1": "x", "ab/2": "y"})
    server.on["GET /r/a/1"] = Reply(body="x")
    server.run(Operation, asked_for(tmp_path, path="a/", properties={"k": ["v", "w"]}))
    assert tree(tmp_path) == {"1": "x"}
    query = server.stub.seen[0].body.decode()
    assert '"$and": [{"@k": "v"}, {"@k": "w"}]' in query


def test_query_whose_files_are_excluded_is_not_repeated(server: Server, tmp_path: Path) -> None:
    server.on[QUERY] = rows({"a/1": "x"})
    given = asked_for(tmp_path, path="a/", properties={"k": "v"}, exclude=["1"], allow_empty=True)
    _plan, values = server.run(Operation, given)
    assert values["files"] == []
    assert server.asked == [QUERY]


def test_properties_in_a_virtual_repository_are_read_per_file(
    server: Server, tmp_path: Path
) -> None:
    server.on[QUERY] = rows({})
    server.on["GET /api/repositories"] = Reply(body=json.dumps([{"key": "r", "type": "VIRTUAL"}]))
    serve(server, "a", {"1": "x", "2": "y"})
    server.on["GET /api/storage/r/a/1?properties"] = Reply(body={"properties": {"k": ["v", "w"]}})
    server.on["GET /api/storage/r/a/2?properties"] = Reply(body={"properties": {"k": ["w"]}})
    server.run(Operation, asked_for(tmp_path, path="a/", properties={"k": "v"}))
    assert tree(tmp_path) == {"1": "x"}


def test_unreadable_properties_are_an_error(server: Server, tmp_path: Path) -> None:
    server.dialect = "generic"
    server.on["HEAD /r/a"] = head("x")
    error = server.fails(Operation, asked_for(tmp_path, path="a", properties={"k": "v"}))
    assert error.kind == "rejected"
    assert "does not return properties" in error.message


def test_query_replaces_a_listing_that_needs_a_licence(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/storage/r/a?list&deep=1"] = Reply(400, "needs a licence")
    server.on[QUERY] = rows({"a/b/1": "x"})
    server.on["GET /r/a/b/1"] = Reply(body="x")
    server.run(Operation, asked_for(tmp_path, path="a/"))
    assert tree(tmp_path) == {"b/1": "x"}


def test_trimmed_query_result_is_an_error(server: Server, tmp_path: Path) -> None:
    server.on[QUERY] = Reply(body={"results": [], "range": {"notification": "only 5 rows"}})
    error = server.fails(Operation, asked_for(tmp_path, path="a/", properties={"k": "v"}))
    assert error.kind == "failed"
    assert "only 5 rows" in error.message


@pytest.mark.parametrize("path", ["a", "a/", "a/*.jar"])
def test_missing_item_is_not_found(server: Server, tmp_path: Path, path: str) -> None:
    server.on["GET /api/repositories"] = REPOSITORIES
    error = server.fails(Operation, asked_for(tmp_path / "d", path=path))
    assert error.kind == "not_found"
    assert f"'{path}' in 'r'" in error.message
    given = asked_for(tmp_path / "d", path=path, allow_empty=True)
    plan, values = server.run(Operation, given)
    assert not plan.changed
    assert values == {"files": [], "downloaded_bytes": 0}
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("path", ["a", "a/"])
def test_unknown_repository_is_not_empty(server: Server, tmp_path: Path, path: str) -> None:
    server.on["GET /api/repositories"] = Reply(body=json.dumps([{"key": "other"}]))
    error = server.fails(Operation, asked_for(tmp_path, path=path, allow_empty=True))
    assert error.kind == "not_found"
    assert "no repository 'r'" in error.message


def test_folder_without_slash_is_not_found(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a/b"] = Reply(200, "<html>index</html>")
    server.on["GET /api/storage/r/a?list&listFolders=1"] = Reply(
        body={"files": [{"uri": "/b", "folder": True}]}
    )
    error = server.fails(Operation, asked_for(tmp_path, path="a/b"))
    assert error.kind == "not_found"
    assert "slash" in error.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "../x"}, "path: "),
        ({"path": "a//b"}, "path: "),
        ({"path": "a", "parallel": 0}, "parallel"),
        ({"path": "a", "mode": "644"}, "mode"),
        ({"path": "a", "mode": "u=rw"}, "mode"),
        ({"path": "a", "mode": 420}, "mode"),
        ({"path": "a", "repo": "r/a"}, "repo"),
        ({"artifacts": [{"path": "a"}], "dest": None}, "artifacts[0].dest"),
        ({"artifacts": [{"path": "a"}], "repo": None}, "artifacts[0].repo"),
        ({"artifacts": [{"path": "a", "repo": "r/a"}]}, "artifacts[0].repo"),
        ({"artifacts": [{"path": "a/../b"}]}, "artifacts[0].path"),
        ({"artifacts": []}, "artifacts"),
        ({"path": "a", "properties": {"state": None}}, "properties.state is null"),
    ],
)
def test_invalid_options_are_rejected(
    server: Server, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    error = server.fails(Operation, asked_for(tmp_path, **given))
    assert error.kind == "invalid"
    assert said in error.message
    assert server.asked == []


def test_named_pipe_is_not_replaced(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    server.on["HEAD /r/a"] = head("x")
    error = server.fails(Operation, asked_for(tmp_path, path="a", dest=f"{tmp_path}/pipe"))
    assert error.kind == "invalid"
    assert f"{tmp_path}/pipe is a device, a pipe or a socket" in error.message


# --- files of a build


def record(*artifacts: tuple[str, str]) -> Reply:
    named = [{"name": name, "sha1": digest(text, "sha1")} for name, text in artifacts]
    return Reply(
        body={"buildInfo": {"name": "b", "number": "1", "modules": [{"artifacts": named}]}}
    )


def of_build(dest: Path, **given: Any) -> dict[str, Any]:
    return {"build_name": "b", "build_number": "1", "dest": f"{dest}/", "parallel": 1, **given}


def test_marked_files_of_a_build_keep_their_folders(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/build/b/1"] = record(("1.txt", "x"))
    server.on[QUERY] = rows({"a/1.txt": "x"})
    server.on["GET /r/a/1.txt"] = Reply(body="x")
    server.run(Operation, of_build(tmp_path))
    assert tree(tmp_path) == {"a/1.txt": "x"}
    assert '"@build.name": "b", "@build.number": "1"' in server.stub.seen[1].body.decode()


def test_promoted_file_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/build/b/1"] = record(("1.txt", "x"))
    both = [json.loads(rows({"a/1.txt": "x"}, repo).payload)["results"][0] for repo in ("s", "r")]
    server.on[QUERY] = Reply(body={"results": both, "range": {}})
    server.on["GET /r/a/1.txt"] = Reply(body="x")
    _plan, values = server.run(Operation, of_build(tmp_path))
    assert [file["repo"] for file in values["files"]] == ["r"]


def test_unmarked_file_is_found_by_content(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/build/b/1"] = record(("1.txt", "x"), ("2.txt", "y"))
    server.on[QUERY] = [rows({"a/1.txt": "x"}), rows({"copy.txt": "y", "z/2.txt": "y"})]
    server.on["GET /r/a/1.txt"] = Reply(body="x")
    server.on["GET /r/z/2.txt"] = Reply(body="y")
    server.run(Operation, of_build(tmp_path))
    assert tree(tmp_path) == {"a/1.txt": "x", "z/2.txt": "y"}


def test_incomplete_build_is_not_found(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/build/b/1"] = record(("1.txt", "x"), ("2.txt", "y"))
    server.on[QUERY] = [rows({"a/1.txt": "x"}), rows({})]
    error = server.fails(Operation, of_build(tmp_path))
    assert error.kind == "not_found"
    assert "1 of 2" in error.message
    assert "2.txt" in error.message
    assert tree(tmp_path) == {}


def test_build_in_a_virtual_repository_is_downloaded(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/build/b/1"] = record(("1.txt", "x"))
    server.on[QUERY] = [rows({}), rows({"a/1.txt": "x"}, "s")]
    members = {"key": "v", "rclass": "virtual", "repositories": ["s"]}
    server.on["GET /api/repositories/v"] = Reply(body=members)
    server.on["GET /s/a/1.txt"] = Reply(body="x")
    server.run(Operation, of_build(tmp_path, repo="v"))
    assert tree(tmp_path) == {"a/1.txt": "x"}


def test_server_without_property_queries_is_rejected(server: Server, tmp_path: Path) -> None:
    server.dialect = "generic"
    error = server.fails(Operation, of_build(tmp_path))
    assert error.kind == "rejected"
    assert "dialect" in error.message


# --- names and places


@pytest.mark.parametrize("name", ["../x", "a/../../x", "a/./x", "x\0y", "a//x"])
def test_names_outside_of_the_folder_are_rejected(
    server: Server, tmp_path: Path, name: str
) -> None:
    server.on["GET /api/storage/r/a?list&deep=1"] = Reply(
        body=json.dumps({"files": [{"uri": f"/{name}", "size": 1, "sha2": digest("x")}]})
    )
    error = server.fails(Operation, asked_for(tmp_path / "d", path="a/"))
    assert error.kind == "rejected"
    assert "is not a valid path" in error.message
    assert tree(tmp_path) == {}


def test_absolute_name_is_placed_below_the_folder(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/storage/r/a?list&deep=1"] = Reply(
        body={"files": [{"uri": "//etc/x", "size": 1, "sha2": digest("x")}]}
    )
    server.on["GET /r/a/etc/x"] = Reply(body="x")
    server.run(Operation, asked_for(tmp_path, path="a/"))
    assert tree(tmp_path) == {"etc/x": "x"}


def test_link_out_of_the_folder_is_rejected(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1": "x", "out/2": "y"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "out").symlink_to(tmp_path / "elsewhere")
    error = server.fails(Operation, asked_for(tmp_path / "d", path="a/"))
    assert error.kind == "rejected"
    assert "a symbolic link in" in error.message
    assert len(server.asked) == 1
    assert tree(tmp_path) == {}


def test_link_at_the_destination_is_replaced(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /r/a"] = Reply(body="x")
    (tmp_path / "other").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").symlink_to(tmp_path / "other")
    plan, _values = server.run(Operation, asked_for(tmp_path / "d", path="a"))
    assert plan.changed
    assert not (tmp_path / "d" / "a").is_symlink()
    assert (tmp_path / "other").read_text() == "x"


def test_folder_at_the_destination_of_a_file_is_rejected(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    (tmp_path / "a").mkdir()
    error = server.fails(Operation, asked_for(tmp_path, path="a"))
    assert error.kind == "invalid"
    assert "is a folder" in error.message


def test_file_at_the_destination_of_a_folder_is_rejected(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"b/1": "x"})
    (tmp_path / "b").write_text("")
    error = server.fails(Operation, asked_for(tmp_path, path="a/"))
    assert error.kind == "invalid"
    assert "is a file" in error.message


def test_equal_flat_names_are_rejected_before_any_download(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1/x": "1", "2/y": "2", "3/x": "3"})
    error = server.fails(Operation, asked_for(tmp_path, path="a/", flat=True))
    assert error.kind == "invalid"
    assert "1/x" in error.message
    assert "3/x" in error.message
    assert len(server.asked) == 1
    server.run(Operation, asked_for(tmp_path, path="a/", flat=True, exclude=["3/*"]))
    assert tree(tmp_path) == {"x": "1", "y": "2"}


def test_mode_is_set(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /r/a"] = Reply(body="x")
    given = asked_for(tmp_path, path="a", mode="0600")
    server.run(Operation, given)
    file = tmp_path / "a"
    assert file.stat().st_mode & 0o777 == 0o600
    os.chmod(file, 0o644)
    plan, values = server.run(Operation, given)
    assert actions(values) == [("a", "mode")]
    assert values["downloaded_bytes"] == 0
    shown = {"size": 1, "sha256": digest("x")}
    assert plan.before == {str(file): {**shown, "mode": "0644"}}
    assert plan.after == {str(file): {**shown, "mode": "0600"}}
    assert file.stat().st_mode & 0o777 == 0o600
    plan, _values = server.run(Operation, given)
    assert not plan.changed


# --- the bytes


def test_wrong_content_is_discarded(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("right")
    server.on["GET /r/a"] = Reply(body="wrong")
    (tmp_path / "a").write_text("old")
    error = server.fails(Operation, asked_for(tmp_path, path="a"))
    assert error.kind == "protocol"
    assert digest("right") in error.message
    assert error.result["changed"] is False
    assert tree(tmp_path) == {"a": "old"}


def test_too_long_content_is_discarded(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("right")
    server.on["GET /r/a"] = Reply(body="right and more")
    error = server.fails(Operation, asked_for(tmp_path / "d", path="a"))
    assert "14 bytes instead of 5" in error.message
    assert not (tmp_path / "d").exists()


def test_login_page_is_an_auth_error(server: Server, tmp_path: Path) -> None:
    server.on["HEAD /r/a"] = head("right")
    server.on["GET /r/a"] = Reply(body='<html><input type="password"></html>')
    error = server.fails(Operation, asked_for(tmp_path, path="a"))
    assert error.kind == "auth"


def test_truncated_body_is_fetched_again(server: Server, tmp_path: Path) -> None:
    text = "x" * 600_000
    server.retries = 1
    server.on["HEAD /r/a"] = Reply(
        200, "", {"Content-Length": "600000", "X-Checksum-Sha256": digest(text)}
    )
    server.on["GET /r/a"] = [Reply(body=text, truncate=400_000), Reply(body=text)]
    server.run(Operation, asked_for(tmp_path, path="a"))
    assert tree(tmp_path) == {"a": text}
    assert server.asked.count("GET /r/a") == 2


def test_failure_reports_the_files_already_downloaded(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1": "x", "2": "y"})
    server.on["GET /r/a/2"] = Reply(403, "blocked")
    error = server.fails(Operation, asked_for(tmp_path, path="a/", parallel=1))
    assert error.kind == "permission"
    assert error.result["changed"] is True
    assert actions(error.result) == [("a/1", "downloaded")]
    assert tree(tmp_path) == {"1": "x"}


def test_redirect_to_another_store_gets_no_credentials(server: Server, tmp_path: Path) -> None:
    with Stub(response=lambda seen: Reply(body="x")) as store:
        server.on["HEAD /r/a"] = head("x")
        server.on["GET /r/a"] = Reply(302, headers={"Location": f"{store.url}/x?Signature=s"})
        server.run(Operation, asked_for(tmp_path, path="a"))
        (seen,) = store.seen
    assert tree(tmp_path) == {"a": "x"}
    assert not {"Authorization", "X-Jfrog-Art-Api"} & set(seen.headers)


def test_files_without_digests_are_compared_by_content(server: Server, tmp_path: Path) -> None:
    server.dialect = "generic"
    server.on["HEAD /r/a"] = Reply(200, "x")
    server.on["GET /api/storage/r/?list&listFolders=1"] = Reply(body={"files": [{"uri": "/a"}]})
    server.on["GET /r/a"] = Reply(body="x")
    given = asked_for(tmp_path, path="a")
    plan, values = server.run(Operation, given)
    assert plan.changed
    assert values["files"][0]["sha256"] == digest("x")
    plan, _values = server.run(Operation, given)
    assert not plan.changed
    server.on["GET /r/a"] = Reply(body="y")
    plan, _values = server.run(Operation, given, check=True)
    assert plan.changed


def test_html_page_without_digest_is_an_error(server: Server, tmp_path: Path) -> None:
    def page(seen: Seen) -> Reply:
        return Reply(body="<!DOCTYPE html><html><body>Index</body></html>")

    server.dialect = "generic"
    server.on["HEAD /r/a"] = Reply(405)
    server.on["GET /api/storage/r/?list&listFolders=1"] = Reply(body={"files": [{"uri": "/a"}]})
    server.on["GET /r/a"] = page
    error = server.fails(Operation, asked_for(tmp_path, path="a"))
    assert error.kind == "protocol"
    assert tree(tmp_path) == {}


def test_check_mode_writes_no_file(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1": "x"})
    plan, values = server.run(Operation, asked_for(tmp_path / "d", path="a/"), check=True)
    assert plan.after == {f"{tmp_path}/d/1": {"size": 1, "sha256": digest("x")}}
    assert actions(values) == [("a/1", "downloaded")]
    assert not (tmp_path / "d").exists()


def test_disk_error_is_reported(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server, "a", {"b/1": "x"})
    full = OSError(errno.ENOSPC, "No space left on device")

    def replace(*_paths: str) -> None:
        raise full

    monkeypatch.setattr(os, "replace", replace)
    error = server.fails(Operation, asked_for(tmp_path / "d", path="a/"))
    assert error.kind == "failed"
    assert "No space left" in error.message
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("entries", "dest", "words"),
    [
        (["a/x.txt", "b/x.txt"], "got/", "would both be written to"),
        (["a/x.txt", "b/y.txt"], "got.txt", "would both be written to"),
    ],
)
def test_conflicting_destinations_are_rejected_before_any_request(
    server: Server, tmp_path: Path, entries: list[str], dest: str, words: str
) -> None:
    artifacts = [{"repo": "r", "path": path} for path in entries]
    given = {"artifacts": artifacts, "dest": f"{tmp_path}/{dest}"}
    error = server.fails(artifact_download.ArtifactDownloadOperation, given)
    assert (error.kind, words in error.message) == ("invalid", True)
    assert server.asked == []
    # files that need not exist do not clash before they are read
    server.on["GET /api/repositories"] = Reply(body=b'[{"key": "r"}]')
    server.run(artifact_download.ArtifactDownloadOperation, {**given, "allow_empty": True})
    assert server.asked != []


# --- the newest files, and no others

DAYS = {"1.txt": "2026-01-01", "2.txt": "2026-01-03", "3.txt": "2026-01-02"}


def dated(server: Server) -> None:
    """Serve the folder `a`, whose files have times."""
    serve(server, "a", dict.fromkeys(DAYS, "x"))
    server.on[QUERY] = Reply(
        body={
            "results": [
                {"repo": "r", "path": "a", "name": name, "created": f"{day}T00:00:00.000Z"}
                for name, day in DAYS.items()
            ],
            "range": {},
        }
    )
    for name, day in DAYS.items():
        info = {"created": "x", "lastModified": f"{day}T00:00:00.000+0000"}
        server.on[f"GET /api/storage/r/a/{name}"] = Reply(body=info)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"newest": 1}, ["2.txt"]),
        ({"newest": 2}, ["2.txt", "3.txt"]),
        ({"newest": 1, "sort_by": "name"}, ["3.txt"]),
        ({"newest": 9}, ["1.txt", "2.txt", "3.txt"]),
        ({"newest": 1, "exclude": ["2.txt"]}, ["3.txt"]),
    ],
)
def test_newest_files_are_selected(
    server: Server, tmp_path: Path, options: dict[str, Any], expected: list[str]
) -> None:
    dated(server)
    if "exclude" in options:
        options = {**options, "sort_by": "modified"}
    server.run(Operation, asked_for(tmp_path, path="a/", **options))
    assert sorted(tree(tmp_path)) == expected


def test_times_missing_in_the_query_are_read(server: Server, tmp_path: Path) -> None:
    dated(server)
    server.on[QUERY] = Reply(body={"results": [], "range": {}})
    server.run(Operation, asked_for(tmp_path, path="a/", newest=1, sort_by="modified"))
    assert sorted(tree(tmp_path)) == ["2.txt"]
    error = server.fails(Operation, asked_for(tmp_path, path="a/", newest=1))
    assert (error.kind, "cannot sort by created" in error.message) == ("rejected", True)


def test_sync_deletes_unselected_files(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1.txt": "x"})
    (tmp_path / "d/old").mkdir(parents=True)
    (tmp_path / "d/old/2.txt").write_text("old")
    (tmp_path / "outside.txt").write_text("stays")
    (tmp_path / "d/link").symlink_to(tmp_path / "outside.txt")
    (tmp_path / "d/folder").symlink_to(tmp_path)
    options = asked_for(tmp_path / "d", path="a/", sync=True, max_deletions=1)
    plan, values = server.run(Operation, options, check=True)
    assert values["deleted"] == [f"{tmp_path}/d/old/2.txt"]
    assert plan.before == {f"{tmp_path}/d/old/2.txt": {"size": 3}}
    assert (tmp_path / "d/old/2.txt").exists()
    plan, values = server.run(Operation, options)
    assert (tree(tmp_path / "d/old"), (tmp_path / "d/1.txt").read_text()) == ({}, "x")
    assert (tmp_path / "outside.txt").exists()
    assert (tmp_path / "d/link").is_symlink()
    plan, values = server.run(Operation, options)
    assert (plan.changed, values["deleted"]) == (False, [])


def test_sync_deletes_although_all_files_are_equal(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1.txt": "x"})
    options = asked_for(tmp_path, path="a/", sync=True, max_deletions=1)
    server.run(Operation, options)
    (tmp_path / "2.txt").write_text("old")
    plan, _values = server.run(Operation, options)
    assert (plan.action, tree(tmp_path)) == ("update", {"1.txt": "x"})


def test_sync_deletes_nothing_above_the_limit_or_after_a_failure(
    server: Server, tmp_path: Path
) -> None:
    serve(server, "a", {"1.txt": "x"})
    (tmp_path / "2.txt").write_text("old")
    error = server.fails(Operation, asked_for(tmp_path, path="a/", sync=True))
    assert (error.kind, tree(tmp_path)) == ("invalid", {"2.txt": "old"})
    assert "sync would delete 1 files, more than max_deletions (0)" in error.message
    server.on["GET /r/a/1.txt"] = Reply(403)
    error = server.fails(Operation, asked_for(tmp_path, path="a/", sync=True, max_deletions=1))
    assert (error.kind, tree(tmp_path)) == ("permission", {"2.txt": "old"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"newest": 0}, "newest is 0: set it to 1 or more"),
        ({"sort_by": "name"}, "requires newest"),
        ({"max_deletions": 1}, "requires sync"),
        ({"max_deletions": -1, "sync": True}, "max_deletions is -1: set it to 0 or more"),
        ({"sync": True, "path": "a/1.txt", "dest": "/x/file"}, "with sync, dest must be a folder"),
    ],
)
def test_contradictory_options_are_rejected(
    server: Server, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    error = server.fails(Operation, {**asked_for(tmp_path, path="a/"), **options})
    assert (error.kind, server.asked) == ("invalid", [])
    assert message in error.message


def test_sync_does_not_follow_a_link(server: Server, tmp_path: Path) -> None:
    serve(server, "a", {"1.txt": "x"})
    (tmp_path / "real").mkdir()
    (tmp_path / "d").symlink_to(tmp_path / "real")
    error = server.fails(Operation, asked_for(tmp_path / "d", path="a/", sync=True))
    assert (error.kind, "is a symbolic link" in error.message) == ("invalid", True)
