# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors for writes that the server accepted, but did not carry out.

Fields that are not stored are `rejected`. An object that is not there, or is still there, is
`failed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import ToolchainError, listed
from .plan import Change, Plan

#: Words for messages by the action of a plan.
DOING: Mapping[str, str] = {
    "create": "creating",
    "update": "changing",
    "delete": "deleting",
    "run": "running",
}


def without_effect(purpose: str, reason: str, **result: Any) -> ToolchainError:
    """Return the error for a write that had not the effect that the server reported.

    :param purpose: the write, such as `deleting the node 'x'`
    :param reason: what is wrong, such as `the node still exists`
    :param result: return values of the failed task
    """
    message = f"{purpose}: the server accepted the request, but {reason}"
    return ToolchainError("failed", message, result=result)


def not_saved(purpose: str, names: Iterable[str], **result: Any) -> ToolchainError:
    """Return the error for fields that the server did not store."""
    error = without_effect(purpose, f"did not save {listed(names)}", **result)
    error.kind = "rejected"
    return error


def not_taken(title: str, names: Iterable[str]) -> str:
    """Return the warning for a write after which the object is the same as before."""
    return f"{title}: the server did not take {listed(names)}, and is the same as before"


def unsaved(purpose: str, done: Plan, left: Plan) -> ToolchainError:
    """Return the error for a plan that was not carried out completely.

    :param done: the plan of the write
    :param left: the plan for the differences after the write
    """
    lost = {change.field for change in left.changes}
    # what is not left was saved, or is a secret that no read returns
    saved = left.action == "update" and any(change.field not in lost for change in done.changes)
    known = done.before or {}
    changed = saved or any(known.get(k) != value for k, value in (left.before or {}).items())
    if left.action == "create":
        return without_effect(purpose, "the object does not exist", changed=changed)
    if left.action == "delete":
        return without_effect(purpose, "the object still exists", changed=changed)
    return not_saved(purpose, differing(left.changes), changed=changed)


def differing(changes: Iterable[Change]) -> list[str]:
    """Return the names of the fields that differ. Items of a mapping are named `field.key`."""
    names: list[str] = []
    for change in changes:
        if isinstance(change.after, Mapping) and isinstance(change.before, Mapping):
            after, before = change.after, change.before
            keys = [key for key in after if before.get(key) != after[key]]
            names += [f"{change.field}.{key}" for key in keys] or [change.field]
        else:
            names.append(change.field)
    return names
