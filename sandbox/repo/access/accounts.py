# SPDX-License-Identifier: GPL-3.0-or-later
"""Users and groups of the repository manager.

Users are the logins of the configuration and those that requests create. A stored document of the
kind `USERS` overrides the login of the same name, and removes it if it has `deleted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.context import Context

USERS, GROUPS = "repo.access.user", "repo.access.group"
_SERVICE = "repo"
_DEFAULTS = {
    "email": "",
    "admin": False,
    "profile_updatable": True,
    "disable_ui_access": False,
    "internal_password_disabled": False,
    "realm": "internal",
}


def find(current: Context, name: str) -> dict[str, Any] | None:
    """Return a user with all fields, or None. Its `permissions` come from the configured login."""
    doc = current.store.get(USERS, name)
    login = current.credentials(_SERVICE).get("users", {}).get(name)
    if (doc or {}).get("deleted") or (doc is None and login is None):
        return None
    email = {"email": f"{name}@example.org"} if doc is None else {}
    return {**_DEFAULTS, "name": name, **email, **(login or {}), **(doc or {})}


def names(current: Context) -> list[str]:
    every = {*current.credentials(_SERVICE).get("users", {}), *current.store.keys(USERS)}
    return [name for name in sorted(every) if find(current, name) is not None]


def groups_of(current: Context, name: str) -> list[str]:
    return [group["name"] for group in current.store.values(GROUPS) if name in group["members"]]


def put_group(current: Context, doc: dict[str, Any]) -> dict[str, Any]:
    """Store a group and return it with the defaults of missing fields."""
    blank = {"description": "", "external_id": "", "auto_join": False, "admin_privileges": False}
    group = {**blank, "realm": "internal", "members": [], **doc}
    group["members"] = sorted(set(group["members"]))
    current.store.put(GROUPS, group["name"], group)
    return group


def set_groups(current: Context, name: str, wanted: set[str]) -> None:
    """Make a user a member of the wanted groups, and of no others."""
    for group in current.store.values(GROUPS):
        members = {*group["members"]} - {name} | ({name} if group["name"] in wanted else set())
        put_group(current, {**group, "members": list(members)})
