# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts of the server [tracker-23], and permissions of the account of the task [tracker-28]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..core.errors import ToolchainError, invalid
from ..core.http.messages import expected, json_or_none, unexpected_body
from ..core.http.paged_list import PagedList
from ..core.json_text import as_text, member
from .client import TrackerClient, describe

Account = Mapping[str, Any]

#: Number of accounts per page, and the number after which the cloud sends no more.
_PAGE_SIZE, _MAX_ACCOUNTS = 50, 1000
#: Members that identify an account. A deleted account has none of them.
_IDENTITIES = ("accountId", "key", "name")


class Accounts:
    """Find accounts: on a server by name or key, in the cloud by id, email or display name.

    :param warn: shows a warning to the user
    """

    def __init__(self, client: TrackerClient, warn: Callable[[str], None], *, cloud: bool) -> None:
        self._client, self._warn, self._cloud = client, warn, cloud
        #: Member with the id of an account in requests.
        self.member = "accountId" if cloud else "name"
        self._names = ("displayName", "emailAddress") if cloud else ("name", "key")
        self._found: dict[str, str] = {}

    def id_of(self, name: str, place: str, known: Iterable[Account] = ()) -> str:
        """Return the id of an account in requests.

        Raises `not_found` if no account has the name, and `invalid` if several have it.

        :param place: the option, for messages
        :param known: accounts that the object has: their ids need no search, and a search does not
            find disabled accounts
        """
        name = name.strip()
        there = [account for account in known if self._number(account)]
        for account in there:
            if self.has_id(account, name):
                return self._number(account)
        if name not in self._found:
            try:
                self._found[name] = self._searched(name, place)
            except ToolchainError as error:
                names = (*self._names, "displayName", "emailAddress")
                called = [account for account in there if _is_called(account, name, names)]
                if error.kind != "not_found" or not called:
                    raise
                return self._only(called, name, place)
        return self._found[name]

    def named(self, name: str) -> Account | None:
        """Return the account with an id, on a server with a name or key, or None."""
        purpose = f"searching for the account '{name}'"
        for option in ("accountId",) if self._cloud else ("username", "key"):
            response = self._client.read(
                purpose, "rest/api/2/user", query={option: name}, expect=(200, 400, 404)
            )
            if response.status == 200:
                shown: Account = expected(response, dict, "an account")
                if _is_called(shown, name, (self.member, *(() if self._cloud else self._names))):
                    return shown
        return None

    def with_email(self, email: str, place: str) -> list[Account]:
        """Return the accounts that a search for an email address finds: those that have it, and
        those whose address the server hides.
        """
        purpose = f"searching for the account '{email}'"
        listed = self._listed(purpose, email, place)
        return [
            account
            for account in listed
            if not account.get("emailAddress") or _is_called(account, email, ("emailAddress",))
        ]

    def has_id(self, account: Account, number: str) -> bool:
        """Return whether an account has this id. User names are case-insensitive."""
        return self._number(account).casefold() == number.casefold()

    def _number(self, account: Account) -> str:
        """Return the id of an account, or "" if it has none, such as a deleted account."""
        return as_text(account.get(self.member))

    def _searched(self, name: str, place: str) -> str:
        purpose = f"searching for the account '{name}'"
        query = {self.member if self._cloud else "username": name}
        response = self._client.read(
            purpose, "rest/api/2/user", query=query, expect=(200, 400, 404)
        )
        if response.status == 200:
            shown: Account = expected(response, dict, "an account")
            names = (self.member, *(() if self._cloud else self._names))
            if _is_called(shown, name, names) and self._number(shown):
                return self._number(shown)
        listed = self._listed(purpose, name, place)
        called = [account for account in listed if _is_called(account, name, self._names)]
        if not called and self._cloud and "@" in name:
            called = self._hidden(listed, name, place)
        if not called:
            raise response.error(
                "not_found", f"{place}: there is no such account", describe(response)
            )
        return self._only(called, name, place)

    def _listed(self, purpose: str, name: str, place: str) -> list[Account]:
        """Return the accounts that a search by the start of their names finds."""
        pages = PagedList(_PAGE_SIZE)
        while len(pages.entries) < _MAX_ACCOUNTS:
            query = {"query" if self._cloud else "username": name, "maxResults": _PAGE_SIZE}
            response = self._client.read(
                purpose,
                "rest/api/2/user/search",
                query={**query, **({"startAt": pages.start} if pages.start else {})},
                expect=(200, 404),
            )
            found = response.status == 200
            records = expected(response, list, "a list of accounts") if found else []
            if not pages.add(response, {}, records):
                accounts = (entry for entry in pages.entries if isinstance(entry, Mapping))
                return [account for account in accounts if self._number(account)]
        raise invalid(
            f"{place}: '{name}' is the start of the name of {len(pages.entries)} accounts: use the"
            f" {self.member} instead"
        )

    def _hidden(self, listed: list[Account], name: str, place: str) -> list[Account]:
        """Return the accounts of a search whose email addresses the server hides."""
        hidden = [account for account in listed if not account.get("emailAddress")]
        if len(listed) == 1 and hidden:
            self._warn(
                f"{place}: the server hides the email address of the account that it finds for"
                f" '{name}': {self._shown(hidden[0])}. Check that this is the right account"
            )
            return hidden
        return listed if hidden else []

    def _only(self, accounts: list[Account], name: str, place: str) -> str:
        """Return the id of the only account. Raises `invalid` for several."""
        ids = {self._number(account): account for account in accounts}
        if len(ids) > 1:
            several = ", ".join(sorted(map(self._shown, ids.values())))
            raise invalid(
                f"{place}: several accounts match '{name}': use the {self.member} of one of them:"
                f" {several}"
            )
        return next(iter(ids))

    def _shown(self, account: Account) -> str:
        return f"{as_text(account.get('displayName'))} ({self._number(account)})".lstrip()


def _is_called(account: Account, name: str, members: Iterable[str]) -> bool:
    """Return whether one of the members is the name. A missing member is no name."""
    return name.casefold() in (as_text(account.get(member)).casefold() for member in members)


def own_account(client: TrackerClient, **query: str) -> Mapping[str, Any]:
    """Return the account of the task. Raises `protocol` if the response is no account."""
    response = client.read("reading the task's account", "rest/api/2/myself", query=query)
    account = expected(response, dict, "an account")
    if identity(account) is None:
        raise unexpected_body(response, "an account")
    return account


def identity(account: Any) -> str | None:
    """Return the first of the members that identify an account, or None."""
    found = (member(account, name) for name in _IDENTITIES)
    return next((str(value) for value in found if value), None)


#: Permissions of a project, and the permission of the server that includes them [tracker-28].
_INCLUDED_IN = {"ADMINISTER_PROJECTS": "ADMINISTER"}


def lacking(client: TrackerClient, permissions: Sequence[str], **where: str) -> list[str]:
    """Return the permissions that the account lacks.

    A permission that the server does not report counts as granted.

    :param where: `issueKey` or `projectKey`
    """
    wider = [_INCLUDED_IN[name] for name in permissions if name in _INCLUDED_IN]
    named = {**where, "permissions": ",".join([*permissions, *wider])}
    purpose, route = "reading the permissions of the account", "rest/api/2/mypermissions"
    known = None
    with suppress(ToolchainError):
        # only the cloud has the parameter with the names, and rejects a request without it
        query = named if client.known_cloud else where
        response = client.read(purpose, route, query=query, expect=(200, 400))
        if response.status == 400:
            response = client.read(purpose, route, query=named)
        known = member(json_or_none(response.body), "permissions")

    def is_denied(name: str) -> bool:
        return member(known, name, "havePermission") is False

    return [
        name
        for name in permissions
        if is_denied(name) and (name not in _INCLUDED_IN or is_denied(_INCLUDED_IN[name]))
    ]


def require_permissions(
    client: TrackerClient, purpose: str, permissions: Sequence[str], **where: str
) -> None:
    """Raise `permission` if the account lacks a permission for a planned write."""
    if permissions:
        reject_missing(purpose, lacking(client, list(dict.fromkeys(permissions)), **where))


def reject_missing(purpose: str, missing: Sequence[str]) -> None:
    """Raise `permission` for a planned write if a permission is missing."""
    if missing:
        raise ToolchainError("permission", f"{purpose}: {describe_missing(missing)}")


def describe_missing(missing: Sequence[str]) -> str:
    """Return the error message for missing permissions."""
    return f"the account lacks the permission {' and '.join(missing)}"
