# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `artifact_deploy`: deploy files, strings and archives, and delete items [C2.1]."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from ...core.concurrency import spread
from ...core.errors import ToolchainError, conflict, invalid, shorten
from ...core.finding import Finding, of_row
from ...core.globs import Patterns
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.transfer_progress import TransferProgress
from ...core.module.typed_options import Option, PathText, Positive
from ...core.plan import Action, Operation, Plan, Predicting, plan
from .. import aql, properties
from ..client import (
    RepoClient,
    item_path,
    join,
    refuse_glob,
    repository_key,
    require_new_path,
    segments,
)
from ..properties import properties_of
from ..repositories import deployment_target
from ..service import SERVICE
from . import listing
from .layouts import CHECKSUMS, index_test, is_checksum, left_out, owners_of, stored_paths
from .listing import Digests, StoredItem
from .sources import (
    FileSource,
    LocalFile,
    Selection,
    WantedFile,
    entries_of,
    files_of,
    read_all,
    refuse_same_target,
    text_source,
)
from .uploads import FileState, Uploader, common_folder, read_moved, read_states, with_known_content

_SOURCES = ("src", "content", "artifacts")
_OF_FILES = ("properties", "checksum_deploy", "exclude", "moved_to", "explode", "flat")


@dataclass(frozen=True)
class ArtifactOptions:
    """The suboptions of `artifacts`."""

    src: PathText
    path: str = ""
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None


@dataclass(frozen=True)
class ArtifactDeployOptions:
    """The options of `artifact_deploy`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [_SOURCES],
        "required_if": [("state", "present", _SOURCES, True)],
    }
    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=(*_SOURCES, *_OF_FILES, "overwrite")),
        Rule("force", requires="state=absent"),
        Rule("explode", requires="src"),
        Rule("explode", forbids="checksum_deploy=true", because="an archive is always uploaded"),
        Rule("explode", "content", forbids=("exclude", "flat")),
    )

    repo: str
    path: str = ""
    src: PathText | None = None
    content: Annotated[Any, Option(values="json", empty=True, whole=True)] = None
    artifacts: list[ArtifactOptions] | None = None
    explode: bool = False
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    parallel: Positive = 4
    checksum_deploy: bool | None = None
    exclude: list[str] | None = None
    flat: bool = False
    overwrite: bool = True
    moved_to: list[str] | None = None
    state: Literal["present", "absent"] = "present"
    force: bool = False


class ArtifactDeployOperation:
    """Deploy files, deploy an archive that the server expands, or delete an item."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(
                ("file", "folder", "checksum", "archive"), writes("read", unforeseen=("deploy",))
            ),
            "properties": writes("read", unforeseen=("annotate",)),
            "plain store": writes(),
            "delete": writes("read", unforeseen=("delete",)),
        },
        kind="item",
        name="{repo}/{path}",
        listed="artifacts",
    )

    def __init__(self, task: Task, options: ArtifactDeployOptions) -> None:
        repository_key("repo", options.repo)
        for number, key in enumerate(options.moved_to or ()):
            repository_key(f"moved_to[{number}]", key)
        segments(options.path)
        self._operation = _operation(task, options)

    def plan(self) -> Plan:
        return self._operation.plan()

    def predict(self, plan: Plan) -> None:
        if isinstance(self._operation, Predicting):
            self._operation.predict(plan)

    def findings_of_failure(self, values: Mapping[str, Any]) -> list[Finding]:
        rows = values.get("artifacts", ())
        return [of_row(row, self.descriptor.name_of(row)) for row in rows]

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._operation.apply(plan)


def _operation(task: Task, options: ArtifactDeployOptions) -> Operation:
    if options.state == "absent":
        path = join(options.path)
        if path == "" and not options.force:
            raise invalid(
                f"path is empty, which means the whole repository '{options.repo}': set path, or"
                " set force=true to allow that"
            )
        refuse_glob(path)
        return ItemRemoval(task, options.repo, path)
    require_new_path("path", options.path)
    for number, artifact in enumerate(options.artifacts or ()):
        require_new_path(f"artifacts[{number}].path", artifact.path)
    if options.explode:
        return ArchiveDeployment(task, options)
    if options.artifacts == []:
        task.warn("artifacts is empty: no file is deployed")
    exclude = Patterns("exclude", options.exclude)
    sources = sources_of(options, exclude)
    for warning in exclude.warnings("no file"):
        task.warn(warning)
    return FileDeployment(task, options, sources)


def sources_of(options: ArtifactDeployOptions, exclude: Patterns | None = None) -> list[FileSource]:
    """Return the files of the options `src`, `content` or `artifacts`.

    Raises `invalid` for an unreadable source, or if two files have the same path in the repository.

    :param exclude: parsed option `exclude`, which collects hints; `None` means to parse it here
    """
    selection = Selection(
        Patterns("exclude", options.exclude) if exclude is None else exclude, options.flat
    )
    if options.src is not None:
        found = list(files_of(options.src, options.path, selection))
    elif options.artifacts is not None:
        found = []
        for artifact in options.artifacts:
            path = artifact.path
            if options.path.strip("/"):
                path = f"{options.path.rstrip('/')}/{path}"
            own = properties_of(artifact.properties)
            files = files_of(artifact.src, path, selection)
            found += [replace(source, properties=own) for source in files]
    else:
        found = [text_source(options.content, options.path)]
    refuse_same_target(found)
    properties = properties_of(options.properties)
    if not properties:
        return found
    return [replace(source, properties={**properties, **source.properties}) for source in found]


#: Action and number of sent bytes, by path.
Done = dict[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class FileAction:
    """Planned action for a file.

    :param found: the file, and the current item at its path
    :param action: `uploaded`, `exploded`, `properties` or `unchanged`
    :param repo: key of the repository that stores the file
    """

    found: FileState
    action: str
    repo: str

    @property
    def wanted(self) -> WantedFile:
        return self.found.wanted

    @property
    def path(self) -> str:
        """Return the path of the unchanged content, or that of the deployment."""
        return self.found.path if self.found.has_content else self.wanted.path

    @property
    def name(self) -> str:
        return f"{self.repo}/{self.path}"

    @property
    def current(self) -> StoredItem | None:
        """Return the item at the path; an older snapshot is at another path and stays."""
        return self.found.stored if self.found.path == self.path else None

    @property
    def replaces(self) -> bool:
        """Return whether an item with other content is known to exist at the path."""
        stored = self.current
        return stored is not None and stored.holds(self.wanted.digests) is False


class FileDeployment:
    """Deploy the files whose content or properties differ."""

    def __init__(
        self, task: Task, options: ArtifactDeployOptions, sources: Iterable[FileSource] = ()
    ) -> None:
        self._task, self._options, self._sources = task, options, deque(sources)
        self._client = RepoClient(task, connections=options.parallel)
        #: Paths of files that the server stored under another name, by the path of the request.
        self._renamed: dict[str, str] = {}
        if options.checksum_deploy:
            self._by_checksum()

    def _by_checksum(self) -> bool | None:
        """Return `checksum_deploy`, or `False` if the dialect does not support it.

        Raises `invalid` if the option is true but not supported.
        """
        if self._client.dialect.checksum_headers:
            return self._options.checksum_deploy
        if self._options.checksum_deploy:
            raise invalid(
                "checksum_deploy: a server of the generic dialect may store an empty file: omit the"
                " option, or check the option dialect"
            )
        return False

    def _wanted_files(self) -> list[WantedFile]:
        sources = list(self._sources)
        self._sources.clear()  # free the memory of the sources
        computed = self._computed(
            [source.path for source in sources],
            {source.path for source in sources if source.is_named},
        )
        left_out(self._client, computed, "sent")
        sources = [source for source in sources if source.path not in computed]
        return read_all(sources, self._client.connections)

    def _computed(self, paths: Sequence[str], named: Container[str] = ()) -> set[str]:
        """Return the paths of files that the server computes, except those of named files."""
        known, is_index = set(paths), index_test(self._client, self._options.repo)
        others = [path for path in paths if path not in named]
        found = {path for path in others if is_index(path) or is_checksum(path, known)}
        orphans = [path for path in others if path.endswith(CHECKSUMS) and path not in found]
        if orphans:
            folder = common_folder(orphans)
            listed = listing.listing(self._client, self._options.repo, folder, deep=True) or {}
            there = {*listed, *stored_paths(owners_of(orphans), listed)}
            found.update(path for path in orphans if is_checksum(path, there))
        return found

    def plan(self) -> Plan:
        repo, found = read_states(self._client, self._options.repo, self._wanted_files())
        if not self._options.overwrite:
            found = with_known_content(self._client, repo, found)
        moved = read_moved(self._client, repo, self._options.moved_to or (), found)
        actions = []
        for state in found:
            there, holder = moved.get(state.wanted.path, (state, repo))
            wanted = there.wanted.properties
            has_properties = not wanted or properties.are_set(there.properties, wanted) is True
            action = "unchanged" if has_properties else "properties"
            actions.append(FileAction(there, action if there.has_content else "uploaded", holder))
        actions = self._decide(actions, repo)
        self._refuse_folder(repo, actions)
        if not self._options.overwrite:
            taken = [file.name for file in actions if file.current and not file.found.has_content]
            if taken:
                raise conflict(
                    f"{len(taken)} of {len(actions)} paths have different content, but overwrite is"
                    f" false: {shorten(', '.join(taken), 400)}. Deploy to other paths, or set"
                    " overwrite: true"
                )
        artifacts = [self._artifact(file, file.action) for file in actions]
        result = {"artifacts": artifacts, "uploaded_bytes": self._bytes_to_send(actions)}
        differing = [file for file in actions if file.action != "unchanged"]
        if not differing:
            return Plan({}, {}, result=result)
        before = {file.name: _before(file) for file in differing if file.current is not None}
        after = {file.name: _after(file) for file in differing}
        self._warn_of_promoted(repo, differing)
        kind: Action = "update" if before else "create"
        return Plan(before, after, kind, result=result, data=(repo, actions))

    def _refuse_folder(self, repo: str, files: Sequence[FileAction]) -> None:
        """Raise `conflict` if the path of a single file is a folder on the server.

        Server fact [repo-26]: HEAD on a folder may be 200, without checksums.
        """
        if len(files) != 1 or not self._client.dialect.checksum_headers:
            return
        stored, name = files[0].current, files[0].name
        if stored is None or stored.has_digest:
            return
        found = listing.find(self._client, repo, files[0].path)
        if found is not None and found.folder:
            raise conflict(
                f"path: '{name}' is a folder: end path with a slash to deploy into it, or use"
                " another path"
            )

    def _warn_of_promoted(self, repo: str, files: Sequence[FileAction]) -> None:
        """Warn of files of promoted builds whose content the deployment replaces."""
        paths = {file.path for file in files if file.repo == repo and file.replaces}
        found = promoted_builds(self._client, repo, paths)
        if found:
            named = ", ".join(
                f"'{repo}/{path}' (build {', '.join(builds)})" for path, builds in found.items()
            )
            self._task.warn(
                f"this deployment replaces files of promoted builds: {shorten(named, 400)}. The new"
                " content is not in their build records"
            )

    def predict(self, plan: Plan) -> None:
        _repo, actions = plan.data
        for file in actions:
            digests = file.wanted.digests
            item = listing.StoredItem(digests.size, digests.sha256, digests.sha1)
            listing.predict(self._client, file.repo, file.wanted.path, item)
            if file.wanted.properties:
                properties.predict(
                    self._client, file.repo, file.wanted.path, file.wanted.properties
                )

    def _decide(self, actions: list[FileAction], repo: str) -> list[FileAction]:
        return actions

    def _bytes_to_send(self, actions: list[FileAction]) -> int:
        return sum(file.wanted.digests.size for file in actions if file.action == "uploaded")

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: Done = {}
        repo, actions = plan.data
        size = self._bytes_to_send(actions)
        uploader = Uploader(self._client, repo, self._by_checksum(), self._renamed)

        def work(file: FileAction) -> None:
            path, wanted = file.wanted.path, file.wanted.properties
            if file.action == "uploaded":
                done[path] = uploader.deploy(file.wanted, file.current)
            action, _size = done.get(path, (file.action, 0))
            if action != "unchanged" and wanted:
                try:
                    properties.write(self._client, file.repo, self._stored_path(file), wanted)
                except ToolchainError as error:
                    # the content counts as deployed even if the server rejects the properties
                    if path in done:
                        error.with_hint(f"the content of '{file.name}' is deployed")
                    raise
            done.setdefault(path, (action, 0))

        try:
            with TransferProgress(
                self._task, "deploying", "sent", done=done, files=len(actions), size=size
            ):
                sent = self._send_together(uploader, actions, done)
                spread(self._client.connections, work, actions)
        except ToolchainError as error:
            error.result.setdefault("artifacts", self._artifacts(actions, done))
            raise
        return {
            "artifacts": self._artifacts(actions, done),
            "uploaded_bytes": sent + sum(size for _action, size in done.values()),
        }

    def _send_together(self, uploader: Uploader, actions: list[FileAction], done: Done) -> int:
        """Send all files in a single request if possible; return the number of sent bytes."""
        return 0

    def _artifacts(self, actions: list[FileAction], done: Done) -> list[dict[str, Any]]:
        return [
            self._artifact(file, done[file.wanted.path][0])
            for file in actions
            if file.wanted.path in done
        ]

    def _stored_path(self, file: FileAction) -> str:
        return self._renamed.get(file.wanted.path, file.path)

    def _artifact(self, file: FileAction, action: str) -> dict[str, Any]:
        path = self._stored_path(file)
        return _shown(self._client, file.repo, path, action, file.wanted.digests)


def _shown(
    client: RepoClient, repo: str, path: str, action: str, content: Digests | StoredItem | None
) -> dict[str, Any]:
    """Return the entry of an item in the return value `artifacts`."""
    size, sha256 = (None, None) if content is None else (content.size, content.sha256)
    shown = {"repo": repo, "path": path, "size": size, "sha256": sha256, "action": action}
    return {**shown, "url": client.transport.url(item_path(repo, path))}


class ArchiveDeployment(FileDeployment):
    """Deploy the files of an archive: send the whole archive if any file differs."""

    def __init__(self, task: Task, options: ArtifactDeployOptions) -> None:
        archive, wanted = str(options.src), properties_of(options.properties)
        if not os.path.isfile(archive):
            raise invalid(f"src: '{archive}' is not a file, but explode requires an archive")
        super().__init__(task, options)
        self._archive, self._properties = LocalFile(archive), wanted
        self._folder = join(options.path)

    def _wanted_files(self) -> list[WantedFile]:
        entries = entries_of(self._archive.path).items()
        found = {join(self._folder, name): digests for name, digests in entries}
        computed = self._computed(list(found))
        left_out(self._client, computed, "compared")
        return [
            WantedFile(path, self._archive, digests, self._properties)
            for path, digests in found.items()
            if path not in computed
        ]

    def _decide(self, actions: list[FileAction], repo: str) -> list[FileAction]:
        if not any(file.action == "uploaded" for file in actions):
            return actions
        return [FileAction(file.found, "exploded", repo) for file in actions]

    def _bytes_to_send(self, actions: list[FileAction]) -> int:
        return os.path.getsize(self._archive.path) if _is_exploded(actions) else 0

    def _send_together(self, uploader: Uploader, actions: list[FileAction], done: Done) -> int:
        if not _is_exploded(actions):
            return 0
        files = [file.wanted for file in actions]
        sent = uploader.explode(self._archive, self._folder, files)
        done.update({file.path: ("exploded", 0) for file in files})
        return sent


def _is_exploded(actions: list[FileAction]) -> bool:
    return any(file.action == "exploded" for file in actions)


def _before(file: FileAction) -> dict[str, Any]:
    stored = file.current
    shown = {} if stored is None else stored.as_dict()
    if file.found.properties is not None:
        names = file.wanted.properties
        shown["properties"] = {
            name: sorted(values) for name, values in file.found.properties.items() if name in names
        }
    return shown


def _after(file: FileAction) -> dict[str, Any]:
    wanted = file.wanted
    shown: dict[str, Any] = {"size": wanted.digests.size, "sha256": wanted.digests.sha256}
    if wanted.properties:
        shown["properties"] = {name: sorted(values) for name, values in wanted.properties.items()}
    return shown


class ItemRemoval:
    """Delete a file or folder. An empty path means the whole content of the repository."""

    def __init__(self, task: Task, repo: str, path: str) -> None:
        self._key, self._path = repo, path
        self._warn, self._client = task.warn, RepoClient(task)

    def plan(self) -> Plan:
        repo, stored = self._find()
        current = None if stored is None else {f"{repo}/{self._path}": stored.as_dict()}
        action = "absent" if stored is None else "deleted"
        shown = _shown(self._client, repo, self._path, action, stored)
        result = {"artifacts": [shown], "uploaded_bytes": 0}
        return plan(current, None).with_result(**result).with_data(repo)

    def _find(self) -> tuple[str, StoredItem | None]:
        """Return the repository from which the item can be deleted, and the item in it.

        This is the deployment repository of a virtual repository.
        """
        visible = listing.find(self._client, self._key, self._path)
        try:
            repo = deployment_target(self._client, self._key, certain=visible is None)
        except ToolchainError as error:
            if visible is None and error.kind == "invalid":
                return self._key, None
            raise
        if repo == self._key:
            return repo, visible
        found = listing.find(self._client, repo, self._path)
        if found is None and visible is not None:
            self._warn(
                f"'{self._path}' is not in '{repo}', to which '{self._key}' deploys, so it is not"
                f" deleted: '{self._key}' contains it from another repository"
            )
        return repo, found

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        try:
            listing.delete(self._client, plan.data, self._path)
        except ToolchainError as error:
            gone = error.status == 404 and listing.is_gone(self._client, plan.data, self._path)
            if gone is False:
                raise
            shown = _shown(self._client, plan.data, self._path, "absent", None)
            return {"changed": False, "artifacts": [shown]}
        return {}


_NAME, _NUMBER = "artifact.module.build.name", "artifact.module.build.number"
_PROMOTION = "artifact.module.build.promotion.status"
#: Maximum length of a list of files in a query, and that of each entry without the file.
_LONGEST, _OVERHEAD = 4000, 30


def promoted_builds(client: RepoClient, repo: str, paths: Collection[str]) -> dict[str, list[str]]:
    """Return the promoted builds to which files belong, as `name/number` by path.

    Sends a single query. The result is empty if the server does not support it: it only serves a
    warning, so an error must not prevent the deployment.
    """
    if not paths or not client.dialect.query_by_property:
        return {}
    folder = common_folder(list(paths))
    if sum(map(len, paths)) + _OVERHEAD * len(paths) <= _LONGEST:
        parts = (path.rpartition("/") for path in sorted(paths))
        places = {"$or": [{"path": parent or ".", "name": name} for parent, _slash, name in parts]}
    else:
        places = aql.below(folder)
    criteria = {"repo": repo, "type": "file", _PROMOTION: {"$match": "*"}, **places}
    purpose = f"searching for promoted builds with files below '{repo}/{folder}'"
    try:
        rows = aql.ask_if_supported(client, purpose, criteria, [_NAME, _NUMBER])
    except ToolchainError:
        return {}
    found: dict[str, list[str]] = {}
    for row in rows or ():
        builds = {  # the domains are nested
            f"{build.get('build.name')}/{build.get('build.number')}"
            for artifact in json_objects(row.get("artifacts"))
            for module in json_objects(artifact.get("modules"))
            for build in json_objects(module.get("builds"))
        }
        path = aql.path_in(row)
        if path in paths and builds:
            found[path] = sorted(builds)
    return found
