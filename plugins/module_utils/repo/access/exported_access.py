# SPDX-License-Identifier: GPL-3.0-or-later
"""Export groups, users and permissions to the desired state [C9]."""

from __future__ import annotations

from typing import Any

from ...core.export.service_export import PASSWORD, ServiceState
from ...core.module.task import Task
from .directory import GROUPS, PERMISSIONS, USERS, Directory
from .permission_shapes import from_access, from_older
from .repo_group import OWN_REALMS, group_of
from .repo_user import user_of


def exported_groups(task: Task, _state: ServiceState) -> list[dict[str, Any]]:
    """Return all groups as entries for `repo_group`, without members.

    The entries of the users, which are applied later, list their groups.
    """
    directory, found = Directory(task, GROUPS), []
    for name, row in directory.read_all().items():
        entry = group_of(name, row, old=directory.is_old)
        found.append({k: v for k, v in entry.items() if k not in ("members", "realm")})
    return found


def exported_users(task: Task, state: ServiceState) -> list[dict[str, Any]]:
    """Return all users as entries for `repo_user`; the server never returns their passwords."""
    directory, found = Directory(task, USERS), []
    for name, row in directory.read_all().items():
        realm = str(row.get("realm") or "")
        if realm.lower() not in OWN_REALMS:
            state.leave_out("user", name, f"it comes from the realm {realm}")
            continue
        entry = user_of(name, row, old=directory.is_old)
        found.append(entry)
        if not entry["internal_password_disabled"]:
            state.leave_out(
                PASSWORD, name, "the server never returns it, but a new user requires it"
            )
    return found


def exported_permissions(task: Task, state: ServiceState) -> list[dict[str, Any]]:
    """Return all permissions with managed resources as entries for `repo_permission`."""
    directory, found = Directory(task, PERMISSIONS), []
    for name, row in directory.read_all().items():
        resources = from_older(row) if directory.is_old else from_access(row)
        if resources:
            found.append({"name": name, "resources": resources})
        else:
            state.leave_out("permission", name, "it has no managed resources")
    return found
