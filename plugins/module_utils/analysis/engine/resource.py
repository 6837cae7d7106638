# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes for the objects of the server: identification, comparison and writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid
from ...core.plan import Change, Comparison, Plan, plan
from ...core.verification import DOING
from ..client import AnalysisClient, Call, comma_list
from ..responses import Record

#: Fields of an object, named like the options. `readonly` marks built-in objects.
State: TypeAlias = Mapping[str, Any]
#: Objects of a kind by their key, which is a name or a tuple of fields.
Objects: TypeAlias = Mapping[Hashable, State]
#: Kind and name of an object that others depend on. The kind is the option of `analysis_config`.
Reference: TypeAlias = tuple[str, str]
#: Project name to project id.
Ids: TypeAlias = Mapping[str, str]
#: Values of the option `state`.
Presence: TypeAlias = Literal["present", "absent"]


@dataclass(frozen=True)
class Resource(ABC):
    """An object with its desired state.

    :param title: object for messages, for example `the role 'x'`
    :param desired: desired fields, named like the options; `None` means absent, and a field that is
        `None` is not managed
    """

    #: Noun for messages, which is also the return key of the object.
    noun: ClassVar[str]
    comparisons: ClassVar[Mapping[str, Comparison]] = {}

    title: str
    desired: State | None

    @staticmethod
    @abstractmethod
    def of(options: Any) -> Resource:
        """Return the object that options describe. Raises `invalid` for contradictory options."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Return the key of the object in `objects`."""

    @property
    def place(self) -> str | None:
        """Return the project that contains the object, or `None`."""
        place: str | None = getattr(self, "project", None)
        return place

    @property
    @abstractmethod
    def listing(self) -> Call:
        """Return the call that reads the object, with as few other objects as possible."""

    @staticmethod
    @abstractmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        """Parse records into objects. Fields that the server omits are missing in them.

        :param project: the project that contains the objects, or ""
        :param ids: ids of projects by name
        """

    def objects(self, records: Sequence[Record]) -> Objects:
        """Parse the records of `listing`."""
        return self.parse(records, self.place or "", getattr(self, "ids", {}))

    @abstractmethod
    def call(self, plan: Plan) -> Call:
        """Return the call that carries out a plan. Raises `invalid` if options are missing."""

    @property
    def needs(self) -> frozenset[Reference]:
        """Return the objects that this object refers to, by default its project."""
        return frozenset() if self.place is None else frozenset({("projects", self.place)})

    def needs_newly(self, plan: Plan) -> frozenset[Reference]:
        """Return the objects that this object refers to only after the plan is carried out."""
        return self.needs if plan.action == "create" else frozenset()

    def unreadable(self, current: State | None) -> tuple[str, ...]:
        """Return the options that cannot be compared, because no server returns such values."""
        return ()

    def find(self, objects: Objects) -> State | None:
        """Return the current state of this object, or `None` if it does not exist."""
        return objects.get(self.key)

    def write(self, client: AnalysisClient, purpose: str, plan: Plan) -> None:
        """Send the call that carries out a plan."""
        client.ask(purpose, self.call(plan), lambda: self.is_done(client, plan))

    def is_done(self, client: AnalysisClient, plan: Plan) -> bool | None:
        """Return whether the plan was carried out, or `None` if it was carried out in part."""
        records = client.ask(f"verifying {self.title}", self.listing)
        now = self.find(self.objects(records))
        if now is None if plan.action == "delete" else not self.left(now).changed:
            return True
        return False if (now or {}) == plan.before else None

    def left(self, current: State | None) -> Plan:
        """Return the plan for the differences that are left after a write."""
        return compare(self, current)

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Return plans for further writes, or () if these cannot help.

        :param done: plan of the last write, which the server accepted
        :param left: plan for the differences after that write
        """
        return ()


@dataclass(frozen=True)
class Named(Resource):
    """An object that its name identifies, in its project if it has one."""

    name: str

    @property
    def key(self) -> Hashable:
        return self.name


@dataclass(frozen=True)
class Renameable(Named):
    """An object that may be renamed. `name` is the old name."""

    @property
    def target(self) -> str:
        """Return the new name, or the current name if the object is not renamed."""
        return self.name if self.desired is None else str(self.desired["name"])

    def find(self, objects: Objects) -> State | None:
        """Return the object with the old name, or with the new name if it was renamed before.

        Raises `conflict` if both exist.
        """
        old, new = objects.get(self.name), objects.get(self.target)
        if self.target != self.name and old is not None and new is not None:
            raise ToolchainError(
                "conflict",
                f"renaming {self.title} to '{self.target}': a {self.noun} with that name already"
                " exists",
            )
        return old or new


def without_escapes(left: Plan) -> tuple[Plan, ...]:
    """Return a plan to write lists again without escaping, or () if escaping is not the cause.

    A server that does not support escapes stores the backslashes. The interface description has no
    escapes, and real servers document them only for the users of groups.
    """
    plain = tuple(
        replace(change, after=",".join(change.after))
        for change in left.changes
        if isinstance(change.before, list)
        and isinstance(change.after, list)
        and set(change.before) == {comma_list([value]) for value in change.after}
    )
    return (replace(left, changes=plain),) if plain else ()


def compare(resource: Resource, current: State | None) -> Plan:
    """Return the plan for an object, without sending requests.

    A field that the server omits cannot be compared. It is only sent together with other changes.
    """
    hidden_fields = hidden(resource, current)
    visible = resource.desired
    if visible is not None:
        visible = {name: value for name, value in visible.items() if name not in hidden_fields}
    found = plan(current, visible, resource.comparisons)
    if found.action == "update" and hidden_fields:
        additional = tuple(Change(name, None, value) for name, value in hidden_fields.items())
        found = replace(
            found, after={**found.after, **hidden_fields}, changes=(*found.changes, *additional)
        )
    return found


def hidden(resource: Resource, current: State | None) -> dict[str, Any]:
    """Return the desired fields of an existing object that the server omits."""
    if current is None or resource.desired is None:
        return {}
    return {
        name: value
        for name, value in resource.desired.items()
        if value is not None and name not in current
    }


def refuse_impossible(resource: Resource, found: Plan) -> None:
    """Raise an error for a plan that cannot be carried out.

    Raises `permission` for a read-only object, and `invalid` if options are missing or if the name
    of an object to create or delete is a pattern.
    """
    if "*" in resource.title and not found.before:
        raise invalid(f"{resource.title} has a wildcard in its name: set the name of one object")
    if not found.changed:
        return
    if found.before.get("readonly") is True:
        raise ToolchainError(
            "permission",
            f"{DOING[found.action]} {resource.title}: the object is read-only on the server",
        )
    resource.call(found)


def is_account(name: str, account: str | None) -> bool:
    """Return whether a name is that of the task's account, regardless of case."""
    return name.casefold() == (account or "").casefold()


def refusal(doing: str) -> ToolchainError:
    """Return the `invalid` error for removing an object that gives the task its permissions."""
    return invalid(
        f"{doing}: the task's account would be deleted or lose permissions: to allow that, set"
        " force=true"
    )
