# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert a folder to pages with titles, bodies, labels and attachments.

All invalid files are reported before the first request.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import quote, unquote

from ...core.errors import ToolchainError, invalid, shorten
from ..formats.converter import StorageRenderer
from ..formats.dialects import REFERENCE, part_of
from ..formats.document import (
    MarkdownDocument,
    parse_markdown,
    require_markdown,
    target_key,
    title_of,
)
from ..formats.elements import Element
from ..formats.front_matter import FrontMatter, split_front_matter
from ..formats.markup import AttachmentNames, LinkTarget, is_external, no_target
from ..formats.parser import Malformed
from ..page import composed, wrong_label, wrong_title
from .source_files import (
    MARKDOWN,
    ROOT,
    SourceFile,
    SourceFolder,
    TreeOptions,
    is_markdown,
    is_text,
    named_attachments,
    title_heading,
)

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
    :param warns: whether a link without a target is only a warning
    """

    def __init__(
        self, folder: SourceFolder, base: str | None = None, *, warns: bool = False
    ) -> None:
        self._folder, self._base, self._warns = folder, base, warns
        self._keys = {page.place: key for key, page in folder.pages.items()}
        #: Path of the folder in its Git repository. Empty if it is in none.
        self._prefix, root = "", folder.root
        while not os.path.exists(os.path.join(root, ".git")) and root != os.path.dirname(root):
            root = os.path.dirname(root)
        if os.path.exists(os.path.join(root, ".git")):
            self._prefix = os.path.relpath(folder.root, root).replace(os.sep, "/")
        #: Keys of the pages by their names, with and without an ending.
        self._names: dict[str, list[str]] = {}
        for key, page in folder.pages.items():
            for name in {posixpath.basename(page.path), posixpath.basename(key), page.name} - {""}:
                self._names.setdefault(name.lower(), []).append(key)

    def find(self, page: SourceFile, address: str) -> ResolvedLink | None:
        """Return the target of a link on `page`, or None if the folder has no such file.

        Hugo's `ref` also finds a page by its path from the folder, or by its unique name.
        """
        if address.startswith(REFERENCE):
            address = address.removeprefix(REFERENCE)
            found = self.find(page, address) or self.find(page, f"/{address.lstrip('/')}")
            path, fragment = _split(address)
            keys = self._names.get(path.strip("/").lower(), [])
            named = ResolvedLink(keys[0], None, unquote(fragment)) if len(keys) == 1 else None
            return found or named
        path, fragment = _split(address)
        if path == "":
            return ResolvedLink(page.key, None, unquote(fragment))
        target = _joined(page, path)
        folder = ROOT if target == "." else f"{target}/"
        key = self._keys.get(target) or (folder if folder in self._folder.pages else None)
        file = target if key is None and target in self._folder.files else None
        if key is None and file is None:  # generators of sites also take `page` and `page.html`
            names = (f"{target.removesuffix('.html')}{ending}" for ending in MARKDOWN)
            key = next((self._keys[name] for name in names if name in self._keys), None)
        return None if key is None and file is None else ResolvedLink(key, file, unquote(fragment))

    def elsewhere(self, page: SourceFile, address: str) -> str | None:
        """Return the absolute address of a link to a file of the repository that is not published.

        None for a file that is missing in `src`, above the repository, or without a base.
        """
        target = self._in_repository(page, address)
        if self._base is None or target is None:
            return None
        path, fragment = _split(address)
        query = address.partition("#")[0].partition("?")[2]
        ending = "/" if path.endswith("/") else ""
        shown = f"{self._base.rstrip('/')}/{quote('' if target == '.' else target)}{ending}"
        shown = f"{shown}?{query}" if query else shown
        return f"{shown}#{fragment}" if fragment else shown

    def remedy(self, page: SourceFile, address: str) -> str:
        """Return what helps against a link without a target."""
        if self._base is None and self._in_repository(page, address) is not None:
            return "correct it, or set link_base"
        return "correct it" if self._warns else "correct it, or set broken_links to warn"

    def _in_repository(self, page: SourceFile, address: str) -> str | None:
        """Return the path in the repository of a file that is not published.

        None for a file that is missing in `src`, or above the repository. A path that starts with a
        slash starts at the root of the repository.
        """
        path, _fragment = _split(address)
        is_outside = path[0] == "/" or _joined(page, path).split("/")[0] == ".."
        if not (is_outside or os.path.exists(os.path.join(self._folder.root, _joined(page, path)))):
            return None
        root = "" if path[0] == "/" else self._prefix
        target = posixpath.normpath(posixpath.join(root, _joined(page, path)))
        return None if target.split("/")[0] == ".." else target


def _split(address: str) -> tuple[str, str]:
    """Return the path of an address in Unicode NFC, and its fragment."""
    path, _hash, fragment = address.partition("#")
    return unicodedata.normalize("NFC", unquote(path.partition("?")[0])), fragment


def _joined(page: SourceFile, path: str) -> str:
    """Return a path of a page below the folder, which may start with `..`."""
    below = posixpath.dirname(page.path) if path[0] != "/" else ""
    return posixpath.normpath(posixpath.join(below, path.lstrip("/")))


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
        address = address.removeprefix(REFERENCE)
        if target is None:
            there = self.folder_links.elsewhere(self.page, address)
            if there is not None:
                return LinkTarget("address", there)
            cure = self.folder_links.remedy(self.page, address)
            self.problem(
                f"{self.page.place}:{line}: the target of the link '{address}' {_MISSING}: {cure}"
            )
            return LinkTarget("text", "")
        if target.file is not None:
            return LinkTarget("file", self.names.name(target.file))
        key, anchor = target.page or ROOT, target.fragment
        known = self.targets.get(key)
        if anchor and known is not None:
            fragment = target_key(target.fragment)
            anchor = known.get(fragment, "")
            if fragment not in known and fragment != "top":
                self.warn(f"{no_target(target.fragment)} page instead", line)
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


_CHILDREN = '<ac:structured-macro ac:name="children"/>'
_POSITION = re.compile(r"line (\d+)(?:, column \d+)?: ")
#: Maximum length in characters. The return value `problems` contains all problems.
_MAX_MESSAGE = 900


@dataclass(frozen=True)
class WantedPage:
    """A page of the folder.

    `labels`: None means not managed.
    `files`: path on disk by attachment name.
    `source_digest`: digest of the file content; None for a folder without a file for its page.
    """

    source: SourceFile
    title: str
    body: str
    labels: tuple[str, ...] | None
    files: dict[str, str]
    source_digest: str | None

    @property
    def digest(self) -> str:
        return _digest(self.body)

    @property
    def flows(self) -> bool:
        """Return whether the body is from Markdown, in which white space is free."""
        return is_markdown(self.source.place)

    @property
    def title_key(self) -> str:
        """Return the normalized title: the wiki ignores case and repeated blanks."""
        return title_key(self.title)


@dataclass(frozen=True)
class _ReadPage:
    """A file. `document`: of Markdown. `heading`: the heading that is left out of it."""

    source: SourceFile
    title: str
    body: str
    front: FrontMatter
    digest: str | None
    document: MarkdownDocument | None = None
    heading: Element | None = None

    def targets(self, document: MarkdownDocument) -> Mapping[str, str]:
        """Return the targets of links by key. Those in the heading that is left out are empty."""
        dropped = () if self.heading is None else self.heading.walk()
        gone = {name for one in dropped for name in (*one.ids, one.slug)}
        return {key: "" if name in gone else name for key, name in document.targets.items()}


@dataclass(frozen=True)
class PageSource:
    """The Markdown of a page. `convert`: returns a renderer for a document with its links."""

    document: MarkdownDocument
    heading: Element | None
    links: PageLinks
    convert: Callable[..., StorageRenderer]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def title_key(title: str) -> str:
    return " ".join(composed(title).split()).lower()


class WantedPages:
    """Read and convert all files of a folder. `warn` reports warnings."""

    def __init__(
        self, folder: SourceFolder, options: TreeOptions, warn: Callable[[str], None]
    ) -> None:
        self._folder, self._options, self._warn = folder, options, warn
        self._problems = list(folder.problems)
        #: The sources of the pages of Markdown by key, after they are converted.
        self.sources: dict[str, PageSource] = {}
        #: Reports a broken link or image, as a warning or as a problem.
        self._broken = warn if options.broken_links == "warn" else self._problems.append

    def all(self) -> list[WantedPage]:
        """Return the pages, parents first. Raises `invalid` with all problems."""
        if any(is_markdown(source.place) for source in self._folder.pages.values()):
            require_markdown()
        read = [page for source in self._folder.pages.values() if (page := self._read(source))]
        read = self._with_unique_titles(read) if self._options.unique_titles == "folder" else read
        seen: dict[str, str] = {}
        for page in read:
            path = page.source.place
            other = seen.setdefault(title_key(page.title), path)
            if other != path:
                cure = "give one of them a title in its front matter"
                if page.source.file is None:
                    cure = f"give the folder an index.md with a title ({path}index.md)"
                cure += (
                    ""
                    if self._options.unique_titles == "folder"
                    else ", or set unique_titles to folder"
                )
                self._problems.append(
                    f"{path}:1: the title '{page.title}' is also used by {other}: {cure}"
                )
        wanted = list(self._converted({page.source.key: page for page in read}))
        problems = list(dict.fromkeys(self._problems))
        if not problems:
            return wanted
        shown: list[str] = []
        for problem in problems:
            if sum(map(len, shown)) > _MAX_MESSAGE:
                shown.append(
                    f"and {len(problems) - len(shown)} more, see the return value problems"
                )
                break
            shown.append(problem)
        error = invalid(f"cannot convert src to pages: {'; '.join(shown)}")
        error.result["problems"] = problems
        raise error

    # -- reading -------------------------------------------------------------------------------

    def _read(self, source: SourceFile) -> _ReadPage | None:
        """Read a file. Add a problem and return None if it cannot be converted."""
        drops_heading = self._options.title_heading == "drop"
        if source.file is None:
            return self._page(source, None, _CHILDREN, FrontMatter(""), None)
        try:
            with open(source.file, encoding="utf-8-sig", newline="") as file:
                text = file.read()
            front = split_front_matter(text)
            body, digest = front.text.lstrip("\n"), _digest(text)
            if not is_markdown(source.place):
                found = title_heading(front.text)
                if found is not None and not front.title and drops_heading:
                    body = found.rest.lstrip("\n")
                return self._page(source, found.text if found else None, body, front, digest)
            is_mdx = source.place.lower().endswith(".mdx")
            document = parse_markdown(front.text, partial(self._included, source), mdx=is_mdx)
        except (ToolchainError, Malformed, OSError, UnicodeDecodeError) as error:
            self._problems.append(_problem(source.place, error))
            return None
        heading = document.title()
        if front.title is not None:  # an equal heading is the title
            heading = next(document.headings(), None)
            if heading and title_key(title_of(heading)) != title_key(front.title):
                heading = None
        shown = title_of(heading) if heading else None
        page = self._page(source, shown, body, front, digest)
        return replace(page, document=document, heading=heading if drops_heading else None)

    def _page(
        self,
        source: SourceFile,
        heading: str | None,
        body: str,
        front: FrontMatter,
        digest: str | None,
    ) -> _ReadPage:
        """Return a page whose title is in its front matter, in its heading or the file name."""
        name = source.name if source.parent is not None else self._folder.title
        title = f"{self._options.title_prefix}{front.title or heading or name}"
        page = _ReadPage(source, " ".join(composed(title).split()), body, front, digest)
        wrong = wrong_title(page.title)
        if wrong is not None:
            self._problems.append(f"{source.place}:1: {wrong}")
        return page

    def _included(self, source: SourceFile, name: str, line: int) -> str | None:
        """Return the content of a file of the folder that a page includes, or None."""
        path, _colon, part = name.partition(":")
        file = os.path.join(self._folder.root, *path.split("/"))
        root = os.path.realpath(self._folder.root)
        real, text = os.path.realpath(file), None
        if os.path.commonpath([real, root]) == root and os.path.isfile(real):
            with open(real, encoding="utf-8-sig", newline="") as stream:
                text = part_of(split_front_matter(stream.read()).text, part)
        if text is None:
            self._broken(f"{source.place}:{line}: the included file '{name}' {_MISSING}")
        return text

    def _with_unique_titles(self, pages: Sequence[_ReadPage]) -> list[_ReadPage]:
        """Append the name of the folder to each title that several pages have.

        Titles of several files of the same folder also get the names of the files.
        """
        times = Counter(title_key(page.title) for page in pages)
        within = Counter((title_key(page.title), _folder_of(page.source)) for page in pages)
        unique = []
        for page in pages:
            here, key = _folder_of(page.source), title_key(page.title)
            # The title of a folder without a file for its page is already the folder's own name.
            shown = here.split("/")[-2 if page.source.file is None else -1 :]
            place = self._folder.title if here in ("", ".") else "/".join(shown)
            if within[key, _folder_of(page.source)] > 1 and page.source.key != ROOT:
                name = posixpath.basename(page.source.path.rstrip("/"))
                place = f"{place}/{posixpath.splitext(name)[0]}"
            more = f" ({place})" if times[key] > 1 else ""
            unique.append(replace(page, title=f"{page.title}{more}"))
        return unique

    # -- converting ----------------------------------------------------------------------------

    def _converted(self, pages: dict[str, _ReadPage]) -> Iterator[WantedPage]:
        warns = self._options.broken_links == "warn"
        folder = FolderLinks(self._folder, self._options.link_base, warns=warns)
        titles = {key: page.title for key, page in pages.items()}
        documents = {key: page.document for key, page in pages.items() if page.document}
        targets = {key: pages[key].targets(document) for key, document in documents.items()}
        #: Fragments of all links to a page, by key of the page.
        linked: dict[str, set[str]] = {}
        links_of = ((key, link) for key, document in documents.items() for link in document.links())
        for key, address in links_of:
            target = folder.find(pages[key].source, address)
            if target is not None and target.page is not None and target.fragment:
                linked.setdefault(target.page, set()).add(target.fragment)
        for key, page in pages.items():
            links = PageLinks(page.source, folder, titles, targets, self._broken, self._warn)
            if self._options.attachments:
                self._attach(links, page)
            body = page.body
            if page.document is not None:
                fragments = linked.get(key, set())
                convert = partial(StorageRenderer, resolver=links, linked=fragments)
                body = convert(page.document, dropped=page.heading).body()
                self.sources[key] = PageSource(page.document, page.heading, links, convert)
            named = links.names.files if self._options.attachments else {}
            files = {name: self._folder.files[path] for name, path in named.items()}
            for label in page.front.labels or ():
                if (wrong := wrong_label(label)) is not None:
                    self._problems.append(f"{page.source.place}:1: {wrong}")
            names = [
                label.lower()
                for label in (*(self._options.labels or ()), *(page.front.labels or ()))
            ]
            is_labelled = self._options.labels is not None or page.front.labels is not None
            labels = tuple(dict.fromkeys(names)) if is_labelled else None
            yield WantedPage(page.source, page.title, body, labels, files, page.digest)

    def _attach(self, links: PageLinks, page: _ReadPage) -> None:
        """Add the attachments in the front matter, and those that a storage format refers to."""
        below = posixpath.dirname(page.source.path)
        position = f"{page.source.place}:1: attachments"
        listed = page.front.attachments
        for name, path in listed.items():
            file = None
            if path is not None:
                file = posixpath.normpath(posixpath.join(below, unicodedata.normalize("NFC", path)))
            if file is None or file in self._folder.files:
                self._reserve(links, position, name, file)
            else:
                self._problems.append(f"{position}: the file '{path}' does not exist")
        bodies = [(page.body, 1)]
        if page.document is not None:
            passages = page.document.passages()
            bodies = [(one.attributes["source"], one.line) for one in passages]
        named = ((body, *one, line) for body, line in bodies for one in named_attachments(body))
        for body, name, element, first in named:
            if name.strip() not in listed:
                line = body.encode()[: element.begin].count(b"\n") + first
                position = f"{page.source.place}:{line}"
                target = links.folder_links.find(page.source, f"./{name}")
                if target is None or target.file is None:
                    self._problems.append(f"{position}: the attachment '{name}' does not exist")
                else:
                    self._reserve(links, position, name, target.file)

    def _reserve(self, links: PageLinks, position: str, name: str, file: str | None) -> None:
        other = links.names.reserve(name, file)
        if other is not None:
            self._problems.append(
                f"{position}: the names '{other}' and '{name}' differ only in upper and lower case,"
                " but the wiki needs different names: rename one of them"
            )


def unreferenced(folder: SourceFolder, pages: Sequence[WantedPage]) -> dict[str, str]:
    """Return the return value about the text files of a folder that no page refers to."""
    used = {file for page in pages for file in page.files.values()}
    files = (file for file in folder.files.values() if file not in used)
    kinds = Counter(
        posixpath.splitext(file)[1] or "without an ending" for file in files if is_text(file)
    )
    if not kinds:
        return {}
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return {"unreferenced": f"{kinds.total()} text files of src are on no page: {shorten(shown)}"}


def _folder_of(source: SourceFile) -> str:
    return source.key.rstrip("/") if source.key.endswith("/") else posixpath.dirname(source.key)


def _problem(path: str, error: Exception) -> str:
    """Return the message for an invalid file, with its path and line."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}:1: is not UTF-8 text"
    if isinstance(error, OSError):
        return f"{path}:1: cannot be read: {error.strerror}"
    reason = str(error)
    found = _POSITION.match(reason)
    return f"{path}:1: {reason}" if found is None else f"{path}:{found[1]}: {reason[found.end() :]}"
