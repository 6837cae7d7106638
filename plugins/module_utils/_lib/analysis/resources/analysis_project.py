# SPDX-License-Identifier: GPL-3.0-or-later
"""Import, rename and delete projects: `analysis_project` [W4.5].

Actions: `projects`, `import_project`, `import_status`, `update_project`, `delete_project`. The
interface has no action that creates an empty project.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from ...core.address import require_address
from ...core.errors import invalid, not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Item
from ...core.plan import Plan
from ...core.secret import secrets_of_url
from ..client import AnalysisClient, Call
from ..resource import (
    Ids,
    Objects,
    Presence,
    Resource,
    ResourceKind,
    ResourceOperation,
    State,
    compare,
)
from ..responses import Record, named
from ..service import SERVICE
from .import_polling import Import, ImportPolling, ImportWaitOptions, is_running, state_of


@dataclass(frozen=True)
class ImportSource:
    """The server from which a project is imported, with a login."""

    url: str
    username: str
    password: Annotated[str | None, Option(secret=True)] = field(default=None, repr=False)


@dataclass(frozen=True)
class AnalysisProjectOptions(ImportWaitOptions):
    """The options of `analysis_project`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("import_from", "new_name")),
    )

    name: str
    new_name: str | None = None
    import_from: ImportSource | None = None
    state: Presence = "present"


@dataclass(frozen=True)
class Project(Resource):
    """A project, identified by its name.

    :param source: server from which a missing project is imported, or `None`
    :param waiting: timeout and polling interval of the import
    """

    noun: ClassVar[str] = "project"
    option: ClassVar[str] = "projects"
    entry_type: ClassVar = AnalysisProjectOptions

    source: ImportSource | None = None
    waiting: ImportWaitOptions = field(default_factory=ImportWaitOptions)

    @staticmethod
    def of(options: AnalysisProjectOptions) -> Project:
        name, source = options.name, options.import_from
        title = f"the project '{name}'"
        target = options.new_name or name
        if options.state == "absent":
            return Project(title, None, name)
        if source is not None:
            require_address(source.url, "in import_from.url")
            if not options.wait and target != name:
                raise invalid(
                    f"{title}: new_name requires wait=true, because the import creates the project"
                    " with its old name"
                )
        return Project(title, {"name": target}, name, source=source, waiting=options)

    @property
    def listing(self) -> Call:
        return Call("projects")

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        return {record["name"]: {"name": record["name"]} for record in named(records)}

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_project", {"name": self.name})
        if plan.action == "update":
            names = {"name": plan.before["name"], "new_name": plan.after["name"]}
            return Call("update_project", names)
        if self.source is None:
            raise not_found(
                f"{self.title} does not exist. Set import_from, or create the project in the portal"
                " or with kwadmin"
            )
        source = {
            "sourceURL": self.source.url,
            "sourceAdmin": self.source.username,
            "sourcePassword": self.source.password,
        }
        return Call("import_project", {"project": self.name, **source})

    def write(self, client: AnalysisClient, purpose: str, plan: Plan) -> None:
        """Send the write of a plan. Import a missing project, wait for the import, and rename the
        project, because the import creates it under its name on the source.
        """
        if plan.action != "create" or self.source is None:
            super().write(client, purpose, plan)
            return
        title = f"importing {self.title}"
        wanted = Import(title, self.call(plan), self.name)
        polling = ImportPolling(client, wanted, self.waiting.interval())
        polling.start()
        if self.waiting.wait and "unknown" in map(state_of, polling.finish()):
            client.warn(
                f"{title}: the project exists, but the server reports an unknown status, so the"
                " import may be incomplete"
            )
        if self.target == self.name:
            return

        def is_renamed() -> bool:
            return self.target in self.objects(client.ask(f"verifying {self.title}", self.listing))

        names = {"name": self.name, "new_name": self.target}
        client.ask(purpose, Call("update_project", names), is_renamed)

    def left(self, current: State | None) -> Plan:
        """Return the plan for the remaining differences, which is empty without `wait`."""
        if current is None and self.source is not None and not self.waiting.wait:
            return Plan(self.desired, self.desired)
        return compare(self, current)


class ProjectKind(ResourceKind):
    """The projects of the server, with the imports that are running."""

    def compare(self, item: Item[Resource, State]) -> Plan:
        """Return the plan, which changes nothing if a task without `wait` would only start an
        import that is running.
        """
        found, project = super().compare(item), item.entry
        if not isinstance(project, Project) or found.action != "create":
            return found
        starts_only = project.source is not None and not project.waiting.wait
        if starts_only and is_running(self.client, project.name):
            return Plan({}, {}, result=found.result)
        return found


class AnalysisProjectOperation(ResourceOperation):
    """Manages a project."""

    makes = Project
    kind = ProjectKind
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            "create": writes(unforeseen=("create_project",)),
            "update": writes(unforeseen=("change_project_settings",)),
            "delete": writes(unforeseen=("delete_project",)),
        },
        kind="project",
        name="{name}",
    )

    def __init__(self, task: Task, options: AnalysisProjectOptions) -> None:
        super().__init__(task, options)
        hide_secrets(task, [Project.of(options)])


def hide_secrets(task: Task, projects: Iterable[Project]) -> None:
    """Mask the credentials in the URLs of import sources in all output."""
    for project in projects:
        if project.source is not None:
            for secret in secrets_of_url(project.source.url):
                task.hide(secret)
