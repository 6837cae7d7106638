# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the permissions that roles give to a user, directly or through a group [analysis-10]."""

from __future__ import annotations

from typing import Any

from sandbox.analysis.accounts import GROUPS, ROLES, printed
from sandbox.analysis.projects import PROJECTS
from sandbox.analysis.responses import Call, Refused

_NEEDED = {
    "create_role": "manage_roles",
    "update_role_permissions": "manage_roles",
    "delete_role": "manage_roles",
    "create_user": "manage_users",
    "delete_user": "manage_users",
    "create_group": "manage_users",
    "update_group": "manage_users",
    "delete_group": "manage_users",
    "update_role_assignment": "assign_role",
    "import_project": "create_project",
    "import_server_configuration": "manage_roles",
    "update_project": "change_project_settings",
    "update_defect_type": "change_project_settings",
    "create_view": "change_project_settings",
    "update_view": "change_project_settings",
    "delete_view": "change_project_settings",
    "delete_project": "delete_project",
    "update_build": "change_project_settings",
    "delete_build": "delete_build",
    "create_module": "manage_modules",
    "update_module": "manage_modules",
    "delete_module": "manage_modules",
    "update_status": "change_issue_status",
}
# Actions whose parameter `name` is the project.
_NAMED = ("update_project", "delete_project")


def require(call: Call, action: str) -> None:
    """Raise 403 unless a role of the user has the permission for the action."""
    permission = _NEEDED.get(action)
    if permission is None or not call.settings["access_control"]:
        return
    roles = held(call, call.text("name" if action in _NAMED else "project"))
    if not any(role["permissions"][permission] for role in roles):
        raise Refused(403, f"Access denied: the permission {printed(permission)} is missing")


def require_transition(call: Call, before: str, after: str) -> None:
    """Raise 403 unless a role allows the change from status `before` to status `after`."""
    if before == after or not call.settings["access_control"]:
        return
    for role in held(call, call.text("project")):
        pairs = role["statusPermissions"] if role["permissions"]["change_issue_status"] else []
        if any(pair["from"] in ("Any", before) and pair["to"] in ("Any", after) for pair in pairs):
            return
    raise Refused(403, f"Access denied: the status may not be changed from {before} to {after}")


def held(call: Call, project: str | None) -> list[dict[str, Any]]:
    """Return the roles of the user that apply to a project.

    :param project: name or id; `None` selects only roles for all projects
    """
    store, user = call.context.store, call.form.get("user", "")
    members = store.mentioning(GROUPS, user)
    groups = {name for name, group in members if user in group["users"]}
    known = store.get(PROJECTS, project or "")
    ids = {None, project, known["id"] if known is not None else project}
    roles = dict(pair for name in (user, *groups) for pair in store.mentioning(ROLES, name))
    return [
        role
        for _name, role in sorted(roles.items())
        for entry in role["assignments"]
        if (entry["name"] in groups if entry["group"] else entry["name"] == user)
        and entry["projectId"] in ids
    ]
