# SPDX-License-Identifier: GPL-3.0-or-later
"""Add a comment, unless the own account has written it before [tracker-25]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.errors import ToolchainError
from ...core.http.messages import unexpected_body
from ...core.plan import Change
from ..fields.documents import plain_lines, text_of, to_document
from .edits import Edit
from .site import Site, TrackerIssue

#: Members that identify an author; a deleted account has no such member [tracker-23].
_IDENTITIES = ("accountId", "key", "name")
_MOST_PAGES = 1000


class CommentPart:
    """Adds a comment after comparing the existing ones, because sending it twice adds two."""

    names = ("comment",)
    needs = ("ADD_COMMENTS",)

    def __init__(self, site: Site, text: str) -> None:
        self._site, self._text = site, text
        self._wanted = text_of(to_document(text)) if site.cloud else plain_lines(text)

    def differs(self, issue: TrackerIssue) -> bool:
        return True  # a search does not return all comments

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        if self._is_there(issue.fields.get("comment"), issue.key):
            return []
        return [Edit(self.expected(), lambda: self._add(issue), self.needs)]

    def expected(self) -> tuple[Change, ...]:
        return (Change("comment", None, self._text),)

    def _is_there(self, shown: Any, key: str) -> bool:
        """Return whether the own account has written it; `shown` may be the first page only."""
        own = _identity(self._site.own())
        return any(
            text_of(comment.get("body")) == self._wanted and _identity(comment.get("author")) == own
            for comment in self._comments(shown, key)
        )

    def _comments(self, shown: Any, key: str) -> Iterator[Mapping[str, Any]]:
        shown = shown if isinstance(shown, Mapping) else {}
        found = shown.get("comments") or []
        if shown.get("startAt"):
            found = []  # not the first page: earlier comments are missing
        yield from found
        if len(found) < int(shown.get("total") or 0) or not shown:
            yield from self._read(key, len(found))

    def _read(self, key: str, start: int) -> Iterator[Mapping[str, Any]]:
        what, place = f"reading the comments of the issue '{key}'", self._site.place(key, "comment")
        for _page in range(_MOST_PAGES):
            response = self._site.client.read(
                what, place, query={"startAt": start, "maxResults": 1000}
            )
            page = response.json()
            comments = page.get("comments") if isinstance(page, Mapping) else None
            if not isinstance(comments, list):
                raise unexpected_body(response, "a list of comments")
            yield from comments
            start += len(comments)
            if not comments or start >= int(page.get("total") or 0):
                return

    def _add(self, issue: TrackerIssue) -> None:
        body = to_document(self._text) if self._site.cloud else self._text
        try:
            self._site.client.write(
                f"commenting on the issue '{issue.key}'",
                "POST",
                self._site.place(issue.key, "comment"),
                json={"body": body},
                verify=lambda: self._is_there(None, issue.key),
            )
        except ToolchainError as error:
            raise self._site.judged(error, *self.needs, issueKey=issue.key) from None


def _identity(account: Any) -> str | None:
    """Return the first identity that both accounts have."""
    if not isinstance(account, Mapping):
        return None
    return next((str(account[name]) for name in _IDENTITIES if account.get(name)), None)
