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
class LinkedPlace:
    """Target of a link: the key of a page, or the path of another file."""

    page: str | None
    file: str | None
    fragment: str


class Places:
    """Resolve links to pages and files of the folder, without disk access."""

    def __init__(self, folder: SourceFolder) -> None:
        self._folder, self._keys = folder, folder.keys_of_paths

    def find(self, page: SourceFile, address: str) -> LinkedPlace | None:
        """Return the target; None if it is neither a page nor a file of the folder."""
        path, _hash, fragment = address.partition("#")
        path = unquote(path.partition("?")[0])
        if path == "":
            return LinkedPlace(page.key, None, unquote(fragment))
        below = posixpath.dirname(page.path) if path[0] != "/" else ""
        place = posixpath.normpath(posixpath.join(below, path.lstrip("/")))
        folder = ROOT if place == "." else f"{place}/"
        key = self._keys.get(place) or (folder if folder in self._folder.pages else None)
        file = place if key is None and place in self._folder.files else None
        return None if key is None and file is None else LinkedPlace(key, file, unquote(fragment))


@dataclass
class PageLinks:
    """Resolve the links of a page; a link without a target is reported as a problem.

    :param titles: titles of the pages by key
    :param anchors: names of the headings of Markdown pages, by key
    """

    page: SourceFile
    places: Places
    titles: Mapping[str, str]
    anchors: Mapping[str, frozenset[str]]
    problem: Callable[[str], None]
    warn: Callable[[str], None]
    #: Name of an attachment to the path of its file below the folder.
    files: dict[str, str] = field(default_factory=dict)

    def link(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        place = self.places.find(self.page, address)
        if place is None:
            self.problem(
                f"{self.page.place}:{line}: the target of the link '{address}' does not exist"
            )
            return LinkTarget("address", address)
        if place.file is not None:
            return LinkTarget("file", self.attach(place.file))
        key = place.page or ROOT
        anchor = self._anchor(key, place.fragment, line)
        is_here = key == self.page.key and anchor
        return LinkTarget("page", "" if is_here else self.titles.get(key, ""), anchor)

    def image(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        place = self.places.find(self.page, address)
        if place is None or place.file is None:
            self.problem(f"{self.page.place}:{line}: the image '{address}' does not exist")
            return LinkTarget("address", address)
        return LinkTarget("file", self.attach(place.file))

    def missing_footnote(self, name: str, line: int) -> None:
        """Warn of a footnote without a definition."""
        self.warn(f"{self.page.place}:{line}: the footnote '{name}' is not defined")

    def attach(self, path: str) -> str:
        """Return the attachment name: the file name, or the path if the name is taken."""
        name = posixpath.basename(path)
        taken = {each.lower(): other for each, other in self.files.items()}
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
