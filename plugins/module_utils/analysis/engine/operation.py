# SPDX-License-Identifier: GPL-3.0-or-later
"""Send the writes of plans, and verify their results."""

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

#: Function that returns the current state of an object, possibly from a shared listing.
Verify: TypeAlias = Callable[[Resource], "State | None"]
#: Maximum number of writes per object: update, recreate, fields that the creation does not support,
#: and lists without escapes.
_ROUNDS = 4


@dataclass
class ResourceWrite:
    """An object to write. The result is stored in `error` or `state`."""

    resource: Resource
    plan: Plan
    error: ToolchainError | None = None
    state: State | None = None
    _pending: tuple[Plan, ...] = field(init=False)
    _sent: Plan = field(init=False)
    _lost_response: ToolchainError | None = None

    def __post_init__(self) -> None:
        self._pending, self._sent = (self.plan,), self.plan

    @property
    def over(self) -> bool:
        return self.error is not None or not self._pending

    def plan_again(self, current: State | None) -> None:
        """Replace the plan by a plan from the current object, which was unknown before."""
        left = compare(self.resource, current)
        refuse_impossible(self.resource, left)
        self._pending, self.state = ((left,) if left.changed else ()), current

    def send(self, client: AnalysisClient) -> None:
        """Send the write and store its error. After a lost response, `check` decides."""
        for number, plan in enumerate(self._pending):
            self._sent = plan
            try:
                self.resource.write(client, self._purpose_of(plan), plan)
            except ToolchainError as error:
                if number:
                    error.with_hint(self._restore(client, error))
                    error.result = {"changed": True}
                if error.outcome_unknown:
                    self._lost_response = error
                else:
                    self.error = error
                return

    def check(self, verify: Verify, refusals: Mapping[str, str], *, last: bool) -> None:
        """Compare the object with the plan, because a server may silently ignore fields.

        :param verify: returns the current state of the object
        :param refusals: error messages by action, for optional parameters that the server rejected
        :param last: whether no further write may follow
        """
        try:
            self.state = verify(self.resource)
        except ToolchainError as error:
            self.error = self._lost_response or error
            return
        if (self.plan.action, self._sent.action) == ("update", "create"):
            self.resource = _recreated(self.resource, self.plan)
        left = self.resource.left(self.state)
        if not left.changed:
            self._pending = ()
            return
        if self._lost_response is None:
            self._pending = () if last else self.resource.again(self._sent, left)
        if self._lost_response is not None or not self._pending:
            self.error = self._lost_response or self._unsaved_error(left, refusals)
            self.error.result = {"changed": (self.state or {}) != self.plan.before}

    def _restore(self, client: AnalysisClient, failure: ToolchainError) -> str:
        """Create the previous object again, if it was deleted and the server rejected the new
        object. Return a note for the error message.
        """
        note = "the old object was deleted before the creation"
        if failure.outcome_unknown:
            return note
        before = self._pending[0].before
        fields = tuple(Change(name, None, value) for name, value in before.items())
        old = Plan({}, before, "create", fields)
        try:
            self.resource.write(client, f"creating {self.resource.title} again", old)
        except ToolchainError:
            return note
        return "the previous object was restored"

    def _purpose_of(self, plan: Plan) -> str:
        return f"{DOING[plan.action]} {self.resource.title}"

    def _unsaved_error(self, left: Plan, refusals: Mapping[str, str]) -> ToolchainError:
        reason = {
            "create": "the server accepted the creation, but the object does not exist",
            "update": f"the server did not save {not_kept(left.changes)}",
            "delete": "the server accepted the deletion, but the object still exists",
        }[left.action]
        message = refusals.get(self.resource.call(self._sent).action)
        reason += f" (it had rejected additional parameters: {message})" if message else ""
        return ToolchainError("rejected", f"{self._purpose_of(self.plan)}: {reason}")


def _recreated(resource: Resource, plan: Plan) -> Resource:
    """Return the desired object with the unmanaged fields of the object before its recreation."""
    names = resource.desired or {}
    return replace(resource, desired={name: plan.after.get(name) for name in names})


def carry_out(
    client: AnalysisClient,
    writes: Sequence[ResourceWrite],
    reader_of: Callable[[Sequence[Resource]], Verify],
    *,
    parallel: int = 1,
) -> None:
    """Send the writes concurrently, and verify them. Errors are stored in the writes.

    :param reader_of: returns a function that reads the current state of some objects
    :param parallel: maximum number of concurrent requests
    """
    for left in reversed(range(_ROUNDS)):
        pending = [write for write in writes if not write.over]
        if not pending:
            return
        spread(parallel, lambda write: write.send(client), pending)
        written = [write for write in pending if write.error is None]
        verify = reader_of([write.resource for write in written])
        for write in written:
            write.check(verify, client.refusals, last=left == 0)


def not_kept(changes: Iterable[Change]) -> str:
    """Return the names of the fields that differ, separated by commas. Items of a mapping are named
    `field.key`.
    """
    names: list[str] = []
    for change in changes:
        if isinstance(change.after, Mapping) and isinstance(change.before, Mapping):
            differing = [key for key in change.after if change.before.get(key) != change.after[key]]
            names += [f"{change.field}.{key}" for key in differing]
        else:
            names.append(change.field)
    return ", ".join(names)


class ResourceOperation:
    """Brings an object into the desired state: read, write the differences, verify."""

    def __init__(self, task: Task, resource: Resource) -> None:
        self._task, self._resource = task, resource
        self._client = AnalysisClient(task)

    def plan(self) -> Plan:
        current = self._read(self._resource)
        found = compare(self._resource, current)
        refuse_impossible(self._resource, found)
        hidden_fields = hidden(self._resource, current)
        if hidden_fields:
            self._task.warn(
                f"cannot compare {', '.join(hidden_fields)} of {self._resource.title}, because the"
                " server does not return them: they are only written together with other changes"
            )
        unknown = (*hidden_fields, *self._resource.unreadable(current))
        return self._returning(found, found.after).with_unknown(*unknown)

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
