# SPDX-License-Identifier: GPL-3.0-or-later
"""Test users, groups, assignments, projects, views, builds and defect types: requests for each
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resources import (
    analysis_build,
    analysis_defect_type,
    analysis_group,
    analysis_project,
    analysis_role,
    analysis_role_assignment,
    analysis_user,
    analysis_view,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from tests.helpers.options import build
from tests.unit.analysis.server import Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply, Seen

DONE = Reply()
UNKNOWN = refusal(400, "Unknown parameter")
OPERATIONS: dict[str, tuple[type[Any], type[Any]]] = {
    "user": (analysis_user.AnalysisUserOptions, analysis_user.AnalysisUserOperation),
    "group": (analysis_group.AnalysisGroupOptions, analysis_group.AnalysisGroupOperation),
    "role_assignment": (
        analysis_role_assignment.AnalysisRoleAssignmentOptions,
        analysis_role_assignment.AnalysisRoleAssignmentOperation,
    ),
    "project": (analysis_project.AnalysisProjectOptions, analysis_project.AnalysisProjectOperation),
    "role": (analysis_role.AnalysisRoleOptions, analysis_role.AnalysisRoleOperation),
    "view": (analysis_view.AnalysisViewOptions, analysis_view.AnalysisViewOperation),
    "build": (analysis_build.AnalysisBuildOptions, analysis_build.AnalysisBuildOperation),
    "defect_type": (
        analysis_defect_type.AnalysisDefectTypeOptions,
        analysis_defect_type.AnalysisDefectTypeOperation,
    ),
}
WAIT: dict[str, Any] = {"wait": True, "wait_timeout": 60, "poll_interval": 0.01}
SOURCE = {"url": "https://old:8080", "username": "admin", "password": "secret"}


def manage(
    noun: str, *replies: Reply, **params: Any
) -> tuple[Plan, Mapping[str, Any], list[dict[str, str]], list[str]]:
    """Plan and apply changes; return plan, return values, forms sent and warnings."""
    with Stub(*replies) as stub:
        task, warnings = task_for(stub)
        options, operation_of = OPERATIONS[noun]
        operation = operation_of(task, build(options, **params))
        plan = operation.plan()
        values = {**plan.result, **(operation.apply(plan) if plan.changed else {})}
        assert stub.replies == []
    return plan, values, sent(stub), warnings


def refused(noun: str, *replies: Reply, **params: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        manage(noun, *replies, **params)
    return caught.value


USERS = lines({"name": "alice", "readonly": False}, {"name": "root", "readonly": True})
GROUP = {"name": "dev", "readonly": False, "roles": [], "users": ["bob", "alice"]}
OTHER_GROUP = {**GROUP, "name": "dev 2"}
ALICE: dict[str, Any] = {"name": "alice", "projectId": "p_1", "group": False}
DEV: dict[str, Any] = {"name": "dev", "projectId": None, "group": True}
ASSIGNED = {"name": "Developer", "readonly": False, "assignments": [ALICE, DEV]}
PROJECTS = lines({"id": "p_1", "name": "p"}, {"id": "q_9", "name": "q"})
VIEW = {"id": 1, "name": "v", "query": "state:New", "creator": "x", "is_public": True}
TAGGED = {**VIEW, "tags": ["a", "b"]}
BUILTIN = {"id": 0, "name": "*default*", "query": ""}
BUILD = {"id": 3, "name": "b", "date": 1767225600000, "keepit": False}
TYPE = {"code": "ABV", "name": "Buffer", "enabled": True, "severity": 1}


@dataclass(frozen=True)
class Case:
    """Options, the responses, and the forms that must be sent after the first read."""

    noun: str
    params: Mapping[str, Any]
    replies: tuple[Reply, ...]
    action: str
    writes: tuple[Mapping[str, str], ...] = ()
    reads: tuple[Mapping[str, str], ...] = field(default=())


def _group(**fields: Any) -> Reply:
    return lines({**GROUP, **fields})


def _types(**fields: Any) -> Reply:
    return lines({**TYPE, **fields})


def _assigned(*entries: Mapping[str, Any]) -> Reply:
    return lines({**ASSIGNED, "assignments": entries})


CASES = {
    "a user that is there": Case(
        "user", {"name": "alice"}, (USERS,), "none", reads=({"action": "users", "search": "alice"},)
    ),
    "a user with a password that is there": Case(
        "user", {"name": "alice", "password": "x"}, (USERS,), "none"
    ),
    "a new user": Case(
        "user",
        {"name": "eve", "password": "geheim"},
        (USERS, DONE, lines({"name": "eve"})),
        "create",
        ({"action": "create_user", "name": "eve", "password": "geheim"},),
    ),
    "a new user without a password": Case(
        "user",
        {"name": "eve"},
        (lines(), DONE, lines({"name": "eve"})),
        "create",
        ({"action": "create_user", "name": "eve"},),
    ),
    "a user to be deleted": Case(
        "user",
        {"name": "alice", "state": "absent"},
        (USERS, DONE, lines()),
        "delete",
        ({"action": "delete_user", "name": "alice"},),
    ),
    "a user that is gone": Case("user", {"name": "eve", "state": "absent"}, (USERS,), "none"),
    "members in another order": Case(
        "group",
        {"name": "dev", "users": ["alice", "bob", "alice"]},
        (lines(OTHER_GROUP, GROUP),),
        "none",
        reads=({"action": "groups", "search": "dev", "list_users": "true"},),
    ),
    "members that are not managed": Case("group", {"name": "dev"}, (_group(),), "none"),
    "members as records": Case(
        "group",
        {"name": "dev", "users": ["alice"]},
        (_group(users=[{"name": "alice", "readonly": False}]),),
        "none",
    ),
    "a server that refuses list_users": Case(
        "group", {"name": "dev", "users": ["bob", "alice"]}, (UNKNOWN, _group()), "none"
    ),
    "members with commas and backslashes": Case(
        "group",
        {"name": "dev", "users": ["Carol, QA", "dom\\dave"]},
        (_group(), DONE, _group(users=["Carol, QA", "dom\\dave"])),
        "update",
        ({"action": "update_group", "name": "dev", "users": r"Carol\, QA,dom\\dave"},),
    ),
    "no members any more": Case(
        "group",
        {"name": "dev", "users": []},
        (_group(), DONE, _group(users=[])),
        "update",
        ({"action": "update_group", "name": "dev", "remove_all": "true"},),
    ),
    "no members any more on a server without remove_all": Case(
        "group",
        {"name": "dev", "users": []},
        (_group(), UNKNOWN, DONE, _group(users=[])),
        "update",
        (
            {"action": "update_group", "name": "dev", "remove_all": "true"},
            {"action": "update_group", "name": "dev", "users": ""},
        ),
    ),
    "no members any more on a server that takes no notice of remove_all": Case(
        "group",
        {"name": "dev", "users": []},
        (_group(), DONE, _group(), DONE, _group(users=[])),
        "update",
        (
            {"action": "update_group", "name": "dev", "remove_all": "true"},
            {"action": "update_group", "name": "dev", "users": ""},
        ),
    ),
    "a new group without members": Case(
        "group",
        {"name": "dev", "users": []},
        (lines(), DONE, _group(users=[])),
        "create",
        ({"action": "create_group", "name": "dev"},),
    ),
    "a group to be deleted": Case(
        "group",
        {"name": "dev", "state": "absent"},
        (_group(), DONE, lines()),
        "delete",
        ({"action": "delete_group", "name": "dev"},),
    ),
    "an assignment everywhere": Case(
        "role_assignment",
        {"name": "Developer", "account": "dev", "group": True},
        (lines(ASSIGNED),),
        "none",
        reads=({"action": "role_assignments", "search": "Developer"},),
    ),
    "an assignment in a project that has another id": Case(
        "role_assignment",
        {"name": "Developer", "account": "alice", "project": "p"},
        (PROJECTS, lines(ASSIGNED)),
        "none",
        reads=({"action": "projects"}, {"action": "role_assignments", "search": "Developer"}),
    ),
    "the same account, but a group": Case(
        "role_assignment",
        {"name": "Developer", "account": "alice", "project": "p", "group": True},
        (PROJECTS, lines(ASSIGNED), DONE, _assigned(ALICE, DEV, {**ALICE, "group": True})),
        "create",
        (
            {
                "action": "update_role_assignment",
                "name": "Developer",
                "account": "alice",
                "project": "p_1",
                "group": "true",
            },
        ),
        reads=({"action": "projects"}, {"action": "role_assignments", "search": "Developer"}),
    ),
    "an assignment everywhere besides one in a project": Case(
        "role_assignment",
        {"name": "Developer", "account": "alice"},
        (lines(ASSIGNED), DONE, _assigned(ALICE, {**ALICE, "projectId": ""})),
        "create",
        (
            {
                "action": "update_role_assignment",
                "name": "Developer",
                "account": "alice",
                "group": "false",
            },
        ),
    ),
    "an assignment to be taken away": Case(
        "role_assignment",
        {"name": "Developer", "account": "alice", "project": "p", "state": "absent"},
        (PROJECTS, lines(ASSIGNED), DONE, _assigned(DEV)),
        "delete",
        (
            {
                "action": "update_role_assignment",
                "name": "Developer",
                "account": "alice",
                "project": "p_1",
                "group": "false",
                "remove": "true",
            },
        ),
        reads=({"action": "projects"}, {"action": "role_assignments", "search": "Developer"}),
    ),
    "no assignment in a project that is gone": Case(
        "role_assignment",
        {"name": "Developer", "account": "alice", "project": "x", "state": "absent"},
        (PROJECTS, lines(ASSIGNED)),
        "none",
    ),
    "a project that is there": Case("project", {"name": "p", **WAIT}, (PROJECTS,), "none"),
    "a project that need not be imported": Case(
        "project", {"name": "p", "import_from": SOURCE, **WAIT}, (PROJECTS,), "none"
    ),
    "a project with a new name": Case(
        "project",
        {"name": "p", "new_name": "r", **WAIT},
        (PROJECTS, DONE, lines({"id": "p_1", "name": "r"})),
        "update",
        ({"action": "update_project", "name": "p", "new_name": "r"},),
    ),
    "a project that has its new name": Case(
        "project", {"name": "old", "new_name": "p", **WAIT}, (PROJECTS,), "none"
    ),
    "a project to be deleted": Case(
        "project",
        {"name": "q", "state": "absent", **WAIT},
        (PROJECTS, DONE, lines()),
        "delete",
        ({"action": "delete_project", "name": "q"},),
    ),
    "a view that is as wanted": Case(
        "view",
        {"project": "p", "name": "v", "query": "state:New", "tags": ["b", "a"]},
        (lines(BUILTIN, TAGGED),),
        "none",
        reads=({"action": "views", "project": "p"},),
    ),
    "a view without tags shows none": Case(
        "view", {"project": "p", "name": "v", "tags": []}, (lines(VIEW),), "none"
    ),
    "a new view": Case(
        "view",
        {"project": "p", "name": "v", "query": "state:New", "tags": ["a", "b"]},
        (lines(BUILTIN), DONE, lines(TAGGED)),
        "create",
        (
            {
                "action": "create_view",
                "project": "p",
                "name": "v",
                "query": "state:New",
                "tags": "a,b",
            },
        ),
    ),
    "a new view on a server that takes tags only later": Case(
        "view",
        {"project": "p", "name": "v", "query": "state:New", "tags": ["a", "b"]},
        (lines(BUILTIN), UNKNOWN, DONE, lines(VIEW), DONE, lines(TAGGED)),
        "create",
        (
            {
                "action": "create_view",
                "project": "p",
                "name": "v",
                "query": "state:New",
                "tags": "a,b",
            },
            {"action": "create_view", "project": "p", "name": "v", "query": "state:New"},
            {"action": "update_view", "project": "p", "name": "v", "tags": "a,b"},
        ),
    ),
    "a view with another query": Case(
        "view",
        {"project": "p", "name": "v", "query": "state:Fixed"},
        (lines(VIEW), DONE, lines({**VIEW, "query": "state:Fixed"})),
        "update",
        ({"action": "update_view", "project": "p", "name": "v", "query": "state:Fixed"},),
    ),
    "a view without tags any more": Case(
        "view",
        {"project": "p", "name": "v", "tags": []},
        (lines(TAGGED), DONE, lines(VIEW)),
        "update",
        ({"action": "update_view", "project": "p", "name": "v", "tags": ""},),
    ),
    "a view to be made anew": Case(
        "view",
        {"project": "p", "name": "v", "query": "state:Fixed", "recreate": True},
        (
            lines(TAGGED),
            UNKNOWN,
            lines(TAGGED),
            DONE,
            DONE,
            lines({**TAGGED, "query": "state:Fixed"}),
        ),
        "update",
        (
            {"action": "update_view", "project": "p", "name": "v", "query": "state:Fixed"},
            {"action": "delete_view", "project": "p", "name": "v"},
            {
                "action": "create_view",
                "project": "p",
                "name": "v",
                "query": "state:Fixed",
                "tags": "a,b",
                "is_public": "true",
            },
        ),
    ),
    "a view to be deleted": Case(
        "view",
        {"project": "p", "name": "v", "state": "absent"},
        (lines(VIEW), DONE, lines()),
        "delete",
        ({"action": "delete_view", "project": "p", "name": "v"},),
    ),
    "a build that is there": Case(
        "build",
        {"project": "p", "name": "b"},
        (lines(BUILD),),
        "none",
        reads=({"action": "builds", "project": "p"},),
    ),
    "a build with a new name": Case(
        "build",
        {"project": "p", "name": "b", "new_name": "c"},
        (lines(BUILD), DONE, lines({**BUILD, "name": "c"})),
        "update",
        ({"action": "update_build", "project": "p", "name": "b", "new_name": "c"},),
    ),
    "a build with a new name on a server that takes no project": Case(
        "build",
        {"project": "p", "name": "b", "new_name": "c"},
        (lines(BUILD), UNKNOWN, DONE, lines({**BUILD, "name": "c"})),
        "update",
        (
            {"action": "update_build", "project": "p", "name": "b", "new_name": "c"},
            {"action": "update_build", "name": "b", "new_name": "c"},
        ),
    ),
    "a build that has its new name": Case(
        "build", {"project": "p", "name": "a", "new_name": "b"}, (lines(BUILD),), "none"
    ),
    "a build to be deleted": Case(
        "build",
        {"project": "p", "name": "b", "state": "absent"},
        (lines(BUILD), DONE, lines()),
        "delete",
        ({"action": "delete_build", "project": "p", "name": "b"},),
    ),
    "a defect type that is as wanted": Case(
        "defect_type",
        {"project": "p", "code": "ABV", "enabled": True},
        (_types(enabled="true"),),
        "none",
        reads=({"action": "defect_types", "project": "p"},),
    ),
    "a defect type to be disabled": Case(
        "defect_type",
        {"project": "p", "code": "ABV", "enabled": False},
        (_types(), DONE, _types(enabled=False)),
        "update",
        (
            {
                "action": "update_defect_type",
                "project": "p",
                "code": "ABV",
                "enabled": "false",
            },
        ),
    ),
}
READS = ("users", "groups", "role_assignments", "projects", "views", "builds", "defect_types")


@pytest.mark.parametrize("name", CASES)
def test_expected_forms_are_sent(name: str) -> None:
    case = CASES[name]
    plan, values, forms, warnings = manage(case.noun, *case.replies, **case.params)
    assert plan.action == case.action
    assert [form for form in forms if form["action"] not in READS] == list(case.writes)
    assert forms[: len(case.reads)] == list(case.reads)
    assert warnings == []
    assert (case.noun in values) is (case.params.get("state") != "absent")
    assert (plan.before != plan.after) is plan.changed


REFUSALS: dict[str, tuple[str, Mapping[str, Any], tuple[Reply, ...], str, str]] = {
    "a read-only user": (
        "user",
        {"name": "root", "state": "absent"},
        (USERS,),
        "permission",
        "read-only",
    ),
    "a read-only group": (
        "group",
        {"name": "dev", "users": []},
        (_group(readonly=True),),
        "permission",
        "read-only",
    ),
    "the view of the server": (
        "view",
        {"project": "p", "name": "*default*", "state": "absent"},
        (lines(BUILTIN),),
        "permission",
        "read-only",
    ),
    "members that were not kept": (
        "group",
        {"name": "dev", "users": ["eve"]},
        (_group(), DONE, _group()),
        "rejected",
        "did not save users",
    ),
    "a role in a project that is not there": (
        "role_assignment",
        {"name": "Developer", "account": "alice", "project": "x"},
        (PROJECTS, lines(ASSIGNED)),
        "not_found",
        "the project 'x' does not exist",
    ),
    "a project without a source": (
        "project",
        {"name": "x", **WAIT},
        (PROJECTS,),
        "not_found",
        "import_from",
    ),
    "two projects for one name": (
        "project",
        {"name": "p", "new_name": "q", **WAIT},
        (PROJECTS,),
        "conflict",
        "'q'",
    ),
    "an absent project with a source": (
        "project",
        {"name": "p", "import_from": SOURCE, "state": "absent", **WAIT},
        (),
        "invalid",
        "import_from",
    ),
    "a name for what is not waited for": (
        "project",
        {"name": "p", "new_name": "q", "import_from": SOURCE, **WAIT, "wait": False},
        (),
        "invalid",
        "new_name",
    ),
    "no time to wait": (
        "project",
        {"name": "p", "import_from": SOURCE, **WAIT, "wait_timeout": 0},
        (),
        "invalid",
        "wait_timeout",
    ),
    "a new view without a query": (
        "view",
        {"project": "p", "name": "v", "tags": ["a"]},
        (lines(),),
        "invalid",
        "set query, which a new view requires",
    ),
    "a new view with an empty query": (
        "view",
        {"project": "p", "name": "v", "query": ""},
        (lines(),),
        "invalid",
        "set query, which a new view requires",
    ),
    "a query that was not kept": (
        "view",
        {"project": "p", "name": "v", "query": "state:Fixed"},
        (lines(VIEW), UNKNOWN, lines(VIEW)),
        "rejected",
        "did not save query (it had rejected additional parameters: Unknown parameter)",
    ),
    "a view that is gone after it was to be made anew": (
        "view",
        {"project": "p", "name": "v", "query": "x", "recreate": True},
        (lines(VIEW), UNKNOWN, lines(VIEW), DONE, *[refusal(500, "broken")] * 3),
        "server",
        "the old object was deleted",
    ),
    "a build that is not there": (
        "build",
        {"project": "p", "name": "c"},
        (lines(BUILD),),
        "not_found",
        "analysis",
    ),
    "a new name for an absent build": (
        "build",
        {"project": "p", "name": "b", "new_name": "c", "state": "absent"},
        (),
        "invalid",
        "new_name",
    ),
    "a pattern for an absent build": (
        "build",
        {"project": "p", "name": "nightly_*", "state": "absent"},
        (lines(BUILD),),
        "invalid",
        "has a wildcard",
    ),
    "a defect type that is not there": (
        "defect_type",
        {"project": "p", "code": "X", "enabled": True},
        (_types(),),
        "not_found",
        "'X'",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_invalid_request_is_rejected(name: str) -> None:
    noun, params, replies, kind, words = REFUSALS[name]
    error = refused(noun, *replies, **params)
    assert error.kind == kind
    assert words in str(error)


@pytest.mark.parametrize(
    ("kept", "changed"),
    [(VIEW, False), ({**VIEW, "query": "state:Fixed", "tags": ["b"]}, True)],
)
def test_dropped_field_is_an_error_and_partial_change_counts(
    kept: dict[str, Any], changed: bool
) -> None:
    params = {"project": "p", "name": "v", "query": "state:Fixed", "tags": ["a"]}
    error = refused("view", lines(VIEW), DONE, lines(kept), **params)
    assert (error.kind, error.result) == ("rejected", {"changed": changed})


@pytest.mark.parametrize("refuses", [True, False])
def test_recreated_view_keeps_its_tags(refuses: bool) -> None:
    anew = {**TAGGED, "query": "state:Fixed"}
    created = (UNKNOWN, DONE) if refuses else (DONE,)
    bare = {name: value for name, value in anew.items() if name != "tags"}
    _plan, values, forms, _warnings = manage(
        "view",
        *(lines(TAGGED), DONE, lines(TAGGED), DONE, *created, lines(bare), DONE, lines(anew)),
        project="p",
        name="v",
        query="state:Fixed",
        recreate=True,
    )
    update = {"action": "update_view", "project": "p", "name": "v", "tags": "a,b"}
    assert forms[-2] == update
    assert values["view"]["tags"] == ["a", "b"]


def test_old_view_is_restored_if_the_new_one_is_rejected() -> None:
    replies = (lines(TAGGED), UNKNOWN, lines(TAGGED), DONE, refusal(422, "Bad query"), DONE)
    with Stub(*replies) as stub:
        params: dict[str, Any] = {"project": "p", "name": "v", "query": "x:", "recreate": True}
        task, _warnings = task_for(stub)
        options = build(analysis_view.AnalysisViewOptions, **params)
        operation = analysis_view.AnalysisViewOperation(task, options)
        with pytest.raises(ToolchainError, match=r"Bad query.*was restored") as caught:
            operation.apply(operation.plan())
        assert stub.replies == []
    assert caught.value.result == {"changed": True}
    *_before, deleted, refused_one, old = sent(stub)
    assert (deleted["action"], refused_one["query"]) == ("delete_view", "x:")
    shown = {"query": "state:New", "tags": "a,b", "is_public": "true"}
    assert old == {"action": "create_view", "project": "p", "name": "v", **shown}


NO_NAMES: list[Any] = [None, [], {}, True, ""]
UNNAMED: list[dict[str, Any]] = [{}, *({"name": name} for name in NO_NAMES)]


@pytest.mark.parametrize(
    ("noun", "inside"),
    [
        ("user", {}),
        ("group", {}),
        ("project", {}),
        ("view", {"project": "p"}),
        ("build", {"project": "p"}),
    ],
)
def test_records_without_name_are_ignored(noun: str, inside: dict[str, str]) -> None:
    plan, _values, _forms, _warnings = manage(
        noun, lines(*UNNAMED), name="x", state="absent", **inside
    )
    assert not plan.changed


def test_assignments_without_name_are_ignored() -> None:
    held = [*UNNAMED, {"name": "dev", "group": True, "projectId": None}]
    records = lines(*UNNAMED, {"name": ["x"], "assignments": held}, {"assignments": held})
    absent = {"name": "x", "account": "dev", "group": True, "state": "absent"}
    plan, _values, _forms, _warnings = manage("role_assignment", records, **absent)
    assert not plan.changed


def test_hidden_members_are_not_written_alone() -> None:
    shown = {"name": "dev", "readonly": False}
    plan, values, _forms, warnings = manage("group", lines(shown), name="dev", users=["alice"])
    assert not plan.changed
    assert values == {"group": shown, "unknown": ["users"]}
    assert "cannot compare users of the group 'dev'" in warnings[0]


def test_omitted_members_count_as_empty_if_another_group_shows_members() -> None:
    empty = {"name": "dev", "readonly": False}
    plan, _values, _forms, warnings = manage(
        "group", lines(OTHER_GROUP, empty), name="dev", users=[]
    )
    assert not plan.changed
    assert warnings == []


def test_members_are_sent_unescaped_if_the_server_keeps_escapes() -> None:
    kept = _group(users=[r"CORP\\alice"])
    done = _group(users=[r"CORP\alice"])
    _plan, values, forms, _warnings = manage(
        "group", lines(), DONE, kept, DONE, done, name="dev", users=[r"CORP\alice"]
    )
    assert forms[1]["users"] == r"CORP\\alice"
    assert forms[3] == {"action": "update_group", "name": "dev", "users": r"CORP\alice"}
    assert values["group"]["users"] == [r"CORP\alice"]


def test_tags_are_sent_unescaped_if_the_server_keeps_escapes() -> None:
    kept, done = lines({**VIEW, "tags": [r"a\\b"]}), lines({**VIEW, "tags": [r"a\b"]})
    view = {"project": "p", "name": "v", "query": "state:New", "tags": [r"a\b"]}
    _plan, _values, forms, _warnings = manage("view", lines(), DONE, kept, DONE, done, **view)
    assert forms[3] == {"action": "update_view", "project": "p", "name": "v", "tags": r"a\b"}


def test_password_is_not_in_the_plan() -> None:
    plan, values, _forms, _warnings = manage(
        "user", lines(), DONE, lines({"name": "eve"}), name="eve", password="geheim"
    )
    assert "geheim" not in repr((plan, values))


def test_secrets_are_not_in_the_options() -> None:
    user = build(analysis_user.AnalysisUserOptions, name="n", password="geheim")
    assert "geheim" not in repr((user, analysis_user.User.of(user)))
    project = build(analysis_project.AnalysisProjectOptions, name="n", import_from=SOURCE)
    assert "secret" not in repr((project, analysis_project.Project.of(project)))


def test_lost_response_is_verified() -> None:
    _plan, _values, forms, _warnings = manage(
        "group", lines(), Reply(cut=True), *[_group()] * 2, name="dev", users=["alice", "bob"]
    )
    assert [form["action"] for form in forms] == ["groups", "create_group", "groups", "groups"]
    left = [lines()] * 2
    error = refused("group", lines(), Reply(cut=True), *left, name="dev", users=["alice", "bob"])
    assert (error.kind, error.outcome_unknown) == ("network", True)
    assert error.message.endswith("; nothing was changed")
    assert error.result["changed"] is False


# Imports of projects


def status(state: str, **members: Any) -> Reply:
    return lines({"project": "fw", "status": state, **members})


def imported(*replies: Reply, **params: Any) -> list[dict[str, str]]:
    """Return the forms of a task that imports a project, after the first read."""
    options = {"name": "fw", "import_from": SOURCE, **WAIT, **params}
    plan, values, forms, _warnings = manage("project", PROJECTS, *replies, **options)
    assert plan.action == "create"
    assert values["project"] == {"name": params.get("new_name", "fw")}
    return forms[1:]


def test_import_is_started_once_and_awaited() -> None:
    running = [status("Queued"), status("Running", progress=40), status("Completed")]
    forms = imported(lines(), DONE, *running, lines({"name": "fw"}))
    assert [form["action"] for form in forms] == [
        "import_status",
        "import_project",
        *["import_status"] * 3,
        "projects",
    ]
    assert forms[1] == {
        "action": "import_project",
        "project": "fw",
        "sourceURL": "https://old:8080",
        "sourceAdmin": "admin",
        "sourcePassword": "secret",
    }


@pytest.mark.parametrize(("state", "warned"), [("Cancelled", True), ("Completed", False)])
def test_import_with_unknown_result_gives_a_warning(state: str, warned: bool) -> None:
    options = {"name": "fw", "import_from": SOURCE, **WAIT, "wait_timeout": 1}
    answers = {"import_status": [lines()], "projects": [PROJECTS], "import_project": [DONE]}
    later = {"import_status": status(state), "projects": lines({"name": "fw"})}

    def response(seen: Seen) -> Reply:
        action = seen.form["action"]
        return answers[action].pop(0) if answers[action] else later[action]

    with Stub(response=response) as stub:
        task, warnings = task_for(stub)
        given = build(analysis_project.AnalysisProjectOptions, **options)
        operation = analysis_project.AnalysisProjectOperation(task, given)
        assert operation.apply(operation.plan())["project"] == {"name": "fw"}
    assert ["reports an unknown status" in warning for warning in warnings] == [True] * warned


def test_import_is_renamed_at_the_end() -> None:
    forms = imported(
        lines(), DONE, status("Completed"), DONE, lines({"name": "boot"}), new_name="boot"
    )
    assert forms[3] == {"action": "update_project", "name": "fw", "new_name": "boot"}


def test_import_is_only_started_without_wait() -> None:
    forms = imported(lines(), lines(), DONE, PROJECTS, wait=False)
    assert [form["action"] for form in forms] == [
        "import_status",
        "import_status",
        "import_project",
        "projects",
    ]


def test_running_import_is_unchanged_without_wait() -> None:
    options = {"name": "fw", "import_from": SOURCE, **WAIT, "wait": False}
    plan, values, forms, _warnings = manage("project", PROJECTS, status("Running"), **options)
    assert not plan.changed
    assert plan.before == plan.after
    assert values == {"project": {"name": "fw"}}
    assert [form["action"] for form in forms] == ["projects", "import_status"]


@pytest.mark.parametrize(
    ("left", "changed"),
    [(PROJECTS, False), (lines({"name": "fw"}), True), (Reply(403), None)],
    ids=["nothing", "a project", "not told"],
)
def test_failed_import_has_the_error_of_the_server(left: Reply, changed: bool | None) -> None:
    """Verify that `changed` matches the read after the failure. If that read fails, `changed` is
    not set: an import was started.
    """
    options = {"name": "fw", "import_from": SOURCE, **WAIT}
    failed = status("Failed", message="no space left")
    error = refused("project", PROJECTS, lines(), DONE, failed, left, **options)
    assert error.kind == "failed"
    assert "importing the project 'fw': no space left" in str(error)
    assert error.result.get("changed") is changed
    assert ("a project with this name exists" in str(error)) is bool(changed)


def test_password_of_the_source_url_is_hidden() -> None:
    hidden: list[str] = []
    with Stub() as stub:
        source = {**SOURCE, "url": "https://admin:in-the-url@old:8080"}
        task, _warnings = task_for(stub)
        options = build(analysis_project.AnalysisProjectOptions, name="fw", import_from=source)
        analysis_project.AnalysisProjectOperation(replace(task, hide=hidden.append), options)
    assert hidden == ["in-the-url"]


OWN_GROUP = lines({"name": "dev", "users": ["Analyst", "bob"]})
HELD = lines(
    {"name": "Owner", "assignments": [{"name": "dev", "group": True, "projectId": None}]},
    {"name": "Root", "assignments": [{"name": "analyst", "group": False, "projectId": None}]},
)
ROLES = lines({"name": "Owner"}, {"name": "Root"})
GUARDED: dict[str, tuple[str, dict[str, Any], tuple[Reply, ...]]] = {
    "the account": ("user", {"name": "Analyst"}, ()),
    "its group": ("group", {"name": "dev"}, (OWN_GROUP, HELD)),
    "its own assignment": ("role_assignment", {"name": "Root", "account": "analyst"}, (HELD,)),
    "that of its group": (
        "role_assignment",
        {"name": "Owner", "account": "dev", "group": True},
        (HELD, OWN_GROUP),
    ),
    "its role": ("role", {"name": "Root"}, (ROLES, HELD)),
    "the role of its group": ("role", {"name": "Owner"}, (ROLES, HELD, OWN_GROUP)),
}


@pytest.mark.parametrize("name", GUARDED)
def test_rights_of_own_account_are_not_removed_without_force(name: str) -> None:
    noun, params, replies = GUARDED[name]
    error = refused(noun, *replies, **params, state="absent")
    assert error.kind == "invalid"
    assert "force=true" in str(error)


def test_force_deletes_own_account() -> None:
    there = lines({"name": "analyst"})
    params = {"name": "analyst", "state": "absent", "force": True}
    plan, _values, forms, _warnings = manage("user", there, DONE, lines(), **params)
    assert plan.action == "delete"
    assert forms[1] == {"action": "delete_user", "name": "analyst"}


def test_own_account_is_kept_in_the_group_of_its_role() -> None:
    error = refused("group", OWN_GROUP, HELD, name="dev", users=["bob"])
    assert (error.kind, "force=true" in str(error)) == ("invalid", True)
    kept = ["analyst", "eve"]
    after = lines({"name": "dev", "users": kept})
    plan, _values, _forms, _warnings = manage(
        "group", OWN_GROUP, DONE, after, name="dev", users=kept
    )
    assert plan.action == "update"
