# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that decides whether something differs: pure, without I/O, never changing what it
is given.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from .errors import ToolchainError

Action = Literal["none", "create", "update", "delete", "run"]


@dataclass(frozen=True)
class Change:
    """One field that differs; C(before) or C(after) is C(None) where the object is made or goes
    away.
    """

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Plan:
    """What a task would do: C(before) and C(after) are the diff, C(result) the return values if it
    is done so.

    C(failure): what could not be planned where the rest is to be done in spite of it. The task
    fails with it; where there is a rest, it is C(apply) that raises in the end.
    C(waits): nothing changes, and C(apply) waits for the end of what others have begun; check mode
    does not wait.
    C(make_diff): makes both sides of a diff that takes long to make, in place of C(before) and
    C(after); it depends on what was planned alone.
    """

    before: Any
    after: Any
    action: Action = "none"
    changes: tuple[Change, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    failure: ToolchainError | None = None
    make_diff: Callable[[], tuple[Any, Any]] | None = None
    waits: bool = False

    @property
    def changed(self) -> bool:
        return self.action != "none"

    @property
    def needs_apply(self) -> bool:
        """Whether C(apply) has something to do."""
        return self.changed or self.waits

    def diff(self) -> tuple[Any, Any]:
        """Both sides of the diff, made now where that takes long."""
        return (self.before, self.after) if self.make_diff is None else self.make_diff()

    def with_result(self, **result: Any) -> Plan:
        """The same plan with (further) return values."""
        return replace(self, result={**self.result, **result})


class Operation(Protocol):
    """What a module is: it reads and plans, and only C(apply) writes."""

    def plan(self) -> Plan:
        """Read what is there and compare it with what is wanted. Sends reads only."""

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Do what C(plan) says; gives the return values that only the doing tells. Not called in
        check mode.
        """


@runtime_checkable
class Preflight(Protocol):
    """An operation whose write depends on more than what it plans with, as members of a group."""

    def preflight(self, plan: Plan) -> None:
        """In check mode only: read what the write depends on, and raise what the server would
        answer to it, of the same kind [C1.6]. Sends reads only.
        """


class Comparison(Protocol):
    """How one field is compared and what it becomes."""

    def __call__(self, current: Any, wanted: Any) -> tuple[bool, Any]:
        """Whether C(current) is as wanted already, and the value after the task."""


def exact(current: Any, wanted: Any) -> tuple[bool, Any]:
    return bool(current == wanted), wanted


def unordered(current: Any, wanted: Any) -> tuple[bool, Any]:
    """Lists whose order and repetitions carry no meaning."""
    return sorted(set(map(_key, current or []))) == sorted(set(map(_key, wanted))), wanted


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def plan(
    current: Mapping[str, Any] | None,
    desired: Mapping[str, Any] | None,
    comparisons: Mapping[str, Comparison] | None = None,
) -> Plan:
    """Compare an object with what is wanted of it.

    :param current: the object as the server has it, C(None) where it is missing
    :param desired: the wanted fields, C(None) for "absent"; a field that is C(None) is not managed
    :param comparisons: field to comparison, :func:`exact` where none is given
    """
    if desired is None:
        return _plan_of_removal(current)
    managed = {name: _copied(value) for name, value in desired.items() if value is not None}
    if current is None:
        changes = tuple(Change(name, None, value) for name, value in managed.items())
        return Plan({}, managed, "create", changes)
    before = _copied(dict(current))
    after = dict(before)  # its values are replaced, never changed in place
    changed: list[Change] = []
    for name, wanted in managed.items():
        same, value = (comparisons or {}).get(name, exact)(before.get(name), wanted)
        if not same:
            after[name] = value
            changed.append(Change(name, before.get(name), value))
    return Plan(before, after, "update" if changed else "none", tuple(changed))


def _copied(value: Any) -> Any:
    """What C(copy.deepcopy) makes of what JSON knows, in a fraction of its time."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return copy.deepcopy(value)


def _plan_of_removal(current: Mapping[str, Any] | None) -> Plan:
    if current is None:
        return Plan({}, {})
    before = _copied(dict(current))
    return Plan(
        before, {}, "delete", tuple(Change(name, value, None) for name, value in before.items())
    )


def unchanged(result: Mapping[str, Any] | None = None, state: Any = None) -> Plan:
    """The plan of a task that only reads, or that finds nothing to do."""
    return Plan(
        {} if state is None else state, {} if state is None else state, result=dict(result or {})
    )


class ReadOnly:
    """An operation that only reads: all that it does is its plan."""

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        raise AssertionError("a reading has nothing to apply")


def without_none(values: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """The entries of C(values) (those in C(names)) that are not C(None)."""
    wanted: Sequence[str] = list(values) if names is None else list(names)
    return {name: values[name] for name in wanted if values.get(name) is not None}
