# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_component`: manage components of projects [tracker-29]."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, plan, unchanged, without_none
from .. import permissions
from ..client import TrackerClient
from ..editing.fields import predicted
from ..editing.site import Site
from .by_project import ByProject
from .components import Component, ProjectComponents
from .project_objects import name_key, named, reject_pattern, same_lines, same_name

_LONGEST = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ONLY_PRESENT = ("new_name", "description", "lead", "assignee_type", "archived")
_ASSIGNEES = Literal["project_default", "component_lead", "project_lead", "unassigned"]


@dataclass(frozen=True)
class ComponentEntry:
    """Options of a component."""

    rules: ClassVar = (
        Rule("state=absent", forbids=_ONLY_PRESENT),
        Rule("move_issues_to", "force", requires="state=absent"),
    )

    project: str
    name: str
    new_name: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    lead: Annotated[str | None, Option(empty=True)] = None
    assignee_type: _ASSIGNEES | None = None
    archived: bool | None = None
    move_issues_to: str | None = None
    force: bool = False
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for invalid names."""
        for option in ("name", "new_name"):
            value = (getattr(self, option) or "").strip()
            if len(value) > _LONGEST:
                raise invalid(f"{option} has more than {_LONGEST} characters")
            if _CONTROL.search(value):
                raise invalid(f"{option} contains a line break, a tab or another control character")
        if self.move_issues_to is not None and same_name(self.move_issues_to, self.name):
            raise invalid(
                f"move_issues_to is '{self.name}', the component to delete: use another component"
            )


@dataclass(frozen=True)
class TrackerComponentOptions(ComponentEntry):
    """The options of `tracker_component`."""

    entries: Annotated[list[ComponentEntry] | None, Option(empty=False)] = None


class TrackerComponentOperation(Objects[ComponentEntry, Any]):
    """Manage components of projects. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        "tracker",
        {
            "read": reads(),
            **dict.fromkeys(("create", "update", "delete"), writes("browse", "administer")),
        },
        kind="component",
        name="{project}/{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: TrackerComponentOptions) -> None:
        super().__init__(ComponentKind(task), *entries_of(options, ComponentEntry))


class ComponentKind(ItemKind[ComponentEntry, Any]):
    """Components as entries. A single request reads all components of a project."""

    noun = "component"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = TrackerClient(task)
        self._projects = ByProject(lambda key: ProjectComponents(self._client, key).all())

    def name(self, entry: ComponentEntry) -> str:
        return f"{entry.project}/{entry.name}"

    def key(self, entry: ComponentEntry) -> str:
        return name_key(self.name(entry))

    def load(self, items: Sequence[Item[ComponentEntry, Any]]) -> None:
        self._projects.load(item.entry.project for item in items)

    def compare(self, item: Item[ComponentEntry, Any]) -> Plan:
        entry = item.entry
        return self._component(entry).plan(self._projects.of(entry.project))

    def foresee(self, item: Item[ComponentEntry, Any]) -> None:
        entry = item.entry
        purpose = f"the component '{entry.name}' of the project '{entry.project}'"
        needs = ["ADMINISTER_PROJECTS"]
        permissions.require(self._client, purpose, needs, projectKey=entry.project)

    def write(self, item: Item[ComponentEntry, Any]) -> None:
        item.returned = self._component(item.entry).apply(item.plan)

    def predict(self, item: Item[ComponentEntry, Any]) -> None:
        entry = item.entry
        place = ("component", entry.project, (entry.new_name or entry.name).lower())
        if entry.state == "absent":
            self._task.predictions.remove(*place)
        else:
            self._task.predictions.add(*place)

    def _component(self, entry: ComponentEntry) -> ManagedComponent:
        return ManagedComponent(self._task, self._client, entry)


@dataclass(frozen=True)
class ComponentSnapshot:
    """A component before the task, and the values that `apply()` needs.

    :param lead: new lead as a member of the request; empty if it does not change
    :param target: component that gets the issues of a deleted component
    """

    current: Component | None
    lead: Mapping[str, str] = field(default_factory=dict)
    target: Component | None = None


class ManagedComponent:
    """Plan and write a component."""

    def __init__(self, task: Task, client: TrackerClient, options: ComponentEntry) -> None:
        self._task, self._options, self._client = task, options, client
        self._components = ProjectComponents(client, options.project)

    def plan(self, known: list[Component]) -> Plan:
        """Plan the component. `known`: the components of the project."""
        if self._options.state == "absent":
            return self._removal(known)
        current = self._components.managed(known, self._options.name, self._options.new_name)
        before = None if current is None else current.settable()
        lead = self._lead(current)
        desired = self._desired(current)
        if before is not None and "lead" in desired:
            desired["lead"] = next(iter(lead.values()), before["lead"])
        found = plan(before, desired, {"description": same_lines})
        if current is None and lead:
            found.after["lead"] = next(iter(lead.values()))
        predicted = self._predicted(found, current)
        return found.with_result(component=predicted).with_data(ComponentSnapshot(current, lead))

    def _removal(self, known: list[Component]) -> Plan:
        options = self._options
        current, target = named(known, options.name), None
        if current is None:
            reject_pattern(options.name, "component")
            return unchanged({"component": None})
        if options.move_issues_to is not None:
            name = options.move_issues_to
            target = named(known, name)
            if target is None and not predicted(self._task, "components", options.project, name):
                raise ToolchainError(
                    "not_found",
                    f"move_issues_to: the project '{options.project}' has no component '{name}'",
                )
        elif not options.force:
            self._require_no_issues(current)
        found = plan(current.settable(), None).with_result(component=None)
        return found.with_data(ComponentSnapshot(current, target=target))

    def _require_no_issues(self, component: Component) -> None:
        count = self._components.issues(component)
        if count:
            has = "1 issue has" if count == 1 else f"{count} issues have"
            raise ToolchainError(
                "conflict",
                f"{has} the component '{component.name}' of the project '{self._options.project}':"
                " set move_issues_to to another component, or set force",
            )

    def _desired(self, current: Component | None) -> dict[str, Any]:
        options = self._options
        name = options.new_name or (options.name if current is None else current.name)
        return without_none(
            {
                "name": name.strip(),
                "description": options.description,
                "lead": options.lead,
                "assignee_type": options.assignee_type,
                "archived": options.archived,
            }
        )

    def _lead(self, current: Component | None) -> dict[str, str]:
        """Return the new lead as a member of the request. Empty if it does not change."""
        name = self._options.lead
        if name is None or (not name if current is None else current.is_led_by(name)):
            return {}
        site = Site(self._task, self._client, knows_cloud=True)
        known = [] if current is None else [current.lead]
        account = site.accounts.id_of(name, "lead", known) if name else ""
        if current is not None and current.is_led_by(account):
            return {}
        return {"leadAccountId" if site.cloud else "leadUserName": account}

    def _predicted(self, found: Plan, current: Component | None) -> dict[str, Any]:
        """Return the expected component after the task, as the return value `component`."""
        blank = Component("", "", "", {}, "project_default", archived=False).settable()
        number = None if current is None else current.id
        return {"id": number, **blank, **found.before, **found.after}

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        snapshot: ComponentSnapshot = plan.data
        current = snapshot.current
        if plan.action == "delete" and current is not None:
            self._components.delete(current, snapshot.target)
            return {}
        desired = self._desired(current)
        if current is None:
            current = self._components.create(desired, snapshot.lead)
        lead = {"lead": plan.after["lead"]} if "lead" in desired else {}
        differing = current.differing({**desired, **lead})
        if differing:
            current = self._components.update(current, differing, snapshot.lead)
        return {"component": {"id": current.id, **current.settable()}}
