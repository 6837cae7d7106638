# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage comments of the task's account [tracker-25], and watchers [tracker-31]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.http.messages import expected
from ...core.json_text import as_text, json_objects, member
from ...core.plan import Change
from ..accounts import identity
from ..issues.documents import is_document, same_document, text_of
from ..issues.text_format import TextFormat
from ..pagination import read_all
from .issue_options import IssueOptions
from .site import Edit, Part, Site, TrackerIssue

_PAGE_SIZE = 1000
_ADDING, _EDITING = ("ADD_COMMENTS",), ("EDIT_OWN_COMMENTS",)
_DELETING = ("DELETE_OWN_COMMENTS",)
#: Property of a comment that customers of a service project cannot see.
_INTERNAL = "sd.public.comment"


@dataclass(frozen=True)
class OwnComment:
    """A comment of the task's account.

    `body`: as the server stores it, a string or a document. `visibility`: type and name of the role
    or group that can see it, or None. `internal`: whether customers cannot see it.
    """

    body: Any
    text: str
    visibility: tuple[str, str] | None
    internal: bool

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> OwnComment:
        shown = record.get("visibility")
        kind, name = (as_text(member(shown, part)) for part in ("type", "value"))
        visibility = (kind, name) if kind and name else None
        body = record.get("body")
        internal = record.get("jsdPublic") is False  # only the cloud sends it
        properties = record.get("properties")
        for entry in properties if isinstance(properties, list) else []:
            if member(entry, "key") == _INTERNAL:
                internal = as_text(member(entry, "value", "internal")).lower() == "true"
                break
        return cls(body, text_of(body), visibility, internal)


class CommentPart(Part):
    """Add, edit or delete a comment of the task's account.

    Existing comments are compared first, because the server would store the same comment twice.
    """

    names = ("comment",)

    def __init__(self, site: Site, options: IssueOptions, texts: TextFormat) -> None:
        super().__init__(site)
        self._text = options.comment or ""
        self._find, self._absent = options.comment_find, options.comment_state == "absent"
        visibility = options.comment_visibility
        self._visibility = visibility and (visibility.type, visibility.value.strip())
        self._internal = options.comment_internal
        self._stored = texts.stored(self._text, "comment")
        self._wanted = text_of(self._stored)
        self._markdown = texts.markdown

    @property
    def needs(self) -> tuple[str, ...]:
        return () if self._absent else _ADDING

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        comments = self._own_comments(issue.fields.get("comment"), issue.key)
        found = [
            number
            for number, known in comments.items()
            if (self._has_text(known) if self._find is None else self._find in known.text)
        ]
        if self._absent:
            return [self._deletion(issue, number, comments[number].text) for number in found]
        if any(map(self._is_wanted, comments.values())):
            return []
        same = [number for number, known in comments.items() if self._has_text(known)]
        number = next(reversed([*found, *same]), None)
        if number is not None:
            current = comments[number]
            edit = partial(self._write, issue, "PUT", "editing the comment on", _EDITING, number)
            body = self._body(current.visibility)
            return [Edit(self._changes(current), partial(edit, json=body), _EDITING)]
        add = partial(self._write, issue, "POST", "commenting on", _ADDING, json=self._body())
        return [Edit(self.expected(), add, _ADDING, self._body())]

    def expected(self) -> tuple[Change, ...]:
        return () if self._absent else self._changes(None)

    def ensure(self, now: TrackerIssue) -> list[Change]:
        """Write what a transition with the comment left undone. Return what is not stored then.

        Server fact [tracker-24]: servers drop a comment that is not on the screen.
        """
        left = self.edits(now)
        for edit in left:
            edit.write()
        return self.unsaved(now, self._site.issue(now.key, self.names)) if left else []

    def _is_wanted(self, comment: OwnComment) -> bool:
        return not self._changes(comment)

    def _changes(self, current: OwnComment | None) -> tuple[Change, ...]:
        """Return the changes of the text and of the managed audience of a comment."""
        changes = []
        if current is None or not self._has_text(current):
            before, after = current and current.text, self._text
            if self._markdown:
                after = self._wanted
            if current is not None and before == after:  # the documents differ
                before, after = current.body, self._stored
            changes.append(Change("comment", before, after))
        visibility = current.visibility if current else None
        if self._visibility and _folded(visibility) != _folded(self._visibility):
            shown = visibility and " ".join(visibility)
            changes.append(Change("comment_visibility", shown, " ".join(self._visibility)))
        internal = current.internal if current else False
        if self._internal is not None and self._internal != internal:
            changes.append(Change("comment_internal", internal, self._internal))
        return tuple(changes)

    def _has_text(self, comment: OwnComment) -> bool:
        """Return whether a comment has the wanted text, of Markdown the wanted document."""
        if self._markdown and is_document(self._stored):
            return same_document(comment.body, self._stored)
        return comment.text == self._wanted

    def _own_comments(self, shown: Any, key: str) -> dict[str, OwnComment]:
        """Return the comments by the task's account by id, oldest first.

        :param shown: comments in the issue, which may only be the first page; None reads all
        """
        account = identity(self._site.own)
        return {
            as_text(comment.get("id")): OwnComment.of(comment)
            for comment in self._comments(shown, key)
            if identity(comment.get("author")) == account
        }

    def _comments(self, shown: Any, key: str) -> list[Any]:
        found, total = member(shown, "comments"), member(shown, "total")
        is_whole = isinstance(found, list) and isinstance(total, int) and len(found) >= total
        is_whole = is_whole and len(json_objects(found)) == len(found)
        is_whole = is_whole and (self._internal is None or self._site.cloud)
        return found if is_whole and not member(shown, "startAt") else self._read(key)

    def _read(self, key: str) -> list[dict[str, Any]]:
        """Return all comments. Raises `protocol` if the server does not send all of them."""
        purpose = f"reading the comments of the issue '{key}'"
        route = self._site.issue_route(key, "comment")
        more = {} if self._internal is None or self._site.cloud else {"expand": "properties"}
        return read_all(self._site.client.read, purpose, route, "comments", _PAGE_SIZE, **more)

    def _deletion(self, issue: TrackerIssue, number: str, text: str) -> Edit:
        def write() -> None:
            def done() -> bool:
                return number not in self._own_comments(None, issue.key)

            purpose = "deleting the comment on"
            self._write(issue, "DELETE", purpose, _DELETING, number, verify=done)

        return Edit((Change("comment", text, None),), write, _DELETING)

    def _body(self, current: tuple[str, str] | None = None) -> dict[str, Any]:
        """Return the comment for a request.

        :param current: the visibility to keep, which a server could otherwise remove
        """
        body: dict[str, Any] = {"body": self._stored}
        visibility = self._visibility or current
        if visibility:
            body["visibility"] = dict(zip(("type", "value"), visibility, strict=True))
        if self._internal is not None:
            body["properties"] = [{"key": _INTERNAL, "value": {"internal": self._internal}}]
        return body

    def _write(
        self,
        issue: TrackerIssue,
        method: str,
        purpose: str,
        needs: tuple[str, ...],
        *below: str,
        **parts: Any,
    ) -> None:
        self._site.write(
            f"{purpose} the issue '{issue.key}'",
            method,
            self._site.issue_route(issue.key, "comment", *below),
            needs=needs,
            issue=issue.key,
            **{
                "verify": lambda: any(
                    map(self._is_wanted, self._own_comments(None, issue.key).values())
                ),
                **parts,
            },
        )


def _folded(visibility: tuple[str, str] | None) -> str | None:
    return visibility and " ".join(visibility).casefold()


class WatchersPart(Part):
    """Add and remove watchers. Other watchers stay [tracker-31]."""

    def __init__(self, site: Site, added: list[str], removed: list[str]) -> None:
        super().__init__(site)
        self._added, self._removed = added, removed
        #: Accounts of the planned changes by the key of an issue.
        self._planned: dict[str, list[tuple[str, str, Change]]] = {}

    @property
    def needs(self) -> tuple[str, ...]:
        return self._needed(map(self._account, self._added))

    def _needed(self, accounts: Iterable[str]) -> tuple[str, ...]:
        """Return the permission for watchers other than the account, which needs none."""
        is_own = partial(self._site.accounts.has_id, self._site.own)
        return () if all(map(is_own, accounts)) else ("MANAGE_WATCHERS",)

    def _account(self, name: str, there: Iterable[Mapping[str, Any]] = ()) -> str:
        return self._site.accounts.id_of(name, "watchers", there)

    def edits(self, issue: TrackerIssue) -> list[Edit]:
        there, hidden = self._read(issue)
        added = {self._account(name, there): name for name in self._added}
        planned = [
            ("POST", account, Change("watchers", None, name))
            for account, name in added.items()
            if not self._is_among(there, account)
        ]
        for name in self._removed:
            gone = self._existing(name, there)
            if gone in added:
                raise invalid(
                    f"'{name}' in remove.watchers is the account '{added[gone]}' in watchers:"
                    " remove it from one of them"
                )
            is_there = gone is not None and self._is_among(there, gone)
            if gone is not None and not is_there and hidden and self._needed([gone]):
                raise ToolchainError(
                    "permission",
                    f"remove.watchers: the issue '{issue.key}' has {hidden} watchers that this"
                    f" account cannot see, so '{name}' may be one of them; the permission to view"
                    " watchers is missing",
                )
            if gone is not None and is_there:
                planned.append(("DELETE", gone, Change("watchers", name, None)))
        self._planned[issue.key] = planned
        return [
            Edit((change,), partial(self._write, issue, method, account), self._needed([account]))
            for method, account, change in planned
        ]

    def unsaved(self, before: TrackerIssue, now: TrackerIssue) -> list[Change]:
        """See `Part`. A watcher that the account cannot see may have been added."""
        there, hidden = self._read(now)
        return [
            change
            for method, account, change in self._planned[now.key]
            if self._is_among(there, account) != (method == "POST")
            and not (method == "POST" and hidden and self._needed([account]))
        ]

    def _is_among(self, watchers: Iterable[Mapping[str, Any]], account: str) -> bool:
        return any(self._site.accounts.has_id(watcher, account) for watcher in watchers)

    def _existing(self, name: str, there: list[Mapping[str, Any]]) -> str | None:
        """Return the id of an account, or None if it does not exist."""
        try:
            return self._account(name, there)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            return None

    def expected(self) -> tuple[Change, ...]:
        for name in self._added:
            self._account(name)
        return tuple(Change("watchers", None, name) for name in self._added)

    def _read(self, issue: TrackerIssue) -> tuple[list[Mapping[str, Any]], int]:
        """Return the watchers, and the number of watchers that the account cannot see."""
        purpose = f"reading the watchers of the issue '{issue.key}'"
        response = self._site.client.read(purpose, self._route(issue))
        found = expected(response, list, "a list of watchers", "watchers")
        count = response.json().get("watchCount")
        hidden = max(0, count - len(found)) if isinstance(count, int) else 0
        return [watcher for watcher in found if isinstance(watcher, Mapping)], hidden

    def _write(self, issue: TrackerIssue, method: str, account: str) -> None:
        def done() -> bool:
            return self._is_among(self._read(issue)[0], account) == (method == "POST")

        name = "accountId" if self._site.cloud else "username"
        parts = {"json": account} if method == "POST" else {"query": {name: account}}
        self._site.write(
            f"changing the watchers of the issue '{issue.key}'",
            method,
            self._route(issue),
            needs=["MANAGE_WATCHERS"],
            issue=issue.key,
            verify=done,
            repeatable=True,
            **parts,
        )

    def _route(self, issue: TrackerIssue) -> str:
        return self._site.issue_route(issue.key, "watchers")
