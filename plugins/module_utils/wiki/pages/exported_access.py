# SPDX-License-Identifier: GPL-3.0-or-later
"""Export spaces and the restrictions of pages as entries of a desired state."""

from __future__ import annotations

from typing import Any

from ...core.errors import ToolchainError
from ...core.export.service_export import ServiceState
from ...core.module import typed_options
from ..client import WikiClient
from ..page import Page
from .restrictions import OPERATIONS, PageRights, Restrictions
from .spaces import Spaces
from .wiki_space import SpaceEntry, SpacePermission

#: Error kinds for content that the account may not read or the server does not support.
_UNREADABLE = ("not_found", "permission", "rejected")


class AccessReader:
    """Read spaces and restrictions. Those that cannot be read are listed in the state."""

    def __init__(self, client: WikiClient) -> None:
        self._spaces, self._restrictions = Spaces(client), Restrictions(client)

    def space(self, key: str, state: ServiceState) -> list[dict[str, Any]]:
        """Return a list with the entry of a space for `wiki_space`. Empty if it is unreadable."""
        try:
            found = self._spaces.read(key)
            if found is None:
                raise ToolchainError("not_found", "it does not exist, or is not visible")
            typed_options.check(SpaceEntry(key))
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "invalid"):
                raise
            state.leave_out("space", key, error.message)
            return []
        entry = {"key": key, "name": found["name"], "description": found["description"]}
        if found["home_page"] is not None:
            entry["home_page"] = found["home_page"]
        try:
            entry["permissions"] = self._permissions(key)
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "invalid"):
                raise
            state.leave_out("permissions", key, error.message)
        return [entry]

    def _permissions(self, key: str) -> list[dict[str, Any]]:
        """Return the permissions of a space as entries.

        Raises `ToolchainError` if an entry cannot express a permission. Importing the list without
        it would remove the permission, because the list is exact.
        """
        entries = [
            self._permission(*item) for item in sorted(self._spaces.permissions(key).items())
        ]
        typed_options.check(
            SpaceEntry(key, permissions=[SpacePermission(**entry) for entry in entries])
        )
        return entries

    def _permission(self, subject: str, operations: list[str]) -> dict[str, Any]:
        kind, _colon, name = subject.partition(":")
        holder: dict[str, Any] = {kind: name or True}
        if kind == "user":
            holder = {kind: self._spaces.user_name(name)}
        return {**holder, "operations": operations}

    def restrictions(self, page: Page) -> PageRights | ToolchainError:
        """Return the restrictions of a page, or the error if they cannot be read."""
        try:
            return self._restrictions.of(page)
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "protocol"):
                raise
            return error


def restriction_entry(space: str, title: str, rights: PageRights) -> dict[str, Any]:
    """Return the entry of a page for `wiki_restriction`.

    A page without restrictions gets empty ones. A restriction that a user adds is then drift.
    """
    operations = {
        name: {kind: names for kind, names in rights[name].items() if names} for name in OPERATIONS
    }
    return {"space": space, "title": title, **operations}
