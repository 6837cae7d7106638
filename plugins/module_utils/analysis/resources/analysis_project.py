# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects [W4.5].

Actions: C(projects), C(import_project), C(import_status), C(update_project), C(delete_project).
The interface has no action that makes an empty project.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.address import require_address
from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Plan
from ...core.secret import Secret, secrets_of_url
from ..answers import Record, named
from ..client import AnalysisClient, Call
from ..engine.operation import ResourceOperation
from ..engine.resource import STATE, Objects, Renameable, State, compare, require_names, target_name
from .import_polling import WAIT_OPTIONS, Import, ImportPolling, is_running, pace_of

_SOURCE = {
    "url": {"type": "str", "required": True},
    "username": {"type": "str", "required": True},
    "password": {"type": "str", "no_log": True},
}
#: The options of C(analysis_project) without the connection.
OPTIONS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "new_name": {"type": "str"},
    "import_from": {"type": "dict", "options": _SOURCE},
    **WAIT_OPTIONS,
    "state": STATE,
}


@dataclass(frozen=True)
class ImportSource:
    """The server that a project is imported from, and how long to wait for it."""

    url: str
    username: str
    password: Secret | None
    wait: bool
    wait_options: Mapping[str, Any]


@dataclass(frozen=True)
class Project(Renameable):
    """A project by name."""

    noun: ClassVar[str] = "project"

    source: ImportSource | None = None

    @property
    def listing(self) -> Call:
        return Call("projects")

    def objects(self, records: Sequence[Record]) -> Objects:
        return objects(records)

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_project", {"name": self.name})
        if plan.action == "create":
            return self._import()
        names = {"name": plan.before["name"], "new_name": plan.after["name"]}
        return Call("update_project", names)

    def write(self, client: AnalysisClient, what: str, plan: Plan) -> None:
        """An import is waited for; it makes the project under the name that the source has."""
        if plan.action != "create" or self.source is None:
            super().write(client, what, plan)
            return
        title = f"importing {self.title}"
        wanted = Import(title, self.call(plan), self.name)
        imports = ImportPolling(client, wanted, pace_of(self.source.wait_options))
        imports.start()
        if self.source.wait:
            imports.finish()
        if self.target != self.name:
            names = {"name": self.name, "new_name": self.target}
            client.ask(what, Call("update_project", names), lambda: self._is_renamed(client))

    def _is_renamed(self, client: AnalysisClient) -> bool:
        return self.target in objects(client.ask(f"looking after {self.title}", self.listing))

    def left(self, current: State | None) -> Plan:
        """An import that is not waited for has nothing to show yet."""
        if current is None and self.source is not None and not self.source.wait:
            return Plan(self.desired, self.desired)
        return compare(self, current)

    def _import(self) -> Call:
        if self.source is None:
            raise ToolchainError(
                "not_found",
                f"{self.title} is not there, and without import_from it cannot be created",
            )
        password = None if self.source.password is None else self.source.password.reveal()
        return Call(
            "import_project",
            {
                "project": self.name,
                "sourceURL": self.source.url,
                "sourceAdmin": self.source.username,
                "sourcePassword": password,
            },
        )


class ProjectOperation(ResourceOperation):
    """The task of C(analysis_project)."""

    def __init__(self, task: Task) -> None:
        self._project = wanted(task.params)
        hide_secrets(task, [self._project])
        super().__init__(task, self._project)

    def plan(self) -> Plan:
        found, source = super().plan(), self._project.source
        begun = (
            found.action == "create"
            and source is not None
            and not source.wait
            and is_running(self._client, self._project.name)
        )
        return self._returning(Plan({}, {}), found.after) if begun else found

    def _returning(self, found: Plan, state: State) -> Plan:
        return super()._returning(found, state or self._resource.desired or {})


def wanted(options: Mapping[str, Any]) -> Project:
    """The project that the options of C(analysis_project) ask for."""
    name = options["name"]
    title = f"the project '{name}'"
    target = target_name(options, title)
    given = options.get("import_from")
    absent = options.get("state") == "absent"
    if absent:
        if given is not None:
            raise invalid(f"{title}: import_from contradicts the state absent")
        return Project(title, None, name)
    source = None if given is None else _source(options, given)
    if source is not None and not source.wait and target != name:
        raise invalid(f"{title}: new_name needs the end of the import, and wait is false")
    return Project(title, {"name": target}, name, source)


def _source(options: Mapping[str, Any], given: Mapping[str, Any]) -> ImportSource:
    require_names(given, "url", "username")
    require_address(given["url"], "in import_from.url")
    password = given.get("password")
    pace_of(options)
    return ImportSource(
        given["url"],
        given["username"],
        None if password is None else Secret(password),
        options["wait"],
        {name: options[name] for name in ("wait_timeout", "poll_interval")},
    )


def hide_secrets(task: Task, projects: Iterable[Project]) -> None:
    """Keep the user info of addresses out of all output."""
    for project in projects:
        if project.source is not None:
            for secret in secrets_of_url(project.source.url):
                task.hide(secret)


def objects(records: Sequence[Record]) -> dict[Hashable, State]:
    """Projects by their names."""
    return {record["name"]: {"name": record["name"]} for record in named(records)}
