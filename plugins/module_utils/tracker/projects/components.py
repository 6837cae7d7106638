# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete the components of a project [tracker-29]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .project_objects import ProjectObjects, is_object, same_lines

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

    def delete(self, component: Component, target: Component | None) -> None:
        """Delete a component. Move its issues to `target`, or only remove it from them if None."""
        self._delete(component, {} if target is None else {"moveIssuesTo": target.id})


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return wanted values as members of a request, without the lead."""
    sent = {_MEMBERS[name]: value for name, value in wanted.items() if name in _MEMBERS}
    if "assignee_type" in wanted:
        sent["assigneeType"] = wanted["assignee_type"].upper()
    return sent
