# SPDX-License-Identifier: GPL-3.0-or-later
"""Test spaces and their permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_space import (
    WikiSpaceOperation,
    WikiSpaceOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections

Fresh = Callable[[str], Sandbox]


def run(sandbox: Sandbox, *, check: bool = False, login: Any = None, **options: Any) -> Any:
    """Return the plan and the return values."""
    settings = {"timeout": 10.0, "retries": 0, "retry_max_wait": 0.0}
    given = {"url": sandbox.urls["wiki"], **(login or connections.LOGINS["wiki"]), **settings}
    task = Task(
        resolve(SERVICES["wiki"], given.get, environ={}), lambda text: None, read_only=check
    )
    parsed = typed_options.parse(WikiSpaceOptions, options)
    operation = WikiSpaceOperation(task, parsed)
    plan = operation.plan()
    values = dict(plan.result)
    if plan.changed and check:
        operation.preflight(plan)
    elif plan.changed:
        values |= operation.apply(plan)
    return plan, values


def refused(sandbox: Sandbox, **options: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        run(sandbox, **options)
    return caught.value


def thrice(sandbox: Sandbox, **options: Any) -> Any:
    """Run in check mode, for real, and again; return the space."""
    predicted = run(sandbox, check=True, **options)
    plan, values = run(sandbox, **options)
    assert plan.changed
    assert predicted[0].diff() == plan.diff()
    assert not run(sandbox, **options)[0].changed
    return values["space"]


def test_space_is_created_updated_and_deleted(fresh: Fresh) -> None:
    sandbox = fresh("real")
    made = thrice(sandbox, key="DOC", name="Documentation", description="größe", home_page=None)
    assert {**made, "id": None} == {
        "id": None,
        "key": "DOC",
        "name": "Documentation",
        "description": "größe",
        "home_page": None,
    }
    assert thrice(sandbox, key="DOC", description="")["description"] == ""
    assert thrice(sandbox, key="REL", home_page="Handbook")["home_page"] == "Handbook"
    assert thrice(sandbox, key="DOC", state="absent") is None
    error = refused(sandbox, key="REL", state="absent")
    assert error.kind == "conflict"
    assert "REL has 2 pages besides its home page 'Handbook': set force" in error.message
    assert thrice(sandbox, key="REL", state="absent", force=True) is None


@pytest.mark.parametrize("cloud", [False, True])
@pytest.mark.parametrize(
    ("home", "kind", "words"),
    [
        (None, "page", "has 1 page: set force"),
        ("1801", "page", "has 1 page besides its home page 'Home': set force"),
        ("1801", "blogpost", "has 1 blog post: set force"),
    ],
)
def test_space_with_other_content_than_its_home_page_is_kept(
    fresh: Fresh, home: str | None, kind: str, words: str, *, cloud: bool
) -> None:
    sandbox = fresh("real")
    login = {"dialect": "cloud_v2" if cloud else "server", **connections.LOGINS["wiki"]}
    if cloud:
        sandbox.settings("wiki", deployment="Cloud", version_2=True)
    pages = [{"id": "1800", "space": "DOC", "title": "Notes", "type": kind}]
    pages += [] if home is None else [{"id": home, "space": "DOC", "title": "Home"}]
    sandbox.seed({"wiki": {"spaces": [{"key": "DOC", "name": "D", "home": home}], "pages": pages}})
    for check in (True, False):
        error = refused(sandbox, key="DOC", state="absent", check=check, login=login)
        assert (error.kind, words in error.message) == ("conflict", True), error.message
    assert run(sandbox, key="DOC", state="absent", force=True, login=login)[0].changed


def test_permissions_are_set_added_and_removed(fresh: Fresh) -> None:
    sandbox = fresh("real")
    own = {"user": "reporter", "operations": ["space:read", "space:administer"]}
    writers = {"group": "writers", "operations": ["page:create", "comment:create"]}
    shown = thrice(sandbox, key="REL", permissions=[own, writers])["permissions"]
    mine = {"user:reporter": ["space:administer", "space:read"]}
    assert shown == {**mine, "group:writers": ["comment:create", "page:create"]}
    anonymous = {"anonymous": True, "operations": ["space:read"]}
    more = {"key": "REL", "permissions": [anonymous], "permissions_mode": "add"}
    assert thrice(sandbox, **more)["permissions"]["anonymous"] == ["space:read"]
    less = [anonymous, {"group": "writers", "operations": ["comment:create"]}]
    shown = thrice(sandbox, key="REL", permissions=less, permissions_mode="remove")["permissions"]
    assert shown["group:writers"] == ["page:create"]
    assert "anonymous" not in shown
    for check in (True, False):
        error = refused(sandbox, key="REL", permissions=[writers], check=check)
        assert (error.kind, "account reporter would" in error.message) == ("invalid", True)
    group = {"group": "writers", "operations": ["space:administer"]}
    assert thrice(sandbox, key="REL", permissions=[group])["permissions"]
    assert thrice(sandbox, key="REL", permissions=[], force=True)["permissions"] == {}


def test_new_space_keeps_the_permissions_that_the_server_gave_it(fresh: Fresh) -> None:
    sandbox = fresh("real")
    writers = [{"group": "writers", "operations": ["page:create"]}]
    made = run(sandbox, key="DOC", name="D", permissions=writers)[1]["space"]
    assert made["permissions"]["group:writers"] == ["page:create"]
    exact = [*writers, {"user": "reporter", "operations": ["space:administer", "space:read"]}]
    assert not run(sandbox, key="DOC", permissions=exact)[0].changed


def test_invalid_or_unsupported_permissions_are_reported(fresh: Fresh) -> None:
    sandbox = fresh("real")
    nobody = [{"user": "nobody", "operations": ["space:read"]}]
    for options, kind, words in (
        ({"key": "DOC"}, "invalid", "name is required to create it"),
        ({"key": "a b", "name": "x"}, "invalid", "letters, digits"),
        ({"key": "REL", "home_page": "No"}, "not_found", "home_page: there is no page 'No'"),
        ({"key": "REL", "permissions": nobody}, "not_found", "there is no user 'nobody'"),
        (
            {"key": "REL", "permissions": [{"operations": ["a:b"]}]},
            "invalid",
            "requires exactly one of group",
        ),
        (
            {"key": "REL", "permissions": [{"group": "x", "operations": ["read"]}]},
            "invalid",
            "contains 'read': use space:read, space:administer",
        ),
        (
            {"key": "REL", "permissions": [{"group": "writers", "operations": ["page:fly"]}]},
            "invalid",
            "contains 'page:fly': use space:read",
        ),
        (
            {
                "key": "REL",
                "permissions": [{"group": "nobodies", "operations": ["page:create"]}],
                "permissions_mode": "add",
            },
            "not_found",
            "",
        ),
        ({"key": "REL", "state": "absent", "name": "x"}, "invalid", "name cannot be combined"),
        ({"key": "REL", "permissions_mode": "add"}, "invalid", "permissions_mode requires perm"),
    ):
        for check in (True, False):
            error = refused(sandbox, check=check, **options)
            assert (error.kind, words in error.message) == (kind, True), error.message
    sandbox.settings("wiki", space_permissions=False)
    error = refused(sandbox, key="REL", permissions=[])
    assert (error.kind, "before 9.1" in error.message) == ("rejected", True)


def test_permissions_in_the_cloud_require_version_2(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud", version_2=True)
    login = {**connections.LOGINS["wiki"], "dialect": "cloud_v1"}
    account = [{"user": "account-reporter", "operations": ["space:read"]}]
    for key in ("REL", "NEW"):
        for check in (True, False):
            error = refused(
                sandbox, check=check, login=login, key=key, name="N", permissions=account
            )
            assert (error.kind, "set dialect to auto" in error.message) == ("rejected", True)


def test_permissions_of_the_cloud_are_set_added_and_removed(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud", version_2=True)
    login = {**connections.LOGINS["wiki"], "dialect": "cloud_v2"}
    own = {"user": "account-reporter", "operations": ["space:administer", "space:read"]}
    writers = {"group": "writers", "operations": ["page:create", "space:read", "space:restrict"]}
    everybody = {"anonymous": True, "operations": ["space:read"]}

    def held(**options: Any) -> Any:
        return thrice(sandbox, login=login, key="REL", **options)["permissions"]

    assert held(permissions=[own, writers, everybody]) == {
        "user:account-reporter": ["space:administer", "space:read"],
        "group:writers": ["page:create", "space:read", "space:restrict"],
        "anonymous": ["space:read"],
    }
    deleting = {"group": "writers", "operations": ["space:delete_own"]}
    added = held(permissions=[deleting], permissions_mode="add")["group:writers"]
    assert added == ["page:create", "space:delete_own", "space:read", "space:restrict"]
    left = held(permissions=[writers, deleting, everybody], permissions_mode="remove")
    assert left == {"user:account-reporter": ["space:administer", "space:read"]}


@pytest.mark.parametrize(
    ("permission", "kind", "words"),
    [
        ({"group": "ghosts", "operations": ["space:read"]}, "not_found", "the group 'ghosts'"),
        ({"user": "ghost", "operations": ["space:read"]}, "not_found", "the user 'ghost'"),
        ({"group": "writers", "operations": ["page:create"]}, "invalid", "add space:read"),
        ({"anonymous": True, "operations": ["space:delete_mail"]}, "invalid", "leave it out"),
    ],
)
def test_permissions_that_the_cloud_rejects_fail_in_both_modes(
    fresh: Fresh, permission: dict[str, Any], kind: str, words: str
) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud", version_2=True)
    login = {**connections.LOGINS["wiki"], "dialect": "cloud_v2"}
    options: dict[str, Any] = {"permissions": [permission], "permissions_mode": "add"}
    for check in (True, False):
        error = refused(sandbox, check=check, login=login, key="REL", **options)
        assert (error.kind, words in error.message) == (kind, True), error.message


def test_permissions_without_an_interface_are_reported_on_request(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", space_permissions=False)
    permissions = [{"group": "writers", "operations": ["space:read"]}]
    entries = [
        {"key": "REL", "description": "new", "permissions": permissions},
        {"key": "NEW", "name": "N", "permissions": permissions},
    ]
    for check in (True, False):
        values = run(sandbox, check=check, entries=entries, unsupported="report")[1]
        old, new = values["results"]
        assert [change["field"] for change in old["changes"]] == ["description"]
        for (sentence,) in (old["unsupported"], new["unsupported"]):
            assert sentence.startswith("its permissions are left alone: reading the permissions of")
            assert "before 9.1" in sentence
        # another space shows it, because the new one does not exist yet
        assert [change["field"] for change in new["changes"]] == ["name"]
        assert new["action"] == "created"
    again = run(sandbox, entries=entries, unsupported="report")[0]
    assert not again.changed
    failure = run(sandbox, entries=entries)[0].failure
    assert (failure.kind, "before 9.1" in failure.message) == ("rejected", True)
    options: dict[str, Any] = {"key": "NEWER", "name": "N", "permissions": permissions}
    for check in (True, False):
        error = refused(sandbox, check=check, **options)
        assert (error.kind, "before 9.1" in error.message) == ("rejected", True)
    assert run(sandbox, key="NEWER", state="absent")[1]["space"] is None


def test_operation_that_only_servers_have_is_reported_on_request(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud", version_2=True)
    options: dict[str, Any] = {
        "login": {**connections.LOGINS["wiki"], "dialect": "cloud_v2"},
        "key": "REL",
        "permissions_mode": "add",
        "unsupported": "report",
        "permissions": [
            {"group": "writers", "operations": ["space:read", "space:delete_mail"]},
            {"group": "readers", "operations": ["space:delete_mail"]},
        ],
    }
    held = thrice(sandbox, **options)["permissions"]
    assert held["group:writers"] == ["space:read"]
    assert "group:readers" not in held
    assert run(sandbox, **options)[1]["unsupported"] == [
        "Confluence Cloud has no operation space:delete_mail"
    ]
    ghost = [{"group": "ghosts", "operations": ["space:read"]}]
    assert refused(sandbox, **{**options, "permissions": ghost}).kind == "not_found"


@pytest.mark.parametrize("granted", [0, 1])
def test_permissions_of_which_some_were_granted_are_no_report(fresh: Fresh, granted: int) -> None:
    """They are only left alone if the first request was rejected."""
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud", version_2=True)
    fault = {"method": "POST", "path": "/permission", "status": 400, "skip": granted}
    sandbox.fault(service="wiki", **fault)
    options: dict[str, Any] = {
        "login": {**connections.LOGINS["wiki"], "dialect": "cloud_v2"},
        "key": "REL",
        "permissions_mode": "add",
        "unsupported": "report",
        "permissions": [{"group": "writers", "operations": ["space:read", "page:create"]}],
    }
    if granted:
        error = refused(sandbox, **options)
        assert (error.kind, "granting page:create" in error.message) == ("rejected", True)
    else:
        sandbox.fault(service="wiki", **fault)  # also in the second run
        for _run in range(2):
            values = run(sandbox, **options)[1]
            (sentence,) = values["unsupported"]
            assert "its permissions are left alone: granting space:read" in sentence
            assert values["changed"] is False


def test_entries_are_managed_in_one_task(fresh: Fresh) -> None:
    sandbox = fresh("real")
    writers = {"anonymous": True, "operations": ["space:read"]}
    entries = [
        {"key": "REL", "home_page": "Handbook", "force": True},
        {"key": "ARC", "permissions": [writers], "permissions_mode": "add"},
        {"key": "DOC", "name": "Documentation", "home_page": "Later"},
    ]
    values = run(sandbox, entries=entries)[1]
    assert [result["action"] for result in values["results"]] == ["updated", "updated", "created"]
    twins = [{"key": "REL", "name": "Release"}, {"key": "rel", "state": "absent"}]
    mark = sandbox.mark()
    error = refused(sandbox, entries=twins)
    assert (error.kind, "once" in error.message) == ("invalid", True)
    assert sandbox.requests("wiki", since=mark) == []


@pytest.mark.parametrize("deployment", ["Server", "Cloud"])
def test_personal_space_keeps_its_type(fresh: Fresh, deployment: str) -> None:
    """The server rejects a PUT with another type."""
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment=deployment)
    run(sandbox, key="~author", name="Author")
    assert thrice(sandbox, key="~author", description="Notes")["description"] == "Notes"
