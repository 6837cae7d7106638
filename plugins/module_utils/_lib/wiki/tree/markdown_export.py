# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the pages of an exported tree as Markdown.

The files are read like those of `wiki_tree`. A page that would differ stays in storage format.
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ansible.module_utils.common.yaml import yaml_dump

from ...core.errors import ToolchainError
from ...core.operations.export_folder import FileContent
from ..formats.comparison import alike
from ..formats.document import anchors_of, parse_markdown, title_of
from ..formats.markdown_writer import Context, heading_text, markdown_of
from ..formats.parser import parse
from ..page import Page
from .source_files import TreeOptions, read_folder
from .wanted_pages import WantedPage, WantedPages, title_key

_WIDTH = 1_000_000
#: Names of attachments that are safe file names on every system.
SAFE = re.compile(
    r"(?!(?:con|prn|aux|nul|(?:com|lpt)\d)\.)[^\W_][\w ()+.-]{0,90}"
    r"\.(?!(?:md|markdown|mdx|xml|ya?ml|json)$)\w{1,10}",
    re.IGNORECASE,
)
_PROBLEM = re.compile(r"(?P<path>.*?):\d+: (?P<reason>.*)", re.DOTALL)


def natural_names(listed: Mapping[str, str | None], taken: set[str]) -> dict[str, str]:
    """Return the new name of each attachment's file that can have the name of the attachment.

    :param listed: file names by attachment name
    :param taken: file names of the tree so far, which are unique without regard to case; updated
    """
    found: dict[str, str] = {}
    for name, file in listed.items():
        is_plain = SAFE.fullmatch(name) and unicodedata.normalize("NFC", name) == name
        if file is not None and is_plain and name.casefold() not in taken:
            found[file] = name
        if file is not None:
            taken.add(found.get(file, file).casefold())
    return found


@dataclass(frozen=True)
class MarkdownPage:
    """A page to write.

    `path`: of its file in storage format. `listed`: file by attachment name; None if not managed.
    """

    page: Page
    path: str
    labels: tuple[str, ...] | None
    listed: Mapping[str, str | None]

    @property
    def body(self) -> str:
        return self.page.body or ""

    @property
    def title(self) -> str:
        return " ".join(self.page.title.split())


@dataclass
class MarkdownTree:
    """The pages of a tree, which are written as Markdown as far as that holds them.

    `pages`: by id. `files`: content of the files in storage format and of the attachments.
    `attachments`: whether attachments are managed.
    `leave_out`: reports a page that stays in storage format, with the reason.
    """

    pages: Mapping[str, MarkdownPage]
    files: Mapping[str, str | FileContent]
    space: str
    attachments: bool
    leave_out: Callable[[str, str], None]
    _stored: dict[str, str] = field(default_factory=dict)

    def written(self) -> dict[str, str | FileContent]:
        """Return the content of all files."""
        while True:
            files = self._files()
            failures = self._failures(files)
            if not failures:
                break
            self._stored.update(failures)
        for page_id, reason in self._stored.items():
            self.leave_out(self.pages[page_id].title, reason)
        return files

    def _path(self, page_id: str) -> str:
        path = self.pages[page_id].path
        return path if page_id in self._stored else f"{path.removesuffix('.xml')}.md"

    def _files(self) -> dict[str, str | FileContent]:
        bodies = {key: parse(page.body) for key, page in self.pages.items()}
        ids = {page.title: key for key, page in self.pages.items()}
        linked: dict[str, set[str]] = {}
        anchors = {key: set(anchors_of(tree)) for key, tree in bodies.items()}
        for key, tree in bodies.items():
            links = (one for one in tree.walk() if one.name == "ac:link")
            for link in links if key not in self._stored else ():
                titles = [one.attributes.get("ri:content-title", "") for one in link.elements]
                target = next((ids[title] for title in titles if title in ids), key)
                linked.setdefault(target, set()).add(link.attributes.get("ac:anchor", ""))
        files = dict(self.files)
        for key, page in self.pages.items():
            if key not in self._stored:
                del files[page.path]
                addresses = _Addresses(self, key, ids, anchors)
                files[self._path(key)] = _text(page, addresses, self.space, linked.get(key, set()))
        return files

    def _failures(self, files: Mapping[str, str | FileContent]) -> dict[str, str]:
        """Return the pages that would become others, with the reasons."""
        ids = {self._path(key): key for key in self.pages}
        home = posixpath.dirname(min(ids, key=lambda path: path.count("/")))
        below = {posixpath.relpath(path, home): key for path, key in ids.items()}
        markdown = [key for key in self.pages if key not in self._stored]
        with tempfile.TemporaryDirectory() as folder:
            for path, content in files.items():
                file = os.path.join(folder, *posixpath.relpath(path, home).split("/"))
                os.makedirs(os.path.dirname(file), exist_ok=True)
                with open(file, "w", encoding="utf-8", newline="") as stream:
                    stream.write(content if isinstance(content, str) else "")
            options = TreeOptions(folder, self.space, attachments=self.attachments)
            try:
                wanted = WantedPages(read_folder(folder, []), options, lambda text: None).all()
            except ToolchainError as error:
                found = {}
                for problem in error.result.get("problems", ()):
                    parts = _PROBLEM.fullmatch(str(problem))
                    if parts is not None and below.get(parts["path"]) in markdown:
                        found[below[parts["path"]]] = f"as Markdown, {parts['reason']}"
                return found or dict.fromkeys(markdown, error.message)
        read = {below[one.source.path]: one for one in wanted if one.source.path in below}
        reasons = {key: self._difference(self.pages[key], read.get(key)) for key in markdown}
        return {key: reason for key, reason in reasons.items() if reason is not None}

    def _difference(self, page: MarkdownPage, wanted: WantedPage | None) -> str | None:
        """Return why a file would become another page, or None."""
        if wanted is None or title_key(wanted.title) != title_key(page.title):
            return "Markdown cannot hold its title"
        if wanted.labels is not None and sorted(wanted.labels) != sorted(page.labels or ()):
            return "Markdown cannot hold its labels"
        if not alike(page.body, wanted.body, self.space, flowing=True):
            return "Markdown cannot hold its body"
        files = {name: os.path.basename(file) for name, file in wanted.files.items()}
        if self.attachments and files != {k: v for k, v in page.listed.items() if v is not None}:
            return "Markdown cannot hold its attachments"
        return None


@dataclass(frozen=True)
class _Addresses:
    """The addresses of the pages of a tree, and of the attachments of a page.

    `ids`: ids of the pages by title. `anchors`: anchors on the pages, by id.
    """

    tree: MarkdownTree
    key: str
    ids: Mapping[str, str]
    anchors: Mapping[str, set[str]]

    def page(self, title: str, anchor: str) -> str | None:
        target = self.ids.get(title)
        if target is None or (anchor and anchor not in self.anchors[target]):
            return None
        path = self._relative(self.tree._path(target))
        return f"{path}#{quote(anchor)}" if anchor else path

    def file(self, name: str) -> str | None:
        page = self.tree.pages[self.key]
        file = page.listed.get(name)
        return None if file is None else quote(file)

    def _relative(self, path: str) -> str:
        here = posixpath.dirname(self.tree.pages[self.key].path)
        return quote(posixpath.relpath(path, here))


def _text(page: MarkdownPage, addresses: _Addresses, space: str, linked: set[str]) -> str:
    """Return the content of a file. Its front matter has what the text does not show."""
    heading = parse_markdown(f"# {heading_text(page.title)}\n").title()
    has_heading = heading is not None and title_of(heading) == page.title
    context = Context(addresses, space, linked, page.title if has_heading else None)
    body = markdown_of(page.body, context)
    head: dict[str, Any] = {} if has_heading else {"title": page.title}
    if page.labels:
        head["labels"] = list(page.labels)
    shown = _targets(body)
    files = {
        name: file
        for name, file in page.listed.items()
        if file is None or file != name or quote(file) not in shown
    }
    if files:
        head["attachments"] = files
    front = f"---\n{yaml_dump(head, allow_unicode=True, width=_WIDTH, sort_keys=False)}---\n\n"
    title = f"# {heading_text(page.title)}\n\n" if has_heading else ""
    return f"{front if head else ''}{title}{body}".rstrip("\n") + "\n"


def _targets(text: str) -> set[str]:
    """Return the addresses of the links and images in a text."""
    document = parse_markdown(text)
    images = (one for tree in (document.tree, *document.footnotes.values()) for one in tree.walk())
    sources = {one.attributes["src"] for one in images if "src" in one.attributes}
    return {*document.links(), *sources}
