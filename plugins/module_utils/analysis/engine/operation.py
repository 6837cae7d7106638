# SPDX-License-Identifier: GPL-3.0-or-later
"""Send the writes of plans, and verify their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from ...core.concurrency import spread
from ...core.errors import ToolchainError
from ...core.module.objects import Item
from ...core.module.task import Task
from ...core.plan import Change, Plan
from ...core.verification import DOING, unsaved
from ..client import AnalysisClient
from .resource import Resource, State, compare, hidden, refuse_impossible

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
