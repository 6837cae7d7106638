# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes for the objects of the server: identification, comparison and writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

from ..core.concurrency import spread
from ..core.errors import ToolchainError, invalid
from ..core.module.task import Task
from ..core.operations.objects import Item
from ..core.plan import Change, Comparison, Plan, plan
from ..core.verification import DOING, unsaved
from .client import AnalysisClient, Call, comma_list
from .responses import Record

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


#: Function that returns the current state of an object, possibly from a shared listing.
Verify: TypeAlias = Callable[[Resource], "State | None"]
#: Maximum number of writes per object: update, recreate, fields that the creation does not support,
#: and lists without escapes.
_ROUNDS = 4


@dataclass
class ResourceItem(Item[Resource, State]):
    """An object of the server, its plan, and the result of its write."""


@dataclass(frozen=True)
class _Write:
    """The next writes of an object, of which :func:`_send` keeps only the last one.

    :param lost: error of a write whose response was lost
    """

    item: ResourceItem
    plans: tuple[Plan, ...]
    lost: ToolchainError | None = None


def carry_out(
    client: AnalysisClient,
    planned: Sequence[tuple[ResourceItem, tuple[Plan, ...]]],
    reader_of: Callable[[Sequence[Resource]], Verify],
    *,
    parallel: int = 1,
) -> None:
    """Carry out the plans of objects concurrently, and verify them.

    Errors and states are stored in the items.

    :param planned: objects with the plans to carry out
    :param reader_of: returns a function that reads the current state of some objects
    :param parallel: maximum number of concurrent requests
    """
    todo = [_Write(item, plans) for item, plans in planned if plans]
    for left in reversed(range(_ROUNDS)):
        sent = [write for write in spread(parallel, partial(_send, client), todo) if write]
        verify = reader_of([write.item.entry for write in sent])
        again = [(write, _check(client, write, verify, last=left == 0)) for write in sent]
        todo = [_Write(write.item, plans) for write, plans in again if plans]
        if not todo:
            return


def _send(client: AnalysisClient, write: _Write) -> _Write | None:
    """Send the writes of an object. Return the last one, or `None` if the object has an error."""
    resource = write.item.entry
    for number, planned in enumerate(write.plans):
        try:
            resource.write(client, f"{DOING[planned.action]} {resource.title}", planned)
        except ToolchainError as error:
            if number:
                error.with_hint(_restore(client, resource, write.plans[0], error))
                error.result = {"changed": True}
            if error.outcome_unknown:  # the verification decides
                return replace(write, plans=(planned,), lost=error)
            write.item.error = error
            return None
    return replace(write, plans=write.plans[-1:])


def _check(
    client: AnalysisClient, write: _Write, verify: Verify, *, last: bool
) -> tuple[Plan, ...]:
    """Compare an object with its plan, because a server may silently ignore fields.

    Return the plans of further writes that may help, or store the error.

    :param verify: returns the current state of the object
    :param last: whether no further write may follow
    """
    item, lost, (done,) = write.item, write.lost, write.plans
    try:
        item.state = verify(item.entry)
    except ToolchainError as error:
        item.error = lost or error
        return ()
    if (item.plan.action, done.action) == ("update", "create"):
        item.entry = _recreated(item.entry, item.plan)
    left = item.entry.left(item.state)
    if not left.changed:
        return ()
    again = () if lost or last else item.entry.again(done, left)
    if not again:
        unkept = unsaved(f"{DOING[item.plan.action]} {item.entry.title}", item.plan, left)
        message = client.refusals.get(item.entry.call(done).action)
        if message:
            unkept.message += f" (it had rejected additional parameters: {message})"
        item.error = lost or unkept
        item.error.result = unkept.result
    return again


def _restore(
    client: AnalysisClient, resource: Resource, deleted: Plan, failure: ToolchainError
) -> str:
    """Create the previous object again, if it was deleted and the server rejected the new object.

    Return a note for the error message.
    """
    note = "the old object was deleted before the creation"
    if failure.outcome_unknown:
        return note
    before = deleted.before
    fields = tuple(Change(name, None, value) for name, value in before.items())
    try:
        old = Plan({}, before, "create", fields)
        resource.write(client, f"creating {resource.title} again", old)
    except ToolchainError:
        return note
    return "the previous object was restored"


def _recreated(resource: Resource, planned: Plan) -> Resource:
    """Return the desired object with the unmanaged fields of the object before its recreation."""
    names = resource.desired or {}
    return replace(resource, desired={name: planned.after.get(name) for name in names})


class ResourceOperation:
    """Brings an object into the desired state: read, write the differences, verify."""

    makes: ClassVar[type[Resource]]

    def __init__(self, task: Task, options: Any) -> None:
        self._task, self._resource = task, self.makes.of(options)
        self._client = AnalysisClient(task)

    def complete(self, resource: Resource) -> Resource:
        """Return the object with what only the server knows."""
        return resource

    def plan(self) -> Plan:
        resource = self.complete(self._resource)
        current = self._read(resource)
        found = compare(resource, current)
        refuse_impossible(resource, found)
        hidden_fields = hidden(resource, current)
        if hidden_fields:
            self._task.warn(
                f"cannot compare {', '.join(hidden_fields)} of {resource.title}, because the"
                " server does not return them: they are only written together with other changes"
            )
        unknown = (*hidden_fields, *resource.unreadable(current))
        found = found.with_data(ResourceItem(resource, resource.title, plan=found))
        return self._returning(found, found.after).with_unknown(*unknown)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        item = replace(plan.data)
        carry_out(self._client, [(item, (plan,))], lambda resources: self._read)
        if item.error is not None:
            raise item.error
        return self._returning(plan, item.state or {}).result

    def predict(self, plan: Plan) -> None:
        name = str(plan.after.get("name", plan.before.get("name")))
        if plan.action == "delete":
            self._task.predictions.remove(self._resource.noun, name)
        else:
            there = plan.before.get("name", True)
            self._task.predictions.add(self._resource.noun, name, value=there)

    def _read(self, resource: Resource) -> State | None:
        purpose = f"reading {resource.title}"
        prediction = self._predicted_project(resource)
        current_name: dict[str, Any] = {"project": prediction}
        current = replace(resource, **current_name) if isinstance(prediction, str) else resource
        records = () if prediction is True else self._client.ask(purpose, current.listing)
        return resource.find(resource.objects(records))

    def _predicted_project(self, resource: Resource) -> Any:
        """Return the prediction of earlier tasks in check mode for the object's project.

        It is the current name if a task would rename the project, `True` if a task would create it,
        and `None` without a prediction.
        """
        project = getattr(resource, "project", None)
        return None if project is None else self._task.predictions.get("project", project)

    def _returning(self, found: Plan, state: State) -> Plan:
        if self._resource.desired is None:
            return found
        return found.with_result(**{self._resource.noun: dict(state)})
