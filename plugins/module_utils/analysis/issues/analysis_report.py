# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports on a project ([W4.5]: C(report), C(metrics), C(fchurns))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import invalid
from ...core.module.task import Task
from ...core.plan import Reading
from .. import answers
from ..answers import Record
from ..client import AnalysisClient, Call


@dataclass(frozen=True)
class _Kind:
    """A kind of report.

    :param parameters: the server's names of the options that it takes
    :param optional: options that only some servers take
    :param one: whether the answer is one record, else there is one per line
    """

    action: str
    parameters: Mapping[str, str]
    optional: Mapping[str, str]
    required: tuple[str, ...]
    one: bool


#: C(filterQuery), and the project of C(fchurns), are server facts [analysis-14]. A filter that a
#: server does not know is never left out: the report would be about something else.
_KINDS = {
    "report": _Kind(
        "report",
        {"project": "project", "build": "build", "x": "x", "y": "y", "query": "filterQuery"},
        {},
        ("project",),
        one=True,
    ),
    "metrics": _Kind(
        "metrics", {"project": "project", "query": "query"}, {}, ("project",), one=False
    ),
    "churns": _Kind("fchurns", {"component": "component"}, {"project": "project"}, (), one=True),
}
#: What servers give of users and groups where no limit is named [analysis-9]; of metrics it is not
#: documented, and the written interface has no limit for them.
_UNTOLD_LIMIT = 1000
_OPTIONS = ("project", "build", "x", "y", "query", "component")


def operation(task: Task) -> Reading:
    """The operation of the module: C(report)."""
    params = task.params
    name, kind = params["kind"], _KINDS[params["kind"]]
    for option in _OPTIONS:
        given = params[option] is not None
        if given and option not in {**kind.parameters, **kind.optional}:
            raise invalid(f"{option} does not go with a report of the kind {name}")
        if params[option] == "" or (option in kind.required and not given):
            raise invalid(f"a report of the kind {name} needs {option}, and it must not be empty")
    subject = params["project"] or params["component"]
    what = f"making the {name} report" + (f" on '{subject}'" if subject else "")
    call = Call(
        kind.action,
        {name: params[option] for option, name in kind.parameters.items()},
        {name: params[option] for option, name in kind.optional.items() if params[option]},
    )

    def read() -> Mapping[str, Any]:
        records = AnalysisClient(task).ask(what, call)
        if kind.one:
            return {"report": _warned(task, what, answers.one(what, records))}
        if len(records) == _UNTOLD_LIMIT:
            task.warn(f"{what}: the list has {len(records)} records and may be cut: narrow query")
        return {"report": records}

    return Reading(read)


def _warned(task: Task, what: str, report: Record) -> Record:
    """The report; what it warns of becomes warnings of the task."""
    for warning in answers.warnings(report):
        task.warn(f"{what}: {warning}")
    return report
