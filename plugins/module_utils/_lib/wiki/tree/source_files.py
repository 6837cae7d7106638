# SPDX-License-Identifier: GPL-3.0-or-later
"""List the files of a folder that becomes a tree of pages.

Symbolic links to files outside the folder are rejected. Paths compare in Unicode NFC.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.globs import Patterns
from ...core.module.rules import Rule
from ...core.module.typed_options import NotNegative, Option, PathText, Positive, Segment
from ..formats.front_matter import split_front_matter
from ..formats.parser import HEADINGS, StorageElement, parse
from ..formats.passages import is_storage_format, may_be_storage_format
from ..pages.restrictions import RestrictedOperations


@dataclass(frozen=True)
class TitleHeading:
    """The heading of a body that can be the title of the page. `rest`: the body without it."""

    text: str
    rest: str


def title_heading(body: str) -> TitleHeading | None:
    """Return the first heading of level 1, else the first heading."""
    found = [(one, one.title()) for one in parse(body).walk() if one.name in HEADINGS]
    found = [(heading, text) for heading, text in found if text]
    if not found:
        return None
    heading, text = next((pair for pair in found if pair[0].name == HEADINGS[0]), found[0])
    source = body.encode()
    images = b"".join(source[image.begin : image.end] for image in _images(heading))
    kept = b"<p>" + images + b"</p>" if images else b""
    return TitleHeading(text, (source[: heading.begin] + kept + source[heading.end :]).decode())


def named_attachments(body: str) -> list[tuple[str, StorageElement]]:
    """Return the attachments of the same page that a body refers to, with their elements."""
    return [
        (element.attributes.get("ri:filename", ""), element)
        for element in parse(body).walk()
        if element.name == "ri:attachment" and not element.elements
    ]


def _images(element: StorageElement) -> Iterator[StorageElement]:
    """Yield the images below an element, with the links around them."""
    for child in element.elements:
        has_image = any(one.name == "ac:image" for one in child.walk())
        if child.name == "ac:image" or (has_image and child.name in ("a", "ac:link")):
            yield child
        else:
            yield from _images(child)


#: Key of the root page, which is the page of the folder. All keys of folders end with a slash.
ROOT = "./"
MARKDOWN = (".md", ".markdown", ".mdx")
_STORAGE = ".xml"
_KINDS = "Markdown (.md, .markdown, .mdx) and no .xml file in storage format"
_NOTHING = "nothing in src"
#: Number of characters in which the first tag of an .xml file is searched for.
_HEAD = 65_536
#: Names of the page of its folder. The first one counts, then a file with the name of the folder.
_FOLDER_PAGES = ("index", "_index", "readme")
#: Words in front matter that may make a page a draft.
_DRAFT = re.compile(r"^[\"']?(?:draft|published)\b", re.MULTILINE)
#: Number of bytes by which a text file is recognized.
_SAMPLE = 4096


@dataclass(frozen=True)
class TreeOptions:
    """Options for a folder that becomes a tree of pages."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("prune", requires="mark=true"),
        Rule("on_edit", requires="mark=true"),
        Rule("parent_title", forbids="parent_id"),
    )

    src: PathText
    space: str
    parent_id: Segment | None = None
    parent_title: str | None = None
    unique_titles: Literal["none", "folder"] = "none"
    title_heading: Literal["drop", "keep"] = "drop"
    link_base: str | None = None
    broken_links: Literal["fail", "warn"] = "fail"
    drafts: Literal["skip", "publish"] = "skip"
    title_prefix: Annotated[str, Option(empty=True)] = ""
    exclude: list[str] = field(default_factory=list)
    labels: list[str] | None = None
    prune: bool = False
    max_deletions: NotNegative = 10
    adopt: bool = False
    allow_orphaned_comments: bool = False
    allow_orphaned_comments_in: list[str] | None = None
    on_edit: Literal["overwrite", "warn", "fail"] = "overwrite"
    restrictions: RestrictedOperations | None = None
    force: bool = False
    mark: bool = True
    attachments: bool = True
    accounts: Annotated[dict[str, str] | None, Option(values="line")] = None
    parallel: Positive = 4


@dataclass(frozen=True)
class SourceFile:
    """A file or folder that becomes a page.

    `key`: path of the file, or of the folder with a slash at the end.
    `path`: path below the folder, which marks contain.
    `file`: path on disk; None for a folder without a file for its page.
    `parent`: key of the parent page; None for the root page.
    `single`: name of the file if `src` is a single file.
    """

    key: str
    path: str
    file: str | None
    parent: str | None
    single: str | None = None

    @property
    def place(self) -> str:
        """Return the path for messages."""
        return self.single or self.path

    @property
    def name(self) -> str:
        """Return the default title."""
        name = posixpath.basename(self.key.rstrip("/"))
        stem, ending = posixpath.splitext(name)
        return stem if ending.lower() in (*MARKDOWN, _STORAGE) else name


@dataclass
class SourceFolder:
    """The files of a folder.

    `pages`: by key, parents first.
    `files`: paths on disk of all other files, by path below the folder.
    `drafts`: paths of the pages that are left out as drafts.
    `problems`: errors that prevent the conversion.
    """

    root: str
    #: Default title of the root page.
    title: str
    pages: dict[str, SourceFile] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    drafts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: Warnings about patterns that exclude nothing.
    warnings: list[str] = field(default_factory=list)


def read_folder(src: str, exclude: Sequence[str], *, drafts: bool = False) -> SourceFolder:
    """List a folder or a single file. Raises `invalid` if it is neither, or has no pages.

    :param drafts: whether drafts are pages
    """
    root = os.path.abspath(src)
    if os.path.isfile(root):  # its folder is not listed, because it may be very large
        above, name = os.path.split(root)
        if not _is_page(name, root):
            raise invalid(f"src: {root} is no {_KINDS}")
        if not drafts and _is_draft(root):
            raise invalid(f"src: {root} is a draft: set drafts to publish")
        folder = SourceFolder(above, os.path.splitext(name)[0], files=_Neighbours(above))
        folder.pages[ROOT] = SourceFile(ROOT, ROOT, root, None, unicodedata.normalize("NFC", name))
        folder.warnings = list(Patterns("exclude", exclude).warnings(_NOTHING))
        return folder
    if not os.path.isdir(root):
        raise invalid(f"src: {root} is neither a file nor a folder")
    folder = SourceFolder(root, os.path.basename(root))
    found = sorted(_Walk(folder, exclude).paths())
    chosen = {path: file for path, file in found if _is_page(path, file)}
    folder.files.update((path, file) for path, file in found if path not in chosen)
    if not drafts:
        folder.drafts = [path for path, file in chosen.items() if _is_draft(file)]
    _add_pages(folder, {path: chosen[path] for path in chosen if path not in folder.drafts})
    if not folder.pages and not folder.problems:
        left = "only drafts: set drafts to publish" if folder.drafts else f"no {_KINDS}"
        raise invalid(f"src: {root} has {left}")
    return folder


class _Neighbours(dict[str, str]):
    """The files in the folder of a single page, by path below the folder.

    A file is checked on disk when a link refers to it. Files outside the folder do not count.
    """

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = os.path.realpath(root)

    def __contains__(self, path: object) -> bool:
        real = os.path.realpath(self[str(path)])
        inside = os.path.commonpath([real, self._root]) == self._root
        return inside and os.path.isfile(real)

    def __missing__(self, path: str) -> str:
        spellings = [
            os.path.join(self._root, name) for name in (path, unicodedata.normalize("NFD", path))
        ]
        return next((file for file in spellings if os.path.exists(file)), spellings[0])


class _Walk:
    """Find the regular files that are not excluded. Links may only lead to files of the folder."""

    def __init__(self, folder: SourceFolder, exclude: Sequence[str]) -> None:
        self._folder = folder
        # `drafts/` excludes the same folder as `drafts`.
        patterns = [unicodedata.normalize("NFC", pattern).rstrip("/") for pattern in exclude]
        self._exclude = Patterns("exclude", patterns)
        self._real = os.path.realpath(folder.root)

    def paths(self) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for here, folders, files in os.walk(self._folder.root, onerror=self._refuse):
            below = os.path.relpath(here, self._folder.root).replace(os.sep, "/")
            remaining = []
            for name in self._wanted(below, folders):
                if os.path.islink(os.path.join(here, name)):
                    path = _joined(below, name)
                    self._problem(path, "symbolic links to folders are not followed: exclude it")
                else:
                    remaining.append(name)
            folders[:] = remaining
            for name in self._wanted(below, files):
                path, file = _joined(below, name), os.path.join(here, name)
                real = os.path.realpath(file)
                try:
                    if os.path.commonpath([real, self._real]) != self._real:
                        reason = "the symbolic link leads to a file outside the folder"
                        self._problem(path, f"{reason}: exclude it, or replace it by the file")
                    elif (
                        stat.S_ISREG(os.stat(real).st_mode) and found.setdefault(path, file) != file
                    ):
                        reason = "two files differ only in their Unicode form: rename one"
                        self._problem(path, reason)
                except OSError as error:
                    self._problem(path, f"cannot be read: {error.strerror}")
        self._folder.warnings = list(self._exclude.warnings(_NOTHING))
        return list(found.items())

    def _wanted(self, below: str, names: Iterable[str]) -> list[str]:
        wanted = []
        for name in names:
            path = _joined(below, name)
            if self._exclude.fits(path) or name.startswith("."):
                continue
            if not _is_utf8(name):
                self._problem(path, "the name is not UTF-8")
                continue
            wanted.append(name)
        return wanted

    def _refuse(self, error: OSError) -> None:
        below = os.path.relpath(str(error.filename), self._folder.root)
        self._problem(below, f"cannot be read: {error.strerror}")

    def _problem(self, path: str, reason: str) -> None:
        shown = path if _is_utf8(path) else ascii(path)
        self._folder.problems.append(f"{shown}: {reason}")


def _add_pages(folder: SourceFolder, chosen: dict[str, str]) -> None:
    """Add the pages of the files and of their folders to `folder`."""
    folders: set[str] = set()
    for path in chosen:
        here = posixpath.dirname(path)
        while here not in folders:
            folders.add(here)
            here = posixpath.dirname(here)
    beside = {_stem(path): path for path in reversed(chosen) if _stem(path) in folders}
    index = _pages_of_folders(folder, chosen, beside)
    for here in folders:
        file, above = index.get(here), None if here == "" else _key(posixpath.dirname(here))
        source = None if file is None else chosen[file]
        folder.pages[_key(here)] = SourceFile(_key(here), file or _key(here), source, above)
    for path, file in chosen.items():
        if path not in index.values():
            # the page of the folder comes first, also for a file beside the folder
            below = _stem(path) if beside.get(_stem(path)) == path else posixpath.dirname(path)
            folder.pages[path] = SourceFile(path, path, file, _key(below))
    ordered = sorted(folder.pages, key=lambda key: (key.rstrip("/").count("/"), key))
    first = [ROOT] if ROOT in folder.pages else []
    pages, folder.pages = folder.pages, {}
    for key in first + [key for key in ordered if key != ROOT]:
        for one in (pages[key].parent, key):  # no page before its parent
            if one is not None:
                folder.pages[one] = pages[one]


def _pages_of_folders(
    folder: SourceFolder, chosen: Iterable[str], beside: Mapping[str, str]
) -> dict[str, str]:
    """Return the path of the page of each folder. Folders without a page are left out.

    :param beside: path of the file next to a folder with the name of the folder, by folder
    """
    ranked: dict[str, list[tuple[int, str]]] = {}
    for path in chosen:
        here = posixpath.dirname(path)
        name = posixpath.basename(here) or folder.title
        names = [*_FOLDER_PAGES, name.lower()]
        stem = posixpath.basename(_stem(path)).lower()
        if stem in names:
            ranked.setdefault(here, []).append((names.index(stem), path))
    index = {here: min(pages)[1] for here, pages in ranked.items()}
    for here, path in beside.items():
        other = index.setdefault(here, path)
        if other != path and posixpath.basename(_stem(other)).lower() in _FOLDER_PAGES[:2]:
            folder.problems.append(
                f"{path}: {other} is also the page of the folder {here}: rename {path}, or move it"
                " into the folder"
            )
    return index


def possible_keys(path: str) -> tuple[str, ...]:
    """Return the keys that the page of a file can have, depending on the other files."""
    stem, here = _stem(path), posixpath.dirname(path)
    if path.endswith("/"):
        return (path,)
    names = (*_FOLDER_PAGES, posixpath.basename(here).lower())
    inside = (_key(here),) if here == "" or posixpath.basename(stem).lower() in names else ()
    return (path, *inside, f"{stem}/")


def is_markdown(path: str) -> bool:
    return path.lower().endswith(MARKDOWN)


def is_text(file: str) -> bool:
    """Return whether a file begins like a text."""
    try:
        with open(file, "rb") as stream:
            start = stream.read(_SAMPLE)
    except OSError:
        return False
    try:
        start.decode()
    except UnicodeDecodeError as error:
        if error.start <= len(start) - 4:  # otherwise the sample ends within a character
            return False
    return b"\0" not in start


def _is_draft(file: str) -> bool:
    """Return whether a page is a draft. Invalid front matter is reported when the page is read."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
        return _DRAFT.search(text) is not None and split_front_matter(text).draft
    except (OSError, UnicodeDecodeError, ToolchainError):
        return False


def _is_page(path: str, file: str) -> bool:
    """Return whether a file is a page: Markdown, or XML with front matter or in storage format."""
    if is_markdown(path) or not path.lower().endswith(_STORAGE):
        return is_markdown(path)
    try:
        with open(file, encoding="utf-8-sig", errors="replace", newline="") as stream:
            text = stream.read(_HEAD)
            if not text.startswith("---") and not may_be_storage_format(text):
                return False
            text += stream.read()
        return split_front_matter(text).text != text or is_storage_format(text)
    except (OSError, ToolchainError):
        return True  # reported when the page is read


def _stem(path: str) -> str:
    """Return a path without its ending."""
    return posixpath.splitext(path)[0]


def _key(folder: str) -> str:
    return f"{folder}/" if folder else ROOT


def _joined(below: str, name: str) -> str:
    """Return a path below the folder in Unicode NFC."""
    return unicodedata.normalize("NFC", name if below == "." else f"{below}/{name}")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
