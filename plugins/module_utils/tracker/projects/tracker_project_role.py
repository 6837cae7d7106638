# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_project_role`: manage the users and groups of project roles [tracker-30]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.json_text import as_text, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, plan, remaining
from ..editing.site import Site, own_account
from .project_kind import ProjectKind
from .project_roles import COMPARISONS, GROUPS, USERS, ProjectRole, ProjectRoles, actor_in

_Names = Annotated["list[str] | None", Option(empty=True)]


@dataclass(frozen=True)
class ProjectRoleEntry:
    """Options of a project role."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule(requires=("users", "groups")),)

    project: str
    role: str
    users: _Names = None
    groups: _Names = None
    mode: Literal["exact", "add", "remove"] = "exact"
    force: bool = False


@dataclass(frozen=True)
class TrackerProjectRoleOptions(ProjectRoleEntry):
    """The options of `tracker_project_role`."""

    entries: Annotated[list[ProjectRoleEntry] | None, Option(empty=False)] = None


class ProjectRoleKind(ProjectKind[ProjectRoleEntry, "Mapping[str, str]"]):
    """Project roles as entries. A project takes a request, and a role another request."""

    noun = "role"

    def name(self, entry: ProjectRoleEntry) -> str:
        return f"{entry.project}/{entry.role}"

    def read_project(self, key: str) -> Mapping[str, str]:
        return ProjectRoles(self._client, key).ids()

    def compare(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> Plan:
        entry = item.entry
        role = ProjectRoles(self._client, entry.project).named(entry.role, item.state or {})
        before = role.actors()
        wanted = {
            kind: self._wanted(role, kind, names, entry.mode)
            for kind, names in ((USERS, entry.users), (GROUPS, entry.groups))
            if names is not None
        }
        found = plan(before, wanted)
        if not entry.force and role.administers and _loses(before, found.after):
            self._require_account(entry, before, found.after)
        return found.with_result(role={"name": role.name, **found.after}).with_data(role)

    def _wanted(self, role: ProjectRole, kind: str, names: list[str], mode: str) -> list[str]:
        """Return the actors after the task, with the server's names."""
        current = role.actors()[kind]
        if mode == "remove":
            removed = [self._actor(kind, name, current, must=False) for name in names]
            return [actor for actor in current if not actor_in(kind, actor, removed)]
        actors = [self._actor(kind, name, current) for name in names]
        kept = current
        if mode != "add":
            kept = [actor for actor in current if actor_in(kind, actor, actors)]
        added = [actor for actor in actors if not actor_in(kind, actor, current)]
        return sorted({*kept, *added})

    def _actor(self, kind: str, name: str, current: list[str], *, must: bool = True) -> str:
        """Return the server's name of an actor. For a user in the cloud, it is the account id.

        :param must: whether to raise `not_found` for an account that does not exist
        """
        if kind == GROUPS or actor_in(kind, name, current):
            return name
        try:
            site = Site(self._task, self._client, knows_cloud=True)
            return site.accounts.id_of(name, USERS)
        except ToolchainError as error:
            if must or error.kind != "not_found":
                raise
            return name

    def _require_account(
        self, entry: ProjectRoleEntry, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """Raise `invalid` if the task's account would no longer be an administrator."""
        own = own_account(self._client, expand="groups")
        groups = member(own, "groups", "items") or ()
        account = {
            USERS: [str(own[name]) for name in ("accountId", "name", "key") if own.get(name)],
            GROUPS: [as_text(member(group, "name")) for group in groups],
        }
        if _has(before, account) and not _has(after, account):
            raise invalid(
                f"the task's account would no longer be in the role '{entry.role}' of the"
                f" project '{entry.project}': keep it in users or groups, or set force"
            )

    def write(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> None:
        role: ProjectRole = item.plan.data
        roles = ProjectRoles(self._client, item.entry.project)
        if item.entry.mode == "exact":
            roles.replace(role, item.plan.after)
            return
        for change in item.plan.changes:
            kind = change.field
            added = [name for name in change.after if not actor_in(kind, name, change.before)]
            if added:
                roles.add(role, kind, added)
            for name in change.before:
                if not actor_in(kind, name, change.after):
                    roles.remove(role, kind, name)

    def left(self, item: Item[ProjectRoleEntry, Mapping[str, str]]) -> Plan:
        role: ProjectRole = item.plan.data
        now = ProjectRoles(self._client, item.entry.project).read(role.name, role.id)
        item.returned = {"role": {"name": now.name, **now.actors()}}
        return remaining(item.plan, now.actors(), COMPARISONS)


class TrackerProjectRoleOperation(Objects[ProjectRoleEntry, Mapping[str, str]]):
    """Manage the users and groups of project roles. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        "tracker",
        {
            "read": reads("administer"),
            **dict.fromkeys(("replace", "add", "remove"), writes("administer")),
        },
        kind="role",
        name="{project}/{role}",
        listed="results",
    )

    def __init__(self, task: Task, options: TrackerProjectRoleOptions) -> None:
        super().__init__(ProjectRoleKind(task), *entries_of(options, ProjectRoleEntry))


def _loses(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return any(set(before[kind]) - set(after[kind]) for kind in (USERS, GROUPS))


def _has(actors: Mapping[str, Any], names: Mapping[str, list[str]]) -> bool:
    return any(
        actor_in(kind, name, actors[kind]) for kind in (USERS, GROUPS) for name in names[kind]
    )
