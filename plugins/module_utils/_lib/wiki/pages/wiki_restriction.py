# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_restriction`: manage who may read and update a page [wiki-19]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid, not_found
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.operations.objects import Item, ItemKind, Objects, attempt_each, entries_of
from ...core.plan import Plan, plan
from ..client import WikiClient
from ..page import Page, composed, require
from ..service import SERVICE
from .restrictions import (
    EXPANSION,
    OPERATIONS,
    PageRights,
    RestrictedOperations,
    Restrictions,
    merged,
    unrestricted,
)

#: Maximum number of pages that are read concurrently.
_PARALLEL = 4


@dataclass(frozen=True)
class RestrictionEntry(RestrictedOperations):
    """Options for the restrictions of a page."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=OPERATIONS),
        Rule(requires=(*OPERATIONS, "state=absent")),
    )

    page_id: Segment | None = None
    space: str | None = None
    title: str | None = None
    force: bool = False
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` if the options name no page."""
        if self.page_id is None and (self.space is None or self.title is None):
            raise invalid("the page is missing: set page_id, or space and title")

    @property
    def wanted(self) -> PageRights:
        if self.state == "absent":
            return unrestricted()
        return super().wanted


@dataclass(frozen=True)
class WikiRestrictionOptions(RestrictionEntry):
    """The options of `wiki_restriction`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [["page_id", "space", "entries"]]}

    entries: Annotated[list[RestrictionEntry] | None, Option(empty=False)] = None


@dataclass(frozen=True)
class RestrictedPage:
    """A page with its restrictions."""

    page: Page
    rights: PageRights


class WikiRestrictionOperation(Objects[RestrictionEntry, RestrictedPage]):
    """Manage the restrictions of pages. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads("view"), "write": writes("view", "add")},
        kind="restriction",
        name="{page_id}{space}/{title}",
        listed="results",
    )

    def __init__(self, task: Task, options: WikiRestrictionOptions) -> None:
        super().__init__(RestrictionKind(task), *entries_of(options, RestrictionEntry))


class RestrictionKind(ItemKind[RestrictionEntry, RestrictedPage]):
    """Restrictions of pages as entries. Each page takes a request, in the cloud two requests."""

    noun = "restriction"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._client = WikiClient(task, rights=True, more=EXPANSION)
        self._restrictions = Restrictions(self._client)

    def name(self, entry: RestrictionEntry) -> str:
        return entry.page_id or f"{entry.space}/{entry.title}"

    def key(self, entry: RestrictionEntry) -> str:
        return composed(self.name(entry)).lower()

    def load(self, items: Sequence[Item[RestrictionEntry, RestrictedPage]]) -> None:
        def read(item: Item[RestrictionEntry, RestrictedPage]) -> None:
            page = self._page(item.entry)
            item.state = RestrictedPage(page, self._restrictions.of(page))

        attempt_each(read, items, _PARALLEL)
        names: dict[str, str] = {}
        for item in items:
            if item.state is not None:
                first = names.setdefault(item.state.page.id, item.name)
                if first != item.name:
                    message = f"'{item.name}' and '{first}' are the same page: list it once"
                    raise invalid(f"entries: {message}")

    def compare(self, item: Item[RestrictionEntry, RestrictedPage]) -> Plan:
        entry, page, before = item.entry, self._state(item).page, self._state(item).rights
        made = plan(before, merged(before, entry.wanted))
        if not entry.force:
            self._restrictions.require_access(before, made.after, f"the page {item.name}")
        return made.with_result(restriction=made.after, page=page.shown())

    def _state(self, item: Item[RestrictionEntry, RestrictedPage]) -> RestrictedPage:
        if item.state is None:
            raise AssertionError("load() has read every compared page")
        return item.state

    def _page(self, entry: RestrictionEntry) -> Page:
        name = self.name(entry)
        if entry.page_id is not None:
            return self._client.require(f"reading the page {name}", entry.page_id, entry.space)
        space, title = entry.space or "", entry.title or ""
        page = self._client.find(f"searching for the page '{title}'", space, title)
        page = page or self._client.predicted.by_title(space, title)
        if page is None:
            message = (
                f"there is no page '{title}' in the space {space}, or the account cannot see it"
            )
            raise not_found(message)
        return page

    def foresee(self, item: Item[RestrictionEntry, RestrictedPage]) -> None:
        purpose = f"setting the restrictions of the page {item.name}"
        require(purpose, self._state(item).page, "update")
        self._restrictions.require_names(item.plan.before, item.plan.after)

    def write(self, item: Item[RestrictionEntry, RestrictedPage]) -> None:
        self._restrictions.write(self._state(item).page, item.plan.before, item.plan.after)
