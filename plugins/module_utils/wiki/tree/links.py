# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve links and images of a file to pages of the tree, attachments or addresses."""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from ..markdown.attachment_names import AttachmentNames
from ..markdown.document import target_key
from ..markdown.targets import LinkTarget, is_external, no_target
from .source_files import ROOT, SourceFile, SourceFolder

_MISSING = "does not exist in src"


@dataclass(frozen=True)
class ResolvedLink:
    """Target of a link: the key of a page or the path of another file, and the fragment."""

    page: str | None
    file: str | None
    fragment: str


class FolderLinks:
    """Resolve links to the pages and files of a folder.

    :param base: address of the root of the repository, for links to its other files
    """

    def __init__(self, folder: SourceFolder, base: str | None = None) -> None:
        self._folder, self._keys, self._base = folder, folder.keys_of_paths, base
        self._prefix = _path_in_repository(folder.root)
        #: The option that helps against a link without a target.
        self.remedy = "link_base" if base is None else "broken_links to warn"

    def find(self, page: SourceFile, address: str) -> ResolvedLink | None:
        """Return the target of a link on `page`, or None if the folder has no such file."""
        path, fragment = _split(address)
        if path == "":
            return ResolvedLink(page.key, None, unquote(fragment))
        target = _joined(page, path)
        folder = ROOT if target == "." else f"{target}/"
        key = self._keys.get(target) or (folder if folder in self._folder.pages else None)
        file = target if key is None and target in self._folder.files else None
        return None if key is None and file is None else ResolvedLink(key, file, unquote(fragment))

    def elsewhere(self, page: SourceFile, address: str) -> str | None:
        """Return the absolute address of a link to a file of the repository that is not published.

        None for a file that is missing in `src`, above the repository, or without a base. A path
        that starts with a slash starts at the root of the repository.
        """
        path, fragment = _split(address)
        is_outside = path[0] == "/" or _joined(page, path).split("/")[0] == ".."
        file = os.path.join(self._folder.root, _joined(page, path))
        if self._base is None or not (is_outside or os.path.exists(file)):
            return None
        root = "" if path[0] == "/" else self._prefix
        target = posixpath.normpath(posixpath.join(root, _joined(page, path)))
        if target.split("/")[0] == "..":
            return None
        ending = "/" if path.endswith("/") else ""
        shown = f"{self._base.rstrip('/')}/{quote('' if target == '.' else target)}{ending}"
        return f"{shown}#{fragment}" if fragment else shown


def _split(address: str) -> tuple[str, str]:
    """Return the path of an address in Unicode NFC, and its fragment."""
    path, _hash, fragment = address.partition("#")
    return unicodedata.normalize("NFC", unquote(path.partition("?")[0])), fragment


def _joined(page: SourceFile, path: str) -> str:
    """Return a path of a page below the folder, which may start with `..`."""
    below = posixpath.dirname(page.path) if path[0] != "/" else ""
    return posixpath.normpath(posixpath.join(below, path.lstrip("/")))


def _path_in_repository(folder: str) -> str:
    """Return the path of a folder in its Git repository. Empty if it is in none."""
    root = folder
    while not os.path.exists(os.path.join(root, ".git")):
        if root == os.path.dirname(root):
            return ""
        root = os.path.dirname(root)
    return os.path.relpath(folder, root).replace(os.sep, "/")


@dataclass
class PageLinks:
    """Resolve the links of a page.

    :param titles: titles of the pages by key
    :param targets: ids of the targets on Markdown pages, by key of the page and of the target. A
        target that is not on the page, because it became the title, is empty.
    :param problem: reports a link or an image without a target, which becomes text
    :param report: reports a missing heading, or content that is not converted
    """

    page: SourceFile
    folder_links: FolderLinks
    titles: Mapping[str, str]
    targets: Mapping[str, Mapping[str, str]]
    problem: Callable[[str], None]
    report: Callable[[str], None]
    names: AttachmentNames = field(default_factory=AttachmentNames)

    def link(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        target = self.folder_links.find(self.page, address)
        if target is None:
            there = self.folder_links.elsewhere(self.page, address)
            if there is not None:
                return LinkTarget("address", there)
            cure = f"correct it, or set {self.folder_links.remedy}"
            self.problem(
                f"{self.page.place}:{line}: the target of the link '{address}' {_MISSING}: {cure}"
            )
            return LinkTarget("text", "")
        if target.file is not None:
            return LinkTarget("file", self.names.name(target.file))
        key = target.page or ROOT
        anchor = self._anchor(key, target.fragment, line)
        is_here = key == self.page.key and anchor
        return LinkTarget("page", "" if is_here else self.titles.get(key, ""), anchor)

    def image(self, address: str, line: int) -> LinkTarget:
        if is_external(address):
            return LinkTarget("address", address)
        target = self.folder_links.find(self.page, address)
        if target is None or target.file is None:
            self.problem(f"{self.page.place}:{line}: the image '{address}' {_MISSING}")
            return LinkTarget("text", "")
        return LinkTarget("file", self.names.name(target.file))

    def warn(self, problem: str, line: int) -> None:
        """Report content that is not converted."""
        self.report(f"{self.page.place}:{line}: {problem}")

    def _anchor(self, key: str, fragment: str, line: int) -> str:
        known = self.targets.get(key)
        if fragment == "" or known is None:
            return fragment
        anchor = known.get(target_key(fragment))
        if anchor is None and target_key(fragment) != "top":
            self.warn(f"{no_target(fragment)} page instead", line)
        return anchor or ""
