# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_group`: user groups of the repository manager [C2.21]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.operations.objects import Item, Objects, entries_of
from ...core.plan import Plan, plan, without_none
from ..client import object_of
from ..service import SERVICE
from .directory import GROUPS, USERS, AccountKind, Directory, Fields, Mode, merged

#: Options, and the names of their fields in the older API.
_OLD = {
    "description": "description",
    "external_id": "externalId",
    "auto_join": "autoJoin",
    "admin_privileges": "adminPrivileges",
    "members": "userNames",
}
#: Realms of groups that the server manages itself.
OWN_REALMS = ("", "internal", "artifactory")


@dataclass(frozen=True)
class RepoGroupEntry:
    """The options of a group."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=tuple(_OLD)),
        Rule("auto_join=true", forbids="admin_privileges=true"),
        Rule("members_mode", requires="members"),
    )

    name: Segment
    description: Annotated[str | None, Option(empty=True)] = None
    external_id: Annotated[str | None, Option(empty=True)] = None
    auto_join: bool | None = None
    admin_privileges: bool | None = None
    members: list[str] | None = None
    members_mode: Mode = "exact"
    state: Literal["present", "absent"] = "present"


@dataclass(frozen=True)
class RepoGroupOptions(RepoGroupEntry):
    """The options of `repo_group`."""

    entries: Annotated[list[RepoGroupEntry] | None, Option(empty=False)] = None


class Groups(AccountKind[RepoGroupEntry]):
    """Compare and write groups."""

    noun, kind, old, links = "group", GROUPS, _OLD, "members"

    def name(self, entry: RepoGroupEntry) -> str:
        return entry.name

    def fields(self, item: Item[RepoGroupEntry, Fields], row: Mapping[str, Any]) -> Fields:
        if item.entry.members is not None:
            row = with_members(self._directory, item.name, row)
        return group_of(item.name, row, old=self._directory.is_old)

    def shown(self, state: Fields | None) -> Fields | None:
        return None if state is None else {k: v for k, v in state.items() if k != "realm"}

    def compare(self, item: Item[RepoGroupEntry, Fields]) -> Plan:
        entry, current = item.entry, item.state
        if entry.state == "absent":
            return self.removal(current)
        wanted = without_none(vars(entry), ("name", *_OLD))
        if entry.members is not None:
            members = (current or {}).get("members", [])
            # the server stores the names of users in lower case [repo-42]
            given = [name.lower() for name in entry.members]
            wanted["members"] = merged(members, given, entry.members_mode)
            before, realm = (current or {}).get("members", []), (current or {}).get("realm", "")
            if set(before) != set(wanted["members"]) and realm.lower() not in OWN_REALMS:
                raise invalid(
                    f"the members of the group '{item.name}' come from the realm '{realm}': omit"
                    " members, and change them there"
                )
            new = [member for member in wanted["members"] if member not in before]
            Directory(self._task, USERS).require_known("members", new)
        found = plan(self.shown(current), wanted, self._comparisons)
        if found.after.get("auto_join") and found.after.get("admin_privileges"):
            raise invalid(
                f"the group '{item.name}' cannot have both auto_join and admin_privileges: every"
                " new user would be an administrator"
            )
        blank = self.shown(group_of(item.name, {}, old=False)) or {}
        return found.with_result(group={**blank, **found.after})

    def write(self, item: Item[RepoGroupEntry, Fields]) -> None:
        name, before = item.name, item.plan.before
        if item.plan.action == "delete":
            self._directory.delete(name)
            return
        fields = {change.field: change.after for change in item.plan.changes}
        fields.pop("name", None)
        if item.plan.action == "create":
            body = {"name": name, **self._sent(fields)}
            self._directory.create(name, body, partial(self.is_done, item))
            return
        members = None if self._directory.is_old else fields.pop("members", None)
        if fields:
            self._directory.update(name, self._sent(fields), partial(self._has, item, fields))
        if members is not None:
            self._link(item, before["members"], members)


def with_members(directory: Directory, name: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a group with its members, which some versions of Access leave out [repo-41]."""
    if directory.is_old or "members" in row:
        return row
    older = object_of(directory.response(name, old=True), "a group")
    return {**row, "members": older.get("userNames") or []}


def group_of(name: str, row: Mapping[str, Any], *, old: bool) -> dict[str, Any]:
    """Return the fields of a group in terms of the options, and its realm.

    :param row: the group in a response
    :param old: whether the response comes from the older API
    """
    read = {new: row.get(former if old else new) for new, former in _OLD.items()}
    return {
        "name": str(row.get("name") or name),
        "description": read["description"] or "",
        "external_id": read["external_id"] or "",
        "auto_join": bool(read["auto_join"]),
        "admin_privileges": bool(read["admin_privileges"]),
        "members": sorted(map(str, read["members"] or [])),
        "realm": str(row.get("realm") or "internal"),
    }


class RepoGroupOperation(Objects[RepoGroupEntry, Fields]):
    """Create, update or delete a group, or the groups of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("admin"),
            **dict.fromkeys(("create", "update", "members", "delete"), writes("admin")),
        },
        kind="group",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoGroupOptions) -> None:
        super().__init__(Groups(task), *entries_of(options, RepoGroupEntry))
