# SPDX-License-Identifier: GPL-3.0-or-later
"""One page of the wiki (contract, 5): the module C(wiki_page)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.errors import ToolchainError, invalid
from ..core.plan import Change, Plan, unchanged, without_none
from ..core.task import Task
from .client import Page, Wiki
from .compare import compare, readable
from .storage import Malformed, parse
from .target import Target, target_of
from .writing import Writer

_MARKER = "ac:inline-comment-marker"
_NO_BODY = "(the server does not send the body)\n"


class PageOperation:
    """A page as it is wanted, found by id, or by space and title."""

    def __init__(self, task: Task) -> None:
        params = task.params
        if params["page_id"] is None and (params["space"] is None or params["title"] is None):
            raise invalid("give page_id, or space and title, so that the page can be found")
        self._task, self._params = task, params
        self._removes = params["state"] == "absent"
        self._target = Target(None, None, None) if self._removes else target_of(params)
        self._title = None if params["title"] is None else params["title"].strip()
        self._wiki = Wiki(task)
        self._page: Page | None = None

    # -- deciding ------------------------------------------------------------------------------

    def plan(self) -> Plan:
        page = self._page = self._read()
        if page is not None:
            self._check(page)
        elif self._params["expected_version"] is not None:
            raise ToolchainError(
                "conflict", f"{self._named()} does not exist, so it has no version"
            )
        if self._removes:
            return self._removal(page)
        return self._creation() if page is None else self._update(page)

    def _named(self) -> str:
        if self._params["page_id"] is not None:
            return f"the page {self._params['page_id']}"
        return f"the page '{self._title}' in the space {self._params['space']}"

    def _read(self) -> Page | None:
        page_id = self._params["page_id"]
        if page_id is None:
            return self._find(self._params["space"], self._title or "")
        read = self._wiki.get if self._removes else self._wiki.require
        return read(f"reading {self._named()}", page_id, self._params["space"])

    def _find(self, space: str, title: str) -> Page | None:
        try:
            return self._wiki.find(f"looking for {self._named()}", space, title)
        except ToolchainError as error:
            if error.kind == "not_found":
                error.with_words("if this server has no look-up by title, give page_id")
            raise

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
            raise ToolchainError("conflict", f"{self._named()} {problem}")

    def _removal(self, page: Page | None) -> Plan:
        if page is None or page.status == "trashed":
            return unchanged({"page": None, "ignored_differences": []}, "")
        before = self._text(page, readable(page.body or "", "", page.space)[0])
        result = {"page": page.shown(), "ignored_differences": []}
        return Plan(before, "", "delete", (Change("state", "present", "absent"),), result)

    def _creation(self) -> Plan:
        target = self._target
        if target.body is None or target.heading is not None:
            raise ToolchainError(
                "not_found",
                f"{self._named()} does not exist; body or src without section can create it",
            )
        space = self._params["space"]
        page = Page("", target.title or "", space, 1, "", parent=target.parent)
        after = self._text(page, readable(target.body, target.body, space)[1])
        shown = {**page.shown(), "id": None, "url": None}
        changes = (Change("body", None, target.body),)
        return Plan("", after, "create", changes, {"page": shown, "ignored_differences": []})

    def _update(self, page: Page) -> Plan:
        target = self._target
        verdict = target.judge(page)
        changes = []
        if not verdict.same:
            changes.append(Change("body", page.body, target.body))
        if target.renames(page):
            changes.append(Change("title", page.title, target.title))
        if target.moves(page):
            changes.append(Change("parent_id", page.parent, target.parent))
        result = {"page": page.shown(), "ignored_differences": list(verdict.ignored)}
        if not changes:
            return unchanged(result, self._text(page, self._readable(page, page)))
        wanted = replace(
            page,
            title=target.title_on(page),
            body=target.body_on(page),
            version=page.version + 1,
            parent=target.parent or page.parent,
        )
        result["page"] = wanted.shown()
        self._warn_of_comments(page, wanted)
        before = self._text(page, self._readable(page, wanted))
        after = self._text(wanted, self._readable(page, wanted, after=True))
        return Plan(before, after, "update", tuple(changes), result)

    def _readable(self, page: Page, wanted: Page, *, after: bool = False) -> str:
        if page.body is None and not after:
            return _NO_BODY
        bodies = page.body or "", wanted.body or ""
        return readable(*bodies, page.space, exact=self._target.exact)[int(after)]

    def _text(self, page: Page, body: str) -> str:
        """What the diff shows: what is managed beside the body stands above it."""
        parent = "" if self._params["parent_id"] is None else f"parent: {page.parent or '-'}\n"
        return f"title: {page.title}\n{parent}\n{body}"

    # -- doing ---------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        page = self._page
        if plan.action == "delete" and page is not None:
            self._trash(page)
            return {}
        writer = Writer(
            self._wiki,
            self._target,
            note=self._note(),
            retry=self._params["on_conflict"] == "retry"
            and self._params["expected_version"] is None,
        )
        if page is None:
            saved = writer.create(self._params["space"])
            self._verify(saved, None)
        else:
            saved = writer.update(page)
            self._verify(saved, page)
        return {"page": saved.shown()}

    def _note(self) -> dict[str, Any]:
        note = without_none({"message": self._params["version_comment"]})
        return {**note, "minorEdit": True} if self._params["minor_edit"] else note

    def _trash(self, page: Page) -> None:
        """Move the page to the trash; where the answer got lost, look whether it is gone."""
        what = f"moving {self._named()} to the trash"
        try:
            self._wiki.trash(what, page.id)
        except ToolchainError as error:
            if error.status != 404 and not error.unanswered and error.kind != "server":
                raise
            now = self._wiki.get(f"reading {self._named()} after a failure", page.id, page.space)
            if now is not None and now.status == "current":
                raise

    def _verify(self, saved: Page, before: Page | None) -> None:
        """Compare what the server shows after a save with what was wanted."""
        target = self._target
        known, wanted = saved.shows_parent, target.parent
        if wanted is None and before is not None:
            known, wanted = known and before.shows_parent, before.parent
        if known and saved.parent != wanted:
            raise ToolchainError(
                "failed",
                f"{self._named()} was saved, but the server moved it below"
                f" {saved.parent or 'the top of the space'} instead of leaving it below"
                f" {wanted or 'the top of the space'}: set parent_id",
                result={"changed": True, "page": saved.shown()},
            )
        body = target.body if before is None else target.body_on(before)
        shown = saved.body is not None and body is not None
        if shown and not compare(saved.body or "", body or "", saved.space).same:
            self._task.warn(
                f"{self._named()}: the server stored another body than it was sent; something that"
                " it does not know may be lost, and the next run will differ again"
            )

    def _warn_of_comments(self, page: Page, wanted: Page) -> None:
        """Readers' comments hang on marks in the text, which a new body does not have."""
        count = _comments(page.body or "") - _comments(wanted.body or "")
        if count > 0:
            self._task.warn(
                f"{self._named()}: {count} inline comments of readers lose their place in the text"
            )


def _comments(body: str) -> int:
    try:
        return sum(element.name == _MARKER for element in parse(body).walk())
    except Malformed:
        return 0
