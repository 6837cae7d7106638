# SPDX-License-Identifier: GPL-3.0-or-later
"""A large configuration of the code analysis server, as a seed and as `analysis_config` options."""

from __future__ import annotations

from typing import Any

from tests.helpers.sizes import size

ROLES, GROUPS = size(1000, 3), size(1000, 3)
PROJECTS, MODULES = size(4, 1), size(50, 2)
OBJECTS = ROLES + GROUPS + PROJECTS * MODULES
_USERS = [f"user {number}" for number in range(5)]


def seed() -> dict[str, Any]:
    """Return 1,000 roles, 1,000 groups, and 200 modules in 4 projects as a seed."""
    return {
        "analysis": {
            "users": [{"name": name} for name in _USERS],
            "groups": [{"name": f"group {n}", "users": _USERS} for n in range(GROUPS)],
            "roles": [
                {"name": f"role {n}", "permissions": ["create_project"]} for n in range(ROLES)
            ],
            "projects": [
                {"name": f"project {n}", "modules": [_module(index) for index in range(MODULES)]}
                for n in range(PROJECTS)
            ],
        }
    }


def lists() -> dict[str, Any]:
    """Return the same objects as options, with members and paths in another order."""
    return {
        "roles": roles(create_project=True),
        "groups": [{"name": f"group {n}", "users": _USERS[::-1]} for n in range(GROUPS)],
        "modules": [
            {"project": f"project {n}", **module, "paths": module["paths"][::-1]}
            for n in range(PROJECTS)
            for module in map(_module, range(MODULES))
        ],
    }


def roles(**permissions: bool) -> list[dict[str, Any]]:
    """Return the roles with the given permissions."""
    return [{"name": f"role {n}", "permissions": permissions} for n in range(ROLES)]


def _module(number: int) -> dict[str, Any]:
    return {"name": f"module {number}", "paths": [f"**/{number}/*", "**/common/*"]}
