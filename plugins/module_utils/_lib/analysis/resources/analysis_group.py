# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage groups of users: `analysis_group` [W4.5].

Actions: `groups`, `create_group`, `update_group`, `delete_group`. Server facts [analysis-9]:
members are listed only with `list_users`, `users` replaces them, and `remove_all` removes all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...core.module.descriptor import Descriptor, reads, writes
from ...core.plan import Change, Comparison, Plan, unordered
from ..accounts import GuardedKind, group_listing, groups
from ..client import Call
from ..resource import (
    LIMIT,
    Ids,
    Objects,
    Presence,
    Reference,
    Resource,
    ResourceOperation,
    without_escapes,
)
from ..responses import Record
from ..service import SERVICE


@dataclass(frozen=True)
class GroupEntry:
    """Entry of the option `groups` of `analysis_config`."""

    name: str
    users: list[str] | None = None
    state: Presence = "present"


@dataclass(frozen=True)
class AnalysisGroupOptions(GroupEntry):
    """The options of `analysis_group`."""

    force: bool = False


@dataclass(frozen=True)
class Group(Resource):
    """A group, identified by its name."""

    noun: ClassVar[str] = "group"
    option: ClassVar[str] = "groups"
    entry_type: ClassVar = GroupEntry
    limited: ClassVar[bool] = True
    comparisons: ClassVar[Mapping[str, Comparison]] = {"users": unordered}

    @staticmethod
    def of(entry: GroupEntry) -> Group:
        desired = {"name": entry.name, "users": entry.users}
        absent = entry.state == "absent"
        return Group(f"the group '{entry.name}'", None if absent else desired, entry.name)

    @property
    def listing(self) -> Call:
        return group_listing({"search": self.name})

    @classmethod
    def whole_listing(cls, project: str | None) -> Call:
        return group_listing({"limit": LIMIT})

    @property
    def needs(self) -> frozenset[Reference]:
        users = (self.desired or {}).get("users") or []
        return frozenset(("users", name) for name in users)

    def needs_newly(self, plan: Plan) -> frozenset[Reference]:
        members = plan.before.get("users") or []
        return self.needs - {("users", name) for name in members}

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        return groups(records)

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_group", {"name": self.name})
        users = next((change.after for change in plan.changes if change.field == "users"), None)
        if plan.action == "create":
            return Call("create_group", {"name": self.name, "users": users or None})
        if users == []:
            return Call("update_group", {"name": self.name}, {"remove_all": True}, {"users": ""})
        return Call("update_group", {"name": self.name, "users": users})

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Return a write that removes the members again, or one without escapes in their names.

        A server that does not support `remove_all` or escapes ignores them silently.
        """
        emptied = any((change.field, change.after) == ("users", []) for change in done.changes)
        if not emptied or (done.action, left.action) != ("update", "update"):
            return without_escapes(left)
        return (replace(left, changes=(Change("users", left.before["users"], ""),)),)


class AnalysisGroupOperation(ResourceOperation):
    """Manages a group."""

    makes = Group
    kind = GuardedKind
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            **dict.fromkeys(("create", "update", "delete"), writes(unforeseen=("manage_users",))),
        },
        kind="group",
        name="{name}",
    )
