# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the wiki as it gives and takes them (written interface, 2.3 and 4.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import errors
from ..core.seraph import require_login
from ..core.task import Task
from ..core.wire import Answer, path, unreadable

_CONTENT = "rest/api/content"
#: Server fact: neither body nor ancestors come unless they are asked for.
_EXPAND = "body.storage,version,space,ancestors"
_REFUSED = "wiki.expand refused"
_SUCCESSOR = "its successor is api/v2/pages, which this module does not speak"
_JAVA_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")


@dataclass(frozen=True)
class Page:
    """A page; C(body) is C(None) where the server does not send it, C(parent) an id.

    C(shows_parent): the server says where the page stands (C(parent) C(None): at the top).
    """

    id: str
    title: str
    space: str | None
    version: int
    url: str
    status: str = "current"
    type: str = "page"
    body: str | None = None
    parent: str | None = None
    shows_parent: bool = False

    def shown(self) -> dict[str, Any]:
        """The C(page) return value."""
        names = ("id", "title", "space", "version", "url")
        return {name: getattr(self, name) for name in names}


def describe(answer: Answer) -> str:
    """The wiki's words without the package of its exception (server fact: C(message), C(data))."""
    try:
        decoded = json.loads(answer.body)
    except ValueError:
        return errors.words(answer.text)
    if not isinstance(decoded, Mapping) or not isinstance(decoded.get("message"), str):
        return errors.words(answer.text)
    lines = [_JAVA_PACKAGE.sub("", decoded["message"]).strip(), *_details(decoded.get("data"))]
    return "; ".join(dict.fromkeys(filter(None, lines)))


def _details(data: Any) -> Iterator[str]:
    entries = data.get("errors") if isinstance(data, Mapping) else None
    for entry in entries if isinstance(entries, list) else []:
        message = entry.get("message") if isinstance(entry, Mapping) else None
        if isinstance(message, Mapping):
            message = message.get("translation") or message.get("key")
        if isinstance(message, str):
            yield message


class Wiki:
    """Requests to the wiki."""

    def __init__(self, task: Task) -> None:
        self._transport = task.transport(describe=describe)
        self._base = task.connection.url
        # The written interface knows no query: a server may refuse it, which is asked only once.
        self._expand = None if self._transport.memory.get(_REFUSED) else _EXPAND

    def get(self, what: str, page_id: str, space: str | None) -> Page | None:
        """A page by id; C(None) where it is missing or not visible (the server does not tell).

        C(space) here and below: the key of its space, where the server does not show it.
        """
        answer = self._read(what, f"{_CONTENT}/{path(page_id)}", {}, (200, 404))
        return None if answer.status == 404 else self._page(answer, answer.json(), space)

    def require(self, what: str, page_id: str, space: str | None) -> Page:
        """A page by id; C(not_found) where it is missing or not visible."""
        answer = self._read(what, f"{_CONTENT}/{path(page_id)}", {}, (200,))
        return self._page(answer, answer.json(), space)

    def find(self, what: str, space: str, title: str) -> Page | None:
        """A page by its title, which the server trims and compares without regard to case."""
        query = {"spaceKey": space, "title": title, "type": "page"}
        answer = self._read(what, _CONTENT, query, (200,))
        decoded = answer.json()
        results = decoded.get("results") if isinstance(decoded, Mapping) else None
        if not isinstance(results, list):
            raise unreadable(answer, "a list of pages")
        pages = [one for one in results if _has_title(one, title)]
        pages.sort(key=lambda one: one["title"] != title)
        if not pages:
            return None
        page_id = _member(pages[0], "id")
        if page_id is not None and _member(pages[0], "body", "storage", "value") is None:
            # Some servers expand nothing in the results of a look-up.
            return self.get(what, str(page_id), space)
        return self._page(answer, pages[0], space)

    def create(self, what: str, content: Mapping[str, Any]) -> Answer:
        return self._write(what, "POST", _CONTENT, content)

    def replace(self, what: str, page_id: str, content: Mapping[str, Any]) -> Answer:
        return self._write(what, "PUT", f"{_CONTENT}/{path(page_id)}", content)

    def trash(self, what: str, page_id: str) -> Answer:
        return self._send(what, "DELETE", f"{_CONTENT}/{path(page_id)}", (200, 202, 204))

    def written(self, answer: Answer, space: str | None) -> Page | None:
        """The page in the answer to a write; C(None) where it shows none (no shape is written)."""
        try:
            return self._page(answer, answer.json(), space)
        except errors.ToolchainError:
            return None

    def _read(
        self, what: str, place: str, query: Mapping[str, str], expect: tuple[int, ...]
    ) -> Answer:
        """Ask with C(expand), and once without it where the server refuses that with 400."""
        headers = {"Accept": "application/json"}
        while True:
            expansion = {} if self._expand is None else {"expand": self._expand}
            answer = self._transport.read(
                what,
                place,
                query={**query, **expansion},
                headers=headers,
                expect=(*expect, 400) if expansion else expect,
                judge=self._require_login,
            )
            if answer.status == 400:
                self._expand = None
                continue
            self._transport.memory[_REFUSED] = self._expand is None
            return answer

    def _write(self, what: str, method: str, place: str, content: Mapping[str, Any]) -> Answer:
        query = {} if self._expand is None else {"expand": self._expand}
        return self._send(what, method, place, (200, 201), query=query, json=content)

    def _send(
        self, what: str, method: str, place: str, expect: tuple[int, ...], **parts: Any
    ) -> Answer:
        headers = {"Accept": "application/json", "X-Atlassian-Token": "no-check"}
        return self._transport.write(
            what, method, place, headers=headers, expect=expect, judge=self._require_taken, **parts
        )

    def _require_login(self, answer: Answer) -> None:
        require_login(answer, self._transport.connection.has_credentials)
        if answer.status == 410:
            said = errors.shorten(describe(answer))
            raise answer.error("not_found", f"the server answered 410: {said}; {_SUCCESSOR}", said)

    def _require_taken(self, answer: Answer) -> None:
        """As for a read; a login page with a success status is no answer to a write, either."""
        self._require_login(answer)
        refusal = unreadable(answer, "a page")
        if answer.status < 300 and refusal.kind == "auth":
            raise refusal

    def _page(self, answer: Answer, content: Any, space: str | None) -> Page:
        """A page from the server's object; C(protocol) where it has no id, title or version."""
        version = _number(_member(content, "version", "number"))
        page_id, title = _member(content, "id"), _member(content, "title")
        if page_id is None or not isinstance(title, str) or version is None:
            raise unreadable(answer, "a page with id, title and version")
        ancestors = _member(content, "ancestors")
        shows_parent = isinstance(ancestors, list)
        parent = _member(ancestors[-1], "id") if shows_parent and ancestors else None
        body = _member(content, "body", "storage", "value")
        return Page(
            id=str(page_id),
            title=title,
            space=_member(content, "space", "key") or space,
            version=version,
            url=self._url(str(page_id), content),
            status=_member(content, "status") or "current",
            type=_member(content, "type") or "page",
            body=body if isinstance(body, str) else None,
            parent=None if parent is None else str(parent),
            shows_parent=shows_parent,
        )

    def _url(self, page_id: str, content: Any) -> str:
        base, page = _member(content, "_links", "base"), _member(content, "_links", "webui")
        if isinstance(page, str):
            return f"{(base or self._base).rstrip('/')}{page}"
        return f"{self._base}/pages/viewpage.action?pageId={page_id}"


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _number(value: Any) -> int | None:
    """A number that a server may have written as text."""
    return int(value) if str(value).isdecimal() else None


def _has_title(content: Any, title: str) -> bool:
    found = _member(content, "title")
    is_page = _member(content, "type") in (None, "page")
    return is_page and isinstance(found, str) and found.strip().lower() == title.lower()
