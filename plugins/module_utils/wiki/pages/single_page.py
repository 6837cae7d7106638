# SPDX-License-Identifier: GPL-3.0-or-later
"""One page of the wiki [C5.1]: the module C(wiki_page)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Change, Plan, unchanged, without_none
from ..attachments import Attachments
from ..client import Page, Wiki
from ..labels import Labels
from ..storage.canonical import MARKER
from ..storage.comparison import Verdict, alike, readable
from ..storage.parser import Malformed, parse
from .page_parts import Part
from .saving import Writer
from .target import Target, target_of

#: What makes a new version of a page.
_OF_THE_PAGE = frozenset({"body", "title", "parent_id"})
_NO_BODY = "(the server does not send the body)\n"


class PageOperation:
    """A page as it is wanted, found by id, or by space and title.

    C(connections): most connections at once, of all pages of a task together.
    """

    def __init__(self, task: Task, *, connections: int = 10) -> None:
        params = task.params
        require_address(params)
        self._task, self._params = task, params
        self._removes = params["state"] == "absent"
        self._target = Target(None, None, None) if self._removes else target_of(params)
        self._title = None if params["title"] is None else params["title"].strip()
        with_labels = not self._removes and params["labels"] is not None
        missed = self._removes and not params["force"]
        self._wiki = Wiki(task, labels=with_labels, missed=missed, connections=connections)
        self._parts = [] if self._removes else parts_of(self._wiki, params)
        self._page: Page | None = None
        self._body = self._target.body or ""

    # -- deciding ------------------------------------------------------------------------------

    def plan(self) -> Plan:
        page = self._page = self._read()
        if page is not None:
            self._check(page)
        elif self._params["expected_version"] is not None:
            raise ToolchainError("conflict", f"{self.named()} does not exist, so it has no version")
        if self._removes:
            return self._removal(page)
        plan = self._creation() if page is None else self._update(page)
        return plan.returning(**self._results())

    @property
    def page(self) -> Page | None:
        """The page that was found by C(plan)."""
        return self._page

    def named(self) -> str:
        """The page in messages."""
        return named(self._params)

    def _read(self) -> Page | None:
        page_id, space = self._params["page_id"], self._params["space"]
        if page_id is None:
            page = self._wiki.find(f"looking for {self.named()}", space, self._title or "")
            if page is None and self._removes:
                self._wiki.require_space(space)
            return page
        read = self._wiki.find_by_id if self._removes else self._wiki.require
        return read(f"reading {self.named()}", page_id, space)

    def _hanging(self, page: Page | None) -> list[Change]:
        """What has to be done about what hangs on the page."""
        return [change for part in self._parts if (change := part.plan(page)) is not None]

    def _results(self) -> dict[str, Any]:
        return {name: value for part in self._parts for name, value in part.result().items()}

    def _check(self, page: Page) -> None:
        """C(conflict) for a page that is not the one that was meant."""
        space, expected = self._params["space"], self._params["expected_version"]
        problem = None
        if page.type != "page":
            problem = f"is a {page.type}, not a page"
        elif page.status == "draft" or (page.status != "current" and not self._removes):
            problem = f"is not a current page, but {page.status}"
        elif None not in (space, page.space) and space.lower() != str(page.space).lower():
            problem = f"is in the space {page.space}, not in {space}"
        elif expected is not None and page.version != expected:
            problem = f"has version {page.version}, not {expected}"
        if problem is not None:
            raise ToolchainError("conflict", f"{self.named()} {problem}")

    def _removal(self, page: Page | None) -> Plan:
        if page is None or page.status == "trashed":
            return unchanged({"page": None, "ignored_differences": []}, "")
        missed = None if self._params["force"] else self._wiki.is_missed(page)
        if missed is not None:
            raise invalid(f"removing {self.named()}: {missed}; force: true allows it")
        changes = (Change("state", "present", "absent"),)
        result = {"page": page.shown(), "ignored_differences": []}

        def sides() -> tuple[str, str]:
            body = readable(page.body or "", "", page.space)[0]
            return self._text(page, body, after=False), ""

        return Plan(None, None, "delete", changes, result, sides=sides)

    def _creation(self) -> Plan:
        target, space = self._target, self._params["space"]
        if target.body is None or target.heading is not None:
            raise ToolchainError(
                "not_found",
                f"{self.named()} does not exist; body or src without section can create it",
            )
        changes = (Change("body", None, target.body), *self._hanging(None))
        page = Page("", target.title or "", space, 1, "", body=target.body, parent=target.parent)
        shown = {**page.shown(), "id": None, "url": None}
        result = {"page": shown, "ignored_differences": []}

        def sides() -> tuple[str, str]:
            return "", self._text(page, readable("", page.body or "", space)[1], after=True)

        return Plan(None, None, "create", changes, result, sides=sides)

    def _update(self, page: Page) -> Plan:
        target = self._target
        verdict = target.judge(page)
        changes = []
        if not verdict.same:
            self._keep_comments(page, target.body_on(page, verdict))
            changes.append(Change("body", page.body, target.body))
        if target.renames(page):
            changes.append(Change("title", page.title, target.title))
        if target.moves(page):
            changes.append(Change("parent_id", page.parent, target.parent))
        if target.parent is not None and not page.shows_parent:
            self._task.warn(
                f"{self.named()}: the server does not show where the page stands, so that parent_id"
                " alone changes nothing; it is sent when the page is saved"
            )
        wanted = self._wanted(page, verdict) if changes else page
        changes += self._hanging(page)
        result = {"page": wanted.shown(), "ignored_differences": list(verdict.ignored)}
        if not changes:
            return unchanged(result, self._text(page, page.body or "", after=True))

        def sides() -> tuple[str, str]:
            bodies = page.body or "", wanted.body or ""
            before, after = readable(*bodies, page.space, exact=target.exact)
            before = _NO_BODY if page.body is None else before
            return self._text(page, before, after=False), self._text(wanted, after, after=True)

        return Plan(None, None, "update", tuple(changes), result, sides=sides)

    def _wanted(self, page: Page, verdict: Verdict) -> Page:
        """The page as it is to be saved."""
        self._body = self._target.body_on(page, verdict)
        return replace(
            page,
            title=self._target.title_on(page),
            body=self._body,
            version=page.version + 1,
            parent=self._target.parent or page.parent,
        )

    def _text(self, page: Page, body: str, *, after: bool) -> str:
        """What the diff shows: what is managed beside the body stands above it."""
        parent = "" if self._params["parent_id"] is None else f"parent: {page.parent or '-'}\n"
        hanging = "".join(part.text(after=after) for part in self._parts)
        return f"title: {page.title}\n{parent}{hanging}\n{body}"

    def _keep_comments(self, page: Page, body: str) -> None:
        """C(conflict) for a new body on which inline comments of readers lose their place: they
        hang on marks in the text, which make no version.
        """
        lost = len(_comments(page.body or "") - _comments(body))
        if lost == 0:
            return
        said = f"{lost} inline comment{'s' if lost > 1 else ''} of readers"
        if not self._params["allow_orphaned_comments"]:
            raise ToolchainError(
                "conflict",
                f"{self.named()}: with this body {said} would lose the place in the text; keep"
                " their marks in the body, or set allow_orphaned_comments",
            )
        self._task.warn(f"{self.named()}: {said} lose the place in the text")

    # -- doing ---------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        page = self._page
        if plan.action == "delete" and page is not None:
            self._trash(page)
            return {}
        saved = page
        if saved is None or _saves(plan.changes):
            saved = self._save(page)
        try:
            for part in self._parts:
                part.apply(saved)
        except ToolchainError as error:
            error.result.setdefault("page", saved.shown())
            raise
        return {"page": saved.shown()}

    def _save(self, page: Page | None) -> Page:
        retry = self._params["on_conflict"] == "retry" and self._params["expected_version"] is None
        writer = Writer(self._wiki, self._target, note=self._note(), retry=retry)
        if page is None:
            saved = writer.create(self._params["space"])
        else:
            saved = writer.update(page, self._body)
        self._verify(saved, page)
        return saved

    def _note(self) -> dict[str, Any]:
        note = without_none({"message": self._params["version_comment"]})
        return {**note, "minorEdit": True} if self._params["minor_edit"] else note

    def _trash(self, page: Page) -> None:
        """Move the page to the trash; one that is not found any more is gone."""

        def is_gone() -> bool:
            now = self._wiki.get(f"looking after {self.named()}", page.id, page.space)
            return now is None or now.status != "current"

        try:
            self._wiki.trash(f"moving {self.named()} to the trash", page.id, is_gone)
        except ToolchainError as error:
            if error.status != 404 or not is_gone():
                raise

    def _verify(self, saved: Page, before: Page | None) -> None:
        """Compare what the server shows after a save with what was wanted."""
        known, wanted = saved.shows_parent, self._target.parent
        if wanted is None:
            # A new page stands where the server puts it; one that was there stays where it was.
            known = known and before is not None and before.shows_parent
            wanted = None if before is None else before.parent
        if known and saved.parent != wanted:
            raise ToolchainError(
                "failed",
                f"{self.named()} was saved, but the server moved it below"
                f" {saved.parent or 'the top of the space'} instead of leaving it below"
                f" {wanted or 'the top of the space'}: set parent_id",
                result={"changed": True, "page": saved.shown()},
            )
        if saved.body is not None and not alike(saved.body, self._body, saved.space):
            self._task.warn(
                f"{self.named()}: the server stored another body than it was sent; something that"
                " it does not know may be lost, and the next run will differ again"
            )


def require_address(params: Mapping[str, Any]) -> None:
    """C(invalid) where a page cannot be found by what is given."""
    for name in ("page_id", "space", "title"):
        if params[name] is not None and not params[name].strip():
            raise invalid(f"{name} is blank")
    if params["page_id"] is None and (params["space"] is None or params["title"] is None):
        raise invalid("give page_id, or space and title, so that the page can be found")


def named(params: Mapping[str, Any]) -> str:
    """A page in messages, as the options name it."""
    if params["page_id"] is not None:
        return f"the page {params['page_id']}"
    return f"the page '{params['title'].strip()}' in the space {params['space']}"


def parts_of(wiki: Wiki, params: Mapping[str, Any]) -> list[Part]:
    """What hangs on a page and is managed. Raises C(invalid)."""
    parts: list[Part] = []
    if params["labels"] is not None:
        parts.append(Labels(wiki, params["labels"]))
    if params["attachments"] is not None:
        parts.append(Attachments(wiki, params["attachments"]))
    return parts


def _saves(changes: Iterable[Change]) -> bool:
    return any(change.field in _OF_THE_PAGE for change in changes)


def _comments(body: str) -> set[str]:
    """The inline comments that have a place in a body; one may have several."""
    if MARKER not in body:
        return set()
    try:
        marks = [element for element in parse(body).walk() if element.name == MARKER]
    except Malformed:
        return set()
    return {mark.attributes.get("ac:ref", "") for mark in marks}
