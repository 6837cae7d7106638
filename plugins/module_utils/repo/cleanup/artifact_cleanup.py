# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete old items [C2.4], with a query per rule and a request per item."""

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

#: Fields that identify an item; they are always requested.
_PLACE = ("repo", "path", "name")
#: Number of paths in an error message.
_NAMED = 3


@dataclass(frozen=True)
class DeletionOutcome:
    """Result for an item: `deleted`, `gone` (deleted by someone else) or `failed`."""

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
    """Delete every item that matches a rule once."""

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
        self._most = options.max_deletions
        self._client = RepoClient(task, connections=options.parallel)
        self._stopped = threading.Event()
        self._empty: list[str] = []
        self._warn, self._say = task.warn, task.progress

    def plan(self) -> Plan:
        if not self._rules:
            self._warn("rules is empty: add a rule")
        found = self._found()
        if self._empty:
            # a query does not report a missing repository
            repositories.require(self._client, list(dict.fromkeys(self._empty)))
        going, kept = _together(found)
        if len(going) > self._most:
            raise self._too_many(going)
        return _plan_of(going, [_shown(each) for each in kept])

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return the deletions, for a sealed plan."""
        return [PlannedChange(_place(each), None, _sides(each), None) for each in plan.data]

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without these deletions."""
        going = [each for n, each in enumerate(plan.data) if n not in places]
        return _plan_of(going, plan.result["kept"])

    def _found(self) -> list[CleanupVerdict]:
        """Return the verdicts of all rules."""
        count = ProgressCounter(
            self._say, "searching for items that match the rules", len(self._rules)
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
        if not all(isinstance(row.get(name), str) for row in found.rows for name in _PLACE):
            raise ToolchainError(
                "protocol",
                f"{purpose}: the server does not report {', '.join(_PLACE)} of each item, so"
                " nothing was deleted",
            )
        if not found.rows:
            self._empty.append(rule.repo)
        try:
            return self._validate(rule, found)
        except ValueError:
            raise ToolchainError(
                "protocol",
                f"{purpose}: the server does not report its time (the header Date), on which"
                " created_before is based",
            ) from None

    def _validate(self, rule: CleanupRule, found: aql.QueryResult) -> list[CleanupVerdict]:
        judged = verdicts(rule, found.rows, found.moment)
        going = {path for each in judged if each.goes for path in each.item.paths}
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
        named = ", ".join(f"'{_place(each)}'" for each in going[:_NAMED])
        return invalid(
            f"the rules would delete {len(going)} items, more than max_deletions"
            f" ({self._most}), so nothing was deleted; the first are {named}"
        )

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        count = ProgressCounter(self._say, "deleting items", len(plan.data))

        def delete(verdict: CleanupVerdict) -> DeletionOutcome:
            outcome = self._delete(verdict)
            count.add()
            return outcome

        outcomes = spread(self._client.connections, delete, plan.data)
        result = _result(outcomes)
        failures = [each.error for each in outcomes if each.error is not None]
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
            return self._after(verdict, error)
        return DeletionOutcome(verdict, "deleted")

    def _after(self, verdict: CleanupVerdict, error: ToolchainError) -> DeletionOutcome:
        """Return the outcome of a failed deletion after a verification read."""
        item = verdict.item
        try:
            if error.status == 404 and self._is_gone(item):
                return DeletionOutcome(verdict, "gone")
        except ToolchainError:
            pass  # the first error counts
        if error.status == 404:
            error.with_hint(
                "it exists, but the server hides it from accounts that lack the permission to"
                " delete it"
            )
        elif item.folder and error.status == 403:
            # server fact [repo-22]: a folder is deleted file by file
            error.with_hint("part of the folder may have been deleted")
        if _will_not_get_better(error):
            self._stopped.set()
        return DeletionOutcome(verdict, "failed", error)

    def _is_gone(self, item: CleanupItem) -> bool:
        """Return whether an item does not exist, as far as the server shows it."""
        return listing.is_gone(self._client, item.repo, item.path) is not False


def _together(found: Iterable[CleanupVerdict]) -> tuple[list[CleanupVerdict], list[CleanupVerdict]]:
    """Merge the verdicts of all rules, sorted by repository and path. An item that any rule deletes
    is deleted once; deleting a folder deletes its content.
    """
    going: dict[tuple[str, str], CleanupVerdict] = {}
    staying: dict[tuple[str, str], CleanupVerdict] = {}
    for each in found:
        (going if each.goes else staying).setdefault((each.item.repo, each.item.path), each)
    folders = {key for key, each in going.items() if each.item.folder}

    def alone(verdicts: Mapping[tuple[str, str], CleanupVerdict]) -> Iterator[CleanupVerdict]:
        for (repo, path), each in sorted(verdicts.items()):
            if not any((repo, folder) in folders for folder in folders_above(path)):
                yield each

    kept = [each for each in alone(staying) if (each.item.repo, each.item.path) not in going]
    return list(alone(going)), kept


def _plan_of(going: Sequence[CleanupVerdict], kept: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan of all deletions."""
    before = {_place(each): _sides(each) for each in going}
    outcomes = [DeletionOutcome(verdict, "deleted") for verdict in going]
    result = {**_result(outcomes), "kept": kept}
    return Plan(before, {}, "delete" if before else "none", result=result, data=going)


def _place(verdict: CleanupVerdict) -> str:
    return f"{verdict.item.repo}/{verdict.item.path}"


def _sides(verdict: CleanupVerdict) -> dict[str, Any]:
    return {"size": verdict.item.all_bytes, "created": verdict.item.created}


def _will_not_get_better(error: ToolchainError) -> bool:
    """Return whether an error affects every other item too, so continuing would do harm."""
    unreachable = error.kind in ("network", "timeout") and not error.outcome_unknown
    return unreachable or error.kind in ("auth", "rate_limited")


def _result(outcomes: Sequence[DeletionOutcome]) -> dict[str, Any]:
    deleted = [outcome.verdict for outcome in outcomes if outcome.action == "deleted"]
    return {
        "changed": bool(deleted),
        "deleted": [
            {**_shown(each), "size": each.item.all_bytes, "created": each.item.created}
            for each in deleted
        ],
        "gone": [_shown(outcome.verdict) for outcome in outcomes if outcome.action == "gone"],
        "failed_deletions": [
            {**_shown(outcome.verdict), "reason": outcome.error.message}
            for outcome in outcomes
            if outcome.error is not None
        ],
        "reclaimed_bytes": sum(each.item.all_bytes for each in deleted),
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
