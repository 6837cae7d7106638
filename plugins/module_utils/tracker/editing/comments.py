# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage comments of the task's account [tracker-25], and watchers [tracker-31]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import ToolchainError
from ...core.http.messages import unexpected_body
from ...core.plan import Change
from ..fields.documents import plain_lines, text_of, to_document
from .edits import Edit
from .issue_options import IssueOptions
from .site import Site, TrackerIssue

#: Members that identify an author. A deleted account has none of them [tracker-23].
_IDENTITIES = ("accountId", "key", "name")
#: Members that identify an account in requests.
_SENT = ("accountId", "name")
_MAX_PAGES = 1000
_ADDING, _EDITING = ("ADD_COMMENTS",), ("EDIT_OWN_COMMENTS",)
_DELETING = ("DELETE_OWN_COMMENTS",)


class CommentPart:
    """Add, edit or delete a comment of the task's account.

    Existing comments are compared first, because the server would store the same comment twice.
    """

    names = ("comment",)

    def __init__(self, site: Site, options: IssueOptions) -> None:
        self._site, self._text = site, options.comment or ""
        self._find, self._absent = options.comment_find, options.comment_state == "absent"
        text = self._text
        self._wanted = text_of(to_document(text)) if site.cloud else plain_lines(text)

    @property
    def needs(self) -> tuple[str, ...]:
        return () if self._absent else _ADDING

    def differs(self, issue: TrackerIssue) -> bool:
        return True  # a search does not return all comments

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        comments = self._own_comments(issue.fields.get("comment"), issue.key)
        found = [number for number, text in comments.items() if self._is_meant(text)]
        if self._absent:
            return [self._deletion(issue, number, comments[number]) for number in found]
        if self._wanted in comments.values():
            return []
        if found and self._find is not None:
            change = Change("comment", comments[found[-1]], self._text)
            return [Edit((change,), partial(self._edit, issue, found[-1]), _EDITING)]
        return [Edit(self.expected(), partial(self._add, issue), _ADDING)]

    def expected(self) -> tuple[Change, ...]:
        return () if self._absent else (Change("comment", None, self._text),)

    def _is_meant(self, text: str) -> bool:
        return text == self._wanted if self._find is None else self._find in text

    def _own_comments(self, shown: Any, key: str) -> dict[str, str]:
        """Return the text of the comments by the task's account by id, oldest first.

        :param shown: comments in the issue, which may only be the first page; None reads all
        """
        account = _identity(self._site.own())
        return {
            str(comment.get("id")): text_of(comment.get("body"))
            for comment in self._comments(shown, key)
            if _identity(comment.get("author")) == account
        }

    def _comments(self, shown: Any, key: str) -> Iterator[Mapping[str, Any]]:
        shown = shown if isinstance(shown, Mapping) else {}
        found = shown.get("comments") or []
        if shown.get("startAt"):
            found = []  # a later page, so earlier comments are missing
        yield from found
        if len(found) < int(shown.get("total") or 0) or not shown:
            yield from self._read(key, len(found))

    def _read(self, key: str, start: int) -> Iterator[Mapping[str, Any]]:
        purpose, route = (
            f"reading the comments of the issue '{key}'",
            self._site.issue_route(key, "comment"),
        )
        for _page in range(_MAX_PAGES):
            response = self._site.client.read(
                purpose, route, query={"startAt": start, "maxResults": 1000}
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
        self._write(issue, "POST", "commenting on", _ADDING, json={"body": self._body()})

    def _edit(self, issue: TrackerIssue, number: str) -> None:
        body = {"body": self._body()}
        self._write(issue, "PUT", "editing the comment on", _EDITING, number, json=body)

    def _deletion(self, issue: TrackerIssue, number: str, text: str) -> Edit:
        def write() -> None:
            def done() -> bool:
                return number not in self._own_comments(None, issue.key)

            purpose = "deleting the comment on"
            self._write(issue, "DELETE", purpose, _DELETING, number, verify=done)

        return Edit((Change("comment", text, None),), write, _DELETING)

    def _body(self) -> Any:
        return to_document(self._text) if self._site.cloud else self._text

    def _write(
        self,
        issue: TrackerIssue,
        method: str,
        purpose: str,
        needs: tuple[str, ...],
        *below: str,
        **parts: Any,
    ) -> None:
        try:
            self._site.client.write(
                f"{purpose} the issue '{issue.key}'",
                method,
                self._site.issue_route(issue.key, "comment", *below),
                **{
                    "verify": lambda: self._wanted in self._own_comments(None, issue.key).values(),
                    **parts,
                },
            )
        except ToolchainError as error:
            raise self._site.explained(error, *needs, issueKey=issue.key) from None


class WatchersPart:
    """Add and remove watchers. Other watchers stay [tracker-31]."""

    names = ()

    def __init__(self, site: Site, added: list[str], removed: list[str]) -> None:
        self._site, self._added, self._removed = site, added, removed

    @property
    def needs(self) -> tuple[str, ...]:
        return self._needed(self._added)

    def _needed(self, names: list[str]) -> tuple[str, ...]:
        """Return the permission for watchers other than the account, which needs none."""
        account = self._site.own() if names else {}
        return () if all(_is_called(account, name) for name in names) else ("MANAGE_WATCHERS",)

    def differs(self, issue: TrackerIssue) -> bool:
        return True  # no search returns watchers

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        there = self._read(issue)
        edits = []
        for name in self._added:
            if not any(_is_called(record, name) for record in there):
                account = next(iter(self._site.account(name, "watchers").values()))
                write = partial(self._write, issue, "POST", account)
                edits.append(Edit((Change("watchers", None, name),), write, self._needed([name])))
        for name in self._removed:
            for record in there:
                if _is_called(record, name):
                    write = partial(self._write, issue, "DELETE", str(_identity(record, _SENT)))
                    change = Change("watchers", name, None)
                    edits.append(Edit((change,), write, self._needed([name])))
        return edits

    def expected(self) -> tuple[Change, ...]:
        for name in self._added:
            self._site.account(name, "watchers")
        return tuple(Change("watchers", None, name) for name in self._added)

    def _read(self, issue: TrackerIssue) -> list[Mapping[str, Any]]:
        purpose = f"reading the watchers of the issue '{issue.key}'"
        response = self._site.client.read(purpose, self._route(issue))
        reported = response.json()
        found = reported.get("watchers") if isinstance(reported, Mapping) else None
        if not isinstance(found, list):
            raise unexpected_body(response, "a list of watchers")
        return [watcher for watcher in found if isinstance(watcher, Mapping)]

    def _write(self, issue: TrackerIssue, method: str, account: str) -> None:
        def done() -> bool:
            is_there = any(_is_called(record, account) for record in self._read(issue))
            return is_there == (method == "POST")

        name = "accountId" if self._site.cloud else "username"
        parts = {"json": account} if method == "POST" else {"query": {name: account}}
        try:
            self._site.client.write(
                f"changing the watchers of the issue '{issue.key}'",
                method,
                self._route(issue),
                verify=done,
                repeatable=True,
                **parts,
            )
        except ToolchainError as error:
            raise self._site.explained(error, "MANAGE_WATCHERS", issueKey=issue.key) from None

    def _route(self, issue: TrackerIssue) -> str:
        return self._site.issue_route(issue.key, "watchers")


def _is_called(account: Mapping[str, Any], name: str) -> bool:
    """Return whether an account has this name, id or email address."""
    members = (*_IDENTITIES, "displayName", "emailAddress")
    return name.casefold() in (str(account.get(member)).casefold() for member in members)


def _identity(account: Any, names: Sequence[str] = _IDENTITIES) -> str | None:
    """Return the first of these members that the account has, or None."""
    if not isinstance(account, Mapping):
        return None
    return next((str(account[name]) for name in names if account.get(name)), None)
