# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: what a task has found about each of its objects [C9].

A module returns them only if the action asks for them, for a report or a sealed plan. The callback
makes the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, runtime_checkable

from . import json_text
from .plan import Action, Plan

#: Name of the return value with the findings.
RETURNED = "findings"

#: What `action` in return values that list objects means. All other words mean an update.
_ACTIONS: Mapping[str, Action] = {
    **dict.fromkeys(("unchanged", "absent"), "none"),
    **dict.fromkeys(("create", "created", "uploaded"), "create"),
    **dict.fromkeys(("exploded", "checksum_deployed", "copied"), "create"),
    **dict.fromkeys(("delete", "deleted"), "delete"),
}


class Finding(NamedTuple):
    """What a task has found about an object.

    :param name: name of the object; the callback names one without a name after the task
    :param kind: kind of the object; by default that of the descriptor
    :param action: what the task would do, or has done
    :param before: state before the change; of a mapping the fields that differ
    :param after: state after the change, with the same fields
    :param text: describes an update whose fields do not, or the reason of a deletion
    :param unknown: fields that cannot be compared
    :param unsupported: sentences about what the server cannot hold
    :param error: error of the object, with its message as `msg`
    :param unmanaged: text for an object that the options do not describe
    """

    name: str = ""
    kind: str = ""
    action: Action = "none"
    before: Any = None
    after: Any = None
    text: str = ""
    unknown: Sequence[str] = ()
    unsupported: Sequence[str] = ()
    error: Mapping[str, Any] | None = None
    unmanaged: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for the result, without default values."""
        return {
            name: value
            for name, value in self._asdict().items()
            if value is not None and value not in ("", ()) and (name, value) != ("action", "none")
        }


@runtime_checkable
class Reporting(Protocol):
    """An operation with several objects, or with objects that its descriptor does not describe."""

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> Iterable[Finding] | None:
        """Return a finding for each object, also for unchanged objects.

        `None` means a single object, which the descriptor describes.

        :param values: the return values of the task
        """


@runtime_checkable
class ReportingFailure(Protocol):
    """An operation that reports its objects from the return values, also if some of them failed."""

    def findings_of_failure(self, values: Mapping[str, Any]) -> Sequence[Finding]:
        """Return a finding for each object that the return values contain.

        Also called for a task that did not fail, unless the operation is :class:`Reporting`.
        Without a finding, a failed task has failed as a whole.
        """


def of_row(row: Mapping[str, Any], name: str, kind: str = "") -> Finding:
    """Return the finding of an entry in a return value that lists objects with their `action`.

    :param row: may have `changes`, or `before` and `after`, and `unknown`, `unsupported`, `error`
    """
    before, after, changes, error = map(row.get, ("before", "after", "changes", "error"))
    if changes is not None:
        before = {change["field"]: change.get("before") for change in changes}
        after = {change["field"]: change.get("after") for change in changes}
    action = _ACTIONS.get(row["action"], "update")
    if error is None and action in ("none", "create"):
        before = None
    if error is None and action in ("none", "delete"):
        after = None
    return Finding(
        name,
        kind,
        action,
        before=before,
        after=after,
        text="" if changes is not None or action != "update" else f"differs ({row['action']})",
        unknown=row.get("unknown", ()),
        unsupported=row.get("unsupported", ()),
        error=error,
    )


def sides(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return `before` and `after` of a diff, with `None` for empty values."""
    diff = values.get("diff")
    if not isinstance(diff, Mapping):
        return None, None
    return _side(diff.get("before")), _side(diff.get("after"))


def _side(shown: Any) -> Any:
    """Return `before` or `after` of a diff. A JSON string is parsed."""
    if isinstance(shown, str) and shown.startswith("{"):
        with suppress(ValueError):
            shown = json_text.loads(shown)
    return shown or None
