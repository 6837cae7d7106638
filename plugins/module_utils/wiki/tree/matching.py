# SPDX-License-Identifier: GPL-3.0-or-later
"""Match files with existing pages, by the file in the mark or by title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..page import Page
from .marks import TreeMark
from .source_files import ROOT, key_of
from .wanted_pages import WantedPage, title_key


def match(
    wanted: Sequence[WantedPage],
    marks: Mapping[str, TreeMark],
    pages: Mapping[str, Page],
    root: str,
) -> dict[str, str]:
    """Return the ids of the matching pages by key of the file.

    A file matches the page whose mark contains it, whatever the title. A moved file matches the
    page with its title, unless that page matches another file.

    :param marks: marks of the pages of the tree, by page id
    :param pages: pages of the tree, by page id
    :param root: id of the root page
    """
    by_key = {key_of(mark.file): page_id for page_id, mark in marks.items()}
    by_title = {title_key(pages[page_id].title): page_id for page_id in marks}
    found = {ROOT: root}
    others = [page for page in wanted if page.source.key != ROOT]
    for page in others:
        if page.source.key in by_key:
            found[page.source.key] = by_key[page.source.key]
    taken = set(found.values())
    for page in others:
        holder = by_title.get(page.title_key)
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
