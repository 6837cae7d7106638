# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a page, shared by the modules of this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ...core.address import require_segment
from ...core.errors import invalid
from ...core.module.typed_options import Option, PathText
from ..attachments import PageAttachmentOptions
from ..names import composed, wrong_title
from .page_restrictions import RestrictedOperations


@dataclass(frozen=True)
class PageAddress:
    """Options that identify a page: its id, or its space and title."""

    page_id: str | None = None
    space: str | None = None
    title: str | None = None

    def require(self) -> None:
        """Raise `invalid` if the options do not identify a page."""
        if self.page_id is None:
            self.space_and_title()
        require_segment("page_id", self.page_id)
        wrong = None if self.title is None else wrong_title(self.title.strip())
        if wrong is not None:
            raise invalid(f"title: {wrong}")

    def space_and_title(self) -> tuple[str, str]:
        """Return space and title, for a page without `page_id`. Raises `invalid` without them."""
        if self.space is None or self.title is None:
            raise invalid("set page_id, or space and title, to identify the page")
        return self.space, composed(self.title)

    @property
    def named(self) -> str:
        """Return the page as messages name it, for example `the page 7`."""
        if self.page_id is not None:
            return f"the page {self.page_id}"
        space, title = self.space_and_title()
        return f"the page '{title}' in the space {space}"


@dataclass(frozen=True)
class PageFields(PageAddress):
    """Options without defaults, the same for a single page and an entry of `pages`."""

    parent_id: str | None = None
    body: Annotated[str | None, Option(empty=True, whole=True)] = None
    src: PathText | None = None
    section: str | None = None
    must_keep: str | None = None
    expected_version: int | None = None
    version_comment: Annotated[str | None, Option(empty=True)] = None
    restrictions: RestrictedOperations | None = None
    labels: list[str] | None = None
    attachments: list[PageAttachmentOptions] | None = None


@dataclass(frozen=True)
class PageOptions(PageFields):
    """All options of a page."""

    compare: Literal["normalized", "exact"] = "normalized"
    on_conflict: Literal["fail", "retry"] = "fail"
    minor_edit: bool = False
    allow_orphaned_comments: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False
