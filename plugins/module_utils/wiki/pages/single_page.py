# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and apply the creation, update or removal of a single page [C5.1]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from ...core.address import require_segment
from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Change, Plan, unchanged, without_none
from .. import predicted_pages
from ..attachments import PageAttachments
from ..client import WikiClient
from ..labels import PageLabels
from ..page import Page
from ..permissions import of_the_page, require
from ..storage.comparison import BodyComparison, alike, readable
from ..storage.inline_comments import comment_counts
from ..storage.markdown_signs import looks_like_markdown
from .desired_page import DesiredPage, desired_page
from .page_options import PageOptions
from .page_restrictions import PageRestrictions
from .restrictions import EXPANSION, Restrictions
from .saving import PageWriter

#: Changes that create a new version of a page.
_OF_THE_PAGE = frozenset({"body", "title", "parent_id"})
_NO_BODY = "(the server does not send the body)\n"


class PageAddition(Protocol):
    """Labels or attachments of a page, whose changes create no version of the page."""

    def plan(self, page: Page | None) -> Change | None:
        """Compare the current state of a page, or of a new page if `page` is None."""

    def text(self, *, after: bool) -> str:
        """Return the diff lines before or after the task. Call `plan()` first."""

    def result(self) -> Mapping[str, Any]:
        """Return the return values for the desired state."""

    def apply(self, page: Page) -> None:
        """Write the planned changes."""


class SinglePage:
    """Create, update or remove a page, found by id or by space and title.

    :param connections: maximum number of connections for all pages of the task
    """

    def __init__(self, task: Task, options: PageOptions, *, connections: int = 10) -> None:
        options.require()
        require_segment("parent_id", options.parent_id)
        self._task, self._options = task, options
        self._removes = removes = options.state == "absent"
        self._desired = DesiredPage(None, None, None) if removes else desired_page(options)
        self._client = WikiClient(
            task,
            labels=not removes and options.labels is not None,
            obstacles=removes and not options.force,
            rights=True,
            more=() if removes or options.restrictions is None else EXPANSION,
            connections=connections,
        )
        self._restrictions: PageRestrictions | None = None
        if options.restrictions is not None and not removes:
            store = Restrictions(self._client)
            self._restrictions = PageRestrictions(store, options.restrictions, force=options.force)
        self._additions = [] if removes else _additions(self._client, options)
        self._page: Page | None = None
        self._comments = {"kept": 0, "lost": 0}

    # -- planning ------------------------------------------------------------------------------

    def plan(self) -> Plan:
        if self._desired.body is not None and looks_like_markdown(self._desired.body):
            self._task.warn(
                f"{self._options.named}: the body looks like Markdown, but is saved as storage"
                " format; the filter delivery.toolchain.storage_format converts Markdown"
            )
        page = self._page = self._read()
        if page is not None:
            self._check(page)
        elif self._options.expected_version is not None:
            raise ToolchainError(
                "conflict",
                f"{self._options.named} does not exist: leave out expected_version to create it",
            )
        if self._removes:
            return self._removal(page)
        self._desired.require_kept(page, self._options.named, self._task.warn)
        plan = self._creation() if page is None else self._update(page)
        return plan.with_result(**self._results())

    @property
    def page(self) -> Page | None:
        """Return the page that `plan()` found, or None."""
        return self._page

    def _read(self) -> Page | None:
        options, named = self._options, self._options.named
        if options.page_id is None:
            space, title = options.space_and_title()
            page = self._client.find(f"searching for {named}", space, title)
            if page is None and self._removes:
                self._client.require_space(space)
            if page is None and (self._desired.body is None or self._desired.heading is not None):
                # this task cannot create the page, an earlier one in check mode would
                return predicted_pages.by_title(self._client.predictions, space, title)
            return page
        if not self._removes:
            return self._client.require(f"reading {named}", options.page_id, options.space)
        predicted = predicted_pages.by_id(self._client.predictions, options.page_id)
        return predicted or self._client.find_by_id(
            f"reading {named}", options.page_id, options.space
        )

    def predict(self, plan: Plan) -> None:
        """Record the new page or the new title for later tasks in check mode."""
        new = plan.data
        if new is not None and (self._page is None or self._page.title != new.title):
            predicted_pages.predict(self._client.predictions, new)

    def _planned_additions(self, page: Page | None, *, saves: bool) -> list[Change]:
        """Return the changes of restrictions, labels and attachments.

        :param page: the current page; None means a new page
        :param saves: whether the title, body or parent is saved too
        """
        if page is not None and predicted_pages.is_id(page.id):
            page = None
        changes = [each.plan(page) for each in self._additions]
        if self._restrictions is not None:
            changes.insert(0, self._restrictions.plan(page, saves=saves))
        return [change for change in changes if change is not None]

    def _results(self) -> dict[str, Any]:
        found = {name: value for each in self._additions for name, value in each.result().items()}
        found |= {} if self._restrictions is None else self._restrictions.result()
        return {**found, "comments": self._comments}

    def _check(self, page: Page) -> None:
        """Raise `conflict` if the type, status, space or version of the page is wrong."""
        space, expected = self._options.space, self._options.expected_version
        problem = None
        if page.type != "page":
            problem = f"is a {page.type}, not a page"
        elif page.status == "draft" or (page.status != "current" and not self._removes):
            problem = f"is not a current page, but {page.status}"
        elif space and page.space and space.lower() != page.space.lower():
            problem = f"is in the space {page.space}, not in {space}"
        elif expected is not None and page.version != expected:
            problem = f"has version {page.version}, not {expected}"
        if problem is not None:
            raise ToolchainError("conflict", f"{self._options.named} {problem}")

    def _removal(self, page: Page | None) -> Plan:
        if page is None and "*" in (self._options.title or ""):
            raise invalid(
                f"{self._options.named} cannot be removed: title must name a single page, without"
                " wildcards"
            )
        if page is None or page.status in ("trashed", "archived"):
            return unchanged({"page": None, "ignored_differences": []}, "")
        obstacle = None if self._options.force else self._client.removal_obstacle(page)
        if obstacle is not None:
            raise invalid(f"removing {self._options.named}: {obstacle}: set force to remove it")
        changes = (Change("state", "present", "absent"),)
        result = {"page": page.shown(), "ignored_differences": []}

        def make_diff() -> tuple[str, str]:
            body = readable(page.body or "", "", page.space)[0]
            return self._text(page, body, after=False), ""

        return Plan(None, None, "delete", changes, result, make_diff=make_diff)

    def _creation(self) -> Plan:
        desired, (space, _title) = self._desired, self._options.space_and_title()
        if desired.body is None or desired.heading is not None:
            raise ToolchainError(
                "not_found",
                f"{self._options.named} does not exist: set body or src, without section, to create"
                " it",
            )
        self._require_target(space, desired.parent or "")
        additions = self._planned_additions(None, saves=True)
        changes = (Change("body", None, desired.body), *additions)
        title, parent = desired.title or "", desired.parent
        number = predicted_pages.new_id(self._client.predictions, space, title)
        # a restricted page is created empty, and its content is the second version
        version = 2 if desired.body and self._restrict is not None else 1
        page = Page(number, title, space, version, "", body=desired.body, parent=parent)
        shown = {**page.shown(), "id": page.id or None, "url": None}
        result = {"page": shown, "ignored_differences": []}

        def make_diff() -> tuple[str, str]:
            return "", self._text(page, readable("", page.body or "", space)[1], after=True)

        return Plan(None, None, "create", changes, result, make_diff=make_diff, data=page)

    def _update(self, page: Page) -> Plan:
        desired = self._desired
        comparison = desired.validate(page)
        changes = []
        if not comparison.same:
            self._keep_comments(page, desired.body_on(page, comparison))
            changes.append(Change("body", page.body, desired.body))
        if desired.changes_title(page):
            changes.append(Change("title", page.title, desired.title))
        if desired.changes_parent(page):
            self._require_target(page.space, desired.parent or "", page.id)
            changes.append(Change("parent_id", page.parent, desired.parent))
        if desired.parent is not None and not page.shows_parent:
            self._task.warn(
                f"{self._options.named}: the server does not show the parent of the page, so"
                " parent_id is only sent together with other changes"
            )
        wanted = self._wanted(page, comparison) if changes else page
        changes += self._planned_additions(page, saves=bool(changes))
        result = {"page": wanted.shown(), "ignored_differences": list(comparison.ignored)}
        if not changes:
            return unchanged(result, self._text(page, page.body or "", after=True))

        def make_diff() -> tuple[str, str]:
            bodies = page.body or "", wanted.body or ""
            before, after = readable(*bodies, page.space, exact=desired.exact)
            before = _NO_BODY if page.body is None else before
            return self._text(page, before, after=False), self._text(wanted, after, after=True)

        return Plan(None, None, "update", tuple(changes), result, make_diff=make_diff, data=wanted)

    def _require_target(self, space: str | None, parent: str, child: str = "") -> None:
        """Check space and parent before a write.

        Raises `not_found` if either is missing, `rejected` if the parent is below the page `child`.
        """
        if parent != "":
            self._client.require_parent(parent, space, child)
        elif space is not None:
            self._client.require_space(space)

    def _wanted(self, page: Page, comparison: BodyComparison) -> Page:
        """Return the page with the desired title, body and parent."""
        return replace(
            page,
            title=self._desired.title_on(page),
            body=self._desired.body_on(page, comparison),
            version=page.version + 1,
            parent=self._desired.parent or page.parent,
        )

    def _text(self, page: Page, body: str, *, after: bool) -> str:
        """Return the text of the diff: title, parent, restrictions, additions and body."""
        parent = "" if self._options.parent_id is None else f"parent: {page.parent or '-'}\n"
        additions = "".join(each.text(after=after) for each in self._additions)
        if self._restrictions is not None:
            additions = self._restrictions.text(after=after) + additions
        return f"title: {page.title}\n{parent}{additions}\n{body}"

    def _keep_comments(self, page: Page, body: str) -> None:
        """Raise `conflict` if the new body would orphan inline comments of readers.

        The markers of comments are part of the body. Adding a marker creates no version, so the
        version number does not show it.
        """
        kept, lost = comment_counts(page.body or "", body)
        self._comments = {"kept": kept, "lost": lost}
        if lost == 0:
            return
        comments = f"{lost} inline comment{'s' if lost > 1 else ''} of readers"
        if not self._options.allow_orphaned_comments:
            raise ToolchainError(
                "conflict",
                f"{self._options.named}: with this body, {comments} would be orphaned, because the"
                " commented text is gone; keep that text, or set allow_orphaned_comments",
            )
        self._task.warn(f"{self._options.named}: {comments} lose their place in the text")

    def preflight(self, plan: Plan) -> None:
        """Raise `permission` for a missing permission, `conflict` for a title in use."""
        self._require_rights(plan)
        page, renamed = self._page, any(change.field == "title" for change in plan.changes)
        if page is None or page.space is None or self._options.page_id is None or not renamed:
            return
        title = self._desired.title_on(page)
        purpose = f"searching for another page '{title}' in the space {page.space}"
        try:
            other = self._client.find(purpose, page.space, title)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return  # a server without a lookup by title
        if other is not None and other.id != page.id:
            reason = (
                f"the page {other.id} in the space {page.space} already has the title"
                f" '{other.title}'"
            )
            raise ToolchainError("conflict", f"{self._options.named}: {reason}")

    def _require_rights(self, plan: Plan) -> None:
        if self._page is None:
            return
        if plan.action == "delete":
            require(f"removing {self._options.named}", self._page, "delete")
        elif of_the_page(change.field for change in plan.changes):
            require(f"saving {self._options.named}", self._page, "update")

    # -- applying ------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        page = self._page
        if plan.action == "delete" and page is not None:
            self._trash(page)
            return {}
        saved = page
        if saved is None or _saves(plan.changes):
            saved = self._save(page, plan.data.body or "")
        elif self._restrict is not None:
            self._restrict(saved)
        try:
            for addition in self._additions:
                addition.apply(saved)
        except ToolchainError as error:
            error.result.setdefault("page", saved.shown())
            raise
        return {"page": saved.shown()}

    def _save(self, page: Page | None, body: str) -> Page:
        retry = self._options.on_conflict == "retry" and self._options.expected_version is None
        note, restrict = self._note(), self._restrict
        writer = PageWriter(self._client, self._desired, note=note, retry=retry, restrict=restrict)
        if page is None:
            saved = writer.create(self._options.space_and_title()[0])
        else:
            saved = writer.update(page, body)
        self._verify(saved, page, body)
        return saved

    @property
    def _restrict(self) -> Callable[[Page], None] | None:
        """Return the function that sets the restrictions, or None if they do not differ."""
        return None if self._restrictions is None else self._restrictions.change

    def _note(self) -> dict[str, Any]:
        note = without_none({"message": self._options.version_comment})
        return {**note, "minorEdit": True} if self._options.minor_edit else note

    def _trash(self, page: Page) -> None:
        """Move the page to the trash. It is no error if another user has removed it."""

        def is_gone() -> bool:
            now = self._client.get(f"verifying {self._options.named}", page.id, page.space)
            return now is None or now.status != "current"

        try:
            self._client.trash(f"moving {self._options.named} to the trash", page.id, is_gone)
        except ToolchainError as error:
            if error.status != 404 or not is_gone():
                raise

    def _verify(self, saved: Page, before: Page | None, body: str) -> None:
        """Raise `failed` if the saved page has another parent. Warn about another body."""
        known, wanted = saved.shows_parent, self._desired.parent
        if wanted is None:
            # The server chooses the parent of a new page. An existing page must not move.
            known = known and before is not None and before.shows_parent
            wanted = None if before is None else before.parent
        if known and saved.parent != wanted:
            raise ToolchainError(
                "failed",
                f"{self._options.named} was saved, but the server moved it below"
                f" {saved.parent or 'the top of the space'} instead of leaving it below"
                f" {wanted or 'the top of the space'}: set parent_id",
                result={"changed": True, "page": saved.shown()},
            )
        if saved.body is not None and not alike(saved.body, body, saved.space):
            self._task.warn(
                f"{self._options.named}: the stored body differs from the body that was sent;"
                " unsupported content may be lost, and the next run will find a difference again"
            )


def _additions(client: WikiClient, options: PageOptions) -> list[PageAddition]:
    """Return the labels and attachments to manage. Raises `invalid` for invalid entries."""
    additions: list[PageAddition] = []
    if options.labels is not None:
        additions.append(PageLabels(client, options.labels))
    if options.attachments is not None:
        additions.append(PageAttachments(client, options.attachments))
    return additions


def _saves(changes: Iterable[Change]) -> bool:
    return any(change.field in _OF_THE_PAGE for change in changes)
