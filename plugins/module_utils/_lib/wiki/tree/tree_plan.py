# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the changes of a tree. Each page has its result, diff and part of a sealed plan [C9]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.concurrency import spread
from ...core.errors import ToolchainError, conflict, invalid
from ...core.globs import Patterns
from ...core.json_text import member
from ...core.module.sealing import PlannedChange
from ..additions import (
    PageAddition,
    PageAttachmentOptions,
    PageAttachments,
    PageLabels,
    changes_of,
    files_of,
)
from ..client import WikiClient
from ..formats.comparison import alike, excerpt, readable
from ..formats.inline_comments import comment_counts, with_comments
from ..page import Page, author_of
from ..pages.restrictions import PageRestrictions, restrict_of
from .existing_pages import KEY, ExistingTree, TreeMark, TreeReader, mark_of
from .source_files import ROOT, TreeOptions, possible_keys
from .wanted_pages import WantedPage, title_key

#: Changes that create a new version of a page.
SAVED = frozenset({"body", "title", "parent"})


@dataclass
class PagePlan:
    """Plan of a page.

    `wanted`: None if the page will be deleted. `page`: the existing page; None if it is new.
    `fields`: names of the fields that differ.
    `parents`: titles of the parent before and after, for the diff.
    `comments`: numbers of inline comments that the page keeps and loses.
    `error`: why the page is left as it is, although it differs.
    `refused`: the changes that the error prevents.
    """

    path: str
    wanted: WantedPage | None
    page: Page | None
    fields: set[str] = field(default_factory=set)
    adopted: bool = False
    parents: tuple[str, str] = ("-", "-")
    additions: Sequence[PageAddition] = ()
    comments: tuple[int, int] = (0, 0)
    error: ToolchainError | None = None
    refused: Sequence[Mapping[str, object]] = ()

    @property
    def name(self) -> str:
        return self.path

    @property
    def saves(self) -> bool:
        return bool(self.fields & SAVED)

    @property
    def is_edited(self) -> bool:
        """Return whether the plan replaces what somebody saved after the tree wrote the page."""
        mark = None if self.page is None else mark_of(self.page)
        if self.page is None or mark is None or mark.version is None:
            return False
        return mark.version != self.page.version and (self.saves or self.wanted is None)

    def edit(self) -> dict[str, Any]:
        """Return the entry in the return value `edited`."""
        page = self.page
        author = author_of(page)
        return {
            "path": self.path,
            "id": page and page.id,
            "title": page and page.title,
            "author": author.by,
            "time": author.at,
        }

    @property
    def action(self) -> str:
        if self.error is not None:
            return "failed"
        if self.wanted is None:
            return "deleted"
        if self.page is None:
            return "created"
        named = {"parent": "moved", "title": "renamed"}
        changed = "adopted" if self.adopted else "updated" if self.fields else "unchanged"
        return next((word for name, word in named.items() if name in self.fields), changed)

    def shown(self, now: Page | None = None) -> dict[str, object]:
        """Return the entry in the return value `pages`. `now`: the written page."""
        page = now or self.page
        wanted = self.wanted
        # a new page gets its content as version 2, after its restrictions
        is_created_empty = "restrictions" in self.fields and wanted is not None and wanted.body
        saved = self.saves and (page is not None or is_created_empty)
        version = (1 if page is None else page.version) + bool(now is None and saved)
        row: dict[str, object] = {
            "path": self.path,
            "id": None if page is None else page.id,
            "title": page.title if wanted is None and page is not None else wanted and wanted.title,
            "version": version,
            "url": None if page is None else page.url,
            "action": self.action,
        }
        if self.error is not None:
            row["error"] = {**self.error.as_dict(), "msg": self.error.message}
            row["changes"] = list(self.refused)
        return row

    @property
    def restrict(self) -> Callable[[Page], None] | None:
        """Return the function that sets the restrictions, if they differ."""
        return restrict_of(self.additions)

    def changes(self) -> list[dict[str, object]]:
        """Return the fields that differ, with the values before and after."""
        page, wanted, fields = self.page, self.wanted, set(self.fields)
        if wanted is None:
            return [{"field": "title", "before": page and page.title, "after": None}]
        was, will = self._bodies()
        sides: dict[str, tuple[object, object]] = {
            "title": (page and page.title, wanted.title),
            "parent": (page and self.parents[0], self.parents[1]),
            "mark": (self._marked(), self.path),
            "body": (was if page else None, will),
        }
        for each in self.additions:
            sides[each.noun] = (each.text(after=False), each.text(after=True))
        return [
            {"field": name, "before": before, "after": after}
            for name, (before, after) in sides.items()
            if name in fields
        ]

    def sides(self) -> tuple[str, str]:
        """Return the diff before and after, without most of the equal lines."""
        was, will = self._bodies()
        more = {False: "", True: ""}  # before and after
        for after in more:
            if "parent" in self.fields:
                more[after] += f"parent: {self.parents[after]}\n"
            if "mark" in self.fields:
                more[after] += f"file: {self.path if after else self._marked()}\n"
            more[after] += "".join(addition.text(after=after) for addition in self.additions)
        before = f"title: {self.page.title}\n{more[False]}\n{was}" if self.page else ""
        wanted = f"title: {self.wanted.title}\n{more[True]}\n{will}" if self.wanted else ""
        return excerpt(f"{self.path} ({self.action})", before, wanted)

    def _bodies(self) -> tuple[str, str]:
        """Return both bodies for the diff. Empty if they are equal: then they may be unread."""
        if "body" not in self.fields:
            return "", ""
        was = "" if self.page is None else self.page.body or ""
        will = "" if self.wanted is None else self.wanted.body
        return readable(was, will, None if self.page is None else self.page.space)

    def _marked(self) -> str:
        """Return the file in the mark of the page, for the diff."""
        mark = None if self.page is None else mark_of(self.page)
        if mark is None:
            return "-"
        return mark.file if mark.is_finished else f"{mark.file} (not finished)"

    def part(self, space: str) -> PlannedChange:
        """Return the change of a page for a sealed plan.

        A deletion contains the version, so a page that was edited after the plan is not deleted.
        """
        page, wanted = self.page, self.wanted
        changes = {str(change["field"]): change for change in self.changes()}
        before: dict[str, Any] = {name: change["before"] for name, change in changes.items()}
        after: dict[str, Any] = {name: change["after"] for name, change in changes.items()}
        before["id"] = None if page is None else page.id
        after["action"], after["path"] = self.action, self.path
        title = wanted.title if wanted is not None else page.title if page is not None else ""
        if wanted is None:
            before["version"] = None if page is None else page.version
        elif "body" in changes:
            after["body"] = wanted.digest
        return PlannedChange(f"{space}/{title}", None, before, after)


class TreePlanner:
    """Match the wanted pages with existing pages and compare them.

    :param restrictions: wanted restrictions of each page; None means not managed
    """

    def __init__(
        self,
        client: WikiClient,
        reader: TreeReader,
        options: TreeOptions,
        restrictions: PageRestrictions | None,
        warn: Callable[[str], None],
    ) -> None:
        self._client, self._reader, self._options = client, reader, options
        self._parent, self._uses_marks = options.parent_id, options.mark
        self._restrictions, self._warn = restrictions, warn
        #: Title of the page with the id `parent_id`.
        self._parent_title = options.parent_id or "-"
        #: Whether to take over pages below the root that do not belong to the tree. Without marks,
        #: pages are matched by their titles only.
        self._adopt = options.adopt or not options.mark
        self._may_orphan = Patterns(
            "allow_orphaned_comments_in", options.allow_orphaned_comments_in
        )

    def plans(self, wanted: Sequence[WantedPage]) -> tuple[ExistingTree | None, list[PagePlan]]:
        """Return the tree on the server, and a plan for each wanted page in the same order.

        Raises `conflict` for a page that does not belong to the tree, and `not_found` for a missing
        space or parent.
        """
        root, former = self._root(wanted)
        tree = None if root is None else self._reader.tree(root)
        root_id = "" if root is None else root.id
        found, pages = dict[str, Page](), {} if tree is None else tree.pages
        if tree is not None:
            ids = match(wanted, tree.own() if self._uses_marks else {}, pages, root_id)
            found = {key: pages[page_id] for key, page_id in ids.items()}
        adopted = self._take_by_title(wanted, found, pages, {root_id, former} - {"", None})
        titles = {page.source.key: page.title for page in wanted}
        orphans = {page.source.key for page in wanted if self._may_orphan.fits(page.source.path)}
        for warning in self._may_orphan.warnings("no page of the tree"):
            self._warn(warning)

        def planned(page: WantedPage) -> PagePlan:
            above, key = page.source.parent, page.source.key
            plan = self._planned(page, found.get(key), found.get(above or ""), root_id)
            if "parent" in plan.fields:
                after = self._parent_title if above is None else titles[above]
                plan.parents = self._title_above(plan.page, pages), after
            plan.adopted = self._uses_marks and key in adopted
            if plan.comments[1]:
                message = (
                    f"{plan.path}: {plan.comments[1]} inline comments of readers lose their place"
                    " in the text"
                )
                if self._options.allow_orphaned_comments or key in orphans:
                    self._warn(message)
                else:
                    cure = "keep the commented text, or name the page in allow_orphaned_comments_in"
                    plan.error = conflict(f"{message}: {cure}")
            return plan

        return tree, spread(self._options.parallel, planned, wanted)

    def _title_above(self, page: Page | None, pages: Mapping[str, Page]) -> str:
        """Return the title of the parent of an existing page, for the diff."""
        if page is None or page.parent is None:
            return "-"
        if page.parent in pages:
            return pages[page.parent].title
        ancestors = page.content.get("ancestors")
        above = ancestors[-1] if isinstance(ancestors, list) and ancestors else None
        title = member(above, "title")
        if str(member(above, "id")) == page.parent and isinstance(title, str):
            return title
        return self._client.shown_parent(page.parent)

    # -- matching ------------------------------------------------------------------------------

    def _root(self, wanted: Sequence[WantedPage]) -> tuple[Page | None, str | None]:
        """Return the root page, and the id of the former tree.

        That is a tree with the same files, whose root page has another title or is gone.
        """
        page = next(page for page in wanted if page.source.key == ROOT)
        found = self._reader.find(page.title)
        if found is None and self._uses_marks:
            found = self._reader.new_root(wanted)
        if found is not None:
            is_ours = _is_root(found) or self._is_left_over(found, page, self._parent)
            if not is_ours and self._adopt and self._parent is None:
                home = member(found.content, "space", "homepage", "id")
                is_ours = found.parent is None or found.parent == str(home)
            elif not is_ours and self._adopt:
                is_ours = self._parent in self._client.ancestors(found)
            if not is_ours:
                raise self._foreign(found, page.title)
            if found.shows_parent and self._parent not in (None, found.parent):
                self._require_parent()
            return found, None
        former = self._reader.former_tree(wanted) if self._uses_marks else None
        root = None if former is None else self._reader.root(former)
        if root is not None and not (_is_root(root) and self._parent in (None, root.parent)):
            former = root = None  # below another parent it is a separate tree
        if root is None and self._parent is None:
            self._client.require_space(self._options.space)
        elif root is None:
            self._require_parent()
        return root, former

    def _require_parent(self) -> None:
        parent = self._client.require_parent(str(self._parent), self._options.space)
        self._parent_title = parent.title

    def _take_by_title(
        self,
        wanted: Sequence[WantedPage],
        found: dict[str, Page],
        below: Mapping[str, Page],
        trees: Collection[str | None],
    ) -> set[str]:
        """Add existing pages with the titles of new pages to `found`. Return the adopted keys.

        Raises `conflict` for a page that may not be taken over.

        :param below: the pages of the tree by id
        :param trees: ids of this tree and of the former tree
        """
        by_title = {title_key(page.title): page for page in below.values()}
        held = {page.id for page in found.values()}
        root = found.get(ROOT)
        adopted = {ROOT} if root is not None and not _is_root(root) else set()
        new = [
            page
            for page in wanted
            if page.source.key not in found
            or title_key(found[page.source.key].title) != page.title_key
        ]
        elsewhere = self._reader.find_all([p for p in new if p.title_key not in by_title])
        for page in new:
            key = page.source.key
            other = by_title.get(page.title_key) or elsewhere.get(key)
            if other is None or other.id in held:
                continue
            is_below = other.id in below
            mark = mark_of(other)
            is_ours = mark is not None and mark.tree in trees
            left_over = is_below and self._is_left_over(other, page, other.parent)
            if key in found or not (left_over or is_ours or (self._adopt and is_below)):
                raise self._foreign(other, page.title)
            found[key] = other
            held.add(other.id)
            adopted |= set() if is_ours else {key}
        return adopted

    def _is_left_over(self, page: Page, wanted: WantedPage, parent: str | None) -> bool:
        """Return whether an interrupted task created the page but did not mark it.

        Creating and marking a page takes two requests with version 2 of the interface [wiki-30].
        """
        if self._client.version == 1 or not self._uses_marks or page.version != 1:
            return False
        unmarked = page.content_property(KEY) is None
        if not unmarked or page.parent != parent or page.body is None:
            return False
        # a restricted page stays empty if the task is interrupted before its restrictions
        is_empty = self._restrictions is not None and page.body == ""
        return is_empty or alike(page.body, wanted.body, page.space, flowing=wanted.flows)

    def _foreign(self, page: Page, title: str) -> ToolchainError:
        """Return the error for a page that does not belong to the tree."""
        mark, space = mark_of(page), self._options.space
        owner = "does not belong to this tree"
        if mark is not None and mark.tree is not None:
            owner = f"belongs to the tree of the page {mark.tree} (file {mark.file})"
        return conflict(
            f"the page '{title}' ({page.id}) in the space {space} {owner}, and is not changed;"
            " adopt: true takes over existing pages below the root page"
        )

    # -- comparing -----------------------------------------------------------------------------

    def _planned(
        self, wanted: WantedPage, page: Page | None, above: Page | None, root: str
    ) -> PagePlan:
        """Compare a page."""
        parent = self._parent if wanted.source.parent is None else (above.id if above else "")
        if page and (not _is_known(page, wanted) or _displaced(page, wanted, parent)):
            page = self._reader.with_body(page)
        additions: list[PageAddition] = []
        if wanted.labels is not None:
            additions.append(PageLabels(self._client, wanted.labels).on(page))
        if wanted.files:
            entries = [PageAttachmentOptions(src, name) for name, src in wanted.files.items()]
            additions.append(PageAttachments(self._client, files_of(entries)).on(page))
        fields = {change.field for change in changes_of(additions)}
        fields |= SAVED if page is None else self._differing(page, wanted, parent, root)
        comments = _comments(page, wanted) if page is not None and fields & SAVED else (0, 0)
        if self._restrictions is not None:
            restrictions = self._restrictions.on(page, saves=bool(fields))
            additions.insert(0, restrictions)
            fields |= {change.field for change in changes_of([restrictions])}
        path = wanted.source.path
        return PagePlan(path, wanted, page, fields, additions=additions, comments=comments)

    def _differing(self, page: Page, wanted: WantedPage, parent: str | None, root: str) -> set[str]:
        """Return the fields of an existing page that differ, apart from its additions."""
        fields = _displaced(page, wanted, parent)
        mark = mark_of(page)
        marked = None if mark is None or not mark.is_finished else (mark.tree, mark.file)
        if self._uses_marks and marked != (root, wanted.source.path):
            fields.add("mark")
        before, flowing = page.body or "", wanted.flows
        if not _is_known(page, wanted) and not alike(
            before, wanted.body, page.space, flowing=flowing
        ):
            fields.add("body")
        return fields


def _comments(page: Page, wanted: WantedPage) -> tuple[int, int]:
    """Return the numbers of inline comments that a new body keeps and loses."""
    before = page.body or ""
    if alike(before, wanted.body, page.space, flowing=wanted.flows):
        return 0, 0
    return comment_counts(before, with_comments(before, wanted.body))


def without_file(
    tree: ExistingTree | None, plans: Sequence[PagePlan], *, marked: bool
) -> list[Page]:
    """Return the pages of a tree that have no file, parents first.

    :param marked: only pages that the tree has marked; otherwise all pages below its root page
    """
    if tree is None:
        return []
    marks = tree.own()
    page_ids = {tree.root.id, *(plan.page.id for plan in plans if plan.page is not None)}
    return [
        page
        for page in tree.pages.values()
        if page.id not in page_ids and (page.id in marks or not marked)
    ]


def deletions(
    tree: ExistingTree | None, plans: Sequence[PagePlan], most: int, warn: Callable[[str], None]
) -> list[PagePlan]:
    """Return plans that delete the pages whose files are gone, deepest pages first.

    A page stays if pages below it do not belong to the tree, because the server would move them up.
    Raises `invalid` for more than `most` deletions.
    """
    if tree is None:
        return []
    page_ids = {plan.page.id for plan in plans if plan.page is not None}
    marks, gone = tree.own(), without_file(tree, plans, marked=True)
    found: list[Page] = []
    for page in reversed(gone):
        below = [child for child in tree.children(page.id) if child not in found]
        foreign = [child for child in below if child.id not in page_ids]
        if foreign:
            warn(
                f"the page '{page.title}' ({page.id}) no longer has a file, but is kept because"
                f" the page '{foreign[0].title}' ({foreign[0].id}), which does not belong to the"
                " tree, is below it"
            )
        else:
            found.append(page)
    if len(found) > most:
        names = ", ".join(marks[page.id].file for page in found[:10])
        raise invalid(
            f"prune would delete {len(found)} pages ({names}), but max_deletions is {most}: raise"
            " it to delete them"
        )
    return [PagePlan(marks[page.id].file, None, page, {"state"}) for page in found]


def _is_known(page: Page, wanted: WantedPage) -> bool:
    """Return whether the mark shows that the page has the wanted body, without reading it."""
    mark = mark_of(page)
    return mark is not None and (mark.digest, mark.version) == (wanted.digest, page.version)


def _displaced(page: Page, wanted: WantedPage, parent: str | None) -> set[str]:
    """Return which of the fields `title` and `parent` differ.

    :param parent: id of the wanted parent; None means not managed
    """
    fields = {"title"} if " ".join(page.title.split()) != wanted.title else set()
    return fields if parent in (None, page.parent) else fields | {"parent"}


def _is_root(page: Page) -> bool:
    mark = mark_of(page)
    return mark is not None and mark.tree in (None, page.id)


def match(
    wanted: Sequence[WantedPage],
    marks: Mapping[str, TreeMark],
    pages: Mapping[str, Page],
    root: str,
) -> dict[str, str]:
    """Return the ids of the matching pages by key of the file.

    A file matches the page whose mark contains it, whatever the title. If another file is now the
    page of a folder, it matches the page of the former one. A moved file matches the page with its
    title, unless that page matches another file.

    :param marks: marks of the pages of the tree, by page id
    :param pages: pages of the tree, by page id
    :param root: id of the root page
    """
    by_file = {mark.file: page_id for page_id, mark in marks.items()}
    by_title = {title_key(pages[page_id].title): page_id for page_id in marks}
    found = {ROOT: root}
    others = [page for page in wanted if page.source.key != ROOT]
    found.update(
        (page.source.key, by_file[page.source.path])
        for page in others
        if page.source.path in by_file
    )
    taken = set(found.values())
    left = {page_id: mark for page_id, mark in marks.items() if page_id not in taken}
    by_key = {key: page_id for page_id in left for key in possible_keys(left[page_id].file)}
    holders: list[Callable[[WantedPage], str | None]] = [
        lambda page: by_key.get(page.source.key),
        lambda page: by_title.get(page.title_key),
    ]
    for holder_of in holders:
        for page in others:
            holder = holder_of(page)
            if page.source.key not in found and holder is not None and holder not in taken:
                found[page.source.key] = holder
                taken.add(holder)
    _resolve_blocked_renames({page.source.key: page for page in others}, found, by_title)
    return found


def _resolve_blocked_renames(
    wanted: Mapping[str, WantedPage], found: dict[str, str], by_title: Mapping[str, str]
) -> None:
    """Match by title if renames would form a cycle, or need the title of a page without a file."""
    for start in list(found):
        chain: list[str] = []
        key = start
        while key in wanted and key not in chain:
            holder = by_title.get(wanted[key].title_key)
            if holder is None or holder == found[key]:
                chain = []
                break
            chain.append(key)
            key = next((other for other, page_id in found.items() if page_id == holder), "")
        if key in chain:  # a cycle
            chain = chain[chain.index(key) :]
        elif key:
            chain = []
        for renamed in chain:
            found[renamed] = by_title[wanted[renamed].title_key]


def left_out(plans: Sequence[PagePlan], indexes: Collection[int]) -> set[int]:
    """Return the indexes of the given plans and of all plans that depend on them.

    A page depends on the plan of its parent, and on the plan of the page that still has its title.
    A deletion depends on the plans of the pages below.
    """
    out = set(indexes)
    while True:
        more = {
            index
            for index, plan in enumerate(plans)
            if index not in out and any(_needs(plan, plans[other]) for other in out)
        }
        if not more:
            return out
        out |= more


def _needs(plan: PagePlan, other: PagePlan) -> bool:
    """Return whether `plan` can only be carried out after `other`."""
    if plan.wanted is None:  # a deletion, which needs the moves of the pages below
        stays = other.page
        return plan.page is not None and stays is not None and stays.parent == plan.page.id
    if other.wanted is None:
        return False
    source = other.wanted.source
    if source.key == ROOT and (other.page is None or other.adopted):
        return True  # the marks of all pages contain the id of the root
    if source.key == plan.wanted.source.parent:
        return other.page is None or {"parent"} <= plan.fields & other.fields
    is_held = other.page is not None and title_key(other.page.title) == plan.wanted.title_key
    return is_held and "title" in other.fields
