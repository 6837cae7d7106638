# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and apply the creation, update or removal of a single page [C5.1]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import ToolchainError, conflict, invalid, not_found
from ...core.module.task import Task
from ...core.plan import Change, Plan, unchanged, without_none
from ..additions import (
    MARK_EXPANSION,
    MarkedPages,
    PageAddition,
    PageAttachments,
    PageLabels,
    PageMark,
    changes_of,
    files_of,
)
from ..client import WikiClient
from ..formats.cloud_limits import of_body
from ..formats.comparison import alike, readable
from ..formats.inline_comments import comment_counts
from ..formats.parser import parse
from ..page import Page, composed, is_predicted, of_the_page, predicted_id, require
from .desired_page import DesiredPage, PageOptions, PageWriter, desired_page, trash
from .restrictions import EXPANSION, PageRestrictions, Restrictions, require_names_of, restrict_of

#: Changes that create a new version of a page.
_OF_THE_PAGE = frozenset({"body", "title", "parent_id"})
_NO_BODY = "(the server does not send the body)\n"
_SIGN = re.compile(
    r"""
    ^[ ]{0,3}(?:\#{1,6}[ ]\S | ```\w* | ~~~ | [-*+][ ]\S | >[ ]\S | \|[^|\n]+\|[^|\n]+\|)
    | \]\((?:https?://|\.{0,2}/|\#|\w)
    | \*\*[^\s*][^*\n]*\*\*
    """,
    re.MULTILINE | re.VERBOSE,
)


@dataclass
class UpcomingPages:
    """Pages that the entries of a list create or rename, which later entries may name as parents.

    A page that does not exist yet has a predicted id, also outside of check mode.
    """

    #: Number of the entry and id of the page, by space and title.
    _pages: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    #: Titles of the pages to create by predicted id, and ids of those that were created.
    titles: dict[str, str] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)

    def add(self, number: int, space: str, title: str, page_id: str | None) -> None:
        """Add the page of an entry. `page_id`: None if the entry creates the page.

        Raises `invalid` if another entry gives a page the same title.
        """
        found = page_id or predicted_id(space, composed(title))
        first, _page_id = self._pages.setdefault(title_key(space, title), (number, found))
        if first != number:
            raise invalid(
                f"pages[{first}] and pages[{number}] both give a page the title '{title}' in the"
                f" space {space}: list each page once"
            )
        if page_id is None:
            self.titles[found] = composed(title)

    def find(self, space: str, title: str, before: int) -> str | None:
        """Return the id of the page that an entry before this number gives a title, or None."""
        number, page_id = self._pages.get(title_key(space, title), (before, ""))
        return page_id if number < before else None

    def made(self, space: str, title: str, page_id: str) -> None:
        """Note the id of a page that was created."""
        self._made[predicted_id(space, composed(title))] = page_id

    def id_of(self, page_id: str | None) -> str | None:
        """Return the id of a page, also of one that was created meanwhile.

        Returns None for a page that was not created.
        """
        return self._made.get(str(page_id)) if page_id in self.titles else page_id

    def shown(self, page_id: str | None) -> str:
        """Return a parent for the diff."""
        return f"'{self.titles[page_id]}'" if page_id in self.titles else page_id or "-"


def title_key(space: str, title: str) -> tuple[str, str]:
    return space.lower(), composed(title).lower()


@dataclass(frozen=True)
class PageChanges:
    """The planned page, and its restrictions, labels and attachments."""

    desired: DesiredPage
    wanted: Page
    additions: Sequence[PageAddition]


class SinglePage:
    """Compare and write a page, found by id or by space and title.

    :param marked: the marked pages, the same for all pages of the task
    :param upcoming: the pages of the list, the same for all pages of the task
    :param number: number of the entry in the list
    :param connections: maximum number of connections for all pages of the task
    """

    def __init__(
        self,
        task: Task,
        options: PageOptions,
        marked: MarkedPages,
        upcoming: UpcomingPages,
        number: int = 0,
        *,
        connections: int = 10,
    ) -> None:
        options.require()
        self.task, self._options, self._connections = task, options, connections
        self._marked, self._upcoming, self._number = marked, upcoming, number
        self._removes = removes = options.state == "absent"
        # a page that somebody renamed may have another purpose now: it is not removed
        self._follows = options.follow_renames and options.page_id is None and not removes
        more = (
            *(() if options.restrictions is None else EXPANSION),
            *((MARK_EXPANSION,) if options.follow_renames else ()),
        )
        self._client = WikiClient(
            task,
            labels=not removes and options.labels is not None,
            obstacles=removes and not options.force,
            rights=True,
            more=() if removes else more,
            connections=connections,
        )
        self._desired = (
            DesiredPage(None, None, None)
            if removes
            else desired_page(options, in_cloud=self._client.is_in_cloud)
        )
        self._restrictions: PageRestrictions | None = None
        if options.restrictions is not None and not removes:
            store = Restrictions(self._client)
            wanted = options.restrictions.wanted
            self._restrictions = PageRestrictions(store, wanted, force=options.force)
        self._additions = [] if removes else _additions(self._client, options)

    # -- planning ------------------------------------------------------------------------------

    def plan(self, page: Page | None) -> Plan:
        """Return the plan for the page that `read()` returned."""
        if self._desired.body is not None and looks_like_markdown(self._desired.body):
            self.task.warn(
                f"{self._options.named}: the body looks like Markdown, but is saved as storage"
                " format; the filter delivery.toolchain.storage_format converts Markdown"
            )
        if page is not None:
            self._check(page)
        elif self._options.expected_version is not None:
            raise conflict(
                f"{self._options.named} does not exist: leave out expected_version to create it"
            )
        if self._removes:
            return self._removal(page)
        desired = self._desired
        if self._options.parent_title is not None:
            desired = replace(desired, parent=self._parent(page))
        desired.require_kept(page, self._options.named, self.task.warn)
        plan = self._creation(desired) if page is None else self._update(page, desired)
        if self._options.minor_edit and _saves(plan) and self._client.version == 2:
            self.task.warn(
                f"{self._options.named}: minor_edit has no effect with version 2 of the interface"
            )
        return plan.with_unsupported(of_body(desired.body) if self._client.is_in_cloud else ())

    def _parent(self, page: Page | None) -> str:
        """Return the id of the page `parent_title`. Raises `not_found` if it does not exist."""
        space = self._options.space or (None if page is None else page.space)
        title = composed(self._options.parent_title or "")
        if space is None:
            raise invalid(f"{self._options.named}: parent_title requires space")
        upcoming = self._upcoming.find(space, title, self._number)
        return self._client.parent_titled(title, space, upcoming)

    def announce(self, page: Page | None) -> None:
        """Add the page to the upcoming pages if the task creates or renames it.

        :param page: the present page
        """
        desired, space = self._desired, self._options.space
        if page is None and desired.title is not None and space is not None:
            if desired.body is not None and desired.heading is None:
                self._upcoming.add(self._number, space, desired.title, None)
        elif page is not None and page.space is not None and desired.changes_title(page):
            self._upcoming.add(self._number, page.space, desired.title_on(page), page.id)

    def creates(self, page: Page | None) -> str | None:
        """Return the predicted id of the page that the task creates, or None."""
        space, title = self._options.space, self._desired.title
        is_new = page is None and space is not None and title is not None
        return predicted_id(str(space), str(title)) if is_new else None

    def read(self) -> Page | None:
        """Return the page, or None if it does not exist."""
        options, named = self._options, self._options.named
        if options.page_id is None:
            space, title = options.space_and_title()
            page = self._client.find(f"searching for {named}", space, title)
            if page is None and self._follows:
                page = self._marked.find(self._client, space, title, self._connections)
            if page is None and self._removes:
                self._client.require_space(space)
            if page is None and (self._desired.body is None or self._desired.heading is not None):
                # this task cannot create the page, an earlier one in check mode would
                return self._client.predicted.by_title(space, title)
            return page
        if not self._removes:
            return self._client.require(f"reading {named}", options.page_id, options.space)
        predicted = self._client.predicted.by_id(options.page_id)
        return predicted or self._client.find_by_id(
            f"reading {named}", options.page_id, options.space
        )

    def predict(self, page: Page | None, plan: Plan) -> None:
        """Record the new page, the new title or the removal for later tasks in check mode."""
        if plan.action == "delete":
            if page is not None:
                self._client.predicted.remove(page)
            return
        new = plan.data.wanted
        if page is None or page.title != new.title:
            self._client.predicted.add(new)

    def _compared(self, page: Page | None, *, saves: bool) -> list[PageAddition]:
        """Compare restrictions, labels and attachments.

        :param page: the current page; None means a new page
        :param saves: whether the title, body or parent is saved too
        """
        if page is not None and is_predicted(page.id):
            page = None
        compared: list[PageAddition] = [each.on(page) for each in self._additions]
        if self._restrictions is not None:
            compared.insert(0, self._restrictions.on(page, saves=saves))
        return compared

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
            raise conflict(f"{self._options.named} {problem}")

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
            return self._text(page, (), body, after=False), ""

        return Plan(None, None, "delete", changes, result, make_diff=make_diff)

    def _creation(self, desired: DesiredPage) -> Plan:
        space, _title = self._options.space_and_title()
        if desired.heading is not None:
            raise not_found(
                f"{self._options.named} does not exist, so it has no heading '{desired.heading}':"
                " create the page with this heading first, or leave out section (in the role"
                " release_notes: release_notes_section)"
            )
        if desired.body is None:
            raise not_found(f"{self._options.named} does not exist: set body or src to create it")
        self._require_target(space, desired.parent)
        additions = self._compared(None, saves=True)
        title, parent = desired.title or "", desired.parent
        number = self._client.predicted.new_id(space, title)
        # a restricted page is created empty, and its content is the second version
        version = 2 if desired.body and restrict_of(additions) is not None else 1
        wanted = Page(number, title, space, version, "", body=desired.body, parent=parent)
        result = {
            "page": {**wanted.shown(), "id": number or None, "url": None},
            "ignored_differences": [],
            "comments": {"kept": 0, "lost": 0},
            **{each.noun: each.result() for each in additions},
        }

        def make_diff() -> tuple[str, str]:
            body = readable("", wanted.body or "", space)[1]
            return "", self._text(wanted, additions, body, after=True)

        changes = (Change("body", None, desired.body), *changes_of(additions))
        data = PageChanges(desired, wanted, additions)
        return Plan(None, None, "create", changes, result, make_diff=make_diff, data=data)

    def _update(self, page: Page, desired: DesiredPage) -> Plan:
        comparison = desired.validate(page)
        changes, comments = [], {"kept": 0, "lost": 0}
        if not comparison.same:
            comments = self._kept_comments(page, desired.body_on(page, comparison))
            changes.append(Change("body", page.body, desired.body))
        if desired.changes_title(page):
            changes.append(Change("title", page.title, desired.title))
        if desired.changes_parent(page):
            self._require_target(page.space, desired.parent, page.id)
            shown = self._upcoming.shown(desired.parent)
            changes.append(Change("parent_id", page.parent, shown))
        if desired.parent is not None and not page.shows_parent:
            self.task.warn(
                f"{self._options.named}: the server does not show the parent of the page, so"
                " parent_id is only sent together with other changes"
            )
        wanted = page
        if changes:
            body, parent = desired.body_on(page, comparison), desired.parent or page.parent
            title, version = desired.title_on(page), page.version + 1
            wanted = replace(page, title=title, body=body, version=version, parent=parent)
        additions = self._compared(page, saves=bool(changes))
        changes += changes_of(additions)
        result = {
            "page": wanted.shown(),
            "ignored_differences": list(comparison.ignored),
            "comments": comments,
            **{each.noun: each.result() for each in additions},
        }
        if not changes:
            return unchanged(result, self._text(page, additions, page.body or "", after=True))

        def make_diff() -> tuple[str, str]:
            bodies = page.body or "", wanted.body or ""
            before, after = readable(*bodies, page.space, exact=desired.exact)
            before = _NO_BODY if page.body is None else before
            return (
                self._text(page, additions, before, after=False),
                self._text(wanted, additions, after, after=True),
            )

        data = PageChanges(desired, wanted, additions)
        return Plan(None, None, "update", tuple(changes), result, make_diff=make_diff, data=data)

    def _require_target(self, space: str | None, parent: str | None, child: str = "") -> None:
        """Check space and parent before a write. An earlier entry may create the parent.

        Raises `not_found` if either is missing, `rejected` if the parent is below the page `child`.
        """
        if parent is not None and parent not in self._upcoming.titles:
            self._client.require_parent(parent, space, child)
        elif space is not None:
            self._client.require_space(space)

    def _text(
        self, page: Page, additions: Sequence[PageAddition], body: str, *, after: bool
    ) -> str:
        """Return the text of the diff: title, parent, additions and body."""
        managed = self._options.parent_id or self._options.parent_title
        parent = f"parent: {self._upcoming.shown(page.parent)}\n" if managed else ""
        texts = "".join(each.text(after=after) for each in additions)
        return f"title: {page.title}\n{parent}{texts}\n{body}"

    def _kept_comments(self, page: Page, body: str) -> dict[str, int]:
        """Return the numbers of inline comments of readers that a new body keeps and loses.

        Raises `conflict` if comments would be orphaned and the options do not allow it.

        The markers of comments are part of the body. Adding a marker creates no version, so the
        version number does not show it.
        """
        kept, lost = comment_counts(page.body or "", body)
        if lost == 0:
            return {"kept": kept, "lost": 0}
        comments = f"{lost} inline comment{'s' if lost > 1 else ''} of readers"
        if not self._options.allow_orphaned_comments:
            raise conflict(
                f"{self._options.named}: with this body, {comments} would be orphaned, because the"
                " commented text is gone; keep that text, or set allow_orphaned_comments"
            )
        self.task.warn(f"{self._options.named}: {comments} lose their place in the text")
        return {"kept": kept, "lost": lost}

    def preflight(self, page: Page | None, plan: Plan) -> None:
        """Raise `permission` for a missing permission, `conflict` for a title in use, `not_found`
        for an unknown user or group.
        """
        if plan.action != "delete":
            require_names_of(plan.data.additions)
        if page is None:
            return
        if plan.action == "delete":
            require(f"removing {self._options.named}", page, "delete")
        elif of_the_page(change.field for change in plan.changes):
            require(f"saving {self._options.named}", page, "update")
        renamed = any(change.field == "title" for change in plan.changes)
        if page.space is None or self._options.page_id is None or not renamed:
            return
        title = self._desired.title_on(page)
        purpose = f"searching for another page '{title}' in the space {page.space}"
        try:
            other = self._client.find(purpose, page.space, title)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return  # a server without a lookup by title
        gone = self._client.predicted.removed_in(page.space)
        if other is not None and other.id not in {page.id, *gone}:
            reason = (
                f"the page {other.id} in the space {page.space} already has the title"
                f" '{other.title}'"
            )
            raise conflict(f"{self._options.named}: {reason}")

    # -- applying ------------------------------------------------------------------------------

    def apply(self, page: Page | None, plan: Plan) -> Mapping[str, Any]:
        if plan.action == "delete" and page is not None:
            trash(self._client, f"moving {self._options.named} to the trash", page)
            return {}
        changes: PageChanges = plan.data
        desired = changes.desired
        parent = self._upcoming.id_of(desired.parent)
        if parent is None and desired.parent is not None:
            title = self._upcoming.titles[desired.parent]
            message = f"the page '{title}' does not exist, because its entry was not written"
            raise not_found(f"{self._options.named}: parent_title: {message}")
        changes = replace(changes, desired=replace(desired, parent=parent))
        restrict = restrict_of(changes.additions)
        refused = False
        if page is None or _saves(plan):
            saved, refused = self._save(page, changes, restrict)
        else:
            saved = page
            if restrict is not None:
                restrict(saved)
        try:
            for addition in changes.additions:
                if not isinstance(addition, PageRestrictions):
                    addition.apply(saved)
        except ToolchainError as error:
            error.result.setdefault("page", saved.shown())
            raise
        if not refused:
            return {"page": saved.shown()}
        self.task.warn(
            f"{self._options.named}: the server refused the save, because someone else had saved"
            " the same content meanwhile"
        )
        # Restrictions, labels and attachments are written all the same.
        return {"page": saved.shown(), "changed": bool(changes_of(changes.additions))}

    def _save(
        self, page: Page | None, changes: PageChanges, restrict: Callable[[Page], None] | None
    ) -> tuple[Page, bool]:
        """Save the page. Return it, and whether the server refused this save of equal content."""
        retry = self._options.on_conflict == "retry" and self._options.expected_version is None
        note, desired, body = self._note(), changes.desired, changes.wanted.body or ""
        writer = PageWriter(self._client, desired, note=note, retry=retry, restrict=restrict)
        if page is None:
            space, title = self._options.space_and_title()
            saved = writer.create(space)
            self._upcoming.made(space, title, saved.id)
        else:
            saved = writer.update(page, body)
        self._verify(saved, page, changes)
        return saved, writer.refused

    def _note(self) -> dict[str, Any]:
        note = without_none({"message": self._options.version_comment})
        minor = self._options.minor_edit and self._client.version == 1
        return {**note, "minorEdit": True} if minor else note

    def _verify(self, saved: Page, before: Page | None, changes: PageChanges) -> None:
        """Raise `failed` if the saved page has another parent. Warn about another body."""
        known, wanted = saved.shows_parent, changes.desired.parent
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
        if saved.body is not None and not alike(saved.body, changes.wanted.body or "", saved.space):
            self.task.warn(
                f"{self._options.named}: the stored body differs from the body that was sent;"
                " unsupported content may be lost, and the next run will find a difference again"
            )


def _saves(plan: Plan) -> bool:
    """Return whether a plan creates a version of the page."""
    return any(change.field in _OF_THE_PAGE for change in plan.changes)


def _additions(
    client: WikiClient, options: PageOptions
) -> list[PageLabels | PageAttachments | PageMark]:
    """Return labels, attachments and mark to manage. Raises `invalid` for invalid entries."""
    additions: list[PageLabels | PageAttachments | PageMark] = []
    if options.follow_renames and options.page_id is None:
        additions.append(PageMark(client, options.space_and_title()[1]))
    if options.labels is not None:
        additions.append(PageLabels(client, options.labels))
    if options.attachments is not None:
        additions.append(PageAttachments(client, files_of(options.attachments)))
    return additions


def looks_like_markdown(body: str) -> bool:
    """Return whether text outside of elements looks like Markdown; the body must be well-formed."""
    bare = "\n".join(child for child in parse(body).children if isinstance(child, str))
    return _SIGN.search(bare) is not None
