# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare current and desired state: pure functions without I/O that do not change their input."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from .errors import ToolchainError

Action = Literal["none", "create", "update", "delete", "run"]


@dataclass(frozen=True)
class Change:
    """A field with different values before and after the task.

    :param before: `None` for a new object
    :param after: `None` for a deleted object
    """

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Plan:
    """The changes of a task.

    :param before: state before the task, for the diff
    :param after: state after the task, for the diff
    :param result: return values
    :param failure: error of the objects that cannot be planned; `apply` raises it after all other
        changes. The runner raises it if there are no other changes
    :param make_diff: computes the diff instead of `before` and `after`, if that takes long; must
        depend on the plan only
    :param waits: `apply` changes nothing, but waits for an operation on the server
    :param data: state of the server and decisions that `apply` needs
    """

    before: Any
    after: Any
    action: Action = "none"
    changes: tuple[Change, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    failure: ToolchainError | None = None
    make_diff: Callable[[], tuple[Any, Any]] | None = None
    waits: bool = False
    data: Any = field(default=None, repr=False)  # may have secrets

    @property
    def changed(self) -> bool:
        return self.action != "none"

    @property
    def needs_apply(self) -> bool:
        """Return whether the plan has changes to write, or an operation to wait for."""
        return self.changed or self.waits

    def diff(self) -> tuple[Any, Any]:
        """Return the states before and after the task, for the diff."""
        return (self.before, self.after) if self.make_diff is None else self.make_diff()

    def with_result(self, **result: Any) -> Plan:
        """Return a copy of the plan with more return values."""
        return replace(self, result={**self.result, **result})

    def with_unknown(self, *names: str) -> Plan:
        """Return the plan with the fields that cannot be compared as return value `unknown`."""
        return self.with_result(unknown=list(names)) if names else self

    def with_unsupported(self, sentences: Sequence[str]) -> Plan:
        """Return the plan with what the server cannot hold as return value `unsupported`."""
        return self.with_result(unsupported=list(sentences)) if sentences else self

    def with_data(self, data: Any) -> Plan:
        return replace(self, data=data)


class Operation(Protocol):
    """The work of a module. `plan` only reads; `apply` writes."""

    def plan(self) -> Plan:
        """Compare the current and the desired state. Must send reads only."""

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Carry out a plan. Return the return values that only the write produces.

        Not called in check mode.
        """


@runtime_checkable
class Preflight(Protocol):
    """An operation that can fail because of objects that its plan does not read, such as users."""

    def preflight(self, plan: Plan) -> None:
        """Raise in check mode the error that the server would return for the write [C1.6].

        Must send reads only.
        """


@runtime_checkable
class Predicting(Protocol):
    """An operation that creates or changes objects that later tasks need."""

    def predict(self, plan: Plan) -> None:
        """Add in check mode the objects of the plan to the predictions of the task [C1.6]."""


class Comparison(Protocol):
    """A function that compares a field."""

    def __call__(self, current: Any, desired: Any) -> tuple[bool, Any]:
        """Return whether `current` satisfies `desired`, and the value to set otherwise."""


def exact(current: Any, desired: Any) -> tuple[bool, Any]:
    return bool(current == desired), desired


def unordered(current: Any, desired: Any) -> tuple[bool, Any]:
    """Compare lists, ignoring order and duplicates."""
    return sorted(set(map(_key, current or []))) == sorted(set(map(_key, desired))), desired


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def plan(
    current: Mapping[str, Any] | None,
    desired: Mapping[str, Any] | None,
    comparisons: Mapping[str, Comparison] | None = None,
) -> Plan:
    """Return the plan that brings an object to its desired state.

    :param current: fields of the object on the server; `None` if it does not exist
    :param desired: desired fields; a field that is `None` is not managed. `None` instead of a
        mapping means that the object must not exist
    :param comparisons: comparisons by field name, by default `exact`
    """
    if desired is None and current is None:
        return Plan({}, {})
    if desired is None:
        removed = _copied(dict(current or {}))
        fields = tuple(Change(name, value, None) for name, value in removed.items())
        return Plan(removed, {}, "delete", fields)
    managed = {name: _copied(value) for name, value in desired.items() if value is not None}
    if current is None:
        changes = tuple(Change(name, None, value) for name, value in managed.items())
        return Plan({}, managed, "create", changes)
    before = _copied(dict(current))
    after = dict(before)  # a shallow copy, because values are replaced, never changed in place
    changed: list[Change] = []
    for name, wanted in managed.items():
        same, value = (comparisons or {}).get(name, exact)(before.get(name), wanted)
        if not same:
            after[name] = value
            changed.append(Change(name, before.get(name), value))
    return Plan(before, after, "update" if changed else "none", tuple(changed))


def remaining(
    done: Plan,
    current: Mapping[str, Any] | None,
    comparisons: Mapping[str, Comparison] | None = None,
    unread: Collection[str] = (),
) -> Plan:
    """Return the plan for what a write has left undone. A change to `None` removes the value.

    :param done: the plan of the write
    :param current: fields of the object as read after the write; `None` if it does not exist
    :param comparisons: see :func:`plan`
    :param unread: fields that no read returns, such as passwords
    """
    if done.action == "delete":
        return plan(current, None)
    changes = [change for change in done.changes if change.field not in unread]
    left = plan(current, {change.field: change.after for change in changes}, comparisons)
    kept = [
        Change(change.field, left.before[change.field], None)
        for change in changes
        if change.after is None and left.before.get(change.field) is not None
    ]
    return replace(left, action="update", changes=(*left.changes, *kept)) if kept else left


def _copied(value: Any) -> Any:
    """Return a deep copy, much faster than `copy.deepcopy` for JSON values."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return copy.deepcopy(value)


def unchanged(result: Mapping[str, Any] | None = None, state: Any = None) -> Plan:
    """Return the plan of a task that changes nothing.

    :param state: state for the diff, before and after the task
    """
    return Plan(
        {} if state is None else state, {} if state is None else state, result=dict(result or {})
    )


class ReadOnly:
    """Base class of operations that write nothing."""

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        raise AssertionError("a read-only operation has nothing to apply")


def without_none(values: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the entries of `values` that are not `None`.

    :param names: keys of the returned entries, by default all
    """
    chosen: Sequence[str] = list(values) if names is None else list(names)
    return {name: values[name] for name in chosen if values.get(name) is not None}
