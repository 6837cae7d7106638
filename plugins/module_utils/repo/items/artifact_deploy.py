# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `artifact_deploy`: deploy files, strings and archives, and delete items [C2.1]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import invalid
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.paths.globs import Patterns
from ...core.plan import Operation, Plan, Predicting
from ..client import join, refuse_glob, repository_key, require_new_path, segments
from ..properties import properties_of
from .deployment import ArchiveDeployment, FileDeployment
from .removal import ItemRemoval
from .sources import FileSource, Selection, files_of, refuse_same_target, text_source

_SOURCES = ("src", "content", "artifacts")


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

    repo: str
    path: str = ""
    src: PathText | None = None
    content: Annotated[Any, Option(values="json", empty=True, whole=True)] = None
    artifacts: list[ArtifactOptions] | None = None
    explode: bool = False
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    parallel: int = 4
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
        "repo",
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
        if options.parallel < 1:
            raise invalid("parallel must be at least 1")
        self._operation = _operation(task, options)

    def plan(self) -> Plan:
        return self._operation.plan()

    def predict(self, plan: Plan) -> None:
        if isinstance(self._operation, Predicting):
            self._operation.predict(plan)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._operation.apply(plan)


def _operation(task: Task, options: ArtifactDeployOptions) -> Operation:
    if options.state == "absent":
        return _removal(task, options)
    if options.force:
        raise invalid(
            "force requires state: absent, to delete the content of a repository: omit it"
        )
    _refuse_without_files(options)
    require_new_path("path", options.path)
    for number, artifact in enumerate(options.artifacts or ()):
        require_new_path(f"artifacts[{number}].path", artifact.path)
    if options.explode:
        return _archive_deployment(task, options)
    if options.artifacts == []:
        task.warn("artifacts is empty: no file is deployed")
    exclude = Patterns("exclude", options.exclude)
    sources = sources_of(options, exclude)
    for warning in exclude.warnings("no file"):
        task.warn(warning)
    return FileDeployment(
        task,
        options.repo,
        sources,
        parallel=options.parallel,
        checksum_deploy=options.checksum_deploy,
        overwrite=options.overwrite,
        moved_to=options.moved_to or (),
    )


def _refuse_without_files(options: ArtifactDeployOptions) -> None:
    """Raise `invalid` for `exclude` and `flat` if the task does not deploy local files."""
    named = [name for name in ("exclude", "flat") if getattr(options, name)]
    instead = "explode" if options.explode else "content" if options.content is not None else ""
    if named and instead:
        raise invalid(
            f"{named[0]} only applies to src and artifacts, and cannot be combined with {instead}"
        )


def _archive_deployment(task: Task, options: ArtifactDeployOptions) -> ArchiveDeployment:
    if options.checksum_deploy:
        raise invalid(
            "checksum_deploy cannot be combined with explode: an archive is always uploaded"
        )
    if options.src is None:
        raise invalid("explode requires src, the archive to expand")
    wanted = properties_of(options.properties)
    folder = join(options.path)
    return ArchiveDeployment(
        task,
        options.repo,
        options.src,
        folder,
        wanted,
        parallel=options.parallel,
        overwrite=options.overwrite,
        moved_to=options.moved_to or (),
    )


def _removal(task: Task, options: ArtifactDeployOptions) -> ItemRemoval:
    path = join(options.path)
    if path == "" and not options.force:
        raise invalid(
            f"path is empty, which means the whole repository '{options.repo}': set path, or set"
            " force: true to allow that"
        )
    refuse_glob(path)
    only_present = (*_SOURCES, "properties", "checksum_deploy", "exclude", "moved_to")
    named = [name for name in only_present if getattr(options, name) is not None]
    named += [name for name in ("explode", "flat") if getattr(options, name)]
    named += [] if options.overwrite else ["overwrite"]
    if named:
        raise invalid(f"state 'absent' cannot be combined with {', '.join(named)}: omit them")
    return ItemRemoval(task, options.repo, path)


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
        found = [
            source
            for artifact in options.artifacts
            for source in _of_artifact(options, artifact, selection)
        ]
    else:
        found = [text_source(options.content, options.path)]
    refuse_same_target(found)
    properties = properties_of(options.properties)
    if not properties:
        return found
    return [replace(source, properties={**properties, **source.properties}) for source in found]


def _of_artifact(
    options: ArtifactDeployOptions, artifact: ArtifactOptions, selection: Selection
) -> Iterator[FileSource]:
    below = artifact.path
    path = f"{options.path.rstrip('/')}/{below}" if options.path.strip("/") else below
    properties = properties_of(artifact.properties)
    for source in files_of(artifact.src, path, selection):
        yield replace(source, properties=properties)
