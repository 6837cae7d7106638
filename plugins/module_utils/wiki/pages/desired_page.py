# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired state of a page, and its comparison with a page."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.errors import ToolchainError, invalid
from ...core.files import open_regular
from ..names import composed
from ..page import Page
from ..storage import section
from ..storage.comparison import BodyComparison, compare
from ..storage.inline_comments import with_comments, without_markers
from ..storage.parser import Malformed, parse
from .page_options import PageOptions


@dataclass(frozen=True)
class DesiredPage:
    """The desired fields of a page. A field that is None is not managed.

    `heading`: if set, `body` is the content of the section below this heading.
    `exact`: compare bodies as strings.
    """

    title: str | None
    body: str | None
    parent: str | None
    heading: str | None = None
    exact: bool = False

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
    return DesiredPage(
        title=None if title is None else composed(title),
        body=body,
        parent=options.parent_id,
        heading=options.section,
        exact=options.compare == "exact",
    )


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
