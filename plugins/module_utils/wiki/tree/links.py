# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve links and images of a file to pages of the tree, attachments or addresses."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from ..markdown.attachment_names import AttachmentNames
from ..markdown.document import target_key
from ..markdown.targets import LinkTarget, is_external, no_target
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
        path = unicodedata.normalize("NFC", unquote(path.partition("?")[0]))
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
    :param targets: ids of the targets on Markdown pages, by key of the page and of the target. A
        target that is not on the page, because it became the title, is empty.
    :param problem: reports a link without a target
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
            self.problem(
                f"{self.page.place}:{line}: the target of the link '{address}' does not exist"
            )
            return LinkTarget("address", address)
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
            self.problem(f"{self.page.place}:{line}: the image '{address}' does not exist")
            return LinkTarget("address", address)
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
