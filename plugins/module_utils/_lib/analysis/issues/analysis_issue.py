# SPDX-License-Identifier: GPL-3.0-or-later
"""Change status, owner and comment of issues: `analysis_issue` ([W4.5]: `update_status`).

Server facts [analysis-12]: the ids are sent comma-separated. A comment is an entry of the issue's
history. The owner of an issue without an owner is `unowned`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import ToolchainError, invalid, protocol, rejected, shorten
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Positive
from ...core.plan import Change, Plan, without_none
from ...core.verification import not_saved
from ..client import AnalysisClient, Call
from ..responses import Record
from ..service import SERVICE
from . import issue_details, issue_search
from .issue_details import STATUSES
from .issue_search import IssueSearch, SearchRequest, cut

_BUG = "bug_tracker_id"
_FIELDS = ("status", "owner", _BUG)
_COMMENT = "comment"
#: Member of a search record with the id in the bug tracker.
_BUG_MEMBER = "bugTrackerId"
#: Maximum number of issues per request.
_BATCH = 100
#: Maximum number of concurrent reads, and maximum number of issue ids in a message.
_PARALLEL, _NAMED = 4, 10


@dataclass(frozen=True)
class Issue:
    """Current state of an issue. Fields that the server omits are `None`."""

    id: int
    code: str | None
    status: str | None
    owner: str | None
    #: Only searches show it [analysis-15].
    bug_tracker_id: str | None
    #: Newest comment, or "" without comments. `None` also means that it was not read.
    comment: str | None

    def part(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the fields that are known."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def as_dict(self) -> dict[str, Any]:
        return self.part(("id", "code", *_FIELDS, _COMMENT))


def _issue(number: int, record: Record, comment: str | None) -> Issue:
    code, status, owner, bug = (
        None if record.get(name) is None else str(record[name])
        for name in ("code", "status", "owner", _BUG_MEMBER)
    )
    return Issue(number, code, status, owner, bug or None, comment)


@dataclass(frozen=True)
class AnalysisIssueOptions:
    """The options of `analysis_issue`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [["ids", "query"]],
        "required_one_of": [["ids", "query"], ["status", "comment", "owner", _BUG]],
    }

    project: str
    ids: list[int] | None = None
    query: str | None = None
    status: str | None = None
    comment: str | None = None
    owner: str | None = None
    bug_tracker_id: str | None = None
    max_issues: Positive = 500


class AnalysisIssueOperation:
    """Writes the issues that differ from the options, and verifies them."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"read": reads(), "update": writes(unforeseen=("change_issue_status",))},
        kind="issue",
        name="{project}",
    )

    def __init__(self, task: Task, options: AnalysisIssueOptions) -> None:
        self._task, self._project, self._query = task, options.project, options.query
        self._wanted = without_none({name: getattr(options, name) for name in (*_FIELDS, _COMMENT)})
        if options.status is not None:
            issue_search.build(
                {"status": options.status}
            )  # reject a status that no query can contain
        issue_search.require_quoted_values(options.query or "")
        self._max_issues = options.max_issues
        self._ids = None if options.ids is None else list(dict.fromkeys(options.ids))
        if self._ids is not None and len(self._ids) > self._max_issues:
            raise invalid(
                f"ids has {len(self._ids)} entries, but max_issues is {self._max_issues}: increase"
                " it, or list fewer ids"
            )
        if self._ids == []:
            task.warn("ids is empty, so no issue is changed")
        self._client = AnalysisClient(task, connections=_PARALLEL)

    def plan(self) -> Plan:
        found = self._searched() if self._ids is None else self._read(self._ids)
        differing = {issue: names for issue in found if (names := self._differing(issue))}
        before = {str(issue.id): issue.part(names) for issue, names in differing.items()}
        after = {
            str(issue.id): {name: self._wanted[name] for name in names}
            for issue, names in differing.items()
        }
        expected = [{**issue.as_dict(), **after[str(issue.id)]} for issue in differing]
        changes = tuple(Change(number, before[number], after[number]) for number in after)
        if any("status" in names for names in differing.values()):
            self._check_status({issue.status for issue in found})
        plan = Plan(before, after, "update" if changes else "none", changes)
        return plan.with_result(issues=expected)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: list[Issue] = []
        groups: dict[tuple[str, ...], list[Change]] = {}
        for change in plan.changes:  # issues with equal values share a request
            groups.setdefault(tuple(change.after), []).append(change)
        batches = [
            group[start : start + _BATCH]
            for group in groups.values()
            for start in range(0, len(group), _BATCH)
        ]
        for batch in batches:
            try:
                done += self._write([int(change.field) for change in batch], batch[0].after)
            except ToolchainError as error:
                error.result["issues"] = [issue.as_dict() for issue in done]
                raise
            if len(done) < len(plan.changes):
                self._task.progress(f"{len(done)} of {len(plan.changes)} issues were changed")
        return {"issues": [issue.as_dict() for issue in done]}

    def _check_status(self, seen: set[str | None]) -> None:
        """Warn if the status is not documented and no issue of the project has it.

        :param seen: statuses of the selected issues
        """
        status = self._wanted["status"]
        if any(_same("status", known, status) for known in (*STATUSES, *seen)):
            return
        query = issue_search.build({"status": status})
        request = SearchRequest(self._project, query, limit=1)
        found = IssueSearch(self._task, self._client).read(request).issues
        if any(_same("status", _issue(0, record, None).status, status) for record in found):
            return
        similar = difflib.get_close_matches(status, STATUSES, 1)
        hint = (
            f"did you mean '{similar[0]}'?"
            if similar
            else f"documented statuses: {', '.join(STATUSES)}"
        )
        self._task.warn(
            f"the status '{shorten(status)}' may not exist: it is not documented, and no issue of"
            f" the project '{self._project}' has it ({hint})"
        )

    def _differing(self, issue: Issue) -> list[str]:
        """Return the fields to write.

        A comment is sent together with other fields, or if it differs from the newest comment.
        """
        names = _differing_names(issue, self._wanted, _FIELDS)
        if _COMMENT in self._wanted and (
            names or _differing_names(issue, self._wanted, (_COMMENT,))
        ):
            names.append(_COMMENT)
        return names

    def _write(self, ids: Sequence[int], values: Mapping[str, Any]) -> list[Issue]:
        """Change issues with a single request and verify them.

        Raises `rejected` for fields that the server did not save.
        """
        purpose = f"updating {_names(ids)} of the project '{self._project}'"

        def is_done() -> bool | None:
            """Return whether the issues were changed, or `None` if only some issues or fields were.

            A comment decides only if it is sent alone, because it may have existed before.
            """
            left = [_differing_names(issue, values, tuple(values)) for issue in self._read(ids)]
            if not any(left):
                return True
            decisive = set(values) - {_COMMENT} or {_COMMENT}
            return False if all(decisive <= set(names) for names in left) else None

        call = Call("update_status", {"project": self._project, "ids": ids, **values})
        self._client.ask(purpose, call, is_done)
        found = self._read(ids)
        left = {issue: _differing_names(issue, values, tuple(values)) for issue in found}
        fields = {
            name
            for issue, names in left.items()
            for name in names
            if getattr(issue, name) is not None
        }
        if fields:
            unsaved = _names([issue.id for issue, names in left.items() if fields & set(names)])
            raise not_saved(purpose, [f"{', '.join(sorted(fields))} of {unsaved}"])
        return found

    def _searched(self) -> list[Issue]:
        """Return the issues that match the query.

        Raises `invalid` if more than `max_issues` match or the server groups issues, `rejected` for
        a query with warnings, and `protocol` for an incomplete result.
        """
        request = SearchRequest(self._project, self._query, limit=self._max_issues + 1)
        found = IssueSearch(self._task, self._client).read_ungrouped(request)
        purpose = found.request.purpose
        unknown = [warning for warning in found.warnings if "grouping" not in warning.lower()]
        if unknown:  # the server ignores an unknown keyword, so the query matches too many issues
            warnings = shorten("; ".join(unknown))
            raise rejected(f"{purpose}: warning from the server: {warnings}")
        if len(found.issues) > self._max_issues or (found.total or 0) > self._max_issues:
            number = f"more than {self._max_issues}" if found.total is None else str(found.total)
            raise invalid(f"{purpose}: {number} issues match, but max_issues is {self._max_issues}")
        if found.folded:
            raise invalid(
                f"{purpose}: the server returned a group of issues: list their ids in ids"
            )
        if not found.complete:
            raise protocol(cut(found))
        issues = [_issue(_number(record), record, None) for record in found.issues]
        if _COMMENT not in self._wanted:
            return issues
        same_fields_ids = [
            issue.id for issue in issues if not _differing_names(issue, self._wanted, _FIELDS)
        ]
        read = {issue.id: issue for issue in self._read(same_fields_ids)}
        return [read.get(issue.id, issue) for issue in issues]

    def _read(self, ids: Sequence[int]) -> list[Issue]:
        found = issue_details.read(self._client, self._project, ids, _PARALLEL)
        bugs: dict[int, Any] = {}
        if found and _BUG in self._wanted:  # the details of an issue do not show it
            query = issue_search.build({"id": list(found), "grouping": False})
            request = SearchRequest(self._project, query, limit=len(found) + 1)
            issues = IssueSearch(self._task, self._client).read(request).issues
            bugs = {_number(record): record.get(_BUG_MEMBER) for record in issues}
        return [
            _issue(
                number,
                {**record, _BUG_MEMBER: bugs.get(number)},
                issue_details.newest_comment(record),
            )
            for number, record in found.items()
        ]


def _number(record: Record) -> int:
    text = str(record.get("id"))
    if not text.isdecimal():
        raise protocol("an issue in the response has no id")
    return int(text)


def _differing_names(issue: Issue, wanted: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return those of the fields that differ, or that the server omits."""
    named = (name for name in names if name in wanted)
    return [name for name in named if not _same(name, getattr(issue, name), wanted[name])]


def _same(name: str, current: str | None, wanted: str) -> bool:
    """Return whether two values of a field are equal.

    Statuses are case-insensitive. The server changes white space in comments.
    """
    if current is None:
        return False
    if name == _COMMENT:
        return current.split() == wanted.split()
    return current == wanted or (name == "status" and current.casefold() == wanted.casefold())


def _names(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:_NAMED]))
    if len(ids) == 1:
        return f"the issue {named}"
    return f"{len(ids)} issues ({named}{', ...' if len(ids) > _NAMED else ''})"
