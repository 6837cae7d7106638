# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files of the role `desired_state` that follow from the kinds and the argument specs.

They are the JSON schemas, the task files of the kinds, and the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import role_readme, tree

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds

_ROLE = tree.ROOT / "roles" / kinds.ROLE
FOLDER = _ROLE / "files"
#: The keys with the variable of a property, and with the options that identify an entry of a list;
#: `plugin_utils/_lib/desired_schema.py` reads them.
VARIABLE = "x-variable"
KEY = "x-key"
#: Options of these roles that no folder of the desired state contains.
_LEFT_OUT = {"parallel", "force", "fail_on_drift", "in_check_mode"}
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
_NOTE = "# This file is written from `plugin_utils/_lib/kinds.py` by `python -m tools.generated`."
_READ = """\
# The values are those of the files, letter by letter: they are not templates.
# An empty answer of a survey counts as no environment.
- name: Validate the folder against the schemas
  delivery.toolchain.bookkeeping:
    step: validate_folder
  register: desired_state_read

- name: Read the folder
  delivery.toolchain.bookkeeping:
    step: read_folder
  register: desired_state_values
  # passwords of users may be among the values
  no_log: true

# One task sets all of them: a loop would print a line for each.
# The steps of this role take its own lists from what was read.
- name: Set the variables of other roles
  ansible.builtin.set_fact: # noqa: var-naming[no-role-prefix]
"""
_READ_END = """\
  when: desired_state_read.variables | reject('match', 'desired_state_') | list | length > 0
  no_log: true
"""


def files() -> dict[Path, str]:
    """Return path and content of every file."""
    found, read = {}, []
    for service in sorted({kind.service for kind in kinds.KINDS}):
        properties = _properties(service)
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"Desired state of the service {service}",
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        found[FOLDER / f"{service}.schema.json"] = text
        read += [each[VARIABLE] for each in properties.values()]
    # the steps of the role take its own lists from what was read
    others = [name for name in read if not name.startswith(f"{kinds.ROLE}_")]
    texts = {"tasks/read.yml": _READ, "defaults/main.yml": ""}
    for name in sorted(others):
        value = f"desired_state_values.variables.{name} | default(omit)"
        texts["tasks/read.yml"] += f'    {name}: "{{{{ {value} }}}}"\n'
    texts["tasks/read.yml"] += _READ_END
    for name, option in role_readme.options(kinds.ROLE).items():
        if "default" in option:
            # a word needs no quotes
            default = option["default"]
            value = default if isinstance(default, str) else json.dumps(default)
            texts["defaults/main.yml"] += f"{name}: {value}\n"
    return {**found, **{_ROLE / name: f"---\n{_NOTE}\n{text}" for name, text in texts.items()}}


def _properties(service: str) -> dict[str, dict[str, Any]]:
    """Return the properties of a schema: all options of a role, and lists of `desired_state`."""
    listed = [kind for kind in kinds.KINDS if kind.service == service]
    found = {}
    for role in dict.fromkeys(kind.role for kind in listed if kind.role != kinds.ROLE):
        for variable, option in role_readme.options(role).items():
            name = variable.removeprefix(f"{role}_")
            if name not in _LEFT_OUT:
                found[name] = {**_schema(option), VARIABLE: variable}
    own = role_readme.options(kinds.ROLE)
    for kind in listed:
        if kind.role == kinds.ROLE:
            found[kind.list] = {**_schema(own[kind.variable]), VARIABLE: kind.variable}
    for name, schema in found.items():
        if key := list(kinds.find(service, name).key):
            schema[KEY] = key
    return found


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
