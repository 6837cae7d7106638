# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_export`: write trees of pages as files for `wiki_tree`, and `wiki.yml` with their
spaces and restrictions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

from ansible.module_utils.common.yaml import yaml_dump

from ...core.concurrency import spread
from ...core.errors import ToolchainError, invalid, not_found, protocol
from ...core.json_text import member
from ...core.module import typed_options
from ...core.module.descriptor import Descriptor, reads
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Option, Positive, Segment
from ...core.operations.export_folder import FileContent, FileNames, KeptFiles
from ...core.operations.service_export import ExportOptions, ServiceExport, ServiceState
from ...core.progress import ProgressCounter
from ..additions import StoredAttachment, entries_of, stored_of, wrong_name
from ..client import WikiClient
from ..formats import mentions
from ..formats.comparison import alike
from ..formats.document import require_markdown
from ..formats.front_matter import split_front_matter
from ..formats.markup import attachment_key
from ..formats.parser import Malformed, parse
from ..page import Page, author_of, label_names, wrong_title
from ..pages.restrictions import EXPANSION as RESTRICTIONS
from ..pages.restrictions import OPERATIONS, PageRights, Restrictions
from ..pages.wiki_space import SpaceEntry, SpacePermission, Spaces
from ..service import SERVICE
from .existing_pages import EXPANSION, KEY, ExistingTree, TreeReader, mark_of
from .markdown_export import MarkdownPage, MarkdownTree, natural_names
from .source_files import named_attachments
from .wanted_pages import title_key

_MORE = (EXPANSION, "space.homepage", "children.page")
_ATTACHMENTS = ("children.attachment", "children.attachment.version")
_NOT_EXPORTED = ("Pages that the account cannot see are missing: the wiki does not report them.",)
_WIDTH = 1_000_000
#: Error kinds for content that the account may not read or the server does not support.
_UNREADABLE = ("not_found", "permission", "rejected")
#: Maximum length of a file extension that is kept.
_LONGEST_EXTENSION = 10
#: Extensions that are replaced, because such files would be read as pages or as desired states.
_RESERVED = ("md", "xml", "yml", "yaml", "json")
_REPLACEMENT = "bin"


@dataclass(frozen=True)
class ExportedTree:
    """An entry of the option `trees`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(requires=("page_id", "space")),
        Rule("page_id", forbids="space"),
        Rule("title", requires="space"),
    )

    page_id: Segment | None = None
    space: str | None = None
    title: str | None = None
    children: bool = True
    missing_ok: bool = False


@dataclass(frozen=True, kw_only=True)
class WikiExportOptions(ExportOptions):
    """Options of `wiki_export`."""

    trees: Annotated[list[ExportedTree], Option(empty=False)]
    format: Literal["storage", "markdown"] = "storage"
    spaces: bool = True
    restrictions: bool = True
    attachments: bool = True
    published: bool = False
    max_size: NotNegative = 100 * 1024 * 1024
    parallel: Positive = 4


class WikiExportOperation(ServiceExport):
    """Export trees of pages."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads("view")})

    service = "wiki"

    def __init__(self, task: Task, options: WikiExportOptions) -> None:
        super().__init__(task, options)
        self._options = options
        if options.format == "markdown":
            require_markdown()
        more = [*_MORE, *(_ATTACHMENTS if options.attachments else ())]
        more += RESTRICTIONS if options.restrictions else ()
        self._client = WikiClient(
            task, labels=True, more=more, connections=max(10, options.parallel)
        )
        self._files = (
            AttachmentReader(self._client, options.max_size) if options.attachments else None
        )
        self._spaces, self._restrictions = Spaces(self._client), Restrictions(self._client)
        #: Entries for `wiki_restriction` by space and title.
        self._restricted: dict[tuple[str, str], dict[str, Any]] = {}
        self._names = FileNames()
        #: What trees have published, by page id.
        self._published: dict[str, dict[str, Any]] = {}

    def alike(self, before: str, after: str) -> bool:
        """Return whether `wiki_tree` would find two files of a page equal [wiki-5]."""
        old, new = split_front_matter(before), split_front_matter(after)
        return replace(old, text="") == replace(new, text="") and alike(new.text, old.text, None)

    def file_with_names(self, path: str, text: str, translate: Callable[[str], str]) -> str:
        return mentions.translated(text, translate, in_cloud=False)

    def read(self) -> ServiceState:
        options = self._options
        parts = {
            "spaces": options.spaces,
            "attachments": options.attachments,
            "restrictions": options.restrictions,
        }
        left = ", ".join([name for name, wanted in parts.items() if not wanted] + ["comments"])
        stay = f"{left.capitalize()} and the order of pages stay on the wiki."
        state = ServiceState(not_exported=(stay, *_NOT_EXPORTED))
        roots: dict[str, Page] = {}
        alone = set[str]()
        for tree in options.trees:
            try:
                root = self._root(tree)
            except ToolchainError as error:
                if error.kind == "not_found" and tree.missing_ok:
                    continue
                raise
            if root.id in roots:
                raise invalid(
                    f"trees: the page '{root.title}' ({root.id}) is listed twice: remove an entry"
                )
            roots[root.id] = root
            alone |= set() if tree.children else {root.id}
        if options.spaces:
            keys = dict.fromkeys(str(root.space) for root in roots.values())
            state.values["spaces"] = [entry for key in keys for entry in self._space(key, state)]
        found = (self._tree(root, state, alone=root.id in alone) for root in roots.values())
        state.values["trees"] = [entry for entry in found if entry is not None]
        if options.restrictions:
            state.values["restrictions"] = list(self._restricted.values())
        if options.published:
            state.returned["published"] = list(self._published.values())
        return state

    def _root(self, tree: ExportedTree) -> Page:
        if tree.space is not None and tree.title is not None:
            purpose = f"searching for the page '{tree.title}'"
            found = self._client.find(purpose, tree.space, tree.title)
            if found is None or found.status != "current":
                message = f"there is no page '{tree.title}' in the space {tree.space}"
                raise not_found(f"{message}, or the account cannot see it")
        else:
            page_id = tree.page_id or self._client.home(str(tree.space))
            found = self._client.require(f"reading the page {page_id}", page_id, tree.space)
        if found.space is None:
            message = (
                f"the server does not report the space of the page '{found.title}' ({found.id})"
            )
            raise protocol(message)
        return found

    def _tree(self, root: Page, state: ServiceState, *, alone: bool) -> dict[str, Any] | None:
        """Add the files of a tree, or of its root only, to `state`. Return the entry."""
        space = str(root.space)
        reader = TreeReader(self._client, space, self._options.parallel, self._task.progress)
        tree = ExistingTree(root, {root.id: root}) if alone else reader.tree(root)
        pages = list(tree.pages.values())
        count = ProgressCounter(
            self._task.progress, f"reading the pages below '{root.title}'", len(pages)
        )

        def read_page(page: Page) -> _ExportedPage:
            try:
                files = None if self._files is None else self._files.read(page)
                rights = self._rights(page) if self._options.restrictions else None
                page = reader.with_body(page)
                if self._options.published:
                    self._add_published(page, space)
                return _ExportedPage(page, self._labels(page), files, rights)
            finally:
                count.add()

        read = spread(self._options.parallel, read_page, pages)
        taken = set[str]()
        for exported in read:
            self._add_restrictions(space, exported, state)
            if self._options.format == "markdown" and exported.files is not None:
                exported.files.rename(natural_names(exported.files.listed, taken))
        texts = {
            exported.page.id: page_file(exported.page, exported.labels, state, exported.files)
            for exported in read
        }
        attached = {
            exported.page.id: exported.files.contents
            for exported in read
            if exported.files is not None
        }
        layout = TreeLayout(tree, texts, self._names, state, attached)
        files = layout.files(self._names.name("wiki", f"{space} {root.title}"))
        if not files:
            return None
        src = next(iter(files)).rpartition("/")[0]
        if self._options.format == "markdown":
            held = {
                one.page.id: MarkdownPage(
                    one.page,
                    layout.paths[one.page.id],
                    one.labels,
                    listed_of(one.files or PageFiles(), one.page.body or ""),
                )
                for one in read
                if one.page.id in layout.paths
            }

            def leave_out(title: str, reason: str) -> None:
                state.leave_out("markdown", title, f"{reason}, so it is written in storage format")

            attachments = self._options.attachments
            files = MarkdownTree(held, files, space, attachments, leave_out).written()
        state.files.update(files)
        entry: dict[str, Any] = {"src": src, "space": space, "mark": False}
        entry["attachments"] = self._options.attachments
        return {**entry, **self._parent(root, space, state)}

    def _parent(self, root: Page, space: str, state: ServiceState) -> dict[str, str]:
        """Return the option with the parent of a root: its title, because ids differ between
        servers; its id if it is a folder, or the account cannot see it.
        """
        if root.parent is None:
            return {}
        name = f"{space}/{' '.join(root.title.split())}"
        state.returned.setdefault("parents", {})[name] = root.parent
        above = (root.content.get("ancestors") or [None])[-1]
        kind, title = member(above, "type"), member(above, "title")
        if title is None:
            try:
                parent = self._client.require_parent(root.parent, space)
            except ToolchainError as error:
                if error.kind not in _UNREADABLE:
                    raise
                return {"parent_id": root.parent}
            kind, title = parent.type, parent.title
        by_title = kind in (None, "page") and wrong_title(str(title)) is None
        return {"parent_title": str(title)} if by_title else {"parent_id": root.parent}

    def _add_published(self, page: Page, space: str) -> None:
        """Remember the version of a page that its tree has saved last."""
        mark = mark_of(self._client.with_property(page, KEY))
        if mark is None or mark.version is None:
            return
        saved: tuple[str, str | None] | None = page.title, page.body
        if mark.version != page.version:
            purpose = f"reading version {mark.version} of the page '{page.title}' ({page.id})"
            saved = self._client.saved(purpose, page.id, mark.version)
        title, body = saved or (None, None)
        row = {"space": space, "title": page.title, "file": mark.file, "source": mark.source}
        self._published[page.id] = {
            **row,
            "saved_title": title,
            "body": body,
            "changed_by": author_of(page).by,
        }

    def _add_restrictions(self, space: str, exported: _ExportedPage, state: ServiceState) -> None:
        title, rights = exported.page.title, exported.rights
        if rights is None:
            return
        key = (space, title_key(title))
        reason = rights.message if isinstance(rights, ToolchainError) else wrong_title(title)
        if key in self._restricted and self._restricted[key]["title"] != title:
            reason = "another page has this title"
        if reason is None and title.encode("utf-8", "replace").decode() != title:
            reason = "its title cannot be written to a file"
        if reason is not None:
            state.leave_out("restrictions", title, reason)
        elif not isinstance(rights, ToolchainError):
            # Export that a page has none, so that drift finds a restriction that a user adds later.
            named = {
                name: {kind: names for kind, names in rights[name].items() if names}
                for name in OPERATIONS
            }
            self._restricted[key] = {"space": space, "title": title, **named}

    def _space(self, key: str, state: ServiceState) -> list[dict[str, Any]]:
        """Return a list with the entry of a space for `wiki_space`. Empty if it is unreadable."""
        try:
            found = self._spaces.read(key)
            if found is None:
                raise not_found("it does not exist, or is not visible")
            typed_options.check(SpaceEntry(key))
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "invalid"):
                raise
            state.leave_out("space", key, error.message)
            return []
        entry = {"key": key, "name": found["name"], "description": found["description"]}
        if found["home_page"] is not None:
            entry["home_page"] = found["home_page"]
        try:
            entry["permissions"] = self._permissions(key)
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "invalid"):
                raise
            state.leave_out("permissions", key, error.message)
        return [entry]

    def _permissions(self, key: str) -> list[dict[str, Any]]:
        """Return the permissions of a space as entries.

        Raises `ToolchainError` if an entry cannot express a permission. Importing the list without
        it would remove the permission, because the list is exact.
        """
        entries: list[dict[str, Any]] = []
        for subject, operations in sorted(self._spaces.permissions(key).items()):
            kind, _colon, name = subject.partition(":")
            holder = self._spaces.user_name(name) if kind == "user" else name or True
            entries.append({kind: holder, "operations": operations})
        typed_options.check(
            SpaceEntry(key, permissions=[SpacePermission(**entry) for entry in entries])
        )
        return entries

    def _rights(self, page: Page) -> PageRights | ToolchainError:
        """Return the restrictions of a page, or the error if they cannot be read."""
        try:
            return self._restrictions.of(page)
        except ToolchainError as error:
            if error.kind not in (*_UNREADABLE, "protocol"):
                raise
            return error

    def _labels(self, page: Page) -> tuple[str, ...] | None:
        """Return the labels of a page, or None if the account may not read them."""
        if page.labels is not None:
            return page.labels
        purpose = f"reading the labels of the page '{page.title}' ({page.id})"
        try:
            return label_names(self._client.labels(purpose, page.id))
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            return None


@dataclass(frozen=True)
class _ExportedPage:
    """A page with its labels, attachments and restrictions.

    `labels`: None if the account may not read them. `files`, `rights`: None if not exported.
    """

    page: Page
    labels: tuple[str, ...] | None
    files: PageFiles | None
    rights: PageRights | ToolchainError | None


@dataclass
class TreeLayout:
    """Choose the paths of the pages of a tree. A page with children is the `index.xml` of a folder.

    `texts`: file content by page id; None for a page that cannot be exported. Its descendants are
    not exported either, because an import would move them to another parent.
    `attached`: content by file name of the attachments, by page id.
    """

    tree: ExistingTree
    texts: Mapping[str, str | None]
    names: FileNames
    state: ServiceState
    attached: Mapping[str, Mapping[str, FileContent]] = field(default_factory=dict)
    #: Paths of the files by page id.
    paths: dict[str, str] = field(default_factory=dict)

    def files(self, home: str) -> dict[str, str | FileContent]:
        found: dict[str, str | FileContent] = {}
        seen: set[str] = set()
        below: dict[str | None, list[Page]] = {}
        for page in self.tree.pages.values():
            if page.id != self.tree.root.id:
                below.setdefault(page.parent, []).append(page)
        todo: list[tuple[Page, str, bool]] = [(self.tree.root, home, True)]
        while todo:
            page, stem, is_folder = todo.pop(0)
            text, children = self.texts[page.id], below.get(page.id, [])
            if text is not None and title_key(page.title) in seen:
                self.state.leave_out("page", page.title, "another page has this title")
                text = None
            if text is None:
                gone = list(children)
                while gone:
                    child = gone.pop()
                    reason = "the page above it is left out"
                    self.state.leave_out("page", child.title, reason)
                    gone += below.get(child.id, [])
                continue
            seen.add(title_key(page.title))
            folder = is_folder or bool(children)
            path = self.paths[page.id] = f"{stem}/index.xml" if folder else f"{stem}.xml"
            found[path] = text
            parent = stem if folder else stem.rpartition("/")[0]
            for name, content in self.attached.get(page.id, {}).items():
                found[f"{parent}/{name}"] = content
            todo += [(child, self.names.name(stem, child.title), False) for child in children]
        return found


def page_file(
    page: Page, labels: tuple[str, ...] | None, state: ServiceState, files: PageFiles | None = None
) -> str | None:
    """Return the content of the file for a page.

    Returns None if `wiki_tree` would read another page from it, and adds the reason to `state`.
    Raises `protocol` if the server does not send the body.
    """
    if page.body is None:
        message = f"reading the page '{page.title}' ({page.id}): the server does not send the body"
        raise protocol(message)
    head: dict[str, Any] = {"title": " ".join(page.title.split())}
    if labels is None:
        state.leave_out("labels", page.title, "the server does not report them")
    else:
        head["labels"] = list(labels)
    for left_out in files.left_out if files is not None else ():
        state.leave_out(*left_out)
    reason = wrong_title(str(head["title"]))
    try:
        listed = {} if files is None else listed_of(files, page.body)
        head.update({"attachments": listed} if listed else {})
        text = f"---\n{yaml_dump(head, allow_unicode=True, width=_WIDTH)}---\n{page.body}"
        text.encode("utf-8")
        front = split_front_matter(text)
        parse(front.text)
        same = (front.title, front.labels) == (head["title"], head.get("labels"))
        same = same and front.attachments == listed
        if not same or front.text.lstrip("\n") != page.body.lstrip("\n"):
            reason = reason or "its title, its labels or its body cannot be written to a file"
    except (Malformed, ToolchainError, UnicodeEncodeError) as error:
        reason = reason or f"its body cannot be parsed: {error}"
    if reason is None:
        return text
    state.leave_out("page", page.title, reason)
    return None


@dataclass
class PageFiles:
    """Attachments of a page.

    `contents`: content by file name.
    `listed`: file name by attachment name, for the front matter; None means not managed.
    `left_out`: kind, name and reason of each attachment that is not exported.
    """

    contents: dict[str, FileContent] = field(default_factory=dict)
    listed: dict[str, str | None] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def rename(self, names: Mapping[str, str]) -> None:
        """Give files other names."""
        contents = {names.get(file, file): content for file, content in self.contents.items()}
        self.contents = contents
        for name, file in self.listed.items():
            self.listed[name] = None if file is None else names.get(file, file)


class AttachmentReader:
    """Download the attachments of several pages at once.

    :param largest: maximum size in bytes; larger attachments are left out
    """

    def __init__(self, client: WikiClient, largest: int) -> None:
        self._client, self._largest = client, largest
        self._kept = KeptFiles()

    def read(self, page: Page) -> PageFiles:
        """Download the attachments of a page."""
        found = PageFiles()
        try:
            entries = entries_of(self._client, page)
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            reason = "the server does not report them"
            found.left_out.append(("attachments", page.title, reason))
            return found
        names, taken = FileNames(), dict[str, str]()
        shown = {str(entry["title"]): entry for entry in entries}
        for name in sorted(shown):
            other = taken.setdefault(attachment_key(name), name)
            if other == name:
                self._add(found, page, names, name, shown[name])
            else:
                found.listed[name] = None
                reason = f"its name equals '{other}' without regard to case"
                found.left_out.append(("attachment", f"{name} of the page {page.title}", reason))
        return found

    def _add(
        self, found: PageFiles, page: Page, names: FileNames, name: str, entry: Mapping[str, Any]
    ) -> None:
        """Download an attachment, or add the reason why it is left out."""
        reason = wrong_name(name)
        if reason is None:
            found.listed[name] = None
            content, reason = self._content(page, name, stored_of(entry))
            if content is not None:
                file = file_name(names, page.id, name)
                found.listed[name], found.contents[file] = file, content
                return
        found.left_out.append(("attachment", f"{name} of the page {page.title}", str(reason)))

    def _content(
        self, page: Page, name: str, stored: StoredAttachment
    ) -> tuple[FileContent | None, str | None]:
        """Return the content and None, or None and the reason why it is left out."""
        if stored.size is None or stored.link is None:
            return None, "the server does not report its size or its address"
        if stored.size > self._largest:
            return None, f"it has {stored.size} bytes, more than max_size"
        purpose = f"downloading the attachment '{name}' of the page '{page.title}' ({page.id})"
        try:
            with tempfile.TemporaryFile() as file:
                self._client.download_into(purpose, stored.link, file, stored.size)
                return self._kept.keep(file), None
        except ToolchainError as error:
            if error.kind not in ("not_found", "permission"):
                raise
            return None, f"it cannot be read: {error}"


def file_name(names: FileNames, page_id: str, name: str) -> str:
    """Return the file name of an attachment, which never equals that of a page or folder."""
    stem, dot, extension = name.rpartition(".")
    plain = extension.isascii() and extension.isalnum() and len(extension) <= _LONGEST_EXTENSION
    kept = bool(dot and stem and plain and extension.lower() not in _RESERVED)
    owner = (
        page_id
        if page_id.isdecimal()
        else sha256(page_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    )
    base = names.name("", f"{owner} {stem if kept else name}")
    return f"{base}.{extension if kept else _REPLACEMENT}"


def listed_of(files: PageFiles, body: str) -> dict[str, str | None]:
    """Return the file name of each attachment, for the front matter.

    Attachments that only the body refers to are None: they are not managed.
    """
    named = (name.strip() for name, _element in named_attachments(body))
    return {**{name: None for name in named if name}, **files.listed}
