# SPDX-License-Identifier: GPL-3.0-or-later
"""Write pages that somebody changed in the wiki into the Markdown files of their tree.

Nothing is written here: the new text of a file is converted with the whole tree, and compared.
"""

from __future__ import annotations

import copy
import filecmp
import os
import posixpath
import re
import tempfile
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

from ...core.errors import ToolchainError, conflict, invalid, shorten
from ...core.line_ends import with_line_ends
from ..formats.comparison import alike
from ..formats.document import anchors_of, parse_markdown, target_key, title_of
from ..formats.front_matter import split_front_matter
from ..formats.markdown_merge import Conflict, Merger, first_difference, is_merge, style_of
from ..formats.markdown_writer import Context, heading_text
from ..formats.markup import attribute
from ..formats.parser import parse
from .markdown_export import SAFE
from .source_files import SourceFolder, TreeOptions, named_attachments, read_folder
from .wanted_pages import PageSource, WantedPage, WantedPages, title_key

_SHOWN = 80
#: A heading behind number signs, with the attributes at its end.
_ATX = re.compile(
    r"(?P<mark>\ufeff? {0,3}#{1,6}[ \t]+).*?(?P<after>([ \t]+#+)?([ \t]+\{[^{}]*\})?[ \t]*)"
)
#: Some editors write it at the begin of a file.
_MARK = "\ufeff"
_PAGE = re.compile(r'(<ri:page [^<>]*?ri:content-title=")([^"]*)("[^<>]*>)')
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")


@dataclass(frozen=True)
class Present:
    """A page of the wiki.

    `title`: its title there. `published`: what its tree saved last, with `source`, the digest of
    the file, and `body`, which is None if that version is gone; None without a mark.
    `attachments`: paths on disk of the contents of its attachments, by name.
    """

    body: str
    space: str
    title: str
    published: Mapping[str, Any] | None = None
    attachments: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed_by(self) -> str:
        """Return who saved the present version; empty if unknown."""
        return str((self.published or {}).get("changed_by") or "")

    def title_for(self, page: WantedPage) -> str:
        """Return the title of the page after the changes of both sides.

        Raises `conflict` if both sides have changed it.
        """
        published = self.published or {}
        saved = " ".join(str(published.get("saved_title") or "").split())
        if self.title in (page.title, saved):
            return page.title
        if published.get("source") == page.source_digest or saved == page.title:
            return self.title
        raise conflict(
            f"{page.source.place}: the title '{self.title}' was changed here and in the wiki:"
            " choose one by hand"
        )

    def base_of(self, page: WantedPage) -> str | None:
        """Return the body that both sides have changed, or None if the file has not changed.

        Raises `conflict` if it is unknown.
        """
        source = (self.published or {}).get("source")
        if source in (None, page.source_digest):
            return None
        body = (self.published or {}).get("body")
        if body is None:
            raise conflict(
                f"{page.source.place} has changed since it was published, and the wiki no longer"
                " has that version: merge it by hand"
            )
        return str(body)


@dataclass
class MarkdownTree:
    """The files of a tree, and the pages that they become.

    :param options: options of the tree, with the path of the folder
    :param renamed: former titles of the pages whose new title was adopted
    :param added: new files by path below the folder, as paths on disk of their contents
    """

    options: TreeOptions
    renamed: dict[str, str] = field(default_factory=dict)
    added: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _converted(self) -> tuple[SourceFolder, WantedPages, dict[str, WantedPage]]:
        options = self.options
        folder = read_folder(options.src, options.exclude, drafts=options.drafts == "publish")
        return folder, *self._pages(folder, {}, {})

    def _pages(
        self, folder: SourceFolder, texts: Mapping[str, str], new: Mapping[str, str]
    ) -> tuple[WantedPages, dict[str, WantedPage]]:
        """Convert a folder, with other texts of some files, and with new files."""
        with tempfile.TemporaryDirectory() as place:
            pages = dict(folder.pages)
            for number, (key, source) in enumerate(folder.pages.items()):
                text = texts.get(source.file or "")
                if text is not None:
                    file = os.path.join(place, str(number))
                    with open(file, "w", encoding="utf-8", newline="") as stream:
                        stream.write(text)
                    pages[key] = replace(source, file=file)
            files = copy.copy(folder.files)
            files.update(new)
            folder = replace(folder, pages=pages, files=files)
            wanted = WantedPages(folder, self.options, lambda text: None)
            return wanted, {page.source.key: page for page in wanted.all()}

    def page(self, title: str) -> WantedPage | None:
        """Return the page of Markdown with a title, or None."""
        _folder, _wanted, pages = self._converted
        found = (page for page in pages.values() if page.title_key == title_key(title))
        page = next(found, None)
        return page if page is not None and page.flows and page.source.file else None

    def file(self, page: WantedPage) -> str:
        """Return the path of the file of a page on disk."""
        return self._file(page.source.key)

    def _file(self, key: str) -> str:
        return str(self._converted[0].pages[key].file)

    def adopted(
        self,
        page: WantedPage,
        own: str,
        present: Present,
        texts: Mapping[str, str],
        with_title: Callable[[str, str], str],
    ) -> tuple[str, dict[str, str]]:
        """Return the text of the file of a page with the changes of the wiki, and its new files.

        The new files are paths below the folder, with the paths on disk of their contents. Raises
        `conflict` if both sides changed a block, and `failed` if the text would become another
        page, or change others.

        :param own: present text of the file
        :param texts: texts of other files that were adopted, by path on disk
        :param with_title: returns a text with a title in its front matter
        """
        place, base = page.source.place, present.base_of(page)
        present = replace(present, title=present.title_for(page))
        if place.lower().endswith(".mdx"):
            raise invalid(f"{place} is MDX: change the file by hand")
        text = own.replace("\r\n", "\n")
        front = len(text) - len(split_front_matter(text).text.lstrip("\n\ufeff"))
        head, content = text[:front], text[front:]
        # the links in the file still have the former titles
        former = {**self.renamed, present.title: page.title}
        body = _relinked(present.body, present.space, former)
        written = None if base is None else _relinked(base, present.space, former)
        try:
            new = self._new_files(page, present)
            merger = self._merger(page, head, content, replace(present, body=body), new)
            merged = head + merger.merged(content, body, written)
        except Conflict as error:
            line = error.line + head.count("\n")
            by = f" by {present.changed_by}" if present.changed_by else ""
            raise conflict(
                f"{place}:{line}: this block was changed here and in the wiki{by}: merge it by hand"
            ) from None
        if present.title != page.title:
            prefix = self.options.title_prefix
            if not present.title.startswith(prefix):
                message = f"the title '{present.title}' does not begin with the title_prefix"
                raise ToolchainError("failed", f"{message} '{prefix}'")
            title = present.title.removeprefix(prefix)
            heading = self._converted[1].sources[page.source.key].heading
            given = split_front_matter(merged)
            if heading is not None:  # it changes too, also if it is left out of the page
                name, document = title_of(heading), parse_markdown(given.text.lstrip(_MARK))
                first = document.title() if given.title is None else next(document.headings(), None)
                lines = merged.split("\n")
                at = first.line - 1 if first is not None and title_of(first) == name else None
                changed = None if at is None else _heading(lines, at, title)
                if at is None or changed is None:
                    message = f"{place}: the heading '{name}' is its title: change it by hand"
                    raise ToolchainError("failed", message)
                lines[at] = changed
                merged = "\n".join(lines)
            if heading is None or given.title is not None:
                merged = with_title(merged, title)
        self._require_same(page, merged, present, texts, new)
        return with_line_ends(merged, own), new

    def _new_files(self, page: WantedPage, present: Present) -> dict[str, str]:
        """Return the new attachments that the page refers to, by path of their file.

        Raises `failed` for a path that a file with another content has.
        """
        folder, wanted, _pages = self._converted
        below = posixpath.dirname(page.source.path)
        used = wanted.sources[page.source.key].links.names.files
        taken = {path.casefold() for path in (*folder.files, *folder.pages, *self.added)}
        found: dict[str, str] = {}
        for name, _element in named_attachments(present.body):
            content = present.attachments.get(name)
            is_safe = SAFE.fullmatch(name) and unicodedata.normalize("NFC", name) == name
            if content is None or name in used or not is_safe:
                continue
            path = posixpath.normpath(posixpath.join(below, name))
            there = self.added.get(path) or os.path.join(os.path.dirname(self.file(page)), name)
            if not os.path.lexists(there) and path.casefold() not in taken:
                found[path] = content
            elif not os.path.isfile(there) or not filecmp.cmp(there, content, shallow=False):
                message = f"{page.source.place}: the new attachment '{name}' would replace {path}"
                raise ToolchainError("failed", f"{message}, which has another content")
        return found

    def _merger(
        self, page: WantedPage, head: str, content: str, present: Present, new: Collection[str]
    ) -> Merger:
        source = self._converted[1].sources[page.source.key]
        body = present.body
        dropped = None if source.heading is None else source.heading.line - head.count("\n")

        def convert(text: str) -> Sequence[tuple[int, str]]:
            document = parse_markdown(text)
            headings = document.headings() if text == content else iter(())
            heading = next((one for one in headings if one.line == dropped), None)
            return source.convert(document, dropped=heading).pieces()

        tree = parse(body)
        links = (one.attributes.get("ac:anchor") for one in tree.walk() if one.name == "ac:link")
        context = Context(
            _Addresses(self._converted, page, source, {*self.added, *new}),
            present.space,
            linked={name for name in links if name},
            style=style_of(content),
            begins=False,
            anchors=[*anchors_of(tree), *source.document.targets.values()],
        )
        notes = page.body[sum(len(piece) for _line, piece in convert(content)) :]
        return Merger(convert, context, notes)

    def _require_same(
        self,
        page: WantedPage,
        text: str,
        present: Present,
        texts: Mapping[str, str],
        new: Mapping[str, str],
    ) -> None:
        """Raise `failed` unless the text becomes the page, and all other pages stay."""
        folder, _wanted, before = self._converted
        place, space, base = page.source.place, present.space, present.base_of(page)
        former = {**self.renamed, present.title: page.title}
        is_renamed = present.title != page.title
        is_alone = not (is_renamed or self.renamed or self.added or new)
        body = self._body_alone(page, text) if is_alone else None
        if body is None:
            try:
                texts = {**texts, self.file(page): text}
                pages = self._pages(folder, texts, {**self.added, **new})[1]
            except ToolchainError as error:
                message = f"{place} cannot hold the page: {error}"
                raise ToolchainError("failed", message) from None
            now = pages[page.source.key]
            if is_renamed and now.title != present.title:
                message = f"{place} cannot hold the title '{present.title}'"
                raise ToolchainError("failed", message)
            body = now.body if now.title == present.title else ""
            known = {page.source.key, *(key for key in pages if self._file(key) in texts)}
            # the wiki itself writes a new title into the links of other pages

            def linked(one: WantedPage) -> WantedPage:
                return replace(one, body=_relinked(one.body, space, former))

            rest = [key for key in pages if key not in known]
            others = [key for key in rest if linked(pages[key]) != linked(before[key])]
            if others:
                other = pages[others[0]].source.place
                message = f"with the change of {place}, {other} would become another page"
                raise ToolchainError("failed", message)
        if base is None:
            is_same = alike(present.body, body, space, flowing=True)
        else:
            titles = {old: new for new, old in former.items()}
            own, base = (_relinked(one, space, titles) for one in (page.body, base))
            is_same = is_merge(own, base, present.body, body, space)
        if not is_same:
            block = shorten(first_difference(present.body, body, space), _SHOWN)
            raise ToolchainError("failed", f"{place} cannot hold the block '{block}'")

    def _body_alone(self, page: WantedPage, text: str) -> str | None:
        """Return the body of a changed file, or None if it may change other pages too."""
        source = self._converted[1].sources[page.source.key]
        document = parse_markdown(split_front_matter(text).text)
        former = source.document
        titles = [one and title_of(one) for one in (former.title(), document.title())]
        is_alone = document.targets == former.targets and titles[0] == titles[1]
        sources = (one.attributes["source"] for one in document.passages())
        is_alone = is_alone and not any(map(named_attachments, sources))
        if not is_alone or sorted(document.links()) != sorted(former.links()):
            return None
        name = source.heading and title_of(source.heading)
        heading = next((one for one in document.headings() if title_of(one) == name), None)
        return source.convert(document, dropped=heading).body()


@dataclass(frozen=True)
class _Addresses:
    """The addresses of pages and attachments in a file."""

    converted: tuple[SourceFolder, WantedPages, dict[str, WantedPage]]
    own: WantedPage
    source: PageSource
    new: Collection[str]

    def page(self, title: str, anchor: str) -> str | None:
        _folder, wanted, pages = self.converted
        key = next((key for key, one in pages.items() if one.title == title), None)
        if key is None:
            return None
        there = wanted.sources.get(key)
        if anchor and there is not None and target_key(anchor) not in there.document.targets:
            return None
        path = self._relative(pages[key].source.path)
        return f"{path}#{quote(anchor)}" if anchor else path

    def file(self, name: str) -> str | None:
        files = self.source.links.names.files
        path = files.get(name, posixpath.join(posixpath.dirname(self.own.source.path), name))
        path = posixpath.normpath(path)
        is_there = path in self.converted[0].files or path in self.new
        return self._relative(path) if is_there else None

    def _relative(self, path: str) -> str:
        ending = "/" if path.endswith("/") else ""
        here = posixpath.dirname(self.own.source.path)
        return quote(posixpath.relpath(path, here or ".")) + ending


def _heading(lines: Sequence[str], line: int, title: str) -> str | None:
    """Return the line of a heading with another title, or None if it is not of one line."""
    found = _ATX.fullmatch(lines[line])
    if found is not None:
        return f"{found['mark']}{heading_text(title)}{found['after']}"
    is_first = line == 0 or not lines[line - 1].strip() or lines[line - 1] in ("---", "...")
    if is_first and _UNDERLINE.fullmatch("".join(lines[line + 1 : line + 2])):
        return f"{lines[line][: lines[line].startswith(_MARK)]}{heading_text(title)}"
    return None


def _relinked(body: str, space: str, titles: Mapping[str, str]) -> str:
    """Return a body whose links to pages of the space lead to other titles.

    :param titles: by title
    """
    named = {attribute(title): attribute(other) for title, other in titles.items()}
    own = f'ri:space-key="{attribute(space)}"'

    def renamed(found: re.Match[str]) -> str:
        before, title, after = found.groups()
        is_here = "ri:space-key=" not in found[0] or own in found[0]
        return f"{before}{named.get(title, title) if is_here else title}{after}"

    return _PAGE.sub(renamed, body)


def options_of(entry: Mapping[str, Any], src: str) -> TreeOptions:
    """Return the options of an entry of the desired state."""
    known = ("unique_titles", "title_heading", "link_base", "broken_links", "drafts")
    more = ("title_prefix", "exclude", "labels", "attachments")
    given = {name: entry[name] for name in (*known, *more) if entry.get(name) is not None}
    if isinstance(given.get("labels"), str):
        given["labels"] = [label.strip() for label in str(given["labels"]).split(",")]
    return TreeOptions(src, str(entry["space"]), **given)
