# SPDX-License-Identifier: GPL-3.0-or-later
"""Match files with pages of the server, by file or by title."""

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
    """Return the ids of the existing pages, by key of the file.

    A page belongs to the file in its mark, whatever its title. Otherwise the file was moved, and
    belongs to the page with its title, unless that page has a file.

    :param marks: the marks of the pages that the tree wrote, by id
    :param root: the id of the root page
    """
    by_key = {key_of(mark.file): page_id for page_id, mark in marks.items()}
    by_title = {title_key(pages[page_id].title): page_id for page_id in marks}
    found = {ROOT: root}
    rest = [page for page in wanted if page.source.key != ROOT]
    for page in rest:
        if page.source.key in by_key:
            found[page.source.key] = by_key[page.source.key]
    taken = set(found.values())
    for page in rest:
        holder = by_title.get(page.title_key)
        if page.source.key not in found and holder is not None and holder not in taken:
            found[page.source.key] = holder
            taken.add(holder)
    _settle_titles({page.source.key: page for page in rest}, found, by_title)
    return found


def _settle_titles(
    wanted: Mapping[str, WantedPage], found: dict[str, str], by_title: Mapping[str, str]
) -> None:
    """Match pages by title if their renames would wait for each other or for a kept title."""
    for start in list(found):
        chain: list[str] = []
        key = start
        while key in wanted and key not in chain:
            holder = by_title.get(wanted[key].title_key)
            if holder is None or holder == found[key]:
                chain = []
                break
            chain.append(key)
            key = next((each for each, page_id in found.items() if page_id == holder), "")
        if key in chain:  # a circle
            chain = chain[chain.index(key) :]
        elif key:
            chain = []
        for each in chain:
            found[each] = by_title[wanted[each].title_key]
