# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that describe one page; the modules of this room take them over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ...core.errors import invalid
from ...core.module.typed_options import Option, PathText
from ..attachments import PageAttachmentOptions
from ..names import composed, wrong_title


@dataclass(frozen=True)
class PageAddress:
    """How a task names a page: by its id, or by its space and title."""

    page_id: str | None = None
    space: str | None = None
    title: str | None = None

    def require(self) -> None:
        """C(invalid) where the page cannot be found by what is given, or nothing is called so."""
        if self.page_id is None:
            self.space_and_title()
        wrong = None if self.title is None else wrong_title(self.title.strip())
        if wrong is not None:
            raise invalid(f"title: {wrong}")

    def space_and_title(self) -> tuple[str, str]:
        """By what a page without C(page_id) is found; C(invalid) where one of them is missing."""
        if self.space is None or self.title is None:
            raise invalid("give page_id, or space and title, so that the page can be found")
        return self.space, composed(self.title)

    @property
    def named(self) -> str:
        """The page in messages."""
        if self.page_id is not None:
            return f"the page {self.page_id}"
        space, title = self.space_and_title()
        return f"the page '{title}' in the space {space}"


@dataclass(frozen=True)
class PageFields(PageAddress):
    """Options of a page without defaults: they are the same for one page and for an entry."""

    parent_id: str | None = None
    body: Annotated[str | None, Option(empty=True, whole=True)] = None
    src: PathText | None = None
    section: str | None = None
    expected_version: int | None = None
    version_comment: Annotated[str | None, Option(empty=True)] = None
    labels: list[str] | None = None
    attachments: list[PageAttachmentOptions] | None = None


@dataclass(frozen=True)
class PageOptions(PageFields):
    """All options of one page."""

    compare: Literal["normalized", "exact"] = "normalized"
    on_conflict: Literal["fail", "retry"] = "fail"
    minor_edit: bool = False
    allow_orphaned_comments: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False
