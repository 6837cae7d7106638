# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `restrictions` of a page. Restrictions are set before the content [wiki-19]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from ...core.errors import invalid
from ...core.module.typed_options import Option
from ...core.plan import Change
from ..page import Page
from .restrictions import OPERATIONS, PageRights, Restrictions, merged, unrestricted

_Names = Annotated[list[str], Option(empty=True)]


@dataclass(frozen=True)
class RestrictedTo:
    """The users and groups that may perform an operation. Without any, everybody may."""

    users: _Names = field(default_factory=list)
    groups: _Names = field(default_factory=list)


@dataclass(frozen=True)
class RestrictedOperations:
    """The users and groups that may read and update a page. None means not managed."""

    read: RestrictedTo | None = None
    update: RestrictedTo | None = None

    @property
    def wanted(self) -> PageRights:
        """Return the managed operations with their users and groups."""
        operations = {"read": self.read, "update": self.update}
        return {
            name: {"users": sorted(set(allowed.users)), "groups": sorted(set(allowed.groups))}
            for name, allowed in operations.items()
            if allowed is not None
        }


class PageRestrictions:
    """Plan and set the restrictions of a page. Raises `invalid` for options without an operation.

    :param store: reads and writes restrictions, shared by the pages of a task
    :param force: whether the task's account may lose a permission. It keeps those that the task
        needs to write the content
    """

    def __init__(self, store: Restrictions, options: RestrictedOperations, *, force: bool) -> None:
        self._store, self._wanted, self._force = store, options.wanted, force
        if not self._wanted:
            raise invalid("restrictions has no operation: set read or update")
        self._before: PageRights = {}
        self._after: PageRights = {}

    def plan(self, page: Page | None, *, saves: bool) -> Change | None:
        """Compare the restrictions of a page, or of a new page if `page` is None.

        Raises `invalid` if the task's account would lose a permission.

        :param saves: whether the content is written after the restrictions
        """
        self._before = unrestricted() if page is None else self._store.of(page)
        self._after = merged(self._before, self._wanted)
        if self._before == self._after:
            return None
        lost = None if self._force and not saves else self._store.lost(self._before, self._after)
        if lost is not None:
            account, operation = lost
            hint = "which the task needs to write the content" if saves else "or set force"
            raise invalid(
                f"restrictions: the task's account {account} would lose the permission to"
                f" {operation} the page: add it to {operation}, {hint}"
            )
        return Change("restrictions", self._before, self._after)

    @property
    def change(self) -> Callable[[Page], None] | None:
        """Return the method `apply` if `plan()` found a difference, else None."""
        return self.apply if self._before != self._after else None

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task."""
        rights = self._after if after else self._before
        return "".join(f"{name}: {_shown(rights[name])}\n" for name in OPERATIONS)

    def result(self) -> Mapping[str, Any]:
        return {"restrictions": self._after}

    def apply(self, page: Page) -> None:
        """Set the restrictions if an operation differs."""
        if self._before != self._after:
            self._store.write(page, self._before, self._after)


def _shown(names: Mapping[str, list[str]]) -> str:
    groups = [f"group {name}" for name in names["groups"]]
    return ", ".join([*names["users"], *groups]) or "everybody"
