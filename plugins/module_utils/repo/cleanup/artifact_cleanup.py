# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete old items [C2.4], with a query for each rule and a request for each item."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.paths.globs import hint
from ...core.plan import Plan
from ...core.plans.sealing import PlannedChange
from ...core.progress import ProgressCounter
from .. import aql, repositories
from ..client import RepoClient, item_path
from ..items import listing
from .rules import CleanupRule, RuleOptions, rules_of
from .selection import CleanupItem, CleanupVerdict, folders_above, paths_in, verdicts

#: Fields that identify an item.
_IDENTITY = ("repo", "path", "name")
#: Maximum number of paths in an error message.
_NAMED = 3


@dataclass(frozen=True)
class DeletionOutcome:
    """Result of a deletion.

    :param action: `deleted`, `gone` (another client deleted the item), or `failed`
    """

    verdict: CleanupVerdict
    action: str
    error: ToolchainError | None = None


@dataclass(frozen=True)
class ArtifactCleanupOptions:
    """The options of `artifact_cleanup`."""

    rules: list[RuleOptions]
    max_deletions: int = 100
    parallel: int = 4
    force: bool = False


class ArtifactCleanupOperation:
    """Delete the items that match the rules; an item that several rules match is deleted once."""

    descriptor: ClassVar = Descriptor(
        "repo", {"search": reads("read"), "delete": writes("read", unforeseen=("delete",))}
    )

    def __init__(self, task: Task, options: ArtifactCleanupOptions) -> None:
        for name, number, least in (
            ("max_deletions", options.max_deletions, 0),
            ("parallel", options.parallel, 1),
        ):
            if number < least:
                raise invalid(f"{name} is {number}, but must be at least {least}")
        self._rules = rules_of(options.rules, force=options.force)
        self._max_deletions = options.max_deletions
        self._client = RepoClient(task, connections=options.parallel)
        self._stopped = threading.Event()
        self._empty: list[str] = []
        self._warn, self._show_progress = task.warn, task.progress

    def plan(self) -> Plan:
        if not self._rules:
            self._warn("rules is empty: add a rule")
        found = self._found()
        if self._empty:
            # the query of a missing repository returns no rows, and no error
            repositories.require(self._client, list(dict.fromkeys(self._empty)))
        going, kept = _merge(found)
        if len(going) > self._max_deletions:
            raise self._too_many(going)
        return _plan_of(going, [_shown(verdict) for verdict in kept])

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return a change for each deletion, for a sealed plan."""
        return [PlannedChange(_name(verdict), None, _state(verdict), None) for verdict in plan.data]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the deletions at these positions in `parts()`."""
        going = [verdict for place, verdict in enumerate(plan.data) if place not in places]
        return _plan_of(going, plan.result["kept"])

    def _found(self) -> list[CleanupVerdict]:
        """Send the queries of all rules; return their verdicts."""
        count = ProgressCounter(
            self._show_progress, "searching for items that match the rules", len(self._rules)
        )
        found = []
        for rule in self._rules:
            found += self._select(rule)
            count.add()
        return found

    def _select(self, rule: CleanupRule) -> list[CleanupVerdict]:
        purpose = f"searching for items that match rule {rule.number} in '{rule.repo}'"
        found = aql.ask(self._client, purpose, rule.query())
        if found.trimmed:
            raise ToolchainError(
                "protocol",
                f"{purpose}: the server truncated the result ({found.trimmed}), so nothing was"
                " deleted: use more rules with narrower paths",
                detail=found.trimmed,
            )
        if not all(isinstance(row.get(name), str) for row in found.rows for name in _IDENTITY):
            raise ToolchainError(
                "protocol",
                f"{purpose}: the server does not report {', '.join(_IDENTITY)} of each item, so"
                " nothing was deleted",
            )
        if not found.rows:
            self._empty.append(rule.repo)
        try:
            return self._validate(rule, found)
        except ValueError:
            raise ToolchainError(
                "protocol",
                f"{purpose}: the server does not return its time in the header Date, which"
                " created_before requires",
            ) from None

    def _validate(self, rule: CleanupRule, found: aql.QueryResult) -> list[CleanupVerdict]:
        judged = verdicts(rule, found.rows, found.moment)
        going = {path for verdict in judged if verdict.goes for path in verdict.item.paths}
        if going:
            for warning in rule.check_exclude(paths_in(found.rows), going):
                self._warn(warning)
        elif not judged and rule.path is not None:
            folders = {path.rpartition("/")[0] for path in paths_in(found.rows)}
            note = hint(rule.path, sorted(folders))
            if note:
                self._warn(f"rule {rule.number}: path: {note}")
        return judged

    def _too_many(self, going: Sequence[CleanupVerdict]) -> ToolchainError:
        named = ", ".join(f"'{_name(verdict)}'" for verdict in going[:_NAMED])
        return invalid(
            f"the rules would delete {len(going)} items, more than max_deletions"
            f" ({self._max_deletions}), so nothing was deleted. The first are {named}"
        )

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        count = ProgressCounter(self._show_progress, "deleting items", len(plan.data))

        def delete(verdict: CleanupVerdict) -> DeletionOutcome:
            outcome = self._delete(verdict)
            count.add()
            return outcome

        outcomes = spread(self._client.connections, delete, plan.data)
        result = _result(outcomes)
        failures = [outcome.error for outcome in outcomes if outcome.error is not None]
        if failures:
            raise _failure(failures, len(outcomes), {**plan.result, **result})
        return result

    def _delete(self, verdict: CleanupVerdict) -> DeletionOutcome:
        item = verdict.item
        purpose = f"deleting '{item.repo}/{item.path}'"
        if self._stopped.is_set():
            error = ToolchainError("failed", f"{purpose}: not attempted after another error")
            return DeletionOutcome(verdict, "failed", error)
        try:
            self._client.write(
                purpose,
                "DELETE",
                item_path(item.repo, item.path),
                verify=lambda: listing.is_gone(self._client, item.repo, item.path),
                repeatable=True,
            )
        except ToolchainError as error:
            return self._failed(verdict, error)
        return DeletionOutcome(verdict, "deleted")

    def _failed(self, verdict: CleanupVerdict, error: ToolchainError) -> DeletionOutcome:
        """Return the outcome of a deletion request that failed.

        A 404 is not an error if a read confirms that the item is gone.
        """
        item = verdict.item
        try:
            if error.status == 404 and self._is_gone(item):
                return DeletionOutcome(verdict, "gone")
        except ToolchainError:
            pass  # report the error of the deletion, not that of the read
        if error.status == 404:
            error.with_hint("the item exists, but the account lacks the permission to delete it")
        elif item.folder and error.status == 403:
            # server fact [repo-22]: the server deletes a folder file by file
            error.with_hint("a part of the folder may have been deleted")
        if _affects_all_items(error):
            self._stopped.set()
        return DeletionOutcome(verdict, "failed", error)

    def _is_gone(self, item: CleanupItem) -> bool:
        """Return whether an item does not exist, or the server cannot show whether it exists."""
        return listing.is_gone(self._client, item.repo, item.path) is not False


def _merge(found: Iterable[CleanupVerdict]) -> tuple[list[CleanupVerdict], list[CleanupVerdict]]:
    """Merge the verdicts of all rules; return items to delete and items to keep, sorted by path.

    An item that any rule deletes is deleted. Items in a folder that is deleted are left out.
    """
    going: dict[tuple[str, str], CleanupVerdict] = {}
    staying: dict[tuple[str, str], CleanupVerdict] = {}
    for verdict in found:
        key = (verdict.item.repo, verdict.item.path)
        (going if verdict.goes else staying).setdefault(key, verdict)
    folders = {key for key, verdict in going.items() if verdict.item.folder}

    def outside(verdicts: Mapping[tuple[str, str], CleanupVerdict]) -> Iterator[CleanupVerdict]:
        for (repo, path), verdict in sorted(verdicts.items()):
            if not any((repo, folder) in folders for folder in folders_above(path)):
                yield verdict

    kept = {key: verdict for key, verdict in staying.items() if key not in going}
    return list(outside(going)), list(outside(kept))


def _plan_of(going: Sequence[CleanupVerdict], kept: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan that deletes items.

    :param kept: return value `kept`
    """
    before = {_name(verdict): _state(verdict) for verdict in going}
    outcomes = [DeletionOutcome(verdict, "deleted") for verdict in going]
    result = {**_result(outcomes), "kept": kept}
    return Plan(before, {}, "delete" if before else "none", result=result, data=going)


def _name(verdict: CleanupVerdict) -> str:
    return f"{verdict.item.repo}/{verdict.item.path}"


def _state(verdict: CleanupVerdict) -> dict[str, Any]:
    return {"size": verdict.item.all_bytes, "created": verdict.item.created}


def _affects_all_items(error: ToolchainError) -> bool:
    """Return whether the deletion of any other item would fail with the same error."""
    unreachable = error.kind in ("network", "timeout") and not error.outcome_unknown
    return unreachable or error.kind in ("auth", "rate_limited")


def _result(outcomes: Sequence[DeletionOutcome]) -> dict[str, Any]:
    deleted = [outcome.verdict for outcome in outcomes if outcome.action == "deleted"]
    return {
        "changed": bool(deleted),
        "deleted": [
            {**_shown(verdict), "size": verdict.item.all_bytes, "created": verdict.item.created}
            for verdict in deleted
        ],
        "gone": [_shown(outcome.verdict) for outcome in outcomes if outcome.action == "gone"],
        "failed_deletions": [
            {**_shown(outcome.verdict), "reason": outcome.error.message}
            for outcome in outcomes
            if outcome.error is not None
        ],
        "reclaimed_bytes": sum(verdict.item.all_bytes for verdict in deleted),
    }


def _shown(verdict: CleanupVerdict) -> dict[str, Any]:
    return {"repo": verdict.item.repo, "path": verdict.item.path, "reason": verdict.reason}


def _failure(
    failures: Sequence[ToolchainError], count: int, result: Mapping[str, Any]
) -> ToolchainError:
    first = failures[0]
    if count > 1:
        first.message = f"{len(failures)} of {count} deletions failed, the first: {first.message}"
    first.result.update(result)
    return first
