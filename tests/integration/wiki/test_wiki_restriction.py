# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the restrictions of pages, on servers and in the cloud."""

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
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_restriction import (
    WikiRestrictionOperation,
    WikiRestrictionOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections

OPEN: dict[str, list[str]] = {"users": [], "groups": []}
AUTHOR = {"token": "author-wiki-token-1234567890"}
Fresh = Callable[[str], Sandbox]


def run(sandbox: Sandbox, *, check: bool = False, login: Any = None, **options: Any) -> Any:
    """Return the plan and the return values."""
    settings = {"timeout": 10.0, "retries": 0, "retry_max_wait": 0.0}
    given = {"url": sandbox.urls["wiki"], **(login or connections.LOGINS["wiki"]), **settings}
    task = Task(
        resolve(SERVICES["wiki"], given.get, environ={}), lambda text: None, read_only=check
    )
    parsed = typed_options.parse(WikiRestrictionOptions, options)
    operation = WikiRestrictionOperation(task, parsed)
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


@pytest.mark.parametrize("cloud", [False, True])
def test_restrictions_are_set_and_cleared(fresh: Fresh, *, cloud: bool) -> None:
    sandbox, before = fresh("real"), "account-" if cloud else ""
    if cloud:
        sandbox.settings("wiki", deployment="Cloud")
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"read": {"users": [f"{before}reporter", f"{before}reader"]}},
            {"read": {"users": [f"{before}reader", f"{before}reporter"], "groups": []}},
        ),
        ({"update": {"groups": ["writers"]}}, {"update": {"users": [], "groups": ["writers"]}}),
        ({"read": {}}, {"read": OPEN, "update": {"users": [], "groups": ["writers"]}}),
        ({"state": "absent"}, {"read": OPEN, "update": OPEN}),
    ]
    for options, expected in steps:
        predicted = run(sandbox, page_id="1002", check=True, **options)
        plan, values = run(sandbox, page_id="1002", **options)
        assert plan.changed
        assert predicted[0].diff() == plan.diff()
        assert predicted[1] == values
        assert {**values["restriction"], **expected} == values["restriction"]
        again, shown = run(sandbox, page_id="1002", **options)
        assert not again.changed
        assert shown == values


def test_cloud_keeps_the_operation_that_is_not_managed(fresh: Fresh) -> None:
    """A PUT in the cloud removes the restrictions of every operation that it does not contain."""
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud")
    both = {"users": ["account-reporter"], "groups": ["writers"]}
    run(sandbox, page_id="1002", read=both)
    run(sandbox, page_id="1002", update={"users": ["account-reporter"]})
    mark = sandbox.mark()
    shown = run(sandbox, page_id="1002", update={})[1]["restriction"]
    assert shown == {"read": both, "update": OPEN}
    assert not run(sandbox, page_id="1002", read=both)[0].changed
    run(sandbox, page_id="1002", state="absent")
    writes = [one for one in sandbox.requests("wiki", since=mark) if one["method"] != "GET"]
    assert [one["method"] for one in writes] == ["PUT", "DELETE"]


def test_group_that_the_cloud_does_not_have_is_reported_before_a_write(fresh: Fresh) -> None:
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud")
    wanted = {"users": ["account-reporter"], "groups": ["write"]}  # a part of a name
    for check in (True, False):
        error = refused(sandbox, page_id="1002", update=wanted, check=check)
        assert error.kind == "not_found"
        assert "searching for the group 'write'" in error.message


@pytest.mark.parametrize("cloud", [False, True])
@pytest.mark.parametrize("response", [{}, {"status": 404, "body": {}}, {"status": 200, "body": {}}])
@pytest.mark.parametrize("missing", [{"users": ["ghost"]}, {"groups": ["ghosts"]}])
def test_names_that_a_wiki_does_not_have_are_not_found_in_both_modes(
    fresh: Fresh, missing: dict[str, Any], response: dict[str, Any], *, cloud: bool
) -> None:
    """Servers respond with 400 or 404, or accept the request and store nothing."""
    sandbox = fresh("real")
    sandbox.settings("wiki", deployment="Cloud" if cloud else "Server")
    options: Any = {"page_id": "1002", "read": missing, "force": True}
    (name,) = (name for names in missing.values() for name in names)
    for check in (True, False):
        if response and not check:
            sandbox.fault(service="wiki", path="/restriction$", method="PUT", **response)
        error = refused(sandbox, check=check, **options)
        assert error.kind == "not_found"
        kind = "group" if "groups" in missing else "user"
        assert f"searching for the {kind} '{name}': there is no " in error.message
        assert "8.8" not in error.message


def test_names_are_not_verified_without_the_permission_to_read_them(fresh: Fresh) -> None:
    sandbox = fresh("real")
    options: Any = {"page_id": "1002", "read": {"users": ["ghost"]}, "force": True}
    sandbox.fault(service="wiki", path="/rest/api/(user$|group/)", status=403, body={})
    assert run(sandbox, check=True, **options)[0].changed


@pytest.mark.parametrize("cloud", [False, True])
def test_all_members_of_a_restriction_are_read(fresh: Fresh, *, cloud: bool) -> None:
    sandbox = fresh("real")
    sandbox.settings(
        "wiki", deployment="Cloud" if cloud else "Server", list_limit=5, next_links=False
    )
    before = "account-" if cloud else ""
    names = ["reporter", *(f"user{number}" for number in range(11))]
    sandbox.settings("wiki", known_users=names)
    read = {"users": [f"{before}{name}" for name in names]}
    assert run(sandbox, page_id="1002", read=read)[0].changed
    assert not run(sandbox, page_id="1002", read=read)[0].changed
    shown = run(sandbox, page_id="1002", update=read)[1]["restriction"]
    assert shown["read"]["users"] == shown["update"]["users"] == sorted(read["users"])
    sandbox.fault(service="wiki", path="/restriction/byOperation/read", status=404, body={})
    error = refused(sandbox, page_id="1002", read=read)
    assert (error.kind, "complete restrictions" in error.message) == ("protocol", True)


def test_own_account_is_not_locked_out(fresh: Fresh) -> None:
    sandbox = fresh("real")
    for check in (True, False):
        for name in ("read", "update"):
            error = refused(sandbox, page_id="1002", check=check, **{name: {"users": ["author"]}})
            assert error.kind == "invalid"
            assert f"would lose the permission to {name}" in error.message
    assert "reader" in str(
        refused(
            sandbox,
            page_id="1002",
            login={"token": "reader-wiki-token-1234567890"},
            update={"users": ["author"]},
        )
    )
    assert run(sandbox, page_id="1002", update={"users": ["AUTHOR"]}, force=True)[0].changed
    assert not run(sandbox, page_id="1002", update={"users": ["author"]})[0].changed


def test_own_account_with_group_permission_is_not_locked_out(fresh: Fresh) -> None:
    sandbox = fresh("real")
    assert run(sandbox, page_id="1002", update={"groups": ["writers"]})[0].changed
    error = refused(sandbox, page_id="1002", update={"users": ["reader"]})
    assert error.kind == "invalid"
    assert "would lose the permission to update" in error.message
    assert not run(sandbox, page_id="1002", update={"groups": ["writers"]})[0].changed


@pytest.mark.parametrize("cloud", [False, True])
def test_all_groups_of_the_account_count(fresh: Fresh, *, cloud: bool) -> None:
    sandbox = fresh("real")
    if cloud:
        sandbox.settings("wiki", deployment="Cloud")
    member = "account-reporter" if cloud else "reporter"
    groups = {f"group-{number:03}": [member, "reporter"] for number in range(250)}
    sandbox.seed({"wiki": {"groups": groups}})
    restricted: Any = {"page_id": "1002", "update": {"groups": ["group-249"]}}
    assert run(sandbox, **restricted)[0].changed
    assert not run(sandbox, **restricted)[0].changed


def test_invalid_or_unsupported_restrictions_are_reported(fresh: Fresh) -> None:
    sandbox = fresh("real")
    for check in (True, False):
        error = refused(sandbox, space="REL", title="Nowhere", read={}, check=check)
        assert error.kind == "not_found"
        reader = {"token": "reader-wiki-token-1234567890"}
        mine = {"update": {"users": ["reader"]}, "login": reader, "page_id": "1002"}
        assert refused(sandbox, check=check, **mine).kind == "permission"
    sandbox.settings("wiki", restriction_address=False)
    old = refused(sandbox, page_id="1002", update={"users": ["reporter"]})
    assert (old.kind, "before 8.8" in old.message) == ("rejected", True)
    for options, words in (
        ({"space": "REL", "read": {}}, "set page_id, or space and title"),
        ({"page_id": "1002"}, "read or update or state=absent is missing"),
        ({"page_id": "1002", "state": "absent", "read": {}}, "read cannot be combined"),
    ):
        assert words in refused(sandbox, **options).message


def test_entries_are_managed_in_one_task(fresh: Fresh) -> None:
    sandbox = fresh("real")
    entries = [
        {"space": "REL", "title": "Handbook", "update": {"groups": ["writers"]}},
        {"page_id": "77", "read": {}},
        {"page_id": "1003", "state": "absent"},
    ]
    error = refused(sandbox, entries=entries)
    assert [result["action"] for result in error.result["results"]] == [
        "updated",
        "unchanged",
        "unchanged",
    ]
    assert "entries[1]" in error.message
    handbook = {"space": "REL", "title": "Handbook", "state": "absent"}
    for twin in ({**handbook, "title": "HANDBOOK"}, {"page_id": "1002", "state": "absent"}):
        error = refused(sandbox, entries=[handbook, twin])
        assert (error.kind, "once" in error.message) == ("invalid", True)
