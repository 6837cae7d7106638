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

from ...module_utils._lib.core.errors import ToolchainError, printable
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

__all__ = ["Run", "StepError", "perform", "run_of"]

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
