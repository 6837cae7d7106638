# SPDX-License-Identifier: GPL-3.0-or-later
"""Many pages in one task ([C5.1]: the module C(wiki_page) with C(pages))."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.accounting import Accounting
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.task import Task
from ...core.plan import Operation, Plan, unchanged, without_none
from .single_page import PageOperation, named, require_address

#: Kinds of errors that every other page would meet as well; before the server has answered once,
#: more of them.
_OF_THE_SERVER = frozenset({"auth", "rate_limited"})
_OF_THE_WAY = _OF_THE_SERVER | {"network", "timeout"}


def operation(task: Task) -> Operation:
    """The operation that the options of C(wiki_page) ask for. Raises C(invalid)."""
    if task.params["parallel"] < 1:
        raise invalid("parallel: at least one page at a time is needed")
    return PageOperation(task) if task.params["pages"] is None else PagesOperation(task)


@dataclass
class _Item:
    """One page of the list and what became of it so far."""

    name: str
    task: Task
    operation: PageOperation
    plan: Plan = field(default_factory=unchanged)
    values: Mapping[str, Any] = field(default_factory=dict)
    error: ToolchainError | None = None

    def shown(self) -> dict[str, Any]:
        """An entry of the C(pages) return value."""
        if self.error is None:
            return {"ok": True, "changed": self.plan.changed, **self.values, "error": None}
        failure = self.task.failure(self.error)
        del failure["http"]  # that of the task counts
        return {"ok": False, "page": None, **failure}


class PagesOperation:
    """Pages that have nothing to do with each other: one that fails does not stop the rest.

    What the task says of a page holds for each entry that does not say it itself.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._parallel: int = task.params["parallel"]
        self._warnings: dict[int, list[str]] = {}
        entries = [
            {**task.params, **without_none(entry), "pages": None} for entry in task.params["pages"]
        ]
        self._items = self._made(entries)

    def _made(self, entries: list[dict[str, Any]]) -> list[_Item]:
        """Raises C(invalid) that names every entry which makes no sense."""
        items, problems, seen = [], [], dict[str, int]()
        for index, params in enumerate(entries):
            try:
                require_address(params)
                name = named(params)
                first = seen.setdefault(name.lower(), index)
                if first != index:
                    raise invalid(f"{name} is pages[{first}], too")
                items.append(self._item(index, name, params))
            except ToolchainError as error:
                problems.append(f"pages[{index}]: {error.message}")
        if problems:
            raise invalid(shorten("; ".join(problems)))
        return items

    def _item(self, index: int, name: str, params: dict[str, Any]) -> _Item:
        warnings = self._warnings.setdefault(index, [])
        accounting = Accounting(whole=self._task.accounting)
        task = replace(self._task, params=params, warn=warnings.append, accounting=accounting)
        return _Item(name, task, PageOperation(task, connections=self._parallel))

    # -- deciding ------------------------------------------------------------------------------

    def plan(self) -> Plan:
        # The first one alone: what it learns of the server, its refusal included, holds for all.
        hopeless = self._each(self._plan_one, self._items[:1], _OF_THE_WAY)
        self._each(self._plan_one, self._items[1:], _OF_THE_SERVER, hopeless)
        self._refuse_twins()
        changed = [item for item in self._items if item.error is None and item.plan.changed]

        def sides() -> tuple[str, str]:
            texts = [_excerpt(item) for item in changed]
            before = "".join(text for text, _other in texts)
            return before, "".join(text for _other, text in texts)

        return Plan(
            None,
            None,
            "update" if changed else "none",
            result={"pages": self._shown()},
            failure=self._failure(),
            sides=sides,
        )

    def _plan_one(self, item: _Item) -> None:
        item.plan = item.operation.plan()
        item.values = item.plan.result

    def _refuse_twins(self) -> None:
        """Two entries may name one page in two ways: by its id, and by its title."""
        seen: dict[str, str] = {}
        for item in self._items:
            page = item.operation.page
            if page is not None and seen.setdefault(page.id, item.name) != item.name:
                item.error = invalid(f"{item.name} is {seen[page.id]}, too")

    # -- doing ---------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        todo = [item for item in self._items if item.error is None and item.plan.changed]
        self._each(self._apply_one, todo, _OF_THE_SERVER)
        failure = self._failure()
        if failure is not None:
            raise failure
        return {"pages": self._shown()}

    def _apply_one(self, item: _Item) -> None:
        item.values = {**item.values, **item.operation.apply(item.plan)}

    def _each(
        self,
        work: Callable[[_Item], None],
        items: list[_Item],
        final: frozenset[str],
        hopeless: ToolchainError | None = None,
    ) -> ToolchainError | None:
        """Do one step for many pages, C(parallel) at once; what fails is kept with its page.

        After an error of a C(final) kind, which is given back, no further page is begun.
        """
        found = [] if hopeless is None else [hopeless]

        def attempt(item: _Item) -> None:
            try:
                if found:
                    raise _not_tried(item, found[0])
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

    # -- telling -------------------------------------------------------------------------------

    def _shown(self) -> list[dict[str, Any]]:
        return [item.shown() for item in self._items]

    def _failure(self) -> ToolchainError | None:
        """One error for all that failed; its kind, status and address are those of the first."""
        found = [item.error for item in self._items if item.error is not None]
        if not found:
            return None
        said = "; ".join(dict.fromkeys(error.message for error in found))
        pages = self._shown()
        return ToolchainError(
            found[0].kind,
            shorten(f"{len(found)} of {len(self._items)} pages failed: {said}"),
            status=found[0].status,
            method=found[0].method,
            url=found[0].url,
            detail=found[0].detail,
            result={"pages": pages, "changed": any(page["changed"] for page in pages)},
        )


def _not_tried(item: _Item, cause: ToolchainError) -> ToolchainError:
    return ToolchainError(cause.kind, f"{item.name} was not tried after this", detail=cause.detail)


def _excerpt(item: _Item) -> tuple[str, str]:
    """Both sides of a page's diff without the lines that they begin and end with alike, below the
    name of the page: many pages follow each other in one text.
    """
    before, after = (text.splitlines(keepends=True) for text in item.plan.diff())
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    first, last = max(start - 1, 0), max(end - 1, 0)

    def cut(lines: list[str]) -> str:
        if not lines:
            return ""
        above, below = "...\n" if first > 0 else "", "...\n" if last > 0 else ""
        inner = "".join(lines[first : len(lines) - last])
        return f"{item.name}\n{above}{inner}{below}"

    return cut(before), cut(after)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
