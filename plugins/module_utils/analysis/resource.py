# SPDX-License-Identifier: GPL-3.0-or-later
"""What all objects of the server have in common: read, compare, write what differs, read back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..core.errors import ToolchainError, invalid
from ..core.plan import Change, Comparison, Plan, plan
from ..core.task import Task
from .answers import Record
from .client import Call, Client

State = Mapping[str, Any]
_DOING = {"create": "creating", "update": "updating", "delete": "deleting"}


@dataclass(frozen=True)
class Resource(ABC):
    """One object as it is wanted. It knows the server's words for it and sends nothing itself.

    :param title: the object in messages, as C(the role 'x')
    :param desired: the wanted fields in the words of the options, C(None) for "absent";
        a field that is C(None) is not managed
    """

    #: What such an object is called: the return key that holds it.
    noun: ClassVar[str]
    comparisons: ClassVar[Mapping[str, Comparison]] = {}

    title: str
    desired: State | None

    @property
    @abstractmethod
    def listing(self) -> Call:
        """The read whose records hold the object, if it is there."""

    @abstractmethod
    def select(self, records: Sequence[Record]) -> State | None:
        """The object among the records, in the words of the options.

        Fields that the server does not show are left out; C(readonly) marks what is built in.
        """

    @abstractmethod
    def call(self, plan: Plan) -> Call:
        """The write that a plan stands for; C(invalid) where the options are not enough for it."""


def require_names(options: Mapping[str, Any], *names: str) -> None:
    """C(invalid) for an object without a name: the server would take it for another request."""
    for name in names:
        if options.get(name) == "":
            raise invalid(f"{name} must not be empty")


def compare(resource: Resource, current: State | None) -> Plan:
    """The plan for an object: pure, without I/O.

    A field that the server does not show cannot be compared: alone it is no reason to write, but
    it goes along with other changes.
    """
    unseen = hidden(resource, current)
    visible = resource.desired
    if visible is not None:
        visible = {name: value for name, value in visible.items() if name not in unseen}
    found = plan(current, visible, resource.comparisons)
    if found.action == "update" and unseen:
        along = tuple(Change(name, None, value) for name, value in unseen.items())
        found = replace(found, after={**found.after, **unseen}, changes=(*found.changes, *along))
    return found


def hidden(resource: Resource, current: State | None) -> dict[str, Any]:
    """The wanted fields of an object that is there which the server does not show."""
    if current is None or resource.desired is None:
        return {}
    return {
        name: value
        for name, value in resource.desired.items()
        if value is not None and name not in current
    }


def refuse_read_only(resource: Resource, found: Plan) -> None:
    """Fail for a change to an object that the server marks as read-only."""
    if found.changed and found.before.get("readonly") is True:
        raise ToolchainError(
            "permission",
            f"{_DOING[found.action]} {resource.title}: it is read-only on the server",
        )


def not_kept(changes: Iterable[Change]) -> str:
    """The names of fields that still differ, those of entries of a mapping as C(field.entry)."""
    names: list[str] = []
    for change in changes:
        if isinstance(change.after, Mapping) and isinstance(change.before, Mapping):
            differing = [key for key in change.after if change.before.get(key) != change.after[key]]
            names += [f"{change.field}.{key}" for key in differing]
        else:
            names.append(change.field)
    return ", ".join(names)


class ResourceOperation:
    """Bring one object into the wanted state: read, write once, read what came of it."""

    def __init__(self, task: Task, resource: Resource) -> None:
        self._task, self._resource = task, resource
        self._client = Client(task)

    def plan(self) -> Plan:
        current = self._read()
        found = compare(self._resource, current)
        refuse_read_only(self._resource, found)
        if found.changed:
            self._resource.call(found)  # what it lacks is to be said in check mode too
        unseen = hidden(self._resource, current)
        if unseen:
            self._task.warn(
                f"The server does not show {', '.join(unseen)} of {self._resource.title}:"
                " whether it differs is not known; it is written only together with other changes."
            )
        return self._returning(found, found.after)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        what = f"{_DOING[plan.action]} {self._resource.title}"
        try:
            self._client.ask(what, self._resource.call(plan))
        except ToolchainError as error:
            if not error.unanswered:
                raise
            return self._settle(error)
        return self._confirm(what)

    def _read(self) -> State | None:
        what = f"reading {self._resource.title}"
        return self._resource.select(self._client.ask(what, self._resource.listing))

    def _confirm(self, what: str) -> Mapping[str, Any]:
        """Read back: a server accepts without a word, and may ignore a part."""
        current = self._read()
        left = compare(self._resource, current)
        if not left.changed:
            return self._returning(left, current or {}).result
        reason = {
            "create": "the server accepted it, but does not show the object",
            "update": f"the server accepted it, but did not keep {not_kept(left.changes)}",
            "delete": "the server accepted it, but the object is still there",
        }[left.action]
        raise ToolchainError("rejected", f"{what}: {reason}")

    def _settle(self, lost: ToolchainError) -> Mapping[str, Any]:
        """After a write whose answer got lost: only the server can say what became of it."""
        try:
            current = self._read()
        except ToolchainError:
            raise lost from None
        left = compare(self._resource, current)
        if left.changed:
            raise lost
        return self._returning(left, current or {}).result

    def _returning(self, found: Plan, state: State) -> Plan:
        if self._resource.desired is None:
            return found
        return found.returning(**{self._resource.noun: dict(state)})
