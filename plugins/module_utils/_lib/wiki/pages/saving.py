# SPDX-License-Identifier: GPL-3.0-or-later
"""Save a page without overwriting changes of other users [W4.3].

Server facts [wiki-3]: every version number except the next is rejected with 409. A 409 or 5xx can
also report a temporary lock inside the server, which the error message shows. After a lost response
or any other 5xx, only a verification read shows whether the page was saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import sleep
from typing import Any

from ...core.errors import Kind, ToolchainError
from ...core.json_text import member
from ...core.verification import without_effect
from ..client import WikiClient
from ..page import Page
from .desired_page import DesiredPage

_ATTEMPTS = 4
_FIRST_PAUSE = 0.2  # seconds, doubled each time
_LOCK = re.compile(
    r"[a-z]Lock|(?i:\b(dead)?lock|optimisticlock|stale(object|state)|roll(ed)?.?back|unreconciled)"
)
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
        written = self._client.replace(purpose, page, content, lambda: self._is_saved(page, seen))
        saved = written or next(iter(seen), None)
        if saved is None or saved.id != page.id:
            saved = replace(page, title=title, version=version, shows_parent=False, body=None)
        if page.shows_parent and not saved.shows_parent:
            # Servers differ in whether a save moves the page, so the caller compares the parent.
            purpose = f"reading the page '{title}' ({page.id}) after saving it"
            return self._client.require(purpose, page.id, page.space)
        return saved

    def _is_saved(self, page: Page, seen: list[Page]) -> bool | None:
        """Return whether the page was saved, or None if another user has saved it."""
        now = self._client.get(f"verifying the page '{page.title}'", page.id, page.space)
        if now is None or now.version not in (page.version, page.version + 1):
            return None
        if now.version == page.version:
            return False
        seen[:] = [now]
        return self._desired.is_met_by(now) or None

    def _after_failure(self, error: ToolchainError, page: Page) -> Page:
        """Read the page after a failed save. Raises an error if the save cannot be repeated."""
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
            self._require_transient(error, now)
        elif not self._is_done(page, now):
            self._require_same_body(error, page, now)
        return now

    def _is_done(self, page: Page, now: Page) -> bool:
        """Return whether the page was saved although the response is an error.

        After a gateway timeout the server may still save the page, and the next attempt conflicts
        with that. Or another host has saved the same content at the same time.
        """
        return now.version == page.version + 1 and self._desired.is_met_by(now)

    def _require_transient(self, error: ToolchainError, now: Page) -> None:
        """Raise an error unless the failure was a temporary lock.

        If the outcome is unknown, the server may still save the page, so the save is not repeated.
        """
        reported = error.verified_undone or not error.outcome_unknown
        if reported and error.status is not None and _LOCK.search(error.detail or ""):
            return
        if error.outcome_unknown or error.kind == "server":
            reason = f"the page still has version {now.version}, and the save was not repeated"
            raise _copied(error, error.kind, reason) from None
        raise _with_hint(error) from None

    def _require_same_body(self, error: ToolchainError, page: Page, now: Page) -> None:
        """Raise `conflict` unless `retry` is set and the other user left the body unchanged."""
        untouched = page.body is not None and now.body == page.body
        if not (self._retry and untouched and not error.outcome_unknown):
            reason = (
                f"someone else saved the page: version {page.version} was read, but the page now"
                f" has version {now.version}"
            )
            raise _copied(error, "conflict", reason) from None


def trash(client: WikiClient, purpose: str, page: Page) -> None:
    """Move a page to the trash. It is no error if another user has removed it."""

    def is_gone() -> bool:
        now = client.get(f"verifying the page '{page.title}'", page.id, page.space)
        return now is None or now.status != "current"

    try:
        client.trash(purpose, page.id, is_gone)
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
