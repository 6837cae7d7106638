# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve links and images of a file to pages of the tree, attachments or addresses."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from ..markdown.converter import LinkTarget, is_external
from .source_files import ROOT, SourceFile, SourceFolder


@dataclass(frozen=True)
class ResolvedLink:
    """Target of a link: the key of a page or the path of another file, and the fragment."""

    page: str | None
    file: str | None
    fragment: str


class FolderLinks:
    """Resolve links to the pages and files of a folder."""

    def __init__(self, folder: SourceFolder) -> None:
        self._folder, self._keys = folder, folder.keys_of_paths

    def find(self, page: SourceFile, address: str) -> ResolvedLink | None:
        """Return the target of a link on `page`, or None if the folder has no such file."""
        path, _hash, fragment = address.partition("#")
        path = unquote(path.partition("?")[0])
        if path == "":
            return ResolvedLink(page.key, None, unquote(fragment))
        below = posixpath.dirname(page.path) if path[0] != "/" else ""
        target = posixpath.normpath(posixpath.join(below, path.lstrip("/")))
        folder = ROOT if target == "." else f"{target}/"
        key = self._keys.get(target) or (folder if folder in self._folder.pages else None)
        file = target if key is None and target in self._folder.files else None
        return None if key is None and file is None else ResolvedLink(key, file, unquote(fragment))


@dataclass
class PageLinks:
    """Resolve the links of a page.

    :param titles: titles of the pages by key
    :param anchors: slugs of the headings of Markdown pages, by key
    :param problem: reports a link without a target
    :param warn: reports a missing heading or footnote
    """

    page: SourceFile
    folder_links: FolderLinks
    titles: Mapping[str, str]
    anchors: Mapping[str, frozenset[str]]
    problem: Callable[[str], None]
    warn: Callable[[str], None]
    #: Path of each attached file below the folder, by attachment name.
    files: dict[str, str] = field(default_factory=dict)

    def link(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        target = self.folder_links.find(self.page, address)
        if target is None:
            self.problem(
                f"{self.page.place}:{line}: the target of the link '{address}' does not exist"
            )
            return LinkTarget("address", address)
        if target.file is not None:
            return LinkTarget("file", self.attach(target.file))
        key = target.page or ROOT
        anchor = self._anchor(key, target.fragment, line)
        is_here = key == self.page.key and anchor
        return LinkTarget("page", "" if is_here else self.titles.get(key, ""), anchor)

    def image(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        target = self.folder_links.find(self.page, address)
        if target is None or target.file is None:
            self.problem(f"{self.page.place}:{line}: the image '{address}' does not exist")
            return LinkTarget("address", address)
        return LinkTarget("file", self.attach(target.file))

    def missing_footnote(self, name: str, line: int) -> None:
        """Warn about a footnote without a definition."""
        self.warn(f"{self.page.place}:{line}: the footnote '{name}' is not defined")

    def attach(self, path: str) -> str:
        """Attach a file. Return its name, which contains the folders if another file has it."""
        name = posixpath.basename(path)
        taken = {attached.lower(): other for attached, other in self.files.items()}
        if taken.get(name.lower(), path) != path:
            name = path.replace("/", "_")
        self.files[name] = path
        return name

    def _anchor(self, key: str, fragment: str, line: int) -> str:
        known = self.anchors.get(key)
        if fragment == "" or known is None or fragment in known:
            return fragment
        self.warn(
            f"{self.page.place}:{line}: there is no heading '#{fragment}'; the link leads to the"
            " page instead"
        )
        return ""
