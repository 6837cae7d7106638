# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize files by their paths: Maven snapshots, signatures and checksums, which belong to other
files [repo-36], and files that the server computes from others [repo-37].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from ...core.times import moment_of
from .. import repositories
from ..client import RepoClient
from .listing import StoredItem

CHECKSUMS = (".md5", ".sha1", ".sha256", ".sha512")
#: Suffixes of files that belong to the file without the suffix.
DEPENDANTS = (".asc", ".sig", ".prov", *CHECKSUMS)
#: Matches the file name of a snapshot.
_NAME = re.compile(
    r"(?P<start>.+-)(?:(?P<time>\d{8}\.\d{6})-(?P<number>\d+)|SNAPSHOT)(?P<rest>[-.].+)", re.DOTALL
)
_FOLDER = re.compile(r"(?P<group>(?:.+/)?)(?P<artifact>[^/]+)/(?P<base>[^/]+)-SNAPSHOT", re.DOTALL)
#: Index files by the package type of the repository.
_INDEXES = {
    "conan": re.compile(r"(?:.*/)?(?:index\.json|\.timestamp)", re.DOTALL),
    "helm": re.compile(r"(?:.*/)?index\.yaml", re.DOTALL),
    # packages may be stored in these folders, too
    "rpm": re.compile(r"(?:.*/)?repodata/.*(?<!\.rpm)", re.DOTALL),
    "debian": re.compile(r"dists/.*(?<!deb)", re.DOTALL),
    "npm": re.compile(r"\.npm/.*", re.DOTALL),
    "pypi": re.compile(r"\.pypi/.*", re.DOTALL),
}
#: Older servers call the type of RPM repositories `yum`.
_INDEXES["yum"] = _INDEXES["rpm"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file of a snapshot.

    :param start: path up to the version, such as `g/a/1-SNAPSHOT/a-1-`
    :param time: timestamp of a unique snapshot, such as `20240102.030405`; "" for `SNAPSHOT`
    :param number: build number of a unique snapshot
    :param rest: classifier and extension, such as `-sources.jar`
    """

    start: str
    time: str
    number: int
    rest: str

    @property
    def version(self) -> tuple[str, str, int]:
        """Return the key of the version to which the file belongs."""
        return self.start, self.time, self.number

    @property
    def is_main(self) -> bool:
        """Return whether the file has no classifier and is no signature or checksum."""
        return self.rest.startswith(".") and not self.rest.endswith(DEPENDANTS)

    @property
    def deployed_as(self) -> str:
        """Return the path to which clients deploy the file before the server renames it."""
        return f"{self.start}SNAPSHOT{self.rest}"

    @property
    def release(self) -> str | None:
        """Return the path of its release, such as `g/a/1/a-1`; `None` outside of a Maven layout."""
        folder, _slash, name = self.start.rpartition("/")
        release = release_of_folder(folder)
        fits = release is not None and release.rpartition("/")[2] == name.removesuffix("-")
        return release if fits else None


def snapshot_of(path: str) -> Snapshot | None:
    """Return the snapshot to which a file belongs by its name; `None` for another file."""
    folder, slash, name = path.rpartition("/")
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    start = f"{folder}{slash}{found['start']}"
    return Snapshot(start, found["time"] or "", int(found["number"] or 0), found["rest"])


def release_of_folder(folder: str) -> str | None:
    """Return the path of the release of a snapshot folder, such as `g/a/1/a-1` for
    `g/a/1-SNAPSHOT`; `None` for another folder.
    """
    found = _FOLDER.fullmatch(folder)
    if found is None:
        return None
    artifact, base = found["artifact"], found["base"]
    return f"{found['group']}{artifact}/{base}/{artifact}-{base}"


def release_of_file(path: str) -> str | None:
    """Return the path of the release to which a file belongs, such as `g/a/1/a-1` for
    `g/a/1/a-1-sources.jar`; `None` for another file.
    """
    folder, _slash, name = path.rpartition("/")
    above, _slash, version = folder.rpartition("/")
    start = f"{above.rpartition('/')[2]}-{version}"
    fits = name.startswith((f"{start}.", f"{start}-")) and not name.endswith(CHECKSUMS)
    return f"{folder}/{start}" if fits else None


def owner_of(path: str, existing: Container[str]) -> str | None:
    """Return the existing file to which a signature or checksum belongs; `None` without one.

    The owner of a checksum of a signature is the signed file.
    """
    found, owner = None, path
    while owner.endswith(DEPENDANTS):
        owner = owner.rpartition(".")[0]
        if owner in existing:
            found = owner
    return found


def may_be_renamed(path: str) -> bool:
    """Return whether a server may store a file that is deployed to a path under another name."""
    found = snapshot_of(path) if "SNAPSHOT" in path else None
    return found is not None and not found.time and found.release is not None


def stored_paths(paths: Iterable[str], listed: Mapping[str, StoredItem]) -> dict[str, str]:
    """Return the paths of renamed files, by the path to which they were deployed.

    Of several snapshots, the newest counts, also if it has kept its name.

    :param listed: the items in the folders of the paths
    """
    wanted = {path for path in paths if may_be_renamed(path)}
    newest: dict[str, tuple[str, int, str]] = {}
    for path in listed if wanted else ():
        file = snapshot_of(path)
        if file is not None and file.time and file.deployed_as in wanted:
            known = newest.get(file.deployed_as, ("", 0, ""))
            newest[file.deployed_as] = max(known, (file.time, file.number, path))
    found = {}
    for path, (time, _number, stored) in newest.items():
        unique = unique_time(time)
        modified = moment_of(listed[path].modified) if path in listed else None
        if path not in listed or (unique and modified and modified < unique):
            found[path] = stored
    return found


def unique_time(time: str) -> datetime | None:
    """Parse the timestamp of a unique snapshot; return `None` if it is no valid time."""
    try:
        return datetime.strptime(time, "%Y%m%d.%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def index_test(client: RepoClient, repo: str) -> Callable[[str], bool]:
    """Return a function that tests whether the server computes the file at a path as an index.

    The package type is only read for a path that is an index in some type of repository.
    """
    kinds: list[str] = []

    def is_index(path: str) -> bool:
        if path.rpartition("/")[2] == "maven-metadata.xml":
            return True
        if not any(index.fullmatch(path) for index in _INDEXES.values()):
            return False
        if not kinds:
            kinds.append(repositories.package_type(client, repo) or "")
        index = _INDEXES.get(kinds[0])
        return index is not None and index.fullmatch(path) is not None

    return is_index


def is_checksum(path: str, known: Container[str]) -> bool:
    """Return whether a file is the checksum file of a known file."""
    return path.endswith(CHECKSUMS) and path.rpartition(".")[0] in known


def owners_of(paths: Iterable[str]) -> set[str]:
    """Return the paths of the files to which checksum files would belong."""
    return {path.rpartition(".")[0] for path in paths if path.endswith(CHECKSUMS)}


def left_out(client: RepoClient, paths: Collection[str], doing: str) -> None:
    """Warn of computed files that a task leaves out.

    :param doing: what the task does not do with them, such as `sent`
    """
    if paths:
        first, more = min(paths), f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        client.warn(
            f"not {doing}, because the server computes such files from others: {len(paths)}"
            f" ('{first}'{more})"
        )
