# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resource import (
    ResourceOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.resources import (
    analysis_module,
    analysis_role,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from tests.helpers.options import build
from tests.unit.analysis.server import VERSION, Stub, lines, refusal, sent, task_for
from tests.unit.stub import Reply

ROLE = {
    "name": "developers",
    "readonly": False,
    "permissions": [
        {"name": "Create project", "enabled": False},
        {"name": "Assign roles", "enabled": False},
        {"name": "Web API access", "enabled": True},
        {"name": "Brew coffee", "enabled": False},
    ],
    "statusPermissions": [{"from": "Any", "to": "Analyze"}, {"from": "Analyze", "to": "Fix"}],
}
MODULE = {"name": "core", "allowAll": True, "paths": ["**/a/*", "**/b/*"]}


def role_with(**changes: Any) -> dict[str, Any]:
    """Return the role with other permissions (by their displayed names) or another member."""
    shown = changes.pop("permissions", {})
    permissions = [
        {**entry, "enabled": shown.get(entry["name"], entry["enabled"])}
        for entry in ROLE["permissions"]  # type: ignore[attr-defined]
    ]
    return {**ROLE, "permissions": permissions, **changes}


OPERATIONS: dict[str, tuple[type[Any], type[Any]]] = {
    "role": (analysis_role.AnalysisRoleOptions, analysis_role.AnalysisRoleOperation),
    "module": (analysis_module.AnalysisModuleOptions, analysis_module.AnalysisModuleOperation),
}


def run(
    module: str,
    stub: Stub,
    **params: Any,
) -> tuple[Plan, Mapping[str, Any], list[str]]:
    """Plan and, if something changes, apply; return plan, return values and warnings."""
    task, warnings = task_for(stub)
    options, operation_of = OPERATIONS[module]
    operation: ResourceOperation = operation_of(task, build(options, **params))
    plan = operation.plan()
    values = {**plan.result, **(operation.apply(plan) if plan.changed else {})}
    return plan, values, warnings


def manage_role(*replies: Reply, **params: Any) -> tuple[Plan, Mapping[str, Any], list[Any]]:
    """Run `analysis_role` against these responses; return plan, return values and forms."""
    with Stub(*replies) as stub:
        plan, values, _warnings = run("role", stub, **{"name": "developers", **params})
        assert stub.replies == []
    return plan, values, sent(stub)


def manage_module(*replies: Reply, **params: Any) -> tuple[Plan, Mapping[str, Any], list[Any]]:
    options = {"project": "p", "name": "core", **params}
    with Stub(*replies) as stub:
        plan, values, _warnings = run("module", stub, **options)
        assert stub.replies == []
    return plan, values, sent(stub)


def refused(manage: Any, *replies: Reply, **params: Any) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        manage(*replies, **params)
    return caught.value


# Roles


def test_unchanged_role_takes_one_request() -> None:
    plan, values, forms = manage_role(
        lines({**ROLE, "name": "developers of old"}, ROLE),
        permissions={"webapi_access": True, "Assign roles": False, "brew_coffee": False},
        create_project=False,
        manage_roles=False,
        allowed_status_transitions=[
            {"from": "Analyze", "to": " Fix"},
            {"from": "Any ", "to": "Analyze"},
        ],
    )
    assert not plan.changed
    assert forms == [{"action": "roles", "search": "developers"}]
    assert values["role"]["permissions"]["webapi_access"] is True
    assert values["role"]["readonly"] is False


def test_flags_and_lists_may_be_strings() -> None:
    shown = {
        **ROLE,
        "readonly": "false",
        "permissions": [{"name": "Create project", "enabled": "true"}, {"name": "Manage roles"}],
        "statusPermissions": None,
    }
    plan, values, _forms = manage_role(
        lines(shown), create_project=True, manage_roles=False, allowed_status_transitions=[]
    )
    assert not plan.changed
    assert values["role"]["readonly"] is False
    plan, values, _forms = manage_module(
        lines({"name": "core", "allowAll": "true", "paths": "**/a/*,**/b/*"}),
        allow_all=True,
        paths=["**/b/*", "**/a/*"],
    )
    assert not plan.changed
    assert values["module"]["paths"] == ["**/a/*", "**/b/*"]
    error = refused(manage_role, lines({**ROLE, "readonly": "true"}), create_project=True)
    assert error.kind == "permission"


def test_omitted_options_are_not_managed() -> None:
    plan, _values, _forms = manage_role(lines(ROLE), permissions={})
    assert not plan.changed


@pytest.mark.parametrize("name", ["C++ & größe, 50%", "a+b"])
def test_any_name_is_searched(name: str) -> None:
    _plan, _values, forms = manage_role(lines({**ROLE, "name": name}), name=name)
    assert forms == [{"action": "roles", "search": name}]


def test_name_starting_with_plus_is_found_in_the_complete_list() -> None:
    plan, _values, forms = manage_role(lines(ROLE, {**ROLE, "name": "+1"}), name="+1")
    assert not plan.changed
    assert forms == [{"action": "roles"}]


def test_role_is_created_with_every_given_option() -> None:
    created = role_with(permissions={"Create project": True})
    plan, values, forms = manage_role(
        lines({**ROLE, "name": "Developers"}),
        Reply(),
        lines(created),
        create_project=True,
        permissions={"Manage Users": False},
        allowed_status_transitions=[
            {"from": "Any", "to": "Analyze"},
            {"from": "Analyze", "to": "Fix"},
        ],
    )
    assert plan.action == "create"
    assert plan.before == {}
    assert plan.after["permissions"] == {"create_project": True, "manage_users": False}
    assert forms[1] == {
        "action": "create_role",
        "name": "developers",
        "create_project": "true",
        "manage_users": "false",
        "allowed_status_transitions": "Any,Analyze;Analyze,Fix",
    }
    assert values["role"]["permissions"]["create_project"] is True


def test_only_differences_are_updated() -> None:
    plan, _values, forms = manage_role(
        lines(ROLE),
        Reply(),
        lines(role_with(permissions={"Assign roles": True})),
        permissions={"assign_role": True, "webapi_access": True, "manage_users": False},
        allowed_status_transitions=ROLE["statusPermissions"],
    )
    assert plan.action == "update"
    assert [change.field for change in plan.changes] == ["permissions"]
    assert forms[1] == {
        "action": "update_role_permissions",
        "name": "developers",
        "assign_role": "true",
    }
    assert plan.before["permissions"]["assign_role"] is False
    assert plan.after["permissions"]["assign_role"] is True


def test_undocumented_permission_is_sent_by_its_name() -> None:
    _plan, _values, forms = manage_role(
        lines(ROLE),
        Reply(),
        lines(role_with(permissions={"Brew coffee": True})),
        permissions={"Brew Coffee": True},
    )
    assert forms[1]["brew_coffee"] == "true"


def test_empty_list_empties() -> None:
    _plan, values, forms = manage_role(
        lines(ROLE),
        Reply(),
        lines(role_with(statusPermissions=[])),
        allowed_status_transitions=[],
    )
    assert forms[1]["allowed_status_transitions"] == ""
    assert values["role"]["allowed_status_transitions"] == []


def test_omitted_empty_list_counts_as_empty() -> None:
    shown = {name: value for name, value in ROLE.items() if name != "statusPermissions"}
    plan, _values, _forms = manage_role(lines(shown), allowed_status_transitions=[])
    assert not plan.changed


def test_role_is_deleted_and_absence_takes_one_request() -> None:
    plan, values, forms = manage_role(lines(ROLE), lines(), Reply(), lines(), state="absent")
    assert plan.action == "delete"
    assert plan.before["name"] == "developers"
    assert plan.after == {}
    assert forms[1] == {"action": "role_assignments"}
    assert forms[2] == {"action": "delete_role", "name": "developers"}
    assert "role" not in values
    plan, _values, forms = manage_role(lines({**ROLE, "name": "other"}), state="absent")
    assert not plan.changed
    assert len(forms) == 1


def test_empty_response_means_absent_only_from_a_real_server() -> None:
    with Stub(lines(), VERSION, answers=False) as stub:
        plan, _values, _warnings = run("role", stub, name="developers", state="absent")
        assert not plan.changed
        assert sent(stub)[1] == {"action": "version"}
    for state in ("present", "absent"):
        stub = Stub(lines(), lines(), answers=False)
        with stub, pytest.raises(ToolchainError, match="check url") as caught:
            run("role", stub, name="developers", state=state)
        assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    ("after", "params", "words"),
    [
        (ROLE, {"permissions": {"Assign roles": True}}, "did not save permissions.assign_role"),
        (
            role_with(permissions={"Assign roles": True}),
            {"permissions": {"assign_role": True}, "allowed_status_transitions": []},
            "did not save allowed_status_transitions",
        ),
        (ROLE, {"state": "absent"}, "still exists"),
        ({"name": "other"}, {"create_project": True}, "does not exist"),
    ],
)
def test_dropped_fields_are_reported(
    after: dict[str, Any], params: dict[str, Any], words: str
) -> None:
    guard = [lines()] if "state" in params else []
    error = refused(manage_role, lines(ROLE), *guard, Reply(), lines(after), **params)
    if after["name"] == "other":
        error = refused(manage_role, lines(), Reply(), lines(), **params)
    assert error.kind == ("rejected" if "save" in words else "failed")
    assert words in str(error)


def test_hidden_permissions_are_not_written_and_give_a_warning() -> None:
    shown = {"name": "developers"}
    with Stub(lines(shown)) as stub:
        plan, values, warnings = run("role", stub, name="developers", create_project=True)
    assert not plan.changed
    assert values == {"role": shown, "unknown": ["permissions"]}
    assert len(warnings) == 1
    assert "cannot compare permissions of the role 'developers'" in warnings[0]


@pytest.mark.parametrize("params", [{"create_project": True}, {"state": "absent"}])
def test_read_only_role_is_rejected_before_any_write(params: dict[str, Any]) -> None:
    error = refused(manage_role, lines({**ROLE, "readonly": True}), **params)
    assert error.kind == "permission"
    assert "the role 'developers': the object is read-only" in str(error)


def test_unchanged_read_only_role_is_accepted() -> None:
    plan, _values, _forms = manage_role(lines({**ROLE, "readonly": True}), create_project=False)
    assert not plan.changed


@pytest.mark.parametrize("there", [True, False])
def test_unknown_permission_is_rejected_with_a_list(there: bool) -> None:
    replies = [lines(ROLE)] if there else [lines()]
    error = refused(manage_role, *replies, permissions={"create_projects": False})
    assert error.kind == "invalid"
    assert "the permission 'create_projects' does not exist" in str(error)
    assert "create_project," in str(error)
    assert ("brew_coffee" in str(error)) is there


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"create_project": True, "permissions": {"Create project": False}},
            "'create_project' is set to both",
        ),
        ({"permissions": {"assign_role": True, "Assign roles": "no"}}, "is set to both"),
        ({"permissions": {"assign_role": "perhaps"}}, "set it to true or false"),
        ({"allowed_status_transitions": [{"from": "A,B", "to": "C"}]}, "'A,B'"),
        ({"allowed_status_transitions": [{"from": "A", "to": "B;C"}]}, "'B;C'"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    params: dict[str, Any], words: str
) -> None:
    error = refused(manage_role, **params)
    assert error.kind == "invalid"
    assert words in str(error)


def test_repeated_permission_is_accepted_if_both_agree() -> None:
    plan, _values, _forms = manage_role(
        lines(ROLE), create_project=False, permissions={"Create project": "false"}
    )
    assert not plan.changed


@pytest.mark.parametrize(("name", "shown"), sorted(analysis_role.PERMISSIONS.items()))
def test_every_permission_has_two_names(name: str, shown: str) -> None:
    assert (
        analysis_role.permission_parameter(shown)
        == analysis_role.permission_parameter(shown.upper())
        == name
    )
    assert (
        analysis_role.permission_parameter(name)
        == analysis_role.permission_parameter(name.replace("_", " "))
        == name
    )


def test_name_taken_concurrently_is_a_conflict() -> None:
    taken = refusal(400, "Role developers already exists")
    error = refused(manage_role, lines(), taken, lines(ROLE), create_project=True)
    assert error.kind == "conflict"


def test_malformed_record_is_a_protocol_error() -> None:
    error = refused(manage_role, lines({"name": "developers", "permissions": ["Create project"]}))
    assert error.kind == "protocol"


def test_check_mode_plans_and_sends_no_write() -> None:
    with Stub(lines(ROLE), lines(ROLE)) as stub:
        options = build(analysis_role.AnalysisRoleOptions, name="developers", create_project=True)
        task, _warnings = task_for(stub, read_only=True)
        operation = analysis_role.AnalysisRoleOperation(task, options)
        predicted = operation.plan()
        writing, _warnings = task_for(stub)
        assert analysis_role.AnalysisRoleOperation(writing, options).plan() == predicted
        with pytest.raises(ToolchainError, match="check mode"):
            operation.apply(predicted)
    assert [form["action"] for form in sent(stub)] == ["roles", "roles"]


# Lost responses


def test_lost_response_is_verified_and_not_resent() -> None:
    _plan, values, forms = manage_role(
        lines(ROLE),
        Reply(cut=True),
        *[lines(role_with(permissions={"Create project": True}))] * 2,
        create_project=True,
    )
    actions = [form["action"] for form in forms]
    assert actions == ["roles", "update_role_permissions", "roles", "roles"]
    assert values["role"]["permissions"]["create_project"] is True


@pytest.mark.parametrize("response", [Reply(body="done"), Reply(504, "too slow")])
def test_unexpected_response_to_a_write_is_verified(response: Reply) -> None:
    plan, values, forms = manage_role(lines(), response, lines(ROLE), lines(ROLE))
    assert plan.changed
    assert values["role"]["name"] == "developers"
    assert [form["action"] for form in forms] == ["roles", "create_role", "roles", "roles"]
    error = refused(manage_role, lines(), response, lines(), lines())
    assert error.kind == ("protocol" if response.status == 200 else "server")


@pytest.mark.parametrize("readable", [True, False])
def test_unverified_lost_write_is_an_error(readable: bool) -> None:
    back = lines(ROLE) if readable else refusal(500, "no")
    error = refused(manage_role, lines(ROLE), Reply(cut=True), back, back, create_project=True)
    assert error.kind == "network"
    assert "changing the role 'developers'" in str(error)


# Modules


def test_unchanged_module_takes_one_request() -> None:
    plan, values, forms = manage_module(
        lines({"name": "other"}, MODULE), allow_all=True, paths=["**/b/*", "**/a/*"]
    )
    assert not plan.changed
    assert forms == [{"action": "modules", "project": "p"}]
    assert values["module"] == {
        "project": "p",
        "name": "core",
        "allow_all": True,
        "paths": ["**/a/*", "**/b/*"],
    }


def test_module_is_created_updated_and_deleted() -> None:
    plan, values, forms = manage_module(
        lines(), Reply(), lines(MODULE), allow_all=True, paths=["**/a/*", "**/b/*"]
    )
    assert plan.action == "create"
    assert forms[1] == {
        "action": "create_module",
        "project": "p",
        "name": "core",
        "allow_all": "true",
        "paths": "**/a/*,**/b/*",
    }
    plan, values, forms = manage_module(
        lines(MODULE), Reply(), lines({**MODULE, "paths": ["x"]}), allow_all=True, paths=["x"]
    )
    assert forms[1] == {"action": "update_module", "project": "p", "name": "core", "paths": "x"}
    assert values["module"]["paths"] == ["x"]
    plan, values, forms = manage_module(lines(MODULE), Reply(), lines(), state="absent")
    assert plan.action == "delete"
    assert forms[1] == {"action": "delete_module", "project": "p", "name": "core"}
    assert "module" not in values


@pytest.mark.parametrize("given", [{"allow_all": True}, {"paths": []}])
def test_new_module_requires_paths(given: dict[str, Any]) -> None:
    error = refused(manage_module, lines(), **given)
    assert error.kind == "invalid"
    assert "set paths, which a new module requires" in str(error)


def test_module_is_renamed_with_its_other_changes() -> None:
    plan, values, forms = manage_module(
        lines(MODULE),
        Reply(),
        lines({**MODULE, "name": "kernel", "allowAll": False}),
        new_name="kernel",
        allow_all=False,
    )
    assert plan.before["name"] == "core"
    assert plan.after["name"] == "kernel"
    assert forms[1] == {
        "action": "update_module",
        "project": "p",
        "name": "core",
        "new_name": "kernel",
        "allow_all": "false",
    }
    assert values["module"]["name"] == "kernel"


def test_renamed_module_is_unchanged() -> None:
    plan, values, forms = manage_module(lines({**MODULE, "name": "kernel"}), new_name="kernel")
    assert not plan.changed
    assert len(forms) == 1
    assert values["module"]["name"] == "kernel"


def test_renamed_module_is_managed_by_its_new_name() -> None:
    renamed = {**MODULE, "name": "kernel"}
    _plan, _values, forms = manage_module(
        lines(renamed), Reply(), lines({**renamed, "paths": ["x"]}), new_name="kernel", paths=["x"]
    )
    assert forms[1] == {"action": "update_module", "project": "p", "name": "kernel", "paths": "x"}


def test_missing_module_is_created_with_its_new_name() -> None:
    renamed = {**MODULE, "name": "kernel", "paths": ["x"]}
    _plan, _values, forms = manage_module(
        lines(), Reply(), lines(renamed), new_name="kernel", paths=["x"]
    )
    assert forms[1] == {"action": "create_module", "project": "p", "name": "kernel", "paths": "x"}


def test_old_and_new_name_in_use_are_a_conflict() -> None:
    error = refused(manage_module, lines(MODULE, {**MODULE, "name": "kernel"}), new_name="kernel")
    assert error.kind == "conflict"
    assert "'kernel'" in str(error)


def test_equal_old_and_new_name_is_not_a_rename() -> None:
    plan, _values, _forms = manage_module(lines(MODULE), new_name="core")
    assert not plan.changed


def test_new_name_is_rejected_with_absent() -> None:
    assert refused(manage_module, state="absent", new_name="x").kind == "invalid"


def test_hidden_allow_all_is_not_written_alone() -> None:
    shown = {"name": "core", "paths": ["a"]}
    with Stub(lines(shown)) as stub:
        plan, _values, warnings = run(
            "module",
            stub,
            project="p",
            name="core",
            allow_all=True,
            paths=["a"],
        )
    assert not plan.changed
    assert "cannot compare allow_all of the module 'core'" in warnings[0]


def test_hidden_field_is_written_with_another_change() -> None:
    plan, _values, forms = manage_module(
        lines({"name": "core", "paths": ["a"]}),
        Reply(),
        lines({"name": "core", "paths": ["b"]}),
        allow_all=True,
        paths=["b"],
    )
    assert forms[1]["allow_all"] == "true"
    assert plan.after == {"project": "p", "name": "core", "paths": ["b"], "allow_all": True}


def test_paths_with_commas_and_backslashes_are_escaped() -> None:
    paths = [r"**\generated\{a,b}"]
    _plan, _values, forms = manage_module(
        lines(), Reply(), lines({"name": "core", "paths": paths}), paths=paths
    )
    assert forms[1]["paths"] == r"**\\generated\\{a\,b}"


@pytest.mark.parametrize("there", [(), (MODULE,)])
def test_paths_are_sent_unescaped_if_the_server_keeps_escapes(
    there: tuple[dict[str, Any], ...],
) -> None:
    kept = lines({**MODULE, "paths": [r"**\\lib\\*", "a"]})
    paths = ["a", r"**\lib\*"]
    _plan, values, forms = manage_module(
        lines(*there), Reply(), kept, Reply(), lines({**MODULE, "paths": paths}), paths=paths
    )
    assert forms[1]["paths"] == r"a,**\\lib\\*"
    assert forms[3] == {
        "action": "update_module",
        "project": "p",
        "name": "core",
        "paths": r"a,**\lib\*",
    }
    assert values["module"]["paths"] == paths


def test_path_split_by_the_server_is_reported() -> None:
    error = refused(
        manage_module,
        lines(MODULE),
        Reply(),
        lines({**MODULE, "paths": ["a\\", "b"]}),
        paths=["a,b"],
    )
    assert error.kind == "rejected"
    assert "did not save paths" in str(error)


def test_missing_project_is_named() -> None:
    error = refused(manage_module, refusal(400, "Project p does not exist"), state="absent")
    assert error.kind == "not_found"
    assert "Project p does not exist" in json.dumps(str(error))
