# SPDX-License-Identifier: GPL-3.0-or-later
"""Test deploying: requests, uploads, and the handling of misleading responses."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import dialect_of
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import listing
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.artifact_deploy import (
    ArtifactDeployOperation,
    promoted_builds,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

LOCAL = Reply(body={"key": "r", "rclass": "local"})
VIRTUAL = Reply(body={"key": "v", "rclass": "virtual", "defaultDeploymentRepo": "r"})


def sums(text: str) -> dict[str, str]:
    data = text.encode()
    return {"sha1": hashlib.sha1(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}


def head(text: str) -> Reply:
    headers = {f"X-Checksum-{name}": value.upper() for name, value in sums(text).items()}
    return Reply(200, text, headers)


def stored(text: str) -> Reply:
    return Reply(201, {"size": str(len(text.encode())), "checksums": sums(text)})


def options(**given: Any) -> dict[str, Any]:
    return {"repo": "r", "parallel": 2, **given}


def entry(text: str) -> dict[str, Any]:
    digests = sums(text)
    return {"size": len(text), "sha1": digests["sha1"], "sha2": digests["sha256"], "folder": False}


def actions(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(artifact["path"], artifact["action"]) for artifact in values["artifacts"]]


# --- a single file


def test_unchanged_file_takes_two_requests_and_one_per_further_item(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a/b.txt"] = head("x")
    for _item in range(2):
        plan, values = server.run(ArtifactDeployOperation, options(path="a/b.txt", content="x"))
        assert not plan.changed
        assert actions(values) == [("a/b.txt", "unchanged")]
    assert server.asked == ["GET /api/repositories/r", "HEAD /r/a/b.txt", "HEAD /r/a/b.txt"]


def test_sha1_is_compared_if_server_has_no_sha256(server: Server) -> None:
    server.on["HEAD /r/a"] = Reply(200, "x", {"X-Checksum-Sha1": sums("x")["sha1"]})
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert not plan.changed


def test_new_file_is_deployed(server: Server) -> None:
    path = "a/we;ird #1 100% ü.txt"
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[f"PUT /r/{path}"] = [Reply(404), stored("text ü")]
    plan, values = server.run(ArtifactDeployOperation, options(path=path, content="text ü"))
    assert plan.action == "create"
    assert values == {
        "artifacts": [
            {
                "repo": "r",
                "path": path,
                "size": 7,
                "sha256": sums("text ü")["sha256"],
                "action": "uploaded",
                "url": f"{server.stub.url}/r/a/we%3Bird%20%231%20100%25%20%C3%BC.txt",
            }
        ],
        "uploaded_bytes": 7,
    }
    asking, sending = server.stub.seen[-2:]
    assert sending.target == "/base/r/a/we%3Bird%20%231%20100%25%20%C3%BC.txt"
    assert sending.body == "text ü".encode()
    assert asking.body == b""
    assert asking.headers["X-Checksum-Deploy"] == "true"
    for seen in (asking, sending):
        assert seen.headers["X-Checksum-Sha1"] == sums("text ü")["sha1"]
        assert seen.headers["X-Checksum-Sha256"] == sums("text ü")["sha256"]
    assert "X-Checksum-Deploy" not in sending.headers


@pytest.mark.parametrize(("there", "action"), [("x", "unchanged"), ("y", "uploaded")])
def test_file_moved_by_promotion_is_not_deployed_again(
    server: Server, there: str, action: str
) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/repositories/rel"] = Reply(body={"key": "rel", "rclass": "local"})
    server.on["HEAD /rel/a/b.txt"] = head(there)
    server.on["PUT /r/a/b.txt"] = [Reply(404), stored("x")]
    given = options(path="a/b.txt", content="x", moved_to=["r", "gone", "rel"])
    plan, values = server.run(ArtifactDeployOperation, given)
    assert plan.changed is (action == "uploaded")
    assert [(artifact["repo"], artifact["action"]) for artifact in values["artifacts"]] == [
        ("rel" if action == "unchanged" else "r", action)
    ]
    assert ["gone" in warning for warning in server.warnings] == [True]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"state": "absent", "moved_to": ["rel"]},
            "moved_to cannot be combined with state=absent",
        ),
        ({"content": "x", "exclude": ["*"]}, "cannot be combined with content"),
        ({"content": "x", "flat": True}, "cannot be combined with content"),
        ({"src": "a.zip", "explode": True, "flat": True}, "cannot be combined with explode"),
        ({"state": "absent", "flat": True}, "flat cannot be combined with state=absent"),
        ({"state": "absent", "exclude": ["*"]}, "exclude cannot be combined with state=absent"),
        ({"content": "x", "properties": {"a b": "c"}}, "'a b' contains a blank"),
        ({"content": "x", "properties": {"a*b": "c"}}, "'a*b' contains '*'"),
    ],
)
def test_contradictory_options_are_rejected(
    server: Server, given: dict[str, Any], said: str
) -> None:
    error = server.fails(ArtifactDeployOperation, options(path="a", **given))
    assert error.kind == "invalid"
    assert said in error.message
    assert server.asked == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "a/b.txt "}, "path: 'a/b.txt ' contains leading or trailing blanks in a segment"),
        ({"path": "a /b.txt"}, "path: 'a /b.txt' contains leading or trailing blanks in a segment"),
        ({"path": "a\n/b.txt"}, "or a control character"),
        (
            {"path": "a.txt", "moved_to": ["r e"]},
            "moved_to[0]: 'r e' is not a valid repository key",
        ),
        ({"path": "a!/b.txt"}, "which addresses a file inside an archive"),
        ({"path": "a/*.txt"}, "contains wildcards, but must name a new item"),
        ({"path": "a/b?.txt"}, "contains wildcards"),
        ({"path": "a.txt", "repo": "r*"}, "repo: 'r*' is not a valid repository key"),
        ({"path": "a.txt", "repo": "r "}, "repo: 'r ' is not a valid repository key"),
        ({"path": "a.txt", "repo": "r 1"}, "is not a valid repository key"),
    ],
)
def test_implausible_path_is_rejected(server: Server, given: dict[str, Any], said: str) -> None:
    error = server.fails(ArtifactDeployOperation, {"repo": "r", "content": "x", **given})
    assert (error.kind, said in error.message) == ("invalid", True), error.message
    assert server.asked == []


def test_exclude_without_match_gives_a_warning(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a.txt"] = head("x")
    given = options(src=f"{tmp_path}/*", exclude=["*.md5"])
    server.run(ArtifactDeployOperation, given)
    assert server.warnings == ["exclude: '*.md5' matches no file"]


def test_content_known_to_server_is_deployed_by_checksum(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["PUT /r/a"] = stored("x")
    plan, values = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert actions(values) == [("a", "checksum_deployed")]
    assert values["uploaded_bytes"] == 0
    assert plan.result["uploaded_bytes"] == 1


def test_check_mode_plans_without_writing(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a"] = head("old")
    plan, values = server.run(
        ArtifactDeployOperation, options(path="a", content="new!"), check=True
    )
    assert plan.before == {"r/a": {"size": 3, "sha256": sums("old")["sha256"]}}
    assert plan.after == {"r/a": {"size": 4, "sha256": sums("new!")["sha256"]}}
    assert plan.action == "update"
    assert actions(values) == [("a", "uploaded")]
    # the query finds the promoted builds of the replaced file
    assert server.asked == ["GET /api/repositories/r", "HEAD /r/a", "POST /api/search/aql"]


def replaced(*names: str, build: str = "app") -> Reply:
    builds = [{"build.name": build, "build.number": number} for number in ("8", "7", "7")]
    nested = [{"modules": [{"builds": [entry]}]} for entry in builds]
    rows = [{"repo": "r", "path": "a", "name": name, "artifacts": nested} for name in names]
    return Reply(body={"results": rows})


def test_promoted_builds_of_replaced_files_are_named(server: Server, tmp_path: Path) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    files = [{"uri": f"/{name}", "size": 3, "sha1": sums("old")["sha1"]} for name in "123"]
    server.on["GET /api/storage/r/a?list"] = Reply(body={"files": files})
    server.on["POST /api/search/aql"] = replaced("1", "2", "9")
    for name, content in {"1": "new", "2": "old", "3": "new", "4": "new"}.items():
        (tmp_path / name).write_text(content)
    server.run(ArtifactDeployOperation, options(path="a/", src=f"{tmp_path}/"), check=True)
    (said,) = server.warnings
    assert "replaces files of promoted builds: 'r/a/1' (build app/7, app/8)" in said
    (query,) = [seen.body.decode() for seen in server.stub.seen if seen.method == "POST"]
    assert '"$or": [{"path": "a", "name": "1"}, {"path": "a", "name": "3"}]' in query


@pytest.mark.parametrize(
    ("paths", "places"),
    [
        (["a/1", "2"], '"$or": [{"path": ".", "name": "2"}, {"path": "a", "name": "1"}]'),
        ([f"a/{n:0200}" for n in range(30)], '"$or": [{"path": "a"}, {"path": {"$match": "a/*"}}]'),
    ],
)
def test_query_for_promoted_builds_names_the_files(
    server: Server, paths: list[str], places: str
) -> None:
    server.on["POST /api/search/aql"] = Reply(body={"results": []})
    promoted_builds(server.client(), "r", paths)
    assert places in server.stub.seen[-1].body.decode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(400, "no such field"),
        Reply(403),
        Reply(503),
        Reply(body="<html>"),
        Reply(body={"results": [{"repo": "r", "path": "a", "name": "1"}]}),
    ],
)
def test_unknown_promotions_do_not_prevent_a_deployment(server: Server, reply: Reply) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a/1"] = head("old")
    server.on["POST /api/search/aql"] = reply
    given = options(path="a/1", content="new")
    plan, _values = server.run(ArtifactDeployOperation, given, check=True)
    assert (plan.changed, server.warnings) == (True, [])


@pytest.mark.parametrize("current", [Reply(404), Reply(405)])
def test_new_and_unknown_files_are_not_searched_for(server: Server, current: Reply) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a/1"] = current
    server.run(ArtifactDeployOperation, options(path="a/1", content="new"), check=True)
    assert "POST /api/search/aql" not in server.asked


@pytest.mark.parametrize("index", [Reply(body="<html></html>"), Reply(409)])
def test_folder_is_not_replaced_by_a_file(server: Server, index: Reply) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/d/1.0"] = index
    rows = [{"uri": "/1.0", "folder": True}]
    server.on["GET /api/storage/r/d?list&listFolders=1"] = Reply(body={"files": rows})
    error = server.fails(ArtifactDeployOperation, options(path="d/1.0", content="x"))
    assert error.kind == "conflict"
    assert error.message.startswith("path: 'r/d/1.0' is a folder: end path with a slash")


@pytest.mark.parametrize("check", [True, False])
def test_different_content_without_overwrite_is_a_conflict(server: Server, check: bool) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a.txt"] = Reply(200, headers={"X-Checksum-Sha256": sums("old")["sha256"]})
    given = options(path="a.txt", content="new", overwrite=False)
    with pytest.raises(ToolchainError, match="1 of 1 paths have different content") as caught:
        server.run(ArtifactDeployOperation, given, check=check)
    assert caught.value.kind == "conflict"
    assert [one for one in server.asked if not one.startswith(("GET", "HEAD"))] == []


@pytest.mark.parametrize(
    ("content", "changed"), [(Reply(body="new"), False), (Reply(404), True)], ids=["same", "none"]
)
def test_content_without_digests_is_downloaded_without_overwrite(
    server: Server, content: Reply, changed: bool
) -> None:
    server.dialect = "generic"
    server.on["GET /api/repositories"] = Reply(body='[{"key": "r", "type": "LOCAL"}]')
    server.on["HEAD /r/a.txt"] = Reply(405)
    server.on["GET /r/a.txt"] = content
    server.on["PUT /r/a.txt"] = Reply(201)
    given = options(path="a.txt", content="new", overwrite=False)
    plan, values = server.run(ArtifactDeployOperation, given, check=True)
    assert plan.changed == changed
    assert values["artifacts"][0]["action"] == ("uploaded" if changed else "unchanged")


def test_virtual_repository_means_its_deployment_repository(server: Server) -> None:
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on["HEAD /r/a"] = head("x")
    plan, values = server.run(ArtifactDeployOperation, options(repo="v", path="a", content="x"))
    assert not plan.changed
    assert values["artifacts"][0]["repo"] == "r"
    assert server.asked == ["GET /api/repositories/v", "HEAD /r/a"]


def test_file_in_another_member_of_a_virtual_repository_is_ignored(server: Server) -> None:
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on["HEAD /v/a"] = head("x")
    server.on["PUT /r/a"] = stored("x")
    plan, values = server.run(ArtifactDeployOperation, options(repo="v", path="a", content="x"))
    assert plan.changed
    assert values["artifacts"][0]["repo"] == "r"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (Reply(body={"rclass": "virtual", "defaultDeploymentRepo": ""}), "invalid", "deploy into"),
        (
            Reply(body={"type": "VIRTUAL", "repositories": ["a", "b", "c"]}),
            "invalid",
            "which has no repository to deploy into: name a local repository behind it: 'a'",
        ),
        (Reply(body={"type": "REMOTE"}), "invalid", "remote repository, which does not accept"),
        (Reply(400, "Bad Request"), "not_found", "no repository 'r'"),
        (Reply(404), "not_found", "no repository 'r'"),
    ],
)
def test_unsuitable_repository_is_rejected(
    server: Server, reply: Reply, kind: str, said: str
) -> None:
    server.on["GET /api/repositories/r"] = reply
    known = [{"key": "a", "type": "LOCAL"}, {"key": "b", "type": "REMOTE"}]
    server.on["GET /api/repositories"] = Reply(body=json.dumps(known))
    error = server.fails(ArtifactDeployOperation, options(path="a", content="x"))
    assert error.kind == kind
    assert said in error.message
    assert not any(name.startswith("PUT") for name in server.asked)


def test_wrong_address_is_not_a_missing_repository(server: Server) -> None:
    error = server.fails(ArtifactDeployOperation, options(path="a", content="x"))
    assert (error.kind, error.method) == ("not_found", "PUT")
    assert "check url" in server.warnings[0]


@pytest.mark.parametrize("status", [400, 404, 405])
def test_unlistable_repository_is_written_to(server: Server, status: int) -> None:
    for name in ("GET /api/repositories/r", "GET /api/repositories"):
        server.on[name] = Reply(status)
    server.on["PUT /r/a"] = stored("x")
    plan, values = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert plan.changed
    assert [artifact["path"] for artifact in values["artifacts"]] == ["a"]
    assert server.warnings[0].startswith("cannot read the repository 'r'")


def test_repository_list_is_used_without_licence(server: Server) -> None:
    server.on["GET /api/repositories/r"] = Reply(400, "available only in Artifactory Pro")
    server.on["GET /api/repositories"] = Reply(body='[{"key": "r", "type": "LOCAL"}]')
    server.on["PUT /r/a"] = stored("x")
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert plan.changed


def test_different_stored_content_is_an_error(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["PUT /r/a"] = [Reply(404), stored("y")]
    error = server.fails(ArtifactDeployOperation, options(path="a", content="x"))
    assert error.kind == "failed"
    assert sums("y")["sha256"] in error.message
    assert error.detail is not None
    assert sums("y")["sha1"] in error.detail


def test_listing_is_read_if_head_is_not_supported(server: Server) -> None:
    server.dialect = "generic"
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "type": "LOCAL"})
    server.on["PUT /r/d/a"] = Reply(201)
    server.on["GET /api/storage/r/d?list"] = Reply(body={"files": [{"uri": "/a"}]})
    plan, values = server.run(ArtifactDeployOperation, options(path="d/a", content="x"))
    assert plan.changed
    assert actions(values) == [("d/a", "uploaded")]
    server.on["GET /api/storage/r?list"] = Reply(body={"files": []})
    for listed in (Reply(body={"files": []}), Reply(404), Reply(body={"files": [{"uri": "/b"}]})):
        server.on["GET /api/storage/r/d?list"] = listed
        error = server.fails(ArtifactDeployOperation, options(path="d/a", content="x"))
        assert error.kind == "failed"
        assert "does not exist" in error.message


@pytest.mark.parametrize("path", ["a", "d/a"])
def test_empty_listings_prove_nothing(server: Server, path: str) -> None:
    server.dialect = "generic"
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "type": "LOCAL"})
    server.on[f"PUT /r/{path}"] = Reply(201)
    plan, values = server.run(ArtifactDeployOperation, options(path=path, content="x"))
    assert plan.changed
    assert actions(values) == [(path, "uploaded")]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ("<html><body>Welcome</body></html>", "protocol"),
        ("<div>Welcome</div>", "protocol"),
        ('<html><form><input type="password"></form></html>', "auth"),
        ('{"errors": [{"status": 400, "message": "no"}]}', "rejected"),
    ],
)
def test_error_in_a_200_is_an_error(server: Server, response: str, kind: str) -> None:
    server.dialect = "generic"
    server.on["HEAD /r/a"] = Reply(405)
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["PUT /r/a"] = Reply(200, response)
    assert server.fails(ArtifactDeployOperation, options(path="a", content="x")).kind == kind


def test_missing_delete_permission_prevents_overwriting(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a"] = head("old")
    said = {"errors": [{"status": 403, "message": "(user: 'x' needs DELETE permission)"}]}
    server.on["PUT /r/a"] = Reply(403, said)
    error = server.fails(ArtifactDeployOperation, options(path="a", content="x"))
    assert error.kind == "permission"
    assert "needs DELETE permission" in error.message
    assert error.message.endswith("overwriting it requires the permission to delete")


def test_lost_response_is_verified_and_not_resent(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a"] = [Reply(404), head("x")]
    server.on["PUT /r/a"] = [Reply(404), Reply(cut=True)]
    _ignored, values = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert actions(values) == [("a", "uploaded")]
    assert server.asked.count("PUT /r/a") == 2
    server.on["HEAD /r/a"] = Reply(404)
    server.on["PUT /r/a"] = [Reply(404), Reply(cut=True)]
    error = server.fails(ArtifactDeployOperation, options(path="a", content="x"))
    assert error.kind == "network"
    assert error.outcome_unknown


def test_lost_response_to_checksum_deployment_is_followed_by_the_bytes(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["HEAD /r/a"] = Reply(404)
    server.on["PUT /r/a"] = [Reply(cut=True), stored("x")]
    _ignored, values = server.run(ArtifactDeployOperation, options(path="a", content="x"))
    assert actions(values) == [("a", "uploaded")]
    assert server.asked == [
        "GET /api/repositories/r",
        "HEAD /r/a",
        "PUT /r/a",
        "HEAD /r/a",
        "PUT /r/a",
    ]


@pytest.mark.parametrize(("option", "asked"), [(None, 13), (True, 100), (False, 0)])
def test_unknown_small_files_are_sent_without_checksum_deployment(
    server: Server, tmp_path: Path, option: bool | None, asked: int
) -> None:
    for number in range(100):
        (tmp_path / f"{number:02}.txt").write_text(f"text {number}")

    def put(seen: Seen) -> Reply:
        by_checksum = seen.headers.get("X-Checksum-Deploy") == "true"
        return Reply(404) if by_checksum else stored(seen.body.decode())

    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r/t?list"] = Reply(404)
    server.on.update({f"PUT /r/t/{number:02}.txt": put for number in range(100)})
    given = options(path="t", src=f"{tmp_path}/", parallel=1, checksum_deploy=option)
    _plan, values = server.run(ArtifactDeployOperation, given)
    assert {action for _path, action in actions(values)} == {"uploaded"}
    asking = [seen for seen in server.stub.seen if "X-Checksum-Deploy" in seen.headers]
    assert len(asking) == asked


def test_known_file_resumes_checksum_deployment(server: Server, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"text {number}")

    def put(seen: Seen) -> Reply:
        if "X-Checksum-Deploy" not in seen.headers:
            return stored(seen.body.decode())
        return stored("text 9") if seen.path.endswith("/09.txt") else Reply(404)

    server.on["GET /api/repositories/r"] = LOCAL
    server.on.update({f"PUT /r/t/{number:02}.txt": put for number in range(20)})
    given = options(path="t", src=f"{tmp_path}/", parallel=1)
    _plan, values = server.run(ArtifactDeployOperation, given)
    assert [path for path, action in actions(values) if action == "checksum_deployed"] == [
        "t/09.txt"
    ]
    asking = [seen for seen in server.stub.seen if "X-Checksum-Deploy" in seen.headers]
    assert len(asking) == 20


def test_known_files_after_many_unknown_ones_are_found(server: Server, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.txt").write_text(f"text {number}")

    def put(seen: Seen) -> Reply:
        if "X-Checksum-Deploy" not in seen.headers:
            return stored(seen.body.decode())
        number = int(seen.path[-6:-4])
        return Reply(404) if number < 12 else stored(f"text {number}")

    server.on["GET /api/repositories/r"] = LOCAL
    server.on.update({f"PUT /r/t/{number:02}.txt": put for number in range(40)})
    given = options(path="t", src=f"{tmp_path}/", parallel=1)
    _plan, values = server.run(ArtifactDeployOperation, given)
    expected = [(f"t/{n:02}.txt", "uploaded" if n < 19 else "checksum_deployed") for n in range(40)]
    assert actions(values) == expected


def test_large_files_always_try_checksum_deployment(server: Server, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.bin").write_bytes(bytes([number]) * 64 * 1024)
    server.on["GET /api/repositories/r"] = LOCAL

    def put(seen: Seen) -> Reply:
        by_checksum = "X-Checksum-Deploy" in seen.headers
        return Reply(404) if by_checksum else stored(seen.body.decode())

    server.on.update({f"PUT /r/t/{number:02}.bin": put for number in range(12)})
    server.run(ArtifactDeployOperation, options(path="t", src=f"{tmp_path}/"))
    asking = [seen for seen in server.stub.seen if "X-Checksum-Deploy" in seen.headers]
    assert len(asking) == 12


def test_empty_file_is_sent_with_content_length(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["PUT /r/a"] = [Reply(404), stored("")]
    _plan, values = server.run(ArtifactDeployOperation, options(path="a", content=""))
    assert actions(values) == [("a", "uploaded")]
    sent = server.stub.seen[-1]
    assert sent.headers["Content-Length"] == "0"
    assert "Transfer-Encoding" not in sent.headers


# --- properties


def test_properties_of_an_unchanged_file_are_set(server: Server) -> None:
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["PUT /api/storage/r/a?properties=k=1,2"] = Reply(204)
    server.on["GET /api/storage/r/a?properties"] = [
        Reply(body={"properties": {"k": ["1"], "other": ["o"]}}),
        Reply(body={"properties": {"k": ["2", "1"], "other": ["o"]}}),
    ]
    wanted = options(path="a", content="x", properties={"k": ["1", "2"]})
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert actions(values) == [("a", "properties")]
    assert plan.before["r/a"]["properties"] == {"k": ["1"]}
    assert plan.after["r/a"]["properties"] == {"k": ["1", "2"]}
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert not plan.changed
    assert server.asked[-2:] == ["HEAD /r/a", "GET /api/storage/r/a?properties"]


def test_unreadable_properties_are_set(server: Server) -> None:
    server.dialect = "generic"
    server.on["HEAD /r/a"] = head("x")
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "type": "LOCAL"})
    server.on["PUT /storage/r/a?properties=k=1"] = Reply(204)
    plan, values = server.run(
        ArtifactDeployOperation, options(path="a", content="x", properties={"k": "1"})
    )
    assert plan.changed
    assert actions(values) == [("a", "properties")]


@pytest.mark.parametrize("dialect", ["generic", "auto"])
@pytest.mark.parametrize("status", [404, 405])
def test_plain_store_rejects_properties_before_any_write(
    server: Server, dialect: str, status: int
) -> None:
    """Verify that the error comes before anything is sent, for every item of a loop."""
    server.dialect = dialect
    server.on["GET /api/repositories"] = Reply(status)
    server.on["PUT /store/a"] = server.on["PUT /storage/store/a?properties=k=1"] = Reply(201)
    given = options(repo="store", path="a", content="x")
    for _item in range(2):
        error = server.fails(ArtifactDeployOperation, {**given, "properties": {"k": "1"}})
        assert (error.kind, "a plain file store" in error.message) == ("rejected", True)
    assert not [name for name in server.asked if name.startswith("PUT")]
    plan, _values = server.run(ArtifactDeployOperation, given)
    assert plan.changed


# --- folders


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        path = tmp_path / "dist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "dist"


LISTING = "GET /api/storage/r/t/1?list&deep=1"


def test_folder_is_planned_with_one_listing(server: Server, dist: Path) -> None:
    files = [{"uri": f"/{name}", **entry(name)} for name in ("a.txt", "b.txt", "sub/c.txt")]
    files[0].update(size="5", folder="false")
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[LISTING] = Reply(body={"files": files})
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="t/1", src=f"{dist}/"))
    assert not plan.changed
    assert server.asked == ["GET /api/repositories/r", LISTING]


def test_long_listing_is_read_completely(server: Server) -> None:
    names = [f"ä{number}.txt" for number in range(1000)]
    server.on["GET /api/storage/r/t?list"] = Reply(
        body={"files": [{"uri": f"/{name}", **entry(name)} for name in names]}
    )
    found = listing.listing(server.client(), "r", "t")
    assert found == {
        f"t/{name}": listing.StoredItem(len(name), sums(name)["sha256"], sums(name)["sha1"])
        for name in names
    }


@pytest.mark.parametrize(
    ("body", "means"),
    [('{"files": null}', None), ('{"uri": "x"}', None), ('\ufeff{"files": []}', {})],
)
def test_listing_of_unusual_shape_is_parsed(
    server: Server, body: str, means: dict[str, Any] | None
) -> None:
    server.on["GET /api/storage/r/t?list"] = Reply(body=body)
    assert listing.listing(server.client(), "r", "t") == means


def test_truncated_listing_is_an_error(server: Server) -> None:
    server.on["GET /api/storage/r/t?list"] = Reply(body='{"files": [{"uri": "/a"}, {"uri": "/b"}')
    with pytest.raises(ToolchainError, match="instead of JSON"):
        listing.listing(server.client(), "r", "t")


def test_only_different_files_are_sent(server: Server, dist: Path) -> None:
    files = [{"uri": "/a.txt", **entry("a.txt")}, {"uri": "/b.txt", **entry("other")}]
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[LISTING] = Reply(body={"files": files})
    server.on["PUT /r/t/1/b.txt"] = [Reply(404), stored("b.txt")]
    server.on["PUT /r/t/1/sub/c.txt"] = stored("sub/c.txt")
    plan, values = server.run(ArtifactDeployOperation, options(path="t/1", src=f"{dist}/"))
    assert actions(values) == [
        ("t/1/a.txt", "unchanged"),
        ("t/1/b.txt", "uploaded"),
        ("t/1/sub/c.txt", "checksum_deployed"),
    ]
    assert values["uploaded_bytes"] == 5
    assert sorted(plan.after) == ["r/t/1/b.txt", "r/t/1/sub/c.txt"]
    assert sorted(plan.before) == ["r/t/1/b.txt"]


def test_names_without_digests_are_checked_individually(server: Server, dist: Path) -> None:
    server.dialect = "generic"
    names = ("a.txt", "b.txt", "sub/c.txt")
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "type": "LOCAL"})
    server.on[LISTING] = Reply(body={"files": [{"uri": f"/{name}"} for name in names]})
    for name in names:
        server.on[f"HEAD /r/t/1/{name}"] = head(name)
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="t/1", src=f"{dist}/"))
    assert not plan.changed
    assert len(server.asked) <= 5


def test_all_files_are_sent_without_checksums(server: Server, dist: Path) -> None:
    server.dialect = "generic"
    names = ("a.txt", "b.txt", "sub/c.txt")
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "type": "LOCAL"})
    server.on[LISTING] = Reply(body={"files": [{"uri": f"/{name}"} for name in names]})
    for name in names:
        server.on[f"HEAD /r/t/1/{name}"] = Reply(200, name)
        server.on[f"PUT /r/t/1/{name}"] = Reply(201)
    plan, values = server.run(ArtifactDeployOperation, options(path="t/1", src=f"{dist}/"))
    assert plan.changed
    assert {action for _ignored, action in actions(values)} == {"uploaded"}
    assert len([name for name in server.asked if name.startswith("HEAD")]) == 1
    assert not any("X-Checksum-Sha1" in seen.headers for seen in server.stub.seen)


def test_failure_reports_the_files_already_deployed(server: Server, dist: Path) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[LISTING] = Reply(404, {"errors": [{"message": "Unable to find item"}]})
    server.on["PUT /r/t/1/a.txt"] = stored("a.txt")
    server.on["PUT /r/t/1/b.txt"] = Reply(413, "quota exceeded")
    server.on["PUT /r/t/1/sub/c.txt"] = stored("sub/c.txt")
    wanted = options(path="t/1", src=f"{dist}/", parallel=1, checksum_deploy=False)
    error = server.fails(ArtifactDeployOperation, wanted)
    assert "quota exceeded" in error.message
    assert ("t/1/a.txt", "uploaded") in actions(error.result)
    assert "t/1/b.txt" not in [path for path, _ignored in actions(error.result)]


def test_empty_list_of_artifacts_is_unchanged(server: Server) -> None:
    plan, values = server.run(ArtifactDeployOperation, options(artifacts=[]))
    assert not plan.changed
    assert values == {"artifacts": [], "uploaded_bytes": 0}


def test_listed_files_missing_for_head_are_sent(server: Server, dist: Path) -> None:
    names = ("a.txt", "b.txt", "sub/c.txt")
    server.dialect = "generic"
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[LISTING] = Reply(body={"files": [{"uri": f"/{name}"} for name in names]})
    wanted = options(path="t/1", src=f"{dist}/")
    plan, _ignored = server.run(ArtifactDeployOperation, wanted, check=True)
    assert plan.action == "update"
    assert len([name for name in server.asked if name.startswith("HEAD")]) == 1


# --- archives


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "docs.zip", "w") as zipped:
        zipped.writestr("index.html", "index")
        zipped.writestr("img/logo.svg", "logo")
    return tmp_path / "docs.zip"


DOCS = "GET /api/storage/r/docs?list&deep=1"


def listed(*entries: tuple[str, str]) -> Reply:
    return Reply(body={"files": [{"uri": f"/{name}", **entry(text)} for name, text in entries]})


@pytest.mark.parametrize(
    ("dialect", "target"), [("jfrog", "PUT /r/docs/docs.zip"), ("generic", "PUT /r/docs/")]
)
def test_archive_is_deployed_once(server: Server, archive: Path, dialect: str, target: str) -> None:
    server.dialect = dialect
    all_there = listed(("index.html", "index"), ("img/logo.svg", "logo"))
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[DOCS] = [Reply(404), all_there]
    server.on[target] = Reply(200)
    wanted = options(path="docs", src=str(archive), explode=True)
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert plan.action == "create"
    assert actions(values) == [("docs/index.html", "exploded"), ("docs/img/logo.svg", "exploded")]
    assert values["uploaded_bytes"] == archive.stat().st_size
    [sent] = [seen for seen in server.stub.seen if seen.method == "PUT"]
    assert sent.headers["X-Explode-Archive-Atomic"] == "true"
    assert sent.body == archive.read_bytes()
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert not plan.changed
    assert {action for _ignored, action in actions(values)} == {"unchanged"}


def test_generic_server_gets_a_tar_file_with_compression(server: Server, tmp_path: Path) -> None:
    server.dialect, archive = "generic", tmp_path / "docs.tar"
    with tarfile.open(archive, "w") as tar:
        for name, text in (("index.html", "index"), ("img/logo.svg", "logo")):
            (tmp_path / text).write_text(text)
            tar.add(tmp_path / text, name)
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[DOCS] = [Reply(404), listed(("index.html", "index"), ("img/logo.svg", "logo"))]
    server.on["PUT /r/docs/"] = Reply(200)
    wanted = options(path="docs", src=str(archive), explode=True)
    _plan, values = server.run(ArtifactDeployOperation, wanted)
    [sent] = [seen for seen in server.stub.seen if seen.method == "PUT"]
    assert gzip.decompress(sent.body) == archive.read_bytes()
    assert values["uploaded_bytes"] == len(sent.body)


@pytest.mark.parametrize(
    "after",
    [
        Reply(404),
        listed(("index.html", "index")),
        listed(("index.html", "index"), ("img/logo.svg", "?")),
    ],
)
def test_missing_archive_entries_are_an_error(server: Server, archive: Path, after: Reply) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[DOCS] = [Reply(404), after]
    server.on["PUT /r/docs/docs.zip"] = Reply(200, "made a folder")
    error = server.fails(
        ArtifactDeployOperation, options(path="docs", src=str(archive), explode=True)
    )
    assert error.kind == "failed"
    assert "docs/img/logo.svg" in error.message
    assert error.detail == "made a folder"
    assert error.message.endswith("The server reported: made a folder")


# --- deleting


def test_item_is_deleted(server: Server) -> None:
    listing = "GET /api/storage/r/a?list&listFolders=1"
    server.on["GET /api/repositories/r"] = LOCAL
    server.on[listing] = [listed(("b.txt", "x")), listed()]
    server.on["DELETE /r/a/b.txt"] = Reply(204)
    wanted = options(path="/a/b.txt", state="absent")
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert plan.action == "delete"
    assert plan.before == {"r/a/b.txt": {"size": 1, "sha256": sums("x")["sha256"]}}
    assert actions(values) == [("a/b.txt", "deleted")]
    plan, values = server.run(ArtifactDeployOperation, wanted)
    assert not plan.changed
    assert actions(values) == [("a/b.txt", "absent")]
    assert server.asked.count("DELETE /r/a/b.txt") == 1


@pytest.mark.parametrize("response", [Reply(404), Reply(body=json.dumps([{"key": "other"}]))])
def test_unknown_repository_or_server_is_not_absent(server: Server, response: Reply) -> None:
    server.on["GET /api/repositories"] = response
    error = server.fails(ArtifactDeployOperation, options(path="a/b.txt", state="absent"))
    assert error.kind == "not_found"
    assert len(server.asked) <= 3
    assert server.warnings == []


def test_item_is_deleted_if_virtual_repository_lists_nothing(server: Server) -> None:
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on["GET /api/storage/r/a?list&listFolders=1"] = listed(("b.txt", "x"))
    server.on["DELETE /r/a/b.txt"] = Reply(204)
    plan, values = server.run(
        ArtifactDeployOperation, options(repo="v", path="a/b.txt", state="absent")
    )
    assert plan.changed
    assert values["artifacts"][0]["repo"] == "r"


def test_folder_known_only_by_its_files_is_deleted(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r/a?list&listFolders=1"] = listed(("b/c.txt", "x"))
    server.on["DELETE /r/a/b"] = Reply(204)
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="a/b", state="absent"))
    assert plan.before == {"r/a/b": {"type": "folder"}}


def test_listing_of_the_root_may_need_a_slash(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r/?list&listFolders=1"] = listed(("b.txt", "x"))
    server.on["DELETE /r/b.txt"] = Reply(204)
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="b.txt", state="absent"))
    assert plan.changed


def test_malformed_listing_does_not_prove_absence(server: Server) -> None:
    server.on["GET /api/storage/r/a?list&listFolders=1"] = Reply(body={"error": "no"})
    server.on["HEAD /r/a/b.txt"] = head("x")
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["DELETE /r/a/b.txt"] = Reply(204)
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="a/b.txt", state="absent"))
    assert plan.changed


def test_unverifiable_item_is_deleted(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r/a?list&listFolders=1"] = Reply(405)
    server.on["HEAD /r/a/b.txt"] = Reply(405)
    server.on["DELETE /r/a/b.txt"] = [Reply(204), Reply(404)]
    wanted = options(path="a/b.txt", state="absent")
    _ignored, values = server.run(ArtifactDeployOperation, wanted)
    assert actions(values) == [("a/b.txt", "deleted")]
    _ignored, values = server.run(ArtifactDeployOperation, wanted)
    assert values["changed"] is False
    assert actions(values) == [("a/b.txt", "absent")]


def test_deleted_item_still_listed_is_an_error(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r/a?list&listFolders=1"] = listed(("b.txt", "x"))
    server.on["DELETE /r/a/b.txt"] = Reply(404)
    error = server.fails(ArtifactDeployOperation, options(path="a/b.txt", state="absent"))
    assert error.kind == "not_found"


def test_absent_item_of_a_virtual_repository_is_unchanged(server: Server) -> None:
    server.on["GET /api/repositories/v"] = VIRTUAL
    server.on["GET /api/storage/v/a?list&listFolders=1"] = listed(("b.txt", "x"))
    server.on["GET /api/storage/r/a?list&listFolders=1"] = listed()
    plan, _ignored = server.run(
        ArtifactDeployOperation, options(repo="v", path="a/b.txt", state="absent")
    )
    assert not plan.changed
    assert "so it is not deleted" in server.warnings[0]


def test_deleting_a_whole_repository_needs_force(server: Server) -> None:
    for path in ("", "/", "//"):
        error = server.fails(ArtifactDeployOperation, options(path=path, state="absent"))
        assert error.kind == "invalid"
        assert "force" in error.message
    assert server.asked == []
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r?list&listFolders=1"] = listed(("b.txt", "x"))
    server.on["DELETE /r/"] = Reply(204)
    plan, _ignored = server.run(ArtifactDeployOperation, options(state="absent", force=True))
    assert plan.action == "delete"


def test_lost_response_to_deletion_is_verified(server: Server) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.on["GET /api/storage/r?list&listFolders=1"] = [listed(("b.txt", "x")), listed()]
    server.on["DELETE /r/b.txt"] = Reply(cut=True)
    plan, _ignored = server.run(ArtifactDeployOperation, options(path="b.txt", state="absent"))
    assert plan.changed
    assert server.asked.count("DELETE /r/b.txt") == 1


# --- options


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a/../b", "content": "x"},
        {"path": "../b", "state": "absent"},
        {"path": "a/*.txt", "state": "absent"},
        {"path": "a/?.txt", "state": "absent"},
        {"path": "a", "content": "x", "parallel": 0},
        {"path": "a", "content": "x", "force": True},
        {"path": "a", "content": "x", "explode": True},
        {"path": "a", "src": "/nowhere.zip", "explode": True},
        {"path": "a", "content": "x", "state": "absent"},
        {"path": "a", "properties": {"k": "v"}, "state": "absent"},
        {"path": "a", "explode": True, "state": "absent"},
        {"path": "a", "content": "x", "properties": {"a b": "c"}},
        {"repo": "", "path": "a", "content": "x"},
        {"repo": "r/a", "path": "a", "content": "x"},
    ],
)
def test_contradictory_options_for_deletion_are_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(ArtifactDeployOperation, options(**given)).kind == "invalid"
    assert server.asked == []


def test_checksum_deployment_is_not_used_if_the_header_may_be_ignored(server: Server) -> None:
    server.dialect = "generic"
    error = server.fails(
        ArtifactDeployOperation, options(path="a", content="x", checksum_deploy=True)
    )
    assert error.kind == "invalid"
    assert server.asked == []


def test_api_key_header_depends_on_dialect(server: Server) -> None:
    assert server.client().dialect.api_key_header == "X-JFrog-Art-Api"
    server.dialect = "generic"
    assert server.client().dialect.api_key_header == "X-Acme-Art-Api"


@pytest.mark.parametrize("vendor", ["", "My Vendor", "Ünic", "a\nb", "a:b"])
def test_vendor_invalid_in_a_header_name_is_rejected(vendor: str) -> None:
    with pytest.raises(ToolchainError, match="vendor") as caught:
        dialect_of({"dialect": "generic", "vendor": vendor})
    assert caught.value.kind == "invalid"


def test_large_file_is_streamed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(5_000_000))
    server.on["GET /api/repositories/r"] = LOCAL
    seen: list[Seen] = []

    def put(request: Seen) -> Reply:
        seen.append(request)
        return Reply(201, {"checksums": {"sha256": hashlib.sha256(request.body).hexdigest()}})

    server.on["PUT /r/big.bin"] = put
    wanted = options(src=str(tmp_path / "big.bin"), checksum_deploy=False)
    server.run(ArtifactDeployOperation, wanted)
    assert seen[0].headers["Content-Length"] == "5000000"
    assert "Transfer-Encoding" not in seen[0].headers
