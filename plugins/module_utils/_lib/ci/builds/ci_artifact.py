# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the artifacts and the console log of a build as files: `ci_artifact` [C8.6]."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ...core import address
from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, shorten
from ...core.files import require_replaceable, safe_paths
from ...core.globs import Patterns
from ...core.http.file_download import (
    AS_STORED,
    Fetched,
    RemoteContent,
    download,
    download_file,
    fetch_digests,
)
from ...core.http.messages import REDIRECTS, Response
from ...core.http.transport import Transport
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.transfer_progress import TransferProgress
from ...core.module.typed_options import Option, PathText, Positive
from ...core.plan import Plan
from ..client import SEES_JOB, object_of, server_of
from ..job_address import JobName, build_path, build_segment, job_of
from ..service import SERVICE
from . import records
from .records import number_of

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming


#: `tree` query for the artifacts of a build.
FIELDS = "artifacts[fileName,relativePath],fingerprint[fileName,hash]"
_MAX_NAME_LENGTH = 200
_DIGEST = re.compile(r"[0-9a-fA-F]{32}")
#: Path segments that the server interprets as commands.
_COMMAND = re.compile(r"\*(zip|plain|view|fingerprint)\*")
_PAGE_NAME = re.compile(r"\.(x?html?|xhtml)$", re.IGNORECASE)


@dataclass(frozen=True)
class Artifact:
    """An artifact of a build.

    :param path: path relative to the artifacts of the build
    :param md5: the only digest that the server recorded under this path, or `None`
    :param likely: the only digest that the server recorded under this file name, or `None`; it may
        belong to a file that the build used
    """

    path: str
    md5: str | None
    likely: str | None

    @property
    def content(self) -> RemoteContent:
        """Return the expected digest of the downloaded file."""
        may_be_page = _PAGE_NAME.search(self.path) is not None
        return RemoteContent(None, "md5", self.md5, may_be_page)


def artifacts_of(shown: Mapping[str, Any]) -> list[Artifact]:
    """Return the artifacts of a build in the order of the response, without duplicate paths."""
    recorded: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    for entry in json_objects(shown.get("fingerprint")):
        name, digest = str(entry.get("fileName")), str(entry.get("hash"))
        if _DIGEST.fullmatch(digest):
            recorded.setdefault(name, set()).add(digest.lower())
            named.setdefault(name.rpartition("/")[2], set()).add(digest.lower())
    paths = dict.fromkeys(
        str(entry["relativePath"])
        for entry in json_objects(shown.get("artifacts"))
        if entry.get("relativePath")
    )
    counted = Counter(path.rpartition("/")[2] for path in paths)

    def single(digests: set[str] | None) -> str | None:
        return next(iter(digests)) if digests is not None and len(digests) == 1 else None

    found = []
    for path in paths:
        name = path.rpartition("/")[2]
        likely = single(named.get(name)) if counted[name] == 1 else None
        found.append(Artifact(path, single(recorded.get(path)), likely))
    return found


class ArtifactSource:
    """Compares and downloads the artifacts of a build.

    :param path: path of the build below the URL of the server
    :param purpose: name of the build for messages
    """

    def __init__(self, server: Transport, path: str, purpose: str) -> None:
        self._server, self._path, self._purpose = server, path, purpose

    def is_at(self, artifact: Artifact, path: str, sha256: str) -> bool:
        """Return whether a local file has the content of the artifact.

        `artifact.md5` decides if it is known. `artifact.likely` can only prove that the contents
        are equal; if it differs, the artifact is downloaded to compare its SHA-256 digest. Without
        a digest, the sizes are compared.

        :param path: path of the local file
        :param sha256: digest of the local file
        """
        if artifact.md5 is not None:
            return artifact.content.is_at(path)
        if artifact.likely is not None:
            if RemoteContent(None, "md5", artifact.likely).is_at(path):
                return True
            return self._fetch_digests(artifact).sha256 == sha256
        size = self._size(artifact)
        if size is None:
            return self._fetch_digests(artifact).sha256 == sha256
        return RemoteContent(size).is_at(path)

    def save(self, artifact: Artifact, path: str) -> Fetched:
        purpose, source = self._purpose_of("fetching", artifact), self._artifact_path(artifact)
        return download_file(self._server, purpose, source, path, content=artifact.content)

    def _fetch_digests(self, artifact: Artifact) -> Fetched:
        purpose, source = self._purpose_of("comparing", artifact), self._artifact_path(artifact)
        return fetch_digests(self._server, purpose, source, content=artifact.content)

    def _size(self, artifact: Artifact) -> int | None:
        """Return the size of an artifact in bytes, or `None` if the server does not report it.

        Server fact [ci-24]: a server that stores artifacts on another host redirects to URLs that
        are only valid for GET. For these the size is read from a GET request without its body.
        """
        source = self._artifact_path(artifact)
        purpose = self._purpose_of("reading the size of", artifact)
        try:
            response = self._server.read(purpose, source, method="HEAD", headers=AS_STORED)
            length = response.headers.get("Content-Length", "")
        except ToolchainError as error:
            if error.status not in REDIRECTS:
                raise

            def length_of(incoming: Incoming) -> str:
                return str(incoming.headers.get("Content-Length", ""))

            length = download(
                self._server, purpose, source, length_of, validate=lambda response: None
            )
        size = number_of(length)
        return size if size is not None and size >= 0 else None

    def _artifact_path(self, artifact: Artifact) -> str:
        segments = artifact.path.split("/")
        if any(_COMMAND.fullmatch(segment) for segment in segments):
            raise ToolchainError(
                "rejected",
                f"{self._purpose_of('fetching', artifact)}: cannot download the artifact, because"
                " the server interprets its name as a command",
            )
        return f"{self._path}/artifact/{address.path(*segments)}"

    def _purpose_of(self, verb: str, artifact: Artifact) -> str:
        return f"{verb} '{shorten(artifact.path, _MAX_NAME_LENGTH)}' of {self._purpose}"


_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class FetchedFile:
    """A file of a build and its local file.

    :param place: path of the local file
    :param present: the existing local file, or `None`
    :param action: `downloaded` or `unchanged`
    :param save: downloads the file to `place`
    :param path: path of the artifact; empty for the console log
    """

    place: str
    present: Fetched | None
    action: str
    save: Callable[[], Fetched]
    path: str = ""

    def as_dict(self, fetched: Fetched | None = None) -> dict[str, Any]:
        known = fetched or (self.present if self.action == "unchanged" else None)
        return {
            **({"path": self.path} if self.path else {}),
            "dest": self.place,
            "size": None if known is None else known.size,
            "sha256": None if known is None else known.sha256,
            "action": self.action,
        }


def local_file(path: str) -> Fetched | None:
    """Return the regular file at a path, or `None` without one. Symbolic links are not followed.

    Raises `invalid` for a file that cannot be read, and for a path that a file cannot replace.
    """
    if os.path.lexists(path):
        require_replaceable(path, os.lstat(path))
    if not os.path.isfile(path) or os.path.islink(path):
        return None
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(_BLOCK), b""):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror or error}") from None
    return Fetched(size, digest.hexdigest())


def console_file(server: Transport, path: str, purpose: str, place: str) -> FetchedFile:
    """Return the console log of a build.

    The server reports neither length nor digest of a log, so the contents are compared.

    :param path: path of the build below the URL of the server
    :param purpose: name of the build for messages
    """
    purpose, source = f"reading the console log of {purpose}", f"{path}/consoleText"
    present = local_file(place)

    def is_equal(response: Incoming) -> bool:
        """Compare the contents up to the first difference."""
        with open(place, "rb") as file:
            for block in response.iter_content():
                if file.read(len(block)) != block:
                    return False
            return file.read(1) == b""

    same = present is not None and download(server, purpose, source, is_equal, validate=_validate)
    content = RemoteContent()
    save = partial(
        download_file, server, purpose, source, place, content=content, validate=_validate
    )
    return FetchedFile(place, present, "unchanged" if same else "downloaded", save)


def _validate(response: Response) -> None:
    """Raise `protocol` for a web page, which a login or a proxy returns instead of the log."""
    if response.status == 200 and "html" in response.headers.get("Content-Type", ""):
        raise response.error(
            "protocol",
            "the server returned 200 with a web page instead of the log: check url and login",
        )


@dataclass(frozen=True, kw_only=True)
class CiArtifactOptions:
    """The options of `ci_artifact`."""

    job: JobName
    build: str = "lastSuccessfulBuild"
    patterns: Annotated[list[str] | None, Option(empty=False)] = None
    dest: PathText | None = None
    flat: bool = False
    console: PathText | None = None
    parallel: Positive = 4
    allow_empty: bool = False

    constraints: ClassVar[dict[str, Any]] = {
        "required_one_of": [("dest", "console")],
        "required_by": {"patterns": ("dest",)},
    }


@dataclass(frozen=True)
class FetchPlan:
    """The files that a task manages. `console` is `None` if the task does not save the log."""

    files: list[FetchedFile]
    console: FetchedFile | None

    @property
    def downloads(self) -> list[FetchedFile]:
        files = [*self.files, *([self.console] if self.console else [])]
        return [file for file in files if file.action == "downloaded"]

    def result(self, done: Mapping[str, Fetched], *, planned: bool = False) -> dict[str, Any]:
        """Return the values for the result.

        :param done: downloaded files by local path
        :param planned: whether to include files that are not downloaded yet
        """

        def is_reported(file: FetchedFile) -> bool:
            return planned or file.action == "unchanged" or file.place in done

        files = [file.as_dict(done.get(file.place)) for file in self.files if is_reported(file)]
        console = self.console if self.console and is_reported(self.console) else None
        return {
            "files": files,
            "console": console and console.as_dict(done.get(console.place)),
            "downloaded_bytes": sum(file.size for file in done.values()),
        }


class CiArtifactOperation:
    """Downloads the files that are missing or differ from the build."""

    descriptor: ClassVar = Descriptor(
        SERVICE, {"read": reads(*SEES_JOB), "fetch": reads(*SEES_JOB)}
    )

    def __init__(self, task: Task, options: CiArtifactOptions) -> None:
        self._task, self._options = task, options
        dest = options.dest
        if dest is not None and os.path.lexists(dest) and not os.path.isdir(dest):
            raise invalid(f"dest '{dest}' is not a folder: set dest to a folder")
        if (options.console or "").endswith("/"):
            raise invalid(
                f"console is '{options.console}', which is a folder: set it to the path of a file"
            )
        if options.console is not None and os.path.lexists(options.console):
            require_replaceable(options.console, os.lstat(options.console))
        self._job = job_of(options.job, task.connection.url)
        self._segment = build_segment(options.build)
        self._server = server_of(task, connections=options.parallel)
        self._patterns = Patterns("patterns", options.patterns)

    def plan(self) -> Plan:
        shown, number = self._read()
        path = build_path(self._job, number)
        purpose = f"build #{number} of the job '{self._job.name}'"
        source = ArtifactSource(self._server, path, purpose)
        targets = {} if self._options.dest is None else self._targets(shown, purpose)
        place, console = self._options.console, None
        if place is not None:
            if os.path.abspath(place) in map(os.path.abspath, targets.values()):
                raise invalid(f"console: {place} is also the file of an artifact: set another path")
            console = console_file(self._server, path, purpose, place)

        def compare(target: tuple[Artifact, str]) -> FetchedFile:
            artifact, place = target
            present = local_file(place)
            same = present is not None and source.is_at(artifact, place, present.sha256)
            save = partial(source.save, artifact, place)
            action = "unchanged" if same else "downloaded"
            return FetchedFile(place, present, action, save, artifact.path)

        files = spread(self._options.parallel, compare, list(targets.items()))
        fetches = FetchPlan(files, console)
        build = records.shown(shown, self._job, self._task.connection.url)
        result = {"build": build, **fetches.result({}, planned=True)}
        origin = {"job": self._job.name, "build": self._segment}
        before = {
            file.place: {"size": file.present.size, "sha256": file.present.sha256}
            for file in fetches.downloads
            if file.present is not None
        }
        after = {file.place: {"from": origin} for file in fetches.downloads}
        if before == after:
            return Plan({}, {}, result=result)
        return Plan(before, after, "update" if before else "create", result=result, data=fetches)

    def _read(self) -> tuple[Mapping[str, Any], int]:
        """Return the build with its artifacts, and its number.

        Later requests use the number, because a permalink may then refer to another build.
        """
        purpose = f"reading build {self._segment} of the job '{self._job.name}'"
        fields = f"{records.BUILD_FIELDS},{FIELDS}"
        response = records.build_response(self._server, purpose, self._job, self._segment, fields)
        shown = records.typed(object_of(response))
        if records.is_running(shown):
            self._task.warn(
                f"{purpose}: the build is still running, so its files and log are incomplete"
            )
        return shown, records.number_in(response, self._segment)

    def _targets(self, shown: Mapping[str, Any], purpose: str) -> dict[Artifact, str]:
        """Return the artifacts that the patterns select, with their local paths."""
        if not isinstance(shown.get("artifacts"), list):
            raise ToolchainError(
                "rejected", f"the response does not contain the artifacts of {purpose}"
            )
        artifacts = artifacts_of(shown)
        is_any = self._options.patterns is None
        chosen = [
            artifact for artifact in artifacts if is_any or self._patterns.fits(artifact.path)
        ]
        for warning in self._patterns.warnings(f"no artifact of {purpose}"):
            self._task.warn(warning)
        if not chosen and not self._options.allow_empty:
            count = f"{len(artifacts)} others" if artifacts else "none"
            raise ToolchainError(
                "not_found",
                f"{purpose} has no matching artifact (it has {count}): change patterns, or set"
                " allow_empty: true",
            )
        paths = [artifact.path for artifact in chosen]
        found = safe_paths(self._options.dest or "", paths, flat=self._options.flat)
        return {artifact: found[artifact.path] for artifact in chosen}

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        fetches: FetchPlan = plan.data
        done: dict[str, Fetched] = {}

        def save(file: FetchedFile) -> None:
            done[file.place] = file.save()

        files = fetches.downloads
        try:
            with TransferProgress(
                self._task, "downloading", "received", done=done, files=len(files)
            ):
                spread(self._options.parallel, save, files)
        except ToolchainError as error:
            error.result.update(fetches.result(done), changed=bool(done))
            raise
        return fetches.result(done)
