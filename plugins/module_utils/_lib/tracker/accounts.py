# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the account that a name stands for [tracker-23]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.errors import ToolchainError, invalid
from ..core.http.messages import expected
from ..core.http.paged_list import PagedList
from ..core.json_text import as_text
from .client import TrackerClient, describe

Account = Mapping[str, Any]

#: Number of accounts per page, and the number after which the cloud sends no more.
_PAGE_SIZE, _MAX_ACCOUNTS = 50, 1000


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
