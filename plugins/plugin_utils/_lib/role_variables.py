# SPDX-License-Identifier: GPL-3.0-or-later
"""Find unknown variables with the prefix of a role or a playbook [C1.6]."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from . import collection

#: The steps of the playbooks, which read some variables.
_STEPS = Path(__file__).with_name("bookkeeping.py")
#: Prefixes of variables, by playbook, if they differ from the name of the playbook. For example,
#: `drift_summary_` could also be a prefix of variables of `drift`.
_PREFIXES = {
    "drift_summary": ("summary", "drift"),
    "drift_tickets": ("tickets",),
    "enforce": ("enforce", "drift"),
}


def is_role(owner: str) -> bool:
    """Return whether the collection has a role with this name."""
    return (collection.ROOT / "roles" / owner).is_dir()


def unknown(owner: str, names: Iterable[str]) -> list[str]:
    """Return the unknown names with a prefix of `owner`, with a suggestion if possible.

    A name with several prefixes may be a variable of any of them: `release_notes_title` is a
    variable of the role `release_notes`, `release_version_comment` of the playbook `release`.

    :param owner: name of a role or playbook
    """
    prefixes = _PREFIXES.get(owner, (owner,))
    return [text for prefix in prefixes for text in _unknown(prefix, names)]


def _unknown(owner: str, names: Iterable[str]) -> list[str]:
    found = []
    for name in sorted(name for name in names if name.startswith(f"{owner}_")):
        candidates = [owner, *(other for other in owners() if name.startswith(f"{other}_"))]
        if name not in frozenset().union(*map(known_to, candidates)):
            found.append(_with_suggestion(name, frozenset().union(*map(_inputs_of, candidates))))
    return found


def _inputs_of(owner: str) -> frozenset[str]:
    """Return the variables of a role or playbook that users may set."""
    return known_to(owner).difference(*map(set_by, owners()))


def _with_suggestion(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"{name} (did you mean {near[0]}?)" if near else name


@cache
def owners() -> frozenset[str]:
    """Return the prefixes of the variables of roles and playbooks."""
    roles = {path.name for path in (collection.ROOT / "roles").iterdir() if path.is_dir()}
    playbooks = {path.stem for path in (collection.ROOT / "playbooks").glob("*.yml")}
    return frozenset(roles | {_PREFIXES.get(name, (name,))[0] for name in playbooks})


@cache
def known_to(owner: str) -> frozenset[str]:
    """Return the variables of a role or playbook with its prefix, including those that it sets."""
    if not is_role(owner):
        files = [*(collection.ROOT / "playbooks").rglob("*.yml"), _STEPS]
        texts = [file.read_text("utf-8") for file in files]
        return frozenset(re.findall(rf"\b{re.escape(owner)}_\w+", "\n".join(texts)))
    return frozenset({*_options(owner), f"{owner}_in_check_mode"} | set_by(owner))


@cache
def choices(role: str) -> Mapping[str, Sequence[Any]]:
    """Return the variables of a role that have choices, with these choices."""
    return {
        name: option["choices"] for name, option in _options(role).items() if "choices" in option
    }


def _options(role: str) -> Mapping[str, Any]:
    """Return the options of a role; a playbook has none."""
    if not is_role(role):
        return {}
    file = collection.ROOT / "roles" / role / "meta" / "argument_specs.yml"
    (specs,) = _loaded(file)["argument_specs"].values()
    options: Mapping[str, Any] = specs["options"]
    return options


@cache
def set_by(owner: str) -> frozenset[str]:
    """Return the variables with the prefix of a role that the role sets and that are no options."""
    role = collection.ROOT / "roles" / owner
    found: set[str] = set()
    for file in (role / "vars").glob("*.yml"):
        found.update(_loaded(file))
    for file in (role / "tasks").glob("*.yml"):
        found.update(_set_by_tasks(_loaded(file)))
    return frozenset(name for name in found - {*_options(owner)} if name.startswith(f"{owner}_"))


def _set_by_tasks(tasks: Any) -> Iterator[str]:
    """Yield the variables that tasks set: facts and registered results."""
    for task in tasks:
        for section in ("block", "rescue", "always"):
            yield from _set_by_tasks(task.get(section, ()))
        yield from task.get("ansible.builtin.set_fact", ())
        if "register" in task:
            yield task["register"]


def _loaded(file: Path) -> Any:
    return yaml_load(file.read_text("utf-8"))
