# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the permissions of every operation on the sandbox's repository manager."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"

SOURCE, TARGET = "generic-staging-local", "generic-release-local"
IMAGES, MORE_IMAGES = "docker-staging-local", "docker-release-local"
MANIFEST = json.dumps({"schemaVersion": 2})
BUILD = {"name": "app", "number": "8", "started": "2024-01-02T03:04:05.678+0000"}
RIGHTS: dict[str, Any] = {
    "nothing": [],
    "read": ["read"],
    "deploy": ["read", "deploy"],
    "annotate": ["read", "annotate"],
    "delete": ["read", "delete"],
    "overwrite": ["read", "deploy", "delete"],
    "elsewhere": {TARGET: ["read", "deploy", "delete", "annotate"]},
}
ADMIN = "admin"
ALL = {*RIGHTS, ADMIN}
READERS = ALL - {"nothing", "elsewhere"}
DEPLOYERS = {"deploy", "overwrite", ADMIN}

SEED = {
    "files": [
        {
            "repo": SOURCE,
            "path": "d/a.txt",
            "content": "a",
            "properties": {"build.name": ["app"], "build.number": ["7"]},
        },
        {"repo": TARGET, "path": "taken/a.txt", "content": "other"},
    ],
    "builds": [{"name": "app", "number": "7", "started": 1_700_000_000_000}],
    "images": [{"repo": IMAGES, "image": "app", "tag": "1", "content": MANIFEST}],
    "credentials": {
        "users": {name: {"password": "p", "permissions": rights} for name, rights in RIGHTS.items()}
    },
}


@dataclass(frozen=True)
class Operation:
    """A request and its allowed users; `refusal` is the status for all other users."""

    method: str
    path: str
    allowed: frozenset[str] | set[str]
    json: Any = None
    data: str | None = None
    refusal: int = 403


def _promote(**body: Any) -> dict[str, Any]:
    return {"status": "released", **body}


OPERATIONS: dict[str, Operation] = {
    "download": Operation("GET", f"/{SOURCE}/d/a.txt", READERS),
    "head": Operation("HEAD", f"/{SOURCE}/d/a.txt", READERS),
    "listing": Operation("GET", f"/api/storage/{SOURCE}/d?list", READERS),
    "information": Operation("GET", f"/api/storage/{SOURCE}/d/a.txt", READERS),
    "properties": Operation("GET", f"/api/storage/{SOURCE}/d/a.txt?properties", READERS),
    "pattern": Operation("GET", f"/api/search/pattern?pattern={SOURCE}:d/*", READERS),
    "deploy": Operation("PUT", f"/{SOURCE}/new.txt", DEPLOYERS, data="x"),
    "overwrite": Operation("PUT", f"/{SOURCE}/d/a.txt", {"overwrite", ADMIN}, data="x"),
    "annotate": Operation(
        "PUT", f"/api/storage/{SOURCE}/d/a.txt?properties=k=v", {"annotate", ADMIN}
    ),
    "remove properties": Operation(
        "DELETE", f"/api/storage/{SOURCE}/d/a.txt?properties=build.name", {"annotate", ADMIN}
    ),
    "delete": Operation("DELETE", f"/{SOURCE}/d/a.txt", {"delete", "overwrite", ADMIN}),
    "copy": Operation("POST", f"/api/copy/{SOURCE}/d/a.txt?to=/{TARGET}/new.txt", DEPLOYERS),
    "rehearsed copy": Operation(
        "POST", f"/api/copy/{SOURCE}/d/a.txt?to=/{TARGET}/new.txt&dry=1", DEPLOYERS
    ),
    "copy over": Operation(
        "POST", f"/api/copy/{SOURCE}/d/a.txt?to=/{TARGET}/taken/a.txt", {"overwrite", ADMIN}
    ),
    "move": Operation(
        "POST", f"/api/move/{SOURCE}/d/a.txt?to=/{TARGET}/new.txt", {"overwrite", ADMIN}
    ),
    "repository": Operation("GET", f"/api/repositories/{SOURCE}", READERS),
    "configurations": Operation("GET", "/api/repositories/configurations", {ADMIN}),
    "new repository": Operation(
        "PUT", "/api/repositories/new", {ADMIN}, json={"rclass": "local", "packageType": "npm"}
    ),
    "changed repository": Operation(
        "POST", f"/api/repositories/{SOURCE}", {ADMIN}, json={"notes": "x"}
    ),
    "deleted repository": Operation("DELETE", f"/api/repositories/{SOURCE}", {ADMIN}),
    "batch": Operation("GET", f"/api/v2/repositories/batch?names={SOURCE}", {ADMIN}),
    "new batch": Operation(
        "PUT",
        "/api/v2/repositories/batch",
        {ADMIN},
        json=[{"key": "new", "rclass": "local", "packageType": "npm"}],
    ),
    "changed batch": Operation(
        "POST", "/api/v2/repositories/batch", {ADMIN}, json=[{"key": SOURCE, "notes": "x"}]
    ),
    "storage summary": Operation("GET", "/api/storageinfo", {ADMIN}),
    "read the trash": Operation("GET", "/api/storage/auto-trashcan", {ADMIN}),
    "empty the trash": Operation("POST", "/api/trash/empty", {ADMIN}),
    "clean the trash": Operation("DELETE", "/api/trash/clean/generic-snapshot-local", {ADMIN}),
    "build names": Operation("GET", "/api/build", READERS),
    "builds": Operation("GET", "/api/build/app", READERS),
    "build": Operation("GET", "/api/build/app/7", READERS),
    "publish": Operation("PUT", "/api/build", DEPLOYERS, json=BUILD),
    "append": Operation("POST", "/api/build/append/app/7", DEPLOYERS, json=[]),
    "promote": Operation("POST", "/api/build/promote/app/7", DEPLOYERS, json=_promote()),
    "promote by moving": Operation(
        "POST",
        "/api/build/promote/app/7",
        {"overwrite", ADMIN},
        json=_promote(targetRepo=TARGET),
        refusal=400,
    ),
    "delete a build": Operation(
        "DELETE", "/api/build/app?buildNumbers=7", {"delete", "overwrite", ADMIN}
    ),
    "retention": Operation(
        "POST", "/api/build/retention/app", {"delete", "overwrite", ADMIN}, json={"count": 9}
    ),
    "catalog": Operation("GET", f"/api/docker/{IMAGES}/v2/_catalog", READERS),
    "tags": Operation("GET", f"/api/docker/{IMAGES}/v2/app/tags/list", READERS),
    "manifest": Operation("GET", f"/api/docker/{IMAGES}/v2/app/manifests/1", READERS),
    "push": Operation("PUT", f"/api/docker/{IMAGES}/v2/app/manifests/2", DEPLOYERS, data=MANIFEST),
    "upload a blob": Operation("POST", f"/api/docker/{IMAGES}/v2/app/blobs/uploads/", DEPLOYERS),
    "promote an image": Operation(
        "POST",
        f"/api/docker/{IMAGES}/v2/promote",
        DEPLOYERS,
        json={"targetRepo": MORE_IMAGES, "dockerRepository": "app", "tag": "1", "copy": True},
    ),
    "move an image": Operation(
        "POST",
        f"/api/docker/{IMAGES}/v2/promote",
        {"overwrite", ADMIN},
        json={"targetRepo": MORE_IMAGES, "dockerRepository": "app", "tag": "1"},
    ),
    "version": Operation("GET", "/api/system/version", ALL),
}


def _fill(sandbox: Sandbox) -> None:
    sandbox.reset()
    sandbox.seed({"repo": SEED})


@pytest.fixture
def ask(sandbox: Sandbox) -> Iterator[Callable[..., requests.Response]]:
    _fill(sandbox)
    with requests.Session() as session:
        session.trust_env = False

        def call(user: str, method: str, path: str, **options: Any) -> requests.Response:
            login = (user, "admin-password" if user == ADMIN else "p")
            url = sandbox.urls["repo"] + path
            return session.request(method, url, auth=login, timeout=10, **options)

        yield call


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_requires_its_permissions(
    sandbox: Sandbox, ask: Callable[..., requests.Response], name: str
) -> None:
    operation = OPERATIONS[name]
    sent = {"json": operation.json, "data": operation.data}
    for user in sorted(ALL - operation.allowed):
        response = ask(user, operation.method, operation.path, **sent)
        # a copy or move over an existing target is 401
        assert response.status_code in (operation.refusal, 401, 403), (user, response.text)
    after = ask(ADMIN, "GET", f"/{SOURCE}/d/a.txt")
    assert (after.status_code, after.content) == (200, b"a")
    assert "statuses" not in ask(ADMIN, "GET", "/api/build/app/7").json()["buildInfo"]
    for user in sorted(operation.allowed):
        response = ask(user, operation.method, operation.path, **sent)
        assert response.status_code < 300, (user, response.text)
        if operation.method not in ("GET", "HEAD"):
            _fill(sandbox)


def test_unreadable_items_are_omitted(ask: Callable[..., requests.Response]) -> None:
    query = 'items.find({"repo": {"$match": "generic-*"}}).include("repo", "path", "name")'
    found = {
        user: {
            row["repo"]
            for row in ask(user, "POST", "/api/search/aql", data=query).json()["results"]
        }
        for user in ("nothing", "elsewhere")
    }
    assert found == {"nothing": set(), "elsewhere": {TARGET}}
    named = ask("elsewhere", "GET", "/api/search/artifact?name=a.txt").json()["results"]
    assert [entry["uri"].rpartition("/storage/")[2] for entry in named] == [f"{TARGET}/taken/a.txt"]
    listed = ask("elsewhere", "GET", "/api/repositories/?type=local").json()
    assert [entry["key"] for entry in listed] == [TARGET]
    builds = ask("nothing", "POST", "/api/search/aql", data="builds.find({})")
    assert builds.json()["results"] == []


def test_short_page_does_not_end_the_list(ask: Callable[..., requests.Response]) -> None:
    query = (
        'items.find({"name": "a.txt"}).include("repo", "path", "name")'
        '.sort({"$desc": ["repo"]}).limit(1)'
    )
    assert ask("elsewhere", "POST", "/api/search/aql", data=query).json()["results"] == []


def test_virtual_repository_shows_readable_members(
    ask: Callable[..., requests.Response],
) -> None:
    assert ask("elsewhere", "GET", "/generic/taken/a.txt").content == b"other"
    assert ask("elsewhere", "GET", "/generic/d/a.txt").status_code == 404
    assert ask("nothing", "GET", "/generic/taken/a.txt").status_code == 403
    listed = ask("elsewhere", "GET", "/api/storage/generic?list&deep=1").json()["files"]
    assert [entry["uri"] for entry in listed] == ["/taken/a.txt"]


def test_hidden_item_is_not_found(sandbox: Sandbox, ask: Callable[..., requests.Response]) -> None:
    sandbox.settings("repo", hide_unauthorized=True)
    for path in (f"/{SOURCE}/d/a.txt", f"/api/storage/{SOURCE}/d/a.txt", "/api/build/app/7"):
        assert ask("nothing", "GET", path).status_code == 404
    assert ask("read", "PUT", f"/{SOURCE}/new.txt", data=b"x").status_code == 403


def test_properties_in_a_path_are_dropped_silently(
    ask: Callable[..., requests.Response],
) -> None:
    assert ask("deploy", "PUT", f"/{SOURCE}/new.txt;k=v", data=b"x").status_code == 201
    assert ask("read", "GET", f"/api/storage/{SOURCE}/new.txt?properties").status_code == 404


def test_copy_over_an_existing_file_is_401(ask: Callable[..., requests.Response]) -> None:
    response = ask("deploy", "POST", f"/api/copy/{SOURCE}/d/a.txt?to=/{TARGET}/taken/a.txt")
    assert response.status_code == 401
    assert "Needs delete permissions" in response.json()["messages"][0]["message"]
