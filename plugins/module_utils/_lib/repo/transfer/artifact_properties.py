# SPDX-License-Identifier: GPL-3.0-or-later
"""Set or remove properties of existing items [C2.2]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, not_found, rejected
from ...core.finding import Finding, of_row
from ...core.globs import Patterns
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.progress import ProgressCounter
from .. import properties, repositories
from ..client import RepoClient, join, refuse_matrix, repository_key, segments
from ..items import listing
from ..repositories import refuse_properties
from ..service import SERVICE
from .remote_files import (
    ChosenFilesOptions,
    ChosenPath,
    Filter,
    RemoteFile,
    chosen_paths,
    find_files,
    select_files,
    wanted_properties,
)

_Has = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class ArtifactPropertiesOptions(ChosenFilesOptions):
    """The options of `artifact_properties`."""

    properties: Annotated[dict[str, Any], Option(values="text")]
    path: Annotated[str | None, Option(empty=True)] = None
    match_properties: Annotated[dict[str, Any] | None, Option(values="text", empty=False)] = None
    recursive: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False

    @property
    def selects(self) -> bool:
        return self.is_many or bool(self.match_properties)


@dataclass(frozen=True)
class WantedProperties:
    """The properties to set, or to remove if `absent` is true.

    :param values: properties to set
    :param names: names of the properties
    """

    values: properties.Properties
    names: list[str]
    absent: bool

    @property
    def is_empty(self) -> bool:
        return not (self.names if self.absent else self.values)

    def are_done(self, has: Mapping[str, list[str]]) -> bool:
        if self.absent:
            return not any(name in has for name in self.names)
        return properties.are_set(has, self.values) is True

    def after(self, has: Mapping[str, list[str]]) -> dict[str, list[str]]:
        if self.absent:
            return {name: values for name, values in has.items() if name not in self.names}
        return {**has, **self.values}


@dataclass(frozen=True)
class Marked:
    """An item with its properties.

    :param before: current properties; `None` if the server does not return them
    :param after: properties after the task
    :param is_done: whether the item needs no change
    """

    repo: str
    path: str
    before: _Has | None
    after: _Has | None
    is_done: bool

    @property
    def name(self) -> str:
        return join(self.repo, self.path)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of the item in the return value `artifacts`."""
        shown = {"repo": self.repo, "path": self.path, "before": self.before, "after": self.after}
        return {**shown, "action": "unchanged" if self.is_done else "updated"}


class ArtifactPropertiesOperation:
    """Set or remove properties of selected files, or of a single item with its content."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads("read"),
            "set": writes("read", unforeseen=("annotate",)),
            "delete": writes("read", unforeseen=("annotate",)),
        },
        kind="item",
        name="{repo}/{path}",
        listed="artifacts",
    )

    def __init__(self, task: Task, options: ArtifactPropertiesOptions) -> None:
        self._task, self._options = task, options
        self._wanted = _wanted(task, options)
        self._client = RepoClient(task, connections=options.parallel)
        self._repo = options.repo or ""
        self._paths, self._filter = _selection(options)
        if self._wanted.absent and not self._client.dialect.full_properties:
            raise invalid(
                "state=absent: servers of the generic dialect cannot remove properties (check the"
                " option dialect)"
            )

    @cached_property
    def _path(self) -> str:
        """Return the path of the single item as the server has it."""
        path = join(*segments(self._options.path or ""))
        return listing.existing_form(self._client, self._repo, path)

    def plan(self) -> Plan:
        if self._paths is not None:
            client, limit = self._client, self._options.max_items

            def is_settled(path: ChosenPath) -> bool:
                """Return whether an earlier run of the task has already changed the files.

                The change may have removed the properties by which the task selects them.
                """
                if not self._filter.properties:
                    return False
                every = replace(self._filter, properties={})
                read = self._read(find_files(client, path.repo, path.path, every))
                return any(has is not None and self._wanted.are_done(has) for _file, has in read)

            if not client.dialect.full_properties:
                refuse_properties(client)
            chosen = select_files(client, self._paths, self._filter, limit, is_settled)
            found = {file.name: file for _path, file in chosen}
            for warning in self._filter.exclude.warnings("none of the selected files"):
                self._task.warn(warning)
            read = self._read([file for _name, file in sorted(found.items())])
            return _planned([self._marked(file.repo, file.path, has) for file, has in read])
        known = properties.read(self._client, self._repo, self._path)
        # other servers that cannot return properties reject the later write themselves
        if known is None and self._client.dialect.full_properties:
            self._require_stored()
        elif known is None:
            refuse_properties(self._client)
        reads_below = self._options.recursive and known is not None and not self._wanted.is_empty
        below = self._below() if reads_below else {}
        item = self._marked(self._repo, self._path, known)
        if below is None:  # the content cannot be compared
            item = replace(item, after=self._wanted.after(known or {}), is_done=False)
        inner = [self._marked(self._repo, path, has) for path, has in (below or {}).items()]
        marked = [item, *_differing(inner)]
        shown = {"before": known, "after": self._wanted.after(known or {})}
        return _planned(sorted(marked, key=lambda each: each.is_done)).with_result(properties=shown)

    def _marked(self, repo: str, path: str, has: _Has | None) -> Marked:
        done = self._wanted.is_empty or (has is not None and self._wanted.are_done(has))
        return Marked(repo, path, has, has if done else self._wanted.after(has or {}), done)

    def _below(self) -> dict[str, _Has] | None:
        return properties.read_below(self._client, self._repo, self._path, "any")

    def preflight(self, plan: Plan) -> None:
        """Raise `not_found` in check mode if the item does not exist.

        Outside check mode, a server that cannot return properties rejects the write itself.
        """
        if self._paths is not None:
            return
        if not self._client.dialect.full_properties:
            self._require_stored()
        elif repositories.members(self._client, self._repo) != [self._repo]:
            target = repositories.deployment_target(self._client, self._repo)
            if listing.expected(self._client, target, self._path) is None:
                raise self._elsewhere(self._repo, self._path)

    def _elsewhere(self, repo: str, path: str) -> ToolchainError:
        """Return the error for a file that a virtual repository shows from another repository."""
        members = repositories.members(self._client, repo)
        holder = next((key for key in members if listing.head(self._client, key, path)), None)
        named = "the repository that stores it" if holder is None else f"'{holder}'"
        return invalid(
            f"'{repo}' is a virtual repository, and the server does not set properties of"
            f" '{path}' through it: set repo to {named}"
        )

    def _require_stored(self) -> None:
        there = listing.expected(self._client, self._repo, self._path)
        if there is None and listing.is_predicted_folder(self._client, self._repo, self._path):
            return
        if there is None and listing.find(self._client, self._repo, self._path) is None:
            raise not_found(
                f"reading the properties of '{self._repo}/{self._path}': the server returned 404:"
                " the item does not exist",
                status=404,
            )

    def _read(self, files: Sequence[RemoteFile]) -> Iterable[tuple[RemoteFile, _Has | None]]:
        """Return files with their properties; `None` if the server does not return properties.

        Each repository is queried once. Files that the query does not find are read individually.
        """
        client = self._client

        def read_one(file: RemoteFile) -> _Has | None:
            repo, path = file.repo, file.path
            is_predicted = listing.predicted(client, repo, path) is not None
            if is_predicted and listing.head(client, repo, path) is None:
                return client.predictions.get("properties", repo, path) or {}
            return properties.read(client, repo, path)

        known: dict[str, _Has | None] = {
            f"{repo}/{path}": has
            for repo in sorted({file.repo for file in files})
            for path, has in properties.read_at(
                client, repo, [file.path for file in files if file.repo == repo]
            ).items()
        }
        others = [file for file in files if file.name not in known]
        read = spread(client.connections, read_one, others)
        known |= {file.name: has for file, has in zip(others, read, strict=True)}
        return [(file, known[file.name]) for file in files]

    def predict(self, plan: Plan) -> None:
        for marked in _differing(plan.data):
            properties.predict(self._client, marked.repo, marked.path, marked.after or {})

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        rows = values.get("artifacts", ())
        return [of_row(row, self.descriptor.name_of(row)) for row in rows]

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._paths is None:
            self._write(self._repo, self._path, recursive=self._options.recursive)
            below = self._below() if self._options.recursive else None
            left = [path for path, has in (below or {}).items() if not self._wanted.are_done(has)]
            if left:
                raise rejected(
                    f"changing properties below '{self._repo}/{self._path}': {len(left)} items"
                    f" still do not have the wanted properties, the first is '{left[0]}'"
                )
            return {}
        differing = _differing(plan.data)
        done: set[str] = set()
        count = ProgressCounter(self._task.progress, "changing properties", len(differing))

        def work(marked: Marked) -> None:
            self._write(marked.repo, marked.path, recursive=False)
            done.add(marked.name)
            count.add()

        try:
            spread(self._client.connections, work, differing)
        except ToolchainError as error:
            reached = [each.as_dict() for each in plan.data if each.is_done or each.name in done]
            error.result.setdefault("artifacts", reached)
            raise
        return {}

    def _write(self, repo: str, path: str, *, recursive: bool) -> None:
        client, wanted = self._client, self._wanted
        try:
            if wanted.absent:
                properties.remove(client, repo, path, wanted.names, recursive=recursive)
            else:
                properties.write(client, repo, path, wanted.values, recursive=recursive)
        except ToolchainError as error:
            if error.status != 404 or listing.head(client, repo, path) is None:
                raise
            if repositories.members(client, repo) != [repo]:
                raise self._elsewhere(repo, path) from None
            # server fact [repo-3]: the server may hide an item without the permission
            error.kind = "permission"
            raise error.with_hint(
                "the item can be read, so the account lacks the permission to set properties, or"
                " the repository is remote: then set repo to its cache"
            ) from None


def _differing(marked: Iterable[Marked]) -> list[Marked]:
    return [each for each in marked if not each.is_done]


def _planned(marked: Sequence[Marked]) -> Plan:
    differing = _differing(marked)
    return Plan(
        {each.name: each.before for each in differing},
        {each.name: each.after for each in differing},
        "update" if differing else "none",
        result={"artifacts": [each.as_dict() for each in marked]},
        data=marked,
    )


def _wanted(task: Task, options: ArtifactPropertiesOptions) -> WantedProperties:
    names, absent = [str(name) for name in options.properties], options.state == "absent"
    if not names:
        task.warn("properties is empty, so there is nothing to set or remove")
    for name in names:
        properties.check_name(name)
    return WantedProperties(
        {} if absent else properties.properties_of(options.properties), names, absent
    )


def _selection(options: ArtifactPropertiesOptions) -> tuple[list[ChosenPath] | None, Filter]:
    """Return the paths and conditions of the files; no paths if the options name a single item."""
    refuse_matrix("path", options.path or "")
    path = join(*segments(options.path or ""))
    if not options.selects:
        repo = repository_key("repo", options.repo or "")
        if path == "" and not options.force:
            raise invalid(
                f"path is empty, which means the root of the repository '{repo}': set path, or set"
                " force=true to allow that"
            )
        return None, Filter()
    if options.recursive:
        raise invalid(
            "recursive cannot be combined with a pattern, artifacts, match_properties or exclude:"
            " omit it, and end a folder with /** to select all of its files"
        )
    if options.artifacts is None and path == "":
        raise invalid("path is empty, which would mean the whole repository: use ** to select it")
    wanted = Filter(
        wanted_properties(options.match_properties, "match_properties"),
        Patterns("exclude", options.exclude),
        "match_properties",
    )
    return chosen_paths(options), wanted
