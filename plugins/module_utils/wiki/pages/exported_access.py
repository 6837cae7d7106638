# SPDX-License-Identifier: GPL-3.0-or-later
"""Spaces, and restrictions of pages, as entries of a desired state."""

from __future__ import annotations

from typing import Any

from ...core.errors import ToolchainError
from ...core.export.service_export import ServiceState
from ..client import WikiClient
from ..page import Page
from .restrictions import OPERATIONS, PageRights, Restrictions
from .spaces import Spaces
from .wiki_space import SpaceEntry, SpacePermission

#: Kinds of errors for content that the account cannot read, or that the server does not have.
_REFUSED = ("not_found", "permission", "rejected")
_INCOMPLETE = "the server does not report all users and groups"


class AccessReader:
    """Read spaces and restrictions; add those that cannot be read to `left_out` of a state."""

    def __init__(self, client: WikiClient) -> None:
        self._spaces, self._restrictions = Spaces(client), Restrictions(client)

    def space(self, key: str, state: ServiceState) -> list[dict[str, Any]]:
        """Return the entry of a space for `wiki_space` in a list; empty if it has none."""
        try:
            found = self._spaces.read(key)
            if found is None:
                raise ToolchainError("not_found", "it does not exist, or is not visible")
            SpaceEntry(key).require_sense()
        except ToolchainError as error:
            if error.kind not in (*_REFUSED, "invalid"):
                raise
            state.leave_out("space", key, error.message)
            return []
        entry = {"key": key, "name": found["name"], "description": found["description"]}
        if found["home_page"] is not None:
            entry["home_page"] = found["home_page"]
        try:
            entry["permissions"] = self._permissions(key)
        except ToolchainError as error:
            if error.kind not in (*_REFUSED, "invalid"):
                raise
            state.leave_out("permissions", key, error.message)
        return [entry]

    def _permissions(self, key: str) -> list[dict[str, Any]]:
        """Return the permissions of a space. Raises an error if a permission cannot be expressed:
        the exported list is exact, so it would remove that permission.
        """
        found = [self._permission(*item) for item in sorted(self._spaces.permissions(key).items())]
        SpaceEntry(key, permissions=[SpacePermission(**one) for one in found]).require_sense()
        return found

    def _permission(self, subject: str, operations: list[str]) -> dict[str, Any]:
        kind, _colon, name = subject.partition(":")
        whose: dict[str, Any] = {kind: name or True}
        if kind == "user":
            whose = {kind: self._spaces.user_name(name)}
        return {**whose, "operations": operations}

    def restrictions(self, page: Page) -> PageRights | ToolchainError:
        """Return the restrictions of a page, or the reason why they are unknown."""
        try:
            return self._restrictions.of(page) or ToolchainError("protocol", _INCOMPLETE)
        except ToolchainError as error:
            if error.kind not in _REFUSED:
                raise
            return error


def restriction_entry(space: str, title: str, rights: PageRights) -> dict[str, Any]:
    """Return the entry of a page for `wiki_restriction`.

    A page without restrictions has empty ones, so that a restriction that a user adds is drift.
    """
    operations = {
        name: {kind: names for kind, names in rights[name].items() if names} for name in OPERATIONS
    }
    return {"space": space, "title": title, **operations}
