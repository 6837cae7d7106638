# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete the components of a project [tracker-29]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.http.messages import json_or_none
from ..client import TrackerClient
from ..fields.documents import plain_lines
from .project_objects import ProjectObjects

#: Our names of the members that are sent unchanged, and the server's.
_MEMBERS = {"name": "name", "description": "description", "archived": "archived"}


@dataclass(frozen=True)
class Component:
    """A component. `lead` has the names of the account; the first is the name that requests use.
    The server omits members without a value, and older servers know no `archived`.
    """

    id: str
    name: str
    description: str
    lead: tuple[str, ...]
    assignee_type: str
    archived: bool | None

    @classmethod
    def of(cls, record: Any) -> Component | None:
        """Parse a component; `None` if the object is not a component."""
        if not isinstance(record, Mapping) or not {"id", "name"} <= set(record):
            return None
        lead = record.get("lead")
        shown = lead if isinstance(lead, Mapping) else {}
        names = ("accountId", "name", "key", "displayName", "emailAddress")
        return cls(
            str(record["id"]),
            str(record["name"]),
            str(record.get("description") or ""),
            tuple(str(shown[name]) for name in names if shown.get(name)),
            str(record.get("assigneeType") or "PROJECT_DEFAULT").lower(),
            record.get("archived") if isinstance(record.get("archived"), bool) else None,
        )

    def settable(self) -> dict[str, Any]:
        """Return the values that can be changed, by the names of their options."""
        return {
            "name": self.name,
            "description": self.description,
            "lead": self.lead[0] if self.lead else "",
            "assignee_type": self.assignee_type,
            "archived": bool(self.archived),
        }

    def differing(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of `wanted` that differ."""
        have = {**self.settable(), "description": plain_lines(self.description)}
        adapted = {**wanted, "description": plain_lines(wanted.get("description", ""))}
        same = {name for name in wanted if have[name] == adapted[name]}
        same |= {"lead"} if self.is_led_by(wanted.get("lead", "")) else set()
        return {name: value for name, value in wanted.items() if name not in same}

    def is_led_by(self, account: str) -> bool:
        """Return whether an account, by any of its names, leads the component; empty for none."""
        wanted = account.casefold()
        return wanted in (one.casefold() for one in self.lead) if wanted else not self.lead


class ProjectComponents(ProjectObjects[Component]):
    """The components of a project."""

    def __init__(self, client: TrackerClient, project: str) -> None:
        super().__init__(client, project, "component", Component.of)

    def issues(self, component: Component) -> int:
        """Return the number of issues with the component."""
        return self.count(component, "issues", "relatedIssueCounts", "issueCount")

    def create(self, wanted: Mapping[str, Any], lead: Mapping[str, str]) -> Component:
        """Create a component.

        :param wanted: members by our names; the lead is not sent from here
        :param lead: the member of the request for the lead; empty if it is not managed
        """
        members = {**_sent(wanted), **lead}
        members.pop("archived", None)  # the creation does not take it
        return self._create(wanted["name"], members)

    def update(
        self, component: Component, wanted: Mapping[str, Any], lead: Mapping[str, str]
    ) -> Component:
        """Set the wanted members. Raises `rejected` for a member that the server does not keep."""

        def left(now: Component | None) -> list[str]:
            return list(wanted if now is None else now.differing(wanted))

        response = self._client.write(
            f"changing the component '{component.name}' of the project '{self._project}'",
            "PUT",
            self._place(component),
            json={**_sent(wanted), **(lead if "lead" in wanted else {})},
            verify=lambda: not left(self.read(component)),
            repeatable=True,
        )
        now = Component.of(json_or_none(response.body)) or self.read(component)
        missing = left(now)
        if now is None or missing:
            message = f"the server accepted the change, but did not save {', '.join(missing)}"
            error = response.error("rejected", message)
            error.result["changed"] = now is not None and now != component
            raise error
        return now

    def delete(self, component: Component, target: Component | None) -> None:
        """Delete a component; its issues get `target`, or lose the component."""
        self._delete(component, {} if target is None else {"moveIssuesTo": target.id})


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request."""
    sent = {_MEMBERS[name]: value for name, value in wanted.items() if name in _MEMBERS}
    if "assignee_type" in wanted:
        sent["assigneeType"] = wanted["assignee_type"].upper()
    return sent
