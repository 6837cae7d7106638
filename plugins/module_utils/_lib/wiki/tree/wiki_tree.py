# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_tree`: publish a folder of Markdown or storage format as pages [C8.9]."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import ToolchainError, conflict, invalid, listed, shorten
from ...core.finding import Finding, of_row
from ...core.json_text import member
from ...core.module.authorship import Author
from ...core.module.descriptor import Descriptor, writes
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.operations.objects import failure_of
from ...core.plan import Action, Plan
from ..client import WikiClient
from ..formats.cloud_limits import of_body
from ..formats.comparison import alike, joined
from ..formats.mentions import with_accounts
from ..page import Page, author_of, of_the_page, require, require_labels, wrong_title
from ..pages.desired_page import DesiredPage, PageWriter, require_title, trash
from ..pages.restrictions import EXPANSION as RESTRICTIONS
from ..pages.restrictions import PageRestrictions, Restrictions, require_names_of
from ..service import SERVICE
from .existing_pages import EXPANSION, KEY, TreeMark, TreeReader, mark_of
from .source_files import ROOT, SourceFolder, TreeOptions, read_folder
from .tree_plan import PagePlan, TreePlanner, deletions, left_out, without_file
from .wanted_pages import WantedPage, WantedPages, title_key, unreferenced

_ADDRESS = re.compile(r"https?://[^\s/?#]+(?:/[^\s?#]*)?\Z")
#: Further members to expand.
_MORE = (
    *(EXPANSION, "space.homepage", "children.page"),
    *("children.attachment", "children.attachment.version"),
)


@dataclass(frozen=True)
class WikiTreeOptions(TreeOptions):
    """The options of `wiki_tree`."""


class TreeWriter:
    """Apply the plans of pages. `done`: written pages by key of the file."""

    def __init__(self, task: Task, client: WikiClient, options: WikiTreeOptions) -> None:
        self._task, self._client, self._options = task, client, options
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
                raise conflict(reason)
            spread(self._options.parallel, lambda key: self._write(key, pending[key]), ready)
            for key in ready:
                del pending[key]
        if self._rewritten:
            files = shorten(", ".join(self._rewritten))
            self._task.warn(
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
        page, wanted = plan.page, plan.wanted
        if wanted is None:
            raise AssertionError("a deleted page is not written")
        if page is None or plan.saves:
            page = self.done[key] = self._saved(plan, wanted)
        elif plan.restrict is not None:
            plan.restrict(page)
        for addition in plan.additions:
            if not isinstance(addition, PageRestrictions):
                addition.apply(page)
        root = page.id if key == ROOT else self._ids[ROOT]
        saved = (page.id, wanted.digest, page.version, wanted.source_digest)
        mark = TreeMark(root, plan.path, *saved)
        if self._options.mark and mark_of(page) != mark:
            self._client.write_property(page, KEY, mark.shown())
        self.done[key], self._ids[key] = page, page.id

    def _saved(self, plan: PagePlan, wanted: WantedPage) -> Page:
        """Save the page. Raises `failed` if the server puts it below another parent."""
        page, above = plan.page, wanted.source.parent
        parent = self._options.parent_id if above is None else self._ids[above]
        desired = DesiredPage(wanted.title, wanted.body, parent)
        root = None if above is None else self._ids[ROOT]
        first = TreeMark(root, plan.path).shown()
        properties = {KEY: {"value": first}} if self._options.mark else None
        writer = PageWriter(
            self._client,
            desired,
            note={},
            retry=False,
            properties=properties,
            restrict=plan.restrict,
        )
        body = wanted.body if page is None else desired.body_on(page)
        if page is None:
            saved = writer.create(self._options.space)
        else:
            saved = writer.update(page, body)
            if member(saved.content, "metadata", "properties") is None:
                saved = replace(saved, content=page.content)
        if parent is not None and saved.shows_parent and saved.parent != parent:
            raise ToolchainError(
                "failed",
                f"{plan.path}: the page '{saved.title}' ({saved.id}) was saved, but the server put"
                f" it below {saved.parent or 'the top of the space'} instead of {parent}",
            )
        if saved.body is not None and not alike(
            saved.body, body, saved.space, flowing=wanted.flows
        ):
            self._rewritten.append(plan.path)
        return saved


@dataclass(frozen=True)
class _TreeState:
    """The plans of pages and of deletions.

    `more`: return values about pages that somebody edited, and about files without a page and pages
    without a file. `options`: with the id of the parent page.
    """

    pages: list[PagePlan]
    deletions: list[PagePlan]
    action: Action
    more: Mapping[str, Any]
    options: WikiTreeOptions

    @property
    def changed(self) -> list[PagePlan]:
        return [plan for plan in (*self.pages, *self.deletions) if plan.fields]


class WikiTreeOperation:
    """Publish a folder as pages below a page. Raises `invalid` for invalid options."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"write": writes("view", unforeseen=("add", "attach")), "remove": writes("view", "delete")},
        kind="page",
        name="{space}/{title}",
        listed="pages",
        lock=("space", "parent_id", "parent_title"),
    )

    def __init__(self, task: Task, options: WikiTreeOptions) -> None:
        require_title("parent_title", options.parent_title)
        wrong = wrong_title(f"{options.title_prefix}-")
        if wrong is not None:
            raise invalid(f"title_prefix: {wrong}")
        require_labels(options.labels)
        if options.link_base is not None and not _ADDRESS.match(options.link_base):
            raise invalid(
                f"link_base is '{options.link_base}', but must be an address that starts with"
                " https:// or http://"
            )
        self._task, self._options = task, options
        self._client = WikiClient(
            task,
            labels=True,
            rights=True,
            more=_MORE if options.restrictions is None else (*_MORE, *RESTRICTIONS),
            connections=max(10, options.parallel),
        )
        self._restrictions: PageRestrictions | None = None
        if options.restrictions is not None:
            store, wanted = Restrictions(self._client), options.restrictions.wanted
            self._restrictions = PageRestrictions(store, wanted, force=options.force)

    def _folder(self) -> SourceFolder:
        """List the folder, and warn about drafts."""
        options = self._options
        folder = read_folder(options.src, options.exclude, drafts=options.drafts == "publish")
        for warning in folder.warnings:
            self._task.warn(warning)
        if folder.drafts:
            count, names = len(folder.drafts), listed(folder.drafts)
            self._task.warn(
                f"{count} draft{'s are' if count > 1 else ' is'} left out ({names}): set drafts to"
                " publish to include them"
            )
        return folder

    def plan(self) -> Plan:
        folder, task = self._folder(), self._task
        options = self._options
        if options.parent_title is not None:
            parent = self._client.parent_titled(options.parent_title, options.space)
            options = replace(options, parent_id=parent)
        wanted = WantedPages(folder, options, task.warn).all()
        if options.accounts:
            in_cloud, accounts = self._client.is_in_cloud, options.accounts
            bodies = (with_accounts(page.body, accounts, in_cloud=in_cloud) for page in wanted)
            wanted = [replace(page, body=body) for page, body in zip(wanted, bodies, strict=True)]
        reader = TreeReader(self._client, options.space, options.parallel, task.progress)
        planner = TreePlanner(self._client, reader, options, self._restrictions, task.warn)
        tree, pages = planner.plans(wanted)
        gone = []
        if options.prune:
            gone = deletions(tree, pages, options.max_deletions, task.warn)
        action: Action = "create" if tree is None else "update"
        edits = self._edits([*pages, *gone])
        more = {"drafts": folder.drafts, **unreferenced(folder, wanted), "edited": edits}
        deleted = {plan.page.id for plan in gone if plan.page is not None}
        left = without_file(tree, pages, marked=options.mark)
        left = [page for page in left if page.id not in deleted]
        if left and options.mark and not options.prune:
            titles = listed([page.title for page in left])
            count = f"{len(left)} pages" if len(left) > 1 else "1 page"
            task.warn(
                f"{count} of the tree without a file stay on the wiki ({titles}): set prune to move"
                " them to the trash"
            )
        more["without_file"] = [
            {"id": page.id, "title": page.title, "url": page.url} for page in left
        ]
        state = _TreeState(pages, gone, action, more, options)
        refused = [index for index, plan in enumerate(state.changed) if plan.error is not None]
        for index in left_out(state.changed, refused):
            waiting = state.changed[index]
            waiting.error = waiting.error or conflict(
                f"{waiting.path}: depends on a page that is left as it is"
            )
            waiting.refused = waiting.changes()
        return self._full_plan(self._restricted(state, refused))

    def _edits(self, plans: Sequence[PagePlan]) -> list[dict[str, Any]]:
        """Return the pages that somebody edited after the tree wrote them, and that the task would
        replace. Warn of them, or add an error to their plans, if `on_edit` is set.
        """
        edited = [plan for plan in plans if plan.is_edited]
        for plan in edited:
            edit = plan.edit()
            by = f" by {edit['author']}" if edit["author"] else ""
            at = f" at {edit['time']}" if edit["time"] else ""
            message = f"{plan.path}: the page '{edit['title']}' ({edit['id']}) was edited{by}{at}"
            if self._options.on_edit == "fail":
                cure = "take the edit into the file, or set on_edit to overwrite"
                reason = f"{message}, after the tree wrote it, and is left as it is: {cure}"
                plan.error = plan.error or conflict(reason)
            elif self._options.on_edit == "warn":
                self._task.warn(f"{message}, and the task replaces this edit")
        return [plan.edit() for plan in edited]

    def _full_plan(self, state: _TreeState) -> Plan:
        """Return the plan of the task, with the result and the diff of all pages."""
        changed = state.changed

        def make_diff() -> tuple[str, str]:
            return joined(plan.sides() for plan in changed)

        plans = [*state.pages, *state.deletions]
        kept, lost = (sum(plan.comments[n] for plan in plans if not plan.error) for n in (0, 1))
        comments = {"kept": kept, "lost": lost}
        shown = self._shown(state.pages, {}, state.deletions)
        result = {"pages": shown, "comments": comments, **state.more}
        action = state.action if changed else "none"
        failure = failure_of(plans, "pages", result)
        return Plan(
            None, None, action, result=result, failure=failure, make_diff=make_diff, data=state
        )

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the changes of pages for a sealed plan."""
        return [page_plan.part(self._options.space) for page_plan in plan.data.changed]

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return a finding for each page of the tree, and for each page without a file."""
        why = ", because no file of its tree describes it"
        cure = "; prune of the tree deletes it" if self._options.mark else ""
        return [
            *self.findings_of_failure(values),
            *(
                Finding(self._name(page["title"]), unmanaged=f"{why}{cure}")
                for page in values["without_file"]
            ),
        ]

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        return [of_row(row, self._name(row["title"] or "")) for row in values.get("pages", ())]

    def _name(self, title: str) -> str:
        """Return the name of a page in reports."""
        return self.descriptor.name_of({"space": self._options.space, "title": title})

    def authors(self, plan: Plan) -> list[Author]:
        """Return who saved the pages last."""
        return [author_of(page_plan.page) for page_plan in plan.data.changed]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without these changes and those that depend on them."""
        return self._full_plan(self._restricted(plan.data, places))

    def _restricted(self, state: _TreeState, places: Collection[int]) -> _TreeState:
        """Return the plans without these changes and those that depend on them.

        A plan with an error stays, without its changes.
        """
        changed = state.changed
        dropped = {id(changed[index]) for index in left_out(changed, places)}
        none: dict[str, Any] = {"fields": set(), "additions": (), "adopted": False}
        pages, gone = (
            [replace(page, **none) if id(page) in dropped else page for page in plans]
            for plans in (state.pages, state.deletions)
        )
        pages = [page for page in pages if page.page or page.fields or page.error]
        gone = [page for page in gone if page.fields or page.error]
        return replace(state, pages=pages, deletions=gone)

    def predict(self, plan: Plan) -> None:
        """Record the new pages for later tasks in check mode."""
        predicted, space = self._client.predicted, self._options.space
        for page_plan in plan.data.pages:
            if page_plan.page is None and page_plan.wanted is not None and page_plan.fields:
                title = page_plan.wanted.title
                page_id = predicted.new_id(space, title)
                predicted.add(Page(page_id, title, space, 1, "", body=page_plan.wanted.body))

    def preflight(self, plan: Plan) -> None:
        """Raise `permission` for a page that the account may not write, `not_found` for an unknown
        user or group.
        """
        for page_plan in (*plan.data.pages, *plan.data.deletions):
            require_names_of(page_plan.additions)
            if page_plan.page is None or page_plan.error is not None:
                continue
            if page_plan.wanted is None:
                require(f"deleting {page_plan.path}", page_plan.page, "delete")
            elif of_the_page(page_plan.fields):
                require(f"saving {page_plan.path}", page_plan.page, "update")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        gone = list[PagePlan]()
        writer = TreeWriter(self._task, self._client, plan.data.options)
        try:
            writer.write(plan.data.pages)
            for deletion in plan.data.deletions:
                page = deletion.page
                if page is not None and deletion.error is None:
                    purpose = f"moving the page '{page.title}' ({page.id}) to the trash"
                    trash(self._client, purpose, page)
                gone.append(deletion)
        except ToolchainError as error:
            finished = [page for page in plan.data.pages if _key(page) in writer.done]
            error.result["pages"] = self._shown(finished, writer.done, gone)
            raise
        pages = self._shown(plan.data.pages, writer.done, gone)
        if plan.failure is not None:
            plan.failure.result.update(pages=pages, changed=True)
            raise plan.failure
        return {"pages": pages}

    def _shown(
        self, pages: Sequence[PagePlan], done: Mapping[str, Page], gone: Sequence[PagePlan]
    ) -> list[dict[str, object]]:
        shown = [self._row(plan, done.get(_key(plan))) for plan in pages]
        return [*shown, *(self._row(plan) for plan in gone)]

    def _row(self, plan: PagePlan, now: Page | None = None) -> dict[str, object]:
        row = plan.shown(now)
        if plan.wanted is not None and self._client.is_in_cloud:
            unsupported = of_body(plan.wanted.body)
            row |= {"unsupported": unsupported} if unsupported else {}
        is_shown = self._task.diff and plan.error is None
        return {**row, "changes": plan.changes()} if is_shown else row


def _key(plan: PagePlan) -> str:
    return "" if plan.wanted is None else plan.wanted.source.key
