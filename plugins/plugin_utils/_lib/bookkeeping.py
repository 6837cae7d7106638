# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the action `bookkeeping`, which the playbooks and roles of the collection run.

The files of the folder `steps` contain them by subject, and `steps/table.py` lists them. A step
returns the result of its task. The key `report` of a result is for the report of the run:

`findings`: objects that differ, and that no module has compared;
`plan`: the sealed plan of the run;
`files`: the file of the desired state for each object;
`summary`: the content of several reports;
`reason`: why somebody runs the playbook;
`approvals`: the approvals of the sealed plan;
`restart`: whether the run has compared the servers with a sealed plan, and begins to write;
`is_known`: whether the report contains the failure of the step already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._lib.core.errors import ToolchainError, printable
from . import ansible_internals
from .sentence_error import SentenceError
from .steps import (
    adoption,
    builds,
    deletions,
    exports,
    folder,
    gates,
    inputs,
    matching,
    plans,
    reports,
    rotation,
    tickets,
)
from .steps.run import LONGEST, Result, Run, StepError, run_of
from .steps.table import SUBJECTS

__all__ = ["Run", "StepError", "execute", "perform", "run_of"]

_FILES = (
    inputs,
    folder,
    deletions,
    reports,
    plans,
    tickets,
    adoption,
    matching,
    builds,
    gates,
    exports,
    rotation,
)
_STEPS: Mapping[str, Callable[..., Result]] = {
    step: getattr(file, step)
    for file in _FILES
    for step in SUBJECTS[file.__name__.rpartition(".")[2]].steps
}


def perform(step: str, run: Run, values: Mapping[str, Any]) -> Result:
    """Run a step. Raises `StepError`."""
    try:
        return _STEPS[step](run, **values)
    except (SentenceError, ToolchainError) as error:
        prefix = getattr(error, "prefix", "")
        message = printable(f"{prefix}{error}".rstrip("."), LONGEST)
        values = error.result if isinstance(error, ToolchainError) else {}
        raise StepError(f"{message}.", kind=getattr(error, "kind", ""), values=values) from None


def execute(
    parts: Mapping[str, Any], variables: Mapping[str, Any], module: str, options: Mapping[str, Any]
) -> Result:
    """Run a module of the collection as the task of a step, which has its name meanwhile. A copy of
    the task, as the actions of Ansible make it, would take as long as a module.

    :param parts: arguments of the constructor of an action
    :param variables: variables of the task
    """
    name, task = f"delivery.toolchain.{module}", parts["task"]
    before = task.action, task.args
    task.action = name
    try:
        task.args = ansible_internals.module_arguments(
            name, options, task, parts["templar"], variables.get("omit")
        )
        loader = parts["shared_loader_obj"].action_loader
        result: Result = loader.get(name, **parts).run(task_vars=variables)
    except AnsibleConnectionFailure:
        raise
    except AnsibleError as error:
        # the task has other objects, too
        return {**(getattr(error, "result", None) or {}), "failed": True, "msg": str(error)}
    finally:
        task.action, task.args = before
    return result
