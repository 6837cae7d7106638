# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages that the entries of a list create or rename, which later entries may name as parents."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import predicted_pages
from ..page import composed


@dataclass
class UpcomingPages:
    """The pages of a task, in the order of its list.

    A page that does not exist yet has a predicted id, also outside of check mode.
    """

    #: Number of the entry and id of the page, by space and title.
    _pages: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    #: Titles of the pages to create by predicted id, and ids of those that were created.
    titles: dict[str, str] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)

    def add(self, number: int, space: str, title: str, page_id: str | None) -> None:
        """Add the page of an entry. `page_id`: None if the entry creates the page."""
        found = page_id or predicted_pages.id_for(space, composed(title))
        self._pages.setdefault(_key(space, title), (number, found))
        if page_id is None:
            self.titles[found] = composed(title)

    def find(self, space: str, title: str, before: int) -> str | None:
        """Return the id of the page that an entry before this number gives a title, or None."""
        number, page_id = self._pages.get(_key(space, title), (before, ""))
        return page_id if number < before else None

    def made(self, space: str, title: str, page_id: str) -> None:
        """Note the id of a page that was created."""
        self._made[predicted_pages.id_for(space, composed(title))] = page_id

    def id_of(self, page_id: str | None) -> str | None:
        """Return the id of a page, also of one that was created meanwhile.

        Returns None for a page that was not created.
        """
        return self._made.get(str(page_id)) if page_id in self.titles else page_id

    def shown(self, page_id: str | None) -> str:
        """Return a parent for the diff."""
        return f"'{self.titles[page_id]}'" if page_id in self.titles else page_id or "-"


def _key(space: str, title: str) -> tuple[str, str]:
    return space.lower(), composed(title).lower()
