# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the issues of a drift report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ....module_utils._lib.core.errors import printable
from ..report import tickets
from .run import Result, Run, StepError

_UNUSABLE = (
    "Cannot plan issues: no readable drift report was found. Run drift first, and set drift_report"
    " to the folder of its report."
)


def plan_issues(run: Run, issues: Sequence[Mapping[str, Any]]) -> Result:
    """Return the issues to create, change and close.

    :param issues: the open issues of earlier runs
    """
    closed = str(run.value("tickets_close_status", "Done"))
    try:
        steps = tickets.steps_of(run.value("tickets_close_transition"), closed)
    except ValueError:
        raise StepError(
            "tickets_close_transition must be the name or id of a transition, or a list whose last"
            " entry is one, after statuses on the way, not"
            f" '{printable(str(run.value('tickets_close_transition')), 100)}'."
        ) from None
    try:
        if run.report_folder:
            file = run.path(str(run.report_folder)) / "report.json"
            report = json.loads(file.read_text("utf-8"))
        else:
            names = ("findings", "resolved", "servers", "unread")
            report = {name: run.value(f"drift_{name}", []) for name in names}
        per, most = run.value("tickets_per", "finding"), run.value("tickets_max_new", 20)
        found = tickets.plan(report, issues, per, int(most))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        found = None
    if found is None:
        raise StepError(_UNUSABLE)
    return {"plan": {**found, "steps": steps, "sentence": tickets.counted(report, found)}}
