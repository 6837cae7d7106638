# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of a page of a tree, with its result, its diff and its change in a sealed plan [C9]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.module.sealing import PlannedChange
from ..formats.comparison import readable
from ..formats.parser import excerpt
from ..page import Page
from ..pages.restrictions import PageAddition, restrict_of
from .existing_pages import TreeMark, mark_of
from .source_files import ROOT
from .wanted_pages import WantedPage, title_key

#: Changes that create a new version of a page.
SAVED = frozenset({"body", "title", "parent"})


@dataclass
class PagePlan:
    """Plan of a page.

    `wanted`: None if the page will be deleted. `page`: the existing page; None if it is new.
    `fields`: names of the fields that differ. `parent`: title of the parent, for the diff.
    """

    path: str
    wanted: WantedPage | None
    page: Page | None
    fields: set[str] = field(default_factory=set)
    adopted: bool = False
    parent: str = "-"
    additions: Sequence[PageAddition] = ()

    @property
    def saves(self) -> bool:
        return bool(self.fields & SAVED)

    @property
    def action(self) -> str:
        if self.wanted is None:
            return "deleted"
        if self.page is None:
            return "created"
        named = {"parent": "moved", "title": "renamed"}
        changed = "adopted" if self.adopted else "updated" if self.fields else "unchanged"
        return next((word for name, word in named.items() if name in self.fields), changed)

    def shown(self, now: Page | None = None) -> dict[str, object]:
        """Return the entry in the return value `pages`. `now`: the written page."""
        page = now or self.page
        wanted = self.wanted
        saved = self.saves and (page is not None or self._is_created_empty)
        version = (1 if page is None else page.version) + int(now is None and saved)
        return {
            "path": self.path,
            "id": None if page is None else page.id,
            "title": page.title if wanted is None and page is not None else wanted and wanted.title,
            "version": version,
            "url": None if page is None else page.url,
            "action": self.action,
        }

    @property
    def restrict(self) -> Callable[[Page], None] | None:
        """Return the function that sets the restrictions, if they differ."""
        return restrict_of(self.additions)

    @property
    def _is_created_empty(self) -> bool:
        """Return whether a new page gets its content as version 2, after its restrictions."""
        return "restrictions" in self.fields and self.wanted is not None and self.wanted.body != ""

    def changes(self) -> list[dict[str, object]]:
        """Return the fields that differ, with the values before and after."""
        page, wanted, fields = self.page, self.wanted, set(self.fields)
        if wanted is None:
            return [{"field": "title", "before": page and page.title, "after": None}]
        was, will = self._bodies()
        sides: dict[str, tuple[object, object]] = {
            "title": (page and page.title, wanted.title),
            "parent": (page and page.parent, self.parent),
            "mark": (self._marked(), self.path),
            "body": (was if page else None, will),
        }
        for each in self.additions:
            sides[each.noun] = (each.text(after=False), each.text(after=True))
        return [
            {"field": name, "before": before, "after": after}
            for name, (before, after) in sides.items()
            if name in fields
        ]

    def sides(self) -> tuple[str, str]:
        """Return the diff before and after, without most of the equal lines."""
        before, after = "", ""
        page, wanted = self.page, self.wanted
        was, will = self._bodies()
        if page is not None:
            before = f"title: {page.title}\n{self._more(after=False)}\n{was}"
        if wanted is not None:
            after = f"title: {wanted.title}\n{self._more(after=True)}\n{will}"
        return excerpt(f"{self.path} ({self.action})", before, after)

    def _bodies(self) -> tuple[str, str]:
        """Return both bodies for the diff. Empty if they are equal: then they may be unread."""
        if "body" not in self.fields:
            return "", ""
        was = "" if self.page is None else self.page.body or ""
        will = "" if self.wanted is None else self.wanted.body
        return readable(was, will, None if self.page is None else self.page.space)

    def _more(self, *, after: bool) -> str:
        """Return the diff lines between title and body."""
        lines = ""
        if "parent" in self.fields:
            above = self.parent if after else (self.page and self.page.parent) or "-"
            lines += f"parent: {above}\n"
        if "mark" in self.fields:
            lines += f"file: {self.path if after else self._marked()}\n"
        return lines + "".join(addition.text(after=after) for addition in self.additions)

    def _marked(self) -> str:
        """Return the file in the mark of the page, for the diff."""
        mark = None if self.page is None else mark_of(self.page)
        if mark is None:
            return "-"
        return mark.file if mark.is_finished else f"{mark.file} (not finished)"


def final_mark(plan: PagePlan, page: Page, root: str) -> TreeMark:
    """Return the mark of a finished page."""
    if plan.wanted is None:
        raise AssertionError("a deleted page has no mark")
    return TreeMark(
        root, plan.path, page.id, plan.wanted.digest, page.version, plan.wanted.source_digest
    )


# -- parts of a sealed plan ------------------------------------------------------------------


def part_of(plan: PagePlan, space: str) -> PlannedChange:
    """Return the change of a page for a sealed plan.

    A deletion contains the version, so a page that was edited after the plan is not deleted.
    """
    page, wanted = plan.page, plan.wanted
    changes = {str(change["field"]): change for change in plan.changes()}
    before: dict[str, Any] = {name: change["before"] for name, change in changes.items()}
    after: dict[str, Any] = {name: change["after"] for name, change in changes.items()}
    before["id"] = None if page is None else page.id
    after["action"], after["path"] = plan.action, plan.path
    title = wanted.title if wanted is not None else page.title if page is not None else ""
    if wanted is None:
        before["version"] = None if page is None else page.version
    elif "body" in changes:
        after["body"] = wanted.digest
    return PlannedChange(f"{space}/{title}", None, before, after)


def left_out(plans: Sequence[PagePlan], indexes: Collection[int]) -> set[int]:
    """Return the indexes of the given plans and of all plans that depend on them.

    A page depends on the plan of its parent, and on the plan of the page that still has its title.
    A deletion depends on the plans of the pages below.
    """
    out = set(indexes)
    while True:
        more = {
            index
            for index, plan in enumerate(plans)
            if index not in out and _needs(plan, [plans[other] for other in out])
        }
        if not more:
            return out
        out |= more


def _needs(plan: PagePlan, others: Sequence[PagePlan]) -> bool:
    return any(
        _holds_below(plan, other) if plan.wanted is None else _precedes(other, plan)
        for other in others
    )


def _holds_below(deleted: PagePlan, other: PagePlan) -> bool:
    """Return whether the page of `other` stays below the deleted page."""
    page, stays = deleted.page, other.page
    return page is not None and stays is not None and stays.parent == page.id


def _precedes(other: PagePlan, plan: PagePlan) -> bool:
    """Return whether `plan` can only be carried out after `other`."""
    if plan.wanted is None or other.wanted is None:
        return False
    source = other.wanted.source
    if source.key == ROOT and (other.page is None or other.adopted):
        return True  # the marks of all pages contain the id of the root
    if source.key == plan.wanted.source.parent:
        return other.page is None or {"parent"} <= plan.fields & other.fields
    is_held = other.page is not None and title_key(other.page.title) == plan.wanted.title_key
    return is_held and "title" in other.fields


def leave_out(plan: PagePlan) -> PagePlan:
    """Return the plan without its changes."""
    return replace(plan, fields=set(), additions=(), adopted=False)
