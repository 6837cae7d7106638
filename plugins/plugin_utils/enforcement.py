# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks C(enforce) and C(drift) do on a host, and what a worker needs for it.

It is computed here, and not by templates: Ansible compiles each template anew in each process.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils import role_variables

_SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")
_PREFIXED = ("analysis_config", "ci_baseline", "repo_housekeeping")
_ROLES = (*_PREFIXED[:2], "desired_state", *_PREFIXED[2:])
_DESIRED = frozenset(f"desired_state_{name}" for name in ("jobs", "pages", "trees", "versions"))
_SENT = re.compile(rf"({'|'.join((*_PREFIXED, 'toolchain'))})_")
_CONNECTIONS = "enforce_connections"
_NOTHING = (
    "Nothing is described: set variables of the roles analysis_config, ci_baseline, desired_state"
    " or repo_housekeeping, or name roles in enforce_roles."
)

Template = Callable[[Any], Any]


def steps(
    variables: Mapping[str, Any], template: Template, playbook: str, *, folder: bool
) -> list[list[str]]:
    """The files of tasks to include, each with what it does.

    :param folder: whether the variables may name the folder of the desired state, yet to be read
    """
    if folder and "desired_state_folder" in variables:
        return [["hold_folder.yml", ""]]
    described = roles(variables, template)
    problem = _problem(variables, template, described)
    if problem:
        return [["hold_refused.yml", problem]]
    if "drift_slices" in variables or "drift_workers" in variables:
        return [["hold_in_slices.yml", "slices"]]
    # on a worker nobody asks for the sum: its report is handed back
    summed = playbook == "drift" and "drift_slice" not in variables
    return [*(["hold_role.yml", role] for role in described), *([["sum_up.yml", "sum"]] * summed)]


def roles(variables: Mapping[str, Any], template: Template) -> list[str]:
    """The roles that are run: those that are named, or those of which a variable is set."""
    named = template(variables.get("enforce_roles"))
    if named:
        # on the command line and in a survey it is a text
        texts = named.split(",") if isinstance(named, str) else named
        return [str(text).strip() if isinstance(named, str) else str(text) for text in texts]
    return [role for role in _ROLES if any(_describes(role, name) for name in variables)]


def _describes(role: str, name: str) -> bool:
    if role == "desired_state":
        return name in _DESIRED
    return name.startswith(f"{role}_") and name != f"{role}_in_check_mode"


def _problem(variables: Mapping[str, Any], template: Template, described: list[str]) -> str:
    """What cannot be meant. It is told before anything is sent: a misspelt variable, or a service
    that is none, would be a green run that did nothing.
    """
    strangers = [
        text for owner in ("enforce", "drift") for text in role_variables.unknown(owner, variables)
    ]
    if strangers:
        known = f"does not know {', '.join(strangers)}"
        return f"The playbook enforce, which drift runs, too, {known}."
    connections = variables.get(_CONNECTIONS)
    if isinstance(connections, str):
        connections = template(connections)
    others = [str(name) for name in connections or () if name not in _SERVICES]
    if others:
        taken = f"it takes {', '.join(_SERVICES)}"
        return f"{_CONNECTIONS} has no service {', '.join(others)}: {taken}."
    return "" if described else _NOTHING


def packed(variables: Mapping[str, Any], template: Template) -> str:
    """What a worker needs to know of a host, as a text: Ansible looks through all that a fact
    holds, again and again. It is what modules see: JSON.
    """
    names = sorted(
        name for name in variables if _SENT.match(name) or name in _DESIRED or name == _CONNECTIONS
    )
    described = {
        "roles": roles(variables, template),
        "variables": {name: _plain(template(variables[name])) for name in names},
    }
    return base64.b64encode(json.dumps(described).encode()).decode()


def unpacked(text: str) -> dict[str, Any]:
    """What C(packed) has made a text of."""
    described: dict[str, Any] = json.loads(base64.b64decode(text))
    return described


def _plain(value: Any) -> Any:
    """A value without the classes of Ansible, which mark where it came from."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)
