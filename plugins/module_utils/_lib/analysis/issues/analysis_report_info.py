# SPDX-License-Identifier: GPL-3.0-or-later
"""Read reports on a project: `analysis_report_info` ([W4.5]: `report`, `metrics`, `fchurns`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.plan import Plan, ReadOnly, unchanged
from .. import responses
from ..client import AnalysisClient, Call
from ..responses import Record
from ..service import SERVICE


@dataclass(frozen=True)
class ReportKind:
    """A kind of report.

    :param action: action of the server
    :param parameters: option name to parameter name
    :param optional: the same for parameters that only some servers accept
    :param required: names of required options
    :param is_single: whether the response is a single record instead of a record per line
    """

    action: str
    parameters: Mapping[str, str]
    optional: Mapping[str, str]
    required: tuple[str, ...]
    is_single: bool


#: Kinds of reports. Server facts [analysis-14]: `filterQuery`, and `project` of `fchurns`. A filter
#: is never omitted, because the report would differ.
_KINDS = {
    "report": ReportKind(
        "report",
        {
            **{name: name for name in ("project", "build", "view", "x", "y", "group_issues")},
            "query": "filterQuery",
            "x_drilldown": "xDrilldown",
            "y_drilldown": "yDrilldown",
        },
        {},
        ("project",),
        is_single=True,
    ),
    "metrics": ReportKind(
        "metrics",
        {
            name: name
            for name in ("project", "query", "view", "limit", "aggregate", "exclude_system_files")
        },
        {},
        ("project",),
        is_single=False,
    ),
    "churns": ReportKind(
        "fchurns",
        {
            "component": "component",
            "view": "view",
            "view_creator": "viewCreator",
            "latest_builds": "latestBuilds",
        },
        {"project": "project"},
        (),
        is_single=True,
    ),
}
#: Number of records at which a list may be truncated: the default limit of servers for users and
#: groups [analysis-9]. The limit for metrics is not documented.
_DEFAULT_LIMIT = 1000


@dataclass(frozen=True)
class AnalysisReportInfoOptions:
    """The options of `analysis_report_info`."""

    kind: Literal["report", "metrics", "churns"] = "report"
    project: str | None = None
    build: str | None = None
    view: str | None = None
    x: str | None = None
    x_drilldown: int | None = None
    y: str | None = None
    y_drilldown: int | None = None
    group_issues: bool | None = None
    query: str | None = None
    limit: Positive | None = None
    aggregate: bool | None = None
    exclude_system_files: bool | None = None
    component: str | None = None
    view_creator: str | None = None
    latest_builds: Positive | None = None

    def subject(self) -> dict[str, str | int | None]:
        """Return the values of all options except `kind`."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "kind"
        }


class AnalysisReportInfoOperation(ReadOnly):
    """Reads a report."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads()})

    def __init__(self, task: Task, options: AnalysisReportInfoOptions) -> None:
        self._task, self._kind, self._limit = task, _KINDS[options.kind], options.limit
        values = options.subject()
        for name, value in values.items():
            if value is not None and name not in {**self._kind.parameters, **self._kind.optional}:
                raise invalid(f"{name} cannot be combined with kind: {options.kind}: omit it")
            if value is None and name in self._kind.required:
                raise invalid(f"kind: {options.kind} requires {name}")
        subject = options.project or options.component
        self._purpose = f"creating the {options.kind} report" + (
            f" on '{subject}'" if subject else ""
        )
        self._call = Call(
            self._kind.action,
            {name: values[option] for option, name in self._kind.parameters.items()},
            {
                name: values[option]
                for option, name in self._kind.optional.items()
                if values[option]
            },
        )

    def plan(self) -> Plan:
        return unchanged({"report": self._report()})

    def _report(self) -> Record | list[Record]:
        records = AnalysisClient(self._task).ask(self._purpose, self._call)
        if self._kind.is_single:
            report = responses.one(self._purpose, records)
            for warning in responses.warnings(report):
                self._task.warn(f"{self._purpose}: {warning}")
            return report
        limit = self._limit or _DEFAULT_LIMIT
        if len(records) >= limit:
            self._task.warn(
                f"{self._purpose}: the list has {len(records)} records and may be incomplete:"
                " increase limit, or narrow the query"
            )
        return records
