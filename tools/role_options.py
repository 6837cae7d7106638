# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the options of entries in the argument specs of the role `desired_state`.

An entry of a list has the options of the module that manages it, so the documentation of the
module describes them once. What the argument specs say of the role and of its lists is written by
hand.
"""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from tools import tree
from tools.tree import ROOT

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds

MODULES = "ansible_collections.delivery.toolchain.plugins.modules"
FILE = ROOT / "roles" / "desired_state" / "meta" / "argument_specs.yml"
#: Options of a module that the entries of a list leave out.
LEFT_OUT: Mapping[str, frozenset[str]] = {
    "jobs": frozenset({"copy_from"}),
    "nodes": frozenset({"force", "wait_timeout"}),
    "versions": frozenset({"create", "move_to", "new_name", "unresolved"}),
    "trees": frozenset({"force", "parallel"}),
    "pages": frozenset(
        {
            *("allow_orphaned_comments", "attachments", "compare", "expected_version", "force"),
            *("follow_renames", "minor_edit", "must_keep", "on_conflict", "pages", "parallel"),
            "version_comment",
        }
    ),
}
_RELATIVE = "In a file of the desired state, it is relative to the folder of that file."
#: What is true in the role only, by list and option.
_ADDED = {
    "configuration.src": f"{_RELATIVE} Its name does not end in C(.yml) then.",
    "groups.members": "Groups are created before users, so prefer C(groups) of the users.",
    "jobs.job": "A folder comes before its content.",
    "jobs.src": _RELATIVE,
    "nodes.src": _RELATIVE,
    "pages.src": _RELATIVE,
    "trees.src": _RELATIVE,
    "views.src": _RELATIVE,
}
#: Types that are narrower than those of the module.
_TYPES = {"jobs.job": "str"}
#: Keys of an option that the role has in common with the module, in their order. A default is not
#: one of them: an option that is not given is left to the module.
_KEYS = ("type", "elements", "required", "choices")
_ABOUT_ENTRIES = re.compile(r"(?:^|(?<=\. ))[^.]*O\(entries\)[^.]*\.(?: |$)")
#: Options and return values of the module: the role has no options of these names.
_REFERENCE = re.compile(r"\b(?:O|RV)\(")
#: Indentation of an option of the role, and width of the lines in which options are written.
_OPTION, _WIDTH = 6, 98


class _InOneLine(list[Any]):
    """A list in one line of YAML."""


class Dumper(yaml.SafeDumper):
    """Write YAML as the linter wants it: without anchors, and with the items of a list indented."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


Dumper.add_representer(
    _InOneLine,
    lambda dumper, values: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", values, flow_style=True
    ),
)


def files() -> dict[Path, str]:
    """Return the path and content of the argument specs."""
    return {FILE: text()}


@cache
def text() -> str:
    """Return the argument specs with the options of each list."""
    written: list[str] = []
    known = {kind.list: kind for kind in kinds.KINDS if kind.role == kinds.ROLE}
    current, is_generated = "", False
    for line in FILE.read_text(encoding="utf-8").splitlines():
        indent = len(line) - len(line.lstrip())
        if indent <= _OPTION:
            current, is_generated = line.strip(" :").removeprefix("desired_state_"), False
        elif indent == _OPTION + 2:
            is_generated = line.strip() in ("options:", "options: {}") and current in known
            if is_generated:
                options = dump(_options_of(known[current]), _WIDTH)
                written.append("        options:")
                written += textwrap.indent(options, " " * (_OPTION + 4)).splitlines()
        if not is_generated:
            written.append(line)
    return "\n".join(written) + "\n"


def dump(data: Any, width: int) -> str:
    """Return data as YAML."""
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)


def _options_of(kind: kinds.Kind) -> dict[str, Any]:
    """Return the options of an entry."""
    options = importlib.import_module(f"{MODULES}.{kind.module}")
    camel = "".join(part.capitalize() for part in kind.module.split("_"))
    spec = typed_options.argument_spec(getattr(getattr(options, kind.module), f"{camel}Options"))
    described = yaml_load(options.DOCUMENTATION)["options"]
    if kind.at_once:
        spec, described = spec["entries"]["options"], described["entries"]["suboptions"]
    left_out = LEFT_OUT.get(kind.list, frozenset())
    kept = {name: option for name, option in described.items() if name not in left_out}
    found = _converted(kind.list, kept, spec)
    for name in kind.key:  # entries with and without the default are the same object
        if "default" in kept[name]:
            found[name]["default"] = kept[name]["default"]
    return found


def _converted(
    place: str, described: Mapping[str, Mapping[str, Any]], spec: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return documented options of a module as options of a role."""
    found: dict[str, Any] = {}
    for name, option in described.items():
        path, texts = f"{place}.{name}", option["description"]
        texts = [texts] if isinstance(texts, str) else texts
        texts = [_REFERENCE.sub("C(", _ABOUT_ENTRIES.sub("", each)).strip() for each in texts]
        texts = [each for each in (*texts, _ADDED.get(path)) if each]
        found[name] = {"description": texts[0] if len(texts) == 1 else texts}
        found[name] |= {key: option[key] for key in _KEYS if key in option}
        if path in _TYPES:
            found[name]["type"] = _TYPES[path]
        if "choices" in option:
            found[name]["choices"] = _InOneLine(option["choices"])
        if spec[name].get("no_log"):
            found[name]["no_log"] = True
        if "suboptions" in option:
            inner = spec[name]["options"]
            found[name]["options"] = _converted(path, option["suboptions"], inner)
    return found
