# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server and its projects are like: one read per part [W4.5]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.concurrency import bounded
from ...core.errors import invalid
from ...core.module.task import Task
from ...core.plan import Reading
from .. import answers
from ..answers import Record
from ..client import AnalysisClient, Call
from . import export
from .object_kinds import LIMIT

_PARALLEL = 4


@dataclass(frozen=True)
class _Part:
    """A part of what can be gathered.

    :param options: those that are parameters of its action
    :param optional: parameters that only real servers know
    :param one: whether the answer is one record, else there is one per line
    """

    action: str
    options: tuple[str, ...] = ()
    optional: Mapping[str, Any] = field(default_factory=dict)
    one: bool = False

    def call(self, options: Mapping[str, Any]) -> Call:
        given = {name: options[name] for name in self.options}
        if "limit" in given and given["limit"] is None:
            given["limit"] = LIMIT
        return Call(self.action, given, self.optional)


#: What can be gathered. Groups show their users only when these are asked for [analysis-9].
PARTS = {
    "version": _Part("version", one=True),
    "license": _Part("license_count", ("feature",)),
    "task_status": _Part("task_status"),
    "import_status": _Part("import_status"),
    "projects": _Part("projects"),
    "roles": _Part("roles", ("search",)),
    "role_assignments": _Part("role_assignments", ("search",)),
    "users": _Part("users", ("search", "limit")),
    "groups": _Part("groups", ("search", "limit"), {"list_users": True}),
    "builds": _Part("builds", ("project",)),
    "modules": _Part("modules", ("project",)),
    "views": _Part("views", ("project",)),
    "taxonomies": _Part("taxonomies", ("project",)),
    "defect_types": _Part("defect_types", ("project",)),
    "project_configuration": _Part("project_configuration", ("project", "build"), one=True),
}


def operation(task: Task) -> Reading:
    """The operation of the module: a key for each part, and C(config) where it was asked for."""
    params, projects = task.params, _projects(task.params["project"])
    names = list(dict.fromkeys(params["gather"]))
    of_project = [name for name in names if "project" in PARTS[name].options]
    if of_project and (projects is None or len(projects) != 1):
        raise invalid(f"{', '.join(of_project)} can be gathered of one project only: name it")
    options = {**params, "project": None if projects is None else projects[0]}
    if params["limit"] is not None and params["limit"] < 1:
        raise invalid(f"limit is {params['limit']}, but must be at least 1")
    client = AnalysisClient(task, connections=_PARALLEL)

    def gather(name: str) -> tuple[str, Any]:
        return name, _gather(task, client, name, options)

    def read() -> Mapping[str, Any]:
        # The first one alone: a wrong login is not to be tried many times at once.
        found = dict(map(gather, names[:1]))
        found.update(bounded(_PARALLEL, gather, names[1:]))
        if params["export"]:
            found.update(export.read(task, client, projects, _PARALLEL))
        return found

    return Reading(read)


def _projects(given: Any) -> list[str] | None:
    """The names in C(project), which may be one of them, or a list."""
    if given is None:
        return None
    names = given if isinstance(given, list) else [given]
    if not names or not all(isinstance(each, (str, int)) and each != "" for each in names):
        raise invalid("project must be a name or a list of names, and none of them empty")
    return [str(each) for each in names]


def _gather(
    task: Task, client: AnalysisClient, name: str, options: Mapping[str, Any]
) -> list[Record] | Record:
    part = PARTS[name]
    of = f" of the project '{options['project']}'" if "project" in part.options else ""
    what = f"reading {name}{of}"
    call = part.call(options)
    records = client.ask(what, call)
    if part.one:
        record = answers.one(what, records)
        return _with_full(record) if name == "version" else record
    if len(records) == call.parameters.get("limit"):
        task.warn(f"{what}: the list is as long as its limit ({len(records)}) and may be cut")
    return records


def _with_full(version: Record) -> Record:
    parts = (version.get(part) for part in ("majorVersion", "minorVersion"))
    return {**version, "full": ".".join(str(part) for part in parts if part not in (None, ""))}
