# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the second half of a release on the sandbox's repository manager: download, copy,
publish, push.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import quote, urlsplit

import artifactory
import pytest
import requests
import rtpy
from artifactory import ArtifactoryBuildManager, ArtifactoryPath
from dohq_artifactory import RepositoryLocal, RepositoryVirtual, admin
from dohq_artifactory.exception import ArtifactoryException

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.artifact_deploy import (
    ArtifactDeployOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer.artifact_copy import (
    ArtifactCopyOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer.artifact_download import (
    ArtifactDownloadOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer.artifact_properties import (
    ArtifactPropertiesOperation,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections
from tests.helpers.options import build
from tests.integration.sandbox.clients import Client

LOGIN = ("deployer", "deployer-password")
STAGING, RELEASE = "generic-staging-local", "generic-release-local"
IMAGES = "docker-staging-local"
STARTED, LATER = "2024-01-02T03:04:05.678+0000", "2024-01-03T03:04:05.678+0000"
CONTENT = b"0123456789"
OCI = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


class Repo(Client):
    """Send requests as the deployer."""

    def put(self, path: str, content: bytes = CONTENT) -> None:
        assert self("PUT", path, data=content).status_code == 201

    def files(self, repo: str) -> list[str]:
        listed = self("GET", f"/api/storage/{repo}?list&deep=1").json()["files"]
        return sorted(entry["uri"] for entry in listed)

    def messages(self, method: str, path: str) -> tuple[int, str, str]:
        """Return status code, level and message of a response with a single message."""
        response = self(method, path)
        (message,) = response.json()["messages"]
        return response.status_code, message["level"], message["message"]


@pytest.fixture
def repo(real: Sandbox) -> Iterator[Repo]:
    found = Repo(real, "repo", LOGIN)
    with found.session:
        yield found


def path_of(sandbox: Sandbox, path: str) -> ArtifactoryPath:
    return ArtifactoryPath(f"{sandbox.urls['repo']}/{path}", auth=LOGIN)


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


# --- third-party client ---------------------------------------------------------------------------


def test_client_copies_and_moves(real: Sandbox) -> None:
    source = path_of(real, f"{STAGING}/app/1.0/a.txt")
    source.write_text("content")
    source.set_properties({"stage": "rc"})
    copy = path_of(real, f"{RELEASE}/app/1.0/a.txt")
    rehearsed = source.copy(copy, dry_run=True)
    assert rehearsed["messages"][0]["message"].startswith("Dry Run for copying")
    assert not copy.exists()
    source.copy(copy)
    assert copy.read_text() == source.read_text() == "content"
    assert copy.properties == {"stage": ["rc"]}
    moved = path_of(real, f"{RELEASE}/app/2.0/a.txt")
    source.move(moved)
    assert moved.exists()
    assert not source.exists()


def test_client_creates_a_folder(real: Sandbox) -> None:
    folder = path_of(real, f"{STAGING}/app/empty")
    folder.mkdir()
    assert folder.is_dir()
    assert list(folder) == []


def test_client_reads_cleans_and_empties_trash(real: Sandbox, repo: Repo) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        repo.put(f"/{STAGING}/app/{name}")
    assert repo("DELETE", f"/{STAGING}/app").status_code == 204
    client = rtpy.Rtpy(
        {"af_url": real.urls["repo"], "username": "admin", "password": "admin-password"}
    ).artifacts_and_storage

    def kept() -> list[str]:
        return [child["uri"] for child in client.folder_info("auto-trashcan", "")["children"]]

    assert f"/{STAGING}" in kept()
    client.delete_item_from_trash_can(f"{STAGING}/app/a.txt")
    with pytest.raises(client.AfApiError, match="Could not locate"):
        client.delete_item_from_trash_can(f"{STAGING}/app/a.txt")
    client.empty_trash_can()
    with pytest.raises(client.AfApiError, match="Unable to find item"):
        kept()


def test_client_manages_repositories(real: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "rest_delay", lambda: None)
    client = ArtifactoryPath(real.urls["repo"], auth=("admin", "admin-password"))
    store = RepositoryLocal(client, "tools-local", package_type="docker", docker_api_version="V2")
    assert not store.read()
    store.create()
    front = RepositoryVirtual(client, "tools", ["tools-local"], package_type="docker")
    front.create()
    assert front.read()
    assert [str(member) for member in front.repositories] == ["tools-local"]
    store.description = "changed"
    store.update()
    again = RepositoryLocal(client, "tools-local")
    assert again.read()
    assert (again.description, again.package_type) == ("changed", "docker")
    with pytest.raises(ArtifactoryException, match="already exists"):
        store.create()
    store.delete()
    assert not store.read()
    assert front.read()
    assert front.repositories == []


def test_client_fetches_a_file(real: Sandbox, repo: Repo, tmp_path: Any) -> None:
    repo.put(f"/{STAGING}/app/a.bin")
    with open(tmp_path / "a.bin", "wb") as file:
        path_of(real, f"{STAGING}/app/a.bin").writeto(file, progress_func=None)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_client_expands_an_archive_and_walks_through_it(real: Sandbox) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("index.html", "deep/page.html"):
            archive.writestr(name, name)
    folder = path_of(real, f"{STAGING}/docs")
    (folder / "docs.zip").deploy(io.BytesIO(packed.getvalue()), explode_archive=True)
    found = [name for _path, _folders, names in artifactory.walk(folder) for name in names]
    assert sorted(found) == ["index.html", "page.html"]
    assert [path.read_text() for path in folder.glob("**/page.html")] == ["deep/page.html"]


def test_client_reads_repositories(real: Sandbox) -> None:
    server = path_of(real, "")
    assert {STAGING, RELEASE, "generic"} <= {
        repository.name for repository in server.get_repositories()
    }
    members = server.find_repository_virtual("generic").repositories
    assert [member.name for member in members] == [STAGING, RELEASE]


def test_client_reads_runs_of_a_build(real: Sandbox) -> None:
    manager = ArtifactoryBuildManager(real.urls["repo"], auth=LOGIN)
    runs = manager.get_build_runs("nightly")
    assert sorted(run.run_number for run in runs) == ["101", "102", "103", "104"]
    assert runs[0].info["buildInfo"]["name"] == "nightly"


def test_client_lists_builds(real: Sandbox, repo: Repo) -> None:
    record = {"name": "team/app", "number": "7", "started": STARTED}
    assert repo("PUT", "/api/build", json=record).status_code == 204
    manager = ArtifactoryBuildManager(real.urls["repo"], auth=LOGIN)
    assert "agent" in {build.name for build in manager.builds}
    info = manager.get_build_info("team/app", "7")["buildInfo"]
    assert (info["number"], info["started"], info["artifactoryPrincipal"]) == (
        "7",
        STARTED,
        "deployer",
    )


# --- downloads ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status", "content"),
    [
        ({}, 200, CONTENT),
        ({"Range": "bytes=2-4"}, 206, CONTENT[2:5]),
        ({"Range": "bytes=-3"}, 206, CONTENT[-3:]),
        ({"Range": "bytes=99-"}, 416, None),
        ({"Range": "bytes=x"}, 416, b""),
        ({"Range": "bytes=2-", "If-Range": hashlib.sha1(CONTENT).hexdigest()}, 206, CONTENT[2:]),
        ({"Range": "bytes=2-", "If-Range": "0" * 40}, 200, CONTENT),
        ({"If-None-Match": hashlib.sha1(CONTENT).hexdigest()}, 304, b""),
        ({"If-None-Match": "0" * 40}, 200, CONTENT),
        ({"If-Modified-Since": "Fri, 31 Dec 2100 00:00:00 GMT"}, 304, b""),
    ],
)
def test_download_obeys_its_conditions(
    repo: Repo, headers: dict[str, str], status: int, content: bytes | None
) -> None:
    repo.put(f"/{STAGING}/a.bin")
    response = repo("GET", f"/{STAGING}/a.bin", headers=headers)
    assert response.status_code == status
    assert content is None or response.content == content


def test_download_has_its_headers(repo: Repo) -> None:
    repo.put(f"/{STAGING}/d/a b.bin")
    for method in ("GET", "HEAD"):
        headers = repo(method, f"/{STAGING}/d/a%20b.bin").headers
        assert headers["X-Checksum-Sha256"] == hashlib.sha256(CONTENT).hexdigest()
        assert headers["X-Checksum-Md5"] == hashlib.md5(CONTENT).hexdigest()
        assert headers["Accept-Ranges"] == "bytes"
        assert headers["Content-Length"] == "10"
        assert 'filename="a%20b.bin"' in headers["Content-Disposition"]
        assert headers["X-JFrog-Version"].startswith("Artifactory/")


def test_download_of_other_than_a_file_is_rejected(real: Sandbox, repo: Repo) -> None:
    repo.put(f"/{STAGING}/d/a.bin")
    folder = repo("GET", f"/{STAGING}/d")
    assert (folder.status_code, "text/html" in folder.headers["Content-Type"]) == (200, True)
    assert "X-Checksum-Sha256" not in folder.headers
    real.settings("repo", folder_index=False)
    assert repo("GET", f"/{STAGING}/d/").status_code == 404
    for path in (f"/{STAGING}/missing", "/nowhere/a.bin"):
        response = repo("GET", path)
        assert (response.status_code, response.json()["errors"][0]["status"]) == (404, 404)


def operate(sandbox: Sandbox, operation: Callable[..., Operation], **given: Any) -> bool:
    """Run an operation of a module. Return whether it changed something."""
    login = {"url": sandbox.urls["repo"], **connections.LOGINS["repo"], "dialect": "jfrog"}
    settings = {"vendor": "Vendor", "timeout": 10.0, "retries": 0, "retry_max_wait": 0.0}
    task = Task(
        resolve(SERVICES["repo"], {**login, **settings}.get, environ={}),
        pytest.fail,
        read_only=False,
    )
    options: type = get_type_hints(operation.__init__)["options"]
    made = operation(task, build(options, **given))
    plan = made.plan()
    if plan.changed:
        made.apply(plan)
    return plan.changed


def test_names_may_contain_line_breaks(real: Sandbox, repo: Repo, tmp_path: Path) -> None:
    """Server fact [repo-26]: an item name may have the same characters as a file name."""
    names = ["a\nb.txt", "\nc/d", "e\n"]
    for name in names:
        repo.put(f"/{STAGING}/odd/{quote(name)}", name.encode())
    odd = {"repo": STAGING, "path": f"odd/{names[0]}"}
    for again in (False, True):
        fetching = {"repo": STAGING, "path": "odd/", "dest": f"{tmp_path}/"}
        assert operate(real, ArtifactDownloadOperation, **fetching) is not again
        copying = {**odd, "target_repo": RELEASE}
        assert operate(real, ArtifactCopyOperation, **copying) is not again
        marking = {**odd, "properties": {"k": "v"}}
        assert operate(real, ArtifactPropertiesOperation, **marking) is not again
    assert {name: (tmp_path / name).read_text() for name in names} == {name: name for name in names}
    assert repo("GET", f"/{RELEASE}/odd/{quote(names[0])}").text == names[0]


def test_path_into_an_archive_is_not_an_item(real: Sandbox, repo: Repo, tmp_path: Path) -> None:
    """Server fact [repo-26]: an item with `!/` in its path cannot be addressed."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("entry", "what is in the archive")
    repo.put(f"/{STAGING}/odd/a.zip", archive.getvalue())
    assert repo("GET", f"/{STAGING}/odd/a.zip!/entry").text == "what is in the archive"
    assert repo("GET", f"/{STAGING}/odd/a.zip!/other").status_code == 404
    repo.put(f"/{STAGING}/odd/a.zip!/entry", b"an item from an old import")
    with pytest.raises(ToolchainError, match=r"a\.zip!/entry"):
        operate(real, ArtifactDownloadOperation, repo=STAGING, path="odd/", dest=f"{tmp_path}/got/")
    assert not (tmp_path / "got" / "odd" / "a.zip!").exists()
    assert not (tmp_path / "got" / "a.zip!").exists()
    (tmp_path / "src" / "b!").mkdir(parents=True)
    (tmp_path / "src" / "b!" / "c").touch()
    for given in ({"path": "odd/b!/c", "content": "x"}, {"src": f"{tmp_path}/src/"}):
        with pytest.raises(ToolchainError, match="addresses a file inside an archive"):
            operate(real, ArtifactDeployOperation, repo=STAGING, **given)


def test_properties_in_a_path_select(repo: Repo) -> None:
    repo.put(f"/{STAGING}/a.bin;build.number=5")
    assert repo("GET", f"/{STAGING}/a.bin;build.number=5").content == CONTENT
    assert repo("GET", f"/{STAGING}/a.bin;build.number=6").status_code == 404


def test_large_files_redirect_to_the_object_store(real: Sandbox, repo: Repo) -> None:
    real.settings("repo", redirect_bytes=10)
    repo.put(f"/{STAGING}/large.bin")
    repo.put(f"/{STAGING}/small.bin", b"x")
    assert repo("GET", f"/{STAGING}/small.bin").status_code == 200
    first = repo("GET", f"/{STAGING}/large.bin")
    assert first.status_code == 302
    assert first.headers["X-Checksum-Sha256"] == hashlib.sha256(CONTENT).hexdigest()
    address = first.headers["Location"]
    refused = repo("GET", address)
    assert (refused.status_code, "Only one auth mechanism" in refused.text) == (400, True)
    response = requests.get(address, timeout=10)
    assert response.content == CONTENT
    assert "X-Checksum-Sha256" not in response.headers
    assert response.headers["ETag"] != hashlib.sha1(CONTENT).hexdigest()
    assert requests.head(address, timeout=10).status_code == 403
    assert requests.get(address + "0", timeout=10).status_code == 403
    assert repo("HEAD", f"/{STAGING}/large.bin").status_code == 200


# --- copy and move --------------------------------------------------------------------------------


def test_copy_into_an_existing_folder_nests(repo: Repo) -> None:
    repo.put(f"/{STAGING}/app/1.0/a.txt")
    repo.put(f"/{STAGING}/app/1.0/d/b.txt")
    call = f"/api/copy/{STAGING}/app/1.0?to=/{RELEASE}/app/1.0"
    reported = f"copying {STAGING}:app/1.0 to {RELEASE}:app/1.0 completed successfully, "
    assert repo.messages("POST", call) == (
        200,
        "INFO",
        f"{reported}2 artifacts and 2 folders were copied",
    )
    assert repo.files(RELEASE) == ["/app/1.0/a.txt", "/app/1.0/d/b.txt"]
    assert repo("POST", call).status_code == 200
    assert "/app/1.0/1.0/a.txt" in repo.files(RELEASE)
    # a file can be copied into a folder as well
    repo("POST", f"/api/copy/{STAGING}/app/1.0/a.txt?to={RELEASE}/app")
    assert "/app/a.txt" in repo.files(RELEASE)


def test_moved_folder_is_removed(repo: Repo) -> None:
    repo.put(f"/{STAGING}/app/1.0/d/b.txt")
    response = repo("POST", f"/api/move/{STAGING}/app/1.0?to=/{RELEASE}/app/1.0")
    assert response.headers["Content-Type"].startswith("application/vnd.org.jfrog.artifactory")
    assert (repo.files(STAGING), repo.files(RELEASE)) == ([], ["/app/1.0/d/b.txt"])
    assert repo("GET", f"/api/storage/{STAGING}/app/1.0").status_code == 404


ONTO_ITSELF = (
    f"Skipping copying {STAGING}:d/a.txt to {STAGING}:d/a.txt: Destination and source are the same"
)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("missing", f"{RELEASE}/x", (404, "ERROR")),
        ("d/a.txt", "nowhere/x", (404,)),
        ("d/a.txt", "generic-remote/x", (400,)),
        ("d/a.txt", f"{STAGING}/d/a.txt", (200, "ERROR", ONTO_ITSELF)),
        ("d", f"{STAGING}/d/a.txt", (400,)),
    ],
)
def test_invalid_copy_is_rejected(
    repo: Repo, source: str, target: str, expected: tuple[Any, ...]
) -> None:
    repo.put(f"/{STAGING}/d/a.txt")
    found = repo.messages("POST", f"/api/copy/{STAGING}/{source}?to=/{target}")
    assert found[: len(expected)] == expected


def test_copy_without_target_is_rejected(repo: Repo) -> None:
    repo.put(f"/{STAGING}/d/a.txt")
    assert repo("POST", f"/api/copy/{STAGING}/d/a.txt?to=").status_code == 400


def test_rejected_files_do_not_stop_a_copy(real: Sandbox, repo: Repo) -> None:
    picky = {"key": RELEASE, "type": "LOCAL", "excludesPattern": "**/*.log, tmp/**"}
    real.seed({"repo": {"repositories": [picky]}})
    repo.put(f"/{STAGING}/d/a.txt")
    repo.put(f"/{STAGING}/d/b.log")
    call = f"/api/copy/{STAGING}/d?to=/{RELEASE}/d"
    assert repo.messages("POST", f"{call}&atomic=1")[:2] == (200, "ERROR")
    assert repo.files(RELEASE) == []
    status, level, words = repo.messages("POST", call)
    assert (status, level, "rejected the artifact" in words) == (200, "ERROR", True)
    assert repo.files(RELEASE) == ["/d/a.txt"]
    alone = f"/api/copy/{STAGING}/d/b.log?to=/{RELEASE}/d/b.log"
    assert repo.messages("POST", f"{alone}&dry=1")[0] == repo.messages("POST", alone)[0] == 409
    assert repo("PUT", f"/{RELEASE}/tmp/x", data=b"x").status_code == 409


def test_dry_run_of_a_copy_is_not_logged_as_a_write(real: Sandbox, repo: Repo) -> None:
    repo.put(f"/{STAGING}/a.txt")
    mark = real.mark()
    assert repo("POST", f"/api/copy/{STAGING}/a.txt?to=/{RELEASE}/a.txt&dry=1").status_code == 200
    assert real.requests("repo", writes=True, since=mark) == []
    assert repo.files(RELEASE) == []


# --- build records --------------------------------------------------------------------------------


def _record(**more: Any) -> dict[str, Any]:
    return {"name": "app", "number": "7", "started": STARTED, **more}


def _read(repo: Repo, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = repo("GET", f"/api/build/app/7{query}").json()["buildInfo"]
    return found


def test_publishing_with_equal_start_overwrites(repo: Repo) -> None:
    repo("PUT", "/api/build", json=_record(url="one"))
    repo("POST", "/api/build/promote/app/7", json={"status": "staged"})
    statuses = _read(repo)["statuses"]
    repo("PUT", "/api/build", json=_record(url="two", statuses=statuses))
    assert (_read(repo)["url"], _read(repo)["statuses"]) == ("two", statuses)
    repo("PUT", "/api/build", json=_record(url="three"))
    assert "statuses" not in _read(repo)
    repo("PUT", "/api/build", json=_record(url="four", started=LATER))
    assert _read(repo)["url"] == "four"
    assert _read(repo, f"?started={STARTED.replace('+', '%2B')}")["url"] == "three"
    listed = repo("GET", "/api/build/app").json()["buildsNumbers"]
    assert [entry["uri"] for entry in listed] == ["/7", "/7"]


def test_record_is_returned_as_stored(repo: Repo) -> None:
    repo.put(f"/{STAGING}/a.txt")
    sha1 = hashlib.sha1(CONTENT).hexdigest()
    artifact = {"name": "a.txt", "sha1": sha1, "unheard": 1}
    module = {"id": "app", "artifacts": [artifact], "dependencies": []}
    sent = _record(number=7, modules=[module], vcs=[], unheard="of")
    assert repo("PUT", "/api/build", json=sent).status_code == 204
    stored = _read(repo)
    assert not {"unheard", "vcs"} & set(stored)
    known = {"sha256": hashlib.sha256(CONTENT).hexdigest(), "md5": hashlib.md5(CONTENT).hexdigest()}
    assert stored["modules"] == [
        {"id": "app", "artifacts": [{"name": "a.txt", "sha1": sha1, **known}]}
    ]
    more = [{"id": "other"}]
    assert repo("POST", "/api/build/append/app/7", json=more).status_code == 204
    assert [module["id"] for module in _read(repo)["modules"]] == ["app", "other"]
    assert repo("POST", "/api/build/append/app/8", json=more).status_code == 404


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"name": "app", "number": "7"}, "must contain build name"),
        (_record(started="2024-01-02T03:04:05.678Z"), "Invalid format"),
        (_record(started="2024-01-02T03:04:05+0000"), "Invalid format"),
        ([], "Bad Request"),
    ],
)
def test_invalid_record_is_rejected(repo: Repo, record: Any, words: str) -> None:
    response = repo("PUT", "/api/build", json=record)
    assert (response.status_code, words in response.text) == (400, True)
    typed = {"Content-Type": "text/plain"}
    assert repo("PUT", "/api/build", data="{}", headers=typed).status_code == 415


def _names(repo: Repo, criteria: dict[str, str]) -> list[str]:
    text = f'items.find({json.dumps(criteria)}).include("repo", "path", "name")'
    rows = repo("POST", "/api/search/aql", data=text).json()["results"]
    return sorted(f"{row['repo']}/{row['name']}" for row in rows)


def test_files_of_a_build_are_found_by_content_or_properties(repo: Repo) -> None:
    repo.put(f"/{STAGING}/a.txt")
    repo.put(f"/{RELEASE}/copy.txt")
    repo.put(f"/{STAGING}/lib.txt", b"lib")
    modules = [
        {
            "id": "app",
            "artifacts": [{"name": "a.txt", "sha1": hashlib.sha1(CONTENT).hexdigest()}],
            "dependencies": [{"id": "lib", "sha1": hashlib.sha1(b"lib").hexdigest()}],
        }
    ]
    for number in ("7", "8"):
        repo("PUT", "/api/build", json=_record(number=number, modules=modules))
    of_build = {"artifact.module.build.name": "app", "artifact.module.build.number": "7"}
    both = [f"{RELEASE}/copy.txt", f"{STAGING}/a.txt"]
    assert _names(repo, of_build) == both
    assert _names(repo, {"artifact.module.build.name": "app"}) == both
    assert _names(repo, {"dependency.module.build.name": "app"}) == [f"{STAGING}/lib.txt"]
    assert _names(repo, {**of_build, "artifact.module.build.number": "9"}) == []
    search = {"buildName": "app", "buildNumber": "7"}
    assert repo("POST", "/api/search/buildArtifacts", json=search).status_code == 404
    marks = "build.name=app%7Cbuild.number=7"
    repo("PUT", f"/api/storage/{STAGING}/a.txt?properties={marks}&recursive=0")
    found = repo("POST", "/api/search/buildArtifacts", json=search).json()["results"]
    assert found == [{"downloadUri": f"{repo.url}/{STAGING}/a.txt"}]
    assert _names(repo, {"@build.name": "app", "@build.number": "7"}) == [f"{STAGING}/a.txt"]


# --- searches and the server itself ---------------------------------------------------------------


def _found(repo: Repo, path: str, **headers: str) -> list[Any]:
    response = repo("GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()})
    assert response.status_code == 200, response.text
    found: list[Any] = response.json()["results"]
    return found


def test_items_are_searched(repo: Repo) -> None:
    repo.put(f"/{STAGING}/d/tool-1.0.jar;stage=rc;team=a")
    repo.put(f"/{RELEASE}/d/tool-1.0.txt;stage=final", b"x")
    jar, text = (
        f"{repo.url}/api/storage/{path}"
        for path in (f"{STAGING}/d/tool-1.0.jar", f"{RELEASE}/d/tool-1.0.txt")
    )
    assert {entry["uri"] for entry in _found(repo, "/api/search/artifact?name=tool")} == {jar, text}
    assert _found(repo, "/api/search/artifact?name=*.jar") == [{"uri": jar}]
    limited = _found(repo, f"/api/search/artifact?name=tool&repos={RELEASE}")
    assert limited == [{"uri": text}]
    assert _found(repo, "/api/search/prop?stage=rc&team=a") == [{"uri": jar}]
    assert _found(repo, "/api/search/prop?stage=f*") == [{"uri": text}]
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    (known,) = _found(repo, f"/api/search/checksum?sha256={sha256}", X_Result_Detail="properties")
    assert known == {"uri": jar, "properties": {"stage": ["rc"], "team": ["a"]}}
    for path in ("artifact", "prop", "checksum"):
        assert repo("GET", f"/api/search/{path}").status_code == 400


def test_server_identifies_itself(real: Sandbox, repo: Repo) -> None:
    ping = requests.get(f"{repo.url}/api/system/ping", timeout=10)
    assert (ping.status_code, ping.text) == (200, "OK")
    refused = requests.get(f"{repo.url}/api/system/version", timeout=10)
    assert refused.status_code == 401
    assert refused.headers["X-JFrog-Version"].startswith("Artifactory/")
    assert refused.headers["X-Artifactory-Id"]
    assert repo("GET", "/api/repositories/?type=virtual").status_code == 200
    real.settings("repo", flavour="written")
    assert "X-Artifactory-Id" not in repo("GET", "/api/repositories").headers
    assert requests.get(f"{repo.url}/api/system/ping", timeout=10).status_code == 404


# --- the registry ---------------------------------------------------------------------------------


def _push_blob(repo: Repo, base: str, content: bytes, parts: int = 1) -> None:
    """Push a blob like container tools: start the upload, send the chunks, send the digest."""
    begun = repo("POST", f"{base}/blobs/uploads/")
    assert begun.status_code == 202
    address, size = begun.headers["Location"], len(content) // parts
    for index in range(parts):
        end = len(content) if index == parts - 1 else (index + 1) * size
        headers = {"Content-Range": f"{index * size}-{end - 1}"}
        sent = repo("PATCH", address, data=content[index * size : end], headers=headers)
        assert (sent.status_code, sent.headers["Range"]) == (202, f"0-{end - 1}")
        address = sent.headers["Location"]
    done = repo("PUT", address, params={"digest": digest(content)})
    assert (done.status_code, done.headers["Docker-Content-Digest"]) == (201, digest(content))


def _manifest(config: bytes, layer: bytes) -> bytes:
    def part(content: bytes) -> dict[str, Any]:
        return {"mediaType": "x", "size": len(content), "digest": digest(content)}

    data = {"schemaVersion": 2, "mediaType": OCI, "config": part(config), "layers": [part(layer)]}
    return json.dumps(data).encode()


def test_image_is_pushed_at_the_root_of_the_host(repo: Repo) -> None:
    root = repo.url.removesuffix("/repo")
    anonymous = requests.get(f"{root}/v2/", timeout=10)
    assert anonymous.status_code == 401
    assert anonymous.headers["WWW-Authenticate"].startswith("Basic")
    ping = repo("GET", f"{root}/v2/")
    assert ping.headers["Docker-Distribution-Api-Version"] == "registry/2.0"
    base = f"{root}/v2/{IMAGES}/team/app"
    config, layer = b"{}", b"layer" * 100
    manifest = _manifest(config, layer)
    assert repo("HEAD", f"{base}/blobs/{digest(layer)}").status_code == 404
    early = repo("PUT", f"{base}/manifests/1.0", data=manifest, headers={"Content-Type": OCI})
    assert (early.status_code, early.json()["errors"][0]["code"]) == (404, "MANIFEST_BLOB_UNKNOWN")
    _push_blob(repo, base, config)
    _push_blob(repo, base, layer, parts=3)
    child = digest(manifest)
    for reference in (child, "1.0"):
        put = repo("PUT", f"{base}/manifests/{reference}", data=manifest)
        assert (put.status_code, put.headers["Docker-Content-Digest"]) == (201, child)
    index = {"mediaType": INDEX, "manifests": [{"digest": child, "size": len(manifest)}]}
    assert repo("PUT", f"{base}/manifests/all", json=index).status_code == 201
    assert repo("GET", f"{base}/blobs/{digest(layer)}").content == layer
    assert repo("GET", f"{base}/manifests/{child}", headers={"Accept": OCI}).content == manifest
    assert repo("GET", f"{base}/tags/list").json()["tags"] == ["1.0", "all"]
    assert f"/team/app/1.0/{digest(layer).replace(':', '__')}" in repo.files(IMAGES)
    assert not [path for path in repo.files(IMAGES) if "_uploads" in path]


def test_accepted_formats_may_be_in_several_headers(repo: Repo) -> None:
    """Verify that several Accept headers are read, because container tools send them."""
    path = f"/api/docker/{IMAGES}/v2/app/manifests/1"
    content = json.dumps({"mediaType": OCI})
    pushed = repo("PUT", path, data=content).headers["Docker-Content-Digest"]
    address = urlsplit(repo.url)
    connection = http.client.HTTPConnection(str(address.netloc), timeout=10)
    connection.putrequest("HEAD", address.path + path)
    connection.putheader("Authorization", f"Basic {b64encode(':'.join(LOGIN).encode()).decode()}")
    for kind in (INDEX, OCI):
        connection.putheader("Accept", kind)
    connection.endheaders()
    assert connection.getresponse().headers["Docker-Content-Digest"] == pushed
    connection.close()


def test_referrers_of_an_image_are_listed(repo: Repo) -> None:
    base = f"/api/docker/{IMAGES}/v2/app"
    image = digest(b"the image")
    index = {"mediaType": INDEX, "manifests": [], "subject": {"digest": image}}
    pushed = repo("PUT", f"{base}/manifests/{digest(json.dumps(index).encode())}", json=index)
    assert (pushed.status_code, pushed.headers["OCI-Subject"]) == (201, image)
    listed = repo("GET", f"{base}/referrers/{image}")
    assert listed.headers["Content-Type"].startswith(INDEX)
    found = [manifest["digest"] for manifest in listed.json()["manifests"]]
    assert found == [pushed.headers["Docker-Content-Digest"]]
    assert repo("GET", f"{base}/referrers/{found[0]}").json()["manifests"] == []


def test_index_lists_an_image_that_has_a_tag(repo: Repo) -> None:
    base, target = f"/api/docker/{IMAGES}/v2", "docker-release-local"
    child = repo("PUT", f"{base}/app/manifests/amd64", json={"mediaType": OCI})
    listed = child.headers["Docker-Content-Digest"]
    index = {"mediaType": INDEX, "manifests": [{"digest": listed}]}
    assert repo("PUT", f"{base}/app/manifests/1", json=index).status_code == 201
    body = {"targetRepo": target, "dockerRepository": "app", "tag": "1", "copy": True}
    assert repo("POST", f"{base}/promote", json=body).status_code == 200
    assert f"/app/{listed}/manifest.json" in repo.files(target)


def test_promoted_image_keeps_its_blobs(repo: Repo) -> None:
    base = f"/api/docker/{IMAGES}/v2/app"
    manifest = _manifest(b"{}", b"layer")
    for content in (b"{}", b"layer"):
        _push_blob(repo, base, content)
    child = digest(manifest)
    repo("PUT", f"{base}/manifests/{child}", data=manifest)
    index = {"mediaType": INDEX, "manifests": [{"digest": child, "size": len(manifest)}]}
    repo("PUT", f"{base}/manifests/1", json=index)
    target = "docker-release-local"
    body = {"targetRepo": target, "dockerRepository": "app", "tag": "1", "copy": True}
    assert repo("POST", f"/api/docker/{IMAGES}/v2/promote", json=body).status_code == 200
    there = f"/api/docker/{target}/v2/app"
    accept = {"Accept": f"{OCI}, {INDEX}"}
    assert repo("GET", f"{there}/manifests/{child}", headers=accept).content == manifest
    assert repo("GET", f"{there}/blobs/{digest(b'layer')}").content == b"layer"
    assert repo("GET", f"{there}/manifests/1", headers=accept).json() == index


def test_invalid_upload_is_rejected(repo: Repo) -> None:
    base = f"/api/docker/{IMAGES}/v2/app/blobs"
    address = repo("POST", f"{base}/uploads/").headers["Location"]
    gap = repo("PATCH", address, data=b"x", headers={"Content-Range": "5-5"})
    assert gap.status_code == 416
    wrong = repo("PUT", f"{address}?digest={digest(b'y')}", data=b"x")
    assert (wrong.status_code, wrong.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")
    assert repo("DELETE", address).status_code == 204
    assert repo("PATCH", address, data=b"x").status_code == 404
    whole = repo("POST", f"{base}/uploads/?digest={digest(b'x')}", data=b"x")
    assert whole.status_code == 201
    other = f"/api/docker/{IMAGES}/v2/other/blobs/uploads/"
    mounted = repo("POST", f"{other}?mount={digest(b'x')}&from=app")
    assert mounted.status_code == 201
    assert repo("POST", f"{other}?mount={digest(b'z')}&from=app").status_code == 202
