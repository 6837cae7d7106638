# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_group`: user groups of the repository manager [C2.21]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Comparison, Plan, plan, unordered, without_none
from .directory import GROUPS, USERS, Directory
from .memberships import Mode, merged

#: Options, and the names of their fields in the older API.
_OLD = {
    "description": "description",
    "external_id": "externalId",
    "auto_join": "autoJoin",
    "admin_privileges": "adminPrivileges",
    "members": "userNames",
}
#: Realms of groups that the server manages itself.
_OWN_REALMS = ("", "internal", "artifactory")
_COMPARISONS: Mapping[str, Comparison] = {"members": unordered}


@dataclass(frozen=True)
class RepoGroupEntry:
    """The options of a group."""

    rules: ClassVar = (
        Rule("state=absent", forbids=tuple(_OLD)),
        Rule("auto_join=true", forbids="admin_privileges=true"),
        Rule("members_mode", requires="members"),
    )

    name: str
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


class Groups(ItemKind[RepoGroupEntry, Any]):
    """Compare and write groups."""

    noun = "group"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._groups, self._users = Directory(task, GROUPS), Directory(task, USERS)
        self._found: dict[str, Mapping[str, Any] | None] = {}

    def name(self, entry: RepoGroupEntry) -> str:
        return entry.name

    def load(self, items: Sequence[Item[RepoGroupEntry, Any]]) -> None:
        entries = [item.entry for item in items]
        self._found = self._groups.read_many([entry.name for entry in entries])

    def compare(self, item: Item[RepoGroupEntry, Any]) -> Plan:
        entry = item.entry
        name = entry.name
        if entry.members is not None:
            self._found[name] = self._with_members(name, self._found.get(name))
        current = self._current(name)
        if entry.state == "absent":
            return plan(current, None).with_result(group=None)
        wanted = without_none(vars(entry), ("name", *_OLD))
        if entry.members is not None:
            members = (current or {}).get("members", [])
            wanted["members"] = merged(members, entry.members, entry.members_mode)
            self._require_changeable(name, current, wanted["members"])
        found = plan(self._shown(current), wanted, _COMPARISONS)
        if found.after.get("auto_join") and found.after.get("admin_privileges"):
            raise invalid(_exclusive_flags(name))
        blank = self._shown(group_of(name, {}, old=False)) or {}
        return found.with_result(group={**blank, **found.after})

    def _with_members(self, name: str, row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a group with its members, which some versions of Access leave out [repo-41]."""
        if row is None or self._groups.is_old or "members" in row:
            return row
        return {**row, "members": self._groups.read_older(name).get("userNames") or []}

    def _current(self, name: str) -> dict[str, Any] | None:
        """Return the fields of a group as last read from the server; `None` if it is absent."""
        row = self._found.get(name)
        return None if row is None else group_of(name, row, old=self._groups.is_old)

    def _shown(self, current: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if current is None else {k: v for k, v in current.items() if k != "realm"}

    def _require_changeable(
        self, name: str, current: Mapping[str, Any] | None, members: Sequence[str]
    ) -> None:
        """Raise `invalid` if an external directory manages the members of the group.

        Raise `not_found` if a new member does not exist.
        """
        before = set((current or {}).get("members", []))
        realm = (current or {}).get("realm", "")
        if before != set(members) and realm.lower() not in _OWN_REALMS:
            raise invalid(
                f"the members of the group '{name}' come from the realm '{realm}': omit members,"
                " and change them there"
            )
        new = [member for member in members if member not in before]
        self._users.require_known("members", new)

    def write(self, item: Item[RepoGroupEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        name = entry.name
        if plan.action == "delete":
            self._groups.delete(name)
            return
        fields = {change.field: change.after for change in plan.changes if change.field != "name"}
        verify = partial(self._has, name, fields)
        if plan.action == "create":
            self._groups.create(name, {"name": name, **self._sent(fields)}, verify)
        else:
            self._update(name, plan, fields)
        self._verify(name, fields)
        item.returned = {"group": self._shown(self._current(name))}

    def _sent(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields with the names of the API in use."""
        return {_OLD[k] if self._groups.is_old else k: value for k, value in fields.items()}

    def _update(self, name: str, plan: Plan, desired: Mapping[str, Any]) -> None:
        """Change fields and members. Access has a separate endpoint for members [repo-41]."""
        fields = dict(desired)
        members = None if self._groups.is_old else fields.pop("members", None)
        if fields:
            self._groups.update(name, self._sent(fields), partial(self._has, name, fields))
        if members is None:
            return
        before, after = set(plan.before["members"]), set(members)
        change = {"add": sorted(after - before), "remove": sorted(before - after)}
        self._groups.members(name, change, partial(self._has, name, {"members": members}))

    def predict(self, item: Item[RepoGroupEntry, Any]) -> None:
        self._groups.predict(item.name, item.plan)

    def _has(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Read the group again, and return whether it has these values."""
        row = self._groups.read(name)
        self._found[name] = self._with_members(name, row) if "members" in fields else row
        current = self._current(name)
        return current is not None and not plan(current, fields, _COMPARISONS).changed

    def _verify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Raise `rejected` if the server did not save the fields."""
        if self._has(name, fields):
            return
        stored = self._current(name) or {}
        lost = [change.field for change in plan(stored, fields, _COMPARISONS).changes]
        raise ToolchainError(
            "rejected",
            f"the group '{name}': the server did not save {', '.join(lost)}",
            result={"changed": True},
        )


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


def _exclusive_flags(name: str) -> str:
    return (
        f"the group '{name}' cannot have both auto_join and admin_privileges: every new user would"
        " be an administrator"
    )


class RepoGroupOperation(Objects[RepoGroupEntry, Any]):
    """Create, update or delete a group, or the groups of `entries`."""

    descriptor: ClassVar = Descriptor(
        "repo",
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
