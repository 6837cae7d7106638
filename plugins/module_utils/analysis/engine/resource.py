# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of all objects of the server: identification, comparison and writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid
from ...core.plan import Change, Comparison, Plan, plan
from ..client import AnalysisClient, Call, comma_list
from ..responses import Record

#: An object in terms of the options; `readonly` marks built-in objects.
State: TypeAlias = Mapping[str, Any]
#: Objects of a kind by their identity: a name, or several fields if necessary.
Objects: TypeAlias = Mapping[Hashable, State]
#: An object that others depend on: kind, as the option of `analysis_config`, and name.
Reference: TypeAlias = tuple[str, str]
#: The option `state`.
Presence: TypeAlias = Literal["present", "absent"]

DOING = {"create": "creating", "update": "updating", "delete": "deleting"}


@dataclass(frozen=True)
class Resource(ABC):
    """A wanted object, and its representation on the server.

    :param title: the object in messages, as `the role 'x'`
    :param desired: the wanted fields in terms of the options, `None` for "absent"; a field that is
        `None` is not managed
    """

    #: Name of such an object, and the return key that has it.
    noun: ClassVar[str]
    comparisons: ClassVar[Mapping[str, Comparison]] = {}

    title: str
    desired: State | None

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Return the identity among :meth:`objects`."""

    @property
    @abstractmethod
    def listing(self) -> Call:
        """Return the smallest read whose records include the object."""

    @abstractmethod
    def objects(self, records: Sequence[Record]) -> Objects:
        """Return the objects of the records. Fields that the server omits are left out."""

    @abstractmethod
    def call(self, plan: Plan) -> Call:
        """Return the write for a plan. Raises `invalid` if options are missing."""

    @property
    def needs(self) -> frozenset[Reference]:
        """Return the objects that the resource refers to."""
        return frozenset()

    def needs_newly(self, plan: Plan) -> frozenset[Reference]:
        """Return the objects that the resource refers to only after the plan is carried out."""
        return self.needs if plan.action == "create" else frozenset()

    def find(self, objects: Objects) -> State | None:
        """Return the object if it is among these."""
        return objects.get(self.key)

    def write(self, client: AnalysisClient, purpose: str, plan: Plan) -> None:
        """Send the write of a plan."""
        client.ask(purpose, self.call(plan), lambda: self.is_done(client, plan))

    def is_done(self, client: AnalysisClient, plan: Plan) -> bool | None:
        """Return whether the plan was carried out; `None` if it was partly."""
        records = client.ask(f"verifying {self.title}", self.listing)
        now = self.find(self.objects(records))
        if now is None if plan.action == "delete" else not self.left(now).changed:
            return True
        return False if (now or {}) == plan.before else None

    def left(self, current: State | None) -> Plan:
        """Return the remaining plan after a write."""
        return compare(self, current)

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Return further writes if the last write (`done`) was accepted and left differences
        (`left`).

        Empty if another attempt cannot help.
        """
        return ()


@dataclass(frozen=True)
class Renameable(Resource):
    """An object that may be renamed; `name` is the old name."""

    name: str

    @property
    def key(self) -> Hashable:
        return self.name

    @property
    def target(self) -> str:
        """Return the wanted name."""
        return self.name if self.desired is None else str(self.desired["name"])

    def find(self, objects: Objects) -> State | None:
        """Return the object with the old name, or with the new name if it is renamed already."""
        old, new = objects.get(self.name), objects.get(self.target)
        if self.target != self.name and old is not None and new is not None:
            raise ToolchainError(
                "conflict",
                f"renaming {self.title} to '{self.target}': a {self.noun} with that name already"
                " exists",
            )
        return old or new


def without_escapes(left: Plan) -> tuple[Plan, ...]:
    """Return the lists in which a server kept the escaping backslashes, without the backslashes.

    The written interface has no escapes, and real servers document them for the users of groups
    only. Empty if there is another difference.
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
    """Return the wanted name of an object. Raises `invalid` for a new name with `state: absent`."""
    if new_name is None:
        return name
    if state == "absent":
        raise invalid(f"{title}: new_name cannot be combined with state 'absent'")
    return new_name


def compare(resource: Resource, current: State | None) -> Plan:
    """Return the plan for an object, without I/O.

    A field that the server omits cannot be compared: it is sent along with other changes only.
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
    """Return the wanted fields of an existing object that the server omits."""
    if current is None or resource.desired is None:
        return {}
    return {
        name: value
        for name, value in resource.desired.items()
        if value is not None and name not in current
    }


def refuse_impossible(resource: Resource, found: Plan) -> None:
    """Raise for a change to a read-only object, for missing options, and for a pattern as the name
    of an object to create or delete: an unmatched pattern does not prove absence.
    """
    if "*" in resource.title and not found.before:
        raise invalid(f"{resource.title} has a wildcard in its name, but must name a single object")
    if not found.changed:
        return
    if found.before.get("readonly") is True:
        raise ToolchainError(
            "permission",
            f"{DOING[found.action]} {resource.title}: it is read-only on the server",
        )
    resource.call(found)


def is_account(name: str, account: str | None) -> bool:
    """Return whether a name is the task's account; case-insensitive."""
    return name.casefold() == (account or "").casefold()


def refusal(doing: str) -> ToolchainError:
    """Return the `invalid` error for removing an object that the task needs."""
    return invalid(
        f"{doing}: the task's account would lose its rights or be deleted; force: true allows that"
    )
