# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_component`: manage components of projects [tracker-29]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Item, Objects, entries_of
from ...core.plan import Plan, plan, unchanged, without_none
from ..editing.screens import predicted
from ..editing.site import Site
from ..service import SERVICE
from .project_kind import ProjectObjectKind
from .project_objects import (
    KnownObjects,
    ProjectObjects,
    is_object,
    named,
    reject_pattern,
    require_name,
    same_lines,
    same_name,
)

#: Names of options whose values are sent unchanged, and the server's names.
_MEMBERS = {"name": "name", "description": "description", "archived": "archived"}
#: Members that identify the lead in requests, most preferred first.
_LEAD_IDS = ("accountId", "name", "key")


@dataclass(frozen=True)
class Component:
    """A component of a project.

    `lead`: its account, empty without one. `archived`: None on older servers, which do not support
    it.
    """

    id: str
    name: str
    description: str
    lead: Mapping[str, Any]
    assignee_type: str
    archived: bool | None

    @classmethod
    def of(cls, record: Any) -> Component | None:
        """Parse a component. Return None if the object is not a component."""
        if not is_object(record):
            return None
        lead = record.get("lead")
        return cls(
            str(record["id"]),
            str(record["name"]),
            str(record.get("description") or ""),
            lead if isinstance(lead, Mapping) else {},
            str(record.get("assigneeType") or "PROJECT_DEFAULT").lower(),
            record.get("archived") if isinstance(record.get("archived"), bool) else None,
        )

    @property
    def lead_id(self) -> str:
        """Return the id of the lead in requests, or "" without a lead."""
        return next((str(self.lead[name]) for name in _LEAD_IDS if self.lead.get(name)), "")

    def settable(self) -> dict[str, Any]:
        """Return the values that can be changed, by the name of the option."""
        return {
            "name": self.name,
            "description": self.description,
            "lead": self.lead_id,
            "assignee_type": self.assignee_type,
            "archived": bool(self.archived),
        }

    def is_led_by(self, account: str) -> bool:
        """Return whether the account with an id is the lead. "" means no lead."""
        return self.lead_id.casefold() == account.casefold()


def _same_account(current: Any, desired: Any) -> tuple[bool, Any]:
    return str(current or "").casefold() == str(desired).casefold(), desired


class ProjectComponents(ProjectObjects[Component]):
    """Read and write the components of a project."""

    noun = "component"
    comparisons: ClassVar = {"description": same_lines, "lead": _same_account}
    parse = staticmethod(Component.of)

    def issues(self, component: Component) -> int:
        """Return the number of issues with the component."""
        return self.count(component, "issues", "relatedIssueCounts", "issueCount")

    def create(self, wanted: Mapping[str, Any], lead: Mapping[str, str]) -> Component:
        """Create a component.

        :param wanted: values by option name; its lead is ignored
        :param lead: the lead as a member of the request; empty means not managed
        """
        members = {**_sent(wanted), **lead}
        members.pop("archived", None)  # a new component cannot be archived
        return self._create(wanted["name"], members)

    def update(
        self, component: Component, wanted: Mapping[str, Any], lead: Mapping[str, str]
    ) -> Component | None:
        """Change a component. See `create()`."""
        members = {**_sent(wanted), **(lead if "lead" in wanted else {})}
        return self._update(component, wanted, members)

    def delete(self, component: Component, target: Component | None) -> Component | None:
        """Delete a component. Move its issues to `target`, or only remove it from them if None.

        Returns the component if the server still has it.
        """
        query = {} if target is None else {"moveIssuesTo": target.id}
        return self._delete(component, "DELETE", query=query)


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return wanted values as members of a request, without the lead."""
    sent = {_MEMBERS[name]: value for name, value in wanted.items() if name in _MEMBERS}
    if "assignee_type" in wanted:
        sent["assigneeType"] = wanted["assignee_type"].upper()
    return sent


_ONLY_PRESENT = ("new_name", "description", "lead", "assignee_type", "archived")
_ASSIGNEES = Literal["project_default", "component_lead", "project_lead", "unassigned"]


@dataclass(frozen=True)
class ComponentEntry:
    """Options of a component."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
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
            require_name(option, getattr(self, option))
        if self.move_issues_to is not None and same_name(self.move_issues_to, self.name):
            raise invalid(
                f"move_issues_to is '{self.name}', the component to delete: use another component"
            )


@dataclass(frozen=True)
class TrackerComponentOptions(ComponentEntry):
    """The options of `tracker_component`."""

    entries: Annotated[list[ComponentEntry] | None, Option(empty=False)] = None


@dataclass(frozen=True)
class ComponentSnapshot:
    """A component before the task, and the values that its write needs.

    :param desired: desired values by option name
    :param lead: new lead as a member of the request; empty if it does not change
    :param target: component that gets the issues of a deleted component
    """

    current: Component | None
    desired: Mapping[str, Any] = field(default_factory=dict)
    lead: Mapping[str, str] = field(default_factory=dict)
    target: Component | None = None


class ComponentKind(ProjectObjectKind[ComponentEntry, Component]):
    """Components as entries. A single request reads all components of a project."""

    noun = "component"

    def objects(self, project: str) -> ProjectComponents:
        return ProjectComponents(self._client, project)

    def compare(self, item: Item[ComponentEntry, KnownObjects[Component]]) -> Plan:
        entry, known = item.entry, self.known(item).objects
        components = self.objects(entry.project)
        if entry.state == "absent":
            return self._removal(entry, known)
        current = components.managed(known, entry.name, entry.new_name)
        if entry.archived and self._client.known_cloud:
            raise ToolchainError(
                "rejected", "archived: components of Jira Cloud cannot be archived: omit archived"
            )
        lead = self._lead(entry, current)
        desired = _desired(entry, current)
        if "lead" in desired and (lead or current is not None):
            desired["lead"] = next(iter(lead.values()), current.lead_id if current else "")
        before = None if current is None else current.settable()
        found = plan(before, desired, components.comparisons)
        blank = Component("", "", "", {}, "project_default", archived=False).settable()
        number = None if current is None else current.id
        shown = {"id": number, **blank, **found.before, **found.after}
        snapshot = ComponentSnapshot(current, desired, lead)
        return found.with_result(component=shown).with_data(snapshot)

    def _removal(self, entry: ComponentEntry, known: list[Component]) -> Plan:
        current, target = named(known, entry.name), None
        if current is None:
            reject_pattern(entry.name, "component")
            return unchanged({"component": None})
        if entry.move_issues_to is not None:
            name = entry.move_issues_to
            target = named(known, name)
            if target is None and not predicted(self._task, "components", entry.project, name):
                raise ToolchainError(
                    "not_found",
                    f"move_issues_to: the project '{entry.project}' has no component '{name}'",
                )
        elif not entry.force:
            self._require_no_issues(entry.project, current)
        found = plan(current.settable(), None).with_result(component=None)
        if target is not None:  # in the diff, so that a sealed plan contains it
            found.after["move_issues_to"] = target.name
        return found.with_data(ComponentSnapshot(current, target=target))

    def _require_no_issues(self, project: str, component: Component) -> None:
        count = self.objects(project).issues(component)
        if count:
            has = "1 issue has" if count == 1 else f"{count} issues have"
            raise ToolchainError(
                "conflict",
                f"{has} the component '{component.name}' of the project '{project}': set"
                " move_issues_to to another component, or set force",
            )

    def _lead(self, entry: ComponentEntry, current: Component | None) -> dict[str, str]:
        """Return the new lead as a member of the request. Empty if it does not change."""
        name = None if entry.lead is None else entry.lead.strip()
        if name is None or (not name if current is None else current.is_led_by(name)):
            return {}
        site = Site(self._task, self._client, knows_cloud=True)
        known = [] if current is None else [current.lead]
        account = site.accounts.id_of(name, "lead", known) if name else ""
        if current is not None and current.is_led_by(account):
            return {}
        return {"leadAccountId" if site.cloud else "leadUserName": account}

    def write(self, item: Item[ComponentEntry, KnownObjects[Component]]) -> None:
        components, snapshot = self.objects(item.entry.project), item.plan.data
        now: Component | None = snapshot.current
        if item.plan.action == "delete" and now is not None:
            self.store(item, components.delete(now, snapshot.target))
            return
        if now is None:
            now = components.create(snapshot.desired, snapshot.lead)
        differing = components.differing(now, snapshot.desired)
        if differing:
            now = components.update(now, differing, snapshot.lead)
        self.store(item, now)
        if now is not None:
            item.returned = {"component": {"id": now.id, **now.settable()}}


def _desired(entry: ComponentEntry, current: Component | None) -> dict[str, Any]:
    name = entry.new_name or (entry.name if current is None else current.name)
    return without_none(
        {
            "name": name.strip(),
            "description": entry.description,
            "lead": None if entry.lead is None else entry.lead.strip(),
            "assignee_type": entry.assignee_type,
            "archived": entry.archived,
        }
    )


class TrackerComponentOperation(Objects[ComponentEntry, KnownObjects[Component]]):
    """Manage components of projects. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("browse"),
            **dict.fromkeys(("create", "update", "delete"), writes("browse", "administer")),
        },
        kind="component",
        name="{project}/{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: TrackerComponentOptions) -> None:
        super().__init__(ComponentKind(task), *entries_of(options, ComponentEntry))
