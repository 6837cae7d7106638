# SPDX-License-Identifier: GPL-3.0-or-later
"""Read paginated lists of a container registry; the pagination differs between servers [W4.1]."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from ...core.address import has_valid_characters
from ...core.errors import ToolchainError
from ...core.http.messages import Response, unexpected_body
from ..client import RepoClient, object_of

#: Default page size.
PAGE = 1000
#: Maximum number of pages, to stop at a server whose list never ends.
_MAX_PAGES = 10_000
#: Maximum number of consecutive empty pages. A page is empty if the login may see none of its
#: names, but some servers send links to empty pages forever.
_MAX_EMPTY = 10
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
#: Maximum length of the parameters of a link.
_LONGEST_PARAMETERS = 1000
_NEXT = re.compile(r"""\brel\s*=\s*["']?(?:[^"';,]*\s)?next\b""", re.IGNORECASE)
_Pairs = list[tuple[str, str]]


@dataclass
class NameList:
    """A paginated list of names.

    Server facts [repo-23]: the address in `Link` may lack a part of its path, contain another host,
    or repeat itself. Only its query is used, and a page without new names ends the list, unless it
    is full. A registry may ignore the page size, not sort the names, and return `null` for an empty
    list.

    :param key: key of the list in a response: `tags` or `repositories`
    :param page: maximum number of names per page
    :param until: stop after the page with this name; `None` means to read all pages
    """

    client: RepoClient
    purpose: str
    path: str
    key: str
    page: int = PAGE
    until: str | None = None
    _found: dict[str, None] = field(default_factory=dict)
    _pages: int = 0

    def read(self) -> list[str] | None:
        """Return all names without duplicates in the server's order; `None` if the list does not
        exist.
        """
        # a 404 for a later page does not mean that the list does not exist
        response = self._ask([("n", str(self.page))], 404)
        if response.status == 404:
            return None
        count = len(self._names(response) or [])
        self._add(response)
        following = _next_query(response)
        if following is not None:
            self._follow(following)
        elif count == self.page or not self.client.dialect.tag_links:
            self._read_on(required=count >= self.page)
        return list(self._found)

    def _ask(self, query: _Pairs, *expect: int) -> Response:
        self._pages += 1
        if self._pages > _MAX_PAGES:
            message = f"{self.purpose}: the list did not end after {_MAX_PAGES} pages"
            raise ToolchainError("protocol", message)
        return self.client.transport.read(
            self.purpose, self.path, query=query, expect=(200, *expect)
        )

    def _names(self, response: Response) -> list[str] | None:
        """Return the names of a page; `None` if the server rejected the request."""
        if response.status != 200:
            return None
        wanted = f"a list of {self.key}"
        decoded = object_of(response, wanted)
        found = decoded.get(self.key)
        if found is None and (self._found or decoded.keys() & {self.key, "name"}):
            # server fact [repo-23]: `null`, or only the name of the image, means an empty list
            return []
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise unexpected_body(response, wanted)
        return found

    def _add(self, response: Response) -> bool:
        """Add the names of a page; return whether any of them is new."""
        known = len(self._found)
        self._found.update(dict.fromkeys(self._names(response) or []))
        return len(self._found) > known

    @property
    def _is_enough(self) -> bool:
        return self.until is not None and self.until in self._found

    def _follow(self, following: _Pairs | None) -> None:
        """Read the pages that links announce; after a broken link, continue without links.

        :param following: query of the next page
        """
        empty = 0
        while following is not None and not self._is_enough and empty < _MAX_EMPTY:
            response = self._ask(following, 400, 404)
            following = _next_query(response)
            if self._add(response):
                empty = 0
            elif self._names(response) == []:
                empty += 1
            else:
                self._continue_without_links(response)
                return

    def _continue_without_links(self, response: Response) -> None:
        """Continue without links. Raises `protocol` if that does not reach the end of the list.

        :param response: response to the broken link
        """
        known = len(self._found)
        end_seen = self._read_on()
        if end_seen or len(self._found) > known:
            return
        if response.status != 200:
            message = f"the server returned {response.status} for the next page that it had linked"
            raise response.error("protocol", message)
        if len(self._names(response) or []) >= self.page:
            message = "the server sends the same page again: names may be missing"
            raise response.error("protocol", message)

    def _read_on(self, *, required: bool = False) -> bool:
        """Read further pages without links; return whether the end of the list was reached.

        The written interface [W4.1] does not specify a maximum page size, so a short page may not
        be the last. Nor does it specify the parameter `last`: for some servers it is the last name,
        for others the number of names.

        :param required: whether to raise an error if a request fails, as after a full page
        """
        for by_count in (False, True):
            while self._found and not self._is_enough:
                last = str(len(self._found)) if by_count else next(reversed(self._found))
                try:
                    response = self._ask([("n", str(self.page)), ("last", last)], 400, 404)
                except ToolchainError:
                    if required:
                        raise
                    break
                if self._names(response) == []:
                    return True
                if not self._add(response):
                    break
        return self._is_enough


def _next_query(response: Response) -> _Pairs | None:
    for target, parameters in _LINK.findall(response.headers.get("Link") or ""):
        if _NEXT.search(parameters[:_LONGEST_PARAMETERS]) and has_valid_characters(target):
            try:
                return parse_qsl(urlsplit(target).query) or None
            except ValueError:  # the address of the link is malformed
                return None
    return None
