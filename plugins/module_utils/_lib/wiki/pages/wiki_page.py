# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_page`: a single page, or with `pages` many pages in a task [C5.1]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid, shorten
from ...core.finding import Finding
from ...core.http.messages import Accounting
from ...core.module.authorship import Author
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.operations.objects import Item, ItemKind, Objects, attempt_each
from ...core.plan import Plan, unchanged
from ..additions import MarkedPages
from ..formats.comparison import excerpt, joined
from ..page import Page, author_of
from ..service import SERVICE
from .desired_page import PageFields, PageOptions
from .single_page import PageChanges, SinglePage, UpcomingPages, title_key

_BODY = ["body", "src"]
_PARENT = ["parent_id", "parent_title"]
_OF_ONE_PAGE = (*_BODY, "page_id", "title", "section", "expected_version", "attachments")


@dataclass(frozen=True)
class WikiPageEntry(PageFields):
    """An entry of `pages`; the options of the task are its defaults."""

    compare: Literal["normalized", "exact"] | None = None
    on_conflict: Literal["fail", "retry"] | None = None
    minor_edit: bool | None = None
    allow_orphaned_comments: bool | None = None
    follow_renames: bool | None = None
    state: Literal["present", "absent"] | None = None
    force: bool | None = None

    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [_BODY, _PARENT]}


@dataclass(frozen=True)
class WikiPageOptions(PageOptions):
    """Options of `wiki_page`."""

    pages: list[WikiPageEntry] | None = None
    parallel: Positive = 4

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [["page_id", "space", "pages"]],
        "mutually_exclusive": [_BODY, _PARENT, *(["pages", name] for name in _OF_ONE_PAGE)],
    }

    def entry(self, entry: WikiPageEntry) -> PageOptions:
        values = {field_.name: getattr(entry, field_.name) for field_ in fields(entry)}
        options = {name: value for name, value in values.items() if value is not None}
        if any(name in options for name in _PARENT):  # the parent of the task is no default then
            options = {**dict.fromkeys(_PARENT), **options}
        return replace(self, pages=None, **options)


def _require_tree(pages: Sequence[PageOptions]) -> None:
    """Raise `invalid` if the entries would put a page below itself."""
    numbers: dict[tuple[str, ...], int] = {}
    for number, page in enumerate(pages):
        if page.page_id is not None:
            numbers[(page.page_id,)] = number
        if page.space is not None and page.title is not None:
            numbers[title_key(page.space, page.title)] = number
    above: dict[int, int] = {}
    for number, page in enumerate(pages):
        key: tuple[str, ...] = (page.parent_id or "",)
        if page.parent_title is not None and page.space is not None:
            key = title_key(page.space, page.parent_title)
        if page.state == "present" and key in numbers:
            above[number] = numbers[key]
    while above:
        chain = [*above][:1]
        while (parent := above.pop(chain[-1], None)) is not None:
            chain.append(parent)
        circle = chain[chain.index(chain[-1]) :]
        if circle[1:]:
            names = " below ".join(f"pages[{number}]" for number in circle)
            raise invalid(
                f"{shorten(names)}: change parent_id or parent_title, so that no page is"
                " below itself"
            )


class PageKind(ItemKind[PageOptions, Page]):
    """Pages. A missing permission or a conflict only fails a single page of the list.

    :param pages: options of each page
    :raises ToolchainError: `invalid`, with the problems of all entries of a list
    """

    noun = "page"

    def __init__(
        self, task: Task, pages: Sequence[PageOptions], parallel: int, *, listed: bool
    ) -> None:
        super().__init__(task)
        self.parallel = parallel
        self._warnings: dict[str, list[str]] = {}
        self._pages: dict[str, SinglePage] = {}
        self._marked, self._upcoming = MarkedPages(), UpcomingPages()
        #: Ids of the pages that the task removes.
        self._removed: set[str] = set()
        if listed:
            _require_tree(pages)
        problems = []
        for index, page in enumerate(pages):
            try:
                self._add(page, listed=listed)
            except ToolchainError as error:
                if not listed:
                    raise
                problems.append(f"pages[{index}]: {error.message}")
        if problems:
            raise invalid(shorten("; ".join(problems)))

    def _add(self, page: PageOptions, *, listed: bool) -> None:
        task, connections = self._task, 10
        if listed:  # the warnings of a list are shown in its order
            warn = self._warnings.setdefault(page.named.lower(), []).append
            accounting = Accounting(total=task.accounting)
            task, connections = replace(task, warn=warn, accounting=accounting), self.parallel
        number = len(self._pages)
        self._pages[page.named.lower()] = SinglePage(
            task, page, self._marked, self._upcoming, number, connections=connections
        )

    def name(self, entry: PageOptions) -> str:
        return entry.named

    def key(self, entry: PageOptions) -> str:
        return entry.named.lower()

    def _page(self, item: Item[PageOptions, Page]) -> SinglePage:
        return self._pages[item.name.lower()]

    def load(self, items: Sequence[Item[PageOptions, Page]]) -> None:
        """Read all pages. A page that is listed by its id and by its title is an error."""

        def read(item: Item[PageOptions, Page]) -> None:
            item.state = self._page(item).read()

        attempt_each(read, items, self.parallel)
        seen: dict[str, str] = {}
        for item in items:
            if item.error is None:
                self._page(item).announce(item.state)
        for item in items:
            self._require_own_title(item)
            if item.state is not None and item.entry.state == "absent":
                self._removed.add(item.state.id)
            if item.state is not None and seen.setdefault(item.state.id, item.name) != item.name:
                message = f"{item.name} is the same page as {seen[item.state.id]}"
                item.error = invalid(f"{message}: remove one of the entries")
                item.plan = replace(item.plan, failure=item.error)  # stops this page only

    def _require_own_title(self, item: Item[PageOptions, Page]) -> None:
        """Raise `invalid` if another entry gives its page the title that a page still has.

        Pages are written in parallel, so no entry can wait until another one frees a title.
        """
        page = item.state
        if page is None or page.space is None or page.status != "current":
            return
        if self._upcoming.find(page.space, page.title, len(self._pages)) not in (None, page.id):
            raise invalid(
                f"pages: another entry gives a page the title '{page.title}', which"
                f" {item.name} still has: rename or remove {item.name} in an earlier task"
            )

    def compare(self, item: Item[PageOptions, Page]) -> Plan:
        try:
            found = self._page(item).plan(item.state)
        except ToolchainError as error:
            if error.kind != "invalid":
                raise
            return replace(unchanged(), failure=error)  # stops this page only
        changes = found.data
        if isinstance(changes, PageChanges) and changes.desired.parent in self._removed:
            raise invalid(
                f"another entry removes the parent {changes.desired.parent}: set another parent, or"
                " keep that page"
            )
        return found

    def foresee(self, item: Item[PageOptions, Page]) -> None:
        self._page(item).preflight(item.state, item.plan)

    def write_all(self, items: Sequence[Item[PageOptions, Page]]) -> None:
        """Write all changed pages, and no page before the one that is its new parent."""
        done: list[Item[PageOptions, Page]] = []
        pending = list(items)
        while pending:
            new = {self._page(item).creates(item.state) for item in pending} - {None}
            ready = [item for item in pending if _parent_of(item) not in new]
            pending = [item for item in pending if _parent_of(item) in new]
            attempt_each(self.finish, ready, self.parallel, earlier=done)
            done += ready

    def write(self, item: Item[PageOptions, Page]) -> None:
        written = dict(self._page(item).apply(item.state, item.plan))
        if not written.pop("changed", True):
            item.plan = replace(item.plan, action="none")
        item.returned = {**item.returned, **written}

    def author(self, item: Item[PageOptions, Page]) -> Author:
        return author_of(item.state)

    def predict(self, item: Item[PageOptions, Page]) -> None:
        self._page(item).predict(item.state, item.plan)

    @contextmanager
    def ordered_warnings(self) -> Iterator[None]:
        """Show the warnings in the order of the pages at the end of the block."""
        try:
            yield
        finally:
            for warnings in self._warnings.values():
                while warnings:
                    self._task.warn(warnings.pop(0))

    def row(self, item: Item[PageOptions, Page]) -> dict[str, Any]:
        if item.error is None:
            return {"ok": True, "changed": item.plan.changed, **item.returned, "error": None}
        failure = self._page(item).task.failure(item.error)
        del failure["http"]  # the return value `http` of the task includes this page
        return {"ok": False, "page": None, **failure}


def _parent_of(item: Item[PageOptions, Page]) -> str | None:
    """Return the id of the wanted parent of a page, or None."""
    changes = item.plan.data
    return changes.desired.parent if isinstance(changes, PageChanges) else None


class WikiPageOperation(Objects[PageOptions, Page]):
    """Manage a single page, or many pages in a task. Raises `invalid`."""

    nouns = rows = "pages"

    descriptor: ClassVar = Descriptor(
        SERVICE,
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
        listed = options.pages is not None
        pages = [options.entry(entry) for entry in options.pages or ()] if listed else [options]
        if not pages:
            task.warn("pages is empty: nothing is managed")
        self._pages = PageKind(task, pages, options.parallel, listed=listed)
        super().__init__(self._pages, pages, listed=listed)

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> None:
        """Return `None`: the pages of a task are one object in reports."""

    def plan(self) -> Plan:
        with self._pages.ordered_warnings():
            return super().plan()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        with self._pages.ordered_warnings():
            return super().apply(plan)

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        return []

    def _failure(self, items: Sequence[Item[PageOptions, Page]]) -> ToolchainError | None:
        failure = super()._failure(items)
        if failure is not None and self._listed:
            failure.result["changed"] = any(row["changed"] for row in failure.result[self.rows])
        return failure

    def _full_plan(self, items: Sequence[Item[PageOptions, Page]]) -> Plan:
        plan = super()._full_plan(items)
        if not self._listed:
            return plan

        def make_diff() -> tuple[str, str]:
            changed = [item for item in items if item.error is None and item.plan.changed]
            return joined(excerpt(item.name, *item.plan.diff()) for item in changed)

        return replace(plan, before=None, after=None, make_diff=make_diff)
