# SPDX-License-Identifier: GPL-3.0-or-later
"""Read reports on a project ([W4.5]: `report`, `metrics`, `fchurns`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.plan import Plan, ReadOnly, unchanged
from .. import responses
from ..client import AnalysisClient, Call
from ..responses import Record


@dataclass(frozen=True)
class ReportKind:
    """A kind of report.

    :param parameters: the server's names of its options
    :param optional: options that only some servers accept
    :param one: whether the response is a single record instead of a record per line
    """

    action: str
    parameters: Mapping[str, str]
    optional: Mapping[str, str]
    required: tuple[str, ...]
    one: bool


#: `filterQuery`, and the project of `fchurns`, are server facts [analysis-14]. A filter that a
#: server does not know is never left out: the report would have other content.
_KINDS = {
    "report": ReportKind(
        "report",
        {"project": "project", "build": "build", "x": "x", "y": "y", "query": "filterQuery"},
        {},
        ("project",),
        one=True,
    ),
    "metrics": ReportKind(
        "metrics", {"project": "project", "query": "query"}, {}, ("project",), one=False
    ),
    "churns": ReportKind(
        "fchurns", {"component": "component"}, {"project": "project"}, (), one=True
    ),
}
#: Default limit of servers for users and groups [analysis-9]; for metrics it is not documented, and
#: the written interface has no limit.
_DEFAULT_LIMIT = 1000


@dataclass(frozen=True)
class AnalysisReportOptions:
    """The options of `analysis_report`."""

    kind: Literal["report", "metrics", "churns"] = "report"
    project: str | None = None
    build: str | None = None
    x: str | None = None
    y: str | None = None
    query: str | None = None
    component: str | None = None

    def subject(self) -> dict[str, str | None]:
        """Return the subject of the report: all options except `kind`."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "kind"
        }


class AnalysisReportOperation(ReadOnly):
    """Operation of `analysis_report`."""

    descriptor: ClassVar = Descriptor("analysis", {"read": reads()})

    def __init__(self, task: Task, options: AnalysisReportOptions) -> None:
        self._task, self._kind = task, _KINDS[options.kind]
        named = options.subject()
        for name, value in named.items():
            if value is not None and name not in {**self._kind.parameters, **self._kind.optional}:
                raise invalid(f"{name} cannot be combined with a report of the kind {options.kind}")
            if value is None and name in self._kind.required:
                raise invalid(f"a report of the kind {options.kind} requires {name}")
        subject = options.project or options.component
        self._purpose = f"creating the {options.kind} report" + (
            f" on '{subject}'" if subject else ""
        )
        self._call = Call(
            self._kind.action,
            {name: named[option] for option, name in self._kind.parameters.items()},
            {name: named[option] for option, name in self._kind.optional.items() if named[option]},
        )

    def plan(self) -> Plan:
        return unchanged({"report": self._report()})

    def _report(self) -> Record | list[Record]:
        records = AnalysisClient(self._task).ask(self._purpose, self._call)
        if self._kind.one:
            report = responses.one(self._purpose, records)
            for warning in responses.warnings(report):
                self._task.warn(f"{self._purpose}: {warning}")
            return report
        if len(records) == _DEFAULT_LIMIT:
            self._task.warn(
                f"{self._purpose}: the list has {len(records)} records and may be incomplete:"
                " narrow the query"
            )
        return records
