# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit a single issue or many, or create an issue once, for `tracker_issue` [C8.8]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core.concurrency import first_alone, spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.plan import Change, Plan
from .. import permissions
from ..client import TrackerClient
from ..search.jql_search import JqlSearchOperation, JqlSearchOptions
from .creation import Creation, several
from .edits import Edit, as_dict
from .issue_options import IssueOptions
from .site import Site, TrackerIssue, issue_of
from .upload_file import files_of
from .wanted import WantedParts

#: Errors that also affect every other issue.
_OF_ALL = frozenset({"auth", "rate_limited"})
_NEW = "(new)"


@dataclass(frozen=True)
class TrackerIssueOptions(IssueOptions):
    """Options of `tracker_issue`."""

    issue: str | None = None
    jql: str | None = None
    max_issues: int = 100
    parallel: int = 4

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("issue", "jql", "match")],
        "required_one_of": [("issue", "jql", "match")],
        "required_by": {
            "match": ["project", "type", "summary"],
            "project": ["match"],
            "type": ["match"],
            "transition": ["status"],
            "transition_fields": ["status"],
        },
    }

    def require_positive_numbers(self) -> None:
        """Raise `invalid` if a number is too small."""
        for name in ("max_issues", "parallel"):
            number = getattr(self, name)
            if number < 1:
                raise invalid(f"{name} is {number}, but must be at least 1")
        if self.compare_max < 0:
            raise invalid(f"compare_max is {self.compare_max}, but must be at least 0")


@dataclass
class PlannedIssue:
    """An issue, its planned edits and their outcome. A missing issue has the key `None`."""

    key: str | None
    action: str
    changes: tuple[Change, ...] = ()
    edits: Sequence[Edit] = ()
    done: list[Change] = field(default_factory=list)
    error: ToolchainError | None = None

    def shown(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return the entry for the return value."""
        action = self.action if changes or self.error is None else "unchanged"
        return {
            "key": self.key,
            "action": action,
            "changes": [as_dict(change) for change in changes],
        }


class TrackerIssueOperation:
    """Plan the edits of all issues before the first write. Raise `invalid` for invalid options."""

    descriptor: ClassVar = Descriptor(
        "tracker",
        {
            "create": writes("browse", "create"),
            "update": writes("browse", "edit"),
            "assign": writes("browse", "assign"),
            "transition": writes("browse", "transition"),
            "comment": writes("browse", "comment"),
            "comment_edit": writes("browse", "comment"),
            "comment_delete": writes("browse", "comment"),
            "watch": writes("browse", "watch"),
            "link": writes("browse", "link"),
            "attach": writes("browse", "attach"),
        },
        kind="issue",
        name="{key}",
        listed="issues",
    )

    def __init__(self, task: Task, options: TrackerIssueOptions) -> None:
        options.require_positive_numbers()
        options.require_sense()
        self._task, self._options = task, options
        self._files = files_of(options.attachments or [])
        self._client = TrackerClient(task, connections=options.parallel)
        self._planned: list[PlannedIssue] = []
        self._creation: Creation | None = None

    def plan(self) -> Plan:
        options = self._options
        texts = (options.description, options.assignee, options.comment, options.comment_find)
        values = (options.fields, options.transition_fields, options.watchers, options.remove)
        knows_cloud = any(value is not None for value in (*texts, *values))
        self._site = Site(self._task, self._client, knows_cloud=knows_cloud)
        self._wanted = WantedParts(self._site, options, self._files)
        self._planned = self._all_planned()
        changed = [issue for issue in self._planned if issue.changes]
        created = any(issue.action == "created" for issue in changed)
        return Plan(
            {issue.key: _side(issue, "before") for issue in changed if issue.key is not None},
            {issue.key or _NEW: _side(issue, "after") for issue in changed},
            ("create" if created else "update") if changed else "none",
            result={
                "issues": [issue.shown(issue.changes) for issue in self._planned],
                "uncompared": sorted(self._wanted.compared.uncompared),
            },
        )

    def _all_planned(self) -> list[PlannedIssue]:
        """Plan the edits of all issues. The first error ends the task before any write."""
        options = self._options
        if options.issue is not None:
            return [self._of_issue(self._site.issue(options.issue, self._wanted.names))]
        if options.match is not None:
            found = self._search(options.match, 2)
            if len(found) > 1:
                raise several([issue.key for issue in found])
            return [self._of_found(found[0])] if found else [self._of_creation()]
        found = self._search(str(options.jql), options.max_issues + 1)
        if len(found) > options.max_issues:
            raise invalid(
                f"jql finds more than max_issues ({options.max_issues}) issues: nothing was"
                " changed; narrow the query, or raise max_issues"
            )
        return list(first_alone(options.parallel, self._of_found, found))

    def _search(self, jql: str, most: int) -> list[TrackerIssue]:
        """Return the issues of a search. The search index may be out of date."""
        asked = JqlSearchOptions(jql, fields=self._searched, max_results=most)
        result = JqlSearchOperation(self._task, asked).search()
        found = [issue for issue in map(issue_of, result.issues) if issue is not None]
        if len(found) < len(result.issues) or (len(found) < most and not result.complete):
            raise ToolchainError("protocol", f"the search '{jql}' did not show every match")
        return found

    @property
    def _searched(self) -> list[str]:
        """Return the fields to search for. Comments are left out: they are large, and a search
        truncates them.
        """
        return [name for name in self._wanted.names if name != "comment"]

    def _of_found(self, issue: TrackerIssue) -> PlannedIssue:
        """Plan the edits of an issue from a search. Read the issue again if it differs."""
        if not any(part.differs(issue) for part in self._wanted.all):
            return PlannedIssue(issue.key, "unchanged")
        return self._of_issue(self._site.issue(issue.key, self._wanted.names))

    def _of_issue(self, issue: TrackerIssue) -> PlannedIssue:
        edits = [edit for part in self._wanted.all for edit in part.edits(issue)]
        changes = tuple(change for edit in edits for change in edit.changes)
        return PlannedIssue(issue.key, "updated" if edits else "unchanged", changes, edits)

    def _of_creation(self) -> PlannedIssue:
        self._creation = Creation(self._site, self._options, self._wanted.fields, self._matching)
        changes = [*self._creation.plan()]
        for part in self._wanted.others:
            changes += part.expected()
        return PlannedIssue(None, "created", tuple(changes))

    def _matching(self) -> list[str]:
        return [issue.key for issue in self._search(str(self._options.match), 2)]

    def preflight(self, plan: Plan) -> None:
        """Check the permissions for the planned edits of every issue.

        A workflow or a role may grant a permission for some issues of a project only.
        """
        changed = [issue for issue in self._planned if issue.changes]
        spread(self._options.parallel, self._require_permissions, changed)

    def _require_permissions(self, one: PlannedIssue) -> None:
        if one.key is None:
            what = f"creating an issue in the project '{self._options.project}'"
            needs = [name for part in self._wanted.all for name in part.needs]
            permissions.require(self._client, what, needs, projectKey=str(self._options.project))
        else:
            needs = [name for edit in one.edits for name in edit.needs]
            what = f"changing the issue '{one.key}'"
            permissions.require(self._client, what, needs, issueKey=one.key)

    # -- doing ---------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        todo = [issue for issue in self._planned if issue.changes]
        stopped: list[ToolchainError] = []

        def attempt(one: PlannedIssue) -> None:
            try:
                if stopped:
                    raise ToolchainError(
                        stopped[0].kind, f"{one.key} was not attempted after this error"
                    )
                self._write(one)
            except ToolchainError as error:
                one.error = error
                if error.kind in _OF_ALL:
                    stopped.append(error)

        spread(self._options.parallel, attempt, todo)
        failure = self._failure(todo)
        if failure is not None:
            raise failure
        return {"issues": [issue.shown(issue.changes) for issue in self._planned]}

    def _write(self, one: PlannedIssue) -> None:
        """Write the edits of an issue in order."""
        if one.key is None:
            self._create(one)
        for edit in one.edits:
            edit.write()
            one.done += edit.changes
        self._task.progress(f"{one.key}: {one.action}")

    def _create(self, one: PlannedIssue) -> None:
        """Create an issue, and plan the edits that need an existing issue."""
        creation = self._creation
        if creation is None:
            raise AssertionError("an issue without a key is to be created")
        one.key = creation.create()
        later = [change for part in self._wanted.others for change in part.expected()]
        one.done += [change for change in one.changes if change not in later]
        others = self._wanted.others
        if others:
            names = [name for part in others for name in part.names]
            issue = self._site.issue(one.key, names)
            one.edits = [edit for part in others for edit in part.edits(issue)]

    def _failure(self, todo: Sequence[PlannedIssue]) -> ToolchainError | None:
        """Return a single error for all failed issues. Its result contains the finished edits."""
        failed = [issue for issue in todo if issue.error is not None]
        errors = [issue.error for issue in failed if issue.error is not None]
        if not errors:
            return None
        first = errors[0]
        if len(self._planned) > 1:
            error_message = "; ".join(dict.fromkeys(error.message for error in errors))
            message = shorten(
                f"{len(failed)} of {len(self._planned)} issues failed: {error_message}"
            )
            first = _with_message(first, message)
        shown = [
            issue.shown(issue.done if issue in todo else issue.changes) for issue in self._planned
        ]
        for one, entry in zip(self._planned, shown, strict=True):
            if one.error is not None:
                entry["error"] = one.error.as_dict()
        changed = any(issue.done for issue in todo) or bool(first.result.get("changed"))
        first.result.update(issues=shown, changed=changed)
        return first


def _with_message(error: ToolchainError, message: str) -> ToolchainError:
    return ToolchainError(
        error.kind,
        message,
        status=error.status,
        method=error.method,
        url=error.url,
        detail=error.detail,
        result=error.result,
    )


def _side(one: PlannedIssue, side: str) -> dict[str, Any]:
    """Return the state of an issue before or after the changes, for the diff.

    A field with several changes gets a list.
    """
    found: dict[str, Any] = {}
    for change in one.changes:
        value = getattr(change, side)
        if change.field in found:
            before = found[change.field]
            found[change.field] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[change.field] = value
    return found
