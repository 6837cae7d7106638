# SPDX-License-Identifier: GPL-3.0-or-later
"""What all objects of the server have in common: how they are found, compared and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid
from ...core.plan import Change, Comparison, Plan, plan
from ..client import AnalysisClient, Call, comma_list
from ..responses import Record

#: An object in the words of the options; C(readonly) marks what is built in.
State: TypeAlias = Mapping[str, Any]
#: Objects of a kind by what tells them apart: a name, or more than one where that is not enough.
Objects: TypeAlias = Mapping[Hashable, State]
#: An object that others cannot do without: kind, as the option of C(analysis_config), and name.
Reference: TypeAlias = tuple[str, str]
#: The option C(state).
Presence: TypeAlias = Literal["present", "absent"]

DOING = {"create": "creating", "update": "updating", "delete": "deleting"}


@dataclass(frozen=True)
class Resource(ABC):
    """One object as it is wanted. It knows the server's words for it.

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
    def key(self) -> Hashable:
        """By what it is found among :meth:`objects`."""

    @property
    @abstractmethod
    def listing(self) -> Call:
        """The smallest read whose records hold the object, if it is there."""

    @abstractmethod
    def objects(self, records: Sequence[Record]) -> Objects:
        """The objects that the records are. Fields that the server does not show are left out."""

    @abstractmethod
    def call(self, plan: Plan) -> Call:
        """The write that a plan stands for; C(invalid) where the options are not enough for it."""

    @property
    def needs(self) -> frozenset[Reference]:
        """The objects that it refers to."""
        return frozenset()

    def needs_newly(self, plan: Plan) -> frozenset[Reference]:
        """The objects that it refers to only when a plan is carried out."""
        return self.needs if plan.action == "create" else frozenset()

    def find(self, objects: Objects) -> State | None:
        """The object, if it is among these."""
        return objects.get(self.key)

    def write(self, client: AnalysisClient, what: str, plan: Plan) -> None:
        """Send what a plan stands for."""
        client.ask(what, self.call(plan), lambda: self.is_done(client, plan))

    def is_done(self, client: AnalysisClient, plan: Plan) -> bool | None:
        """Whether what a plan stands for has been done; C(None) where a part of it has."""
        records = client.ask(f"looking after {self.title}", self.listing)
        now = self.find(self.objects(records))
        if now is None if plan.action == "delete" else not self.left(now).changed:
            return True
        return False if (now or {}) == plan.before else None

    def left(self, current: State | None) -> Plan:
        """What is still to be done after a write."""
        return compare(self, current)

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Further writes where the last one (C(done)) was accepted and left something (C(left)).

        None where another try would be of no use.
        """
        return ()


@dataclass(frozen=True)
class Renameable(Resource):
    """An object that may get another name; C(name) is the old one."""

    name: str

    @property
    def key(self) -> Hashable:
        return self.name

    @property
    def target(self) -> str:
        """The name that it is to have."""
        return self.name if self.desired is None else str(self.desired["name"])

    def find(self, objects: Objects) -> State | None:
        """The object under its old name, or under the new one where it has it already."""
        old, new = objects.get(self.name), objects.get(self.target)
        if self.target != self.name and old is not None and new is not None:
            raise ToolchainError(
                "conflict",
                f"renaming {self.title} to '{self.target}': there is a {self.noun} of that name"
                " already",
            )
        return old or new


def without_escapes(left: Plan) -> tuple[Plan, ...]:
    """The lists in which a server has kept the backslashes that escape, once more without these.

    The written interface knows no escapes, and real servers promise them for the users of groups
    alone. None where that is not what is left.
    """
    plain = tuple(
        replace(change, after=",".join(change.after))
        for change in left.changes
        if isinstance(change.before, list)
        and isinstance(change.after, list)
        and set(change.before) == {comma_list([value]) for value in change.after}
    )
    return (replace(left, changes=plain),) if plain else ()


def target_name(title: str, name: str, new_name: str | None, state: Presence) -> str:
    """The name that an object is to have; C(invalid) for a new name of what is to be absent."""
    if new_name is None:
        return name
    if state == "absent":
        raise invalid(f"{title}: new_name contradicts the state absent")
    return new_name


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


def refuse_impossible(resource: Resource, found: Plan) -> None:
    """Fail for a change to what the server marks as read-only, for one that lacks options, and for
    a pattern where one object is to be made or to go: that none is called so is no absence.
    """
    if "*" in resource.title and not found.before:
        raise invalid(f"{resource.title} has a wildcard in its name, but names one object")
    if not found.changed:
        return
    if found.before.get("readonly") is True:
        raise ToolchainError(
            "permission",
            f"{DOING[found.action]} {resource.title}: it is read-only on the server",
        )
    resource.call(found)


def is_account(name: str, account: str | None) -> bool:
    """Whether a name is that of the account of the task, in upper or lower case."""
    return name.casefold() == (account or "").casefold()


def refusal(doing: str) -> ToolchainError:
    """C(invalid): what is to be removed is what the task works with."""
    return invalid(
        f"{doing}: the account of this task, or what gives it its rights, would be lost;"
        " force: true allows it"
    )
