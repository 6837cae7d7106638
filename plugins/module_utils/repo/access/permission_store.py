# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write permissions with Access or with the older API [repo-43]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...core import address
from .directory import Directory
from .permission_shapes import (
    RESOURCES,
    Part,
    from_access,
    from_older,
    to_access,
    to_older,
)


class PermissionStore:
    """The permissions of a server. Writes do not change resources that are not managed."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._rows: dict[str, Mapping[str, Any] | None] = {}

    def load(self, names: Sequence[str]) -> None:
        self._rows = self._directory.read_many(names)

    def resources(self, name: str) -> dict[str, Part] | None:
        """Return the managed resources of a permission by name; `None` if it does not exist."""
        row = self._rows.get(name)
        if row is None:
            return None
        return from_older(row) if self._directory.is_old else from_access(row)

    def require_storable(self, wanted: Mapping[str, Part]) -> None:
        """Raise `invalid` for resources that the API in use cannot store."""
        if self._directory.is_old:
            for name, part in wanted.items():
                to_older(name, part)

    def delete(self, name: str) -> None:
        self._directory.delete(name)

    def write(self, name: str, wanted: Mapping[str, Part], *, create: bool) -> None:
        """Create or update a permission, and read it again."""
        if self._directory.is_old:
            self._write_older(name, wanted, create=create)
        elif create:
            resources = {resource: to_access(part) for resource, part in wanted.items()}
            body = {"name": name, "resources": resources}
            purpose = f"creating the permission '{name}'"
            self._directory.write(purpose, "POST", "", lambda: self._has(name, wanted), body)
        else:
            self._update(name, wanted)
        self._rows[name] = self._directory.read(name)

    def _update(self, name: str, wanted: Mapping[str, Part]) -> None:
        """Replace each resource that differs: Access cannot update a whole permission."""
        current = self.resources(name) or {}
        for resource in RESOURCES:
            part = wanted.get(resource)
            if part == current.get(resource):
                continue
            path = f"/{address.path(name)}/{resource}"
            purpose = f"changing {resource} of the permission '{name}'"
            method = "DELETE" if part is None else "PUT"
            self._directory.write(
                purpose,
                method,
                path,
                partial(self._has_part, name, resource, part),
                None if part is None else to_access(part),
                repeatable=True,
            )

    def _write_older(self, name: str, wanted: Mapping[str, Part], *, create: bool) -> None:
        """Send the whole permission, because the server deletes missing resources [repo-43]."""
        row = dict(self._rows.get(name) or {"name": name})
        for resource, old in RESOURCES.items():
            row.pop(old, None)
            if resource in wanted:
                row[old] = to_older(resource, wanted[resource])
        purpose = f"{'creating' if create else 'changing'} the permission '{name}'"
        self._directory.write(
            purpose,
            "POST" if create else "PUT",
            f"/{address.path(name)}",
            lambda: self._has(name, wanted),
            row,
            repeatable=not create,
        )

    def _read(self, name: str) -> dict[str, Part] | None:
        self._rows[name] = self._directory.read(name)
        return self.resources(name)

    def _has_part(self, name: str, resource: str, part: Part | None) -> bool:
        return (self._read(name) or {}).get(resource) == part

    def _has(self, name: str, wanted: Mapping[str, Part]) -> bool:
        return self._read(name) == wanted
