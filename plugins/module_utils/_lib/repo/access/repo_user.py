# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `repo_user`: users of the repository manager [C2.22]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.operations.objects import Item, Objects, entries_of
from ...core.plan import Change, Plan, plan, without_none
from ..service import SERVICE
from .directory import GROUPS, USERS, AccountKind, Directory, Fields, Mode, merged, own_account

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


@dataclass(frozen=True)
class RepoUserEntry:
    """The options of a user."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("user_password", *_OLD)),
        Rule("disable_ui_access=true", forbids=("admin=true", "profile_updatable=true")),
        Rule("groups_mode", requires="groups"),
        Rule("update_password=always", requires=("user_password", "state=absent")),
    )

    name: Segment
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


class Users(AccountKind[RepoUserEntry]):
    """Compare and write users. The server stores their names in lower case [repo-42]."""

    noun, kind, old, links = "user", USERS, _OLD, "groups"

    def name(self, entry: RepoUserEntry) -> str:
        return entry.name.lower()

    def fields(self, item: Item[RepoUserEntry, Fields], row: Mapping[str, Any]) -> Fields:
        return user_of(item.name, row, old=self._directory.is_old)

    def compare(self, item: Item[RepoUserEntry, Fields]) -> Plan:
        entry, name, current = item.entry, item.name, item.state
        if entry.state == "absent":
            if current is not None:
                self._protect(entry, name, "is deleted")
            return self.removal(current)
        # what the server requires of a new user
        if current is None and not entry.email:
            raise invalid(f"the user '{name}' does not exist yet, and email is missing")
        has_password = entry.user_password is not None or entry.internal_password_disabled
        if current is None and not has_password:
            raise invalid(
                f"the user '{name}' does not exist yet: set user_password, or set"
                " internal_password_disabled"
            )
        wanted = {"name": name, **without_none(vars(entry), ("email", *_FLAGS))}
        if entry.groups is not None:
            groups = (current or {}).get("groups", [])
            wanted["groups"] = merged(groups, entry.groups, entry.groups_mode)
            new = [group for group in wanted["groups"] if group not in groups]
            Directory(self._task, GROUPS).require_known("groups", new)
        found = plan(current, wanted, self._comparisons)
        self._refuse_lockout(entry, name, found)
        # the server chooses the other settings of a new user
        unknown = dict.fromkeys(user_of(name, {}, old=False))
        found = found.with_result(user={**unknown, **found.after})
        if entry.user_password is None:
            return found
        is_new = found.action == "create"
        if not is_new and entry.update_password != "always":
            return found.with_unknown("user_password")  # no server returns it
        change = Change("user_password", None, _SECRET)
        return replace(
            found,
            action="create" if is_new else "update",
            after={**found.after, "user_password": _SECRET},
            changes=(*found.changes, change),
        )

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
            raise invalid(f"the user '{name}' is {whose} and {reason}: this requires force=true")

    def write(self, item: Item[RepoUserEntry, Fields]) -> None:
        directory, name = self._directory, item.name
        if item.plan.action == "delete":
            directory.delete(name)
            return
        fields = {
            change.field: change.after for change in item.plan.changes if change.field in _OLD
        }
        secret = any(change.field == "user_password" for change in item.plan.changes)
        password = {"password": item.entry.user_password} if secret else {}
        # Access has a separate request for groups, and the server adds default groups to a new user
        others = {field: value for field, value in fields.items() if field != "groups"}
        verify = partial(self._has, item, others)
        if item.plan.action == "create":
            key = "name" if directory.is_old else "username"
            directory.create(name, {key: name, **self._sent(fields), **password}, verify)
        else:
            sent = fields if directory.is_old else others
            if sent or password:
                verify = partial(self._has, item, sent)
                # no response shows whether a password was changed
                body = {**self._sent(sent), **password}
                directory.update(name, body, (lambda: None) if password else verify)
        if "groups" in fields and not self._has(item, ["groups"]):
            self._link(item, (item.state or {}).get("groups", []), fields["groups"])


def user_of(name: str, row: Mapping[str, Any], *, old: bool) -> dict[str, Any]:
    """Return the fields of a user in terms of the options.

    :param row: the user in a response
    :param old: whether the response comes from the older API
    """
    read = {new: row.get(former if old else new) for new, former in _OLD.items()}
    flags = {flag: bool(read[flag]) for flag in _FLAGS}
    groups = sorted(map(str, read["groups"] or []))
    return {"name": name, "email": str(read["email"] or ""), **flags, "groups": groups}


class RepoUserOperation(Objects[RepoUserEntry, Fields]):
    """Create, update or delete a user, or the users of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("admin"),
            **dict.fromkeys(("create", "update", "groups", "delete"), writes("admin")),
        },
        kind="user",
        name="{name}",
        listed="results",
    )

    def __init__(self, task: Task, options: RepoUserOptions) -> None:
        super().__init__(Users(task), *entries_of(options, RepoUserEntry))
