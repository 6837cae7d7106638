# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the JSON schemas of the role `desired_state` from the argument specs of the roles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import role_readme
from tools.tree import ROOT

FOLDER = ROOT / "roles" / "desired_state" / "files"
#: The keys with the variable of a property, and with the options that identify an entry of a list;
#: `plugin_utils/_lib/desired_schema.py` reads them.
VARIABLE = "x-variable"
KEY = "x-key"
#: Keys of lists for which the required options are not the key; empty: nothing does.
KEYS = {
    "analysis_config_defect_types": ("project", "code"),
    "analysis_config_role_assignments": ("name", "account", "project", "group"),
    "desired_state_credentials": ("folder", "domain", "id"),
    "desired_state_pages": ("page_id", "space", "title"),
    "desired_state_restrictions": ("page_id", "space", "title"),
    "desired_state_views": ("folder", "name"),
    "repo_housekeeping_retention": ("build_name", "project"),
    "repo_housekeeping_rules": (),
    "repo_housekeeping_trash": (),
}
_ROLES = {"analysis": "analysis_config", "ci": "ci_baseline", "repo": "repo_housekeeping"}
#: Options of these roles that no folder of the desired state contains.
_LEFT_OUT = {"parallel", "force", "fail_on_drift", "in_check_mode"}
#: The lists of the role `desired_state` itself.
_OWN = {
    "ci": ("configuration", "credentials", "nodes", "jobs", "views"),
    "repo": ("repositories", "groups", "users", "permissions"),
    "tracker": ("versions", "components", "project_roles"),
    "wiki": ("spaces", "pages", "trees", "restrictions"),
}
_TYPES = {
    "str": "string",
    "path": "string",
    "int": "integer",
    "float": ["integer", "number"],
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "raw": ["object", "string"],
}


def files() -> dict[Path, str]:
    """Return path and content of every schema."""
    own = role_readme.options("desired_state")
    found = {}
    for service in sorted({*_ROLES, *_OWN}):
        role = _ROLES.get(service)
        options = role_readme.options(role) if role else {}
        properties = {
            name: _property(variable, option)
            for variable, option in options.items()
            if (name := variable.removeprefix(f"{role}_")) not in _LEFT_OUT
        }
        for name in _OWN.get(service, ()):
            variable = f"desired_state_{name}"
            properties[name] = _property(variable, own[variable])
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"Desired state of the service {service}",
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        found[FOLDER / f"{service}.schema.json"] = text
    return found


def _property(variable: str, option: Mapping[str, Any]) -> dict[str, Any]:
    schema = {**_schema(option), VARIABLE: variable}
    entry = option.get("options", {}) if option["type"] == "list" else {}
    required = [name for name, each in entry.items() if each.get("required")]
    key = list(KEYS.get(variable, required))
    return {**schema, KEY: key} if key else schema


def _schema(option: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "description": " ".join(role_readme.texts(option["description"])),
        "type": _TYPES[option["type"]],
    }
    if option.get("no_log"):
        # a secret is encrypted by Ansible Vault, or comes from a variable of the play
        source = {"from": {"type": "string"}}
        schema |= {"type": ["string", "object"], "writeOnly": True, "properties": source}
        schema |= {"required": ["from"], "additionalProperties": False}
    if option.get("default"):
        schema["default"] = option["default"]
    if "choices" in option:
        schema["enum"] = option["choices"]
    if option["type"] == "list":
        inner = {"type": option["elements"], "description": "An entry."}
        schema["items"] = _schema({**inner, "options": option.get("options", {})})
    elif option.get("options"):
        schema["properties"] = {name: _schema(each) for name, each in option["options"].items()}
        schema["required"] = [
            name for name, each in option["options"].items() if each.get("required")
        ]
        schema["additionalProperties"] = False
    return schema
