# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine for objects: read all, plan all, write each, verify it, and report [C11.1].

A module manages one object with the options of its task, or several with a list such as `entries`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ..concurrency import spread
from ..errors import ToolchainError, combined, invalid, single_line
from ..module.authorship import UNKNOWN, Author, authors_of
from ..module.diffs import shown_change
from ..module.sealing import PlannedChange
from ..module.task import Task
from ..plan import Plan, unchanged
from ..verification import DOING, differing, not_taken, unsaved

if TYPE_CHECKING:
    from ..finding import Finding

Entry = TypeVar("Entry")
State = TypeVar("State")

#: Kinds of errors that all requests to the server would get: the task asks for nothing else.
STOPPING = frozenset({"auth", "network", "rate_limited"})
_DONE = {"none": "unchanged", "create": "created", "update": "updated", "delete": "deleted"}


class Attempted(Protocol):
    """An object with the error of its last step."""

    @property
    def name(self) -> str: ...

    error: ToolchainError | None


AnyAttempted = TypeVar("AnyAttempted", bound=Attempted)


def attempt_each(
    work: Callable[[AnyAttempted], object],
    items: Sequence[AnyAttempted],
    parallel: int = 1,
    *,
    earlier: Sequence[Attempted] = (),
) -> None:
    """Carry out a step for each object, and store its error, so that the others continue.

    The first object is finished before the others start, and after an error of a kind in
    :data:`STOPPING` no other starts.

    :param earlier: objects whose steps came before
    """
    stopped = stopping_errors(earlier)

    def attempt(item: AnyAttempted) -> None:
        try:
            if stopped:
                first = stopped[0].message
                error = stopped[0].with_message(
                    f"{item.name} was not attempted after this error: {first}"
                )
                error.result, error.outcome_unknown = {}, False  # nothing was sent
                raise error
            work(item)
        except ToolchainError as error:
            item.error = error
            if error.kind in STOPPING:
                stopped.append(error)

    alone = 1 if parallel > 1 else len(items)
    for item in items[:alone]:
        attempt(item)
    spread(parallel, attempt, items[alone:])


def stopping_errors(items: Sequence[Attempted]) -> list[ToolchainError]:
    """Return the errors of a kind in :data:`STOPPING`."""
    return [item.error for item in items if item.error and item.error.kind in STOPPING]


def failure_of(
    items: Sequence[Attempted], nouns: str, result: Mapping[str, Any] | None = None
) -> ToolchainError | None:
    """Return the error of the task for all failed objects, or `None`.

    It has every attribute of the first error.

    :param nouns: the objects for the message, such as `entries`
    :param result: return values of the failed task
    """
    errors = [item.error for item in items if item.error is not None]
    if not errors:
        return None
    message = errors[0].message
    if len(items) > 1:
        message = f"{len(errors)} of {len(items)} {nouns} failed, the first: {message}"
    return combined(errors, message, result)


@dataclass
class Item(Generic[Entry, State]):
    """An object with its options, its state on the server, its plan, and the result of its write.

    :param place: the entry for messages, such as `entries[2]`; empty without a list
    :param state: the object as last read; `None` if it does not exist
    :param returned: return values of the plan, or of the write if there was one
    """

    entry: Entry
    name: str
    place: str = ""
    state: State | None = None
    plan: Plan = field(default_factory=unchanged)
    returned: Mapping[str, Any] = field(default_factory=dict)
    error: ToolchainError | None = None

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Store an error of the object, so that the task continues with the other objects."""
        try:
            yield
        except ToolchainError as error:
            self.error = error

    def placed(self, error: ToolchainError) -> ToolchainError:
        """Return an error with the entry and the name of the object, if there is a list."""
        if not self.place:
            return error
        return error.with_message(f"{self.place} ('{self.name}'): {error.message}")


class ItemKind(ABC, Generic[Entry, State]):
    """Base class for a kind of objects that a module manages.

    `Entry` is the dataclass with the options of an object, `State` what a read returns.
    :meth:`load`, :meth:`compare`, :meth:`left` and :meth:`foresee` send reads only. An instance
    keeps nothing about an object: that belongs to its :class:`Item`.
    """

    #: Name of the return value with the object, and noun for messages.
    noun: ClassVar[str]
    #: Whether a write that changes nothing on the server leaves the task unchanged, with a warning
    #: [C11.1]. Otherwise it is an error.
    accepts_server: ClassVar[bool] = False
    #: Maximum number of objects that are compared or written at once.
    parallel: int = 1

    def __init__(self, task: Task) -> None:
        self._task = task

    @abstractmethod
    def name(self, entry: Entry) -> str:
        """Return the name of an object, which is unique in the task.

        Raises `invalid` for contradictory options.
        """

    def key(self, entry: Entry) -> str:
        """Return the normalized name, which is equal for all names of the same object."""
        return self.name(entry)

    def title(self, item: Item[Entry, State]) -> str:
        """Return the object for messages, such as `the user 'x'`."""
        return f"the {self.noun} '{item.name}'"

    def load(self, items: Sequence[Item[Entry, State]]) -> None:
        """Read all objects into their `state`, with as few requests as possible.

        By default nothing: :meth:`compare` reads each object.
        """

    @abstractmethod
    def compare(self, item: Item[Entry, State]) -> Plan:
        """Return the plan of an object, with its return value as `result`.

        A `failure` of the plan stops this object only, but a raised `invalid` stops the task.
        """

    @abstractmethod
    def write(self, item: Item[Entry, State]) -> None:
        """Carry out the plan of an object. Sets `returned` if the write produces return values."""

    def write_all(self, items: Sequence[Item[Entry, State]]) -> None:
        """Write all changed objects. Overridden by kinds that write in batches or another order."""
        attempt_each(self.finish, items, self.parallel)

    def left(self, item: Item[Entry, State]) -> Plan | None:
        """Read an object again into its `state`, and return the plan for what is still different.

        `None` means that :meth:`write` has verified the object. :func:`core.plan.remaining` makes
        the plan for most kinds.
        """
        return None

    def is_done(self, item: Item[Entry, State]) -> bool | None:
        """Return after a lost response whether the plan was carried out."""
        left = self.left(item)
        return None if left is None else not left.changed

    def finish(self, item: Item[Entry, State]) -> None:
        """Write an object and verify it."""
        self.write(item)
        self.verify(item)

    def kept(self, item: Item[Entry, State], left: Plan) -> Mapping[str, str]:
        """Return digests of what the server keeps, whatever is sent, by field, to remember them.

        :param left: result of :meth:`left` after the write
        """
        return {}

    def verify(self, item: Item[Entry, State]) -> None:
        """Read a written object again, because a server may ignore fields without an error."""
        left = self.left(item)
        if left is None:
            return
        kept = self.kept(item, left)
        if kept:
            self._task.server_values.remember(self.noun, item.name, kept)
        if not left.changed:
            return
        if self.accepts_server and item.plan.action == "update" and left.before == item.plan.before:
            self._task.warn(not_taken(self.title(item), differing(left.changes)))
            item.plan = unchanged(item.returned, item.plan.before)
            return
        raise unsaved(f"{DOING[item.plan.action]} {self.title(item)}", item.plan, left)

    def foresee(self, item: Item[Entry, State]) -> None:
        """Raise in check mode the error that the server would return for the write [C1.6]."""

    def predict(self, item: Item[Entry, State]) -> None:
        """Add in check mode a changed object to the predictions of the task [C1.6]."""

    def author(self, item: Item[Entry, State]) -> Author:
        """Return the author of the object's last change. Send at most one read."""
        return UNKNOWN

    def row(self, item: Item[Entry, State]) -> dict[str, Any]:
        """Return the row of an object in the list of return values."""
        returned = item.returned.get(self.noun)
        row = {
            **(returned if isinstance(returned, Mapping) else {}),
            "name": item.name,
            "action": _DONE[item.plan.action],
            "changes": [shown_change(change) for change in item.plan.changes],
        }
        for name in ("unknown", "unsupported"):
            if name in item.plan.result:
                row[name] = item.plan.result[name]
        if item.error is not None:
            row["error"] = {**item.error.as_dict(), "msg": single_line(item.error.message)}
        return row


class Objects(Generic[Entry, State]):
    """Bring one object, or the objects of a list, to the desired state.

    :param entries: options of each object
    :param listed: the objects come from a list. Then the task returns `rows`, and continues after
        the failure of an object
    :cvar nouns: option with the objects
    :cvar rows: return value with a row for each object
    """

    nouns: ClassVar[str] = "entries"
    rows: ClassVar[str] = "results"

    def __init__(
        self, kind: ItemKind[Entry, State], entries: Sequence[Entry], listed: bool
    ) -> None:
        self._kind, self._listed = kind, listed
        named: dict[str, Item[Entry, State]] = {}
        for number, entry in enumerate(entries):
            place = f"{self.nouns}[{number}]" if listed else ""
            item = Item[Entry, State](entry, _name(kind, entry, place), place)
            first = named.setdefault(kind.key(entry), item)
            if first is not item:
                raise invalid(
                    f"{place} is '{item.name}', the same as {first.place}: list each object once"
                )
        self._items = tuple(named.values())

    def lock_names(self) -> list[str]:
        """Return the names of the objects for the locks of the run."""
        return [self._kind.key(item.entry) for item in self._items]

    def plan(self) -> Plan:
        items = [replace(item) for item in self._items]
        self._kind.load(items)
        readable = [item for item in items if item.error is None]
        attempt_each(self._compare, readable, self._kind.parallel)
        failed = [(item, item.error) for item in items if item.error is not None]
        for item, error in failed:
            planned = error is item.plan.failure
            if not self._listed or (error.kind == "invalid" and not planned):
                raise item.placed(error)
        failure = self._failure(items)
        if failure is not None and any(error.kind in STOPPING for _item, error in failed):
            raise failure
        return self._full_plan(items)

    def _compare(self, item: Item[Entry, State]) -> None:
        item.plan = self._kind.compare(item)
        item.returned, item.error = item.plan.result, item.plan.failure

    def _full_plan(self, items: Sequence[Item[Entry, State]]) -> Plan:
        """Return the plan of the task: of all objects of the list, or of the only object."""
        if not self._listed:
            return items[0].plan.with_data(items)
        changed = _changed(items)
        return Plan(
            {item.name: item.plan.before for item in changed},
            {item.name: item.plan.after for item in changed},
            "update" if changed else "none",
            result=self._results(items),
            failure=self._failure(items),
            data=items,
        )

    def preflight(self, plan: Plan) -> None:
        """Raise in check mode the error that the server would return for the writes."""
        attempt_each(self._kind.foresee, _changed(plan.data), self._kind.parallel)
        self._raise_failure(plan.data)

    def predict(self, plan: Plan) -> None:
        for item in _changed(plan.data):
            self._kind.predict(item)

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        """Return a change for each changed object, for the sealed plan."""
        return [
            PlannedChange(item.name, item.entry, *item.plan.diff()) for item in _changed(plan.data)
        ]

    def authors(self, plan: Plan) -> Sequence[Author]:
        """Return the authors of the objects that differ."""
        return authors_of(self._kind.author, _changed(plan.data))

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding] | None:
        """Return the findings of the objects in the list, `None` for a task with one object."""
        return self.findings_of_failure(values) if self.rows in values else None

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        """Return the findings of the objects in the list, if the task could plan them."""
        from ..finding import of_row  # few runs are reported

        rows = values.get(self.rows, ())
        return [of_row(row, row["name"]) for row in rows]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the changes at the given indexes of `parts`."""
        items = [replace(item) for item in plan.data]
        for number, item in enumerate(_changed(items)):
            if number in places:
                item.plan = unchanged(item.returned)
        return self._full_plan(items)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        items: Sequence[Item[Entry, State]] = plan.data
        todo = _changed(items)
        self._kind.write_all(todo)
        written = any(item.plan.changed and item.error is None for item in todo)
        self._raise_failure(items, **({"changed": True} if written else {}))
        returned = self._results(items) if self._listed else items[0].returned
        return returned if written else {**returned, "changed": False}

    def _raise_failure(self, items: Sequence[Item[Entry, State]], **result: Any) -> None:
        failure = self._failure(items)
        if failure is not None:
            failure.result.update(result)
            raise failure

    def _failure(self, items: Sequence[Item[Entry, State]]) -> ToolchainError | None:
        """Return the error of the task, or `None`."""
        if not self._listed:
            return items[0].error
        placed = [replace(item, error=item.error and item.placed(item.error)) for item in items]
        return failure_of(placed, self.nouns, self._results(items))

    def _results(self, items: Sequence[Item[Entry, State]]) -> dict[str, Any]:
        return {self.rows: [self._kind.row(item) for item in items]}


def _changed(items: Sequence[Item[Entry, State]]) -> list[Item[Entry, State]]:
    return [item for item in items if item.plan.changed and item.error is None]


def entries_of(options: Any, kind: type[Entry]) -> tuple[list[Entry], bool]:
    """Return the option `entries` of a task, or a single entry made of the other options.

    The second value tells whether it was the option `entries`.
    """
    declared: Any = kind
    if options.entries is None:
        values = {field.name: getattr(options, field.name) for field in fields(declared)}
        return [kind(**values)], False
    return list(options.entries), True


def _name(kind: ItemKind[Entry, State], entry: Entry, place: str) -> str:
    """Return the name of an entry. The message of an error begins with `place`."""
    try:
        return kind.name(entry)
    except ToolchainError as error:
        if place:
            raise error.with_message(f"{place}: {error.message}") from None
        raise
