# SPDX-License-Identifier: GPL-3.0-or-later
"""Restrict writes to the changes of a sealed plan [C9].

The playbook `drift` stores a digest of each planned change in a sealed plan. A task of the playbook
`enforce` may write a change only if its digest is in the sealed plan.

A plan contains the salt, so everybody who reads it can guess the values of a change. The digest of
a change with a secret is therefore slow.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..errors import ToolchainError, single_line
from ..free_text import mask_free_text
from ..plan import Plan
from ..secret import Secret, hidden
from .descriptor import Descriptor

#: Name of the argument with which the action passes the sealed plan to a module.
ARGUMENT = "_toolchain_sealed"
_MAX_NAMED = 10
_ROUNDS, _DIGEST = 100_000, 16


class PlannedChange(NamedTuple):
    """A change of a plan.

    :param name: name of the changed object
    :param wanted: desired state from the options, searched for secrets
    :param before: state before the change, a JSON value
    :param after: state after the change, a JSON value
    :param group: name of the object in reports, if it is not `name`, for example because the
        object has several changes
    :param kind: kind of the object in reports, if the task has objects of several kinds
    :param follows: the change may be a consequence of earlier tasks of the run. If it is not in the
        sealed plan, it is skipped instead of reported as a conflict
    """

    name: str
    wanted: Any
    before: Any
    after: Any
    group: str = ""
    kind: str = ""
    follows: bool = False


class SealedChange(NamedTuple):
    """A change with its digest.

    :param name: name of the object in reports
    :param is_part: whether the task has several changes, each of an object
    """

    digest: str
    kind: str
    name: str
    is_part: bool


@runtime_checkable
class Divisible(Protocol):
    """An operation with independent changes, some of which can be skipped."""

    def parts(self, plan: Plan) -> Sequence[PlannedChange]:
        """Return the changes of the plan, in the same order as in the return value."""

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without some of its parts, and without the parts that depend on them.

        After this call, also without indexes, `apply()` must write only the remaining parts, even
        if the server has changed since planning.

        :param places: indexes of the skipped parts in the result of `parts`
        """


class Sealing:
    """Computes the digests of a task's plan, and compares them with a sealed plan.

    :param argument: value of :data:`ARGUMENT`: `salt`, and for `enforce` the digests `writes` and
        `ignored`, and `rest` (`fail` or `skip`) for all other changes
    :param place: options class and address of the server, as a part of each digest
    :param secrets: secret values of the options; a plan contains only slow digests of them
    :param private: options that may contain unknown secrets. Digests are then slow, except for new
        objects of a list without these options
    """

    def __init__(
        self,
        argument: Mapping[str, Any],
        place: Sequence[str],
        secrets: Collection[str],
        *,
        private: Collection[str] = (),
    ) -> None:
        self._salt = str(argument["salt"]).encode()
        self._may_write = None if argument.get("writes") is None else frozenset(argument["writes"])
        self._ignored = frozenset(argument.get("ignored") or ())
        self._skips = argument.get("rest") == "skip"
        self._place, self._secrets = list(place), frozenset(secrets)
        self._private = private
        #: The changes of the plan, without those that are skipped.
        self.changes: list[SealedChange] = []
        #: Names of the skipped changes.
        self.skipped: list[str] = []

    def restrict(self, operation: Any, plan: Plan, wanted: Any, *, check_mode: bool) -> Plan:
        """Return the plan without the changes that the sealed plan does not allow.

        Raises `conflict` if a change is not in the sealed plan, unless `rest` is `skip`.

        :param wanted: the options of the module
        """
        descriptor = getattr(operation, "descriptor", None)
        if not plan.changed or (descriptor is not None and not descriptor.is_planned):
            return plan
        parts = _parts(operation, plan, wanted, descriptor)
        digests = [self._digest(part) for part in parts]
        is_part = isinstance(operation, Divisible)
        self.changes = [
            SealedChange(digest, part.kind, part.group or part.name, is_part)
            for part, digest in zip(parts, digests, strict=True)
        ]
        if check_mode or self._may_write is None:
            return plan
        skipped = [n for n, digest in enumerate(digests) if digest not in self._may_write]
        unknown = [n for n in skipped if digests[n] not in self._ignored and not parts[n].follows]
        if unknown and not self._skips:
            raise _conflict([parts[n].name for n in unknown])
        if isinstance(operation, Divisible):
            plan = operation.leave_out(plan, skipped)
            left = set(map(self._digest, operation.parts(plan))) if skipped else set(digests)
            named = zip(parts, digests, strict=True)
            self.skipped = [part.name for part, digest in named if digest not in left]
            self.changes = [change for change in self.changes if change.digest in left]
            return plan
        if not skipped:
            return plan
        self.skipped, self.changes = [parts[0].name], []
        return replace(plan, after=plan.before, action="none", changes=(), make_diff=None)

    def _digest(self, part: PlannedChange) -> str:
        secrets = sorted(
            text
            for text, is_secret in _strings_in(part.wanted)
            if is_secret or text in self._secrets
        )
        value = [self._place, part.name, part.before, part.after, secrets]
        text = json.dumps(value, sort_keys=True, default=str)
        if self._has_unknown(part) or secrets or mask_free_text(hidden.mask(text)) != text:
            return hashlib.pbkdf2_hmac("sha256", text.encode(), self._salt, _ROUNDS, _DIGEST).hex()
        return hmac.new(self._salt, text.encode(), hashlib.sha256).digest()[:_DIGEST].hex()

    def _has_unknown(self, part: PlannedChange) -> bool:
        """Return whether a change may contain secrets that nothing recognises, of its options or of
        the server.
        """
        if not self._private:
            return False
        given, is_new = _options(part.wanted), part.before in (None, "", {})
        return not (given and is_new) or any(given.get(name) for name in self._private)


def _parts(
    operation: Any, plan: Plan, wanted: Any, descriptor: Descriptor | None
) -> Sequence[PlannedChange]:
    if isinstance(operation, Divisible):
        return operation.parts(plan)
    before, after = plan.diff()
    # with the options, because the diffs of different objects or actions may be equal
    name = descriptor.name_of(_options(wanted)) if descriptor else ""
    return [PlannedChange(name, wanted, [plan.action, before], [after, _plain(wanted)])]


def _options(wanted: Any) -> dict[str, Any]:
    names = [one.name for one in fields(wanted)] if is_dataclass(wanted) else []
    return {name: getattr(wanted, name) for name in names}


def _plain(value: Any) -> Any:
    """Return options as a JSON value, with secrets replaced by `None`."""
    if isinstance(value, Secret):
        return None
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _strings_in(value: Any) -> set[tuple[str, bool]]:
    """Return all values as strings, each with whether it is certainly a secret."""
    if isinstance(value, Secret):
        return {(value.reveal(), True)}
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return set().union(*map(_strings_in, value))
    return {(str(value), False)}


def _conflict(names: Sequence[str]) -> ToolchainError:
    named = ", ".join(filter(None, names[:_MAX_NAMED]))
    rest = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    label = single_line(f" of {named}{rest}") if named else ""
    return ToolchainError(
        "conflict",
        f"conflict: the change{label} is not in the sealed plan, so this task wrote nothing. The"
        " server or the desired state has changed since the plan was made: run drift again",
    )
