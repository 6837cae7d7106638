# SPDX-License-Identifier: GPL-3.0-or-later
"""Test single issues and projects on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.tracker_issue_info import (
    TrackerIssueInfoOperation,
    TrackerIssueInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects.tracker_project_info import (
    TrackerProjectInfoOperation,
    TrackerProjectInfoOptions,
)
from tests.helpers.options import build
from tests.unit.stub import Reply, Seen, Stub
from tests.unit.tracker.running import Run

GONE = Reply(404, {"errorMessages": ["Issue Does Not Exist"], "errors": {}})
ANONYMOUS = {"X-Seraph-LoginReason": "AUTHENTICATED_FAILED", "X-AUSERNAME": "anonymous"}
LOCKED = {"X-Authentication-Denied-Reason": "CAPTCHA_CHALLENGE; login-url=http://x/login"}


def read_issues(stub: Stub, settings: dict[str, Any] | None = None, **params: Any) -> Any:
    options = build(TrackerIssueInfoOptions, **params)
    return Run(stub, TrackerIssueInfoOperation, options, **(settings or {}))()["issues"]


def read_projects(stub: Stub, key: str | None = None, dialect: str = "server") -> Any:
    options = TrackerProjectInfoOptions(key)
    return Run(stub, TrackerProjectInfoOperation, options, dialect=dialect)()["projects"]


def by_key(seen: Seen) -> Reply:
    """Simulate a server on which every issue below 900 exists; OLD-1 was moved."""
    key = unquote(seen.path.rpartition("/")[2])
    number = int(key.rpartition("-")[2])
    if number >= 900:
        return GONE
    return Reply(body={"id": str(number), "key": key.replace("OLD", "REL"), "fields": {}})


def test_issue_is_read_by_key() -> None:
    with Stub(response=by_key) as stub:
        found = read_issues(stub, {"accept_language": "en"}, issue="REL-1")
        (seen,) = stub.seen
    assert found == [{"id": "1", "key": "REL-1", "fields": {}, "requested": ["REL-1"]}]
    assert (seen.method, seen.target) == ("GET", "/base/rest/api/2/issue/REL-1")
    assert seen.headers["Accept"] == "application/json"
    assert seen.headers["Accept-Language"] == "en"
    assert seen.headers["X-Force-Accept-Language"] == "true"
    assert "X-Atlassian-Token" not in seen.headers


def test_fields_and_expand_are_sent_as_lists() -> None:
    with Stub(response=by_key) as stub:
        read_issues(stub, issue="REL-1", fields=["summary", "-comment"], expand=["names", "schema"])
        read_issues(stub, issue="REL-1", fields=[], expand=[])
        first, second = (parse_qs(urlsplit(seen.target).query) for seen in stub.seen)
    assert first == {"fields": ["summary,-comment"], "expand": ["names,schema"]}
    assert second == {"fields": ["key"]}


def test_issues_keep_the_requested_order() -> None:
    keys = [f"REL-{number}" for number in (7, 3, 300, 7, 1, 299)] + ["OLD-2"]
    with Stub(response=by_key) as stub:
        found = read_issues(stub, issues=keys, parallel=3)
        assert len(stub.seen) <= 6
        assert stub.connections <= 3
    expected = ["REL-7", "REL-3", "REL-300", "REL-1", "REL-299", "REL-2"]
    assert [issue["key"] for issue in found] == expected


def test_issue_of_several_keys_is_returned_once() -> None:
    with Stub(response=by_key) as stub:
        found = read_issues(stub, issues=["OLD-1", "REL-2", "rel-1", "REL-1", "OLD-1"])
    assert [issue["requested"] for issue in found] == [["OLD-1", "rel-1", "REL-1"], ["REL-2"]]
    assert [issue["key"] for issue in found] == ["REL-1", "REL-2"]


def test_issue_without_an_id_is_known_by_its_key() -> None:
    with Stub(response=lambda _seen: Reply(body={"key": "REL-1", "fields": {}})) as stub:
        found = read_issues(stub, issues=["OLD-1", "REL-1"])
    assert found == [{"key": "REL-1", "fields": {}, "requested": ["OLD-1", "REL-1"]}]


def test_empty_list_of_issues_takes_no_request() -> None:
    with Stub() as stub:
        assert read_issues(stub, issues=[]) == []


def test_every_missing_issue_is_named() -> None:
    keys = ["REL-1", "REL-901", "REL-2", "REL-900"]
    with Stub(response=by_key) as stub, pytest.raises(ToolchainError) as caught:
        read_issues(stub, issues=keys)
    assert (caught.value.kind, caught.value.status) == ("not_found", 404)
    assert "REL-901, REL-900; the server returned 404: Issue Does Not Exist" in str(caught.value)
    assert "REL-2" not in str(caught.value)


def test_error_for_hundreds_of_missing_issues_is_short() -> None:
    keys = [f"REL-{number}" for number in range(900, 1100)]
    with Stub(response=by_key) as stub, pytest.raises(ToolchainError, match="150 more") as caught:
        read_issues(stub, issues=keys)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("key", ["..", "", "."])
def test_unsafe_key_is_rejected(key: str) -> None:
    with Stub() as stub, pytest.raises(ToolchainError) as caught:
        read_issues(stub, issue=key)
    assert caught.value.kind == "invalid"


def test_key_stays_in_its_path_segment() -> None:
    with Stub(GONE) as stub:
        with pytest.raises(ToolchainError):
            read_issues(stub, issue="A/../B?x#y")
        assert stub.seen[0].target == "/base/rest/api/2/issue/A%2F..%2FB%3Fx%23y"


def test_parallel_must_be_positive() -> None:
    with Stub() as stub, pytest.raises(ToolchainError, match="parallel") as caught:
        read_issues(stub, issue="REL-1", parallel=0)
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(body={"key": "REL-1"}, headers=ANONYMOUS), "AUTHENTICATED_FAILED"),
        (Reply(body="", headers=ANONYMOUS), "AUTHENTICATED_FAILED"),
        (Reply(404, {"errorMessages": ["gone"]}, ANONYMOUS), "AUTHENTICATED_FAILED"),
        (Reply(body=b"[]", headers={"X-AACCOUNTID": "anonymous"}), "X-AACCOUNTID: anonymous"),
        (Reply(403, "<html>locked</html>", LOCKED), "CAPTCHA_CHALLENGE"),
        (Reply(302, headers={"Location": "/base/login.jsp"}), "login page"),
        (Reply(body='<html><form><input type="password"></form></html>'), "login page"),
    ],
)
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (TrackerIssueInfoOperation, TrackerIssueInfoOptions(issue="REL-1")),
        (TrackerProjectInfoOperation, TrackerProjectInfoOptions()),
        (TrackerProjectInfoOperation, TrackerProjectInfoOptions("REL")),
    ],
)
def test_rejected_login_is_not_retried(
    make: Callable[[Task, Any], Operation], options: Any, reply: Reply, words: str
) -> None:
    with Stub(reply) as stub, pytest.raises(ToolchainError, match=words) as caught:
        Run(stub, make, options, retries=3)()
    assert caught.value.kind == "auth"
    assert len(stub.seen) == 1


@pytest.mark.parametrize("body", ["", "[]", "<html><h1>Welcome</h1></html>", '{"fields": 1}', "{}"])
def test_malformed_issue_is_an_error(body: str) -> None:
    with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
        read_issues(stub, issue="REL-1")
    assert caught.value.kind == "protocol"


PROJECTS = [{"id": "1", "key": "OPS", "name": " Operations"}, {"id": "2", "key": "REL"}]


def test_all_projects_take_one_request() -> None:
    with Stub(Reply(body=b'[{"key": "OPS", "name": " Operations"}, {"key": "REL"}]')) as stub:
        found = read_projects(stub)
        assert [seen.target for seen in stub.seen] == ["/base/rest/api/2/project"]
    assert found == [{"key": "OPS", "name": " Operations"}, {"key": "REL"}]


def test_no_projects_are_an_empty_list() -> None:
    with Stub(Reply(body=b"[]")) as stub:
        assert read_projects(stub) == []


def test_project_is_read_by_key() -> None:
    with Stub(Reply(body={"key": "REL", "versions": []})) as stub:
        assert read_projects(stub, "REL") == [{"key": "REL", "versions": []}]
        assert [seen.target for seen in stub.seen] == ["/base/rest/api/2/project/REL"]


@pytest.mark.parametrize("key", ["REL", "2"])
def test_single_project_falls_back_to_the_list(key: str) -> None:
    body = b'[{"id": 1, "key": "OPS"}, {"id": 2, "key": "REL"}]'
    with Stub(Reply(404), Reply(body=body)) as stub:
        assert read_projects(stub, key) == [{"id": 2, "key": "REL"}]


def test_missing_project_is_named() -> None:
    missing = Reply(404, {"errorMessages": ["No project could be found"], "errors": {}})
    with Stub(missing, Reply(body=b"[]")) as stub, pytest.raises(ToolchainError) as caught:
        read_projects(stub, "NOPE")
    assert caught.value.kind == "not_found"
    assert "'NOPE'" in str(caught.value)
    assert "No project could be found" in str(caught.value)


@pytest.mark.parametrize("dialect", ["auto", "cloud"])
def test_projects_of_the_cloud_are_read_page_by_page(dialect: str) -> None:
    def cloud(seen: Seen) -> Reply:
        if seen.path.endswith("/serverInfo"):
            return Reply(body={"deploymentType": "Cloud"})
        start = int(parse_qs(urlsplit(seen.target).query)["startAt"][0])
        page = PROJECTS[start : start + 1]
        return Reply(body={"startAt": start, "total": 2, "values": page, "isLast": start == 1})

    with Stub(response=cloud) as stub:
        assert read_projects(stub, dialect=dialect) == PROJECTS
        assert len(stub.seen) <= (3 if dialect == "auto" else 2)
        assert stub.seen[-1].path == "/base/rest/api/2/project/search"


@pytest.mark.parametrize("body", [b'{"values": 1}', b"[]", b'{"values": ["a"]}'])
def test_malformed_pages_are_an_error(body: bytes) -> None:
    with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
        read_projects(stub, dialect="cloud")
    assert caught.value.kind == "protocol"


def test_incomplete_list_of_projects_is_an_error() -> None:
    page = {"startAt": 0, "total": 2, "values": [PROJECTS[0], PROJECTS[0]]}
    with Stub(Reply(body=page)) as stub, pytest.raises(ToolchainError) as caught:
        read_projects(stub, dialect="cloud")
    assert caught.value.kind == "protocol"
    assert "is incomplete" in str(caught.value)


@pytest.mark.parametrize("body", [b"{}", b'["REL"]', b"null"])
def test_malformed_list_of_projects_is_an_error(body: bytes) -> None:
    with Stub(Reply(body=body)) as stub, pytest.raises(ToolchainError) as caught:
        read_projects(stub)
    assert caught.value.kind == "protocol"


def test_rejected_login_is_sent_once_for_many_issues() -> None:
    with Stub(response=lambda _seen: Reply(401)) as stub:
        with pytest.raises(ToolchainError) as caught:
            read_issues(stub, issues=[f"REL-{number}" for number in range(1, 9)])
        assert len(stub.seen) == 1
    assert caught.value.kind == "auth"
