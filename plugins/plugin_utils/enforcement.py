# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the roles that the playbooks `enforce` and `drift` run on a host.

This is Python code, because Ansible compiles templates again in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.plugin_utils import role_variables
from ansible_collections.delivery.toolchain.plugins.plugin_utils.variables import require_known

_SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
_ROLES = ("analysis_config", "ci_baseline", "desired_state", "repo_housekeeping")
#: Variables of the role `desired_state` that describe no objects: settings and results.
_NO_STATE = frozenset(
    f"desired_state_{name}"
    for name in ("drift", "environment", "failures", "folder", "kinds", "others", "run")
)
_CONNECTIONS = "enforce_connections"
_NOTHING = (
    "There is nothing to enforce: set variables of the roles analysis_config, ci_baseline,"
    " desired_state or repo_housekeeping, or list roles in enforce_roles."
)

Template = Callable[[Any], Any]


def steps(
    variables: Mapping[str, Any], template: Template, playbook: str, *, folder: bool
) -> list[list[str]]:
    """Return the task files to include, as pairs of file and argument.

    The argument of `hold_role.yml` is a role, that of `hold_refused.yml` an error message.

    :param playbook: `enforce` or `drift`
    :param folder: `desired_state_folder` has not been read yet
    """
    if folder and "desired_state_folder" in variables:
        return [["hold_folder.yml", ""]]
    described = roles(variables, template)
    problem = _problem(variables, template, described)
    if problem:
        return [["hold_refused.yml", problem]]
    found = [["hold_role.yml", role] for role in described]
    if playbook == "drift":
        found.append(["sum_up.yml", "sum"])
    return found


def roles(variables: Mapping[str, Any], template: Template) -> list[str]:
    """Return the roles in `enforce_roles`, by default all roles for which a variable is set."""
    named = template(variables.get("enforce_roles"))
    if named and isinstance(named, str):
        # from the command line or a survey, which sets "" for an unanswered question
        return [role.strip() for role in named.split(",")]
    if named:
        return [str(role) for role in named] if isinstance(named, list | tuple) else [str(named)]
    return [role for role in _ROLES if any(_describes(role, name) for name in variables)]


def _describes(role: str, name: str) -> bool:
    return name.startswith(f"{role}_") and name != f"{role}_in_check_mode" and name not in _NO_STATE


def _problem(variables: Mapping[str, Any], template: Template, described: list[str]) -> str:
    """Return an error message for invalid input, or "".

    Otherwise a run with a misspelt variable or service would succeed without any effect.
    """
    try:
        require_known(variables)
    except ToolchainError as error:
        return f"{error.message[:1].upper()}{error.message[1:]}"
    unknown = [
        name for owner in ("enforce", "drift") for name in role_variables.unknown(owner, variables)
    ]
    if unknown:
        known = f"does not know {', '.join(unknown)}"
        return f"The playbook enforce, which drift also runs, {known}."
    others = [role for role in described if role not in _ROLES]
    if others:
        unknown_roles = ", ".join(role or "''" for role in others)
        return f"enforce_roles has no role {unknown_roles}: the roles are {', '.join(_ROLES)}."
    found = _problem_of_connections(variables.get(_CONNECTIONS), template)
    return found or ("" if described else _NOTHING)


def _problem_of_connections(given: Any, template: Template) -> str:
    connections = template(given) if isinstance(given, str) else given
    if not connections:
        return ""
    if not isinstance(connections, Mapping):
        return f"{_CONNECTIONS} is not a mapping: write url and login below each service."
    others = [str(name) for name in connections if name not in _SERVICES]
    if others:
        taken = f"the services are {', '.join(_SERVICES)}"
        return f"{_CONNECTIONS} has no service {', '.join(others)}: {taken}."
    for name, value in connections.items():
        if not isinstance((template(value) if isinstance(value, str) else value) or {}, Mapping):
            return f"{_CONNECTIONS}.{name} is not a mapping: write url and login below it."
    return ""
