# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete old items [C2.4], with a query for each rule and a request for each item."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from ...core.errors import ToolchainError, invalid, protocol, rejected
from ...core.finding import Finding
from ...core.globs import hint
from ...core.json_text import member
from ...core.module.authorship import Author, author, authors_of
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.sealing import PlannedChange
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Positive
from ...core.operations.objects import attempt_each, failure_of, stopping_errors
from ...core.plan import Plan
from ...core.progress import ProgressCounter
from .. import aql, repositories
from ..client import RepoClient, item_path
from ..items import layouts, listing
from ..items.layouts import index_test
from ..service import SERVICE
from .image_parts import ImageParts, ImageReader, complete_rows, rows_at
from .rules import (
    ROOT,
    CleanupItem,
    CleanupRule,
    CleanupVerdict,
    ItemVersion,
    RuleOptions,
    folders_above,
    items_in,
    matches,
    needed_by_newer,
    paths_in,
    rules_of,
    versions_of,
)

#: Maximum number of paths in an error message.
_NAMED = 3
#: Maximum number of deleted items that a report names.
_MAX_FINDINGS = 1000


@dataclass
class Deletion:
    """A deletion and its outcome.

    :param is_gone: whether another client deleted the item
    """

    verdict: CleanupVerdict
    is_gone: bool = False
    error: ToolchainError | None = None

    @property
    def name(self) -> str:
        return self.verdict.name


@dataclass
class RuleSearch:
    """The search of a rule: its verdicts, `None` if there are no items, or its error."""

    rule: CleanupRule
    verdicts: list[CleanupVerdict] | None = None
    error: ToolchainError | None = None

    @property
    def name(self) -> str:
        return f"rule {self.rule.number}"


@dataclass(frozen=True)
class ArtifactCleanupOptions:
    """The options of `artifact_cleanup`."""

    rules: list[RuleOptions]
    max_deletions: NotNegative = 100
    parallel: Positive = 4
    force: bool = False


class ArtifactCleanupOperation:
    """Delete the items that match the rules; an item that several rules match is deleted once."""

    descriptor: ClassVar = Descriptor(
        SERVICE, {"search": reads("read"), "delete": writes("read", unforeseen=("delete",))}
    )

    def __init__(self, task: Task, options: ArtifactCleanupOptions) -> None:
        self._rules = rules_of(options.rules, force=options.force)
        self._max_deletions = options.max_deletions
        self._client = RepoClient(task, connections=options.parallel)
        self._warn, self._show_progress = task.warn, task.progress
        self._parts = ImageParts()
        #: Matching files that stay unless their file is deleted, and local repositories.
        self._left: dict[str, None] = {}
        self._known_repos: set[str] = set()
        self._reader = ImageReader(self._client, self._parts, task.progress)

    def plan(self) -> Plan:
        if not self._rules:
            self._warn("rules is empty: add a rule")
        searches = self._searches()
        selected, kept = _merge([found for each in searches for found in each.verdicts or ()])
        going, kept = _merge([*self._parts.complete(selected), *kept])
        for rule in self._rules:
            parts = [each.item for each in going if each.after and each.rule is rule]
            rule.refuse_crossing({path for item in parts for path in item.paths})
        orphans = sorted(f"{item.repo}/{item.path}" for item in self._parts.orphans)
        if orphans:
            named = ", ".join(f"'{name}'" for name in orphans[:_NAMED])
            more = f" and {len(orphans) - _NAMED} more" if len(orphans) > _NAMED else ""
            self._warn(f"{named}{more} stay, because the image to which they belong does not exist")
        left = sorted(self._left.keys() - {verdict.name for verdict in going})
        if left:
            stay = f"{len(left)} files stay" if left[1:] else "1 file stays"
            more = f" and {len(left) - 1} more" if left[1:] else ""
            self._warn(
                f"{stay}, because the server computes them or they belong to a"
                f" file that no rule matches: '{left[0]}'{more}. To delete such a file, set name to"
                " its exact name"
            )
        plan = _plan_of(going, [_shown(verdict) for verdict in kept])
        failure = failure_of(searches, "rules")
        if failure is not None:
            failure.findings = self.findings(plan, plan.result)
            raise failure
        counted = {each.version_key: each for each in going if not each.after}
        if len(counted) > self._max_deletions:
            named = ", ".join(f"'{verdict.name}'" for verdict in list(counted.values())[:_NAMED])
            failure = invalid(
                f"the rules would delete {len(counted)} items, more than max_deletions"
                f" ({self._max_deletions}), so nothing was deleted. The first are {named}"
            )
            failure.findings = self.findings(plan, plan.result)
            raise failure
        return plan

    def parts(self, plan: Plan) -> list[PlannedChange]:
        """Return a change for each deletion, for a sealed plan."""
        return [PlannedChange(verdict.name, None, _state(verdict), None) for verdict in plan.data]

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return a finding for each item.

        If there are more than a thousand deletions, the last finding has the number of the others.
        """

        deleted = values["deleted"]
        found = []
        for row in deleted[:_MAX_FINDINGS]:
            before = {key: row.get(key) for key in ("size", "created")}
            found.append(Finding(_name_of(row), "item", "delete", before, text=row["reason"]))
        more = len(deleted) - _MAX_FINDINGS
        if more > 0:
            found.append(Finding(f"{more} more", "item", "delete", {"count": more}))
        return [*found, *(Finding(_name_of(row), "item") for row in values["kept"])]

    def authors(self, plan: Plan) -> list[Author]:
        """Return who modified the items last."""

        def read(verdict: CleanupVerdict) -> Author:
            route = f"api/storage/{item_path(verdict.item.repo, verdict.item.path)}"
            shown = self._client.transport.read(f"reading '{verdict.name}'", route).json()
            return author([member(shown, "modifiedBy")], member(shown, "lastModified"))

        return authors_of(read, plan.data)

    def leave_out(self, plan: Plan, places: Collection[int]) -> Plan:
        """Return the plan without the deletions at these positions in `parts()`."""
        # a version stays as a whole
        staying = {plan.data[place].version_key for place in places}
        going = [verdict for verdict in plan.data if verdict.version_key not in staying]
        left: set[str] = set()
        while len(left) != len(going):
            # what belongs to an item that is left out stays, too
            left = {verdict.name for verdict in going}
            going = [verdict for verdict in going if left.issuperset(verdict.after)]
        return _plan_of(going, plan.result["kept"])

    def _searches(self) -> list[RuleSearch]:
        """Send the queries of all rules. The error of a rule does not hide the others."""
        count = ProgressCounter(
            self._show_progress, "searching for items that match the rules", len(self._rules)
        )

        def search(each: RuleSearch) -> None:
            count.add()
            each.verdicts = self._verdicts(each.rule)

        searches = [RuleSearch(rule) for rule in self._rules]
        attempt_each(search, searches)
        empty = [each for each in searches if each.verdicts is None and each.error is None]
        if empty and not stopping_errors(searches):
            # the query of a missing or virtual repository returns no rows of it, and no error
            keys = dict.fromkeys(each.rule.repo for each in empty)
            errors = repositories.errors_of_stores(self._client, list(keys))
            for each in empty:
                error = errors.get(each.rule.repo)
                each.error = error and error.with_message(f"{each.name}: repo: {error.message}")
        return searches

    def _verdicts(self, rule: CleanupRule) -> list[CleanupVerdict] | None:
        """Send the query of a rule; return its verdicts, or `None` if there are no items."""
        if rule.without_properties and not self._client.dialect.query_by_property:
            raise rejected(
                f"rule {rule.number}: without_properties: queries of this server do not support"
                " properties, so it cannot protect items (check the option dialect)"
            )
        purpose = f"searching for items that match rule {rule.number} in '{rule.repo}'"
        found = complete_rows(self._client, purpose, rule.query())
        rows = [row for row in found.rows if row["repo"] == rule.repo]
        if not rows:
            return None
        self._reader.check_type(rule, rows)
        known = items_of(rule, rows, self._parts)
        matching, complete = self._matching(rule, known), set[str]()
        while True:
            selected = self._parts.selectable(matching)
            versions = versions_of(rule, known, selected)
            try:
                judged = verdicts(rule, versions, found.moment, self._parts)
            except ValueError:
                raise protocol(
                    f"{purpose}: the server does not return its time in the header Date, which"
                    " created_before requires"
                ) from None
            # further files may belong to the versions, and manifests to the images
            if not (
                self._complete(rule, known, judged, complete) or self._reader.read(rule, judged)
            ):
                break
        # signatures and checksums whose file no version contains
        contained = {item.path for version in versions for item in version.items}
        self._note_left([item for item in selected if item.path not in contained])
        judged = _keep_for_newer(rule, known, judged)
        # globs that match nothing, as `path` and `exclude` with a typo do
        going = {path for verdict in judged if verdict.goes for path in verdict.item.paths}
        if going:
            for warning in rule.check_exclude(going, {*paths_in(rows), *known}):
                self._warn(warning)
        elif not judged and rule.path is not None:
            note = hint(rule.path, sorted({path.rpartition("/")[0] for path in paths_in(rows)}))
            if note:
                self._warn(f"rule {rule.number}: path: {note}")
        return judged

    def _matching(self, rule: CleanupRule, known: Mapping[str, CleanupItem]) -> list[CleanupItem]:
        """Return the items that match a rule, without files that the server computes."""
        found: list[CleanupItem] = []
        computed: list[CleanupItem] = []
        is_index = index_test(self._client, rule.repo)
        for item in known.values():
            if matches_rule(rule, item):
                is_named = item.folder or item.name == rule.name
                (found if is_named or not is_index(item.path) else computed).append(item)
        self._note_left(computed)
        return found if rule.released_in is None else self._released(rule, found, known)

    def _note_left(self, items: Iterable[CleanupItem]) -> None:
        self._left.update((f"{item.repo}/{item.path}", None) for item in items)

    def _released(
        self, rule: CleanupRule, items: Iterable[CleanupItem], known: Mapping[str, CleanupItem]
    ) -> list[CleanupItem]:
        """Return the items that are snapshots of a release in the repository `released_in`."""
        repo = str(rule.released_in)
        if repo not in self._known_repos:
            for error in repositories.errors_of_stores(self._client, [repo]).values():
                raise error.with_message(f"rule {rule.number}: released_in: {error.message}")
            self._known_repos.add(repo)
        releases = {item.path: _release(item, known) for item in items}
        folders = {release.rpartition("/")[0] for release in releases.values() if release}
        purpose = f"searching for the releases of the snapshots of rule {rule.number} in '{repo}'"
        rows = rows_at(self._client, purpose, repo, folders)
        released = {layouts.release_of_file(aql.path_in(row)) for row in rows} - {None}
        return [item for item in items if releases[item.path] in released]

    def _complete(
        self,
        rule: CleanupRule,
        known: dict[str, CleanupItem],
        judged: Iterable[CleanupVerdict],
        complete: set[str],
    ) -> bool:
        """Add all files next to those that a rule deletes; return whether anything was read.

        The query may have left out files of the same version, or the file of a signature.

        :param complete: folders of which all files are known, to which the others are added
        """
        folders = {verdict.item.parent for verdict in judged if verdict.goes} - complete
        if not rule.selects_in_folders or not folders:
            return False
        complete |= folders
        purpose = f"searching for files of the same versions in '{rule.repo}'"
        rows = rows_at(self._client, purpose, rule.repo, folders, rule.fields)
        for path, item in items_in(rule.repo, rows).items():
            known.setdefault(path, item)
        return True

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        count = ProgressCounter(self._show_progress, "deleting items", len(plan.data))
        deletions = {verdict.name: Deletion(verdict) for verdict in plan.data}

        def delete(deletion: Deletion) -> None:
            count.add()
            left = [name for name in deletion.verdict.after if deletions[name].error is not None]
            if left:
                message = f"deleting '{deletion.name}': not attempted because '{left[0]}'"
                raise ToolchainError("failed", f"{message} was not deleted")
            self._delete(deletion)

        pending = dict(deletions)
        while pending:
            # an index goes before what it lists, so that no index is broken if an error occurs
            left = pending.keys()
            ready = {n: each for n, each in pending.items() if left.isdisjoint(each.verdict.after)}
            attempt_each(delete, list(ready.values()), self._client.connections)
            pending = {name: each for name, each in pending.items() if name not in ready}
        done = list(deletions.values())
        result = _result(done)
        values = {**plan.result, **result}
        failure = failure_of(done, "deletions", values)
        if failure is not None:
            failed = [
                Finding(each.name, "item", error={"msg": each.error.message})
                for each in done
                if each.error is not None
            ]
            failure.findings = [*failed, *self.findings(plan, values)]
            raise failure
        return result

    def _delete(self, deletion: Deletion) -> None:
        """Delete an item. A 404 is not an error if a read confirms that the item is gone."""
        item = deletion.verdict.item
        try:
            listing.delete(self._client, item.repo, item.path)
        except ToolchainError as error:
            if error.status == 404:
                # if that cannot be read, report the error of the deletion, not that of the read
                with suppress(ToolchainError):
                    is_gone = listing.is_gone(self._client, item.repo, item.path)
                    deletion.is_gone = is_gone is not False
                if deletion.is_gone:
                    return
                error.with_hint(
                    "the item exists, but the account lacks the permission to delete it"
                )
            elif item.folder and error.status == 403:
                # server fact [repo-22]: the server deletes a folder file by file
                error.with_hint("a part of the folder may have been deleted")
            raise


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
    before = {verdict.name: _state(verdict) for verdict in going}
    result = {**_result([Deletion(verdict) for verdict in going]), "kept": kept}
    return Plan(before, {}, "delete" if before else "none", result=result, data=going)


def _state(verdict: CleanupVerdict) -> dict[str, Any]:
    return {"size": verdict.item.all_bytes, "created": verdict.item.created}


def _result(deletions: Sequence[Deletion]) -> dict[str, Any]:
    deleted = [each.verdict for each in deletions if not each.is_gone and each.error is None]
    return {
        "changed": bool(deleted),
        "deleted": [{**_shown(verdict), **_state(verdict)} for verdict in deleted],
        "gone": [_shown(each.verdict) for each in deletions if each.is_gone],
        "failed_deletions": [
            {**_shown(each.verdict), "reason": each.error.message}
            for each in deletions
            if each.error is not None
        ],
        "reclaimed_bytes": sum(verdict.item.all_bytes for verdict in deleted),
    }


def _name_of(row: Mapping[str, Any]) -> str:
    return f"{row['repo']}/{row['path']}"


def _shown(verdict: CleanupVerdict) -> dict[str, Any]:
    return {"repo": verdict.item.repo, "path": verdict.item.path, "reason": verdict.reason}


def items_of(
    rule: CleanupRule, rows: Iterable[Mapping[str, Any]], parts: ImageParts
) -> dict[str, CleanupItem]:
    """Return the items in the rows by path, with their content, without the root.

    :param parts: receives the manifests in the rows
    """
    known = items_in(rule.repo, rows)
    if not rule.takes_folders:
        return known
    files = [item for item in known.values() if not item.folder]
    manifests = {each.item.path: each for each in parts.learn(files, rule.covers)}
    for item in known.values():
        for path in (item.path, *folders_above(item.path)):
            if item.folder and path in manifests:
                manifests[path].item.folders.append(item)
            if path != item.path and path in known:
                (known[path].folders if item.folder else known[path].files).append(item)
    if rule.kind == "image":
        return {path: each.item for path, each in manifests.items() if each.has_tag}
    return known


def verdicts(
    rule: CleanupRule, versions: Sequence[ItemVersion], now: datetime | None, parts: ImageParts
) -> list[CleanupVerdict]:
    """Return a verdict on each item of the versions that are old enough.

    :param now: current time by the server's clock; `None` if unknown
    :raises ValueError: if the rule needs the current time and it is unknown
    """
    if now is None and rule.age is not None and (rule.evaluates_ages or rule.takes_folders):
        raise ValueError("no clock")
    selected = [item for version in versions for item in version.matched]
    kept: Mapping[str, CleanupItem] = {}
    while True:
        found = _judged(rule, versions, now, parts, kept)
        going = {verdict.item.path for verdict in found if verdict.goes}
        # a kept index keeps what it lists, which then does not count: more other items are kept
        more = parts.keepers(rule, selected, going)
        if more.keys() == kept.keys():
            return found
        kept = more


def _judged(
    rule: CleanupRule,
    versions: Sequence[ItemVersion],
    now: datetime | None,
    parts: ImageParts,
    listed: Mapping[str, CleanupItem],
) -> list[CleanupVerdict]:
    """Return the verdicts on the items of versions that are old enough.

    :param listed: indexes that are kept, by the paths of the items that they list
    """
    protected = {version.name: why for version in versions if (why := _protection(rule, version))}
    counted = [
        version
        for version in versions
        if version.name not in protected
        and listed.keys().isdisjoint(item.path for item in version.items)
    ]
    newest: set[str] = set()  # the names of the newest versions of each folder or image
    if rule.keep_last is not None:
        groups: dict[str, list[ItemVersion]] = {}
        ranks = [(version.rank(max(map(parts.rank, version.main))), version) for version in counted]
        for _rank, version in sorted(ranks, key=lambda pair: pair[0], reverse=True):
            groups.setdefault(version.folder, []).append(version)
        for group in groups.values():
            newest.update(version.name for version in group[: rule.keep_last])
    found = []
    for version in versions:
        old = [item for item in version.matched if not _is_young(rule, item, now)]
        kept = protected.get(version.name) or _reason_to_keep(rule, version, now)
        index = next((listed[item.path] for item in version.items if item.path in listed), None)
        if kept is None and index is not None:
            kept = f"part of '{index.path}', which is kept"
        if kept is None and version.name in newest:
            kept = f"among the newest {rule.keep_last} of {_folder_shown(version.folder)}"
        reasons = [] if rule.age is None else [f"older than {rule.age_text}"]
        if rule.keep_last is not None:
            place = _folder_shown(version.folder)
            reasons.append(f"not among the newest {rule.keep_last} of {place}")
        gone = ", ".join(reasons) or "everything that it matches"
        reason = f"rule {rule.number}: {kept or gone}"
        # without an old item, the rule does not select the version
        items = [] if not old else version.items if kept is None else old
        for item in items:
            found.append(CleanupVerdict(item, rule, kept is None, reason, version=version.name))
    return _keep_folders_of_kept(found)


def _release(item: CleanupItem, known: Collection[str]) -> str | None:
    """Return the path of the release of a snapshot, or of a folder of snapshots."""
    if item.folder:
        return layouts.release_of_folder(item.path)
    found = layouts.snapshot_of(layouts.owner_of(item.path, known) or item.path)
    return None if found is None else found.release


def matches_rule(rule: CleanupRule, item: CleanupItem) -> bool:
    kinds = {"file": not item.folder, "folder": item.folder, "image": item.folder, "any": True}
    return (
        kinds[rule.kind]
        and matches(rule.path, item.parent or ROOT)
        and matches(rule.name, item.name)
        and rule.depth in (None, item.path.count("/") + 1)
        and rule.has_values(item.properties)
    )


def _is_young(rule: CleanupRule, item: CleanupItem, now: datetime | None) -> bool:
    if rule.age is None or now is None:
        return False
    if item.moment is None:
        # without a time, trust the server if the query selected old items
        return rule.evaluates_ages
    return item.moment > now - rule.age


def _protection(rule: CleanupRule, version: ItemVersion) -> str | None:
    """Return why the paths or properties of a version's items keep it; `None` if they do not."""
    for item in version.items:
        glob = rule.excluding(item.path)
        why = rule.protection(item) if glob is None else f"excluded by '{glob}'"
        if why is not None:
            return why if len(version.items) == 1 else f"version with '{item.path}', {why}"
    return None


def _reason_to_keep(rule: CleanupRule, version: ItemVersion, now: datetime | None) -> str | None:
    """Return why the content or the age of an item keeps a version; `None` if nothing does."""
    for item in version.main:
        for file in item.files:
            for path in (file.path, *folders_above(file.path)):
                inner = rule.excluding(path) if len(path) > len(item.path) else None
                if inner is not None:
                    return f"contains '{path}', excluded by '{inner}'"
            if rule.kind != "image" and _is_young(rule, file, now):
                return f"contains '{file.path}', younger than {rule.age_text}"
        if item not in version.matched and now is None and rule.age is not None:
            return f"version with '{item.path}', whose age is unknown"
        if len(version.items) > 1 and _is_young(rule, item, now):
            return f"version with '{item.path}', younger than {rule.age_text}"
    return None


def _folder_shown(folder: str) -> str:
    return f"'{folder}'" if folder else "the root"


def _keep_for_newer(
    rule: CleanupRule, known: Mapping[str, CleanupItem], found: Sequence[CleanupVerdict]
) -> list[CleanupVerdict]:
    """Return the verdicts, with snapshots kept if kept newer ones would be incomplete."""
    needed = needed_by_newer(known, {verdict.item.path for verdict in found if verdict.goes})

    def judged(verdict: CleanupVerdict) -> CleanupVerdict:
        path = verdict.item.path
        file = layouts.snapshot_of(layouts.owner_of(path, known) or path)
        why = None if file is None else needed.get(file.version)
        if not verdict.goes or why is None:
            return verdict
        reason = f"rule {rule.number}: has '{why}', which newer snapshots lack"
        return replace(verdict, goes=False, reason=reason)

    return _keep_folders_of_kept([judged(verdict) for verdict in found]) if needed else list(found)


def _keep_folders_of_kept(found: Sequence[CleanupVerdict]) -> list[CleanupVerdict]:
    """Return the verdicts, with folders kept if they contain a kept item."""
    kept_in = {
        folder: verdict.item.path
        for verdict in found
        if not verdict.goes
        for folder in folders_above(verdict.item.path)
    }
    return [
        replace(
            verdict, goes=False, reason=f"{verdict.reason}; but contains '{kept}', which is kept"
        )
        if verdict.goes and (kept := kept_in.get(verdict.item.path)) is not None
        else verdict
        for verdict in found
    ]
