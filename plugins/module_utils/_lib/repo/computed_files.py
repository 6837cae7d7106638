# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize files that the server computes from other files [repo-37]."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable

from . import layouts, repositories
from .client import RepoClient

_METADATA = "maven-metadata.xml"
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


def index_test(client: RepoClient, repo: str) -> Callable[[str], bool]:
    """Return a function that tests whether the server computes the file at a path as an index.

    The package type is only read for a path that is an index in some type of repository.
    """
    kinds: list[str] = []

    def is_index(path: str) -> bool:
        if path.rpartition("/")[2] == _METADATA:
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
    return path.endswith(layouts.CHECKSUMS) and path.rpartition(".")[0] in known


def owners_of(paths: Iterable[str]) -> set[str]:
    """Return the paths of the files to which checksum files would belong."""
    return {path.rpartition(".")[0] for path in paths if path.endswith(layouts.CHECKSUMS)}


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
