# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_space`: manage spaces and their permissions [wiki-20, wiki-21]."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.errors import ToolchainError, conflict, excerpt, invalid, not_found
from ...core.http.messages import expected, json_or_none, unexpected_body
from ...core.json_text import as_text, json_objects, member
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.operations.objects import STOPPING, Item, ItemKind, Objects, entries_of
from ...core.plan import Plan, plan, remaining, unchanged, without_none
from ..client import WikiClient
from ..service import SERVICE
from .cloud_permissions import CloudPermissions

_SPACE, _USER = "rest/api/space", "rest/api/user"
_ADMINISTER = "space:administer"
_MOST_COUNTED = 200
#: Maximum number of subjects in a request [wiki-21].
_MAX_SUBJECTS = 40
_ATTEMPTS = 60
_ANONYMOUS = "anonymous"
#: Statuses of an address that a server does not have.
_NO_ROUTE = (404, 405, 410)
_NO_PERMISSIONS = "servers before 9.1 have no interface for permissions of a space"

#: Sorted operations, such as `page:create`, by subject: `group:NAME`, `user:KEY` or `anonymous`.
Permissions = dict[str, list[str]]


class Spaces:
    """Read and write the spaces of a wiki."""

    def __init__(self, client: WikiClient) -> None:
        self._client, self.cloud = client, CloudPermissions(client, _OPERATIONS)
        self._parts_set = 0

    @property
    def permission_writes(self) -> int:
        """Return the number of requests that have changed permissions."""
        return self._parts_set + self.cloud.writes

    @property
    def in_cloud(self) -> bool:
        return self._client.version == 2 or self._client.is_in_cloud

    def read(self, key: str) -> dict[str, Any] | None:
        """Return `id`, `name`, `description` and `home_page` (its title), or None if missing."""
        return self._client.space(key)

    def content(self, key: str, home: str | None) -> str:
        """Describe the pages except the home page or, without such pages, the blog posts.

        Returns an empty string for a space without both.

        :param home: title of the home page, which no other page of the space has
        """
        purpose = f"counting the pages of the space {key}"
        pages = self._client.content_of(purpose, key, "page", _MOST_COUNTED)
        if len(pages) <= _MOST_COUNTED:  # otherwise, the list may be incomplete
            gone = self._client.predicted.removed_in(key)
            pages = [page for page in pages if str(member(page, "id")) not in gone]
        titles = [member(page, "title") for page in pages]
        besides = "" if home is None else f" besides its home page '{home}'"
        others = len(titles) - titles.count(home)
        if others:
            return _counted(others, "page", besides)
        purpose = f"counting the blog posts of the space {key}"
        try:
            posts = len(self._client.content_of(purpose, key, "blogpost", _MOST_COUNTED))
        except ToolchainError as error:
            if error.status != 404:
                raise
            posts = 0  # a wiki without blogs
        return _counted(posts, "blog post") if posts else ""

    def create(self, key: str, wanted: Mapping[str, Any]) -> None:
        self._client.send(
            f"creating the space {key}",
            "POST",
            _SPACE,
            (200, 201),
            json={"key": key, **_sent(wanted)},
            verify=lambda: self.read(key) is not None,
        )

    def update(self, key: str, wanted: Mapping[str, Any], home: str | None) -> None:
        """Change a space.

        :param home: id of the new home page; None means unchanged
        """
        members = {**_sent(wanted), **({} if home is None else {"homepage": {"id": home}})}
        if key.startswith("~"):  # without its type, a personal space would become a global one
            members["type"] = "personal"
        self._client.send(
            f"changing the space {key}",
            "PUT",
            f"{_SPACE}/{path(key)}",
            (200,),
            json=members,
            verify=lambda: not plan(self.read(key), wanted).changed,
            repeatable=True,
        )

    def delete(self, key: str) -> bool:
        """Delete a space and wait up to 50 seconds. Return whether it is gone."""
        self._client.send(
            f"deleting the space {key}",
            "DELETE",
            f"{_SPACE}/{path(key)}",
            (200, 202, 204),
            verify=lambda: self.read(key) is None,
            repeatable=True,
        )
        for attempt in range(_ATTEMPTS):
            if self.read(key) is None:
                return True
            time.sleep(min(1.0, 0.05 * (attempt + 1)))
        return False

    # -- permissions ---------------------------------------------------------------------------

    def require_permissions(self, key: str, operations: Sequence[str] = ()) -> None:
        """Raise an error if the cloud cannot manage the permissions, or one of the operations."""
        if self.in_cloud:
            self.cloud.require(key, operations)

    def permissions(self, key: str) -> Permissions:
        self.require_permissions(key)
        if self.in_cloud:
            return self.cloud.read(key)
        purpose = f"reading the permissions of the space {key}"
        try:
            response = self._client.ask(purpose, f"{_SPACE}/{path(key)}/permissions", {}, (200,))
        except ToolchainError as error:
            if error.status == 500:  # the server's response if a permission is missing
                error.kind = "permission"
                error.with_hint("the account must have the permission to administer the space")
            raise _without_interface(error) from None
        found: dict[str, set[str]] = {}
        for permission in expected(response, list, "a list of permissions"):
            subject = _subject(member(permission, "subject"))
            pair = member(permission, "operation")
            target, operation = member(pair, "targetType"), member(pair, "operationKey")
            if subject is None or not target or not operation:
                raise unexpected_body(response, "a subject and an operation in each permission")
            found.setdefault(subject, set()).add(f"{target}:{operation}")
        return {subject: sorted(operations) for subject, operations in found.items()}

    def require_interface(self) -> None:
        """Raise `rejected` if the server has no interface for permissions.

        A space that does not exist yet cannot show it, so the permissions of another one are read.
        """
        error = self._interface_error
        if error is not None:
            raise error.with_message(error.message)  # each entry has its own

    @cached_property
    def _interface_error(self) -> ToolchainError | None:
        if self.in_cloud:
            return None
        purpose = "searching for a space that shows whether the wiki has permissions of spaces"
        response = self._client.ask(purpose, _SPACE, {"limit": 1}, (200, 400, 403, 404, 405))
        listed = json_objects(member(json_or_none(response.body), "results"))
        try:
            if listed and listed[0].get("key"):
                self.permissions(as_text(listed[0]["key"]))
        except ToolchainError as error:
            if error.kind == "rejected":
                return error
            if error.kind in STOPPING:
                raise
        return None

    def set_permissions(self, key: str, wanted: Permissions) -> None:
        """Replace the operations of the given subjects. Other subjects stay unchanged."""
        if self.in_cloud:
            self.cloud.set(key, wanted)
            return
        subjects = list(wanted)
        for begin in range(0, len(subjects), _MAX_SUBJECTS):
            part = {name: wanted[name] for name in subjects[begin : begin + _MAX_SUBJECTS]}
            self._set_part(key, part)
            self._parts_set += 1

    def _set_part(self, key: str, wanted: Permissions) -> None:
        def done() -> bool:
            now = self.permissions(key)
            return all(now.get(name, []) == operations for name, operations in wanted.items())

        body = []
        for subject, operations in wanted.items():
            kind, _colon, name = subject.partition(":")
            holder = {} if kind == _ANONYMOUS else {_MEMBERS[kind]: name}
            pairs = [operation.partition(":") for operation in operations]
            listed = [{"targetType": pair[0], "operationKey": pair[2]} for pair in pairs]
            body.append({**holder, "operations": listed})
        try:
            self._client.send(
                f"setting the permissions of the space {key}",
                "POST",
                f"{_SPACE}/{path(key)}/permissions",
                (200, 201, 204),
                json=body,
                verify=done,
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status not in (400, 404):
                raise _without_interface(error) from None
            for subject in wanted:
                self.require_subject(subject)
            self.permissions(key)  # a user is unknown, unless this has no interface either
            raise

    def require_subject(self, subject: str) -> None:
        """Raise `not_found` for a group, or an account of the cloud, that does not exist."""
        kind, _colon, name = subject.partition(":")
        if kind == "group" and self.in_cloud:
            self.cloud.require_group(name)
        elif kind == "group":
            self._client.require_named(kind, name)
        elif kind == "user" and self.in_cloud:
            self._client.require_named(kind, name, "accountId")

    def user_key(self, name: str) -> str:
        """Return the key of a user, in the cloud the account id.

        Raises `not_found` if the user does not exist.
        """
        if self.in_cloud:
            return name
        return self._user(f"user '{name}'", {"username": name}, "userKey")

    def user_name(self, key: str) -> str:
        """Return the name of a user, in the cloud the account id.

        Raises `not_found` if the user does not exist.
        """
        if self.in_cloud:
            return key
        return self._user(f"user with the key {key}", {"key": key}, "username")

    def _user(self, named: str, query: Mapping[str, str], wanted: str) -> str:
        """Return the member `wanted` of the user that a query finds."""
        response = self._client.ask(f"searching for the {named}", _USER, query, (200, 404))
        found = member(response.json(), wanted) if response.status == 200 else None
        if found is None:
            raise response.error("not_found", f"there is no {named}")
        return str(found)

    def own_account(self) -> tuple[str, set[str]]:
        """Return the name of the task's account; and its key and groups as subjects."""
        response = self._client.ask("reading the task's account", f"{_USER}/current", {}, (200,))
        identity = ("accountId", "accountId") if self.in_cloud else ("username", "userKey")
        name, key = (member(response.json(), known) for known in identity)
        if not name or not key:
            raise unexpected_body(response, "the name and the key of the task's account")
        groups = self._client.groups_of({identity[0]: str(name)})
        return str(name), {f"user:{key}", *(f"group:{group}" for group in groups)}


def _counted(count: int, noun: str, suffix: str = "") -> str:
    """Return a number with its noun."""
    shown = f"at least {_MOST_COUNTED}" if count >= _MOST_COUNTED else str(count)
    return f"{shown} {noun}{'' if count == 1 else 's'}{suffix}"


_MEMBERS = {"group": "groupName", "user": "userKey"}


def administers(permissions: Permissions, subjects: set[str]) -> bool:
    """Return whether one of the subjects may administer the space."""
    return any(_ADMINISTER in permissions.get(subject, ()) for subject in subjects)


def _subject(shown: Any) -> str | None:
    """Return the subject of a permission, or None if a user or group has no name."""
    kind = member(shown, "type")
    if kind in (None, _ANONYMOUS):
        return _ANONYMOUS
    name = member(shown, "name" if kind == "group" else "userKey")
    return f"{'group' if kind == 'group' else 'user'}:{name}" if name else None


def _sent(wanted: Mapping[str, Any]) -> dict[str, Any]:
    sent = {name: value for name, value in wanted.items() if name == "name"}
    if "description" in wanted:
        plain = {"value": wanted["description"], "representation": "plain"}
        sent["description"] = {"plain": plain}
    return sent


def _without_interface(error: ToolchainError) -> ToolchainError:
    if error.status in _NO_ROUTE:
        error.kind = "rejected"
        error.with_hint(_NO_PERMISSIONS)
    return error


_KEY = re.compile(r"~?[A-Za-z0-9._-]{1,255}")
#: Permissions of a space, as operations on targets [wiki-21].
_OPERATIONS = (
    *("space:read", "space:administer", "space:export", "space:restrict"),
    *("space:delete_own", "space:delete_mail", "page:create", "page:delete"),
    *("blogpost:create", "blogpost:delete", "comment:create", "comment:delete"),
    *("attachment:create", "attachment:delete"),
)
#: An operation that only servers have.
_DELETE_MAIL = "space:delete_mail"
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
        Rule("permissions_mode", requires="permissions"),
    )

    key: Annotated[str, Option(secret=False, segment=True)]
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
                if operation not in _OPERATIONS:
                    raise invalid(
                        f"permissions[{number}].operations contains {excerpt(operation)}: use"
                        f" {', '.join(_OPERATIONS)}"
                    )


@dataclass(frozen=True)
class WikiSpaceOptions(SpaceEntry):
    """The options of `wiki_space`."""

    entries: Annotated[list[SpaceEntry] | None, Option(empty=False)] = None
    unsupported: Literal["fail", "report"] = "fail"


class WikiSpaceOperation(Objects[SpaceEntry, Any]):
    """Manage spaces. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
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
        kind = SpaceKind(task, reports=options.unsupported == "report")
        super().__init__(kind, *entries_of(options, SpaceEntry))


class SpaceKind(ItemKind[SpaceEntry, Any]):
    """Spaces as entries. Each space takes a request, and another request for its permissions."""

    noun = "space"

    def __init__(self, task: Task, *, reports: bool) -> None:
        super().__init__(task)
        #: Whether permissions that the server cannot hold are reported instead of an error.
        self._reports = reports
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
        unsupported: list[str] = []
        if entry.permissions is not None:
            entry, before, unsupported = self._supported(entry, is_new=found is None)
            if entry.permissions is not None:
                found = None if found is None else {**found, "permissions": before}
                wanted["permissions"] = self._permissions(entry, before)
        made = plan(found, wanted).with_unsupported(unsupported)
        blank = {"name": entry.key, "description": "", "home_page": None}
        shown = {"id": number, "key": entry.key, **blank, **made.before, **made.after}
        return made.with_result(space=shown).with_data(home)

    def _supported(
        self, entry: SpaceEntry, *, is_new: bool
    ) -> tuple[SpaceEntry, Permissions, list[str]]:
        """Return an entry without what the server cannot hold, the present permissions, and a
        sentence for each part that was left out. Without `reports`, such a part is an error.
        """
        unsupported: list[str] = []
        given = entry.permissions or ()
        if self._reports and self._spaces.in_cloud:
            held = [
                replace(one, operations=[name for name in one.operations if name != _DELETE_MAIL])
                for one in given
            ]
            if held != [*given]:
                unsupported.append(f"Confluence Cloud has no operation {_DELETE_MAIL}")
                entry = replace(entry, permissions=[one for one in held if one.operations])
        before: Permissions = {}
        try:
            operations = [name for one in entry.permissions or () for name in one.operations]
            self._spaces.require_permissions(entry.key, operations)
            for permission in entry.permissions or ():
                self._subject(permission)  # collects the keys of users for _with_names()
            if is_new:
                self._spaces.require_interface()
            else:
                before = self._with_names(self._spaces.permissions(entry.key))
        except ToolchainError as error:
            unsupported = [self._left_out(error)]
            entry = replace(entry, permissions=None)
        for sentence in unsupported:
            self._task.warn(f"the space {entry.key}: {sentence}")
        return entry, before, unsupported

    def _left_out(self, error: ToolchainError) -> str:
        """Return the sentence about permissions that cannot be managed. Raises other errors."""
        if not self._reports or error.kind != "rejected":
            raise error
        return f"its permissions are left alone: {error.message}"

    def _removal(self, entry: SpaceEntry, found: dict[str, Any] | None) -> Plan:
        if found is None:
            return unchanged({"space": None})
        content = "" if entry.force else self._spaces.content(entry.key, found["home_page"])
        if content:
            raise conflict(f"the space {entry.key} has {content}: set force to delete them with it")
        return plan(found, None).with_result(space=None)

    def _home(self, key: str, title: str) -> str:
        page = self._client.find(f"searching for the page '{title}'", key, title)
        if page is None:
            raise not_found(f"home_page: there is no page '{title}' in {key}")
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
        if self._spaces.in_cloud:
            self._spaces.cloud.require_reading(after)
        if not entry.force and before and after != before:
            account, held = self._spaces.own_account()
            subjects = {self._named(subject) for subject in held}
            if administers(before, subjects) and not administers(after, subjects):
                raise invalid(
                    f"the task's account {account} would no longer administer the space"
                    f" {entry.key}: keep space:administer for it, or set force"
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

    def foresee(self, item: Item[SpaceEntry, Any]) -> None:
        """Raise `not_found` for an added group or account that does not exist.

        compare() has found the users of a server.
        """
        if any(change.field == "permissions" for change in item.plan.changes):
            before = (item.plan.before or {}).get("permissions", {})
            for subject in _granted(item.plan):
                if subject not in before:
                    self._spaces.require_subject(subject)

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
            keys = {f"user:{name}": f"user:{key}" for key, name in self._keys.items()}
            granted = {keys.get(name, name): held for name, held in _granted(plan).items()}
            before = self._spaces.permission_writes
            try:
                self._spaces.set_permissions(entry.key, granted)
            except ToolchainError as error:
                if self._spaces.permission_writes > before:
                    raise  # some of them are set: they are not left alone
                sentence = self._left_out(error)
                self._task.warn(f"the space {entry.key}: {sentence}")
                known = plan.result.get("unsupported", ())
                changes = tuple(each for each in plan.changes if each.field != "permissions")
                left = replace(plan, changes=changes) if changes else unchanged(plan.result)
                item.plan = left.with_unsupported([*known, sentence])
                item.returned = {**item.returned, "unsupported": [*known, sentence]}

    def left(self, item: Item[SpaceEntry, Any]) -> Plan | None:
        """Read the space again. A new space may not be found at once, and deletion takes time."""
        now = None if item.plan.action == "delete" else self._spaces.read(item.entry.key)
        if now is None:
            return remaining(item.plan, None) if item.plan.action == "update" else None
        item.returned = {**item.returned, "space": {**item.plan.result["space"], **now}}
        if any(change.field == "permissions" for change in item.plan.changes):
            held = self._with_names(self._spaces.permissions(item.entry.key))
            # a new space has permissions that the server gives it
            sent = {name: held.get(name, []) for name in _granted(item.plan)}
            seen = {**item.plan.after["permissions"], **sent}
            now = {**now, "permissions": {name: there for name, there in seen.items() if there}}
        return remaining(item.plan, now)

    def predict(self, item: Item[SpaceEntry, Any]) -> None:
        self._task.predictions.follow(self.noun, item.entry.key, item.plan.action)


def _granted(made: Plan) -> Permissions:
    """Return the operations of all whose permissions the plan changes."""
    before, after = made.before.get("permissions", {}), made.after["permissions"]
    return {
        name: after.get(name, [])
        for name in {**before, **after}
        if before.get(name, []) != after.get(name, [])
    }
