# SPDX-License-Identifier: GPL-3.0-or-later
"""Return the findings of a task, for a report or a sealed plan [C9]."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ToolchainError
from ..finding import RETURNED, Finding, Reporting, ReportingFailure, sides
from ..free_text import mask_free_text
from ..plan import Action, Plan
from .authorship import Author
from .descriptor import Descriptor
from .masking import mask_values
from .sealing import Sealing


def findings_of(
    operation: Any,
    plan: Plan,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
    secrets: Collection[str],
) -> Iterable[Finding]:
    """Return a finding for each object of a task.

    :param values: the return values
    :param options: raw options of the task
    :param secrets: masked in the result: two values are equal if only their secrets differ
    """
    found: Iterable[Finding] | None = None
    if isinstance(operation, Reporting):
        found = operation.findings(plan, values)
    elif isinstance(operation, ReportingFailure):
        found = operation.findings_of_failure(values)
    if found is not None:
        return found
    descriptor: Descriptor = operation.descriptor
    return [_single(descriptor, values, options, secrets)] if descriptor.kind else []


def of_failure(
    operation: Any, error: ToolchainError, values: Mapping[str, Any], *, with_changes: bool
) -> dict[str, Any]:
    """Return the return value with the findings of a failed task, if it knows its objects.

    :param with_changes: false for a task that would have written, but failed before: the report of
        such a run calls its changes done
    """
    found = error.findings
    if not found and isinstance(operation, ReportingFailure):
        found = operation.findings_of_failure(values)
    found = [one for one in found if with_changes or one.action == "none" or one.error is not None]
    return {RETURNED: rows(found, operation.descriptor.kind)} if found else {}


def _single(
    descriptor: Descriptor,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
    secrets: Collection[str],
) -> Finding:
    before = after = None
    if values["changed"]:
        before, after = (mask_values(side, secrets) for side in sides(values))
    # not that of the plan, which names the write: to create a token changes the list of tokens
    action: Action = "update" if values["changed"] else "none"
    if (before is None) is not (after is None):
        action = "create" if before is None else "delete"
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: side.get(name) for name in names} for side in (before, after))
    return Finding(
        mask_free_text(descriptor.name_of_task(options, values)),
        action=action,
        before=before,
        after=after,
        unknown=_list(values.get("unknown")),
        unsupported=_list(values.get("unsupported")),
    )


def _list(value: Any) -> Sequence[str]:
    return value if isinstance(value, list) else ()


def rows(
    found: Iterable[Finding],
    kind: str,
    sealing: Sealing | None = None,
    authors: Sequence[Author] = (),
) -> list[dict[str, Any]]:
    """Return findings for the result, with the digests of their changes, and their authors.

    A change without a finding, such as one beyond those that a cleanup lists, belongs to the last
    object that differs. A change of the whole task belongs to each of them.

    :param kind: kind of the objects that have none
    """
    pairs = [(one, {"kind": kind, **one.as_dict()}) for one in found]
    differing = [row for one, row in pairs if one.action != "none" and one.error is None]
    if differing:
        owners = {}
        for row in reversed(differing):  # a change without a kind has that of all objects
            owners["", row.get("name")] = owners[row["kind"], row.get("name")] = row
        owned = []
        for change in sealing.changes if sealing else ():
            own = owners.get((change.kind, change.name), differing[-1])
            for row in [own] if change.is_part else differing:
                row.setdefault("digests", []).append(change.digest)
            owned.append(own)
        if len(owned) != len(authors):  # a change of the whole task
            owned = differing
        if len(owned) == len(authors):  # otherwise there are too many objects
            for row, author in zip(owned, authors, strict=True):
                if len(row.get("digests", ())) < 2:  # several changes may have several authors
                    row["changed_by"], row["changed_at"] = author
    return [row for _one, row in pairs]
