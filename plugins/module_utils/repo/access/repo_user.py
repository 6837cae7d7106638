# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_user`: users of the repository manager [C2.22]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.objects import Item, ItemKind, Objects, entries_of
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Change, Comparison, Plan, plan, unordered, without_none
from .directory import GROUPS, USERS, Directory, own_account
from .memberships import Mode, merged

#: Options, and the names of their fields in the older interface.
_OLD = {
    "email": "email",
    "admin": "admin",
    "profile_updatable": "profileUpdatable",
    "disable_ui_access": "disableUIAccess",
    "internal_password_disabled": "internalPasswordDisabled",
    "groups": "groups",
}
_FLAGS = ("admin", "profile_updatable", "disable_ui_access", "internal_password_disabled")
#: Values that prevent an account from logging in or from administering the server.
_LOCKING = {"admin": False, "disable_ui_access": True, "internal_password_disabled": True}
#: Accounts that the server itself requires.
_BUILT_IN = ("admin", "anonymous", "_internal")
_SECRET = "(secret)"
_COMPARISONS: Mapping[str, Comparison] = {"groups": unordered}


@dataclass(frozen=True)
class RepoUserEntry:
    """The options of a user."""

    rules: ClassVar = (
        Rule("state=absent", forbids=("user_password", *_OLD)),
        Rule("disable_ui_access=true", forbids=("admin=true", "profile_updatable=true")),
        Rule("groups_mode", requires="groups"),
        Rule("update_password=always", requires=("user_password", "state=absent")),
    )

    name: str
    email: str | None = None
    user_password: Annotated[str | None, Option(secret=True)] = None
    update_password: Annotated[Literal["on_create", "always"], Option(secret=False)] = "on_create"
    admin: bool | None = None
    profile_updatable: bool | None = None
    disable_ui_access: bool | None = None
    internal_password_disabled: Annotated[bool | None, Option(secret=False)] = None
    groups: list[str] | None = None
    groups_mode: Mode = "exact"
    force: bool = False
    state: Literal["present", "absent"] = "present"


@dataclass(frozen=True)
class RepoUserOptions(RepoUserEntry):
    """The options of `repo_user`."""

    entries: Annotated[list[RepoUserEntry] | None, Option(empty=False)] = None


class _Users(ItemKind[RepoUserEntry, Any]):
    """Compare and write users. The server stores their names in lower case [repo-42]."""

    noun = "user"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._users, self._groups = Directory(task, USERS), Directory(task, GROUPS)
        self._found: dict[str, Mapping[str, Any] | None] = {}

    def name(self, entry: RepoUserEntry) -> str:
        return entry.name.lower()

    def load(self, items: Sequence[Item[RepoUserEntry, Any]]) -> None:
        entries = [item.entry for item in items]
        self._found = self._users.read_many([self.name(entry) for entry in entries])

    def compare(self, item: Item[RepoUserEntry, Any]) -> Plan:
        entry = item.entry
        name = self.name(entry)
        current = self._current(name)
        if entry.state == "absent":
            if current is not None:
                self._protect(entry, name, "is deleted")
            return plan(current, None).with_result(user=None)
        if current is None:
            _require_complete(entry, name)
        wanted = {"name": name, **without_none(vars(entry), ("email", *_FLAGS))}
        if entry.groups is not None:
            groups = (current or {}).get("groups", [])
            wanted["groups"] = merged(groups, entry.groups, entry.groups_mode)
            new = [group for group in wanted["groups"] if group not in groups]
            self._groups.require_known("groups", new)
        found = plan(current, wanted, _COMPARISONS)
        self._refuse_lockout(entry, name, found)
        # the server chooses the other settings of a new user
        unknown = dict.fromkeys(user_of(name, {}, old=False))
        found = found.with_result(user={**unknown, **found.after})
        return _with_password(found, entry)

    def _current(self, name: str) -> dict[str, Any] | None:
        """Return the fields of a user as last read from the server; `None` if it is absent."""
        row = self._found.get(name)
        return None if row is None else user_of(name, row, old=self._users.is_old)

    def _refuse_lockout(self, entry: RepoUserEntry, name: str, found: Plan) -> None:
        """Raise `invalid` for mutually exclusive flags, and for flags that lock out a protected
        account.
        """
        after = found.after
        if found.action == "update" and after["disable_ui_access"]:
            blocking = [flag for flag in ("admin", "profile_updatable") if after[flag]]
            if blocking and any(change.field in (*_FLAGS,) for change in found.changes):
                raise invalid(
                    f"the user '{name}' cannot have both disable_ui_access and {blocking[0]}: set"
                    f" {blocking[0]} to false as well"
                )
        for change in found.changes if found.action == "update" else ():
            if change.field in _LOCKING and change.after is _LOCKING[change.field]:
                self._protect(entry, name, f"gets {change.field} {str(change.after).lower()}")

    def _protect(self, entry: RepoUserEntry, name: str, reason: str) -> None:
        """Raise `invalid` for a built-in account or the account of the task, unless `force` is set.

        :param reason: predicate for the message, such as `is deleted`
        """
        if entry.force:
            return
        whose = "a built-in account" if name in _BUILT_IN else "the task's account"
        if name in _BUILT_IN or name == own_account(self._task):
            raise invalid(f"the user '{name}' is {whose} and {reason}: this requires force: true")

    def write(self, item: Item[RepoUserEntry, Any]) -> None:
        entry, plan = item.entry, item.plan
        name = self.name(entry)
        if plan.action == "delete":
            self._users.delete(name)
            return
        skipped = ("name", "user_password")
        desired = {
            change.field: change.after for change in plan.changes if change.field not in skipped
        }
        secret = any(change.field == "user_password" for change in plan.changes)
        password = {"password": entry.user_password} if secret else {}
        if plan.action == "create":
            key = "name" if self._users.is_old else "username"
            body = {key: name, **self._sent(desired), **password}
            # after a lost response, do not compare the groups: the server adds default groups
            fields = {field: value for field, value in desired.items() if field != "groups"}
            self._users.create(name, body, partial(self._has, name, fields))
        else:
            self._update(name, desired, password)
        self._set_groups(name, desired)
        self._verify(name, desired)
        item.returned = {"user": self._current(name)}

    def _sent(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields with the names of the API in use."""
        return {_OLD[k] if self._users.is_old else k: value for k, value in fields.items()}

    def _update(self, name: str, desired: Mapping[str, Any], password: Mapping[str, Any]) -> None:
        fields = dict(desired)
        if not self._users.is_old:
            fields.pop("groups", None)  # Access has a separate endpoint for them [repo-42]
        if fields or password:
            # no response shows whether a password was changed
            verify = (lambda: None) if password else partial(self._has, name, fields)
            self._users.update(name, {**self._sent(fields), **password}, verify)

    def _set_groups(self, name: str, fields: Mapping[str, Any]) -> None:
        """Set the groups of the user, and remove the default groups of a new user."""
        if "groups" not in fields or self._has(name, {"groups": fields["groups"]}):
            return
        before, after = set((self._current(name) or {}).get("groups", [])), set(fields["groups"])
        verify = partial(self._has, name, {"groups": fields["groups"]})
        if self._users.is_old:
            self._users.update(name, {"groups": sorted(after)}, verify)
            return
        change = {"add": sorted(after - before), "remove": sorted(before - after)}
        self._users.members(name, change, verify)

    def predict(self, item: Item[RepoUserEntry, Any]) -> None:
        self._users.predict(item.name, item.plan)

    def _has(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Read the user again, and return whether it has these values."""
        self._found[name] = self._users.read(name)
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
            f"the user '{name}': the server did not save {', '.join(lost)}",
            result={"changed": True},
        )


def user_of(name: str, row: Mapping[str, Any], *, old: bool) -> dict[str, Any]:
    """Return the fields of a user in terms of the options.

    :param row: the user in a response
    :param old: whether the response comes from the older API
    """
    read = {new: row.get(former if old else new) for new, former in _OLD.items()}
    flags = {flag: bool(read[flag]) for flag in _FLAGS}
    groups = sorted(map(str, read["groups"] or []))
    return {"name": name, "email": str(read["email"] or ""), **flags, "groups": groups}


def _require_complete(entry: RepoUserEntry, name: str) -> None:
    """Raise `invalid` if a new user lacks options that the server requires."""
    if not entry.email:
        raise invalid(f"the user '{name}' does not exist yet, and email is missing")
    if entry.user_password is None and not entry.internal_password_disabled:
        raise invalid(
            f"the user '{name}' does not exist yet: set user_password, or set"
            " internal_password_disabled"
        )


def _with_password(found: Plan, entry: RepoUserEntry) -> Plan:
    """Return the plan with a change of the password if the task sends the password.

    Otherwise the password is unknown, because no server returns it.
    """
    if entry.user_password is None:
        return found
    if found.action != "create" and entry.update_password != "always":
        return found.with_unknown("user_password")
    return replace(
        found,
        action="create" if found.action == "create" else "update",
        after={**found.after, "user_password": _SECRET},
        changes=(*found.changes, Change("user_password", None, _SECRET)),
    )


class RepoUserOperation(Objects[RepoUserEntry, Any]):
    """Create, update or delete a user, or the users of `entries`."""

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("admin"),
            **dict.fromkeys(("create", "update", "groups", "delete"), writes("admin")),
        },
        kind="user",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoUserOptions) -> None:
        super().__init__(_Users(task), *entries_of(options, RepoUserEntry))
