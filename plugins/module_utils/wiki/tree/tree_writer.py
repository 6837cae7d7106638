# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the pages of a tree: parents before children, and a title once it is no longer in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...core.concurrency import spread
from ...core.errors import ToolchainError, shorten
from ...core.json_text import member
from ..client import WikiClient
from ..page import Page
from ..pages.desired_page import DesiredPage
from ..pages.page_restrictions import PageRestrictions
from ..pages.saving import PageWriter
from ..storage.comparison import alike
from .marks import KEY, TreeMark, mark_of, write_mark
from .page_plan import PagePlan, final_mark
from .source_files import ROOT
from .wanted_pages import title_key


class TreeWriter:
    """Apply the plans of pages. `done`: written pages by key of the file.

    :param space: key of the space
    :param parent: id of the page above the root; None is the top of the space
    :param warn: reports warnings
    :param uses_marks: whether to mark the pages
    """

    def __init__(
        self,
        client: WikiClient,
        space: str,
        parent: str | None,
        parallel: int,
        warn: Callable[[str], None],
        *,
        uses_marks: bool = True,
    ) -> None:
        self._uses_marks = uses_marks
        self._client, self._space, self._parent = client, space, parent
        self._parallel, self._warn = parallel, warn
        self.done: dict[str, Page] = {}
        self._ids: dict[str, str] = {}
        self._rewritten: list[str] = []

    def write(self, plans: Sequence[PagePlan]) -> None:
        """Create and update pages, several at once. The first error stops the rest."""
        pending: dict[str, PagePlan] = {}
        for plan in plans:
            if plan.wanted is not None and plan.page is not None:
                self._ids[plan.wanted.source.key] = plan.page.id
            if plan.wanted is not None and plan.fields:
                pending[plan.wanted.source.key] = plan
            elif plan.wanted is not None and plan.page is not None:
                self.done[plan.wanted.source.key] = plan.page
        while pending:
            ready = [key for key, plan in pending.items() if self._is_ready(plan, pending)]
            if not ready:
                titles = ", ".join(
                    f"'{plan.wanted.title}'" for plan in pending.values() if plan.wanted
                )
                reason = (
                    f"the pages {titles} swap their titles with each other: rename one of them by"
                    " hand"
                )
                raise ToolchainError("conflict", reason)
            spread(self._parallel, lambda key: self._write(key, pending[key]), ready)
            for key in ready:
                del pending[key]
        if self._rewritten:
            files = shorten(", ".join(self._rewritten))
            self._warn(
                f"the stored bodies of {files} differ from the bodies that were sent; unsupported"
                " content may be lost"
            )

    def _is_ready(self, plan: PagePlan, pending: Mapping[str, PagePlan]) -> bool:
        if plan.wanted is None or plan.wanted.source.parent in pending:
            return False
        wanted = plan.wanted.title_key
        held = plan.page is not None and title_key(plan.page.title) == wanted
        return held or not any(
            other is not plan and other.page is not None and title_key(other.page.title) == wanted
            for other in pending.values()
        )

    # -- a single page ---------------------------------------------------------------------------

    def _write(self, key: str, plan: PagePlan) -> None:
        page = plan.page
        if page is None or plan.saves:
            page = self.done[key] = self._saved(plan)
        elif plan.restrict is not None:
            plan.restrict(page)
        for addition in plan.additions:
            if not isinstance(addition, PageRestrictions):
                addition.apply(page)
        mark = final_mark(plan, page, page.id if key == ROOT else self._ids[ROOT])
        if self._uses_marks and mark_of(page) != mark:
            write_mark(self._client, page, mark)
        self.done[key], self._ids[key] = page, page.id

    def _saved(self, plan: PagePlan) -> Page:
        wanted, page = plan.wanted, plan.page
        if wanted is None:
            raise AssertionError("a deleted page is not saved")
        above = wanted.source.parent
        parent = self._parent if above is None else self._ids[above]
        desired = DesiredPage(wanted.title, wanted.body, parent)
        root = None if above is None else self._ids[ROOT]
        first = TreeMark(root, plan.path).shown()
        properties = {KEY: {"value": first}} if self._uses_marks else None
        writer = PageWriter(
            self._client,
            desired,
            note={},
            retry=False,
            properties=properties,
            restrict=plan.restrict,
        )
        if page is None:
            saved = writer.create(self._space)
        else:
            saved = writer.update(page, desired.body_on(page))
            if member(saved.content, "metadata", "properties") is None:
                saved = replace(saved, content=page.content)
        self._verify(plan, saved, parent, desired.body_on(page) if page else wanted.body)
        return saved

    def _verify(self, plan: PagePlan, saved: Page, parent: str | None, body: str) -> None:
        if parent is not None and saved.shows_parent and saved.parent != parent:
            raise ToolchainError(
                "failed",
                f"{plan.path}: the page '{saved.title}' ({saved.id}) was saved, but the server put"
                f" it below {saved.parent or 'the top of the space'} instead of {parent}",
            )
        if saved.body is not None and not alike(saved.body, body, saved.space):
            self._rewritten.append(plan.path)
