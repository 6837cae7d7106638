# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the folder of the desired state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import accounts, desired_state, enforcement, kinds, variables
from ..findings import not_compared
from ..report import writing
from . import inputs
from .run import Result, Run, StepError, mapping

#: The list whose templates were evaluated last, and its value.
_LAST: dict[str, Any] = {}


def read_folder(run: Run) -> Result:
    """Return the variables that the folder of the desired state sets."""
    return {"variables": desired_state.variables(state_of(run))}


def validate_folder(run: Run) -> Result:
    """Validate the folder of the desired state. The result contains no values.

    Only the page of a report shows the files, so a run without a report does not pass them on.
    `exports` are the services and options of the exports with which `unmanaged` compares it. The CI
    server is exported with the same choice of jobs as for the folder. `earlier` are the variables
    that other folders have set in earlier plays: they stay set.
    """
    state, last = state_of(run), mapping(run.variables.get("desired_state_read"))
    exports: dict[str, dict[str, Any]] = {**kinds.exports(state)}
    if "ci" in exports:
        exports["ci"] |= desired_state.chosen(folder_of(run), "ci")
    files = desired_state.files(state) if run.report_folder else []
    return {
        "variables": list(desired_state.variables(state)),
        "exports": exports,
        "earlier": sorted({*last.get("variables", ()), *last.get("earlier", ())}),
        "report": {"files": files},
    }


def choose_entries(run: Run) -> Result:
    """Check the variables of the role, and return what its tasks apply, in order: a whole list, or
    an entry of a list.

    `index` is `None` for a list whose module takes all entries. Entries may have secrets, so the
    result has only their places and labels.
    """
    inputs.check(run, kinds.ROLE)
    if enforcement.lacks_folder(run.value("desired_state_unmanaged"), run.variables):
        raise StepError(
            "desired_state_unmanaged compares the servers with a folder; name it in"
            " desired_state_folder."
        )
    problem = enforcement.problem_of_previous(run.variables, run.template)
    if problem:
        raise StepError(problem)
    chosen: list[dict[str, Any]] = []
    values = run.of_folder
    for kind, folders in kinds.stages():
        if not values.get(kind.variable, run.is_set(kind.variable)):
            continue
        if kind.at_once:
            chosen.append({"list": kind.list, "index": None, "label": kind.title})
            continue
        noun = kinds.name_of(kind.service, kind.list)
        for index, entry in enumerate(_entries(run, kind.variable)):
            if folders is None or folders is bool(entry.get("folder")):
                label = f"{noun} {kind.label_of(entry)}"
                chosen.append({"list": kind.list, "index": index, "label": label})
    return {"entries": chosen}


def apply(run: Run) -> Result:
    """Run the module of a kind. The item of the loop is what `choose_entries` returned for it."""
    entry = run.variables["desired_state_entry"]
    kind = next(kind for kind in kinds.KINDS if kind.variable == f"{kinds.ROLE}_{entry['list']}")
    given = _entries(run, kind.variable)
    if kind.at_once:
        # what the server cannot hold is a finding, and no failure
        more = {"unsupported": "report"} if kind.reports else {}
        return run_module(run, kind.module, {"entries": given, **more}, kind.title, {})
    options = given[entry["index"]]
    names = {name: options[name] for name in kind.key if name in options}
    return run_module(run, kind.module, options, kind.label_of(options), names)


def run_module(
    run: Run, module: str, options: Mapping[str, Any], label: str, names: Mapping[str, Any]
) -> Result:
    """Run a module, and return its result with `applied_by`: what the task has done it with.

    :param label: name of the object in the report, if the module returns none
    :param names: options that name the object
    """
    known = {"module": module, "label": label, "names": dict(names)}
    if run.execute is None:
        raise StepError("This step needs a task.")
    return {**run.execute(module, options), "applied_by": known}


def _entries(run: Run, name: str) -> Any:
    """Return the entries of a list: those of the folder, or those of the variable. All tasks of a
    loop, which run in one process, evaluate the templates in a long variable only once.
    """
    if name in (values := run.of_folder):
        return values[name]
    raw = run.variables.get(name)
    if not isinstance(raw, list):
        return run.value(name)
    if _LAST.get("raw") is not raw:
        _LAST.update(raw=raw, value=run.value(name))
    return _LAST["value"]


def unmanaged(run: Run, export: str, known: Sequence[Mapping[str, Any]]) -> Result:
    """Return the objects that the folder of the desired state does not name.

    :param export: folder with an export of the servers
    :param known: findings of the run, which may have such objects already, as pages of a tree
    """
    exported, found = Path(export), [one for one in known if one["status"] == "unmanaged"]
    described = desired_state.values(state_of(run))
    if any(exported.iterdir()):  # otherwise no service could be exported
        there = desired_state.values(desired_state.read(exported, reading_of(run)))
        there = desired_state.without_other_projects(there, folder_of(run))
        found += desired_state.unmanaged(described, there)
    if run.value("desired_state_unmanaged") == "fail":
        found = [{**finding, "fails": True} for finding in found]
    found += _unread(run, described)
    return {"findings": found, "report": {"findings": found}}


def _unread(run: Run, described: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a finding for each described part of a server that its export could not read.

    :param described: values of the folder by service and list
    """
    for service, lists in described.items():
        result = mapping(run.variables.get(f"desired_state_exported_{service}"))
        projects = desired_state.chosen_projects(folder_of(run), service)
        known = {*lists, *(kinds.name_of(service, name) for name in lists)}
        for row in result.get("left_out") or ():
            kind, name = row["kind"], row["name"]
            if service == "tracker":
                is_described = kind == "project" or "project_roles" in lists
                is_described = is_described and (projects is None or name in projects)
            else:
                is_described = (name if kind == "list" else kind) in known
            if row.get("unread") and is_described:
                text = f"not compared with the folder: {row['reason']}"
                yield {"service": service, **not_compared(kind, name, text)}


def state_of(run: Run) -> desired_state.State:
    environment = run.value("desired_state_environment")
    state = desired_state.read(folder_of(run), reading_of(run), environment)
    return accounts_of(run).apply(state)


def accounts_of(run: Run) -> accounts.Accounts:
    """Return the accounts that stand for the names in the folder."""
    name = f"{accounts.VARIABLE}_required"
    required = variables.is_on(name, run.variables, run.template, default=False)
    return accounts.read(run.value(accounts.VARIABLE), run.path, required=required)


def folder_of(run: Run, variable: str = "desired_state_folder") -> Path:
    named = run.value(variable)
    if not writing.is_path(named):
        raise desired_state.DesiredStateError(f"set {variable} to the path of a folder")
    folder = run.path(str(named))
    if writing.is_in_collection(folder):
        raise desired_state.DesiredStateError(
            f"{folder} is in the installed collection: use a folder of your own; in an imported"
            " playbook use inventory_dir instead of playbook_dir"
        )
    return folder


def reading_of(run: Run) -> desired_state.Reading:
    def variable(name: str) -> Any:
        return variables.content_of(name, run.variables, run.template)

    return desired_state.Reading(run.load, variable)
