# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of a page of a tree: what differs, how a result and a diff show it, and its part of a sealed
plan [C9].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.plans.sealing import PlannedChange
from ..attachments import PageAttachments
from ..labels import PageLabels
from ..page import Page
from ..pages.page_restrictions import PageRestrictions
from ..storage.comparison import readable
from ..storage.excerpt import excerpt
from .marks import TreeMark, mark_of
from .source_files import ROOT
from .wanted_pages import WantedPage, title_key

#: Changes that create a new version of a page.
SAVED = frozenset({"body", "title", "parent"})


@dataclass
class PagePlan:
    """Plan of a page: `page` is None if it is new, `wanted` is None if it will be trashed.

    `fields`: the members that differ. `parent`: title of the parent, for the diff.
    """

    path: str
    wanted: WantedPage | None
    page: Page | None
    fields: set[str] = field(default_factory=set)
    adopted: bool = False
    parent: str = "-"
    additions: list[PageLabels | PageAttachments] = field(default_factory=list)
    restrictions: PageRestrictions | None = None

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
        """Return an entry of the return value `pages`; `now` is the written page."""
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
        return self.restrictions.change if self.restrictions is not None else None

    @property
    def _is_created_empty(self) -> bool:
        """Return whether the content of a new page is a second version, after its restrictions."""
        return "restrictions" in self.fields and self.wanted is not None and self.wanted.body != ""

    def changes(self) -> list[dict[str, object]]:
        """Return the differing fields with their values before and after."""
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
        for addition in self.additions:
            word = "labels" if isinstance(addition, PageLabels) else "attachments"
            sides[word] = (addition.text(after=False), addition.text(after=True))
        if (restrictions := self.restrictions) is not None:
            sides["restrictions"] = (restrictions.text(after=False), restrictions.text(after=True))
        return [
            {"field": name, "before": before, "after": after}
            for name, (before, after) in sides.items()
            if name in fields
        ]

    def sides(self) -> tuple[str, str]:
        """Return both sides of the diff, without equal lines."""
        before, after = "", ""
        page, wanted = self.page, self.wanted
        was, will = self._bodies()
        if page is not None:
            before = f"title: {page.title}\n{self._more(after=False)}\n{was}"
        if wanted is not None:
            after = f"title: {wanted.title}\n{self._more(after=True)}\n{will}"
        return excerpt(f"{self.path} ({self.action})", before, after)

    def _bodies(self) -> tuple[str, str]:
        """Return both bodies if they differ; equal bodies are not always read."""
        if "body" not in self.fields:
            return "", ""
        was = "" if self.page is None else self.page.body or ""
        will = "" if self.wanted is None else self.wanted.body
        return readable(was, will, None if self.page is None else self.page.space)

    def _more(self, *, after: bool) -> str:
        """Return the lines between title and body."""
        lines = ""
        if "parent" in self.fields:
            above = self.parent if after else (self.page and self.page.parent) or "-"
            lines += f"parent: {above}\n"
        if "mark" in self.fields:
            lines += f"file: {self.path if after else self._marked()}\n"
        if self.restrictions is not None:
            lines += self.restrictions.text(after=after)
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
    """Return the change of a page. A page that was edited since the plan is not deleted."""
    page, wanted = plan.page, plan.wanted
    changes = {str(change["field"]): change for change in plan.changes()}
    before: dict[str, Any] = {name: each["before"] for name, each in changes.items()}
    after: dict[str, Any] = {name: each["after"] for name, each in changes.items()}
    before["id"] = None if page is None else page.id
    after["action"], after["path"] = plan.action, plan.path
    title = wanted.title if wanted is not None else page.title if page is not None else ""
    if wanted is None:
        before["version"] = None if page is None else page.version
    elif "body" in changes:
        after["body"] = wanted.digest
    return PlannedChange(f"{space}/{title}", None, before, after)


def left_out(plans: Sequence[PagePlan], places: Collection[int]) -> set[int]:
    """Return the places of the changes that cannot be made without those at `places`, and `places`.

    A page needs the page above it and its title; a page that is deleted may have no pages below.
    """
    out = set(places)
    while True:
        more = {
            number
            for number, plan in enumerate(plans)
            if number not in out and _needs(plan, [plans[place] for place in out])
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
    """Return whether a page stays below a page that will be deleted."""
    page, stays = deleted.page, other.page
    return page is not None and stays is not None and stays.parent == page.id


def _precedes(other: PagePlan, plan: PagePlan) -> bool:
    """Return whether a page can only be written after another one."""
    if plan.wanted is None or other.wanted is None:
        return False
    source = other.wanted.source
    if source.key == ROOT and (other.page is None or other.adopted):
        return True  # the marks of all pages name the root
    if source.key == plan.wanted.source.parent:
        return other.page is None or {"parent"} <= plan.fields & other.fields
    is_held = other.page is not None and title_key(other.page.title) == plan.wanted.title_key
    return is_held and "title" in other.fields


def leave_out(plan: PagePlan) -> PagePlan:
    """Return the plan that leaves an existing page as it is."""
    return replace(plan, fields=set(), additions=[], adopted=False, restrictions=None)
