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
from importlib import import_module
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._lib.core.errors import ToolchainError, printable
from . import ansible_internals
from .sentence_error import SentenceError
from .steps.run import LONGEST, Result, Run, StepError, run_of
from .steps.table import SUBJECTS

__all__ = ["Run", "StepError", "execute", "perform", "run_of"]

_SUBJECT_OF = {step: name for name, subject in SUBJECTS.items() for step in subject.steps}


def perform(step: str, run: Run, values: Mapping[str, Any]) -> Result:
    """Run a step. Raises `StepError`."""
    # each subject alone, because adoption imports the formats of the wiki
    subject = import_module(f"{__package__}.steps.{_SUBJECT_OF[step]}")
    function: Callable[..., Result] = getattr(subject, step)
    try:
        return function(run, **values)
    except (SentenceError, ToolchainError) as error:
        prefix = getattr(error, "prefix", "")
        message = printable(f"{prefix}{error}".rstrip("."), LONGEST)
        values = error.result if isinstance(error, ToolchainError) else {}
        raise StepError(f"{message}.", kind=error.kind, values=values) from None


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
            name, options, task, parts["templar"], variables
        )
        loader = parts["shared_loader_obj"].action_loader
        result: Result = loader.get(name, **parts).run(task_vars=variables)
    except AnsibleConnectionFailure:
        raise
    except AnsibleError as error:
        # the task has other objects, too
        place = _undecrypted(options)
        message = f"{place} cannot be decrypted: {error}" if place else str(error)
        return {**(getattr(error, "result", None) or {}), "failed": True, "msg": message}
    finally:
        task.action, task.args = before
    return result


def _undecrypted(value: Any, place: str = "") -> str:
    """Return the place of the first secret that Ansible cannot decrypt, such as `a[2].b`, or ""."""
    if isinstance(value, Mapping):
        parts = [(f"{place}.{name}".lstrip("."), part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{place}[{number}]", part) for number, part in enumerate(value)]
    else:
        try:
            str(value)
        except AnsibleError:
            return place
        return ""
    return next(filter(None, (_undecrypted(part, name) for name, part in parts)), "")
