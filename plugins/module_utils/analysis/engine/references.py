# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts and roles that a write refers to: check mode reads whether they are there, so that it
does not promise what the server would refuse [C1.6].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ...core.errors import ToolchainError
from ..client import AnalysisClient, Call
from ..responses import named
from .resource import Reference

#: What one of a kind is called.
_NOUNS = {"users": "user", "groups": "group", "roles": "role"}


def require(
    title: str, references: Iterable[Reference], there: Callable[[Reference], Collection[str]]
) -> None:
    """C(not_found) for the first of the references that is not there.

    A kind of which the server shows nothing cannot be judged. Accounts count in upper and lower
    case, as for the directory that many servers ask.

    :param title: the object that refers to them, as C(the group 'x')
    :param there: gives names of the kind of a reference, among which it is to be
    """
    for reference in sorted(references):
        kind, name = reference
        if kind not in _NOUNS:
            continue
        known = there(reference)
        exact = kind == "roles"
        found = name in known if exact else name.lower() in {each.lower() for each in known}
        if known and not found:
            raise ToolchainError("not_found", f"{title}: there is no {_NOUNS[kind]} '{name}'")


def names_on(client: AnalysisClient, limit: int) -> Callable[[Reference], Collection[str]]:
    """Reads the names of a kind, each kind once."""
    read: dict[str, list[str]] = {}

    def there(reference: Reference) -> Collection[str]:
        kind = reference[0]
        if kind not in read:
            parameters = {} if kind == "roles" else {"limit": limit}
            records = client.ask(f"reading the {kind}", Call(kind, parameters))
            read[kind] = [record["name"] for record in named(records)]
        return read[kind]

    return there
