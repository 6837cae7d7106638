# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_permission`: rights of users and groups on repositories [C2.23]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.entries import EntryKind, ObjectsOperation, entries_of
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, plan
from .directory import GROUPS, PERMISSIONS, USERS, Directory
from .permission_shapes import ACTIONS, RESOURCES, Part, changed
from .permission_store import PermissionStore
from .repository_keys import RepositoryKeys

#: Targets that stand for all repositories of a class.
SPECIAL = ("ANY", "ANY LOCAL", "ANY REMOTE", "ANY DISTRIBUTION")
_Principals = Annotated["dict[str, Any] | None", Option(values="json", empty=True)]


@dataclass(frozen=True)
class PermissionTarget:
    """A repository of a permission."""

    repo: str
    includes: Annotated[list[str] | None, Option(empty=True)] = None
    excludes: Annotated[list[str] | None, Option(empty=True)] = None


@dataclass(frozen=True)
class PermissionResource:
    """A resource of a permission."""

    targets: list[PermissionTarget] | None = None
    users: _Principals = None
    groups: _Principals = None


@dataclass(frozen=True)
class PermissionResources:
    """The resources of a permission."""

    artifact: PermissionResource | None = None
    build: PermissionResource | None = None
    release_bundle: PermissionResource | None = None


@dataclass(frozen=True)
class RepoPermissionEntry:
    """The options of a permission."""

    name: str | None = None
    resources: PermissionResources | None = None
    mode: Literal["exact", "add", "remove"] = "exact"
    state: Literal["present", "absent"] = "present"

    def managed(self) -> dict[str, Any]:
        """Return the resources that are managed."""
        found = {} if self.resources is None else asdict(self.resources)
        return {name: one for name, one in found.items() if one is not None}

    def require_sense(self) -> None:
        """Raise `invalid` for contradictory options."""
        if not self.name:
            raise invalid("name is missing: set the name of the permission")
        if self.state == "absent" and self.resources is not None:
            raise invalid("resources cannot be combined with state 'absent': omit them")
        if self.mode != "exact" and not self.managed():
            raise invalid(f"mode is '{self.mode}', but resources are missing: list them")
        for name, one in self.managed().items():
            for kind in ("users", "groups"):
                for who, actions in (one[kind] or {}).items():
                    _require_actions(f"resources.{name}.{kind}.{who}", actions, self.mode)
            repos = [target["repo"] for target in one["targets"] or ()]
            twice = sorted({repo for repo in repos if repos.count(repo) > 1})
            if twice:
                raise invalid(f"resources.{name}.targets names '{twice[0]}' twice")


def _require_actions(place: str, actions: Any, mode: str) -> None:
    if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
        raise invalid(f"{place} is not a list of actions: write it as [read, write]")
    if not actions and mode != "exact":
        raise invalid(f"{place} is empty: list the actions")
    for action in actions:
        if action.lower() not in ACTIONS:
            raise invalid(f"{place}: '{action}' is not an action: use one of {', '.join(ACTIONS)}")


@dataclass(frozen=True)
class RepoPermissionOptions(RepoPermissionEntry):
    """The options of `repo_permission`."""

    entries: list[RepoPermissionEntry] | None = None

    constraints: ClassVar = {
        "mutually_exclusive": [["name", "entries"]],
        "required_one_of": [["name", "entries"]],
    }


class _Permissions(EntryKind[RepoPermissionEntry]):
    """Permissions as objects of a task."""

    noun = "permission"

    def __init__(self, task: Task) -> None:
        self._store = PermissionStore(Directory(task, PERMISSIONS))
        self._users, self._groups = Directory(task, USERS), Directory(task, GROUPS)
        self._keys = RepositoryKeys(task)

    def name(self, entry: RepoPermissionEntry) -> str:
        entry.require_sense()
        return str(entry.name)

    def load(self, entries: Sequence[RepoPermissionEntry]) -> None:
        self._store.load([self.name(entry) for entry in entries])

    def compare(self, entry: RepoPermissionEntry) -> Plan:
        name, current = self.name(entry), self._store.resources(self.name(entry))
        if entry.state == "absent":
            found = plan(None if current is None else {"name": name, **current}, None)
            return found.with_result(permission=None)
        wanted = self._wanted(name, current or {}, entry)
        if not wanted:
            raise invalid(
                f"the permission '{name}' would have no resources: set targets, or state=absent"
            )
        self._store.require_storable(wanted)
        before = None if current is None else {"name": name, **current}
        found = plan(before, {"name": name, **wanted})
        for gone in sorted(set(current or {}) - set(wanted)):
            found = _without(found, gone)
        return found.with_result(permission={"name": name, "resources": wanted})

    def _wanted(
        self, name: str, current: Mapping[str, Part], entry: RepoPermissionEntry
    ) -> dict[str, Part]:
        """Return all resources after the task."""
        wanted = dict(current)
        for resource, options in entry.managed().items():
            before = wanted.pop(resource, None)
            after = changed(before, options, entry.mode)
            if after is None:
                continue
            if not after["targets"]:
                raise invalid(
                    f"resources.{resource}.targets of '{name}' would be empty: list at least one"
                )
            if before is not None:
                after = self._with_listed(before, after)
            self._require_known(resource, before, after)
            wanted[resource] = after
        return {each: wanted[each] for each in RESOURCES if each in wanted}

    def _with_listed(self, before: Part, after: Part) -> Part:
        """Keep targets that the server lists in addition to a special target with the same
        patterns [repo-43].
        """
        held = {one["repo"] for one in after["targets"]}
        extra = []
        for target in after["targets"]:
            if target["repo"] not in SPECIAL or target not in before["targets"]:
                continue
            for one in before["targets"]:
                same = {**one, "repo": target["repo"]} == target
                if (
                    same
                    and one["repo"] not in held
                    and self._keys.is_in(one["repo"], target["repo"])
                ):
                    extra.append(one)
        targets = sorted([*after["targets"], *extra], key=lambda one: str(one["repo"]))
        return {**after, "targets": targets}

    def _require_known(self, resource: str, before: Part | None, after: Part) -> None:
        """Raise `not_found` for new users, groups and repositories that do not exist."""
        held = before or {"targets": [], "users": {}, "groups": {}}
        place = f"resources.{resource}"
        new = {kind: _new(held[kind], after[kind]) for kind in ("users", "groups")}
        self._users.require_known(f"{place}.users", new["users"])
        self._groups.require_known(f"{place}.groups", new["groups"])
        known = [target["repo"] for target in held["targets"]]
        repos = _new(known, (target["repo"] for target in after["targets"]))
        if resource == "artifact":  # builds and bundles are kept in repositories of their own
            self._keys.require(f"{place}.targets", [key for key in repos if key not in SPECIAL])

    def write(self, entry: RepoPermissionEntry, plan: Plan) -> Mapping[str, Any]:
        name = self.name(entry)
        if plan.action == "delete":
            self._store.delete(name)
            return plan.result
        wanted: Mapping[str, Part] = plan.result["permission"]["resources"]
        self._store.write(name, wanted, create=plan.action == "create")
        stored = self._store.resources(name) or {}
        lost = [each for each in wanted if stored.get(each) != wanted[each]]
        if lost and not self._only_listed(stored, wanted, lost):
            raise ToolchainError(
                "rejected",
                f"the permission '{name}': the server did not save {', '.join(lost)}",
                result={"changed": True},
            )
        return {"permission": {"name": name, "resources": stored}}

    def _only_listed(
        self, stored: Mapping[str, Part], wanted: Mapping[str, Part], lost: Iterable[str]
    ) -> bool:
        """Return whether the server only lists more targets next to a special one."""
        return all(
            each in stored and self._with_listed(stored[each], wanted[each]) == stored[each]
            for each in lost
        )


def _new(held: Iterable[str], names: Iterable[str]) -> list[str]:
    known = set(held)
    return [name for name in names if name not in known]


def _without(found: Plan, resource: str) -> Plan:
    """Return the plan with a resource removed."""
    after = {name: one for name, one in found.after.items() if name != resource}
    rest = plan({resource: found.before[resource]}, None).changes
    return Plan(found.before, after, "update", (*found.changes, *rest), found.result)


class RepoPermissionOperation(ObjectsOperation[RepoPermissionEntry]):
    """A permission, or the permissions of `entries`."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("admin"),
            **dict.fromkeys(("create", "update", "delete"), writes("admin")),
        },
        kind="permission",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoPermissionOptions) -> None:
        entries = entries_of(options, RepoPermissionEntry)
        super().__init__(_Permissions(task), entries, listed=options.entries is not None)
