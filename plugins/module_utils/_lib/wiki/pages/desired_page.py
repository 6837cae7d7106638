# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired state of a page, and its comparison with a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from ...core.address import require_segment
from ...core.errors import ToolchainError, invalid
from ...core.files import open_regular
from ...core.module.typed_options import Option, PathText
from ..attachments import PageAttachmentOptions
from ..formats import section
from ..formats.comparison import BodyComparison, compare
from ..formats.inline_comments import with_comments, without_markers
from ..formats.parser import Malformed, parse
from ..page import Page, composed, wrong_title
from .restrictions import RestrictedOperations


def _require_title(name: str, title: str | None) -> None:
    """Raise `invalid` for an option with an impossible title."""
    wrong = None if title is None else wrong_title(title.strip())
    if wrong is not None:
        raise invalid(f"{name}: {wrong}")


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
        _require_title("title", self.title)

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
    parent_title: str | None = None
    body: Annotated[str | None, Option(empty=True, whole=True)] = None
    src: PathText | None = None
    section: str | None = None
    must_keep: str | None = None
    expected_version: int | None = None
    version_comment: Annotated[str | None, Option(empty=True)] = None
    restrictions: RestrictedOperations | None = None
    labels: list[str] | None = None
    attachments: list[PageAttachmentOptions] | None = None

    def require(self) -> None:
        super().require()
        _require_title("parent_title", self.parent_title)


@dataclass(frozen=True)
class PageOptions(PageFields):
    """All options of a page."""

    compare: Literal["normalized", "exact"] = "normalized"
    on_conflict: Literal["fail", "retry"] = "fail"
    minor_edit: bool = False
    allow_orphaned_comments: bool = False
    follow_renames: bool = False
    state: Literal["present", "absent"] = "present"
    force: bool = False


#: Maximum number of texts in a message.
_SHOWN = 5


@dataclass(frozen=True)
class DesiredPage:
    """The desired fields of a page. A field that is None is not managed.

    `heading`: if set, `body` is the content of the section below this heading.
    `exact`: compare bodies as strings.
    `must_keep`: what it matches in the present content must be in `body` too.
    """

    title: str | None
    body: str | None
    parent: str | None
    heading: str | None = None
    exact: bool = False
    must_keep: re.Pattern[str] | None = None

    def title_on(self, page: Page) -> str:
        return page.title if self.title is None else self.title

    def validate(self, page: Page) -> BodyComparison:
        """Compare the bodies. A page whose body the server does not send is different."""
        if self.body is None:
            return BodyComparison(True)
        if page.body is None:
            return BodyComparison(False)
        there = page.body if self.heading is None else section.find(page.body, self.heading).content
        return (
            BodyComparison(without_markers(there) == without_markers(self.body))
            if self.exact
            else compare(there, self.body, page.space)
        )

    def require_kept(self, page: Page | None, named: str, warn: Callable[[str], None]) -> None:
        """Raise `conflict` if the new body lacks text that must be kept. Warn if it has none.

        :param named: the page, for messages
        """
        if self.must_keep is None or self.body is None:
            return
        kept = {found[0] for found in self.must_keep.finditer(self.body)}
        there = "" if page is None else page.body or ""
        if page is not None and page.body is None:
            raise ToolchainError(
                "protocol",
                f"{named}: the server does not send the body, so it is unknown whether the new body"
                " lacks text that must_keep matches: leave out must_keep",
            )
        if page is not None and self.heading is not None:
            there = section.find(there, self.heading).content
        lost = dict.fromkeys(found[0] for found in self.must_keep.finditer(there))
        lost = {text: None for text in lost if text not in kept}
        if lost:
            what = "page" if self.heading is None else f"section '{self.heading}'"
            more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            raise ToolchainError(
                "conflict",
                f"{named}: the {what} contains {', '.join(list(lost)[:_SHOWN])}{more}, but the new"
                " body does not: leave out must_keep to replace it (in the role release_notes: set"
                " release_notes_allow_empty)",
            )
        if not kept:
            warn(
                f"{named}: the new body contains nothing that must_keep matches; perhaps a search"
                " found no issues"
            )

    def body_on(self, page: Page, comparison: BodyComparison | None = None) -> str:
        """Return the body to save, which is the stored body if that is equivalent.

        Inline comments of readers are kept if the commented text still exists.

        :param comparison: the result of `validate()`, if known
        """
        if page.body is None and (self.body is None or self.heading is not None):
            raise ToolchainError(
                "protocol",
                f"the server does not send the body of the page '{page.title}', so the whole body"
                " must be given: set body or src, without section",
            )
        if self.body is None or (self.validate(page) if comparison is None else comparison).same:
            return page.body or ""
        if self.heading is None:
            return with_comments(page.body or "", self.body)
        found = section.find(page.body or "", self.heading)
        section.require_inside(self.body, found)
        return found.replaced(with_comments(found.content, self.body))

    def changes_parent(self, page: Page) -> bool:
        """Return whether the page must be moved to another parent.

        False if the server does not return the parent: otherwise every run would move the page. The
        wanted parent is then only sent with other changes.
        """
        return self.parent is not None and page.shows_parent and page.parent != self.parent

    def changes_title(self, page: Page) -> bool:
        return self.title is not None and self.title != composed(page.title)

    def is_met_by(self, page: Page) -> bool:
        """Return whether a saved page is the desired page, even if its body was rewritten."""
        same = replace(self, exact=False).validate(page).same
        return same and not self.changes_title(page) and not self.changes_parent(page)


def desired_page(options: PageOptions) -> DesiredPage:
    """Return the desired page of a task. Raises `invalid` for a malformed body."""
    title, body = options.title, _body(options)
    if options.section is not None and body is None:
        raise invalid("section requires its content: set body or src")
    if options.must_keep is not None and body is None:
        raise invalid("must_keep requires the new content: set body or src")
    return DesiredPage(
        title=None if title is None else composed(title),
        body=body,
        parent=options.parent_id,
        heading=options.section,
        exact=options.compare == "exact",
        must_keep=_pattern(options.must_keep),
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise invalid(f"must_keep is not a regular expression: {error}") from None


def _body(options: PageOptions) -> str | None:
    body, source = options.body, options.src
    if source is not None:
        try:
            with open(source, encoding="utf-8-sig", newline="", opener=open_regular) as file:
                body = file.read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise invalid(f"cannot read src {source}: {reason}") from None
    if body is None:
        return None
    try:
        parse(body)
    except Malformed as error:
        name = "body" if source is None else f"src {source}"
        raise invalid(f"{name} is not well-formed storage format, {error}") from None
    return body
