# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the permission of every operation of the sandbox's issue tracker and wiki.

An account with all permissions except the required one is rejected with the server's error message.
With the required permission, the request succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox

XSRF = {"X-Atlassian-Token": "no-check"}
ISSUE, VERSION = "/rest/api/2/issue", "/rest/api/2/version"
CONTENT = "/rest/api/content"
TRACKER = (
    *("browse", "create", "edit", "assign", "assignable", "transition"),
    *("comment", "attach", "link", "delete", "administer"),
)
WIKI = ("view", "add", "delete", "attach", "delete_attachments", "administer")
PERMISSIONS = {"tracker": TRACKER, "wiki": WIKI}
PLACE = {"tracker": "REL", "wiki": "REL"}
VERSION_ID = "10001"


def storage(title: str, number: int) -> dict[str, Any]:
    return {
        "type": "page",
        "title": title,
        "space": {"key": "REL"},
        "version": {"number": number},
        "body": {"storage": {"value": "<p>x</p>", "representation": "storage"}},
    }


@dataclass(frozen=True)
class Operation:
    """A request that needs `right`, and its responses with the right and without it.

    `allowed` and `refused` are the status codes, `words` is part of the error message.
    """

    service: str
    right: str
    method: str
    path: str
    allowed: int
    refused: int
    words: str = ""
    members: Any = None
    files: bool = False
    cloud: tuple[int, str] | None = None
    before: tuple[str, str] | None = field(default=None)

    def __str__(self) -> str:
        return f"{self.service}-{self.right}-{self.method}-{self.path.rpartition('/')[2]}"


def tracker(right: str, method: str, path: str, *answers: Any, **more: Any) -> Operation:
    return Operation("tracker", right, method, path, *answers, **more)


def wiki(right: str, method: str, path: str, *answers: Any, **more: Any) -> Operation:
    return Operation("wiki", right, method, path, *answers, **more)


NEW = {
    "fields": {"project": {"key": "REL"}, "issuetype": {"name": "Task"}, "summary": "x"},
}
UNSEEN = "Issue Does Not Exist"
SCREEN = "It is not on the appropriate screen, or unknown."
NO_RIGHT = "The user limited does not have permission to complete this operation."
LINK = {
    "type": {"name": "Blocks"},
    "inwardIssue": {"key": "REL-1"},
    "outwardIssue": {"key": "REL-2"},
}
ELSEWHERE = "Issue does not exist or you do not have permission to see it."

OPERATIONS = [
    tracker("browse", "GET", f"{ISSUE}/REL-19", 200, 404, UNSEEN, cloud=(404, ELSEWHERE)),
    tracker("browse", "GET", "/rest/api/2/project/REL", 200, 404, "No project could be found"),
    tracker("browse", "GET", f"{ISSUE}/REL-19/transitions", 200, 404, UNSEEN),
    tracker("browse", "GET", f"{ISSUE}/REL-19/comment", 200, 404, UNSEEN),
    tracker("browse", "GET", "/secure/attachment/501/", 200, 404, "Page not found"),
    tracker("create", "POST", ISSUE, 201, 400, "You cannot create issues in this", members=NEW),
    tracker("create", "GET", f"{ISSUE}/createmeta/REL/issuetypes", 200, 400, "no permission"),
    tracker("edit", "PUT", f"{ISSUE}/REL-19", 204, 400, SCREEN, members={"fields": {"labels": []}}),
    tracker(
        *("assign", "PUT", f"{ISSUE}/REL-19/assignee", 204, 400, "permission to assign issues"),
        members={"name": "boris"},
    ),
    tracker(
        *("assignable", "PUT", f"{ISSUE}/REL-19/assignee", 204, 400, "cannot be assigned issues"),
        members={"name": "limited"},
    ),
    tracker(
        *("transition", "POST", f"{ISSUE}/REL-19/transitions", 204, 400, "is not valid for the"),
        members={"transition": {"id": "11"}},
    ),
    tracker(
        *("comment", "POST", f"{ISSUE}/REL-19/comment", 201, 400, "permission to comment on this"),
        members={"body": "x"},
        cloud=(403, "permission to comment on this"),
    ),
    tracker(
        *("attach", "POST", f"{ISSUE}/REL-19/attachments", 200, 403, "create attachments"),
        files=True,
    ),
    tracker("administer", "DELETE", "/rest/api/2/attachment/501", 204, 403, "delete attachment"),
    tracker(
        *("link", "POST", "/rest/api/2/issueLink", 201, 401, "No Link Issue Permission"),
        members=LINK,
        cloud=(403, "No Link Issue Permission"),
    ),
    tracker("delete", "DELETE", f"{ISSUE}/REL-19", 204, 403, "permission to delete issues"),
    tracker(
        *("administer", "POST", VERSION, 201, 404, "permission to create versions in it."),
        members={"project": "REL", "name": "9"},
    ),
    tracker(
        *("administer", "PUT", f"{VERSION}/{VERSION_ID}", 200, 403, "project administrator rights"),
        members={"description": "x"},
        cloud=(404, "project administrator rights"),
    ),
    tracker("administer", "DELETE", f"{VERSION}/{VERSION_ID}", 204, 401, NO_RIGHT),
    tracker(
        *("administer", "POST", f"{VERSION}/{VERSION_ID}/removeAndSwap", 204, 401, NO_RIGHT),
        members={},
    ),
    tracker(
        *("administer", "POST", f"{VERSION}/{VERSION_ID}/move", 200, 401, NO_RIGHT),
        members={"position": "Last"},
    ),
    tracker(
        *("administer", "PUT", f"{ISSUE}/REL-19?notifyUsers=false", 204, 403, "project admin"),
        members={"fields": {"labels": []}},
        cloud=(204, ""),
    ),
    wiki("view", "GET", f"{CONTENT}/1002", 200, 404, "No content found with id"),
    wiki("view", "GET", f"{CONTENT}/1001/child/page", 200, 404, "No content found with id"),
    wiki("view", "GET", "/rest/api/space/REL", 200, 404, "No space with key : REL"),
    wiki("view", "PUT", f"{CONTENT}/1002", 200, 404, "No content", members=storage("Handbook", 4)),
    wiki("view", "POST", CONTENT, 200, 404, "No space with key", members=storage("New", 1)),
    wiki("add", "POST", CONTENT, 200, 403, "Could not create", members=storage("New", 1)),
    wiki("add", "PUT", f"{CONTENT}/1002", 200, 403, "update", members=storage("Handbook", 4)),
    wiki("add", "POST", f"{CONTENT}/1002/label", 200, 403, "update", members=[{"name": "x"}]),
    wiki("add", "DELETE", f"{CONTENT}/1002/label/handbook", 204, 403, "Could not update"),
    wiki(
        *("add", "POST", f"{CONTENT}/1002/property", 200, 403, "Could not update"),
        members={"key": "k", "value": 1},
    ),
    wiki(
        *("add", "PUT", f"{CONTENT}/1002/property/k", 200, 403, "Could not update"),
        members={"value": 1, "version": {"number": 1}},
    ),
    wiki("delete", "DELETE", f"{CONTENT}/1002", 204, 403, "Could not delete Content"),
    wiki(
        *("administer", "DELETE", f"{CONTENT}/1002?status=trashed", 204, 403, "Could not purge"),
        before=("DELETE", f"{CONTENT}/1002"),
    ),
    wiki(
        *("attach", "POST", f"{CONTENT}/1002/child/attachment", 200, 403, "create attachments"),
        files=True,
    ),
]


def allow(sandbox: Sandbox, service: str, permissions: list[str]) -> None:
    """Grant the account `limited` these permissions in a single project or space only."""
    granted = {PLACE[service]: permissions}
    account = {"password": "limited-password", "permissions": granted}
    data: dict[str, Any] = {"credentials": {"users": {"limited": account}}}
    if service == "tracker":
        data["users"] = {"limited": {"displayName": "Limited"}}
    sandbox.seed({service: data})


def send(sandbox: Sandbox, operation: Operation, user: str = "limited") -> requests.Response:
    def request(method: str, path: str, **more: Any) -> requests.Response:
        address = sandbox.urls[operation.service] + path
        login = (user, f"{user}-password")
        return requests.request(method, address, headers=XSRF, auth=login, timeout=10, **more)

    if operation.before is not None:
        assert request(*operation.before).status_code == 204
    files = {"file": ("a.txt", b"a")} if operation.files else None
    return request(operation.method, operation.path, json=operation.members, files=files)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_operation_requires_its_permission(sandbox: Sandbox, operation: Operation) -> None:
    everything = list(PERMISSIONS[operation.service])
    others = [one for one in everything if one != operation.right]
    allow(sandbox, operation.service, others)
    response = send(sandbox, operation)
    assert (response.status_code, operation.words in response.text) == (operation.refused, True), (
        response.text
    )
    sandbox.reset()
    allow(sandbox, operation.service, everything)
    assert send(sandbox, operation).status_code == operation.allowed


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.cloud], ids=str)
def test_operation_requires_its_permission_in_the_cloud(
    sandbox: Sandbox, operation: Operation
) -> None:
    assert operation.cloud is not None
    sandbox.settings(operation.service, deployment="Cloud")
    everything = list(PERMISSIONS[operation.service])
    allow(sandbox, operation.service, [one for one in everything if one != operation.right])
    response = send(sandbox, operation)
    assert (response.status_code, operation.cloud[1] in response.text) == (operation.cloud[0], True)


def test_every_permission_is_in_the_table() -> None:
    named = {(operation.service, operation.right) for operation in OPERATIONS}
    missing = {
        (service, right) for service, rights in PERMISSIONS.items() for right in rights
    } - named
    assert missing == {("wiki", "delete_attachments")}


def test_deleting_a_file_requires_its_own_permission(sandbox: Sandbox) -> None:
    allow(sandbox, "wiki", ["view", "add", "attach", "delete", "administer"])
    upload = wiki("attach", "POST", f"{CONTENT}/1002/child/attachment", 200, 403, files=True)
    number = send(sandbox, upload).json()["results"][0]["id"]
    delete = wiki("delete_attachments", "DELETE", f"{CONTENT}/{number}", 204, 403)
    assert send(sandbox, delete).status_code == 403
    allow(sandbox, "wiki", ["view", "delete_attachments"])
    assert send(sandbox, delete).status_code == 204


def test_permission_applies_only_to_its_project(sandbox: Sandbox) -> None:
    allow(sandbox, "tracker", list(TRACKER))
    allow(sandbox, "wiki", list(WIKI))
    login, urls = ("limited", "limited-password"), sandbox.urls
    projects = requests.get(f"{urls['tracker']}/rest/api/2/project", auth=login, timeout=10)
    assert [one["key"] for one in projects.json()] == ["REL"]
    query = {"jql": "project = OPS"}
    search = f"{urls['tracker']}/rest/api/2/search"
    assert requests.get(search, params=query, auth=login, timeout=10).status_code == 400
    spaces = requests.get(f"{urls['wiki']}/rest/api/space", auth=login, timeout=10).json()
    assert [result["key"] for result in spaces["results"]] == ["REL"]
    other = requests.get(f"{urls['wiki']}{CONTENT}/1101", auth=login, timeout=10)
    assert other.status_code == 404


def test_versions_are_administered_without_browse_permission(sandbox: Sandbox) -> None:
    allow(sandbox, "tracker", ["administer"])
    version = tracker("administer", "GET", "/rest/api/2/project/REL/versions", 200, 404)
    assert len(send(sandbox, version).json()) == 3
    count = tracker("administer", "GET", f"{VERSION}/{VERSION_ID}/unresolvedIssueCount", 200, 404)
    assert send(sandbox, count).json()["issuesUnresolvedCount"] == 0
    delete = tracker("administer", "DELETE", f"{VERSION}/{VERSION_ID}", 204, 401)
    assert send(sandbox, delete).status_code == 204


def test_missing_permission_for_a_version_is_not_a_login_error(sandbox: Sandbox) -> None:
    delete = tracker("administer", "DELETE", f"{VERSION}/{VERSION_ID}", 204, 401)
    response = send(sandbox, delete, "reader")
    assert (response.status_code, response.headers["X-AUSERNAME"]) == (401, "reader")
    assert response.headers["X-Seraph-LoginReason"] == "OK"


def test_offered_transitions_depend_on_the_account(sandbox: Sandbox) -> None:
    transitions = tracker("browse", "GET", f"{ISSUE}/REL-19/transitions", 200, 404)
    assert send(sandbox, transitions, "reader").json()["transitions"] == []
    assert len(send(sandbox, transitions, "developer").json()["transitions"]) == 2
    meta = tracker("browse", "GET", f"{ISSUE}/REL-19/editmeta", 200, 404)
    assert send(sandbox, meta, "reader").json() == {"fields": {}}
    assert "labels" in send(sandbox, meta, "developer").json()["fields"]
