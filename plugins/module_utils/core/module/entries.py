# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage an object by the options of a task, or many with the option `entries` [C11.1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from ..errors import ToolchainError, invalid, single_line
from ..plan import Plan, unchanged
from ..plans.sealing import PlannedChange

Entry = TypeVar("Entry")

_DONE = {"none": "unchanged", "create": "created", "update": "updated", "delete": "deleted"}


@dataclass
class Managed(Generic[Entry]):
    """An object of a task: its options, its plan, and the result of its write.

    :param place: the entry in messages, such as `entries[2]`; empty for the object of the options
    :param returned: return values of the object after the write
    """

    entry: Entry
    name: str
    place: str = ""
    plan: Plan = field(default_factory=unchanged)
    returned: Mapping[str, Any] = field(default_factory=dict)
    error: ToolchainError | None = None

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Store an error of the object, so that it does not stop the others."""
        try:
            yield
        except ToolchainError as error:
            self.error = error

    def placed(self, message: str) -> str:
        """Return a message that names the entry."""
        return f"{self.place} ('{self.name}'): {message}" if self.place else message


class EntryKind(ABC, Generic[Entry]):
    """A kind of objects that a module manages.

    `Entry` is the dataclass of the options of an object. :meth:`load` and :meth:`compare` send
    reads only.
    """

    #: Return value with the object, if the task manages a single one.
    noun: ClassVar[str]

    @abstractmethod
    def name(self, entry: Entry) -> str:
        """Return the name of an object, unique in the task. Raises `invalid` for options that
        contradict each other.
        """

    def key(self, entry: Entry) -> str:
        """Return the name for comparisons: names that the server takes for the same are equal."""
        return self.name(entry)

    @abstractmethod
    def load(self, entries: Sequence[Entry]) -> None:
        """Read the objects, all in as few requests as possible."""

    @abstractmethod
    def compare(self, entry: Entry) -> Plan:
        """Return the plan of an object, with its return value as `result`. A `failure` in it stops
        this object only, unlike a raised `invalid`.
        """

    @abstractmethod
    def write(self, entry: Entry, plan: Plan) -> Mapping[str, Any]:
        """Carry out the plan of an object; return its return value after that."""

    def write_all(self, objects: Sequence[Managed[Entry]]) -> None:
        """Write all objects that differ. A kind overrides this for batches, or another order."""
        for obj in objects:
            with obj.reporting():
                obj.returned = self.write(obj.entry, obj.plan)

    def foresee(self, entry: Entry, plan: Plan) -> None:
        """In check mode, raise the error that the server would return for the write [C1.6]."""


class ObjectsOperation(Generic[Entry]):
    """Bring one object, or the objects of `entries`, into the wanted state.

    :param listed: whether the objects come from `entries`; the task then returns `results`, and
        an object that fails does not stop the others
    """

    def __init__(self, kind: EntryKind[Entry], entries: Sequence[Entry], *, listed: bool) -> None:
        self._kind, self._listed = kind, listed
        self._named: list[tuple[Entry, str, str]] = []
        places: dict[str, str] = {}
        for number, entry in enumerate(entries):
            place = f"entries[{number}]" if listed else ""
            name = _name(kind, entry, place)
            key = kind.key(entry)
            if key in places:
                raise invalid(
                    f"{place} is '{name}', the same as {places[key]}: list each object once"
                )
            places[key] = place
            self._named.append((entry, name, place))

    def plan(self) -> Plan:
        objects = [Managed(*each) for each in self._named]
        self._kind.load([obj.entry for obj in objects])
        for obj in objects:
            with obj.reporting():
                obj.plan = self._kind.compare(obj.entry)
                obj.returned = obj.plan.result
            # invalid input ends the task before the first write
            ends = not self._listed or (obj.error is not None and obj.error.kind == "invalid")
            obj.error = obj.error or obj.plan.failure
            if obj.error is not None and ends:
                obj.error.message = obj.placed(obj.error.message)
                raise obj.error
        return self._full_plan(objects)

    def _full_plan(self, objects: Sequence[Managed[Entry]]) -> Plan:
        """Return the plan of all entries, or of the only object."""
        if not self._listed:
            return objects[0].plan.with_data(objects)
        found = _changed(objects)
        return Plan(
            {each.name: each.plan.before for each in found},
            {each.name: each.plan.after for each in found},
            "update" if found else "none",
            result=self._results(objects),
            failure=self._failure(objects),
            data=objects,
        )

    def preflight(self, plan: Plan) -> None:
        """Raise the errors that the server would return for the writes."""
        for each in _changed(plan.data):
            with each.reporting():
                self._kind.foresee(each.entry, each.plan)
        self._raise_failure(plan.data)

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        """Return the changes of the objects, for a sealed plan."""
        return [
            PlannedChange(each.name, each.entry, each.plan.before, each.plan.after)
            for each in _changed(plan.data)
        ]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the changes of these objects."""
        objects = [replace(each) for each in plan.data]
        for number, each in enumerate(_changed(objects)):
            if number in places:
                each.plan = unchanged(each.returned)
        return self._full_plan(objects)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._kind.write_all(_changed(plan.data))
        self._raise_failure(plan.data)
        return self._results(plan.data) if self._listed else plan.data[0].returned

    def _raise_failure(self, objects: Sequence[Managed[Entry]]) -> None:
        failure = self._failure(objects)
        if failure is not None:
            raise failure

    def _failure(self, objects: Sequence[Managed[Entry]]) -> ToolchainError | None:
        """Return the error of the task: the first one, with the number of the failed entries."""
        failed = [obj for obj in objects if obj.error is not None]
        if not failed:
            return None
        results = self._results(objects)  # with the messages as they are now
        first = failed[0]
        error = first.error or invalid("")
        if not self._listed:
            return error
        count = f"{len(failed)} of {len(objects)} entries failed, the first: "
        return ToolchainError(
            error.kind,
            f"{count}{first.placed(error.message)}",
            **{name: value for name, value in error.as_dict().items() if name != "kind"},
            result={**error.result, **results},
        )

    def _results(self, objects: Sequence[Managed[Entry]]) -> dict[str, Any]:
        return {"results": [self._item(obj) for obj in objects]}

    def _item(self, each: Managed[Entry]) -> dict[str, Any]:
        """Return an item of the return value `results`."""
        returned = each.returned.get(self._kind.noun)
        item = {
            **(returned if isinstance(returned, Mapping) else {}),
            "name": each.name,
            "action": _DONE[each.plan.action],
            "changes": [vars(change) for change in each.plan.changes],
        }
        if each.error is not None:
            item["error"] = {**each.error.as_dict(), "msg": single_line(each.error.message)}
        return item


def _changed(objects: Sequence[Managed[Entry]]) -> list[Managed[Entry]]:
    return [obj for obj in objects if obj.plan.changed and obj.error is None]


def entries_of(options: Any, kind: type[Entry], prefix: str = "") -> list[Entry]:
    """Return the entries of a task: those of the option `entries`, or the one of its own options.

    :param prefix: start of an option whose plain name is an option of the connection
    """
    declared: Any = kind
    names = {each.name: _flat_name(options, each.name, prefix) for each in fields(declared)}
    if options.entries is None:
        return [kind(**{name: getattr(options, flat) for name, flat in names.items()})]
    defaults = {each.name: _default(each) for each in fields(options)}
    for name, flat in names.items():
        if getattr(options, flat) != defaults[flat]:
            raise invalid(f"{flat} cannot be combined with entries: set {name} in every entry")
    return list(options.entries)


def _flat_name(options: Any, name: str, prefix: str) -> str:
    return f"{prefix}{name}" if hasattr(options, f"{prefix}{name}") else name


def _default(option: Any) -> Any:
    if option.default_factory is not MISSING:
        return option.default_factory()
    return None if option.default is MISSING else option.default


def _name(kind: EntryKind[Entry], entry: Entry, place: str) -> str:
    """Return the name of an entry; an error names its place."""
    try:
        return kind.name(entry)
    except ToolchainError as error:
        if place:
            error.message = f"{place}: {error.message}"
        raise
