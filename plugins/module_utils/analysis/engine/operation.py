# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out plans: write once, and verify the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...core.concurrency import spread
from ...core.errors import ToolchainError
from ...core.module.task import Task
from ...core.plan import Change, Plan
from ..client import AnalysisClient
from .resource import DOING, Resource, State, compare, hidden, refuse_impossible

#: Reads an object. Passed to a round of writes, so that many objects can share a listing.
Verify: TypeAlias = Callable[[Resource], "State | None"]
#: Maximum number of rounds for an object: update, recreate, the part that creation does not
#: support, and the part without escapes.
_ROUNDS = 4


@dataclass
class ResourceWrite:
    """An object to write. `error` and `state` have the result."""

    resource: Resource
    plan: Plan
    error: ToolchainError | None = None
    state: State | None = None
    _todo: tuple[Plan, ...] = field(init=False)
    _done: Plan = field(init=False)
    _lost: ToolchainError | None = None

    def __post_init__(self) -> None:
        self._todo, self._done = (self.plan,), self.plan

    @property
    def over(self) -> bool:
        return self.error is not None or not self._todo

    def plan_again(self, current: State | None) -> None:
        """Plan again with the current object, which was unknown before; nothing may be left."""
        left = compare(self.resource, current)
        refuse_impossible(self.resource, left)
        self._todo, self.state = ((left,) if left.changed else ()), current

    def send(self, client: AnalysisClient) -> None:
        """Send the write and keep a failure. After a lost response :meth:`check` decides."""
        for number, part in enumerate(self._todo):
            self._done = part
            try:
                self.resource.write(client, self._doing(part), part)
            except ToolchainError as error:
                if number:
                    error.with_hint(self._restored(client, error))
                    error.result = {"changed": True}
                if error.outcome_unknown:
                    self._lost = error
                else:
                    self.error = error
                return

    def check(self, verify: Verify, refusals: Mapping[str, str], *, last: bool) -> None:
        """Verify the object: a server may accept a write and silently ignore a part of it.

        :param refusals: error message by action, for parameters that the server does not know
        :param last: no further round follows
        """
        try:
            self.state = verify(self.resource)
        except ToolchainError as error:
            self.error = self._lost or error
            return
        if (self.plan.action, self._done.action) == ("update", "create"):
            self.resource = _as_before(self.resource, self.plan)
        left = self.resource.left(self.state)
        if not left.changed:
            self._todo = ()
            return
        if self._lost is None:
            self._todo = () if last else self.resource.again(self._done, left)
        if self._lost is not None or not self._todo:
            self.error = self._lost or self._not_kept(left, refusals)
            self.error.result = {"changed": (self.state or {}) != self.plan.before}

    def _restored(self, client: AnalysisClient, failure: ToolchainError) -> str:
        """Restore an object that was deleted to be recreated, if the server rejected the new
        object. Return a note for the message.
        """
        gone = "the old object was deleted before the creation"
        if failure.outcome_unknown:
            return gone
        before = self._todo[0].before
        fields = tuple(Change(name, None, value) for name, value in before.items())
        old = Plan({}, before, "create", fields)
        try:
            self.resource.write(client, f"creating {self.resource.title} again", old)
        except ToolchainError:
            return gone
        return "the previous object was restored"

    def _doing(self, part: Plan) -> str:
        return f"{DOING[part.action]} {self.resource.title}"

    def _not_kept(self, left: Plan, refusals: Mapping[str, str]) -> ToolchainError:
        reason = {
            "create": "the server accepted it, but does not show the object",
            "update": f"the server did not save {not_kept(left.changes)}",
            "delete": "the server accepted the deletion, but the object still exists",
        }[left.action]
        words = refusals.get(self.resource.call(self._done).action)
        reason += f" (it had rejected additional parameters: {words})" if words else ""
        return ToolchainError("rejected", f"{self._doing(self.plan)}: {reason}")


def _as_before(resource: Resource, plan: Plan) -> Resource:
    """Return the recreated object with the unmanaged fields of the old object."""
    names = resource.desired or {}
    return replace(resource, desired={name: plan.after.get(name) for name in names})


def carry_out(
    client: AnalysisClient,
    writes: Sequence[ResourceWrite],
    looking: Callable[[Sequence[Resource]], Verify],
    *,
    parallel: int = 1,
) -> None:
    """Send all open writes, at most `parallel` at once, and verify them.

    :param looking: returns a function that reads the current state of some objects
    """
    for left in reversed(range(_ROUNDS)):
        todo = [write for write in writes if not write.over]
        if not todo:
            return
        spread(parallel, lambda each: each.send(client), todo)
        written = [write for write in todo if write.error is None]
        verify = looking([write.resource for write in written])
        for write in written:
            write.check(verify, client.refusals, last=left == 0)


def not_kept(changes: Iterable[Change]) -> str:
    """Return the names of fields that still differ; `field.entry` for entries of a mapping."""
    names: list[str] = []
    for change in changes:
        if isinstance(change.after, Mapping) and isinstance(change.before, Mapping):
            differing = [key for key in change.after if change.before.get(key) != change.after[key]]
            names += [f"{change.field}.{key}" for key in differing]
        else:
            names.append(change.field)
    return ", ".join(names)


class ResourceOperation:
    """Bring an object into the wanted state: read, write differences, verify."""

    def __init__(self, task: Task, resource: Resource) -> None:
        self._task, self._resource = task, resource
        self._client, self._shown = AnalysisClient(task), False

    def plan(self) -> Plan:
        current = self._read(self._resource)
        found = compare(self._resource, current)
        refuse_impossible(self._resource, found)
        if self._resource.desired is None and not self._shown:
            self._client.require_service()
        unseen = hidden(self._resource, current)
        if unseen:
            self._task.warn(
                f"The server does not show {', '.join(unseen)} of {self._resource.title}: it is"
                " unknown whether they differ. They are only written along with other changes."
            )
        return self._returning(found, found.after)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        write = ResourceWrite(self._resource, plan)
        carry_out(self._client, [write], lambda resources: self._read)
        if write.error is not None:
            raise write.error
        return self._returning(plan, write.state or {}).result

    def predict(self, plan: Plan) -> None:
        name = str(plan.after.get("name", plan.before.get("name")))
        if plan.action == "delete":
            self._task.predictions.remove(self._resource.noun, name)
        else:
            there = plan.before.get("name", True)
            self._task.predictions.add(self._resource.noun, name, value=there)

    def _read(self, resource: Resource) -> State | None:
        purpose = f"reading {resource.title}"
        there = self._name_of_project(resource)
        renamed: dict[str, Any] = {"project": there}
        asked = replace(resource, **renamed) if isinstance(there, str) else resource
        records = () if there is True else self._client.ask(purpose, asked.listing)
        objects = resource.objects(records)
        self._shown = bool(objects)
        return resource.find(objects)

    def _name_of_project(self, resource: Resource) -> Any:
        """Return the present name of the object's project if an earlier task in check mode would
        rename it; `True` if that task would create it.
        """
        project = getattr(resource, "project", None)
        return None if project is None else self._task.predictions.get("project", project)

    def _returning(self, found: Plan, state: State) -> Plan:
        if self._resource.desired is None:
            return found
        return found.with_result(**{self._resource.noun: dict(state)})
