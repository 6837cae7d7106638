# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the variables of a role or playbook."""

from __future__ import annotations

from collections.abc import Sequence

from ansible.module_utils.parsing.convert_bool import boolean

from ....module_utils._lib.core.errors import printable
from .. import enforcement, kinds, role_variables, survey
from .run import Result, Run, StepError, mapping


def check(
    run: Run,
    of: str,
    work: Sequence[str] = (),
    switches: Sequence[str] = (),
    *,
    empty: bool = False,
) -> Result:
    """Reject unknown variables and services, and a run without work.

    :param of: name of a role or playbook
    :param work: variables of which at least one must be set
    :param empty: an empty list is work, too
    :param switches: variables that are true or false, or not set
    """
    title = f"The {'role' if role_variables.is_role(of) else 'playbook'} {of}"
    unknown = role_variables.unknown(of, run.variables)
    if unknown:
        raise StepError(f"{title} does not know {', '.join(unknown)}.")
    _reject_internal(run, of, title)
    problem = enforcement.problem_of_connections(
        f"{of}_connections", run.variables, run.template
    ) or enforcement.problem_of_included(of, run.variables, run.template)
    if problem:
        raise StepError(problem)
    wrong = next((name for name in switches if not enforcement.is_switch(run.value(name))), "")
    if wrong:
        raise StepError(
            f"{wrong} must be true or false, not '{printable(str(run.value(wrong)), 80)}'."
        )
    for name in role_variables.LISTS_OF_ENTRIES.get(of, ()):
        value = run.evaluated(run.variables.get(name))
        if value not in (None, "") and not isinstance(value, list | tuple):
            raise StepError(
                f"{name} must be a list of entries, each a mapping of options, not"
                f" '{printable(str(value), 100)}'."
            )
    is_work = run.variables.__contains__ if empty else run.is_set
    off = next(
        (name for name in work if name in switches and not boolean(run.value(name, default=False))),
        "",
    )
    names_of_work = [name for name in work if name != off]
    if names_of_work and not any(map(is_work, names_of_work)):
        *first, last = names_of_work
        names = f"{', '.join(first)} or {last}" if first else last
        reason, more = (f", because {off} is false", f", or {off} to true") if off else ("", "")
        raise StepError(f"{title} has nothing to do{reason}: set {names}{more}.")
    return {}


def forget(run: Run) -> Result:
    """Return nothing. The result replaces a registered result that has secrets."""
    return {}


def _reject_internal(run: Run, owner: str, title: str) -> None:
    names = role_variables.internal(owner, run.variables, run.origins())
    if names:
        raise StepError(
            f"{title} sets {', '.join(names)} itself: remove {'it' if len(names) == 1 else 'them'}"
            " from the variables of the run."
        )


def read_survey(run: Run, playbook: str) -> Result:
    """Return the variables that the answers of a survey set."""
    return {"answers": survey.answers(playbook, run.variables)}


def roles(run: Run, *, folder: bool = False) -> Result:
    """Return the tasks that apply the desired state: a file of the playbooks, what it is about, and
    the file of the role. A run with a folder forgets the secrets of all roles at its end.

    :param folder: the folder of the desired state has not been read
    """
    if folder:
        _reject_internal(run, "enforce", "The playbook enforce, which drift also runs,")
    reads = folder and "desired_state_folder" in run.variables
    variables = run.variables if folder else {**run.variables, **run.of_folder}
    described = enforcement.roles(variables, run.template)
    known = None if reads and run.value("enforce_roles") in (None, []) else described
    problem = enforcement.problem(run.variables, run.template, known)
    if problem:
        raise StepError(problem)
    if reads:
        return {"steps": [["hold_folder.yml", "", ""]]}
    if left := _of_earlier_folders(run, described, folder=folder):
        raise StepError(
            f"The folder of an earlier play of this run has set {', '.join(left)}, which would"
            " apply here, too: run each folder with a command of its own."
        )
    steps = [["hold_role.yml", role, "main" if folder else "apply"] for role in described]
    if not folder and run.value("desired_state_previous"):
        steps.insert(0, ["hold_deletions.yml", "number of deletions", ""])
    return {"steps": steps}


def _of_earlier_folders(run: Run, described: Sequence[str], *, folder: bool) -> list[str]:
    """Return the variables of roles that still have the values of the folder of an earlier play.

    Ansible cannot remove a fact.
    """
    read = mapping(run.variables.get("desired_state_read"))
    names = {*read.get("earlier", ())}
    if folder:  # this play has no folder
        names.update(read.get("variables", ()))
    else:
        names.difference_update(read.get("variables", ()))
    others = tuple(f"{role}_" for role in described if role != kinds.ROLE)
    found = [name for name in sorted(names) if name.startswith(others)]
    return [name for name in found if name not in run.origins().extra]
