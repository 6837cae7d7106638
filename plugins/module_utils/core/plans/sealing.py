# SPDX-License-Identifier: GPL-3.0-or-later
"""Write only what a sealed plan contains [C9].

A task's plan has a digest for each change. The playbook `drift` collects them in a sealed plan; a
task of `enforce` may write a change only if that plan has its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from string import Formatter
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..errors import ToolchainError, single_line
from ..plan import Plan
from ..secret import Secret

#: The argument in which the action passes the sealed plan to a module.
ARGUMENT = "_toolchain_sealed"
_MAX_NAMED = 10


class PlannedChange(NamedTuple):
    """A change of a plan: its name, what it is made from, and both sides.

    :param group: object of the report that has several changes
    :param follows: earlier tasks of the run may lead to the change: if a sealed plan does not have
        it, it is left out, and is not a conflict
    """

    name: str
    wanted: Any
    before: Any
    after: Any
    group: str = ""
    follows: bool = False


@runtime_checkable
class Divisible(Protocol):
    """An operation with a plan of several independent changes."""

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        """Return the changes of the plan, in the order of the return value that lists them."""

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the parts at these places and the parts that depend on them.

        Called without places too: after that `apply()` may write only the parts of the plan, even
        if the server has changed in the meantime.
        """


class Sealing:
    """The digests of a task's plan, and those that a sealed plan allows.

    :param argument: the argument: `salt`, and for `enforce` the digests `writes` and `ignored`, and
        `rest`, which is `fail` or `skip`
    :param place: what the plan is made for: the module and the address of the server
    :param secrets: secret values of the options; a plan contains only their salted digests
    """

    def __init__(
        self, argument: Mapping[str, Any], place: Sequence[str], secrets: Collection[str]
    ) -> None:
        self._salt = str(argument["salt"]).encode()
        self._may_write = None if argument.get("writes") is None else frozenset(argument["writes"])
        self._ignored = frozenset(argument.get("ignored") or ())
        self._skips = argument.get("rest") == "skip"
        self._place, self._secrets = list(place), frozenset(secrets)
        #: Digests of the changes, in their order.
        self.digests: list[str] = []
        #: The same, with a list for each group of changes: for the findings of a report.
        self.grouped: list[Any] = []
        #: Names of changes that are left out.
        self.skipped: list[str] = []

    def hold(self, operation: Any, plan: Plan, wanted: Any, *, check_mode: bool) -> Plan:
        """Return the plan of the permitted changes.

        :param wanted: the options of the module
        :raises ToolchainError: `conflict` if a change is not in the sealed plan
        """
        descriptor = getattr(operation, "descriptor", None)
        if not plan.changed or (descriptor is not None and descriptor.follows):
            return plan
        parts = _parts(operation, plan, wanted, descriptor.name if descriptor else "")
        self.digests = [self._digest(part) for part in parts]
        self.grouped = _grouped(parts, self.digests)
        if check_mode or self._may_write is None:
            return plan
        refused = [n for n, digest in enumerate(self.digests) if digest not in self._may_write]
        unknown = [
            n for n in refused if self.digests[n] not in self._ignored and not parts[n].follows
        ]
        if unknown and not self._skips:
            raise _conflict([parts[n].name for n in unknown])
        if isinstance(operation, Divisible):
            plan = operation.leave_out(plan, refused)
            left = set(map(self._digest, operation.parts(plan))) if refused else set(self.digests)
            named = zip(parts, self.digests, strict=True)
            self.skipped = [part.name for part, digest in named if digest not in left]
            return plan
        if not refused:
            return plan
        self.skipped = [parts[0].name]
        return replace(plan, after=plan.before, action="none", changes=(), make_diff=None)

    def _digest(self, part: PlannedChange) -> str:
        secrets = sorted(self._secrets.intersection(_texts_in(part.wanted)))
        value = [self._place, part.name, part.before, part.after, secrets]
        text = json.dumps(value, sort_keys=True, default=str)
        return hmac.new(self._salt, text.encode(), hashlib.sha256).hexdigest()[:32]


def _parts(operation: Any, plan: Plan, wanted: Any, pattern: str) -> Sequence[PlannedChange]:
    if isinstance(operation, Divisible):
        return operation.parts(plan)
    before, after = plan.diff()
    # the options: two objects may have the same diff, and a diff need not show what is run
    name = _name(pattern, wanted)
    return [PlannedChange(name, wanted, [plan.action, before], [after, _plain(wanted)])]


def _grouped(parts: Sequence[PlannedChange], digests: Sequence[str]) -> list[Any]:
    """Return the digests; those of a group are a list at the place of the first one."""
    found: list[Any] = []
    groups: dict[str, list[str]] = {}
    for part, digest in zip(parts, digests, strict=True):
        if not part.group:
            found.append(digest)
        elif part.group in groups:
            groups[part.group].append(digest)
        else:
            found.append(groups.setdefault(part.group, [digest]))
    return found


def _name(pattern: str, options: Any) -> str:
    """Return the name of an object from a format string over the options."""
    fields = [field for _text, field, _spec, _conversion in Formatter().parse(pattern) if field]
    found = {field: getattr(options, field, None) for field in fields}
    return pattern.format_map({**found, **{name: "" for name, one in found.items() if one is None}})


def _plain(value: Any) -> Any:
    """Return options for JSON, without their secrets."""
    if isinstance(value, Secret):
        return None
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _texts_in(value: Any) -> set[str]:
    if isinstance(value, Secret):
        return {value.reveal()}
    if is_dataclass(value):
        value = [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return set().union(*map(_texts_in, value))
    return {str(value)}


def _conflict(names: Sequence[str]) -> ToolchainError:
    named = ", ".join(filter(None, names[:_MAX_NAMED]))
    rest = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    label = single_line(f" of {named}{rest}") if named else ""
    return ToolchainError(
        "conflict",
        f"conflict: the change{label} is not in the sealed plan, so nothing was written: the server"
        " or the desired state has changed since the plan was made; run drift again",
    )
