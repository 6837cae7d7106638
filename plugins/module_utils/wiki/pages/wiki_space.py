# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_space`: manage spaces and their permissions [wiki-20, wiki-21]."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, plan, remaining, unchanged, without_none
from ..client import WikiClient
from .spaces import Permissions, Spaces, administers

_KEY = re.compile(r"~?[A-Za-z0-9._-]{1,255}")
_OPERATION = re.compile(r"[a-z]+:[a-z_]+")
_FIELDS = ("name", "description", "home_page")


@dataclass(frozen=True)
class SpacePermission:
    """The operations that a group, a user or anonymous users may perform."""

    group: str | None = None
    user: str | None = None
    anonymous: bool = False
    operations: Annotated[list[str], Option(empty=True)] = field(default_factory=list)


@dataclass(frozen=True)
class SpaceEntry:
    """Options of a space."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=(*_FIELDS, "permissions")),
    )

    key: Annotated[str, Option(secret=False)]
    name: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    home_page: str | None = None
    permissions: Annotated[list[SpacePermission] | None, Option(empty=True)] = None
    permissions_mode: Literal["exact", "add", "remove"] = "exact"
    force: bool = False
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for an invalid key or permission."""
        if not _KEY.fullmatch(self.key):
            raise invalid(
                f"key is '{self.key}', but may only contain letters, digits, '.', '_' and '-'"
            )
        for number, entry in enumerate(self.permissions or ()):
            if [entry.group is not None, entry.user is not None, entry.anonymous].count(True) != 1:
                raise invalid(
                    f"permissions[{number}] requires exactly one of group, user and anonymous"
                )
            for operation in entry.operations:
                if not _OPERATION.fullmatch(operation):
                    raise invalid(
                        f"permissions[{number}].operations contains '{operation}': use the form"
                        " page:create"
                    )


@dataclass(frozen=True)
class WikiSpaceOptions(SpaceEntry):
    """The options of `wiki_space`."""

    entries: Annotated[list[SpaceEntry] | None, Option(empty=False)] = None


class WikiSpaceOperation(Objects[SpaceEntry, Any]):
    """Manage spaces. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        "wiki",
        {
            "read": reads("view"),
            "create": writes(unforeseen=("create_space",)),
            "update": writes("view", unforeseen=("administer",)),
            "permissions": writes("view", "administer"),
            "delete": writes("view", unforeseen=("administer",)),
        },
        kind="space",
        name="{key}",
        listed="results",
    )

    def __init__(self, task: Task, options: WikiSpaceOptions) -> None:
        super().__init__(SpaceKind(task), *entries_of(options, SpaceEntry))


class SpaceKind(ItemKind[SpaceEntry, Any]):
    """Spaces as entries. Each space takes a request, and another request for its permissions."""

    noun = "space"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = WikiClient(task)
        self._spaces = Spaces(self._client)
        self._keys: dict[str, str] = {}

    def name(self, entry: SpaceEntry) -> str:
        return entry.key

    def key(self, entry: SpaceEntry) -> str:
        return entry.key.lower()

    def compare(self, item: Item[SpaceEntry, Any]) -> Plan:
        entry = item.entry
        found = self._spaces.read(entry.key)
        number = None if found is None else found.pop("id")
        if entry.state == "absent":
            return self._removal(entry, found)
        wanted, home = without_none({name: getattr(entry, name) for name in _FIELDS}), None
        if found is None:
            if "name" not in wanted:
                raise invalid(
                    f"the space {entry.key} does not exist: name is required to create it"
                )
            if wanted.pop("home_page", None) is not None:
                self._task.warn(f"the space {entry.key} is new: the next run sets its home page")
        elif wanted.get("home_page") not in (None, found["home_page"]):
            home = self._home(entry.key, str(entry.home_page))
        if entry.permissions is not None:
            for permission in entry.permissions:
                self._subject(permission)  # collects the keys of users for _with_names()
            before = {} if found is None else self._with_names(self._spaces.permissions(entry.key))
            found = None if found is None else {**found, "permissions": before}
            wanted["permissions"] = self._permissions(entry, before)
        made = plan(found, wanted)
        blank = {"name": entry.key, "description": "", "home_page": None}
        shown = {"id": number, "key": entry.key, **blank, **made.before, **made.after}
        return made.with_result(space=shown).with_data(home)

    def _removal(self, entry: SpaceEntry, found: dict[str, Any] | None) -> Plan:
        if found is None:
            return unchanged({"space": None})
        content = "" if entry.force else self._spaces.content(entry.key, found["home_page"])
        if content:
            raise ToolchainError(
                "conflict",
                f"the space {entry.key} has {content}: set force to delete them with it",
            )
        return plan(found, None).with_result(space=None)

    def _home(self, key: str, title: str) -> str:
        page = self._client.find(f"searching for the page '{title}'", key, title)
        if page is None:
            raise ToolchainError("not_found", f"home_page: there is no page '{title}' in {key}")
        return page.id

    def _permissions(self, entry: SpaceEntry, before: Permissions) -> Permissions:
        """Return the permissions of a space after the task.

        Raises `invalid` if the task's account would no longer administer the space.
        """
        after = {} if entry.permissions_mode == "exact" else dict(before)
        for permission in entry.permissions or ():
            subject, granted = self._subject(permission), set(permission.operations)
            have = set(after.get(subject, ()))
            left = have - granted if entry.permissions_mode == "remove" else have | granted
            after[subject] = sorted(left)
        after = {subject: operations for subject, operations in after.items() if operations}
        if not entry.force and before and after != before:
            subjects = {self._named(subject) for subject in self._spaces.own_subjects()}
            if administers(before, subjects) and not administers(after, subjects):
                raise invalid(
                    f"the task's account would no longer administer the space {entry.key}: keep"
                    " space:administer for it, or set force"
                )
        return after

    def _subject(self, permission: SpacePermission) -> str:
        if permission.user is None:
            return "anonymous" if permission.group is None else f"group:{permission.group}"
        if permission.user not in self._keys.values():
            self._keys[self._spaces.user_key(permission.user)] = permission.user
        return f"user:{permission.user}"

    def _with_names(self, permissions: Permissions) -> Permissions:
        """Return permissions with user names instead of user keys, if the names are known."""
        return {self._named(subject): held for subject, held in permissions.items()}

    def _named(self, subject: str) -> str:
        kind, _colon, key = subject.partition(":")
        return f"user:{self._keys.get(key, key)}" if kind == "user" else subject

    def _keyed(self, subject: str) -> str:
        kind, _colon, name = subject.partition(":")
        keys = {known: key for key, known in self._keys.items()}
        return f"user:{keys.get(name, name)}" if kind == "user" else subject

    def write(self, item: Item[SpaceEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        if plan.action == "delete":
            if not self._spaces.delete(entry.key):
                self._task.warn(f"the server is still deleting the space {entry.key}")
            return
        changed = {change.field: change.after for change in plan.changes}
        permissions = changed.pop("permissions", None)
        if plan.action == "create":
            self._spaces.create(entry.key, changed)
        elif changed:
            members = {"name": plan.after["name"], **changed}
            self._spaces.update(entry.key, members, plan.data)
        if permissions is not None:
            before = plan.before.get("permissions", {}) if plan.before else {}
            differing = {
                self._keyed(subject): permissions.get(subject, [])
                for subject in {**before, **permissions}
                if before.get(subject, []) != permissions.get(subject, [])
            }
            self._spaces.set_permissions(entry.key, differing)

    def left(self, item: Item[SpaceEntry, Any]) -> Plan | None:
        """Read the space again. A new space may not be found at once, and deletion takes time."""
        now = None if item.plan.action == "delete" else self._spaces.read(item.entry.key)
        if now is None:
            return remaining(item.plan, None) if item.plan.action == "update" else None
        item.returned = {"space": {**item.plan.result["space"], **now}}
        if any(change.field == "permissions" for change in item.plan.changes):
            held = self._spaces.permissions(item.entry.key)
            now = {**now, "permissions": self._with_names(held)}
        return remaining(item.plan, now)

    def predict(self, item: Item[SpaceEntry, Any]) -> None:
        if item.entry.state == "absent":
            self._task.predictions.remove("space", item.entry.key.lower())
        else:
            self._task.predictions.add("space", item.entry.key.lower())
