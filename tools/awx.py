# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the credential types and surveys for AWX.

Credential types come from the connection options, surveys from the argument specs of the roles that
the playbooks run. The playbook `awx_setup` creates both in a controller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from tools import reference, role_options, role_readme
from tools.tree import ROOT, make_importable

make_importable()

from ansible_collections.delivery.toolchain.plugins.doc_fragments.connection import (
    ModuleDocFragment,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES

_HEAD = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# This file is written by `python -m tools.generated`.
---
"""
_ROLES = ("analysis_config", "ci_baseline", "repo_housekeeping", "desired_state")
#: Maximum length of a survey response, in characters.
_LONGEST = 65536
#: Roles that `release` runs with their own variables.
_ROLES_OF_RELEASE = ("release_version", "wiki_docs")
#: Variables of `release` that a survey does not ask for: values passed between tasks, or known from
#: a credential or the inventory.
_NOT_ASKED = {"release_build_numbers", "release_connections", "release_hosts"}


class _Unsafe(str):
    """A string that only AWX may template, not Ansible."""


role_options.Dumper.add_representer(
    _Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


def files() -> dict[Path, str]:
    """Return the path and content of every generated file."""
    types = [_credential_type(service) for service in reference.SERVICES]
    return {
        ROOT / "playbooks" / "vars" / f"awx_{name}.yml": _HEAD
        + role_options.dump({f"awx_setup_{name}": data}, width=100)
        for name, data in (("credential_types", types), ("surveys", _surveys()))
    }


def _credential_type(service: str) -> dict[str, Any]:
    """Return the input fields of a service's credential type, and the environment that AWX sets
    from them.

    A path means nothing in a form: AWX receives the content of the file, and writes the file
    itself. An identity token is different: the cluster mounts it in the pod of the job.
    """
    documented = yaml_load(getattr(ModuleDocFragment, service.upper()))["options"]
    fields, environment, contents = [], {}, {}
    for name, option in options.argument_spec(SERVICES[service]).items():
        is_file = option["type"] == "path" and name != "oidc_token_file"
        value, about = "{{ " + name + " }}", _plain(documented[name]["description"])
        if is_file:
            contents[f"template.{name}"] = _Unsafe(value)
            value = "{{ tower.filename." + name + " if " + name + " else '' }}"
            about = f"The content, not a path. {about}"
        field: dict[str, Any] = {
            "id": name,
            "label": "URL" if name == "url" else _label(name),
            "type": "boolean" if option["type"] == "bool" else "string",
            "help_text": about,
        }
        # the content of a certificate is not secret; the content of every other file is or
        # contains a key
        if option.get("no_log") or (is_file and name not in ("ca_path", "client_cert")):
            field["secret"] = True
        if is_file or name == "oauth_private_key":
            field["multiline"] = True
        if "choices" in option:
            field["choices"] = list(option["choices"])
        if option["type"] == "bool":
            field["default"] = option["default"]
        fields.append(field)
        environment[f"TOOLCHAIN_{service.upper()}_{name.upper()}"] = _Unsafe(value)
    return {
        "name": f"delivery.toolchain {service}",
        "description": f"Address and login of the {reference.SERVICES[service]}.",
        "inputs": {"fields": fields, "required": ["url"]},
        "injectors": {"env": environment, "file": contents},
    }


def _surveys() -> dict[str, Any]:
    """Return the survey questions by the name of the playbook."""
    known = yaml_load((ROOT / "tools" / "awx_variables.yml").read_text(encoding="utf-8"))
    of_roles = [known["report"], known["roles"], *map(_variables, _ROLES)]
    folder = ("folder", "environment", "accounts", "accounts_required")
    of_folder = {
        name: option
        for name, option in _variables("desired_state").items()
        if name.removeprefix("desired_state_") in folder
    }
    surveys = {
        "release": [_release_variables()],
        "enforce": [known["enforce"], *of_roles],
        "drift": [known["drift"], *of_roles],
        "drift_summary": [known["drift_summary"]],
        "adopt": [known["adopt"], of_folder],
        "housekeeping": [_variables("repo_housekeeping")],
    }
    return {
        playbook: [_question(*each) for variables in groups for each in variables.items()]
        for playbook, groups in surveys.items()
    }


def _variables(role: str) -> dict[str, Any]:
    """Return the options of a role that a survey asks for.

    Options that hold a secret are left out, because AWX shows the values with the job. Options that
    depend on the kind of run are left out, too.
    """
    return {
        name: option
        for name, option in role_readme.options(role).items()
        if not _is_secret(option) and not name.endswith("_in_check_mode")
    }


def _is_secret(option: Mapping[str, Any]) -> bool:
    inner = option.get("options", {}).values()
    return bool(option.get("no_log")) or any(_is_secret(each) for each in inner)


def _release_variables() -> dict[str, Mapping[str, Any]]:
    """Map the variables of the playbook `release` to the role options that they become.

    If a role is used twice and the first use sets an option itself, the second use provides the
    variable.
    """
    text = (ROOT / "playbooks" / "release.yml").read_text(encoding="utf-8")
    found: dict[str, Mapping[str, Any]] = {}
    for task in _tasks(yaml_load(text)[0]["tasks"]):
        role = str(task.get("ansible.builtin.include_role", {}).get("name", "")).rpartition(".")[2]
        known = role_readme.options(role) if role else {}
        if role in _ROLES_OF_RELEASE:
            found.update({n: one for n, one in known.items() if n not in task.get("vars", {})})
        for name, value in task.get("vars", {}).items():
            if name in known and not name.endswith("_pending"):
                for variable in re.findall(r"\brelease_\w+", str(value))[:1]:
                    found.setdefault(variable, known[name])
        for module in [key for key in task if key.startswith("delivery.toolchain.")]:
            for variable in re.findall(r"\brelease_\w+", str(task.get("loop", "")))[:1]:
                about = f"Entries are options of {module}."
                found.setdefault(variable, {"type": "list", "description": about})
            for variable in re.findall(r"\b(release_\w+)\.", str(task[module]))[:1]:
                about = f"Options of {module}."
                found.setdefault(variable, {"type": "dict", "description": about})
    return {name: option for name, option in found.items() if name not in _NOT_ASKED}


def _tasks(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield task
        yield from _tasks(task.get("block", []))


def _question(variable: str, option: Mapping[str, Any]) -> dict[str, Any]:
    """Return the question for a variable; a value that is not a string is parsed as YAML."""
    # raw: a path in surveys, else also a mapping
    kinds = {"int": "integer", "float": "float", "str": "text", "path": "text", "raw": "text"}
    kind, choices = kinds.get(option["type"], "textarea"), []
    if option["type"] == "bool":
        kind, choices = "multiplechoice", ["true", "false"]
    elif kind == "text" and option.get("choices"):
        kind, choices = "multiplechoice", [str(choice) for choice in option["choices"]]
    text = " ".join(_plain(each) for each in role_readme.texts(option["description"]))
    if kind == "textarea":
        text = f"{text} A text in YAML."
    if option.get("options"):
        text = f"{text} Keys of an entry: {', '.join(option['options'])}."
    limits = (0, _LONGEST) if kind in ("text", "textarea") else (None, None)
    return {
        "question_name": _label(variable),
        "question_description": text,
        "required": False,
        "type": kind,
        "variable": f"survey_{variable}",
        "min": limits[0],
        "max": limits[1],
        "default": "",
        "choices": choices,
    }


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _plain(text: str) -> str:
    """Return a description without its markup."""
    return re.sub(r"\b[A-Z]\(([^)]*)\)", r"\1", text)
