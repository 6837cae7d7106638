# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the permissions of every operation on the sandbox's CI server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"

ITEM, OVERALL = "hudson.model.Item", "hudson.model.Hudson"
READ, MANAGE, SYSTEM_READ = f"{OVERALL}.Read", f"{OVERALL}.Manage", f"{OVERALL}.SystemRead"
ADMINISTER = f"{OVERALL}.Administer"
SEE = f"{ITEM}.Read"
#: Tested permissions. A separate account has Overall/Read, Item/Read and the permission.
PERMISSIONS = (
    f"{ITEM}.Build",
    f"{ITEM}.Cancel",
    f"{ITEM}.ExtendedRead",
    f"{ITEM}.Configure",
    f"{ITEM}.Create",
    f"{ITEM}.Delete",
    "hudson.model.Run.Delete",
    MANAGE,
    SYSTEM_READ,
    ADMINISTER,
    SEE,
)
JOB, BUILD = "/job/long-history", "/job/long-history/120"
TOKENS = "/user/builder/descriptorByName/jenkins.security.ApiTokenProperty"
XML = {"Content-Type": "application/xml"}


@dataclass(frozen=True)
class Operation:
    """A request and the permission it requires (administrators have every permission)."""

    method: str
    path: str
    permission: str
    options: dict[str, Any] = field(default_factory=dict)

    def allows(self, permission: str) -> bool:
        return permission in (ADMINISTER, self.permission) or self.permission == SEE


_TEXT = {"data": "<project/>", "headers": XML}
_PLUGINS = {"data": '<x><y plugin="git@1"/></x>', "headers": {"Content-Type": "text/xml"}}
OPERATIONS: dict[str, Operation] = {
    "read a job": Operation("GET", f"{JOB}/api/json", SEE),
    "read a build": Operation("GET", f"{BUILD}/api/json", SEE),
    "log": Operation("GET", f"{BUILD}/consoleText", SEE),
    "artifact": Operation("GET", f"{BUILD}/artifact/*zip*/archive.zip", SEE),
    "trigger": Operation("POST", f"{JOB}/buildWithParameters?delay=60sec", f"{ITEM}.Build"),
    "stop": Operation("POST", f"{BUILD}/stop", f"{ITEM}.Cancel"),
    "kill": Operation("POST", f"{BUILD}/kill", f"{ITEM}.Cancel"),
    "read the configuration": Operation("GET", f"{JOB}/config.xml", f"{ITEM}.ExtendedRead"),
    "configure": Operation("POST", f"{JOB}/config.xml", f"{ITEM}.Configure", _TEXT),
    "disable": Operation("POST", f"{JOB}/disable", f"{ITEM}.Configure"),
    "enable": Operation("POST", f"{JOB}/enable", f"{ITEM}.Configure"),
    "describe": Operation("POST", f"{JOB}/submitDescription", f"{ITEM}.Configure"),
    "rename": Operation("POST", f"{JOB}/confirmRename?newName=other", f"{ITEM}.Configure"),
    "create": Operation("POST", "/createItem?name=made", f"{ITEM}.Create", _TEXT),
    "create in a folder": Operation(
        "POST", "/job/delivery/createItem?name=made", f"{ITEM}.Create", _TEXT
    ),
    "delete": Operation("POST", f"{JOB}/doDelete", f"{ITEM}.Delete"),
    "delete by its method": Operation("DELETE", f"{JOB}/", f"{ITEM}.Delete"),
    "delete a build": Operation("POST", f"{BUILD}/doDelete", "hudson.model.Run.Delete"),
    "script": Operation("POST", "/scriptText", ADMINISTER, {"data": {"script": "1"}}),
    "revoke a token": Operation("POST", f"{TOKENS}/revoke?tokenUuid=x", ADMINISTER),
    "restart": Operation("POST", "/safeRestart", MANAGE),
    "quiet down": Operation("POST", "/quietDown", ADMINISTER),
    "plugins": Operation("GET", "/pluginManager/api/json", SYSTEM_READ),
    "update centre": Operation("GET", "/updateCenter/api/json", SYSTEM_READ),
    "installations": Operation("GET", "/updateCenter/installStatus", SYSTEM_READ),
    "install": Operation("POST", "/pluginManager/installNecessaryPlugins", ADMINISTER, _PLUGINS),
    "rehearse an installation": Operation(
        "POST", "/pluginManager/prevalidateConfig", ADMINISTER, _PLUGINS
    ),
    "disable a plugin": Operation("POST", "/pluginManager/plugin/git/makeDisabled", ADMINISTER),
    "remove a plugin": Operation("POST", "/pluginManager/plugin/git/doUninstall", ADMINISTER),
}


def _user(permission: str) -> str:
    return permission.rpartition(".")[2].lower() + permission.split(".")[2].lower()


def _account(*permissions: str, jobs: dict[str, list[str]] | None = None) -> dict[str, Any]:
    return {"api_tokens": ["t"], "permissions": list(permissions), "job_permissions": jobs or {}}


USERS = {
    **{_user(each): _account(READ, SEE, each) for each in PERMISSIONS},
    "blind": _account(READ),
    # an account with permissions on single jobs only
    "own": _account(READ, jobs={"long-*": [SEE, f"{ITEM}.Build"], "delivery": [SEE]}),
    "reading-creator": _account(READ, SEE, f"{ITEM}.Create", f"{ITEM}.ExtendedRead"),
    "stray": _account(READ, jobs={"delivery/toolchain": [SEE]}),
}
Ask = Callable[..., requests.Response]


def _fill(sandbox: Sandbox) -> None:
    sandbox.reset()
    sandbox.seed({"ci": {"credentials": {"users": USERS}}})


@pytest.fixture
def ask(sandbox: Sandbox) -> Iterator[Ask]:
    _fill(sandbox)
    with requests.Session() as session:
        session.trust_env = False

        def call(user: str, method: str, path: str, **options: Any) -> requests.Response:
            url = sandbox.urls["ci"] + path
            return session.request(
                method, url, auth=(user, "t"), timeout=10, allow_redirects=False, **options
            )

        yield call


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_requires_its_permissions(sandbox: Sandbox, ask: Ask, name: str) -> None:
    operation = OPERATIONS[name]
    before = ask(_user(ADMINISTER), "GET", f"{JOB}/config.xml").text
    for permission in PERMISSIONS:
        if not operation.allows(permission):
            response = ask(_user(permission), operation.method, operation.path, **operation.options)
            assert response.status_code == 403, (permission, response.text)
            assert response.headers["X-Required-Permission"] == operation.permission
    assert ask(_user(ADMINISTER), "GET", f"{JOB}/config.xml").text == before
    for permission in PERMISSIONS:
        if operation.allows(permission):
            response = ask(_user(permission), operation.method, operation.path, **operation.options)
            assert response.status_code < 400, (permission, response.text)
            if operation.method != "GET":
                _fill(sandbox)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if JOB in OPERATIONS[name].path])
def test_unreadable_object_is_not_found(ask: Ask, name: str) -> None:
    operation = OPERATIONS[name]
    response = ask("blind", operation.method, operation.path, **operation.options)
    assert response.status_code == 404


def test_permissions_of_single_jobs_apply(ask: Ask) -> None:
    assert ask("own", "POST", f"{JOB}/buildWithParameters").status_code == 201
    assert ask("own", "GET", "/job/slow/api/json").status_code == 404
    assert ask("own", "POST", f"{JOB}/disable").status_code == 403
    names = {job["name"] for job in ask("own", "GET", "/api/json").json()["jobs"]}
    assert names == {"long-history", "delivery"}
    assert ask("own", "GET", "/job/delivery/api/json").json()["jobs"] == []
    # without access to the folder, its jobs are not found
    assert ask("stray", "GET", "/job/delivery/job/toolchain/api/json").status_code == 404


def test_queue_shows_readable_items_only(ask: Ask) -> None:
    admin = _user(ADMINISTER)
    items = {}
    for job in ("long-history", "offline"):
        way = "buildWithParameters" if job == "long-history" else "build"
        response = ask(admin, "POST", f"/job/{job}/{way}?delay=60sec")
        items[job] = response.headers["Location"].rstrip("/").rpartition("/")[2]
    shown = ask("own", "GET", "/queue/api/json").json()["items"]
    assert [str(item["id"]) for item in shown] == [items["long-history"]]
    assert ask("own", "GET", f"/queue/item/{items['offline']}/api/json").status_code == 404
    cancel = "/queue/cancelItem?id="
    # server fact [ci-25]: 422 without the permission to cancel, 404 if the item is not visible
    assert ask("own", "POST", cancel + items["long-history"]).status_code == 422
    assert ask("own", "POST", cancel + items["offline"]).status_code == 404
    assert ask(admin, "POST", cancel + items["offline"]).status_code == 204


def test_copying_secrets_requires_read_and_configure(ask: Ask) -> None:
    copy = "/createItem?name=copy&mode=copy&from="
    creator = _user(f"{ITEM}.Create")
    plain = ask(creator, "POST", f"{copy}long-history")
    assert plain.headers["X-Required-Permission"] == f"{ITEM}.ExtendedRead"
    secret = ask("reading-creator", "POST", f"{copy}secret-parameters")
    assert (secret.status_code, "contains secrets" in secret.headers["X-Error"]) == (403, True)
    assert ask("reading-creator", "POST", f"{copy}long-history").status_code == 302
