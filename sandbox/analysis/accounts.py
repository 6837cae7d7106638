# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles, users, groups and role assignments [W4.5, analysis-9, analysis-10]."""

from __future__ import annotations

from typing import Any

from sandbox.analysis import projects
from sandbox.analysis.responses import Call, Record, Refused, by_pattern, contains_or_exact
from sandbox.context import Context

ROLES, USERS, GROUPS = projects.ROLES, "analysis.user", "analysis.group"

PERMISSIONS = (
    "create_project",
    "manage_roles",
    "manage_users",
    "access_source_files",
    "assign_role",
    "change_project_settings",
    "create_build",
    "delete_build",
    "delete_project",
    "manage_modules",
    "use_local_configuration",
    "change_issue_status",
    "webapi_access",
    "execute_kwxsync",
)
WRITTEN_PERMISSIONS = ("create_project", "manage_roles", "change_issue_status")


def printed(permission: str) -> str:
    """Return the displayed name of a permission, `Create project` for `create_project`."""
    return permission.replace("_", " ").capitalize()


def seed_role(context: Context, data: dict[str, Any]) -> None:
    """Store a role of the seed.

    Keys: `name, readonly, permissions: [name], status_permissions: [{from, to}], assignments`.
    """
    enabled = data.get("permissions") or []
    unknown = sorted(set(enabled) - set(PERMISSIONS))
    if unknown:
        raise ValueError(f"role {data['name']}: unknown permissions {', '.join(unknown)}")
    role = {
        "name": data["name"],
        "readonly": bool(data.get("readonly")),
        "permissions": {name: name in enabled for name in PERMISSIONS},
        "statusPermissions": data.get("status_permissions") or [],
        "assignments": data.get("assignments") or [],
    }
    context.store.put(ROLES, data["name"], role)


def seed_user(context: Context, data: dict[str, Any]) -> None:
    user = {"name": data["name"], "readonly": bool(data.get("readonly"))}
    context.store.put(USERS, data["name"], user)


def seed_group(context: Context, data: dict[str, Any]) -> None:
    group = {
        "name": data["name"],
        "readonly": bool(data.get("readonly")),
        "users": data.get("users") or [],
    }
    context.store.put(GROUPS, data["name"], group)


def roles(call: Call) -> list[Record]:
    store = call.context.store
    found = contains_or_exact(store.keys(ROLES), call.text("search"))
    return [_role_record(store.get(ROLES, name) or {}) for name in found]


def _role_record(role: dict[str, Any]) -> Record:
    permissions = [
        {"name": printed(name), "enabled": role["permissions"][name]} for name in PERMISSIONS
    ]
    return {
        "name": role["name"],
        "readonly": role["readonly"],
        "permissions": permissions,
        "statusPermissions": role["statusPermissions"],
    }


def _given_rights(call: Call, role: dict[str, Any]) -> None:
    """Change the permissions that the request contains, and keep the others [analysis-10]."""
    for name in PERMISSIONS:
        value = call.boolean(name)
        if value is not None:
            role["permissions"][name] = value
    transitions = call.text("allowed_status_transitions")
    if transitions is not None:
        role["statusPermissions"] = _transitions(transitions)


def _transitions(text: str) -> list[dict[str, str]]:
    """Parse `from,to` pairs separated by semicolons; `Any` is a wildcard source."""
    found = []
    for pair in text.split(";") if text else []:
        parts = [part.strip() for part in pair.split(",")]
        if len(parts) != 2 or "" in parts:
            raise Refused(400, f"Invalid status transition: {pair}")
        found.append({"from": parts[0], "to": parts[1]})
    return found


def create_role(call: Call) -> None:
    name = call.required("name")
    if call.context.store.get(ROLES, name) is not None:
        raise Refused(400, f"Role {name} already exists")
    role = {
        "name": name,
        "readonly": False,
        "permissions": dict.fromkeys(PERMISSIONS, False),
        "statusPermissions": [],
        "assignments": [],
    }
    _given_rights(call, role)
    call.context.store.put(ROLES, name, role)


def _changeable(call: Call, kind: str, word: str) -> dict[str, Any]:
    """Return the object that the parameter `name` identifies. Raise 403 for a built-in object."""
    name = call.required("name")
    found = call.context.store.get(kind, name)
    if found is None:
        raise call.absent(f"{word} {name}")
    if found["readonly"]:
        raise Refused(403, f"{word} {name} is read-only")
    return found


def update_role_permissions(call: Call) -> None:
    role = _changeable(call, ROLES, "Role")
    _given_rights(call, role)
    call.context.store.put(ROLES, role["name"], role)


def delete_role(call: Call) -> None:
    call.context.store.delete(ROLES, _changeable(call, ROLES, "Role")["name"])


def _roles_held(call: Call, group: bool) -> dict[str, list[Record]]:
    """Return the assigned roles by the name of the user or group."""
    held: dict[str, list[Record]] = {}
    for name, role in call.context.store.items(ROLES):
        for entry in role["assignments"]:
            if entry["group"] == group:
                record = {"name": name, "projectId": entry["projectId"]}
                held.setdefault(entry["name"], []).append(record)
    return held


def users(call: Call) -> list[Record]:
    store = call.context.store
    groups_of, held = store.values(GROUPS), _roles_held(call, group=False)
    found = by_pattern(store.keys(USERS), call.text("search"))[: call.limit()]
    return [
        {
            **(store.get(USERS, name) or {}),
            "roles": held.get(name, []),
            "groups": [
                {"name": group["name"], "readonly": group["readonly"]}
                for group in groups_of
                if name in group["users"]
            ],
        }
        for name in found
    ]


def create_user(call: Call) -> None:
    name = call.required("name")
    if call.context.store.get(USERS, name) is not None:
        raise Refused(400, f"User {name} already exists")
    call.context.store.put(USERS, name, {"name": name, "readonly": False})


def delete_user(call: Call) -> None:
    name = _changeable(call, USERS, "User")["name"]
    call.context.store.delete(USERS, name)
    for key, group in call.context.store.items(GROUPS):
        if name in group["users"]:
            group["users"].remove(name)
            call.context.store.put(GROUPS, key, group)
    _drop_assignments(call, name, group=False)


def _drop_assignments(call: Call, account: str, group: bool) -> None:
    for key, role in call.context.store.items(ROLES):
        kept = [
            entry
            for entry in role["assignments"]
            if (entry["name"], entry["group"]) != (account, group)
        ]
        call.context.store.put(ROLES, key, {**role, "assignments": kept})


def groups(call: Call) -> list[Record]:
    """Return groups. Server fact [analysis-9]: members are listed only with `list_users`.

    The interface description does not have this parameter; there the members are always listed.
    """
    store = call.context.store
    shown, held = [], _roles_held(call, group=True)
    for name in by_pattern(store.keys(GROUPS), call.text("search"))[: call.limit()]:
        group = store.get(GROUPS, name) or {}
        record = {
            "name": name,
            "readonly": group["readonly"],
            "roles": held.get(name, []),
            "groups": [],
        }
        if not call.real or call.boolean("list_users"):
            record["users"] = _members(call, group["users"])
        shown.append(record)
    return shown


def _members(call: Call, names: list[str]) -> list[Any]:
    """Return the members of a group. Their format is not documented, so the setting
    `group_users_as_objects` selects records instead of names.
    """
    if not call.settings["group_users_as_objects"]:
        return list(names)
    found = [call.context.store.get(USERS, name) for name in names]
    return [user for user in found if user is not None]


def _known_users(call: Call) -> list[str] | None:
    given = call.listed("users")
    for name in given or []:
        if call.context.store.get(USERS, name) is None:
            raise call.absent(f"User {name}")
    return given


def create_group(call: Call) -> None:
    name = call.required("name")
    if call.context.store.get(GROUPS, name) is not None:
        raise Refused(400, f"Group {name} already exists")
    group = {"name": name, "readonly": False, "users": _known_users(call) or []}
    call.context.store.put(GROUPS, name, group)


def update_group(call: Call) -> None:
    """Change a group.

    Server fact [analysis-9]: `users` replaces the members. `remove_all` removes all members unless
    `users` is set.
    """
    group = _changeable(call, GROUPS, "Group")
    given = _known_users(call)
    if given:
        group["users"] = given
    elif call.boolean("remove_all") or (given is not None and not call.real):
        group["users"] = []
    call.context.store.put(GROUPS, group["name"], group)


def delete_group(call: Call) -> None:
    name = _changeable(call, GROUPS, "Group")["name"]
    call.context.store.delete(GROUPS, name)
    _drop_assignments(call, name, group=True)


def role_assignments(call: Call) -> list[Record]:
    store = call.context.store
    found = contains_or_exact(store.keys(ROLES), call.text("search"))
    stored = [store.get(ROLES, name) or {} for name in found]
    return [{key: role[key] for key in ("name", "readonly", "assignments")} for role in stored]


def update_role_assignment(call: Call) -> None:
    """Add or remove a role assignment.

    Server fact [analysis-10]: `project` is the id of a project. Without `project`, the assignment
    applies to all projects.
    """
    name, account = call.required("name"), call.required("account")
    role = call.context.store.get(ROLES, name)
    if role is None:
        raise call.absent(f"Role {name}")
    group = call.boolean("group") or False
    if call.context.store.get(GROUPS if group else USERS, account) is None:
        raise call.absent(f"{'Group' if group else 'User'} {account}")
    project = call.text("project")
    project_id = projects.id_of(call, project) if project else None
    entry = {"name": account, "projectId": project_id, "group": group}
    present = entry in role["assignments"]
    if call.boolean("remove"):
        if not present:
            raise call.absent(f"Assignment of {name} to {account}")
        role["assignments"].remove(entry)
    elif present:
        raise Refused(400, f"Role {name} is already assigned to {account}")
    else:
        role["assignments"].append(entry)
    call.context.store.put(ROLES, name, role)
