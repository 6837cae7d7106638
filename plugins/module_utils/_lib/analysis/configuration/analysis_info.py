# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the state of a server and its projects: `analysis_info` [W4.5]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.concurrency import bounded
from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive
from ...core.plan import Plan, ReadOnly, unchanged
from .. import responses
from ..client import AnalysisClient, Call
from ..resource import LIMIT
from ..responses import Record
from ..service import SERVICE
from . import analysis_export

_PARALLEL = 4


#: Values of `gather`.
Topic: TypeAlias = Literal[
    "version",
    "license",
    "task_status",
    "import_status",
    "projects",
    "roles",
    "role_assignments",
    "users",
    "groups",
    "builds",
    "modules",
    "views",
    "taxonomies",
    "defect_types",
    "project_configuration",
]


@dataclass(frozen=True)
class TopicQuery:
    """The request that reads a topic.

    :param action: action of the server
    :param parameters: names of the options to send as parameters
    :param optional: additional parameters that only real servers know
    :param is_single: whether the response is a single record instead of a record per line
    """

    action: str
    parameters: tuple[str, ...] = ()
    optional: Mapping[str, Any] = field(default_factory=dict)
    is_single: bool = False

    def call(self, values: Mapping[str, Any]) -> Call:
        return Call(self.action, {name: values[name] for name in self.parameters}, self.optional)


#: Topics of `gather`. Server fact [analysis-9]: groups contain users only with `list_users`.
TOPICS: dict[Topic, TopicQuery] = {
    "version": TopicQuery("version", is_single=True),
    "license": TopicQuery("license_count", ("feature",)),
    "task_status": TopicQuery("task_status"),
    "import_status": TopicQuery("import_status"),
    "projects": TopicQuery("projects"),
    "roles": TopicQuery("roles", ("search",)),
    "role_assignments": TopicQuery("role_assignments", ("search",)),
    "users": TopicQuery("users", ("search", "limit")),
    "groups": TopicQuery("groups", ("search", "limit"), {"list_users": True}),
    "builds": TopicQuery("builds", ("project",)),
    "modules": TopicQuery("modules", ("project",)),
    "views": TopicQuery("views", ("project",)),
    "taxonomies": TopicQuery("taxonomies", ("project",)),
    "defect_types": TopicQuery("defect_types", ("project",)),
    "project_configuration": TopicQuery(
        "project_configuration", ("project", "build"), is_single=True
    ),
}


@dataclass(frozen=True)
class AnalysisInfoOptions:
    """The options of `analysis_info`."""

    gather: list[Topic] = field(default_factory=lambda: ["version"])
    project: Annotated[Any, Option(values="text")] = None
    build: str | None = None
    feature: str | None = None
    search: str | None = None
    limit: Positive | None = None
    export: bool = False


class AnalysisInfoOperation(ReadOnly):
    """Returns a key per topic, and `config` if `export` is set."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads()})

    def __init__(self, task: Task, options: AnalysisInfoOptions) -> None:
        self._task, self._export = task, options.export
        self._projects = projects = _names(options.project)
        self._topics = list(dict.fromkeys(options.gather))
        if not self._topics and not options.export:
            task.warn("gather is empty: nothing is read")
        of_project = [name for name in self._topics if "project" in TOPICS[name].parameters]
        if of_project and (projects is None or len(projects) != 1):
            raise invalid(
                f"gather: {', '.join(of_project)} requires project: set it to one project"
            )
        self._values = {
            "project": None if projects is None else projects[0],
            "build": options.build,
            "feature": options.feature,
            "search": options.search,
            "limit": LIMIT if options.limit is None else options.limit,
        }
        self._client = AnalysisClient(task, connections=_PARALLEL)

    def plan(self) -> Plan:
        # The first request runs alone, because concurrent failed logins may lock the account.
        found = dict(map(self._gather, self._topics[:1]))
        found.update(bounded(_PARALLEL, self._gather, self._topics[1:]))
        if self._export:
            found.update(analysis_export.read(self._task, self._client, self._projects, _PARALLEL))
        return unchanged(found)

    def _gather(self, name: Topic) -> tuple[str, list[Record] | Record]:
        query = TOPICS[name]
        of = f" of the project '{self._values['project']}'" if "project" in query.parameters else ""
        purpose = f"reading {name}{of}"
        call = query.call(self._values)
        records = self._client.ask(purpose, call)
        if query.is_single:
            record = responses.one(purpose, records)
            if name == "version":
                parts = (record.get(part) for part in ("majorVersion", "minorVersion"))
                record["full"] = ".".join(str(part) for part in parts if part not in (None, ""))
            return name, record
        if len(records) == call.parameters.get("limit"):
            self._task.warn(
                f"{purpose}: the list may be incomplete, because its length equals limit"
                f" ({len(records)}): increase limit"
            )
        return name, records


def _names(value: Any) -> list[str] | None:
    """Return the names in the option `project`, which is a string or a list."""
    if value is None:
        return None
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise invalid("project is not a name or a list of names")
    return names
