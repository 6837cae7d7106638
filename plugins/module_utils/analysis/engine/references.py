# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that referenced accounts and roles exist, to report errors in check mode too [C1.6]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ...core.errors import ToolchainError
from ..client import AnalysisClient, Call
from ..responses import named
from .resource import Reference

#: Noun for an object of a kind, for messages.
_NOUNS = {"users": "user", "groups": "group", "roles": "role"}


def require(
    title: str, references: Iterable[Reference], existing: Callable[[Reference], Collection[str]]
) -> None:
    """Raise `not_found` for the first reference that does not exist.

    References are not verified if the server lists no object of their kind. Account names are
    case-insensitive, as in the LDAP directories that many servers use.

    :param title: the referring object, for example `the group 'x'`
    :param existing: returns the names of all objects of a reference's kind
    """
    for reference in sorted(references):
        kind, name = reference
        if kind not in _NOUNS:
            continue
        known = existing(reference)
        exact = kind == "roles"
        found = name in known if exact else name.lower() in {other.lower() for other in known}
        if known and not found:
            raise ToolchainError(
                "not_found", f"{title}: the {_NOUNS[kind]} '{name}' does not exist"
            )


def predicted(client: AnalysisClient, reference: Reference) -> bool:
    """Return whether an earlier task in check mode would create an account or a role."""
    kind, name = reference
    return client.predictions.get(_NOUNS.get(kind, kind), name) is not None


def names_on(client: AnalysisClient, limit: int) -> Callable[[Reference], Collection[str]]:
    """Return a function that returns the names of a reference's kind. It reads each kind once.

    :param limit: maximum number of users or groups to read
    """
    read: dict[str, list[str]] = {}

    def existing(reference: Reference) -> Collection[str]:
        kind, name = reference
        if kind not in read:
            parameters = {} if kind == "roles" else {"limit": limit}
            records = client.ask(f"reading the {kind}", Call(kind, parameters))
            read[kind] = [record["name"] for record in named(records)]
        if read[kind] and predicted(client, reference):
            return [*read[kind], name]
        return read[kind]

    return existing
