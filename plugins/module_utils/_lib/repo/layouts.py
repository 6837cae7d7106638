# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize Maven snapshots, signatures and checksums by their paths [repo-36]."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

CHECKSUMS = (".md5", ".sha1", ".sha256", ".sha512")
#: Suffixes of files that belong to the file without the suffix.
DEPENDANTS = (".asc", ".sig", ".prov", *CHECKSUMS)
#: Matches the file name of a snapshot.
_NAME = re.compile(
    r"(?P<start>.+-)(?:(?P<time>\d{8}\.\d{6})-(?P<number>\d+)|SNAPSHOT)(?P<rest>[-.].+)", re.DOTALL
)
_FOLDER = re.compile(r"(?P<group>(?:.+/)?)(?P<artifact>[^/]+)/(?P<base>[^/]+)-SNAPSHOT", re.DOTALL)


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
