# SPDX-License-Identifier: GPL-3.0-or-later
"""Translate the accounts in an entry of the desired state: names of the folder to accounts of a
server, and back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import invalid, listed

_STEP = re.compile(r"\w+|\[\]|\{\}|\*|:")


def translated(entry: Any, places: Sequence[str], translate: Callable[[str], str]) -> Any:
    """Return a copy of an entry with its accounts translated, each of them once.

    Names of a list that get the same account are listed once. Raises `invalid` if two keys of a
    mapping get the same account, because their values may differ.

    :param places: where the accounts are, such as `users[]`. `[]` are the items of a list, `{}` the
        keys of a mapping, `*` its values, and `:` the text after the last colon
    """
    for place in places:
        entry = _translated(entry, _STEP.findall(place), translate)
    return entry


def _translated(value: Any, steps: Sequence[str], translate: Callable[[str], str]) -> Any:
    if not steps:
        return translate(value) if isinstance(value, str) and value.strip() else value
    step, rest = steps[0], steps[1:]
    if step == "[]" and isinstance(value, list):
        items = [_translated(item, rest, translate) for item in value]
        if rest or items == value:
            return items
        return [item for number, item in enumerate(items) if item not in items[:number]]
    if step == ":" and isinstance(value, str) and ":" in value:
        start, colon, name = value.rpartition(":")
        return f"{start}{colon}{translate(name)}"
    if not isinstance(value, Mapping):
        return value
    if step == "{}":
        return _with_keys(value, translate)
    if step == "*":
        return {key: _translated(item, rest, translate) for key, item in value.items()}
    return {**value, step: _translated(value[step], rest, translate)} if step in value else value


def _with_keys(value: Mapping[str, Any], translate: Callable[[str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, item in value.items():
        account = translate(str(name))
        if account in found:
            raise invalid(
                f"{names[account]} and {name} are both the account {account}: join their entries"
            )
        found[account], names[account] = item, name
    return found


@dataclass
class AccountNames:
    """The names that the desired state has for the accounts of a server.

    :param accounts: account by name
    :param preferred: names that go before others of the same account
    :param required: an account without a name is an error
    :param problems: why accounts have no name, or no unique one
    """

    accounts: Mapping[str, str]
    preferred: Collection[str] = ()
    required: bool = False
    problems: list[str] = field(default_factory=list)

    def name_of(self, account: str) -> str:
        """Return the name of an account, which is the account itself if the mapping lacks it.

        If the name is not certain, add a problem.
        """
        names = [name for name, each in self.accounts.items() if each == account]
        names = [name for name in names if name in self.preferred] or names
        if len(names) == 1:
            return names[0]
        problem = ""
        if names:
            problem = f"{account} has the names {', '.join(sorted(names))}: leave one of them"
        elif account in self.accounts:
            problem = (
                f"{account} has no name, and the name {account} is that of"
                f" {self.accounts[account]}: add a line with another name for it"
            )
        elif self.required:
            problem = f"{account} has no name: add a line for it"
        if problem and problem not in self.problems:
            self.problems.append(problem)
        return account

    def require_names(self) -> None:
        """Raise `invalid` with all problems."""
        if self.problems:
            raise invalid(
                "desired_state_accounts does not tell the names of accounts on the server:"
                f" {listed(self.problems, 100)}"
            )
