# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and set the restrictions of pages: who may read and update a page [wiki-19]."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from ...core.errors import ToolchainError, invalid, not_found
from ...core.http import paged_list
from ...core.http.messages import json_or_none, unexpected_body
from ...core.json_text import as_text, member
from ...core.module.typed_options import Option
from ...core.plan import Change
from ...core.verification import not_saved
from ..additions import PageAddition
from ..client import WikiClient
from ..exchange import content_route
from ..page import Page, is_predicted, whole_results

OPERATIONS = ("read", "update")
_KINDS = ("user", "group")
_PLACES = tuple((name, kind) for name in OPERATIONS for kind in _KINDS)
_MEMBERS = tuple(f"{name}.restrictions.{kind}" for name, kind in _PLACES)
#: Members to expand for the restrictions of a page [wiki-19].
EXPANSION = tuple(f"restrictions.{name}" for name in _MEMBERS)
_USER = "rest/api/user"
#: Maximum number of users or groups in a response.
_LIMIT = 200


@dataclass(frozen=True)
class Account:
    """The account of the task. `member` is the name of its id in requests."""

    id: str
    member: str
    groups: frozenset[str] = frozenset()

    @property
    def is_in_cloud(self) -> bool:
        return self.member == "accountId"

    def is_admitted(self, names: Mapping[str, Any]) -> bool:
        """Return whether a restriction to `users` and `groups` admits the account.

        A restriction without any names admits everybody.
        """
        if not names["users"] and not names["groups"]:
            return True
        users = {name.casefold() for name in names["users"]}
        return self.id.casefold() in users or bool(self.groups & set(names["groups"]))


#: The sorted `users` and `groups` of each operation. Without any, everybody may perform it.
PageRights = dict[str, dict[str, list[str]]]


class Restrictions:
    """Read and write the restrictions of pages."""

    def __init__(self, client: WikiClient) -> None:
        self._client = client
        self._accounts: dict[bool, Account] = {}
        self._asking = threading.Lock()
        #: Ids of groups by name, in the cloud.
        self._group_ids: dict[str, str] = {}
        #: Users and groups of a server that `require_names()` has looked up.
        self._looked_up: set[tuple[str, str]] = set()

    def of(self, page: Page) -> PageRights:
        """Return the restrictions of a page; read them if the page does not contain all of them.

        Raises `protocol` if the server does not report all users and groups. A predicted page is
        unrestricted.
        """
        if is_predicted(page.id):
            return unrestricted()
        shown = {place: _whole(page.content.get("restrictions"), *place) for place in _PLACES}
        whole = {place: entries for place, entries in shown.items() if entries is not None}
        rights = self._rights(whole) if len(whole) == len(_PLACES) else None
        return self.read(page) if rights is None else rights

    def read(self, page: Page) -> PageRights:
        """Read the current restrictions. Raises `protocol` if they are incomplete."""
        purpose = f"reading the restrictions of the page '{page.title}' ({page.id})"
        route = content_route(page.id, "restriction", "byOperation")
        query = {"expand": ",".join(_MEMBERS), "limit": _LIMIT}
        response = self._client.ask(purpose, route, query, (200,))
        found = {}
        for place in _PLACES:
            entries = _whole(response.json(), *place)
            found[place] = self._members(purpose, page, *place) if entries is None else entries
        rights = self._rights(found)
        if rights is None:
            raise unexpected_body(response, "the name of every user and group")
        return rights

    def _members(self, purpose: str, page: Page, operation: str, kind: str) -> list[Any]:
        """Return all users or groups of an operation, after a response that lacks some.

        Raises `protocol` if the server does not list them separately.
        """
        route = content_route(page.id, "restriction", "byOperation", operation)

        def read(start: int, _link: Any) -> paged_list.Page:
            query = {"expand": f"restrictions.{kind}", "start": start, "limit": _LIMIT}
            response = self._client.ask(purpose, route, query, (200, 404))
            shown = member(json_or_none(response.body), "restrictions", kind)
            entries = member(shown, "results")
            if response.status != 200 or not isinstance(entries, list):
                raise unexpected_body(response, "the complete restrictions of a page")
            return paged_list.Page(response, shown, entries, member(shown, "_links", "next"))

        return paged_list.read_all(read, _LIMIT)

    def require_access(
        self, before: PageRights, after: PageRights, page: str, hint: str = "or set force"
    ) -> None:
        """Raise `invalid` if a change would forbid the task's account an operation.

        Raises `not_found` for a group that does not exist in the cloud.

        :param page: the page for the message
        """
        if before == after:
            return
        restricted = [rights[name] for rights in (before, after) for name in OPERATIONS]
        account = self._account(groups=any(names["groups"] for names in restricted))
        if account.is_in_cloud:
            self._cloud_body(after)
        for name in OPERATIONS:
            if account.is_admitted(before[name]) and not account.is_admitted(after[name]):
                raise invalid(
                    f"the task's account {account.id} would lose the permission to {name} {page}:"
                    f" add it to {name}, {hint}"
                )

    def require_names(self, before: PageRights, after: PageRights) -> None:
        """Raise `not_found` for an added user or group that the wiki does not have."""
        added = {
            (kind, name)
            for operation in OPERATIONS
            for kind in _KINDS
            for name in after[operation][f"{kind}s"]
            if name not in before[operation][f"{kind}s"]
        }
        if not added:
            return
        account = self._known_account()
        for kind, name in sorted(added - self._looked_up):
            if kind == "group" and account.is_in_cloud:
                self._cloud_group(name)
            else:
                self._client.require_named(kind, name, account.member)
        self._looked_up |= added

    def _known_account(self) -> Account:
        return next(iter(self._accounts.values()), None) or self._account(groups=False)

    def _account(self, *, groups: bool) -> Account:
        """Return the task's account, which is read once. `groups`: whether to read its groups."""
        with self._asking:
            if groups in self._accounts:
                return self._accounts[groups]
            response = self._client.ask(
                "reading the task's account", f"{_USER}/current", {}, (200,)
            )
            reported = response.json()
            name = "accountId" if member(reported, "accountId") else "username"
            if not member(reported, name):
                raise unexpected_body(response, "the name of the task's account")
            account = str(member(reported, name))
            held = self._client.groups_of({name: account}) if groups else frozenset()
            self._accounts[groups] = Account(account, name, held)
            return self._accounts[groups]

    def write(self, page: Page, before: PageRights, after: PageRights) -> None:
        """Set the restrictions of a page, and verify those of both operations.

        Raises `rejected` if the server does not support the change or did not save it, and
        `not_found` for a user or group that does not exist.
        """
        purpose = f"setting the restrictions of the page '{page.title}' ({page.id})"
        if self._known_account().is_in_cloud:
            body = self._cloud_body(after)
        else:  # servers keep the restrictions of operations that are left out [wiki-19]
            body = [
                {
                    "operation": name,
                    "restrictions": {
                        "user": [{"type": "known", "username": user} for user in names["users"]],
                        "group": [{"type": "group", "name": group} for group in names["groups"]],
                    },
                }
                for name, names in after.items()
                if names != before[name]
            ]
        try:
            self._client.send(
                purpose,
                "PUT" if body else "DELETE",
                content_route(page.id, "restriction"),
                (200, 204),
                verify=lambda: not self._unsaved(page, after),
                repeatable=True,
                **({"json": body} if body else {}),
            )
        except ToolchainError as error:
            if error.status in (400, 404):  # also the response if a user or group is unknown
                self.require_names(before, after)
            if error.status == 405 or (error.status == 404 and error.kind == "not_found"):
                error.kind = "rejected"
                error.with_hint("servers before 8.8 have no interface for setting restrictions")
            raise
        unsaved = self._unsaved(page, after)
        if unsaved:
            self.require_names(before, after)
            raise not_saved(purpose, unsaved)

    def _cloud_body(self, after: PageRights) -> list[dict[str, Any]]:
        """Return the restrictions of both operations, because a PUT in the cloud removes those of
        an operation without an entry [wiki-19]. Lists without entries are left out.
        """
        body = []
        for name, names in after.items():
            users = [{"type": "known", "accountId": user} for user in names["users"]]
            groups = [self._cloud_group(group) for group in names["groups"]]
            lists = {"user": users, "group": groups}
            present = {kind: entries for kind, entries in lists.items() if entries}
            if present:
                body.append({"operation": name, "restrictions": present})
        return body

    def _cloud_group(self, name: str) -> dict[str, str]:
        """Return a group as the cloud expects it: by id, or by name if the cloud reports no id.

        Raises `not_found` if the account may search for groups, and there is no such group.
        """
        purpose = f"searching for the group '{name}'"
        if name not in self._group_ids:
            try:
                found = self._client.listing(
                    purpose, "rest/api/group/picker", {"query": name}, "name"
                )
            except ToolchainError as error:
                if error.status not in (403, 404):
                    raise
            else:
                if name not in self._note_groups(found):
                    raise not_found(f"{purpose}: there is no such group")
        number = self._group_ids.get(name)
        return {"type": "group", **({"name": name} if number is None else {"id": number})}

    def _note_groups(self, groups: Sequence[Any]) -> set[str]:
        """Store the ids of groups. Return their names."""
        ids = {as_text(member(group, "name")): member(group, "id") for group in groups}
        self._group_ids.update({name: str(number) for name, number in ids.items() if number})
        return set(ids)

    def _unsaved(self, page: Page, wanted: PageRights) -> list[str]:
        """Return the operations whose restrictions were not saved."""
        now = self.read(page)
        return [name for name in OPERATIONS if not _same_names(now[name], wanted[name])]

    def _rights(self, found: Mapping[tuple[str, str], Sequence[Any]]) -> PageRights | None:
        """Return the restrictions with the names of users and groups. None for a missing name.

        Restrictions without that user or group would look less strict, and a save would remove it.

        :param found: users or groups by operation and kind
        """
        names = {}
        for place, entries in found.items():
            names[place] = [_name_of(entry) for entry in entries]
            if place[1] == "group":
                self._note_groups(entries)
        if any(None in listed for listed in names.values()):
            return None
        return {
            name: {f"{kind}s": sorted(map(str, names[name, kind])) for kind in _KINDS}
            for name in OPERATIONS
        }


def merged(before: PageRights, wanted: PageRights) -> PageRights:
    """Return the restrictions after a change. User names that only differ in case stay."""
    changed = {
        name: names for name, names in wanted.items() if not _same_names(before[name], names)
    }
    return {**before, **changed}


def unrestricted() -> PageRights:
    """Return the restrictions of a new page."""
    return {name: {"users": [], "groups": []} for name in OPERATIONS}


def _same_names(current: Mapping[str, list[str]], wanted: Mapping[str, list[str]]) -> bool:
    """Return whether users, ignoring case, and groups of two restrictions are equal."""
    users, wanted_users = (
        sorted(name.casefold() for name in set(names["users"])) for names in (current, wanted)
    )
    return users == wanted_users and set(current["groups"]) == set(wanted["groups"])


def _whole(shown: Any, operation: str, kind: str) -> list[Any] | None:
    """Return the users or groups of an operation, or None if some may be missing."""
    return whole_results(member(shown, operation, "restrictions", kind))


def _name_of(entry: Any) -> str | None:
    names = (member(entry, name) for name in ("accountId", "username", "name"))
    return next(filter(None, names), None)


_Names = Annotated[list[str], Option(empty=True)]


@dataclass(frozen=True)
class RestrictedTo:
    """The users and groups that may perform an operation. Without any, everybody may."""

    users: _Names = field(default_factory=list)
    groups: _Names = field(default_factory=list)


@dataclass(frozen=True)
class RestrictedOperations:
    """The users and groups that may read and update a page. None means not managed."""

    read: RestrictedTo | None = None
    update: RestrictedTo | None = None

    @property
    def wanted(self) -> PageRights:
        """Return the managed operations with their users and groups."""
        operations = {"read": self.read, "update": self.update}
        return {
            name: {"users": sorted(set(allowed.users)), "groups": sorted(set(allowed.groups))}
            for name, allowed in operations.items()
            if allowed is not None
        }


class PageRestrictions:
    """Plan and set the restrictions of a page. Raises `invalid` for options without an operation.

    :param store: reads and writes restrictions, shared by the pages of a task
    :param force: whether the task's account may lose a permission. It keeps those that the task
        needs to write the content
    :param before: restrictions of the page before the task
    """

    noun = "restrictions"

    def __init__(
        self,
        store: Restrictions,
        wanted: PageRights,
        *,
        force: bool,
        before: PageRights | None = None,
    ) -> None:
        if not wanted:
            raise invalid("restrictions has no operation: set read or update")
        self._store, self._wanted, self._force = store, wanted, force
        self._before = unrestricted() if before is None else before
        self._after = merged(self._before, wanted)

    def on(self, page: Page | None, *, saves: bool) -> PageRestrictions:
        """Compare the restrictions of a page, or of a new page if `page` is None.

        Raises `invalid` if the task's account would lose a permission.

        :param saves: whether the content is written after the restrictions
        """
        before = None if page is None else self._store.of(page)
        found = PageRestrictions(self._store, self._wanted, force=self._force, before=before)
        if saves:
            hint = "which the task needs to write the content"
            self._store.require_access(found._before, found._after, "the page", hint)
        elif not self._force:
            self._store.require_access(found._before, found._after, "the page")
        return found

    @property
    def change(self) -> Change | None:
        if self._before == self._after:
            return None
        return Change(self.noun, self._before, self._after)

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task."""
        rights = self._after if after else self._before
        return "".join(f"{name}: {_shown(rights[name])}\n" for name in OPERATIONS)

    def result(self) -> Any:
        return self._after

    def require_names(self) -> None:
        """Raise `not_found` for an added user or group that does not exist."""
        self._store.require_names(self._before, self._after)

    def apply(self, page: Page) -> None:
        self._store.write(page, self._before, self._after)


def require_names_of(additions: Sequence[PageAddition]) -> None:
    """Raise `not_found` for a user or group of the restrictions that does not exist."""
    for each in additions:
        if isinstance(each, PageRestrictions):
            each.require_names()


def restrict_of(additions: Sequence[PageAddition]) -> Callable[[Page], None] | None:
    """Return the function that sets the restrictions, or None if they do not differ.

    It is called before the content is saved, the others afterwards.
    """
    for each in additions:
        if isinstance(each, PageRestrictions) and each.change is not None:
            return each.apply
    return None


def _shown(names: Mapping[str, list[str]]) -> str:
    groups = [f"group {name}" for name in names["groups"]]
    return ", ".join([*names["users"], *groups]) or "everybody"
