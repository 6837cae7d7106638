# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and set the restrictions of pages: who may read and update a page [wiki-19]."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ToolchainError
from ...core.http.messages import Response, unexpected_body
from .. import predicted_pages
from ..client import WikiClient, content_route
from ..page import Page, member

OPERATIONS = ("read", "update")
_KINDS = ("user", "group")
_MEMBERS = tuple(f"{name}.restrictions.{kind}" for name in OPERATIONS for kind in _KINDS)
#: Members to expand for the restrictions of a page [wiki-19].
EXPANSION = tuple(f"restrictions.{name}" for name in _MEMBERS)
_USER = "rest/api/user"


@dataclass(frozen=True)
class Account:
    """The account of the task. `member` is the name of its id in requests."""

    id: str
    member: str
    groups: frozenset[str] = frozenset()

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

    def of(self, page: Page) -> PageRights | None:
        """Return the restrictions of a page; read them if the page does not contain them.

        Returns None if the server does not report all users and groups.
        """
        shown = _shown(page)
        return _rights(self._read(page).json()) if shown is None else shown

    def require(self, page: Page) -> PageRights:
        """Like `of()`, but raise `protocol` instead of returning None."""
        shown = _shown(page)
        return self.read(page) if shown is None else shown

    def read(self, page: Page) -> PageRights:
        """Read the current restrictions. Raises `protocol` if they are incomplete."""
        response = self._read(page)
        found = _rights(response.json())
        if found is None:
            raise unexpected_body(response, "the complete restrictions of a page")
        return found

    def _read(self, page: Page) -> Response:
        purpose = f"reading the restrictions of the page '{page.title}' ({page.id})"
        route = content_route(page.id, "restriction", "byOperation")
        return self._client.ask(
            purpose, route, {"expand": ",".join(_MEMBERS), "limit": 200}, (200,)
        )

    def lost(self, before: PageRights, after: PageRights) -> tuple[str, str] | None:
        """Return the task's account and an operation that a change would forbid it, or None."""
        if before == after:
            return None
        restricted = [rights[name] for rights in (before, after) for name in OPERATIONS]
        account = self._account(groups=any(names["groups"] for names in restricted))
        for name in OPERATIONS:
            if account.is_admitted(before[name]) and not account.is_admitted(after[name]):
                return account.id, name
        return None

    def _account(self, *, groups: bool) -> Account:
        """Return the task's account, which is read once. `groups`: whether to read its groups."""
        with self._asking:
            if groups not in self._accounts:
                self._accounts[groups] = self._read_account(groups=groups)
            return self._accounts[groups]

    def _read_account(self, *, groups: bool) -> Account:
        purpose = "reading the task's account"
        reported = self._client.ask(purpose, f"{_USER}/current", {}, (200,)).json()
        name = "accountId" if member(reported, "accountId") else "username"
        account = Account(str(member(reported, name)), name)
        if not groups:
            return account
        return Account(account.id, name, self._client.groups_of({name: account.id}))

    def write(self, page: Page, wanted: PageRights) -> None:
        """Replace the restrictions of the given operations. Other operations stay unchanged.

        Raises `rejected` if the server does not support the change or did not save it.
        """
        purpose = f"setting the restrictions of the page '{page.title}' ({page.id})"
        known = next(iter(self._accounts.values()), None)
        named = (known or self._account(groups=False)).member
        body = [
            {
                "operation": name,
                "restrictions": {
                    "user": [{"type": "known", named: user} for user in names["users"]],
                    "group": [{"type": "group", "name": group} for group in names["groups"]],
                },
            }
            for name, names in wanted.items()
        ]
        try:
            response = self._client.send(
                purpose,
                "PUT",
                content_route(page.id, "restriction"),
                (200, 204),
                json=body,
                verify=lambda: not self._unsaved(page, wanted),
                repeatable=True,
            )
        except ToolchainError as error:
            if error.status == 405 or (error.status == 404 and error.kind == "not_found"):
                error.kind = "rejected"
                error.with_hint("servers before 8.8 have no interface for setting restrictions")
            raise
        unsaved = self._unsaved(page, wanted)
        if unsaved:
            message = f"the server accepted the change, but did not save {', '.join(unsaved)}"
            raise response.error("rejected", message)

    def _unsaved(self, page: Page, wanted: PageRights) -> list[str]:
        """Return the operations whose restrictions were not saved."""
        now = self.read(page)
        return [name for name, names in wanted.items() if not _same_names(now[name], names)]


def merged(before: PageRights, wanted: PageRights) -> PageRights:
    """Return the restrictions after a change. User names that only differ in case stay."""
    changed = {
        name: names for name, names in wanted.items() if not _same_names(before[name], names)
    }
    return {**before, **changed}


def unrestricted() -> PageRights:
    """Return the restrictions of a new page."""
    return {name: {"users": [], "groups": []} for name in OPERATIONS}


def _shown(page: Page) -> PageRights | None:
    """Return the restrictions in a page, or None. A predicted page is unrestricted."""
    if predicted_pages.is_id(page.id):
        return unrestricted()
    return _rights(page.content.get("restrictions"))


def _same_names(current: Mapping[str, list[str]], wanted: Mapping[str, list[str]]) -> bool:
    """Return whether users, ignoring case, and groups of two restrictions are equal."""
    users, wanted_users = (
        sorted(name.casefold() for name in set(names["users"])) for names in (current, wanted)
    )
    return users == wanted_users and set(current["groups"]) == set(wanted["groups"])


def _rights(shown: Any) -> PageRights | None:
    """Parse restrictions. Return None for a missing or incomplete list, or an unnamed entry.

    Incomplete restrictions would look less strict, and a save would remove the missing names.
    """
    found: PageRights = {}
    for name in OPERATIONS:
        listed = {kind: _names(member(shown, name, "restrictions", kind)) for kind in _KINDS}
        users, groups = listed["user"], listed["group"]
        if users is None or groups is None:
            return None
        found[name] = {"users": users, "groups": groups}
    return found


def _names(listed: Any) -> list[str] | None:
    results = member(listed, "results")
    if not isinstance(results, list) or member(listed, "_links", "next") is not None:
        return None
    names = ("accountId", "username", "name")
    found = [
        next(filter(None, (member(result, name) for name in names)), None) for result in results
    ]
    return None if None in found else sorted(map(str, found))
