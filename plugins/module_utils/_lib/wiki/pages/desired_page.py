# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired state of a page: compare it with a page, and save it [W4.3].

Saving never overwrites changes of other users. Server facts [wiki-3]: every version number except
the next is rejected with 409. A 409 or 5xx can also report a temporary lock inside the server,
which the error message shows. After a lost response or any other 5xx, only a verification read
shows whether the page was saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import sleep
from typing import Annotated, Any, Literal

from ...core.errors import Kind, ToolchainError, conflict, invalid, protocol
from ...core.files import open_regular
from ...core.json_text import member
from ...core.module.typed_options import Option, PathText, Positive, Segment
from ...core.verification import without_effect
from ..additions import PageAttachmentOptions
from ..client import WikiClient
from ..formats import mentions
from ..formats.comparison import BodyComparison, compare
from ..formats.inline_comments import with_comments, without_markers
from ..formats.parser import Malformed, Section, find_section, parse, require_inside
from ..page import Page, composed, wrong_title
from .restrictions import RestrictedOperations


def require_title(name: str, title: str | None) -> None:
    """Raise `invalid` for an option with an impossible title."""
    wrong = None if title is None else wrong_title(title.strip())
    if wrong is not None:
        raise invalid(f"{name}: {wrong}")


@dataclass(frozen=True)
class PageAddress:
    """Options that identify a page: its id, or its space and title."""

    page_id: Segment | None = None
    space: str | None = None
    title: str | None = None

    def require(self) -> None:
        """Raise `invalid` if the options do not identify a page."""
        if self.page_id is None:
            self.space_and_title()
        require_title("title", self.title)

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

    parent_id: Segment | None = None
    parent_title: str | None = None
    body: Annotated[str | None, Option(empty=True, whole=True)] = None
    src: PathText | None = None
    section: str | None = None
    must_keep: str | None = None
    expected_version: Positive | None = None
    version_comment: Annotated[str | None, Option(empty=True)] = None
    restrictions: RestrictedOperations | None = None
    labels: list[str] | None = None
    attachments: list[PageAttachmentOptions] | None = None
    accounts: Annotated[dict[str, str] | None, Option(values="line")] = None

    def require(self) -> None:
        super().require()
        require_title("parent_title", self.parent_title)


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

    def require(self) -> None:
        super().require()
        if self.section is not None and self.state == "absent":
            raise invalid(
                f"section: state=absent would remove all of {self.named}: leave out section, or"
                " set body to '' to empty the section"
            )


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
        there = page.body if self.heading is None else self._section(page).content
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
            raise protocol(
                f"{named}: the server does not send the body, so it is unknown whether the new body"
                " lacks text that must_keep matches: leave out must_keep"
            )
        if page is not None and self.heading is not None:
            there = self._section(page).content
        lost = dict.fromkeys(found[0] for found in self.must_keep.finditer(there))
        lost = {text: None for text in lost if text not in kept}
        if lost:
            what = "page" if self.heading is None else f"section '{self.heading}'"
            more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            raise conflict(
                f"{named}: the {what} contains {', '.join(list(lost)[:_SHOWN])}{more}, but the new"
                " body does not: leave out must_keep to replace it (in the role release_notes: set"
                " release_notes_allow_empty)"
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
            raise protocol(
                f"the server does not send the body of the page '{page.title}', so the whole body"
                " must be given: set body or src, without section"
            )
        if self.body is None or (self.validate(page) if comparison is None else comparison).same:
            return page.body or ""
        if self.heading is None:
            return with_comments(page.body or "", self.body)
        found = self._section(page)
        require_inside(self.body, found)
        return found.replaced(with_comments(found.content, self.body))

    def _section(self, page: Page) -> Section:
        return find_section(
            page.body or "", self.heading or "", f"the page '{page.title}' ({page.id})"
        )

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


def desired_page(options: PageOptions, *, in_cloud: bool) -> DesiredPage:
    """Return the desired page of a task. Raises `invalid` for a malformed body.

    :param in_cloud: mentions of users are account ids of the cloud
    """
    title, body = options.title, _body(options)
    if body is not None and options.accounts:
        body = mentions.with_accounts(body, options.accounts, in_cloud=in_cloud)
    if options.section is not None and body is None:
        raise invalid("section requires its content: set body or src")
    if options.must_keep is not None and body is None:
        raise invalid("must_keep requires the new content: set body or src")
    try:
        must_keep = None if options.must_keep is None else re.compile(options.must_keep)
    except re.error as error:
        raise invalid(f"must_keep is not a regular expression: {error}") from None
    return DesiredPage(
        title=None if title is None else composed(title),
        body=body,
        parent=options.parent_id,
        heading=options.section,
        exact=options.compare == "exact",
        must_keep=must_keep,
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


# -- saving ----------------------------------------------------------------------------------------

_ATTEMPTS = 4
_FIRST_PAUSE = 0.2  # seconds, doubled each time
_LOCK = re.compile(
    r"[a-z]Lock|(?i:\b(dead)?lock|optimisticlock|stale(object|state)|roll(ed)?.?back|unreconciled)"
)
_OTHER_VERSION = re.compile(r"version must be incremented", re.I)
_TITLE_IN_USE = re.compile(r"title already exists|already exists with the (same )?title", re.I)


class PageWriter:
    """Create or update a page, and recover from conflicts.

    :param note: `message` and `minorEdit` of the saved version
    :param properties: content properties of a new page
    :param retry: after a conflict, save again if the other user left the body unchanged
    :param restrict: sets the restrictions of the page; called before the content is saved
    """

    def __init__(
        self,
        client: WikiClient,
        desired: DesiredPage,
        *,
        note: Mapping[str, Any],
        retry: bool,
        properties: Mapping[str, Any] | None = None,
        restrict: Callable[[Page], None] | None = None,
    ) -> None:
        self._client, self._desired, self._note, self._retry = client, desired, dict(note), retry
        self._properties, self._restrict = properties, restrict
        #: Whether the server refused the save, because another task had saved the same content.
        self.refused = False

    def create(self, space: str) -> Page:
        """Create the page and return it.

        A restricted page is created empty and gets its content after its restrictions. Otherwise
        everybody could read the content in between.
        """
        if self._restrict is None:
            return self._create(space, self._desired)
        made = self._create(space, replace(self._desired, body=""))
        try:
            self._restrict(made)
            if self._desired.is_met_by(made):
                return made
            saved = self._update(made, self._desired.body or "")
        except ToolchainError as error:
            error.result.setdefault("page", made.shown())
            raise
        shows = member(saved.content, "metadata", "properties") is not None
        return saved if shows else replace(saved, content=made.content)

    def _create(self, space: str, desired: DesiredPage) -> Page:
        """Create a page. After a lost response, search for it instead of repeating the request."""
        title = desired.title or ""
        purpose = f"creating the page '{title}' in the space {space}"
        content = _content(title, space, desired.body or "", desired.parent)
        if self._note:
            content["version"] = {"number": 1, **self._note}
        if self._properties:
            content["metadata"] = {"properties": self._properties}

        seen: list[Page] = []  # the page in the last verification read

        def find() -> Page | None:
            return self._client.find(f"searching for the page '{title}'", space, title)

        def is_made() -> bool | None:
            seen[:] = filter(None, [find()])
            if not seen:
                return False
            met = desired.is_met_by(seen[0]) or self._desired.is_met_by(seen[0])
            return (seen[0].status == "current" and met) or None

        try:
            written = self._client.create(purpose, content, space, is_made)
        except ToolchainError as error:
            if _is_title_in_use(error) and is_made():
                self.refused = True
                return seen[0]  # another task has created it at the same time
            raise _with_hint(error) from None
        found = written or next(iter(seen), None) or find()
        if found is None:
            raise without_effect(purpose, "the page does not exist")
        return found

    def update(self, page: Page, body: str) -> Page:
        """Set the restrictions, save `body` as the next version, and return the saved page."""
        if self._restrict is not None:
            self._restrict(page)
        return self._update(page, body)

    def _update(self, page: Page, body: str) -> Page:
        for attempt in range(_ATTEMPTS):
            try:
                return self._save(page, body)
            except ToolchainError as error:
                now = self._after_failure(error, page)
                if self._is_done(page, now):
                    self.refused = attempt == 0 and not error.outcome_unknown
                    return now
                if attempt == _ATTEMPTS - 1:
                    raise _with_hint(error) from None
                if now.version == page.version:
                    sleep(_FIRST_PAUSE * 2.0**attempt)
                page, body = now, self._desired.body_on(now)
        raise AssertionError("the last try returns or raises")

    def _save(self, page: Page, body: str) -> Page:
        title, version = self._desired.title_on(page), page.version + 1
        content = {
            "id": page.id,
            **_content(title, page.space, body, self._desired.parent),
            "version": {"number": version, **self._note},
        }
        seen: list[Page] = []  # the saved page, if the response was lost
        purpose = f"updating the page '{page.title}' ({page.id})"

        def is_saved() -> bool | None:
            now = self._client.get(f"verifying the page '{page.title}'", page.id, page.space)
            if now is None or now.version not in (page.version, page.version + 1):
                return None
            if now.version == page.version:
                return False
            seen[:] = [now]
            return self._desired.is_met_by(now) or None

        written = self._client.replace(purpose, page, content, is_saved)
        saved = written or next(iter(seen), None)
        if saved is None or saved.id != page.id:
            saved = replace(page, title=title, version=version, shows_parent=False, body=None)
        if page.shows_parent and not saved.shows_parent:
            # Servers differ in whether a save moves the page, so the caller compares the parent.
            purpose = f"reading the page '{title}' ({page.id}) after saving it"
            return self._client.require(purpose, page.id, page.space)
        return saved

    def _after_failure(self, error: ToolchainError, page: Page) -> Page:
        """Read the page after a failed save. Raises an error if the save cannot be repeated.

        It is repeated after a temporary lock in the server. If another user has saved the page,
        it is only repeated with `retry`, and if that user left the body unchanged. That includes a
        save that the page does not show yet.
        """
        if error.kind == "not_found":
            reason = "the page has been deleted meanwhile, or the account may read but not edit it"
            raise _copied(error, "not_found", reason) from None
        if not (error.outcome_unknown or error.kind in ("conflict", "server")) or _is_title_in_use(
            error
        ):
            raise _with_hint(error) from None
        purpose = f"reading the page '{page.title}' after a failure"
        now = self._client.get(purpose, page.id, page.space)
        if now is None or now.status != "current":
            raise _copied(error, "conflict", "the page has been removed meanwhile") from None
        if now.space != page.space:
            reason = f"the page has been moved to the space {now.space} meanwhile"
            raise _copied(error, "conflict", reason) from None
        if now.version == page.version:
            # If the outcome is unknown, the server may still save the page.
            reported = error.verified_undone or not error.outcome_unknown
            if reported and error.status is not None and _LOCK.search(error.detail or ""):
                return now
            if self._retry and error.status == 409 and _is_other_version(error):
                return now  # the read may be behind the server
            if error.outcome_unknown or error.kind == "server":
                reason = f"the page still has version {now.version}, and the save was not repeated"
                raise _copied(error, error.kind, reason) from None
            raise _with_hint(error) from None
        untouched = page.body is not None and now.body == page.body
        repeats = self._retry and untouched and not error.outcome_unknown
        if not repeats and not self._is_done(page, now):
            reason = (
                f"someone else saved the page: version {page.version} was read, but the page now"
                f" has version {now.version}"
            )
            raise _copied(error, "conflict", reason) from None
        return now

    def _is_done(self, page: Page, now: Page) -> bool:
        """Return whether the page was saved although the response is an error.

        After a gateway timeout the server may still save the page, and the next attempt conflicts
        with that. Or another host has saved the same content at the same time.
        """
        return now.version == page.version + 1 and self._desired.is_met_by(now)


def _is_other_version(error: ToolchainError) -> bool:
    """Return whether the server reports another version of the page, or no reason at all."""
    return not error.detail or _OTHER_VERSION.search(error.detail) is not None


def trash(client: WikiClient, purpose: str, page: Page) -> None:
    """Move a page to the trash. It is no error if another user has removed it."""

    def is_gone() -> bool:
        now = client.get(f"verifying the page '{page.title}'", page.id, page.space)
        return now is None or now.status != "current"

    try:
        client.trash(purpose, page, is_gone)
    except ToolchainError as error:
        if error.status != 404 or not is_gone():
            raise


def _content(title: str, space: str | None, body: str, parent: str | None) -> dict[str, Any]:
    """Return the request body of a page without its version [W4.3]. `parent`: id, or None."""
    content: dict[str, Any] = {
        "type": "page",
        "title": title,
        **({} if space is None else {"space": {"key": space}}),
        "body": {"storage": {"value": body, "representation": "storage"}},
    }
    if parent is not None:
        content["ancestors"] = [{"id": parent}]
    return content


def _is_title_in_use(error: ToolchainError) -> bool:
    """Return whether the space already has the title. The status is 400, 409 or 500 [wiki-3]."""
    return _TITLE_IN_USE.search(error.detail or "") is not None


def _with_hint(error: ToolchainError) -> ToolchainError:
    """Return the error, as a `conflict` if the title is in use, or with advice if known."""
    if _is_title_in_use(error):
        return _copied(error, "conflict", None)
    if "unreconciled" in (error.detail or "").lower():
        return _copied(error, error.kind, "to fix this, open the page in the wiki's editor")
    return error


def _copied(error: ToolchainError, kind: Kind, reason: str | None) -> ToolchainError:
    copy = error.with_message(error.message if reason is None else f"{error.message}; {reason}")
    copy.kind = kind
    return copy
