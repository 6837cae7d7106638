# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_issue`: edit issues, or create an issue that does not exist [C8.8]."""

from __future__ import annotations

import contextlib
import difflib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

from ...core.address import path
from ...core.concurrency import first_alone, spread
from ...core.errors import (
    ToolchainError,
    conflict,
    invalid,
    not_found,
    protocol,
    quoted,
    rejected,
    single_line,
)
from ...core.finding import Finding, of_row
from ...core.http.messages import back_off, expected, json_or_none
from ...core.json_text import member
from ...core.module.authorship import UNKNOWN, Author, author, authors_of, last_of
from ...core.module.descriptor import Descriptor, writes
from ...core.module.diffs import shown_change
from ...core.module.input_check import Place
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive, Segment
from ...core.operations.objects import attempt_each, failure_of
from ...core.plan import Change, Plan
from ...core.progress import PollInterval, PollTimeout
from ...core.verification import not_saved
from ..accounts import require_permissions
from ..client import TrackerClient
from ..issues.documents import is_document
from ..issues.field_values import distinct, is_long_text, same, sent, shown
from ..issues.jql_search import JqlSearchOperation, JqlSearchOptions
from ..issues.text_format import TextFormat
from ..service import SERVICE
from .comments import CommentPart, WatchersPart
from .fields import (
    BY_TEXT,
    PARENT,
    PLAIN,
    FieldComparison,
    FieldsPart,
    WantedField,
    comparison_of,
    creation_screen,
    issue_key,
    predicted,
)
from .issue_options import IssueOptions, require_labels, require_summary
from .links import LinksPart, RemoteLinksPart
from .site import Edit, Part, Site, TrackerIssue, issue_of
from .transitions import CommentedStatusPart, StatusPart
from .uploads import AttachmentsPart, ComparedFiles, UploadFile, files_of

#: Id of the field of each list option, and whether its entries are objects with a name.
_LISTS = {
    "labels": ("labels", False),
    "fix_versions": ("fixVersions", True),
    "components": ("components", True),
    "affects_versions": ("versions", True),
}
#: Checks for fields that may also be set in `fields`.
_CHECKS = {"summary": require_summary, "labels": require_labels}
#: Options whose changes are single entries.
_ENTRIES = ("links", "remote_links", "attachments", "watchers")
#: Key in `memory` for the fields of the server.
_FIELDS = "tracker.fields"
#: Fields that cannot be set directly, and the option to use instead.
_ELSEWHERE = {
    "attachment": "attachments",
    "comment": "comment",
    "issuelinks": "links",
    "project": "project",
    "status": "status",
    "timeestimate": "fields.timetracking.remainingEstimate",
    "timeoriginalestimate": "fields.timetracking.originalEstimate",
}


class WantedParts:
    """The parts in the order of writing: fields, links, attachments, watchers, status, comment."""

    def __init__(self, site: Site, options: IssueOptions, files: list[UploadFile]) -> None:
        self.site, self._options = site, options
        self._names = FieldNames(site.client)
        self._texts = TextFormat(options.text_format == "markdown", site.cloud, site.task.warn)
        self.compared = ComparedFiles(site, options.compare_max)
        found: dict[str, WantedField] = {}
        for one in (*self._own(), *self._named("fields", self._options.fields or {})):
            other = found.setdefault(one.id, one)
            if other is not one:
                raise invalid(
                    f"fields.{one.name} is the same field as {other.name}: set only one of them"
                )
        self.fields = FieldsPart(site, list(found.values()))
        self.others = list(self._others(files))

    @property
    def all(self) -> list[Part]:
        return [self.fields, *self.others]

    @property
    def names(self) -> list[str]:
        """Return the ids of the fields that the parts compare."""
        return list(dict.fromkeys(name for part in self.all for name in part.names))

    def _others(self, files: list[UploadFile]) -> Iterator[Part]:
        options, site = self._options, self.site
        if options.links:
            yield LinksPart(site, [(link.type, link.issue) for link in options.links])
        if options.remote_links:
            yield RemoteLinksPart(site, options.remote_links)
        if files:
            yield AttachmentsPart(site, files, self.compared, replace=options.replace)
        has_comment = options.comment is not None or options.comment_find is not None
        comment = CommentPart(site, options, self._texts) if has_comment else None
        if comment is not None and options.status is None:
            yield comment
        gone = options.remove.watchers if options.remove else None
        if options.watchers or gone:
            yield WatchersPart(site, options.watchers or [], gone or [])
        if options.status is not None:
            extra = list(self._named("transition_fields", options.transition_fields or {}))
            filled = self.fields.filled
            status = StatusPart(site, options.status, options.transition, extra, filled)
            yield status if comment is None else CommentedStatusPart(site, status, comment)

    def _own(self) -> Iterator[WantedField]:
        """Yield the fields of the dedicated options, such as `summary`."""
        options = self._options
        if options.summary is not None:
            yield WantedField("summary", "summary", options.summary.strip())
        if options.description is not None:
            text = self._texts.stored(options.description, "description") or None
            comparison = self._comparison(text)
            yield WantedField("description", "description", text, comparison=comparison)
        if options.priority is not None:
            yield WantedField("priority", "priority", {"name": options.priority.strip()})
        if options.parent is not None:
            yield self._field(PARENT, PARENT, options.parent)
        if options.assignee is not None:
            yield self._assignee(options.assignee.strip())
        for name, (number, named) in _LISTS.items():
            if getattr(options, name, None) is not None:
                yield WantedField(number, name, _listed(options, name, named=named))
            added = _listed(options.add, name, named=named)
            gone = _listed(options.remove, name, named=named)
            if added or gone:
                yield WantedField(number, name, added, adds=True, gone=tuple(gone))

    def _comparison(self, text: Any) -> FieldComparison:
        """Return the comparison for a text: of Markdown by its document, else by its text."""
        return BY_TEXT if is_document(text) and not self._texts.markdown else PLAIN

    def _assignee(self, name: str) -> WantedField:
        """Return the assignee.

        An empty name takes the assignee off. On a server, issues contain the name, so the account
        is only searched for if it differs.
        """
        if not name:
            return WantedField("assignee", "assignee", None)
        accounts = self.site.accounts
        if self.site.cloud:
            found = {accounts.member: accounts.id_of(name, "assignee")}
            return WantedField("assignee", "assignee", found)
        check = partial(accounts.id_of, name, "assignee")
        return WantedField("assignee", "assignee", {"name": name}, check=check)

    def _named(self, option: str, values: Mapping[str, Any]) -> Iterator[WantedField]:
        for name, value in values.items():
            yield self._field(f"{option}.{name}", str(name), value)

    def _field(self, place: str, name: str, value: Any) -> WantedField:
        kind = self._names.find(name, place)
        accounts = self.site.accounts if self.site.cloud else None
        wanted = sent(value, kind.schema, Place(place), accounts, self._texts)
        if kind.id in _CHECKS:
            _CHECKS[kind.id](place, wanted)
        comparison = comparison_of(kind.schema, self.site)
        if is_long_text(kind.schema) and not isinstance(value, Mapping):
            comparison = self._comparison(wanted)
        key = issue_key(wanted) if kind.schema.get("type") == "issuelink" else ""
        check = partial(self.site.named, key) if key else None
        return WantedField(kind.id, name, wanted, check=check, comparison=comparison)


def _listed(source: Any, name: str, *, named: bool) -> list[Any]:
    """Return the entries of a list option in the server's form, without duplicates."""
    entries = getattr(source, name, None) or ()
    return distinct({"name": entry.strip()} if named else entry for entry in entries)


@dataclass(frozen=True)
class FieldKind:
    """A field of the server. `schema` describes the type of its values."""

    id: str
    name: str
    schema: Mapping[str, Any]


class FieldNames:
    """Resolve names of fields. The fields of the server are read once."""

    def __init__(self, client: TrackerClient) -> None:
        self._client = client

    def find(self, name: str, place: str) -> FieldKind:
        """Return the field with an id or a name; the exact name is preferred to another case.

        Raises `invalid` if no field or several fields have the name.

        :param place: the option, for messages
        """
        fields = self._all()
        wanted = name.strip()
        for match in (
            [one for one in fields if one.id == wanted],
            [one for one in fields if one.name == wanted],
            [one for one in fields if one.name.casefold() == wanted.casefold()],
        ):
            if len(match) > 1:
                ids = ", ".join(sorted(kind.id for kind in match))
                raise invalid(
                    f"{place}: several fields are called '{name}': use the id instead ({ids})"
                )
            if match:
                return self._settable(match[0], place)
        if wanted.casefold() == PARENT:  # servers do not list it
            return FieldKind(PARENT, PARENT, {"type": "issuelink"})
        known = sorted({text for one in fields for text in (one.id, one.name)})
        near = difflib.get_close_matches(wanted, known, 1)
        hint = f": did you mean '{near[0]}'?" if near else ""
        raise invalid(f"{place}: the tracker has no field '{name}'{hint}")

    def _settable(self, field: FieldKind, place: str) -> FieldKind:
        if field.id in _ELSEWHERE:
            raise invalid(f"{place}: use the option {_ELSEWHERE[field.id]} instead")
        return field

    def _all(self) -> list[FieldKind]:
        known = self._client.memory.get(_FIELDS)
        if known is None:
            response = self._client.read("reading the fields", "rest/api/2/field")
            known = [
                _kind(record)
                for record in expected(response, list, "a list of fields")
                if isinstance(record, Mapping) and record.get("id") is not None
            ]
            self._client.memory[_FIELDS] = known
        fields: list[FieldKind] = known
        return fields


def _kind(record: Mapping[str, Any]) -> FieldKind:
    schema = record.get("schema")
    name = str(record.get("name") or record["id"])
    return FieldKind(str(record["id"]), name, schema if isinstance(schema, Mapping) else {})


_NEW = "(new)"
#: Server fact [tracker-20]: the search index may be several seconds out of date.
_ATTEMPTS = 5
_LONGEST_LAG = 3600.0
#: Maximum number of seconds between two searches while `search_lag` lasts.
_LONGEST_PAUSE = 5.0
#: Kind of the issues that the run has created, by the query of `match`.
_CREATED = "issue"


@dataclass(frozen=True)
class TrackerIssueOptions(IssueOptions):
    """Options of `tracker_issue`."""

    issue: Segment | None = None
    jql: str | None = None
    max_issues: Positive = 100
    search_lag: Annotated[float, Option(least=0)] = 0
    parallel: Positive = 4

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

    def check(self) -> None:
        super().check()
        if self.search_lag > _LONGEST_LAG:
            raise invalid(
                f"search_lag is {self.search_lag:g}, but must be at most {_LONGEST_LAG:g} seconds"
            )


@dataclass
class PlannedIssue:
    """An issue with its planned edits, and their outcome.

    :param key: None for a new issue
    :param number: id of an existing issue
    :param needs: required permissions
    :param create: creates a new issue and plans its other edits
    :param unsaved: reads the issue again, and returns the changes that the server did not store
    :param done: changes that were written
    """

    key: str | None
    action: str
    changes: tuple[Change, ...] = ()
    edits: Sequence[Edit] = ()
    needs: Sequence[str] = ()
    create: Callable[[PlannedIssue], None] | None = None
    unsaved: Callable[[], list[Change]] = list
    done: list[Change] = field(default_factory=list)
    error: ToolchainError | None = None
    number: str = ""

    @property
    def name(self) -> str:
        return str(self.key)

    def shown(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return the entry in the return value `issues`."""
        action = self.action if changes or self.error is None else "unchanged"
        shown = {"key": self.key, "action": action, "changes": list(map(shown_change, changes))}
        if self.error is None:
            return shown
        error = {**self.error.as_dict(), "msg": single_line(self.error.message)}
        return {**shown, "error": error}


class TrackerIssueOperation:
    """Edit issues. All edits are planned before the first write. Raises `invalid`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
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
            "remote_link": writes("browse", "link"),
            "attach": writes("browse", "attach"),
        },
        kind="issue",
        name="{key}",
        listed="issues",
        lock=("issue", "jql", "match"),
    )

    def __init__(self, task: Task, options: TrackerIssueOptions) -> None:
        self._task, self._options = task, options
        self._files = files_of(options.attachments or [])
        self._client = TrackerClient(task, connections=options.parallel)

    def plan(self) -> Plan:
        options = self._options
        texts = (options.description, options.assignee, options.comment, options.comment_find)
        values = (options.fields, options.transition_fields, options.watchers, options.remove)
        knows_cloud = any(value is not None for value in (*texts, *values))
        site = Site(self._task, self._client, knows_cloud=knows_cloud)
        parts = WantedParts(site, options, self._files)
        issues = self._issues(parts)
        changed = [issue for issue in issues if issue.changes]
        created = any(issue.action == "created" for issue in changed)
        return Plan(
            {issue.key: _side(issue, "before") for issue in changed if issue.key is not None},
            {issue.key or _NEW: _side(issue, "after") for issue in changed},
            ("create" if created else "update") if changed else "none",
            result={"issues": [issue.shown(issue.changes) for issue in issues]},
            data=issues,
        ).with_unknown(*sorted(parts.compared.uncompared))

    def _issues(self, parts: WantedParts) -> list[PlannedIssue]:
        """Plan the edits of all issues. The first error fails the task before any write."""
        options = self._options
        if options.issue is not None:
            return [_edited(parts.site.issue(options.issue, parts.names), parts)]
        if options.match is not None:
            return [self._matched(parts, options.match)]
        found = self._search(parts, str(options.jql), options.max_issues + 1)
        if len(found) > options.max_issues:
            raise invalid(
                f"jql finds more than max_issues ({options.max_issues}) issues: nothing was"
                " changed; narrow the query, or raise max_issues"
            )
        written = set(self._client.written)

        def plan(issue: TrackerIssue) -> PlannedIssue:
            return _of_found(issue, parts, written)

        return list(first_alone(options.parallel, plan, found))

    def _matched(self, parts: WantedParts, match: str) -> PlannedIssue:
        """Plan the edits of the issue that `match` finds, or a new issue.

        The search index may lag, so an issue that this run has created is read by its key, and
        other issues are searched for again until `search_lag` is over.
        """
        found = self._search(parts, match, 2)
        if not found:
            key = self._task.created.get(_CREATED, match)
            if key is not None and (known := self._existing(parts, key)) is not None:
                return _edited(known, parts)
            polling = PollInterval(self._options.search_lag, _LONGEST_PAUSE)
            while not found and polling.left > 0:
                with contextlib.suppress(PollTimeout):
                    polling.pause(f"searching for the issue '{match}'")
                found = self._search(parts, match, 2)
        if len(found) > 1:
            raise several([issue.key for issue in found])
        if not found:
            return self._created(parts)
        return _of_found(found[0], parts, self._client.written)

    def _existing(self, parts: WantedParts, key: str) -> TrackerIssue | None:
        """Return an issue of this run, or None if it has been deleted."""
        try:
            return parts.site.issue(key, parts.names)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return None

    def _search(self, parts: WantedParts, jql: str, most: int) -> list[TrackerIssue]:
        """Return the issues of a search. The search index may be out of date."""
        # Comments are large, and a search does not return all of them.
        fields = [name for name in parts.names if name != "comment"]
        search = JqlSearchOptions(jql, fields=fields, max_results=most)
        result = JqlSearchOperation(self._task, search).search()
        found = [issue for issue in map(issue_of, result.issues) if issue is not None]
        if len(found) < len(result.issues) or (len(found) < most and not result.complete):
            raise protocol(f"the search '{jql}' did not return every match")
        return found

    def _created(self, parts: WantedParts) -> PlannedIssue:
        """Plan a new issue. Edits that need an existing issue are planned after the creation."""

        def matching() -> list[str]:
            return [issue.key for issue in self._search(parts, str(self._options.match), 2)]

        creation = Creation(parts.site, self._options, parts.fields, matching)
        members, changes = creation.plan()

        later = [change for part in parts.others for change in part.expected()]

        def create(planned: PlannedIssue) -> None:
            planned.key = creation.create(members)
            planned.done += changes
            made = _seen(parts.site, planned.key, parts.names)
            if made is None and later:
                raise not_found(
                    f"the new issue '{planned.key}' is not visible to this account, so these parts"
                    f" of it were not written: {quoted(change.field for change in later)}"
                )
            if made is not None:
                # Fields that the server did not store are edited like those of other issues.
                edited = _edited(made, parts)
                planned.edits, planned.unsaved = edited.edits, edited.unsaved

        needs = [name for part in parts.all for name in part.needs]
        return PlannedIssue(None, "created", (*changes, *later), needs=needs, create=create)

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        return [of_row(row, row["key"] or "") for row in values.get("issues", ())]

    def authors(self, plan: Plan) -> list[Author]:
        """Return the author of the newest entry in the history of each issue that differs."""
        return authors_of(self._author, [issue for issue in plan.data if issue.changes])

    def _author(self, issue: PlannedIssue) -> Author:
        if issue.key is None:
            return UNKNOWN
        query = {"expand": "changelog", "fields": "created"}
        purpose = f"reading the history of the issue '{issue.key}'"
        route = f"rest/api/2/issue/{path(issue.key)}"
        shown = self._client.read(purpose, route, query=query).json()
        changes = member(shown, "changelog")
        last = last_of(member(changes, "histories"), "created", member(changes, "total"))
        accounts = [member(last, "author", name) for name in ("name", "displayName", "accountId")]
        return author(accounts, member(last, "created"))

    def preflight(self, plan: Plan) -> None:
        """Check the permissions for the edits of each issue.

        They are checked per issue, because a workflow or role may grant them for some issues only.
        """

        def check(issue: PlannedIssue) -> None:
            project = str(self._options.project)
            purpose = f"creating an issue in the project '{project}'"
            where = {"projectKey": project}
            if issue.key is not None:
                purpose, where = f"changing the issue '{issue.key}'", {"issueKey": issue.key}
            require_permissions(self._client, purpose, issue.needs, **where)

        changed = [issue for issue in plan.data if issue.changes]
        spread(self._options.parallel, check, changed)

    # -- applying ------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        issues: list[PlannedIssue] = plan.data
        todo = [issue for issue in issues if issue.changes]
        attempt_each(self._write, todo, self._options.parallel)
        failure = issues[0].error if len(issues) == 1 else failure_of(issues, "issues")
        if failure is not None:
            failure.result["issues"] = [issue.shown(issue.done) for issue in issues]
            is_changed = any(issue.done for issue in issues) or failure.result.get("changed")
            failure.result["changed"] = bool(is_changed)
            raise failure
        return {"issues": [issue.shown(issue.changes) for issue in issues]}

    def _write(self, issue: PlannedIssue) -> None:
        """Write the edits of an issue in order."""
        if issue.create is not None:
            issue.create(issue)
        self._client.note_written(issue.number)
        for edit in issue.edits:
            edit.write()
            issue.done += edit.changes
        unsaved = issue.unsaved()
        if unsaved:
            issue.done = [change for change in issue.done if change not in unsaved]
            raise not_saved(f"editing the issue '{issue.key}'", dict.fromkeys(map(_named, unsaved)))
        self._task.progress(f"{issue.key}: {issue.action}")


def _of_found(issue: TrackerIssue, parts: WantedParts, written: Collection[int]) -> PlannedIssue:
    """Plan the edits of an issue from a search. If it differs, read it again first.

    :param written: ids of issues that the run has written, which a search may show as they were
    """
    is_current = issue.id not in map(str, written)
    if is_current and not any(part.differs(issue) for part in parts.all):
        return PlannedIssue(issue.key, "unchanged")
    return _edited(parts.site.issue(issue.key, parts.names), parts)


def _edited(issue: TrackerIssue, parts: WantedParts) -> PlannedIssue:
    found = [(part, part.edits(issue)) for part in parts.all]
    edits = [edit for _part, listed in found for edit in listed]
    written = [part for part, listed in found if listed]
    changes = tuple(change for edit in edits for change in edit.changes)
    needs = [name for edit in edits for name in edit.needs]
    unsaved = partial(_unsaved, parts.site, written, issue)
    action = "updated" if edits else "unchanged"
    return PlannedIssue(issue.key, action, changes, edits, needs, unsaved=unsaved, number=issue.id)


def _unsaved(site: Site, written: Sequence[Part], before: TrackerIssue) -> list[Change]:
    """Read an issue again after its edits. Return the changes that the server did not store."""
    names = list(dict.fromkeys(name for part in written for name in part.names))
    now = _seen(site, before.key, names) if names else before
    return (
        [] if now is None else [change for part in written for change in part.unsaved(before, now)]
    )


def _seen(site: Site, key: str, names: Sequence[str]) -> TrackerIssue | None:
    """Read an issue after a write. Warn if the write has hidden it, such as by a security level."""
    try:
        return site.issue(key, names)
    except ToolchainError as error:
        if error.kind != "not_found":
            raise
        site.task.warn(
            f"the issue '{key}' is not visible to this account after the change, so the task could"
            " not check what the server stored"
        )
        return None


def _named(change: Change) -> str:
    """Return the name of a field for a message, with the entry of an option that lists some."""
    entry = change.after or change.before
    entry = entry["url"] if isinstance(entry, Mapping) and "url" in entry else entry
    return f"{change.field} '{entry}'" if change.field in _ENTRIES else change.field


def _side(issue: PlannedIssue, side: str) -> dict[str, Any]:
    """Return the fields of an issue `before` or `after` the changes, for the diff.

    A field with several changes gets a list.
    """
    found: dict[str, Any] = {}
    for change in issue.changes:
        value = getattr(change, side)
        if change.field in found:
            before = found[change.field]
            found[change.field] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[change.field] = value
    return found


class Creation:
    """Create an issue if the query of the option `match` finds none.

    :param matching: runs the query and returns the keys of the issues
    """

    def __init__(
        self,
        site: Site,
        options: IssueOptions,
        fields: FieldsPart,
        matching: Callable[[], list[str]],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._site, self._options, self._fields = site, options, fields
        self._matching, self._sleep = matching, sleep

    @property
    def _client(self) -> TrackerClient:
        return self._site.client

    def plan(self) -> tuple[dict[str, Any], tuple[Change, ...]]:
        """Return the fields of the request, and the values of the new issue.

        Raises `not_found` for a missing project, `invalid` if a required field has no value, and
        `rejected` if the project has no such type, version or component, or a field cannot be set.
        """
        options = self._options
        project = self._project(str(options.project))
        kind = self._one_of(project, "issueTypes", "type", str(options.type))
        for option, name_of_list in (("fix_versions", "versions"), ("components", "components")):
            for source in (options, options.add):
                for name in getattr(source, option, None) or []:
                    self._one_of(project, name_of_list, option, name)
        identity = (Change("project", None, options.project), Change("type", None, options.type))
        types = project.get("issueTypes")
        numbers = [
            str(record["id"])
            for record in (types if isinstance(types, list) else ())
            if member(record, "name") == kind and member(record, "id")
        ]
        site, key = self._site, str(options.project)
        screen = creation_screen(site, key, numbers[0]) if numbers else None
        fields = self._fields if screen is None else self._fields.on(screen)
        members = {
            "project": {"key": options.project},
            "issuetype": {"name": kind},
            **fields.for_creation(None if screen is None else screen.fields),
        }
        return members, (*identity, *fields.expected())

    def _project(self, key: str) -> Mapping[str, Any]:
        purpose = f"reading the project '{key}'"
        response = self._client.read(purpose, f"rest/api/2/project/{path(key)}")
        return expected(response, dict, "a project")

    def _one_of(self, project: Mapping[str, Any], listed: str, option: str, name: str) -> str:
        """Return a name in the project's spelling. Raises `rejected` if the project lacks it.

        Any name is accepted if the server does not send the list `listed` of the project.
        """
        known = project.get(listed)
        if not isinstance(known, list) or (not known and listed == "issueTypes"):
            return name
        found = next((item for item in known if same(item, {"name": name})), None)
        if found is None and predicted(self._site.task, option, str(self._options.project), name):
            return name
        if found is None:
            raise rejected(
                f"{option}: the project '{self._options.project}' has no '{name}'; it has"
                f" {quoted(map(shown, known))}"
            )
        return str(shown(found))

    def create(self, members: Mapping[str, Any]) -> str:
        """Create an issue with these fields and return its key. The request is not repeated."""
        project = str(self._options.project)
        try:
            response = self._client.write(
                f"creating an issue in the project '{project}'",
                "POST",
                f"{self._site.api}/issue",
                json={"fields": members},
                # None if the query does not find the issue, because the index lags
                verify=lambda: True if self._searched() else None,
            )
        except ToolchainError as error:
            raise self._site.explained(error, *self._fields.needs, projectKey=project) from None
        made = json_or_none(response.body)
        key = member(made, "key")
        self._client.note_written(member(made, "id"))
        if not key:
            keys = self._searched()
            if len(keys) != 1:
                raise several(keys)
            self._remember(keys[0])
            return keys[0]
        self._remember(str(key))
        return self._confirmed(str(key))

    def _remember(self, key: str) -> None:
        """Let other tasks of the run know the issue before the search finds it."""
        self._site.task.created.add(_CREATED, str(self._options.match), value=key)

    def _searched(self) -> list[str]:
        """Run the query until it finds an issue, at most `_ATTEMPTS` times. Return the keys."""
        longest = float(self._site.task.connection.settings["retry_max_wait"])
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(back_off(attempt - 1, longest))
            keys = self._matching()
            if keys:
                return keys
        return []

    def _confirmed(self, key: str) -> str:
        """Warn if the query does not find the new issue: the next run would create another one."""
        try:
            found = self._searched()
        except ToolchainError:
            found = []  # the issue exists, whatever the search returns
        if key not in found:
            self._site.task.warn(
                f"match does not find the new issue {key}. Check the query: if it does not find the"
                " issue, the next run creates another one; if the search index lags, set search_lag"
            )
        return key


def several(keys: list[str]) -> ToolchainError:
    """Return the `conflict` error for a query that must find a single issue."""
    return conflict(
        f"match finds several issues ({', '.join(keys)}, ...): narrow the query to a single issue"
    )
