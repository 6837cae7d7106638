# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox's repository manager: a third-party client for the `real` flavour, plain
requests for both.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import requests
from artifactory import ArtifactoryBuildManager, ArtifactoryPath

from sandbox.client import Sandbox
from tests.integration.sandbox.clients import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOGIN = ("deployer", "deployer-password")
ADMIN = ("admin", "admin-password")
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
STAGING, RELEASE = "generic-staging-local", "generic-release-local"


class Repo(Client):
    """Send requests as a user."""

    def __init__(self, sandbox: Sandbox, login: tuple[str, str] | None = LOGIN) -> None:
        super().__init__(sandbox, "repo", login)

    def listing(self, path: str, **query: Any) -> list[str]:
        response = self("GET", f"/api/storage/{path}", params={"list": "", **query})
        assert response.status_code == 200, response.text
        return sorted(entry["uri"] for entry in response.json()["files"])


def path_of(sandbox: Sandbox, path: str) -> ArtifactoryPath:
    return ArtifactoryPath(f"{sandbox.urls['repo']}/{path}", auth=LOGIN)


def archive(kind: str) -> bytes:
    content = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(content, "w") as file:
            file.writestr("doc/", "")
            file.writestr("doc/a.txt", "a")
            file.writestr("b.txt", "b")
    else:
        with tarfile.open(fileobj=content, mode="w:gz" if kind != "tar" else "w") as tar:
            for name, text in (("./doc/a.txt", b"a"), ("b.txt", b"b")):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text))
    return content.getvalue()


def publish(repo: Repo, name: str, number: str) -> None:
    info = {"name": name, "number": number, "started": "2024-01-02T03:04:05.678+0000"}
    assert repo("PUT", "/api/build", json=info).status_code == 204


# --- third-party client ---------------------------------------------------------------------------


def test_client_deploys_and_reads(real: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "tool-1.0.txt"
    source.write_text("content of the tool")
    folder = path_of(real, f"{STAGING}/tool/1.0")
    folder.mkdir()
    folder.deploy_file(str(source), parameters={"team": "build", "stage": ["a", "b"]})
    item = folder / "tool-1.0.txt"
    stat = item.stat()
    assert stat.size == 19
    assert stat.sha256 == hashlib.sha256(b"content of the tool").hexdigest()
    assert stat.created_by == "deployer"
    assert not stat.is_dir
    assert item.read_text() == "content of the tool"
    assert [entry.name for entry in folder] == ["tool-1.0.txt"]
    assert {key: sorted(v) for key, v in item.properties.items()} == {
        "team": ["build"],
        "stage": ["a", "b"],
    }
    virtual = path_of(real, "generic/tool/1.0/tool-1.0.txt")
    assert virtual.exists()


def test_client_handles_properties(real: Sandbox) -> None:
    item = path_of(real, f"{STAGING}/a.txt")
    item.write_text("x")
    assert item.properties == {}
    odd = "a,b=c|d;e ü"
    item.set_properties({"one": "1", "two": [odd, "plain"]})
    assert {key: sorted(v) for key, v in item.properties.items()} == {
        "one": ["1"],
        "two": [odd, "plain"],
    }
    item.update_properties({"one": "2"})
    assert item.properties["one"] == ["2"]
    item.del_properties(["two"])
    assert item.properties == {"one": ["2"]}


def test_client_deploys_by_checksum(real: Sandbox) -> None:
    path_of(real, f"{STAGING}/a.txt").write_text("known")
    copy = path_of(real, f"{STAGING}/copy.txt")
    copy.deploy_by_checksum(sha1=hashlib.sha1(b"known").hexdigest())
    assert copy.read_text() == "known"


def test_client_deletes(real: Sandbox) -> None:
    item = path_of(real, f"{STAGING}/folder/a.txt")
    item.parent.mkdir()
    item.write_text("x")
    assert item.exists()
    path_of(real, f"{STAGING}/folder").rmdir()
    assert not item.exists()
    with pytest.raises(FileNotFoundError):
        item.unlink()


def test_client_queries_items(real: Sandbox) -> None:
    for name in ("a.jar", "b.jar", "c.txt"):
        path_of(real, f"{STAGING}/lib/{name}").write_text(name)
    path_of(real, f"{STAGING}/lib/b.jar").set_properties({"stage": "rc"})
    root = path_of(real, "")
    found = root.aql(
        "items.find",
        {"repo": STAGING, "$or": [{"name": {"$match": "*.jar"}}, {"depth": 7}]},
        ".include",
        ["repo", "path", "name", "size"],
        ".sort",
        {"$desc": ["name"]},
    )
    assert found == [
        {"repo": STAGING, "path": "lib", "name": "b.jar", "size": 5},
        {"repo": STAGING, "path": "lib", "name": "a.jar", "size": 5},
    ]
    assert [row["name"] for row in root.aql("items.find", {"@stage": "rc"})] == ["b.jar"]
    old = root.aql("items.find", {"repo": STAGING, "created": {"$before": "1d"}})
    assert old == []


def test_client_promotes_a_build(real: Sandbox) -> None:
    publish(Repo(real), "app", "7")
    item = path_of(real, f"{STAGING}/app/app.bin")
    item.write_text("binary")
    item.set_properties({"build.name": "app", "build.number": "7"})
    manager = ArtifactoryBuildManager(real.urls["repo"], auth=LOGIN)
    assert [run.run_number for run in manager.get_build_runs("app")] == ["7"]
    assert "statuses" not in manager.get_build_info("app", "7")["buildInfo"]
    for _promotion in range(2):
        manager.promote_build(
            "app",
            "7",
            "ci",
            {"approved": ["yes"]},
            status="released",
            target_repo=RELEASE,
            require_copy=False,
        )
    statuses = manager.get_build_info("app", "7")["buildInfo"]["statuses"]
    assert [(entry["status"], entry["repository"], entry["ciUser"]) for entry in statuses] == [
        ("released", RELEASE, "ci")
    ] * 2
    assert not item.exists()
    moved = path_of(real, f"{RELEASE}/app/app.bin")
    assert moved.read_text() == "binary"
    assert moved.properties["approved"] == ["yes"]


def test_client_promotes_an_image(real: Sandbox) -> None:
    content = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST_TYPE}).encode()
    image = {"repo": "docker-staging-local", "image": "team/app", "tag": "1.0"}
    real.seed({"repo": {"images": [{**image, "content": content.decode()}]}})
    root = path_of(real, "")
    root.promote_docker_image(
        "docker-staging-local", "docker-release-local", "team/app", "1.0", copy=True
    )
    repo = Repo(real)
    head = repo(
        "HEAD",
        "/api/docker/docker-release-local/v2/team/app/manifests/1.0",
        headers={"Accept": MANIFEST_TYPE},
    )
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    assert head.headers["Docker-Content-Digest"] == digest
    root.promote_docker_image(
        "docker-staging-local", "docker-release-local", "team/app", "1.0", target_tag="1"
    )
    tags = repo("GET", "/api/docker/docker-release-local/v2/team/app/tags/list").json()
    assert tags == {"name": "team/app", "tags": ["1", "1.0"]}
    gone = repo("GET", "/api/docker/docker-staging-local/v2/team/app/tags/list")
    assert gone.status_code == 404
    assert gone.json()["errors"][0]["code"] == "NAME_UNKNOWN"


# --- login ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flavour", "headers", "status"),
    [
        ("real", {}, 401),
        ("real", {"Authorization": "Bearer repo-token-1234567890"}, 200),
        ("real", {"Authorization": "Bearer wrong"}, 401),
        ("real", {"X-JFrog-Art-Api": "repo-api-key-1234567890"}, 200),
        ("real", {"X-JFrog-Art-Api": "wrong"}, 403),
        ("real", {"X-Vendor-Art-Api": "repo-api-key-1234567890"}, 401),
        ("written", {"X-Vendor-Art-Api": "repo-api-key-1234567890"}, 200),
        ("written", {"X-JFrog-Art-Api": "repo-api-key-1234567890"}, 401),
    ],
)
def test_logins_are_checked(
    fresh: Callable[[str], Sandbox], flavour: str, headers: dict[str, str], status: int
) -> None:
    response = Repo(fresh(flavour), login=None)("GET", "/api/repositories", headers=headers)
    assert response.status_code == status
    assert ("WWW-Authenticate" in response.headers) is (status == 401)
    if status != 200:
        assert response.json()["errors"][0]["status"] == status


def test_reader_cannot_write(real: Sandbox) -> None:
    Repo(real)("PUT", f"/{STAGING}/a.txt", data=b"x")
    reader = Repo(real, login=("reader", "reader-password"))
    assert reader("GET", f"/{STAGING}/a.txt").content == b"x"
    assert reader("PUT", f"/{STAGING}/b.txt", data=b"x").status_code == 403
    assert reader("DELETE", f"/{STAGING}/a.txt").status_code == 403


# --- deploying ------------------------------------------------------------------------------------


def test_head_returns_checksums(real: Sandbox) -> None:
    repo = Repo(real)
    created = repo("PUT", f"/{STAGING}/d/a.txt", data=b"abc")
    assert created.status_code == 201
    assert created.json()["size"] == "3"
    head = repo("HEAD", f"/{STAGING}/d/a.txt")
    assert head.headers["X-Checksum-Sha256"] == hashlib.sha256(b"abc").hexdigest()
    assert head.headers["ETag"] == head.headers["X-Checksum-Sha1"]
    assert head.headers["Content-Length"] == "3"
    assert repo("HEAD", f"/{STAGING}/d/missing").status_code == 404
    part = repo("GET", f"/{STAGING}/d/a.txt", headers={"Range": "bytes=1-"})
    assert (part.status_code, part.content) == (206, b"bc")
    assert repo("GET", f"/{STAGING}").text.count("href") == 1


def test_documented_server_returns_no_checksums(written: Sandbox) -> None:
    repo = Repo(written)
    assert repo("PUT", f"/{STAGING}/a.txt", data=b"abc").status_code == 201
    assert "X-Checksum-Sha256" not in repo("HEAD", f"/{STAGING}/a.txt").headers
    written.settings("repo", head_checksums=True)
    assert "X-Checksum-Sha256" in repo("HEAD", f"/{STAGING}/a.txt").headers
    assert repo("GET", f"/api/storage/{STAGING}/a.txt?properties").status_code == 404
    assert repo("GET", f"/api/storage/{STAGING}/a.txt").status_code == 404


def test_wrong_checksum_is_rejected_and_nothing_stored(real: Sandbox) -> None:
    repo = Repo(real)
    response = repo("PUT", f"/{STAGING}/a.txt", data=b"abc", headers={"X-Checksum-Sha1": "0" * 40})
    assert response.status_code == 409
    assert "rejected the artifact" in response.json()["errors"][0]["message"]
    assert repo("HEAD", f"/{STAGING}/a.txt").status_code == 404


def test_known_content_is_deployed_by_checksum(real: Sandbox, written: Sandbox) -> None:
    headers = {"X-Checksum-Deploy": "true", "X-Checksum-Sha256": hashlib.sha256(b"k").hexdigest()}
    repo = Repo(real)
    assert repo("PUT", f"/{STAGING}/b.txt", headers=headers).status_code == 404
    repo("PUT", f"/{STAGING}/a.txt", data=b"k")
    assert repo("PUT", f"/{STAGING}/b.txt", headers=headers).status_code == 201
    assert repo("GET", f"/{STAGING}/b.txt").content == b"k"
    # a server that does not know the header stores the empty request body
    repo = Repo(written)
    repo("PUT", f"/{STAGING}/a.txt", data=b"k")
    assert repo("PUT", f"/{STAGING}/c.txt", headers=headers).status_code == 201
    assert repo("GET", f"/{STAGING}/c.txt").content == b""


def test_deploying_to_other_than_a_local_repository_is_rejected(real: Sandbox) -> None:
    repo = Repo(real)
    unknown = repo("PUT", "/nowhere/a.txt", data=b"x")
    assert (unknown.status_code, "Could not find a local repository" in unknown.text) == (404, True)
    without = repo("PUT", "/empty-virtual/a.txt", data=b"x")
    assert (without.status_code, without.headers["Allow"]) == (405, "GET")
    assert repo("PUT", "/generic/a.txt", data=b"x").json()["repo"] == STAGING


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tgz"])
def test_real_server_expands_archive_below_its_folder(real: Sandbox, kind: str) -> None:
    repo = Repo(real)
    headers = {"X-Explode-Archive-Atomic": "true"}
    response = repo("PUT", f"/{STAGING}/x/files.{kind}", data=archive(kind), headers=headers)
    assert response.status_code == 200
    assert repo.listing(f"{STAGING}/x", deep=1) == ["/b.txt", "/doc/a.txt"]
    slash = repo("PUT", f"/{STAGING}/y/", data=archive(kind), headers=headers)
    assert slash.status_code == 201
    assert repo.listing(f"{STAGING}/y", deep=1) == []


def test_zip_names_are_utf8(written: Sandbox) -> None:
    repo = Repo(written)
    headers = {"X-Explode-Archive-Atomic": "true"}
    silent = archive("zip").replace(b"b.txt", "ü.tx".encode())
    assert repo("PUT", f"/{STAGING}/x/", data=silent, headers=headers).status_code == 200
    assert repo.listing(f"{STAGING}/x", deep=1) == ["/doc/a.txt", "/ü.tx"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_documented_server_expands_archive_below_its_path(written: Sandbox, kind: str) -> None:
    repo = Repo(written)
    headers = {"X-Explode-Archive-Atomic": "true"}
    assert repo("PUT", f"/{STAGING}/x/", data=archive(kind), headers=headers).status_code == 200
    assert repo.listing(f"{STAGING}/x", deep=1) == ["/b.txt", "/doc/a.txt"]
    repo("PUT", f"/{STAGING}/y/files.{kind}", data=archive(kind), headers=headers)
    assert repo.listing(f"{STAGING}/y", deep=1) == [f"/files.{kind}"]


def test_broken_archive_stores_nothing(written: Sandbox) -> None:
    repo = Repo(written)
    headers = {"X-Explode-Archive-Atomic": "true"}
    broken = archive("tar.gz")[:-20]
    assert repo("PUT", f"/{STAGING}/x/", data=broken, headers=headers).status_code == 400
    assert repo.listing(STAGING, deep=1) == []
    written.settings("repo", drop_explode=True)
    whole = archive("zip")
    assert repo("PUT", f"/{STAGING}/x/", data=whole, headers=headers).status_code == 200
    assert repo.listing(f"{STAGING}/x", deep=1) == []


def test_items_are_deleted(real: Sandbox) -> None:
    repo = Repo(real)
    repo("PUT", f"/{STAGING}/d/a.txt", data=b"x")
    assert repo("DELETE", f"/{STAGING}/d").status_code == 204
    again = repo("DELETE", f"/{STAGING}/d")
    assert again.status_code == 404
    message = f"Could not locate artifact '{STAGING}:d' (Nothing to delete)."
    assert again.json() == {"errors": [{"status": 404, "message": message}]}
    nowhere = repo("DELETE", "/nowhere/d")
    assert (nowhere.status_code, nowhere.content) == (404, b"")
    admin = Repo(real, ADMIN)
    trash = admin("GET", "/api/storage/auto-trashcan").json()
    assert {"uri": f"/{STAGING}", "folder": True} in trash["children"]
    kept = f"/api/storage/auto-trashcan/{STAGING}/d"
    assert admin("GET", f"{kept}/a.txt").json()["size"] == "1"
    assert admin("GET", kept).status_code == 200
    assert admin("GET", f"{kept}/b.txt").status_code == 404
    assert admin("DELETE", f"/api/trash/clean/{STAGING}/d/a.txt").status_code == 204
    assert admin("DELETE", f"/api/trash/clean/{STAGING}/d/a.txt").status_code == 400


def test_large_upload_is_not_held_in_memory() -> None:
    size = 96 * 1024 * 1024
    block = bytes(1024 * 1024)
    # a new process, because earlier tests may have raised the peak of the shared process
    with Sandbox.start(flavour="real") as sandbox:
        before = peak_memory(sandbox.pid)
        blocks = (block for _index in range(size // len(block)))
        response = Repo(sandbox)("PUT", f"/{STAGING}/large.bin", data=blocks)
        assert response.json()["size"] == str(size)
        assert peak_memory(sandbox.pid) - before < size // 4


def peak_memory(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


# --- listing, information, properties -------------------------------------------------------------


def test_listing_obeys_its_flags(real: Sandbox) -> None:
    repo = Repo(real)
    for path in ("r/a.txt", "r/s/b.txt", "r/s/t/c.txt"):
        repo("PUT", f"/{STAGING}/{path}", data=b"x")
    assert repo.listing(f"{STAGING}/r") == ["/a.txt"]
    assert repo.listing(f"{STAGING}/r", deep=1) == ["/a.txt", "/s/b.txt", "/s/t/c.txt"]
    assert repo.listing(f"{STAGING}/r", deep=1, depth=2) == ["/a.txt", "/s/b.txt"]
    assert repo.listing(f"{STAGING}/r", listFolders=1) == ["/a.txt", "/s"]
    assert repo.listing("generic/r", includeRootPath=1) == ["/", "/a.txt"]
    response = repo("GET", f"/api/storage/{STAGING}/r?list&deep=1&listFolders=1").json()
    folder = next(entry for entry in response["files"] if entry["uri"] == "/s")
    assert (folder["size"], folder["folder"], "sha1" in folder) == (-1, True, False)
    assert repo("GET", f"/api/storage/{STAGING}/r/a.txt?list").status_code == 400
    assert repo("GET", f"/api/storage/{STAGING}/q?list").status_code == 404
    assert repo("GET", f"/api/storage/{STAGING}/r?list&deep=x").status_code == 400
    missing = repo("GET", "/api/storage/generic/q")
    assert (missing.status_code, missing.content) == (404, b"")


def test_documented_listing_has_only_addresses(written: Sandbox) -> None:
    repo = Repo(written)
    repo("PUT", f"/{STAGING}/r/a.txt", data=b"x")
    response = repo("GET", f"/api/storage/{STAGING}/r?list=1")
    assert response.json() == {"files": [{"uri": "/a.txt"}]}


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("k=v1,v2%7Cl=w", {"k": ["v1", "v2"], "l": ["w"]}),
        ("k=a%3Bl=b", {"k": ["a"], "l": ["b"]}),
        ("k=a=b%7Cl=w", {"l": ["w"]}),
        ("k=a%5C=b%5C,c%5C%7Cd%5C%3Be", {"k": ["a=b,c|d;e"]}),
        ("k=", {"k": [""]}),
        ("k=a%5Cb", {"k": ["a\\b"]}),
    ],
)
def test_properties_are_parsed(real: Sandbox, query: str, stored: dict[str, list[str]]) -> None:
    repo = Repo(real)
    repo("PUT", f"/{STAGING}/a.txt", data=b"x")
    item = f"/api/storage/{STAGING}/a.txt"
    assert repo("PUT", f"{item}?properties={query}").status_code == 204
    assert repo("GET", f"{item}?properties").json()["properties"] == stored


def test_property_errors_and_recursion(real: Sandbox) -> None:
    repo = Repo(real)
    repo("PUT", f"/{STAGING}/d/a.txt", data=b"x")
    folder, item = f"/api/storage/{STAGING}/d", f"/api/storage/{STAGING}/d/a.txt"
    none = repo("GET", f"{item}?properties")
    assert (none.status_code, "No properties could be found" in none.text) == (404, True)
    assert repo("PUT", f"{folder}?properties=b%40d=v").status_code == 400
    assert repo("PUT", f"{folder}/missing?properties=k=v").status_code == 404
    assert repo("PUT", f"{folder}?properties=own=v&recursive=0").status_code == 204
    assert repo("PUT", f"{folder}?properties=all=v").status_code == 204
    assert repo("GET", f"{item}?properties").json()["properties"] == {"all": ["v"]}
    assert repo("DELETE", f"{item}?properties=all").status_code == 204
    assert repo("GET", f"{item}?properties").status_code == 404


def test_documented_properties_are_recursive_only_on_request(written: Sandbox) -> None:
    repo = Repo(written)
    repo("PUT", f"/{STAGING}/d/a.txt", data=b"x")
    assert repo("PUT", f"/storage/{STAGING}/d?properties=own=v").status_code == 204
    assert repo("PUT", f"/storage/{STAGING}/d?properties=all=v&recursive=1").status_code == 204
    assert repo("PUT", f"/api/storage/{STAGING}/d?properties=all=v").status_code in (404, 405)
    written.settings("repo", flavour="real")
    found = repo("GET", f"/api/storage/{STAGING}/d/a.txt?properties").json()["properties"]
    assert found == {"all": ["v"]}


def test_repositories_are_listed(real: Sandbox) -> None:
    repo = Repo(real)
    keys = {row["key"] for row in repo("GET", "/api/repositories?type=virtual").json()}
    assert keys == {"generic", "empty-virtual"}
    one = repo("GET", "/api/repositories/generic").json()
    assert (one["rclass"], one["defaultDeploymentRepo"]) == ("virtual", STAGING)
    assert repo("GET", "/api/repositories/nowhere").status_code == 400
    real.settings("repo", flavour="written")
    assert repo("GET", "/api/repositories/generic").json() == {
        "key": "generic",
        "type": "VIRTUAL",
        "defaultDeploymentRepo": STAGING,
    }
    assert repo("GET", "/api/repositories/nowhere").status_code == 404


def test_storage_summary_is_returned(real: Sandbox) -> None:
    admin = Repo(real, login=ADMIN)
    seeded = admin("GET", "/api/storageinfo").json()["binariesSummary"]
    Repo(real)("PUT", f"/{STAGING}/d/a.txt", data=bytes(2048))
    Repo(real)("PUT", f"/{STAGING}/d/copy.txt", data=bytes(2048))
    assert Repo(real)("GET", "/api/storageinfo").status_code == 403
    response = admin("GET", "/api/storageinfo").json()
    summary = response["binariesSummary"]
    assert int(summary["binariesCount"]) == int(seeded["binariesCount"]) + 1
    assert int(summary["artifactsCount"]) == int(seeded["artifactsCount"]) + 2
    spaces = {row["repoKey"]: row["usedSpace"] for row in response["repositoriesSummaryList"]}
    assert spaces[STAGING] == "4.00 KB"
    assert list(spaces)[-1] == "TOTAL"
    assert spaces["TOTAL"] == summary["artifactsSize"]


def test_pattern_search_finds_items(written: Sandbox) -> None:
    repo = Repo(written)
    for name in ("l/a.jar", "l/b.txt", "l/m/c.jar"):
        repo("PUT", f"/{STAGING}/{name}", data=b"x")
    response = repo("GET", "/search/pattern", params={"pattern": f"{STAGING}:l/*.jar"})
    assert response.json()["files"] == ["l/a.jar"]
    assert repo("GET", "/search/pattern").status_code == 400


# --- builds ---------------------------------------------------------------------------------------


def promote(repo: Repo, build: str = "app/7", **body: Any) -> requests.Response:
    return repo("POST", f"/api/build/promote/{build}", json=body)


@pytest.fixture
def built(real: Sandbox) -> Repo:
    """Create build `app` 7 with a file in the staging repository."""
    item = {"repo": STAGING, "path": "app/app.bin", "content": "binary"}
    properties = {"build.name": ["app"], "build.number": ["7"]}
    data = {
        "files": [{**item, "properties": properties}],
        "builds": [{"name": "app", "number": 7}],
    }
    real.seed({"repo": data})
    return Repo(real)


@pytest.mark.parametrize(
    ("build", "sent", "status", "words"),
    [
        ("app/8", {"json": {"status": "x"}}, 404, ""),
        (
            "app/7",
            {"json": {"status": "x", "targetRepo": "nowhere"}},
            404,
            "Cannot find target rep",
        ),
        ("app/7", {"json": {"targetRepo": "empty-virtual"}}, 400, ""),
        ("app/7", {"data": "{}"}, 415, ""),
        ("app/7", {"json": {"status": "x", "timestamp": "soon"}}, 400, '"level":"ERROR"'),
        ("app/7", {"json": {"status": "x", "timestamp": "soon", "failFast": False}}, 200, ""),
    ],
)
def test_invalid_promotion_is_rejected_unless_fail_fast_is_off(
    built: Repo, build: str, sent: dict[str, Any], status: int, words: str
) -> None:
    response = built("POST", f"/api/build/promote/{build}", **sent)
    assert (response.status_code, words in response.text) == (status, True)


def test_build_names_with_slashes_and_special_characters_are_accepted(built: Repo) -> None:
    publish(built, "team/app", "1.0+5")
    assert promote(built, "team%2Fapp/1.0%2B5", status="x").status_code == 200
    listed = built("GET", "/api/build/team%2Fapp").json()["buildsNumbers"]
    assert [entry["uri"] for entry in listed] == ["/1.0%2B5"]
    info = built("GET", "/api/build/team%2Fapp/1.0%2B5").json()["buildInfo"]
    assert (info["name"], info["number"], len(info["statuses"])) == ("team/app", "1.0+5", 1)


def test_dry_run_changes_nothing(built: Repo, real: Sandbox) -> None:
    mark = real.mark()
    assert promote(built, status="x", targetRepo=RELEASE, dryRun=True).status_code == 200
    assert real.requests("repo", writes=True, since=mark) == []
    assert "statuses" not in built("GET", "/api/build/app/7").json()["buildInfo"]
    assert built("HEAD", f"/{STAGING}/app/app.bin").status_code == 200


def test_promotion_to_a_virtual_repository_copies(built: Repo) -> None:
    built("PUT", f"/{RELEASE}/old.bin", data=b"x")
    promote(built, status="staged", targetRepo="generic", copy=True)
    status = built("GET", "/api/build/app/7").json()["buildInfo"]["statuses"][-1]
    assert status["repository"] == STAGING
    promote(built, targetRepo=RELEASE, copy=True)
    for repo in (STAGING, RELEASE):
        assert built("HEAD", f"/{repo}/app/app.bin").status_code == 200
    assert len(built("GET", "/api/build/app/7").json()["buildInfo"]["statuses"]) == 1


def test_promotion_may_report_errors_with_200(built: Repo, real: Sandbox) -> None:
    real.settings("repo", promote_errors=["disk full"])
    response = promote(built, status="x", targetRepo=RELEASE, failFast=True)
    assert response.status_code == 200
    assert {"level": "ERROR", "message": "disk full"} in response.json()["messages"]
    assert built("HEAD", f"/{RELEASE}/app/app.bin").status_code == 404


def test_equal_records_of_a_number_cannot_be_promoted(built: Repo) -> None:
    publish(built, "app", "7")
    response = promote(built, status="x", targetRepo=RELEASE)
    assert response.status_code == 400
    assert "Unable to find artifacts of build" in response.json()["errors"][0]["message"]


def test_builds_are_read_and_deleted(built: Repo) -> None:
    missing = built("GET", "/api/build/other")
    assert missing.json()["errors"][0]["message"] == "No build was found for build name: other"
    assert built("DELETE", "/api/build/app").status_code == 400
    gone = built("DELETE", "/api/build/app?buildNumbers=7&artifacts=1")
    assert "'app#7'" in gone.text
    assert built("HEAD", f"/{STAGING}/app/app.bin").status_code == 404
    assert built("GET", "/api/build/app/7").status_code == 404


def test_retention_keeps_promoted_builds(real: Sandbox) -> None:
    hour = 3_600_000
    now = int(time.time() * 1000)
    builds = [{"name": "app", "number": n, "started": now - (10 - n) * hour} for n in range(1, 6)]
    real.seed({"repo": {"builds": builds}})
    repo = Repo(real)
    promote(repo, "app/1", status="released")
    body = {"count": 2, "buildNumbersNotToBeDiscarded": ["2"]}
    assert repo("POST", "/api/build/retention/app", json=body).status_code == 204
    kept = repo("GET", "/api/build/app").json()["buildsNumbers"]
    assert sorted(entry["uri"] for entry in kept) == ["/1", "/2", "/4", "/5"]
    assert repo("POST", "/api/build/retention/app", json={"count": 0}).status_code == 400


# --- containers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["relative", "without_repo", "none"])
def test_tags_are_paged(real: Sandbox, link: str) -> None:
    real.settings("repo", link_flavour=link)
    image = {"repo": "docker-staging-local", "image": "team/app", "content": "{}"}
    names = [f"1.{n}" for n in range(5)]
    real.seed({"repo": {"images": [{**image, "tag": name} for name in names]}})
    repo = Repo(real)
    path = "/api/docker/docker-staging-local/v2/team/app/tags/list"
    assert repo("GET", path).json()["tags"] == names
    first = repo("GET", path, params={"n": 2})
    assert first.json()["tags"] == names[:2]
    if link == "none":
        assert "Link" not in first.headers
        rest = repo("GET", path, params={"n": 9, "last": "1.1"})
    else:
        address = first.links["next"]["url"]
        assert address.startswith("/v2/team" if link == "without_repo" else "/repo" + path)
        rest = repo("GET", path + "?" + address.partition("?")[2].replace("n=2", "n=9"))
    assert rest.json()["tags"] == names[2:]
    assert "Link" not in rest.headers
    catalog = repo("GET", "/api/docker/docker-staging-local/v2/_catalog").json()
    assert catalog == {"repositories": ["team/app"]}


def test_documented_containers_are_listed_and_promoted(written: Sandbox) -> None:
    image = {"repo": "docker-staging-local", "image": "app", "content": "{}"}
    written.seed({"repo": {"images": [{**image, "tag": tag} for tag in ("1", "2")]}})
    repo = Repo(written)
    base = "/api/container/docker-staging-local/v2"
    body = {"targetRepo": "docker-release-local", "dockerRepository": "app"}
    response = repo("POST", f"{base}/promote", json=body)
    assert (response.status_code, response.text) == (200, "Promotion ended successfully")
    assert repo("GET", "/api/container/docker-release-local/v2/app/tags/list").json() == {
        "tags": ["1", "2"]
    }
    assert repo("GET", f"{base}/app/tags/list").status_code == 404
    assert repo("POST", f"{base}/promote", json=body).content == b""
    docker = "/api/docker/docker-release-local/v2/app"
    assert repo("GET", f"{docker}/tags/list").status_code == 404
    assert repo("HEAD", f"{docker}/manifests/1").status_code == 404


def test_manifest_in_another_format_has_another_digest(real: Sandbox) -> None:
    repo = Repo(real)
    path = "/api/docker/docker-staging-local/v2/app/manifests/1"
    content = json.dumps({"mediaType": MANIFEST_TYPE})
    pushed = repo("PUT", path, data=content).headers["Docker-Content-Digest"]
    assert repo("HEAD", path).headers["Docker-Content-Digest"] != pushed
    accepted = repo("GET", path, headers={"Accept": MANIFEST_TYPE})
    assert accepted.headers["Docker-Content-Digest"] == pushed
    assert accepted.text == content
    stored = repo("GET", "/api/storage/docker-staging-local/app/1/manifest.json").json()
    assert "sha256:" + stored["checksums"]["sha256"] == pushed


# --- queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "start"),
    [
        ("things.find({})", "Failed to parse query"),
        ("items.find({)", "Failed to parse query"),
        ('items.find({"nope": 1})', "Failed to parse query"),
        ('items.find({"created": {"$before": "12h"}})', "Failed to parse query"),
        ("items.find({}).x()", "Failed to parse query"),
        ('items.find({}).include("name")', ""),
    ],
)
def test_invalid_query_is_rejected(real: Sandbox, query: str, start: str) -> None:
    repo = Repo(real)
    repo("PUT", f"/{STAGING}/a.txt", data=b"x")
    response = repo("POST", "/api/search/aql", data=query)
    assert (response.status_code, response.text.startswith(start)) == (400, True)


def test_old_files_are_found_by_age(real: Sandbox) -> None:
    moment = int(time.time() * 1000) - 90 * 60_000
    item = {"repo": STAGING, "path": "d/old.txt", "content": "x", "created": moment}
    real.seed({"repo": {"files": [item], "trash": [{**item, "path": "d/gone.txt"}]}})
    repo = Repo(real)
    for age, found in (("89minutes", ["old.txt"]), ("91minutes", []), ("1d", [])):
        criteria = json.dumps({"repo": STAGING, "created": {"$before": age}})
        text = f'items.find({criteria}).include("repo", "path", "name")'
        rows = repo("POST", "/api/search/aql", data=text).json()["results"]
        assert [row["name"] for row in rows] == found, age
    assert repo("HEAD", f"/{STAGING}/d/gone.txt").status_code == 404
    kept = f"/api/storage/auto-trashcan/{STAGING}/d/gone.txt"
    assert Repo(real, ADMIN)("GET", kept).status_code == 200


def test_query_result_is_trimmed(real: Sandbox) -> None:
    real.settings("repo", query_limit=2)
    text = 'items.find({"repo": "generic-snapshot-local"}).include("repo", "path", "name")'
    response = Repo(real)("POST", "/api/search/aql", data=text)
    assert len(response.json()["results"]) == 2
    assert "trimmed" in response.json()["range"]["notification"]
    assert response.headers["Date"].endswith("GMT")


def test_build_query_is_paged(written: Sandbox) -> None:
    builds = [{"name": "app", "number": n, "started": 1_700_000_000_000 + n} for n in range(4)]
    written.seed({"repo": {"builds": builds}})
    text = (
        'builds.find({"name": "app", "created": {"$before": "2w"}})'
        '.sort({"$desc": ["created"]}).offset(1).limit(2)'
    )
    mark = written.mark()
    response = Repo(written)("POST", "/api/search/aql", data=text).json()
    assert [row["number"] for row in response["results"]] == ["2", "1"]
    assert response["range"] == {"start_pos": 1, "end_pos": 2, "total": 2, "limit": 2}
    assert [entry["write"] for entry in written.requests("repo", since=mark)] == [False]
