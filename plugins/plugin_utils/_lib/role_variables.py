# SPDX-License-Identifier: GPL-3.0-or-later
"""Find unknown variables with the prefix of a role or a playbook [C1.6]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

from . import collection
from .sentence_error import did_you_mean


def _named(prefix: str, names: str) -> frozenset[str]:
    return frozenset(f"{prefix}_{name}" for name in names.split())


#: Prefixes of variables, by playbook, if they differ from the name of the playbook. For example,
#: `drift_summary_` could also be a prefix of variables of `drift`.
_PREFIXES = {
    "drift_summary": ("summary", "drift"),
    "drift_tickets": ("tickets",),
    "enforce": ("enforce", "drift"),
}
#: Variables of playbooks that users may set, by prefix. Those of roles are in their argument specs.
INPUTS = {
    "adopt": _named("adopt", "connections deletions findings force hosts into report"),
    "awx_setup": _named(
        "awx_setup",
        "credentials execution_environment hosts inventory notification organization project"
        " reports slices",
    ),
    # AWX passes what drift and release report to the next jobs of a workflow
    "drift": _named(
        "drift",
        "fail ignore output page plan_key plan_name report table who"
        " findings plan resolved result servers unread",
    ),
    "enforce": _named(
        "enforce",
        "approvals connections hosts only plan plan_key plan_max_age plan_rest reason requester"
        " roles signers",
    ),
    "export": _named(
        "export",
        "connections folder hosts jobs jobs_exclude overwrite projects services tracker_projects"
        " wiki_attachments wiki_restrictions wiki_spaces wiki_trees",
    ),
    "housekeeping": _named("housekeeping", "connection hosts"),
    "match_accounts": _named("match_accounts", "file from hosts to"),
    "release": _named(
        "release",
        "again allow_empty analysis_modules analysis_roles announce archives browse_url"
        " build_numbers build_publish builds bundles connections fetch files freeze gate hold hosts"
        " images inputs introduction jobs jql overwrite page_id parent_id properties repo section"
        " space title version_comment when_released",
    ),
    "summary": _named("summary", "expected folder max_age reports"),
    "tickets": _named(
        "tickets", "close_fields close_status close_transition max_new per project type"
    ),
}
#: Variables of playbooks that are lists of mappings, by playbook. A loop would take a text letter
#: by letter. The argument specs of roles check theirs.
LISTS_OF_ENTRIES = {
    "release": (
        *("release_inputs", "release_jobs", "release_fetch", "release_files", "release_archives"),
        *("release_builds", "release_images", "release_bundles", "release_announce"),
        *("release_analysis_roles", "release_analysis_modules"),
    )
}
#: Variables that a playbook sets, and that users may set too.
_OF_USERS = (
    *("drift_table", "toolchain_fail_fast", "toolchain_report"),
    "ci_baseline_in_check_mode",
)
_BLOCKS = ("block", "rescue", "always", "tasks")


class Origins(NamedTuple):
    """Where the variables of a task come from.

    :param extra: extra variables, which override all others
    :param facts: results and facts of earlier tasks
    :param included: variables of the task, its blocks, and what includes it
    """

    extra: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}
    included: Mapping[str, Any] = {}


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
            inputs = {one for each in candidates for one in known_to(each) - _internal_names(each)}
            found.append(f"{name}{did_you_mean(name, inputs)}")
    return found


def remember(owner: str) -> None:
    """Read in this process what the checks of a role or playbook need, for all its forks."""
    known_to(owner)
    _words()
    _internal_names(owner)


def internal(owner: str, variables: Mapping[str, Any], origins: Origins) -> list[str]:
    """Return the given variables that a role or playbook of the collection sets itself.

    A value of the user would replace a result, or change what the tasks do.

    :param owner: name of the role or playbook that runs
    """
    given = {*origins.extra, *(variables.keys() - origins.facts.keys())} & variables.keys()
    given &= _words()  # fast: the files are parsed only if they may set one of the variables
    own = _internal_names(owner) if given else frozenset()
    return sorted(
        name
        for name in given & own
        if name in origins.extra or _is_given(name, owner, variables, origins)
    )


def _is_given(name: str, owner: str, variables: Mapping[str, Any], origins: Origins) -> bool:
    """Return whether a variable that is neither an extra variable nor a fact comes from a user."""
    if not _has_prefix(name):
        return False  # the variables of a task override those of an inventory
    if name in origins.included and not (is_role(owner) and name.startswith(f"{owner}_")):
        return False  # a playbook of the collection includes the role
    return variables[name] not in _own_values().get(name, ())


def _has_prefix(name: str) -> bool:
    return any(name.startswith(f"{one}_") for one in (*owners(), "toolchain"))


@cache
def _words() -> frozenset[str]:
    """Return the names that the files of all roles and playbooks may set, and others."""
    text = "\n".join(file.read_text("utf-8") for file in _files())
    names = re.findall(r"\w+(?=:\s)|(?<=register: )\w+|(?<=loop_var: )\w+", text)
    return frozenset(names).difference(_OF_USERS)


@cache
def _internal_names(owner: str) -> frozenset[str]:
    """Return the variables with a prefix that roles and playbooks set, and all of the owner."""
    names = {name for file in _files() if _is_of(file, owner) for name in _names_set_in(file)}
    inputs = {name for one in owners() for name in options(one)}.union(*INPUTS.values())
    return frozenset((names | _set_with_prefix()) - inputs - {*_OF_USERS})


@cache
def _set_with_prefix() -> frozenset[str]:
    """Return the variables with a prefix that any role or playbook sets."""
    names = frozenset().union(*map(_names_set_in, _files()))
    return frozenset(filter(_has_prefix, names))


@cache
def _files() -> tuple[Path, ...]:
    """Return the files with the tasks and variables of all roles and playbooks."""
    patterns = ("roles/*/tasks/*.yml", "roles/*/vars/*.yml", "playbooks/*.yml")
    found = [path for pattern in patterns for path in collection.ROOT.glob(pattern)]
    return (*found, *(collection.ROOT / "playbooks/tasks").rglob("*.yml"))


def _is_of(file: Path, owner: str) -> bool:
    parts = file.relative_to(collection.ROOT).parts
    if parts[0] == "roles" or is_role(owner):
        return parts[:2] == ("roles", owner)
    return parts[1] == f"{owner}.yml" or (parts[1] == "tasks" and parts[2] != "awx")


@cache
def _names_set_in(file: Path) -> frozenset[str]:
    content = _loaded(file)
    if isinstance(content, Mapping):  # variables of a role
        return frozenset(content)
    return frozenset(name for name in _names_in(content) if "{" not in name)


def _names_in(tasks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the variables that plays and tasks set, also for themselves alone."""
    yield from _set_by_tasks(tasks)
    for task in tasks:
        for block in _BLOCKS:
            yield from _names_in(task.get(block, ()))
        yield from task.get("vars", ())
        if "loop_var" in task.get("loop_control", ()):
            yield task["loop_control"]["loop_var"]


@cache
def _own_values() -> dict[str, list[Any]]:
    """Return the values that plays and roles give their variables, which are no input."""
    found: dict[str, list[Any]] = {}
    for file in _files():
        content = _loaded(file)
        plays = (
            [content] if isinstance(content, Mapping) else [one.get("vars", {}) for one in content]
        )
        for values in plays:
            for name, value in values.items():
                found.setdefault(name, []).append(value)
    return found


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
        names = {name for file in _files() for name in _names_set_in(file)}
        for file in (collection.ROOT / "playbooks/vars").glob("*.yml"):
            names.update(re.findall(r"^\w+(?=:)", file.read_text("utf-8"), re.MULTILINE))
        own = frozenset(name for name in names if name.startswith(f"{owner}_"))
        return INPUTS.get(owner, frozenset()) | own
    return frozenset({*options(owner), f"{owner}_in_check_mode"} | set_by(owner))


@cache
def included_by(playbook: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the roles that a playbook includes, with the variables that it gives them."""
    file = collection.ROOT / "playbooks" / f"{playbook}.yml"
    plays = _loaded(file) if file.exists() else []
    return [found for play in plays for found in _included(play["tasks"])]


def _included(tasks: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for task in tasks:
        for block in _BLOCKS:
            yield from _included(task.get(block, ()))
        if "ansible.builtin.include_role" in task:
            name = task["ansible.builtin.include_role"]["name"].rpartition(".")[2]
            yield name, task.get("vars", {})


@cache
def options(role: str) -> Mapping[str, Any]:
    """Return the options of a role; a playbook has none."""
    if not is_role(role):
        return {}
    file = collection.ROOT / "roles" / role / "meta" / "argument_specs.yml"
    (specs,) = _loaded(file)["argument_specs"].values()
    found: Mapping[str, Any] = specs["options"]
    return found


@cache
def set_by(owner: str) -> frozenset[str]:
    """Return the variables with the prefix of a role that the role sets and that are no options."""
    role = collection.ROOT / "roles" / owner
    found: set[str] = set()
    for file in (role / "vars").glob("*.yml"):
        found.update(_loaded(file))
    for file in (role / "tasks").glob("*.yml"):
        found.update(_set_by_tasks(_loaded(file)))
    return frozenset(name for name in found - {*options(owner)} if name.startswith(f"{owner}_"))


def _set_by_tasks(tasks: Any) -> Iterator[str]:
    """Yield the variables that tasks set: facts and registered results."""
    for task in tasks:
        for section in ("block", "rescue", "always"):
            yield from _set_by_tasks(task.get(section, ()))
        yield from task.get("ansible.builtin.set_fact", ())
        if "register" in task:
            yield task["register"]


@cache
def _loaded(file: Path) -> Any:
    return yaml_load(file.read_text("utf-8"))
