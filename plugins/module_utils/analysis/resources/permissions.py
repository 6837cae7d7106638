# SPDX-License-Identifier: GPL-3.0-or-later
"""The permissions of roles: parameters have one name for them, records another.

Source of the names: server fact [analysis-10] (the reference page that the server itself shows).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...core.errors import invalid

#: Those that the written interface has.
WRITTEN = ("create_project", "manage_roles", "change_issue_status")

#: Parameter to the name that records and users see.
NAMES: dict[str, str] = {
    "create_project": "Create project",
    "manage_roles": "Manage roles",
    "manage_users": "Manage users",
    "access_source_files": "Access source files",
    "assign_role": "Assign roles",
    "change_project_settings": "Change project settings",
    "create_build": "Create build",
    "delete_build": "Delete build",
    "delete_project": "Delete project",
    "manage_modules": "Manage modules",
    "use_local_configuration": "Use local configuration",
    "change_issue_status": "Change issue status",
    "webapi_access": "Web API access",
    "execute_kwxsync": "Perform cross-project synchronization",
    "create_stream": "Create stream",
    "delete_stream": "Delete stream",
}


def _key(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "", name.lower())


_PARAMETERS = {_key(text): name for name, shown in NAMES.items() for text in (name, shown)}


def parameter(name: str) -> str:
    """The parameter of a permission: C(Create project) and C(create_project) are the same."""
    known = _PARAMETERS.get(_key(name))
    return known or re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def wanted(groups: Iterable[Mapping[str, Any] | None]) -> dict[str, bool]:
    """Permissions as they are wanted in several places; C(invalid) where these contradict."""
    found: dict[str, bool] = {}
    for name, value in (pair for group in groups for pair in (group or {}).items()):
        if value is None:
            continue
        try:
            enabled = bool(boolean(value))
        except TypeError:
            raise invalid(f"the permission '{name}' must be true or false, not {value!r}") from None
        if found.setdefault(parameter(name), enabled) != enabled:
            raise invalid(
                f"the permission '{parameter(name)}' is given twice, as true and as false"
            )
    return found


def compare(current: Any, wanted: Any) -> tuple[bool, Any]:
    """Only the named permissions count; one that the server does not list is not granted."""
    before: Mapping[str, bool] = current or {}
    differing = {name: value for name, value in wanted.items() if before.get(name, False) != value}
    return not differing, {**before, **differing}
