# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that referenced accounts and roles exist, so that check mode does not promise a write that
the server rejects [C1.6].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ...core.errors import ToolchainError
from ..client import AnalysisClient, Call
from ..responses import named
from .resource import Reference

#: Name of one object of a kind.
_NOUNS = {"users": "user", "groups": "group", "roles": "role"}


def require(
    title: str, references: Iterable[Reference], there: Callable[[Reference], Collection[str]]
) -> None:
    """Raise `not_found` for the first reference that does not exist.

    If the server lists nothing of a kind, its references cannot be verified. Accounts are
    case-insensitive, as in the directory that many servers use.

    :param title: the referring object, as `the group 'x'`
    :param there: returns the existing names of the kind of a reference
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


def predicted(client: AnalysisClient, reference: Reference) -> bool:
    """Return whether an earlier task in check mode would create an account or a role."""
    kind, name = reference
    return client.predictions.get(_NOUNS.get(kind, kind), name) is not None


def names_on(client: AnalysisClient, limit: int) -> Callable[[Reference], Collection[str]]:
    """Return a function that reads the names of a kind, once per kind."""
    read: dict[str, list[str]] = {}

    def there(reference: Reference) -> Collection[str]:
        kind, name = reference
        if kind not in read:
            parameters = {} if kind == "roles" else {"limit": limit}
            records = client.ask(f"reading the {kind}", Call(kind, parameters))
            read[kind] = [record["name"] for record in named(records)]
        if read[kind] and predicted(client, reference):
            return [*read[kind], name]
        return read[kind]

    return there
