# SPDX-License-Identifier: GPL-3.0-or-later
"""Divide the plan of a tree into its pages, for a sealed plan [C9]."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...core.plans.sealing import PlannedChange
from .source_files import ROOT
from .tree_plan import PagePlan
from .wanted_pages import title_key


def part_of(plan: PagePlan, space: str) -> PlannedChange:
    """Return the change of a page. A page that was edited since the plan is not deleted."""
    page, wanted = plan.page, plan.wanted
    changes = {str(each["field"]): each for each in plan.changes()}
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
    """Return whether a page stays below a page that is to be deleted."""
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


def leave_out(plan: PagePlan) -> None:
    """Leave an existing page as it is."""
    plan.fields, plan.additions, plan.adopted = set(), [], False
