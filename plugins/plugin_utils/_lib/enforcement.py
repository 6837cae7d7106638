# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the roles that the playbooks `enforce` and `drift` run on a host.

This is Python code, because Ansible compiles templates again in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...module_utils._lib.core.errors import ToolchainError
from . import role_variables
from .variables import require_known

_SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
ROLES = ("analysis_config", "ci_baseline", "desired_state", "repo_housekeeping")
#: Variables of roles that describe no objects. Neither do those that the roles set.
_SETTINGS = ("ci_baseline_in_check_mode", "desired_state_environment", "desired_state_folder")
_NOTHING = (
    "There is nothing to enforce: set variables of the roles analysis_config, ci_baseline,"
    " desired_state or repo_housekeeping, or list roles in enforce_roles."
)

Template = Callable[[Any], Any]


def roles(variables: Mapping[str, Any], template: Template) -> list[str]:
    """Return the roles in `enforce_roles`, by default all roles for which a variable is set."""
    named = template(variables.get("enforce_roles"))
    if named and isinstance(named, str):
        # from the command line or a survey, which sets "" for an unanswered question
        return [role.strip() for role in named.split(",")]
    if named:
        return [str(role) for role in named] if isinstance(named, list | tuple) else [str(named)]
    return [role for role in ROLES if any(_describes(role, name) for name in variables)]


def _describes(role: str, name: str) -> bool:
    others = (*_SETTINGS, *role_variables.set_by(role))
    return name.startswith(f"{role}_") and name not in others


def problem(variables: Mapping[str, Any], template: Template, described: list[str]) -> str:
    """Return an error message for invalid input, or "".

    Otherwise a run with a misspelt variable or service would succeed without any effect.
    """
    try:
        require_known(variables)
    except ToolchainError as error:
        return f"{error.message[:1].upper()}{error.message[1:]}"
    unknown = role_variables.unknown("enforce", variables)
    if unknown:
        known = f"does not know {', '.join(unknown)}"
        return f"The playbook enforce, which drift also runs, {known}."
    others = [role for role in described if role not in ROLES]
    if others:
        unknown_roles = ", ".join(role or "''" for role in others)
        return f"enforce_roles has no role {unknown_roles}: the roles are {', '.join(ROLES)}."
    return (
        problem_of_connections("enforce", variables, template)
        or next(
            filter(None, (_problem_of_choices(role, variables, template) for role in described)), ""
        )
        or ("" if described else _NOTHING)
    )


def _problem_of_choices(role: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for a variable with a value that the role rejects, or "".

    The role itself would reject it after the roles before it have sent their requests.
    """
    for name, choices in role_variables.choices(role).items():
        value = template(variables.get(name))
        if any(entry not in (None, "", *choices) for entry in _entries(value)):
            return f"{name} must be one of {', '.join(map(str, choices))}, not {value!r:.80}."
    unmanaged = template(variables.get("desired_state_unmanaged"))
    if role == "desired_state" and lacks_folder(unmanaged, variables):
        return (
            "desired_state_unmanaged compares the servers with a folder: set desired_state_folder."
        )
    return problem_of_previous(variables, template)


def problem_of_previous(variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message if a previous folder is given without a present one, or ""."""
    previous = template(variables.get("desired_state_previous"))
    if previous in (None, "") or template(variables.get("desired_state_folder")):
        return ""
    return (
        "desired_state_previous is compared with the present folder: set desired_state_folder to"
        " it, or remove desired_state_previous."
    )


def lacks_folder(unmanaged: Any, variables: Mapping[str, Any]) -> bool:
    """Return whether the servers are to be compared with a folder that no variable names.

    :param unmanaged: value of `desired_state_unmanaged`
    """
    compares = unmanaged not in (None, "", "ignore")
    return compares and "desired_state_folder" not in variables


def _entries(value: Any) -> list[Any]:
    """Return the entries of a list, which Ansible also accepts as a string with commas."""
    if isinstance(value, str):
        return [entry.strip() for entry in value.split(",")]
    return value if isinstance(value, list) else [value]


def problem_of_connections(playbook: str, variables: Mapping[str, Any], template: Template) -> str:
    """Return an error message for an invalid variable with the connections of a playbook, or ""."""
    name = f"{playbook}_connections"
    given = variables.get(name)
    connections = template(given) if isinstance(given, str) else given
    if not connections:
        return ""
    if not isinstance(connections, Mapping):
        return f"{name} is not a mapping: write url and login below each service."
    others = [str(service) for service in connections if service not in _SERVICES]
    if others:
        taken = f"the services are {', '.join(_SERVICES)}"
        return f"{name} has no service {', '.join(others)}: {taken}."
    for service, value in connections.items():
        if not isinstance((template(value) if isinstance(value, str) else value) or {}, Mapping):
            return f"{name}.{service} is not a mapping: write url and login below it."
    return ""
