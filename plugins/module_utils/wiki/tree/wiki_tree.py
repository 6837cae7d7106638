# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_tree`: publish a folder of Markdown or storage format as pages [C8.9]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import require_segment
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Action, Plan
from ...core.plans.sealing import PlannedChange
from .. import predicted_pages
from ..client import WikiClient
from ..names import require_labels, wrong_title
from ..page import Page
from ..pages.page_restrictions import PageRestrictions, RestrictedOperations
from ..pages.restrictions import EXPANSION as RESTRICTIONS
from ..pages.restrictions import Restrictions
from ..permissions import of_the_page, require
from .existing_pages import TreeReader
from .marks import EXPANSION
from .page_plan import PagePlan, leave_out, left_out, part_of
from .source_files import read_folder
from .tree_plan import TreePlanner, deletions
from .tree_writer import TreeWriter
from .wanted_pages import WantedPages

#: Further members to expand.
_MORE = (
    *(EXPANSION, "space.homepage", "children.page"),
    *("children.attachment", "children.attachment.version"),
)


@dataclass(frozen=True)
class WikiTreeOptions:
    """Options of `wiki_tree`."""

    src: PathText
    space: str
    parent_id: str | None = None
    unique_titles: Literal["none", "folder"] = "none"
    title_prefix: Annotated[str, Option(empty=True)] = ""
    exclude: list[str] = field(default_factory=list)
    labels: list[str] | None = None
    prune: bool = False
    max_deletions: int = 10
    adopt: bool = False
    allow_orphaned_comments: bool = False
    restrictions: RestrictedOperations | None = None
    force: bool = False
    mark: bool = True
    attachments: bool = True
    parallel: int = 4


class WikiTreeOperation:
    """Publish a folder as pages below a page. Raises `invalid` for invalid options."""

    descriptor: ClassVar = Descriptor(
        "wiki",
        {"write": writes("view", unforeseen=("add", "attach")), "remove": writes("view", "delete")},
        kind="page",
        name="{space}/{title}",
        listed="pages",
    )

    def __init__(self, task: Task, options: WikiTreeOptions) -> None:
        if options.parallel < 1:
            raise invalid("parallel must be at least 1")
        require_segment("parent_id", options.parent_id)
        if options.max_deletions < 0:
            raise invalid("max_deletions must be at least 0")
        wrong = wrong_title(f"{options.title_prefix}-")
        if wrong is not None:
            raise invalid(f"title_prefix: {wrong}")
        require_labels(options.labels)
        if options.prune and not options.mark:
            raise invalid("prune requires the marks on the pages: remove mark: false")
        self._task, self._options = task, options
        self._client = WikiClient(
            task,
            labels=True,
            rights=True,
            more=_MORE if options.restrictions is None else (*_MORE, *RESTRICTIONS),
            connections=max(10, options.parallel),
        )
        self._restrict: Callable[[], PageRestrictions] | None = None
        if options.restrictions is not None:
            store, force = Restrictions(self._client), options.force
            self._restrict = partial(PageRestrictions, store, options.restrictions, force=force)
            self._restrict()  # checks the options
        self._plans: list[PagePlan] = []
        self._deletions: list[PagePlan] = []
        self._made: Action = "update"
        self._comments: Mapping[str, int] = {}
        self._writer = TreeWriter(
            self._client,
            options.space,
            options.parent_id,
            options.parallel,
            task.warn,
            uses_marks=options.mark,
        )

    def plan(self) -> Plan:
        options, task = self._options, self._task
        folder = read_folder(options.src, options.exclude)
        for warning in folder.warnings:
            task.warn(warning)
        wanted = WantedPages(
            folder,
            options.title_prefix,
            options.labels,
            task.warn,
            attachments=options.attachments,
            by_folder=options.unique_titles == "folder",
        ).all()
        reader = TreeReader(self._client, options.space, options.parallel, task.progress)
        planner = TreePlanner(
            self._client,
            reader,
            space=options.space,
            parent=options.parent_id,
            adopt=options.adopt or not options.mark,
            orphaned_comments=options.allow_orphaned_comments,
            uses_marks=options.mark,
            parallel=options.parallel,
            warn=task.warn,
            restrict=self._restrict,
        )
        self._plans = planner.plans(wanted)
        if options.prune:
            self._deletions = deletions(planner.tree, self._plans, options.max_deletions, task.warn)
        self._made = "create" if planner.tree is None else "update"
        self._comments = planner.comments
        return self._full_plan()

    @property
    def _changed(self) -> list[PagePlan]:
        return [plan for plan in (*self._plans, *self._deletions) if plan.fields]

    def _full_plan(self) -> Plan:
        """Return the plan of all pages."""
        changed = self._changed

        def make_diff() -> tuple[str, str]:
            texts = [plan.sides() for plan in changed]
            before = "".join(old for old, _new in texts)
            return before, "".join(new for _old, new in texts)

        result = {"pages": self._shown({}, self._deletions), "comments": self._comments}
        action = self._made if changed else "none"
        return Plan(None, None, action, result=result, make_diff=make_diff)

    def parts(self) -> list[PlannedChange]:
        """Return the changes of pages, for a sealed plan."""
        return [part_of(plan, self._options.space) for plan in self._changed]

    def leave_out(self, places: Collection[int]) -> Plan:
        """Leave pages unchanged, and return the plan of the others."""
        changed = self._changed
        dropped = {id(changed[place]) for place in left_out(changed, places)}
        for plan in changed:
            if id(plan) in dropped:
                leave_out(plan)
        self._plans = [plan for plan in self._plans if plan.page or plan.fields]
        self._deletions = [plan for plan in self._deletions if plan.fields]
        return self._full_plan()

    def predict(self, plan: Plan) -> None:
        """In check mode, remember the new pages."""
        predictions, space = self._client.predictions, self._options.space
        for one in self._plans:
            if one.page is None and one.wanted is not None:
                title = one.wanted.title
                number = predicted_pages.new_id(predictions, space, title)
                page = Page(number, title, space, 1, "", body=one.wanted.body)
                predicted_pages.predict(predictions, page)

    def preflight(self, plan: Plan) -> None:
        """Raise `permission` for a page that the account may not write."""
        for one in (*self._plans, *self._deletions):
            if one.page is None:
                continue
            if one.wanted is None:
                require(f"deleting {one.path}", one.page, "delete")
            elif of_the_page(one.fields):
                require(f"saving {one.path}", one.page, "update")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        gone: list[PagePlan] = []
        try:
            self._writer.write(self._plans)
            for one in self._deletions:
                self._writer.trash([one])
                gone.append(one)
        except ToolchainError as error:
            done = self._writer.done
            finished = [one for one in self._plans if _key(one) in done]
            error.result["pages"] = self._shown(done, gone, finished)
            raise
        return {"pages": self._shown(self._writer.done, gone)}

    def _shown(
        self,
        done: Mapping[str, Page],
        gone: Sequence[PagePlan],
        plans: Sequence[PagePlan] | None = None,
    ) -> list[dict[str, object]]:
        shown = [
            self._row(plan, done.get(_key(plan)))
            for plan in (self._plans if plans is None else plans)
        ]
        return [*shown, *(self._row(plan) for plan in gone)]

    def _row(self, plan: PagePlan, now: Page | None = None) -> dict[str, object]:
        row = plan.shown(now)
        return {**row, "changes": plan.changes()} if self._task.diff else row


def _key(plan: PagePlan) -> str:
    return "" if plan.wanted is None else plan.wanted.source.key
