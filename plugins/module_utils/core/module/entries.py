# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage one object with the options of a task, or several with the option `entries` [C11.1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from ..errors import ToolchainError, invalid, single_line
from ..plan import Plan, unchanged
from ..plans.sealing import PlannedChange
from .diffs import shown_change

Entry = TypeVar("Entry")

#: Errors of the login or the connection, which all requests to the server would get.
REFUSED = ("auth", "network")
#: Errors that end a task with `entries` before the first write: those of the server as a whole, and
#: invalid input.
_FATAL = ("invalid", *REFUSED)
_DONE = {"none": "unchanged", "create": "created", "update": "updated", "delete": "deleted"}


@dataclass
class Managed(Generic[Entry]):
    """A managed object, with its options, its plan and the result of its write.

    :param place: the entry for messages, such as `entries[2]`; empty without `entries`
    :param returned: return values of the plan, or of the write if there was one
    """

    entry: Entry
    name: str
    place: str = ""
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

    def placed(self, message: str) -> str:
        """Return a message with the entry and the name of the object, if there are `entries`."""
        return f"{self.place} ('{self.name}'): {message}" if self.place else message


class EntryKind(ABC, Generic[Entry]):
    """Base class for a kind of objects that a module manages.

    `Entry` is the dataclass with the options of an object. :meth:`load` and :meth:`compare` send
    reads only.
    """

    #: Name of the return value with the object.
    noun: ClassVar[str]

    @abstractmethod
    def name(self, entry: Entry) -> str:
        """Return the name of an object, which is unique in the task.

        Raises `invalid` for contradictory options.
        """

    def key(self, entry: Entry) -> str:
        """Return the normalized name, which is equal for all names of the same object."""
        return self.name(entry)

    @abstractmethod
    def load(self, entries: Sequence[Entry]) -> None:
        """Read all objects, with as few requests as possible."""

    @abstractmethod
    def compare(self, entry: Entry) -> Plan:
        """Return the plan of an object, with its return value as `result`.

        A `failure` of the plan stops this object only, but a raised `invalid` stops the task.
        """

    @abstractmethod
    def write(self, entry: Entry, plan: Plan) -> Mapping[str, Any]:
        """Carry out the plan of an object, and return its return values."""

    def write_all(self, objects: Sequence[Managed[Entry]]) -> None:
        """Write all changed objects. Overridden by kinds that write in batches or another order."""
        for number, obj in enumerate(objects):
            with obj.reporting():
                obj.returned = self.write(obj.entry, obj.plan)
            if obj.error is not None and obj.error.kind in REFUSED:
                for other in objects[number + 1 :]:
                    other.error = obj.error
                return

    def foresee(self, entry: Entry, plan: Plan) -> None:
        """Raise in check mode the error that the server would return for the write [C1.6]."""


class ObjectsOperation(Generic[Entry]):
    """Bring one object, or the objects of `entries`, to the desired state.

    :param listed: the objects come from the option `entries`. Then the task returns `results`, and
        continues after the failure of an object
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
        objects = [Managed(*named) for named in self._named]
        self._kind.load([obj.entry for obj in objects])
        for obj in objects:
            with obj.reporting():
                obj.plan = self._kind.compare(obj.entry)
                obj.returned = obj.plan.result
            fatal = not self._listed or (obj.error is not None and obj.error.kind in _FATAL)
            obj.error = obj.error or obj.plan.failure
            if obj.error is not None and fatal:
                obj.error.message = obj.placed(obj.error.message)
                raise obj.error
        return self._full_plan(objects)

    def _full_plan(self, objects: Sequence[Managed[Entry]]) -> Plan:
        """Return the plan of the task: of all entries, or of the only object."""
        if not self._listed:
            return objects[0].plan.with_data(objects)
        changed = _changed(objects)
        return Plan(
            {obj.name: obj.plan.before for obj in changed},
            {obj.name: obj.plan.after for obj in changed},
            "update" if changed else "none",
            result=self._results(objects),
            failure=self._failure(objects),
            data=objects,
        )

    def preflight(self, plan: Plan) -> None:
        """Raise in check mode the error that the server would return for the writes."""
        for obj in _changed(plan.data):
            with obj.reporting():
                self._kind.foresee(obj.entry, obj.plan)
        self._raise_failure(plan.data)

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        """Return a change for each changed object, for the sealed plan."""
        return [
            PlannedChange(obj.name, obj.entry, obj.plan.before, obj.plan.after)
            for obj in _changed(plan.data)
        ]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the changes at the given indexes of `parts`."""
        objects = [replace(obj) for obj in plan.data]
        for number, obj in enumerate(_changed(objects)):
            if number in places:
                obj.plan = unchanged(obj.returned)
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
        """Return the first error, with the number of failed entries in the message, or `None`."""
        failed = [obj for obj in objects if obj.error is not None]
        if not failed:
            return None
        results = self._results(objects)
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

    def _item(self, obj: Managed[Entry]) -> dict[str, Any]:
        """Return the item of an object in the return value `results`."""
        returned = obj.returned.get(self._kind.noun)
        item = {
            **(returned if isinstance(returned, Mapping) else {}),
            "name": obj.name,
            "action": _DONE[obj.plan.action],
            "changes": [shown_change(change) for change in obj.plan.changes],
        }
        if "unknown" in obj.plan.result:
            item["unknown"] = obj.plan.result["unknown"]
        if obj.error is not None:
            item["error"] = {**obj.error.as_dict(), "msg": single_line(obj.error.message)}
        return item


def _changed(objects: Sequence[Managed[Entry]]) -> list[Managed[Entry]]:
    return [obj for obj in objects if obj.plan.changed and obj.error is None]


def entries_of(options: Any, kind: type[Entry]) -> list[Entry]:
    """Return the option `entries` of a task, or a single entry made of the other options."""
    declared: Any = kind
    if options.entries is None:
        return [kind(**{field.name: getattr(options, field.name) for field in fields(declared)})]
    return list(options.entries)


def _name(kind: EntryKind[Entry], entry: Entry, place: str) -> str:
    """Return the name of an entry. The message of an error begins with `place`."""
    try:
        return kind.name(entry)
    except ToolchainError as error:
        if place:
            error.message = f"{place}: {error.message}"
        raise
