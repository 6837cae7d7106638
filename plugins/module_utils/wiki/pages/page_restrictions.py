# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `restrictions` of a page. Restrictions are set before the content [wiki-19]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

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
    :param before: restrictions of the page before the task
    """

    noun = "restrictions"

    def __init__(
        self,
        store: Restrictions,
        wanted: PageRights,
        *,
        force: bool,
        before: PageRights | None = None,
    ) -> None:
        if not wanted:
            raise invalid("restrictions has no operation: set read or update")
        self._store, self._wanted, self._force = store, wanted, force
        self._before = unrestricted() if before is None else before
        self._after = merged(self._before, wanted)

    def on(self, page: Page | None, *, saves: bool) -> PageRestrictions:
        """Compare the restrictions of a page, or of a new page if `page` is None.

        Raises `invalid` if the task's account would lose a permission.

        :param saves: whether the content is written after the restrictions
        """
        before = None if page is None else self._store.of(page)
        found = PageRestrictions(self._store, self._wanted, force=self._force, before=before)
        if saves:
            hint = "which the task needs to write the content"
            self._store.require_access(found._before, found._after, "the page", hint)
        elif not self._force:
            self._store.require_access(found._before, found._after, "the page")
        return found

    @property
    def change(self) -> Change | None:
        if self._before == self._after:
            return None
        return Change(self.noun, self._before, self._after)

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task."""
        rights = self._after if after else self._before
        return "".join(f"{name}: {_shown(rights[name])}\n" for name in OPERATIONS)

    def result(self) -> Any:
        return self._after

    def apply(self, page: Page) -> None:
        self._store.write(page, self._before, self._after)


class PageAddition(Protocol):
    """Restrictions, labels or attachments of a page, compared with the server.

    Their changes create no version of the page.
    """

    noun: str

    @property
    def change(self) -> Change | None:
        """Return the difference, or None."""

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task."""

    def result(self) -> Any:
        """Return the desired state, as the return value `noun`."""

    def apply(self, page: Page) -> None:
        """Write the difference."""


def changes_of(additions: Sequence[PageAddition]) -> list[Change]:
    return [change for each in additions if (change := each.change) is not None]


def restrict_of(additions: Sequence[PageAddition]) -> Callable[[Page], None] | None:
    """Return the function that sets the restrictions, or None if they do not differ.

    It is called before the content is saved, the others afterwards.
    """
    for each in additions:
        if isinstance(each, PageRestrictions) and each.change is not None:
            return each.apply
    return None


def _shown(names: Mapping[str, list[str]]) -> str:
    groups = [f"group {name}" for name in names["groups"]]
    return ", ".join([*names["users"], *groups]) or "everybody"
