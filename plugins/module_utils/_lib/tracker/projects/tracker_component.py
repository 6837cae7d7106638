# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_component`: manage components of projects [tracker-29]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.errors import conflict, invalid, rejected
from ...core.json_text import member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import Objects, entries_of
from ...core.plan import Plan
from ..editing.site import Site
from ..service import SERVICE
from .project_objects import (
    NamedEntry,
    ObjectItem,
    ProjectObject,
    ProjectObjectKind,
    ProjectState,
    same_lines,
    same_name,
)

_ASSIGNEES = Literal["project_default", "component_lead", "project_lead", "unassigned"]
_ONLY_PRESENT = ("new_name", "description", "lead", "assignee_type", "archived")


@dataclass(frozen=True)
class ComponentEntry(NamedEntry):
    """Options of a component."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=_ONLY_PRESENT),
        Rule("move_issues_to", "force", requires="state=absent"),
    )

    lead: Annotated[str | None, Option(empty=True)] = None
    assignee_type: _ASSIGNEES | None = None
    archived: bool | None = None
    move_issues_to: str | None = None
    force: bool = False
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        super().check()
        if self.move_issues_to is not None and same_name(self.move_issues_to, self.name):
            raise invalid(
                f"move_issues_to is '{self.name}', the component to delete: use another component"
            )


@dataclass(frozen=True)
class TrackerComponentOptions(ComponentEntry):
    """The options of `tracker_component`."""

    entries: Annotated[list[ComponentEntry] | None, Option(empty=False)] = None


ComponentItem: TypeAlias = ObjectItem[ComponentEntry]


class ComponentKind(ProjectObjectKind[ComponentEntry]):
    """Components of projects. A single request reads all components of a project."""

    noun = "component"
    comparisons: ClassVar = {
        "description": same_lines,
        "lead": lambda current, desired: (
            str(current or "").casefold() == str(desired).casefold(),
            desired,
        ),
    }
    blank: ClassVar = {
        "name": "",
        "description": "",
        "lead": "",
        "assignee_type": "project_default",
        "archived": False,
    }

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        ids = (member(record, "lead", name) for name in ("accountId", "name", "key"))
        return {
            "name": str(record["name"]),
            "description": str(record.get("description") or ""),
            "lead": next((str(number) for number in ids if number), ""),
            "assignee_type": str(record.get("assigneeType") or "PROJECT_DEFAULT").lower(),
            "archived": record.get("archived") is True,
        }

    def members(self, wanted: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        sent = dict(wanted)
        if "assignee_type" in sent:
            sent["assigneeType"] = sent.pop("assignee_type").upper()
        lead = sent.pop("lead", None)
        if lead or (lead is not None and not is_new):
            sent["leadAccountId" if self._client.cloud else "leadUserName"] = lead
        if is_new:
            sent.pop("archived", None)  # a new component cannot be archived
        return sent

    def compare(self, item: ComponentItem) -> Plan:
        entry = item.entry
        if entry.state == "absent":
            return self._removal(item)
        current = self.managed(item)
        if entry.archived and self._client.known_cloud:
            raise rejected("archived: components of Jira Cloud cannot be archived: omit archived")
        desired = self.desired(
            entry,
            current,
            lead=None if entry.lead is None else self._account(entry.lead.strip(), current),
            assignee_type=entry.assignee_type,
            archived=entry.archived,
        )
        return self.planned(item, current, desired)

    def _removal(self, item: ComponentItem) -> Plan:
        entry = item.entry
        found = self.removal(item, "move_issues_to", entry.move_issues_to)
        if found.changed and entry.move_issues_to is None and not entry.force:
            component = found.data[0]
            count = self.count(component, "issues", "relatedIssueCounts", "issueCount")
            if count:
                has = "1 issue has" if count == 1 else f"{count} issues have"
                raise conflict(
                    f"{has} the component '{component.name}' of the project '{entry.project}': set"
                    " move_issues_to to another component, or set force"
                )
        return found

    def _account(self, name: str, current: ProjectObject | None) -> str:
        """Return the id of the account that a lead names. It is not searched if it is the lead."""
        lead = "" if current is None else str(current.values["lead"])
        if name.casefold() == lead.casefold():
            return lead
        if not name:
            return ""
        known = member(current and current.record, "lead")
        site = Site(self._task, self._client, knows_cloud=True)
        return site.accounts.id_of(name, "lead", [known] if isinstance(known, Mapping) else [])

    def delete(
        self, item: ComponentItem, found: ProjectObject, target: ProjectObject | None
    ) -> ProjectObject | None:
        query = {} if target is None else {"moveIssuesTo": target.id}
        return self.send_deletion(item, found, "DELETE", query=query)


class TrackerComponentOperation(Objects[ComponentEntry, ProjectState]):
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
