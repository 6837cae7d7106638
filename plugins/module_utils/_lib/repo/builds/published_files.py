# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the files of a build record from the options, and complete their digests [C8.3].

An option identifies a file by repository and path, or by its name and digests.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias, TypeVar

from ...core.concurrency import first_alone
from ...core.errors import conflict, invalid, not_found, rejected, shorten
from ...core.module.input_check import Place, check_options
from ...core.module.task import Task
from ...core.module.typed_options import Option, argument_spec, parse
from ...core.plan import without_none
from .. import repositories
from ..client import RepoClient, join, refuse_matrix, repository_key, segments
from ..items import listing
from ..items.layouts import may_be_renamed, stored_paths
from ..items.listing import StoredItem
from ..items.uploads import common_folder
from .publication import PublicValues

#: Number of hexadecimal digits of each digest.
_DIGITS = {"sha1": 40, "sha256": 64, "md5": 32}
#: Minimum number of files for which a listing is cheaper than a request per file.
_WORTH_A_LISTING = 4
#: Values of `action`, a return value of `artifact_deploy`, for items that do not exist.
_GONE = ("deleted", "absent")
#: Similarity (0 to 1) to a known key from which an unknown key counts as misspelt.
_SIMILARITY = 0.8

Keys = TypeVar("Keys")
#: A string that counts as not given if it is empty.
GivenText: TypeAlias = Annotated[str | None, Option(empty=True)]


@dataclass(frozen=True)
class PublishedFileOptions:
    """The suboptions of `artifacts`: `repo` and `path`, or `name` and digests.

    An empty string counts as not given, because records contain such strings.

    `size`, `action` and `url` have no effect: they allow the return values of `artifact_deploy` to
    be passed unchanged.
    """

    repo: GivenText = None
    path: GivenText = None
    name: GivenText = None
    type: GivenText = None
    sha1: GivenText = None
    sha256: GivenText = None
    md5: GivenText = None
    size: int | None = None
    action: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class UsedFileOptions(PublishedFileOptions):
    """The suboptions of `dependencies`."""

    scopes: list[str] | None = None


@dataclass(frozen=True)
class PublishedFile:
    """A file of a build record; `repo` and `path` are empty if only digests are given.

    :param place: location in the options, such as `artifacts[0]`
    """

    place: str
    name: str
    type: str | None
    digests: Mapping[str, str]
    repo: str = ""
    path: str = ""
    scopes: Sequence[str] = field(default_factory=tuple)
    #: Other keys of the file, which are copied to the record unchanged.
    further: Mapping[str, Any] = field(default_factory=dict)
    #: The entry is a dependency of an existing record: it may lack a type and digests.
    is_kept: bool = False

    @property
    def is_item(self) -> bool:
        return self.path != ""

    @property
    def item(self) -> str:
        return f"{self.repo}/{self.path}"


def files_of(place: str, entries: Sequence[PublishedFileOptions]) -> list[PublishedFile]:
    """Return the files of an option. Raises `invalid` for an entry that does not identify a file.

    :param place: name of the option
    """
    return [_file(f"{place}[{number}]", entry) for number, entry in enumerate(entries)]


def known_keys(
    place: str, options: type[Keys], values: Mapping[str, Any]
) -> tuple[Keys, dict[str, Any]]:
    """Check an entry that may have unknown keys; return its parsed options and the unknown keys.

    Raises `invalid` for an unknown key that resembles a known key.

    :param place: location of the entry in the options, such as `modules[0]`
    :param options: dataclass of the known keys
    """
    kind: type = options
    spec = argument_spec(kind)
    further = {str(name): value for name, value in values.items() if name not in spec}
    for name in further:
        near = difflib.get_close_matches(name.lower(), spec, 1, cutoff=_SIMILARITY)
        if near:
            raise invalid(f"{place}.{name} is unknown: did you mean {near[0]}?")
    known = {name: value for name, value in values.items() if name in spec}
    checked = check_options(spec, known, Place(place))
    return parse(options, checked), further


def recorded_files(
    place: str, options: type[PublishedFileOptions], entries: Sequence[Mapping[str, Any]]
) -> list[PublishedFile]:
    """Return the files of an option whose entries may be copied from an existing build record.

    There a dependency has an `id` instead of a `name`. An artifact has a `path` without a
    repository; such a file need not exist on this server.
    """
    found = []
    for number, entry in enumerate(entries):
        inside, known, path = f"{place}[{number}]", given(entry), None
        is_kept = options is UsedFileOptions and "id" in known
        if is_kept:
            known["name"] = known.pop("id")
        if known.get("repo") is None and known.get("name") and any(map(known.get, _DIGITS)):
            path = known.pop("path", None)
        file, further = known_keys(inside, options, known)
        further |= {} if path is None else {"path": path}
        found.append(replace(_file(inside, file, is_kept=is_kept), further=further))
    return found


def given(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an entry of a record without empty strings, also in its lists."""
    return {
        name: [item for item in value if item != ""] if isinstance(value, list) else value
        for name, value in entry.items()
        if value != ""
    }


def _file(place: str, entry: PublishedFileOptions, *, is_kept: bool = False) -> PublishedFile:
    """Return the file of an entry.

    :param is_kept: see :class:`PublishedFile`
    """
    digests: dict[str, str] = {}
    for option, digits in _DIGITS.items():
        value = getattr(entry, option) or ""
        if value and re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", value) is None:
            raise invalid(f"{place}.{option} is '{value}', but must be {digits} hexadecimal digits")
        if value:
            digests[option] = value.lower()
    scopes = (entry.scopes or ()) if isinstance(entry, UsedFileOptions) else ()
    if entry.action in _GONE:
        raise invalid(f"{place}.action is '{entry.action}': a build cannot contain deleted files")
    refuse_matrix(f"{place}.path", entry.path or "")
    if entry.repo and entry.path:
        path = join(*segments(entry.path, f"{place}.path"))
        name = entry.name or path.rpartition("/")[2]
        repo = repository_key(f"{place}.repo", entry.repo)
        return PublishedFile(place, name, entry.type or None, digests, repo, path, scopes)
    if entry.repo or entry.path:
        raise invalid(f"{place} has only one of repo and path: set both")
    if not entry.name or not (digests or is_kept):
        raise invalid(
            f"{place} does not identify a file: set repo and path, or set name with sha1 or sha256"
        )
    kind = entry.type or None
    return PublishedFile(place, entry.name, kind, digests, scopes=scopes, is_kept=is_kept)


def with_digests(client: RepoClient, files: Sequence[PublishedFile]) -> list[PublishedFile]:
    """Return the files, completed with the digests that the server reports.

    Raises `not_found` if items are missing, `conflict` if a digest differs from the options.
    """
    # the newest snapshots that the server has renamed have other paths
    folders: dict[tuple[str, str], list[str]] = {}
    for file in files:
        if may_be_renamed(file.path) and not listing.predicted(client, file.repo, file.path):
            folders.setdefault((file.repo, file.path.rpartition("/")[0]), []).append(file.path)
    renamed: dict[tuple[str, str], str] = {}
    for (repo, folder), paths in folders.items():
        found = stored_paths(paths, listing.listing(client, repo, folder) or {})
        renamed |= {(repo, path): stored for path, stored in found.items()}
    files = [
        file
        if (path := renamed.get((file.repo, file.path))) is None
        # a name that was not given is that of the path
        else replace(file, path=path, name=path.rpartition("/")[2])
        if file.name == file.path.rpartition("/")[2]
        else replace(file, path=path)
        for file in files
    ]
    items = [file for file in files if file.is_item]
    stored = {
        (repo, path): item
        for repo in dict.fromkeys(file.repo for file in items)
        for path, item in _stored(
            client, repo, list(dict.fromkeys(file.path for file in items if file.repo == repo))
        ).items()
    }
    missing = [file for file in items if not stored[file.repo, file.path]]
    if missing:
        repositories.require(client, sorted({file.repo for file in missing}))
        named = shorten(", ".join(f"'{file.item}' ({file.place})" for file in missing), 500)
        raise not_found(f"nothing was published: {len(missing)} files do not exist: {named}")
    return [_completed(file, stored.get((file.repo, file.path))) for file in files]


def _stored(client: RepoClient, repo: str, paths: Sequence[str]) -> dict[str, StoredItem | None]:
    """Return the items of a repository by path; `None` for missing items.

    Many items are read with a single listing if it contains digests.
    """
    listed: Mapping[str, StoredItem] | None = None
    predicted = {path: listing.predicted(client, repo, path) for path in paths}
    folder = common_folder(paths)
    if len(paths) >= _WORTH_A_LISTING and folder:
        listed = listing.listing(client, repo, folder, deep=True)
    known = {path: item for path, item in (listed or {}).items() if item.sha1 and path in paths}
    known |= {path: item for path, item in predicted.items() if item is not None}
    unknown = [path for path in paths if path not in known]
    checks = first_alone(
        client.connections, lambda path: listing.expected(client, repo, path), unknown
    )
    return {**known, **dict(zip(unknown, checks, strict=True))}


def _completed(file: PublishedFile, stored: StoredItem | None) -> PublishedFile:
    if stored is None:
        return file
    reported = without_none({"sha1": stored.sha1, "sha256": stored.sha256})
    if not reported:
        raise rejected(
            f"nothing was published: the server reports no digests for '{file.item}'"
            f" ({file.place}): the path is a folder, or the option dialect is wrong"
        )
    for name, value in file.digests.items():
        if reported.get(name, value) != value:
            raise conflict(
                f"nothing was published: '{file.item}' ({file.place}) has the {name}"
                f" {reported[name]},"
                f" not {value}"
            )
    return replace(file, digests={**file.digests, **reported})


def as_recorded(file: PublishedFile, *, used: bool = False) -> dict[str, Any]:
    """Return the file in the format of a build record [repo-29].

    :param used: whether it is a dependency; otherwise it is an artifact
    """
    _stem, dot, suffix = file.name.rpartition(".")
    default = None if file.is_kept else suffix if dot and suffix else "file"
    kind, further = without_none({"type": file.type or default}), dict[str, Any]()
    if used and file.scopes:
        further = {"scopes": list(file.scopes)}
    elif not used and file.is_item:
        further = {"path": file.path, "originalDeploymentRepo": file.repo}
    name = {"id" if used else "name": file.name}
    return {**file.further, **name, **kind, **file.digests, **further}


@dataclass(frozen=True)
class PublishedModuleOptions:
    """The known keys of an entry of `modules`; other keys are copied to the record unchanged."""

    id: str
    type: str | None = None
    artifacts: list[dict[str, Any]] | None = None
    dependencies: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class BuildModule:
    """A module of a build record with its files.

    :param further: other keys, which are copied to the record unchanged
    """

    id: str
    type: str
    artifacts: Sequence[PublishedFile]
    dependencies: Sequence[PublishedFile]
    further: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[PublishedFile]:
        return [*self.artifacts, *self.dependencies]

    def as_dict(self, known: Mapping[str, PublishedFile]) -> dict[str, Any]:
        """Return the module in the format of a build record.

        :param known: files with their digests, by their location in the options
        """
        used = [as_recorded(known[file.place], used=True) for file in self.dependencies]
        artifacts = [as_recorded(known[file.place]) for file in self.artifacts]
        parts = {"artifacts": artifacts, "dependencies": used}
        named = {**self.further, "id": self.id, "type": self.type}
        return named | {k: v for k, v in parts.items() if v}


def modules_of(
    entries: Sequence[Mapping[str, Any]], values: PublicValues, task: Task
) -> list[BuildModule]:
    """Return the modules of the option `modules`, without secrets in their properties.

    Raises `invalid` if two modules have the same id, or if no module has files.
    """
    found: dict[str, BuildModule] = {}
    for number, entry in enumerate(entries):
        place = f"modules[{number}]"
        module, further = known_keys(place, PublishedModuleOptions, given(entry))
        if "properties" in further:
            public = values.properties(f"{place}.properties", further["properties"])
            further["properties"] = public
        if module.id in found:
            raise invalid(f"{place}.id: another module already has the id '{module.id}'")
        found[module.id] = BuildModule(
            module.id,
            module.type or "generic",
            recorded_files(f"{place}.artifacts", PublishedFileOptions, module.artifacts or ()),
            recorded_files(f"{place}.dependencies", UsedFileOptions, module.dependencies or ()),
            further,
        )
    empty = [
        number
        for number, module in enumerate(found.values())
        # a module that refers to another build has no files [repo-35]
        if not module.files and module.type != "build"
    ]
    for number in empty:
        message = f"modules[{number}] lists no files, so it cannot be promoted"
        if len(empty) == len(found):  # any existing record would match
            raise invalid(f"{message}; set artifacts or dependencies")
        task.warn(message)
    return list(found.values())
