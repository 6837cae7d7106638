# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_page`: a single page, or with `pages` many pages in a task [C5.1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

from ...core.accounting import Accounting
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.plan import Plan, unchanged
from ..storage.excerpt import excerpt
from .page_options import PageFields, PageOptions
from .single_page import SinglePage

#: Error kinds after which all other pages would fail too. Before the first response, errors of the
#: connection are added.
_FOR_ALL_PAGES = frozenset({"auth", "rate_limited"})
_BEFORE_FIRST_RESPONSE = _FOR_ALL_PAGES | {"network", "timeout"}


_BODY = ["body", "src"]
_OF_ONE_PAGE = (*_BODY, "page_id", "title", "section", "expected_version", "attachments")


@dataclass(frozen=True)
class WikiPageEntry(PageFields):
    """An entry of `pages`; the options of the task are its defaults."""

    compare: Literal["normalized", "exact"] | None = None
    on_conflict: Literal["fail", "retry"] | None = None
    minor_edit: bool | None = None
    allow_orphaned_comments: bool | None = None
    state: Literal["present", "absent"] | None = None
    force: bool | None = None

    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [_BODY]}


@dataclass(frozen=True)
class WikiPageOptions(PageOptions):
    """Options of `wiki_page`."""

    pages: list[WikiPageEntry] | None = None
    parallel: int = 4

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [["page_id", "space", "pages"]],
        "mutually_exclusive": [_BODY, *(["pages", name] for name in _OF_ONE_PAGE)],
    }

    def entry(self, entry: WikiPageEntry) -> PageOptions:
        values = {field_.name: getattr(entry, field_.name) for field_ in fields(entry)}
        options = {name: value for name, value in values.items() if value is not None}
        return replace(self, pages=None, **options)


class WikiPageOperation:
    """Manage a single page, or many pages in a task. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        "wiki",
        {
            "create": writes("view", unforeseen=("add",)),
            **dict.fromkeys(
                ("update", "labels", "properties", "move", "restrictions"), writes("view", "add")
            ),
            "attachments": writes("view", unforeseen=("attach",)),
            "delete": writes("view", "delete"),
        },
        kind="page",
        name="{space}/{title}",
    )

    def __init__(self, task: Task, options: WikiPageOptions) -> None:
        if options.parallel < 1:
            raise invalid("parallel must be at least 1")
        entries = options.pages
        self._pages: SinglePage | ListedPages = (
            SinglePage(task, options)
            if entries is None
            else ListedPages(task, [options.entry(entry) for entry in entries], options.parallel)
        )

    def plan(self) -> Plan:
        return self._pages.plan()

    def predict(self, plan: Plan) -> None:
        self._pages.predict(plan)

    def preflight(self, plan: Plan) -> None:
        self._pages.preflight(plan)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._pages.apply(plan)


@dataclass
class _ListedPage:
    """An entry of `pages` with its plan, return values and error."""

    name: str
    task: Task
    operation: SinglePage
    plan: Plan = field(default_factory=unchanged)
    values: Mapping[str, Any] = field(default_factory=dict)
    error: ToolchainError | None = None

    def shown(self) -> dict[str, Any]:
        """Return the entry of the page in the return value `pages`."""
        if self.error is None:
            return {"ok": True, "changed": self.plan.changed, **self.values, "error": None}
        failure = self.task.failure(self.error)
        del failure["http"]  # the return value `http` of the task includes this page
        return {"ok": False, "page": None, **failure}


class ListedPages:
    """Manage independent pages. If a page fails, the others are still written."""

    def __init__(self, task: Task, pages: Sequence[PageOptions], parallel: int) -> None:
        self._task, self._parallel = task, parallel
        self._warnings: dict[int, list[str]] = {}
        self._items = self._parse_entries(pages)

    def _parse_entries(self, pages: Sequence[PageOptions]) -> list[_ListedPage]:
        """Return the pages of the entries. Raises `invalid`, which reports all invalid entries."""
        items, problems, seen = [], [], dict[str, int]()
        for index, page in enumerate(pages):
            try:
                name = page.named
                first = seen.setdefault(name.lower(), index)
                if first != index:
                    raise invalid(f"{name} is already listed as pages[{first}]")
                items.append(self._item(index, name, page))
            except ToolchainError as error:
                problems.append(f"pages[{index}]: {error.message}")
        if problems:
            raise invalid(shorten("; ".join(problems)))
        return items

    def _item(self, index: int, name: str, page: PageOptions) -> _ListedPage:
        warnings = self._warnings.setdefault(index, [])
        accounting = Accounting(total=self._task.accounting)
        task = replace(self._task, warn=warnings.append, accounting=accounting)
        return _ListedPage(name, task, SinglePage(task, page, connections=self._parallel))

    # -- planning ------------------------------------------------------------------------------

    def plan(self) -> Plan:
        # The first page is planned alone: the version of the server and a rejected login, for
        # example, apply to all pages.
        earlier = self._each(self._plan_one, self._items[:1], _BEFORE_FIRST_RESPONSE)
        self._each(self._plan_one, self._items[1:], _FOR_ALL_PAGES, earlier)
        self._reject_duplicates()
        changed = [item for item in self._items if item.error is None and item.plan.changed]

        def make_diff() -> tuple[str, str]:
            texts = [excerpt(item.name, *item.plan.diff()) for item in changed]
            before = "".join(text for text, _other in texts)
            return before, "".join(text for _other, text in texts)

        return Plan(
            None,
            None,
            "update" if changed else "none",
            result={"pages": self._shown()},
            failure=self._failure(),
            make_diff=make_diff,
        )

    def _plan_one(self, item: _ListedPage) -> None:
        item.plan = item.operation.plan()
        item.values = item.plan.result

    def _reject_duplicates(self) -> None:
        """Reject a second entry for the same page, for example by its id instead of its title."""
        seen: dict[str, str] = {}
        for item in self._items:
            page = item.operation.page
            if page is not None and seen.setdefault(page.id, item.name) != item.name:
                item.error = invalid(
                    f"{item.name} is the same page as {seen[page.id]}: remove one of the entries"
                )

    def predict(self, plan: Plan) -> None:
        """Record the new pages for later tasks in check mode."""
        for item in self._items:
            item.operation.predict(item.plan)

    def preflight(self, plan: Plan) -> None:
        """Check the permissions of all pages. Raises an error for all failed pages."""
        todo = [item for item in self._items if item.error is None and item.plan.changed]
        self._each(lambda item: item.operation.preflight(item.plan), todo, _FOR_ALL_PAGES)
        failure = self._failure()
        if failure is not None:
            raise failure

    # -- applying ------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        todo = [item for item in self._items if item.error is None and item.plan.changed]
        self._each(self._apply_one, todo, _FOR_ALL_PAGES)
        failure = self._failure()
        if failure is not None:
            raise failure
        return {"pages": self._shown()}

    def _apply_one(self, item: _ListedPage) -> None:
        item.values = {**item.values, **item.operation.apply(item.plan)}

    def _each(
        self,
        work: Callable[[_ListedPage], None],
        items: list[_ListedPage],
        final: frozenset[str],
        earlier: ToolchainError | None = None,
    ) -> ToolchainError | None:
        """Call `work` for pages, `parallel` at once, and store the errors in the pages.

        Returns the first error of a `final` kind, or None. After it, no further page is started.

        :param earlier: such an error of a previous call
        """
        found = [] if earlier is None else [earlier]

        def attempt(item: _ListedPage) -> None:
            try:
                if found:
                    message = f"{item.name} was not attempted after this error"
                    raise ToolchainError(found[0].kind, message, detail=found[0].detail)
                work(item)
            except ToolchainError as error:
                item.error = error
                if error.kind in final:
                    found.append(error)

        spread(self._parallel, attempt, items)
        for warnings in self._warnings.values():
            while warnings:
                self._task.warn(warnings.pop(0))
        return found[0] if found else None

    # -- results -------------------------------------------------------------------------------

    def _shown(self) -> list[dict[str, Any]]:
        return [item.shown() for item in self._items]

    def _failure(self) -> ToolchainError | None:
        """Return an error for all failed pages, or None. Kind and status are those of the first."""
        found = [item.error for item in self._items if item.error is not None]
        if not found:
            return None
        reason = "; ".join(dict.fromkeys(error.message for error in found))
        pages = self._shown()
        return ToolchainError(
            found[0].kind,
            shorten(f"{len(found)} of {len(self._items)} pages failed: {reason}"),
            status=found[0].status,
            method=found[0].method,
            url=found[0].url,
            detail=found[0].detail,
            result={"pages": pages, "changed": any(page["changed"] for page in pages)},
        )
