# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize files that the server computes from other files [repo-37]."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

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


def computed_files(
    paths: Collection[str], existing: Collection[str], is_index: Callable[[str], bool]
) -> set[str]:
    """Return the paths that the server computes: index files, and checksums of known files.

    :param existing: paths of the files whose checksums the server computes
    """
    known = {*paths, *existing}
    return {
        path
        for path in paths
        if is_index(path) or (path.endswith(layouts.CHECKSUMS) and path.rpartition(".")[0] in known)
    }
