# SPDX-License-Identifier: GPL-3.0-or-later
"""Base classes for the objects of the server: identification, comparison and writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from ..core.concurrency import spread
from ..core.errors import ToolchainError, conflict, invalid
from ..core.module.task import Task
from ..core.object_names import object_name
from ..core.operations.objects import Item, ItemKind
from ..core.operations.objects import Objects as Engine
from ..core.plan import Change, Comparison, Plan, plan, without_none
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
#: Limit to request. Without a limit, servers return at most 1000 users or groups [analysis-9].
LIMIT = 100_000
#: Values of the option `state`.
Presence: TypeAlias = Literal["present", "absent"]
#: Maximum number of writes per object: update, recreate, fields that the creation does not support,
#: and lists without escapes.
_ROUNDS = 4


@dataclass(frozen=True)
class Resource(ABC):
    """An object with its desired state.

    :param title: object for messages, for example `the role 'x'`
    :param desired: desired fields, named like the options; `None` means absent, and a field that is
        `None` is not managed
    :param name: the current name if the object is to be renamed
    :param project: name of the project that contains the object, or `None`
    """

    #: Noun for messages, which is also the return key of the object.
    noun: ClassVar[str]
    #: Option of `analysis_config` with the objects, and `kind` in plans.
    option: ClassVar[str]
    #: Class of the options of an entry.
    entry_type: ClassVar[type[Any]]
    #: Fields that form the name of an object in plans.
    name_fields: ClassVar[tuple[str, ...]] = ("name",)
    #: The objects belong to a project.
    in_project: ClassVar[bool] = False
    #: The server limits the length of the list of all objects.
    limited: ClassVar[bool] = False
    #: Objects can be created and deleted.
    made: ClassVar[bool] = True
    comparisons: ClassVar[Mapping[str, Comparison]] = {}

    title: str
    desired: State | None
    name: str
    project: str | None = None

    @staticmethod
    @abstractmethod
    def of(options: Any) -> Resource:
        """Return the object that options describe. Raises `invalid` for contradictory options."""

    @property
    def key(self) -> Hashable:
        """Return the key of the object in `objects`."""
        return self.name

    @property
    def target(self) -> str:
        """Return the new name, or the current name if the object is not renamed."""
        return str((self.desired or {}).get("name", self.name))

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

    @classmethod
    def whole_listing(cls, project: str | None) -> Call:
        """Return the call that reads all objects.

        :param project: their project, `None` for objects outside of projects
        """
        return Call(cls.option, {"project": project} if cls.in_project else {})

    @classmethod
    def entry_of(cls, state: State) -> dict[str, Any]:
        """Return an object as an entry of the option, with the fields that the server returns."""
        names = [field.name for field in fields(cls.entry_type)]
        return without_none({name: state[name] for name in names if name in state})

    @classmethod
    def name_of(cls, state: State) -> str:
        """Return the name of an object in plans.

        Depending on the kind it is `name`, `project/name`, or `role/account` and
        `role/group:account`, with `/project` for a single project.
        """
        return object_name(cls.name_fields, state)

    def objects(self, records: Sequence[Record]) -> Objects:
        """Parse the records of `listing`."""
        return self.parse(records, self.project or "", {})

    @abstractmethod
    def call(self, plan: Plan) -> Call:
        """Return the call that carries out a plan. Raises `invalid` if options are missing."""

    @property
    def needs(self) -> frozenset[Reference]:
        """Return the objects that this object refers to, by default its project."""
        return frozenset() if self.project is None else frozenset({("projects", self.project)})

    def needs_newly(self, plan: Plan) -> frozenset[Reference]:
        """Return the objects that this object refers to only after the plan is carried out."""
        return self.needs if plan.action == "create" else frozenset()

    def unreadable(self, current: State | None) -> tuple[str, ...]:
        """Return the options that cannot be compared, because no server returns such values."""
        return ()

    def find(self, objects: Objects) -> State | None:
        """Return the current state of this object, or `None` if it does not exist.

        An object that is to be renamed may have the new name already. Raises `conflict` if both
        names exist.
        """
        old = objects.get(self.key)
        if self.target == self.name:
            return old
        new = objects.get(self.target)
        if old is not None and new is not None:
            raise conflict(
                f"renaming {self.title} to '{self.target}': a {self.noun} with that name already"
                " exists"
            )
        return old or new

    def write(self, client: AnalysisClient, purpose: str, plan: Plan) -> None:
        """Send the call that carries out a plan."""

        def is_done() -> bool | None:
            """Return whether the plan was carried out, or `None` if it was carried out in part."""
            records = client.ask(f"verifying {self.title}", self.listing)
            now = self.find(self.objects(records))
            if now is None if plan.action == "delete" else not self.left(now).changed:
                return True
            return False if (now or {}) == plan.before else None

        client.ask(purpose, self.call(plan), is_done)

    def left(self, current: State | None) -> Plan:
        """Return the plan for the differences that are left after a write."""
        return compare(self, current)

    def again(self, done: Plan, left: Plan) -> tuple[Plan, ...]:
        """Return plans for further writes, or () if these cannot help.

        :param done: plan of the last write, which the server accepted
        :param left: plan for the differences after that write
        """
        return ()


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


class Writes(NamedTuple):
    """The next writes of an object.

    :param lost: error of the last write if its response was lost
    """

    item: Item[Resource, State]
    plans: tuple[Plan, ...]
    lost: ToolchainError | None = None


class ResourceKind(ItemKind[Resource, State]):
    """The objects of the server.

    :param parallel: maximum number of concurrent requests
    :param force: the task's account may lose permissions
    """

    noun = "object"

    def __init__(
        self, task: Task, client: AnalysisClient, *, parallel: int = 1, force: bool = False
    ) -> None:
        super().__init__(task)
        self.client, self.parallel, self.force = client, parallel, force

    def name(self, entry: Resource) -> str:
        return entry.title

    def load(self, items: Sequence[Item[Resource, State]]) -> None:
        for item in items:
            item.entry = self.complete(item.entry)
        self.read(items)

    def complete(self, resource: Resource) -> Resource:
        """Return the object with what only the server knows."""
        return resource

    def read(self, items: Sequence[Item[Resource, State]]) -> None:
        """Read the objects into their `state`, with as few requests as possible.

        Earlier tasks in check mode may have predicted the project of an object: the prediction is
        its current name, or `True` if it does not exist yet.
        """
        for item in items:
            current = resource = item.entry
            prediction = None
            if resource.project is not None:
                prediction = self._task.predictions.get("project", resource.project)
            if isinstance(prediction, str):
                current = replace(resource, project=prediction)
            with item.reporting():
                purpose = f"reading {resource.title}"
                records = [] if prediction is True else self.client.ask(purpose, current.listing)
                objects = resource.objects(records)
                place = _place(resource, resource.target)
                if resource.desired is not None and self._task.predictions.is_free(*place):
                    objects = {k: v for k, v in objects.items() if k != resource.target}
                item.state = resource.find(objects)

    def compare(self, item: Item[Resource, State]) -> Plan:
        resource = item.entry
        found = compare(resource, item.state)
        refuse_impossible(resource, found)
        hidden_fields = hidden(resource, item.state)
        if hidden_fields:
            self._task.warn(
                f"cannot compare {', '.join(hidden_fields)} of {resource.title}, because the"
                " server does not return them: they are only written together with other changes"
            )
        unknown = (*hidden_fields, *resource.unreadable(item.state))
        return _returning(resource, found, found.after).with_unknown(*unknown)

    def write(self, item: Item[Resource, State]) -> None:
        self.write_all([item])

    def write_all(self, items: Sequence[Item[Resource, State]]) -> None:
        self.write_plans([Writes(item, (item.plan,)) for item in items])

    def write_plans(self, todo: Sequence[Writes]) -> None:
        """Write objects and verify them, with as few reads as possible.

        A server may ignore a part of a write without an error. Then further writes may help.
        """
        for left in reversed(range(_ROUNDS)):
            sent = [write for write in spread(self.parallel, self._send, todo) if write]
            if not sent:
                return
            self.read([write.item for write in sent])
            again = [(write.item, self._check(write, last=left == 0)) for write in sent]
            todo = [Writes(item, plans) for item, plans in again if plans]

    def _send(self, write: Writes) -> Writes | None:
        """Send the writes of an object. Return the last one, or `None` after an error."""
        resource = write.item.entry
        for number, planned in enumerate(write.plans):
            try:
                resource.write(self.client, f"{DOING[planned.action]} {resource.title}", planned)
            except ToolchainError as error:
                if number:
                    error.with_hint(self._restore(resource, write.plans[0], error))
                    error.result = {"changed": True}
                if error.outcome_unknown:  # the verification decides
                    return Writes(write.item, (planned,), error)
                write.item.error = error
                return None
        return Writes(write.item, write.plans[-1:])

    def _restore(self, resource: Resource, deleted: Plan, failure: ToolchainError) -> str:
        """Create the previous object again, if it was deleted and the server rejected the new one.

        Return a note for the error message.
        """
        note = "the old object was deleted before the creation"
        if failure.outcome_unknown:
            return note
        fields = tuple(Change(name, None, value) for name, value in deleted.before.items())
        try:
            old = Plan({}, deleted.before, "create", fields)
            resource.write(self.client, f"creating {resource.title} again", old)
        except ToolchainError:
            return note
        return "the previous object was restored"

    def _check(self, write: Writes, *, last: bool) -> tuple[Plan, ...]:
        """Compare a written object, which has been read again, with its plan.

        Return the plans of further writes that may help, or store the error.

        :param last: whether no further write may follow
        """
        item, (done,), lost = write
        if item.error is not None:
            item.error = lost or item.error
            return ()
        if (item.plan.action, done.action) == ("update", "create"):
            # the object was recreated, also with the fields that are not managed
            desired = {name: item.plan.after.get(name) for name in item.entry.desired or {}}
            item.entry = replace(item.entry, desired=desired)
        left = item.entry.left(item.state)
        if not left.changed:
            item.returned = _returning(item.entry, item.plan, item.state or {}).result
            return ()
        again = () if lost or last else item.entry.again(done, left)
        if not again:
            unkept = unsaved(f"{DOING[item.plan.action]} {item.entry.title}", item.plan, left)
            message = self.client.refusals.get(item.entry.call(done).action)
            if message:
                unkept.message += f" (it had rejected additional parameters: {message})"
            item.error = lost or unkept
            item.error.result = unkept.result
        return again

    def predict(self, item: Item[Resource, State]) -> None:
        before, after, predictions = item.plan.before, item.plan.after, self._task.predictions
        former, name = before.get("name", True), str(after.get("name", before.get("name")))
        if item.plan.action == "delete" or former not in (True, name):
            predictions.remove(*_place(item.entry, str(former)))
        if item.plan.action != "delete":
            predictions.add(*_place(item.entry, name), value=former)


def _place(resource: Resource, name: str) -> tuple[str, ...]:
    """Return kind and name of an object for predictions; names are only unique in their project."""
    return resource.noun, *filter(None, [resource.project]), name


def _returning(resource: Resource, found: Plan, state: State) -> Plan:
    """Return a plan with the object as return value, unless it is to be absent."""
    if resource.desired is None:
        return found
    return found.with_result(**{resource.noun: dict(state or resource.desired)})


class ResourceOperation:
    """Brings an object into the desired state.

    :cvar kind: how the object is compared and written
    """

    makes: ClassVar[type[Resource]]
    kind: ClassVar[type[ResourceKind]] = ResourceKind

    def __init__(self, task: Task, options: Any) -> None:
        force = getattr(options, "force", False)
        kind = self.kind(task, AnalysisClient(task), force=force)
        self._engine = Engine(kind, [self.makes.of(options)], listed=False)

    def plan(self) -> Plan:
        return self._engine.plan()

    def preflight(self, plan: Plan) -> None:
        self._engine.preflight(plan)

    def predict(self, plan: Plan) -> None:
        self._engine.predict(plan)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._engine.apply(plan)
