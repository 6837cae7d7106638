# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_permission`: permissions of users and groups on repositories [C2.23]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core import address
from ...core.errors import invalid, not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.operations.objects import Item, ItemKind, Objects, entries_of
from ...core.plan import Change, Plan, plan
from ...core.verification import DOING
from ..client import RepoClient
from ..repositories import kinds_of, listed
from ..service import SERVICE
from .directory import GROUPS, PERMISSIONS, USERS, Directory, Mode

#: A resource: `targets` is a list of dicts with `repo`, `includes` and `excludes`; `users` and
#: `groups` are dicts of lists of actions, by name.
Part = dict[str, Any]
#: Managed resources: their names in Access, and in the older API.
RESOURCES = {"artifact": "repo", "build": "build", "release_bundle": "releaseBundle"}
#: Actions, and their names in the older API.
_OLD_ACTIONS = {
    **{name: name for name in ("read", "write", "annotate", "delete", "manage")},
    "scan": "managedXrayMeta",
    "execute": "distribute",
}
_NEW_ACTIONS = {old.lower(): new for new, old in _OLD_ACTIONS.items()}
ACTIONS = tuple(_OLD_ACTIONS)
_ALL = ["**"]
_EMPTY: Part = {"targets": [], "users": {}, "groups": {}}
#: Targets that mean all repositories of a class.
SPECIAL = ("ANY", "ANY LOCAL", "ANY REMOTE", "ANY DISTRIBUTION")
Row: TypeAlias = Mapping[str, Any]
_Principals = Annotated["dict[str, Any] | None", Option(values="json", empty=True)]


#: Types of the repositories that each special target includes.
_CLASSES = {
    "ANY": ("LOCAL", "FEDERATED", "REMOTE"),
    "ANY LOCAL": ("LOCAL", "FEDERATED"),
    "ANY REMOTE": ("REMOTE",),
}


@dataclass(frozen=True)
class PermissionTarget:
    """The suboptions of `targets`: a repository, and the paths in it."""

    repo: str
    includes: Annotated[list[str] | None, Option(empty=True)] = None
    excludes: Annotated[list[str] | None, Option(empty=True)] = None


@dataclass(frozen=True)
class PermissionResource:
    """The suboptions of a resource: its targets, and actions by user and group."""

    targets: list[PermissionTarget] | None = None
    users: _Principals = None
    groups: _Principals = None


@dataclass(frozen=True)
class PermissionResources:
    """The suboptions of `resources`."""

    artifact: PermissionResource | None = None
    build: PermissionResource | None = None
    release_bundle: PermissionResource | None = None


@dataclass(frozen=True)
class RepoPermissionEntry:
    """The options of a permission."""

    option_rules: ClassVar[tuple[Rule, ...]] = (Rule("state=absent", forbids="resources"),)

    name: Segment
    resources: PermissionResources | None = None
    mode: Mode = "exact"
    state: Literal["present", "absent"] = "present"

    def managed(self) -> dict[str, Any]:
        """Return the resources that are set, by name."""
        resources = {} if self.resources is None else asdict(self.resources)
        return {name: resource for name, resource in resources.items() if resource is not None}

    def check(self) -> None:
        """Raise `invalid` for a mode without resources, for wrong actions, and for repositories
        that are listed twice.
        """
        if self.mode != "exact" and not self.managed():
            raise invalid("mode requires resources: list them, or omit mode")
        for name, resource in self.managed().items():
            for kind in ("users", "groups"):
                for principal, actions in (resource[kind] or {}).items():
                    place = f"resources.{name}.{kind}.{principal}"
                    is_list = isinstance(actions, list)
                    if not is_list or not all(isinstance(action, str) for action in actions):
                        raise invalid(
                            f"{place} is not a list of actions: write it as [read, write]"
                        )
                    if not actions and self.mode != "exact":
                        raise invalid(f"{place} is empty: list the actions")
                    wrong = [action for action in actions if action.lower() not in ACTIONS]
                    if wrong:
                        named = ", ".join(ACTIONS)
                        raise invalid(f"{place}: '{wrong[0]}' is not an action: use one of {named}")
            repos = [target["repo"] for target in resource["targets"] or ()]
            twice = sorted({repo for repo in repos if repos.count(repo) > 1})
            if twice:
                raise invalid(f"resources.{name}.targets lists '{twice[0]}' twice")


def from_access(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission in a response of Access, by name."""
    return {
        name: {
            "targets": _targets(
                (repo, target.get("include_patterns"), target.get("exclude_patterns"))
                for repo, target in _mapping(found.get("targets")).items()
            ),
            **_principals(found.get("actions")),
        }
        for name, found in _mapping(row.get("resources")).items()
        if name in RESOURCES and isinstance(found, Mapping)
    }


def from_older(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission in a response of the older API, by name."""
    found = {name: row.get(old) for name, old in RESOURCES.items()}
    return {
        name: {
            "targets": _targets(
                (repo, resource.get("include-patterns"), resource.get("exclude-patterns"))
                for repo in resource.get("repositories") or ()
            ),
            **_principals(resource.get("actions")),
        }
        for name, resource in found.items()
        if isinstance(resource, Mapping)
    }


def to_access(part: Part) -> dict[str, Any]:
    """Return a resource in the format of Access."""
    actions = {
        kind: {name: [action.upper() for action in names] for name, names in part[kind].items()}
        for kind in ("users", "groups")
    }
    targets = {
        target["repo"]: {
            "include_patterns": target["includes"],
            "exclude_patterns": target["excludes"],
        }
        for target in part["targets"]
    }
    return {"actions": actions, "targets": targets}


def to_older(name: str, part: Part) -> dict[str, Any]:
    """Return a resource in the format of the older API.

    Raises `invalid` if its targets have different patterns, which that API cannot store.

    :param name: name of the resource for the message
    """
    first, *others = part["targets"]
    patterns = (first["includes"], first["excludes"])
    if any((other["includes"], other["excludes"]) != patterns for other in others):
        raise invalid(
            f"resources.{name}.targets have different patterns, which the older API of this server"
            " cannot store: create separate permissions"
        )
    actions = {
        kind: {
            principal: [_OLD_ACTIONS.get(action, action) for action in names]
            for principal, names in part[kind].items()
        }
        for kind in ("users", "groups")
    }
    return {
        "include-patterns": first["includes"],
        "exclude-patterns": first["excludes"],
        "repositories": [target["repo"] for target in part["targets"]],
        "actions": actions,
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _targets(rows: Iterable[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """Return targets, sorted by repository.

    :param rows: repository, include patterns and exclude patterns. The server returns `**` if no
        include pattern is set
    """
    found = {
        repo: {
            "repo": repo,
            "includes": sorted(set(includes or [])) or _ALL,
            "excludes": sorted({exclude for exclude in excludes or [] if exclude}),
        }
        for repo, includes, excludes in rows
    }
    return [found[repo] for repo in sorted(found)]


def _principals(actions: Any) -> Part:
    found = _mapping(actions)
    return {kind: _actions_by_name(_mapping(found.get(kind))) for kind in ("users", "groups")}


def _actions_by_name(rows: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return sorted actions by the name of the user or group; names without actions are dropped."""
    every = {
        name: {
            _NEW_ACTIONS.get(str(action).lower(), str(action).lower()) for action in actions or ()
        }
        for name, actions in rows.items()
    }
    return {name: sorted(every[name]) for name in sorted(every) if every[name]}


def changed(current: Part | None, options: Mapping[str, Any], mode: str) -> Part | None:
    """Return a resource after the change; `None` if it has no targets, users and groups left.

    :param current: the resource before the change; `None` if the permission does not have it
    :param options: wanted `targets`, `users` and `groups`; those that are `None` are not changed
    :param mode: `exact` replaces them, `add` and `remove` change their entries
    """
    before = current or _EMPTY
    after = dict(before)
    if options.get("targets") is not None:
        after["targets"] = _changed_targets(before["targets"], options["targets"], mode)
    for kind in ("users", "groups"):
        if options.get(kind) is None:
            continue
        named = options[kind]
        if kind == "users":  # the server stores their names in lower case
            named = {name.lower(): actions for name, actions in named.items()}
        by_name = {} if mode == "exact" else {key: set(has) for key, has in before[kind].items()}
        for name, actions in _actions_by_name(named).items():
            known = by_name.get(name, set())
            by_name[name] = known.difference(actions) if mode == "remove" else known.union(actions)
        after[kind] = _actions_by_name(by_name)
    return after if after["targets"] or after["users"] or after["groups"] else None


def _changed_targets(
    before: list[dict[str, Any]], options: Iterable[Mapping[str, Any]], mode: str
) -> list[dict[str, Any]]:
    targets = {} if mode == "exact" else {record["repo"]: record for record in before}
    for record in options:
        repo = record["repo"]
        if mode == "remove":
            targets.pop(repo, None)
            continue
        known = targets.get(repo)
        includes, excludes = list(record.get("includes") or ()), list(record.get("excludes") or ())
        if known is not None:
            includes += known["includes"] if includes else ()
            includes, excludes = includes or known["includes"], [*excludes, *known["excludes"]]
        targets[repo] = {"repo": repo, "includes": includes, "excludes": excludes}
    return _targets(
        (record["repo"], record["includes"], record["excludes"]) for record in targets.values()
    )


@dataclass(frozen=True)
class RepoPermissionOptions(RepoPermissionEntry):
    """The options of `repo_permission`."""

    entries: Annotated[list[RepoPermissionEntry] | None, Option(empty=False)] = None


class Permissions(ItemKind[RepoPermissionEntry, Row]):
    """Compare and write permissions. Writes do not change resources that are not managed."""

    noun = "permission"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._directory = Directory(task, PERMISSIONS)
        self._users, self._groups = Directory(task, USERS), Directory(task, GROUPS)
        self._client = RepoClient(task)

    def name(self, entry: RepoPermissionEntry) -> str:
        return entry.name

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """Return the types of the repositories of the server."""
        return kinds_of(listed(self._client)[1])

    def load(self, items: Sequence[Item[RepoPermissionEntry, Row]]) -> None:
        rows = self._directory.read_many([item.name for item in items])
        for item in items:
            item.state = rows[item.name]

    def _stored(self, item: Item[RepoPermissionEntry, Row]) -> dict[str, Part]:
        """Return the managed resources of a permission as last read, by name."""
        if item.state is None:
            return {}
        return from_older(item.state) if self._directory.is_old else from_access(item.state)

    def compare(self, item: Item[RepoPermissionEntry, Row]) -> Plan:
        entry, current = item.entry, self._stored(item)
        before = None if item.state is None else {"name": item.name, **current}
        if entry.state == "absent":
            return plan(before, None).with_result(permission=None)
        wanted = self._wanted(item.name, current, entry)
        if not wanted:
            raise invalid(
                f"the permission '{item.name}' would have no resources: set targets, or"
                " state=absent"
            )
        if self._directory.is_old:
            for name, part in wanted.items():
                to_older(name, part)  # raises for resources that this API cannot store
        found = _planned(item.name, before, wanted)
        return found.with_result(permission={"name": item.name, "resources": wanted})

    def _wanted(
        self, name: str, current: Mapping[str, Part], entry: RepoPermissionEntry
    ) -> dict[str, Part]:
        """Return all resources that the permission has after the task, by name."""
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
        return {resource: wanted[resource] for resource in RESOURCES if resource in wanted}

    def _with_listed(self, before: Part, after: Part) -> Part:
        """Return the resource with the repositories that the server lists for special targets.

        Server fact [repo-43]: next to a special target such as `ANY LOCAL`, the server also lists
        the repositories that it includes, with the same patterns.
        """
        repos = {target["repo"] for target in after["targets"]}
        extra = []
        for special in after["targets"]:
            if special["repo"] not in SPECIAL or special not in before["targets"]:
                continue
            for target in before["targets"]:
                same = {**target, "repo": special["repo"]} == special
                classes = _CLASSES.get(special["repo"], ())
                if same and target["repo"] not in repos:
                    extra += [target] if self._kinds.get(target["repo"]) in classes else []
        targets = sorted([*after["targets"], *extra], key=lambda target: str(target["repo"]))
        return {**after, "targets": targets}

    def _require_known(self, resource: str, before: Part | None, after: Part) -> None:
        """Raise `not_found` if a user, group or repository that is added does not exist."""
        current = before or _EMPTY
        place = f"resources.{resource}"
        new = {kind: _new(current[kind], after[kind]) for kind in ("users", "groups")}
        self._users.require_known(f"{place}.users", new["users"])
        self._groups.require_known(f"{place}.groups", new["groups"])
        known = [target["repo"] for target in current["targets"]]
        repos = _new(known, (target["repo"] for target in after["targets"]))
        if resource == "artifact":  # builds and bundles have repositories that are not listed
            get = self._task.predictions.get
            keys = [
                key for key in repos if key not in SPECIAL and not get("repository", key.lower())
            ]
            unknown = [key for key in keys if key not in self._kinds]
            if unknown:
                names = "', '".join(unknown)
                message = f"{place}.targets: there is no repository '{names}'"
                raise not_found(message)

    def write(self, item: Item[RepoPermissionEntry, Row]) -> None:
        path, create = f"/{address.path(item.name)}", item.plan.action == "create"
        verify = partial(self.is_done, item)
        if item.plan.action == "delete":
            self._directory.delete(item.name)
        elif self._directory.is_old:
            purpose = f"{DOING[item.plan.action]} {self.title(item)}"
            row, wanted = dict(item.state or {"name": item.name}), item.plan.result["permission"]
            for resource, old in RESOURCES.items():  # the server deletes missing ones [repo-43]
                row.pop(old, None)
                if resource in wanted["resources"]:
                    row[old] = to_older(resource, wanted["resources"][resource])
            method = "POST" if create else "PUT"
            self._directory.write(purpose, method, path, verify, row, repeatable=not create)
        elif create:
            wanted = item.plan.result["permission"]["resources"]
            resources = {resource: to_access(part) for resource, part in wanted.items()}
            body = {"name": item.name, "resources": resources}
            self._directory.write(f"creating {self.title(item)}", "POST", "", verify, body)
        else:
            self._update(item)

    def _update(self, item: Item[RepoPermissionEntry, Row]) -> None:
        """Replace each resource that differs: Access cannot update a whole permission."""
        for change in item.plan.changes:
            body = None if change.after is None else to_access(change.after)
            self._directory.write(
                f"changing {change.field} of {self.title(item)}",
                "DELETE" if body is None else "PUT",
                f"/{address.path(item.name)}/{change.field}",
                partial(self._has, item, change),
                body,
                repeatable=True,
            )

    def _has(self, item: Item[RepoPermissionEntry, Row], change: Change) -> bool:
        """Read a permission again, and return whether a resource has its new value."""
        item.state = self._directory.read(item.name)
        return bool(self._stored(item).get(change.field) == change.after)

    def left(self, item: Item[RepoPermissionEntry, Row]) -> Plan | None:
        if item.plan.action == "delete":
            return None  # the server's response is enough
        item.state = self._directory.read(item.name)
        stored = self._stored(item)
        item.returned = {"permission": {"name": item.name, "resources": stored}}
        wanted = {
            # the server may also list the repositories that a special target includes
            name: self._with_listed(stored[name], part) if name in stored else part
            for name, part in item.plan.result["permission"]["resources"].items()
        }
        before = None if item.state is None else {"name": item.name, **stored}
        return _planned(item.name, before, wanted)


def _new(known: Iterable[str], names: Iterable[str]) -> list[str]:
    known = set(known)
    return [name for name in names if name not in known]


def _planned(name: str, before: Mapping[str, Any] | None, wanted: Mapping[str, Part]) -> Plan:
    """Return the plan of a permission. It removes resources that are not wanted."""
    found = plan(before, {"name": name, **wanted})
    gone = {key: part for key, part in found.before.items() if key not in (*wanted, "name")}
    if not gone:
        return found
    after = {key: value for key, value in found.after.items() if key not in gone}
    removals = plan(dict(sorted(gone.items())), None).changes
    return Plan(found.before, after, "update", (*found.changes, *removals))


class RepoPermissionOperation(Objects[RepoPermissionEntry, Row]):
    """Create, update or delete a permission, or the permissions of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads("admin"), **dict.fromkeys(("create", "update", "delete"), writes("admin"))},
        kind="permission",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoPermissionOptions) -> None:
        super().__init__(Permissions(task), *entries_of(options, RepoPermissionEntry))
