# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in version 1 of the interface, which self-hosted servers use [W2.3, W4.3].

The written interface has no lookup by title, no creation, no labels and no attachments. These
follow server facts [wiki-0].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import errors
from ..core.address import path
from ..core.http.messages import Response, json_or_none
from ..core.http.writes import Verify
from ..core.json_text import member
from .exchange import CONTENT, WikiExchange, content_route, results_of, space_of
from .page import Page, page_of, same_title

_BODY = "body.storage"
#: Key in `memory`: the server rejected the parameter `expand`.
_EXPAND_REJECTED = "wiki.expand rejected"
#: Expected statuses of a read that some servers do not support.
_OPTIONAL_READ = (200, 400, 403, 404, 405)
_NO_LOOKUP = (
    "this server cannot find pages by title (the documented interface does not support it): use"
    " page_id"
)
_NO_LISTING = "the documented interface of the wiki has neither labels nor attachments"


class PagesOfVersion1:
    """Read and write pages in version 1 of the interface.

    :param expand: names of the members to expand, separated by commas
    """

    def __init__(self, exchange: WikiExchange, expand: str) -> None:
        self._exchange, self._expand = exchange, expand

    def get(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        response = self._read(purpose, content_route(page_id), {}, (200, 404))
        if response.status == 404:
            return None
        return self._exchange.page(response, response.json(), space)

    def find_by_id(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        response = self._read(purpose, content_route(page_id), {}, (200, 404))
        if response.status == 200:
            return self._exchange.page(response, response.json(), space)
        self._require_wiki(purpose, response)
        return None

    def _require_wiki(self, purpose: str, response: Response) -> None:
        """Raise `not_found` if a 404 does not come from a wiki."""
        if _is_no_route(response):
            listed = self._exchange.ask(purpose, CONTENT, {"limit": 1}, (200, 400, 404, 405))
            if not isinstance(member(json_or_none(listed.body), "results"), list):
                raise response.error("not_found", "there is no wiki at this address: check url")

    def require(self, purpose: str, page_id: str, space: str | None) -> Page:
        response = self._read(purpose, content_route(page_id), {}, (200,))
        return self._exchange.page(response, response.json(), space)

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        query = {"spaceKey": space, "title": title, "type": "page"}
        try:
            response = self._read(purpose, CONTENT, query, (200,))
        except errors.ToolchainError as error:
            if error.kind == "not_found" and error.status == 404:
                error.with_hint(_NO_LOOKUP)
            raise
        pages = [
            result
            for result in results_of(response, "a list of pages", "id", "title")
            if _has_title(result, title)
        ]
        pages.sort(key=lambda one: one["title"] != title)
        if not pages:
            return None
        if member(pages[0], "body", "storage", "value") is None:
            # Some servers do not expand the results of a lookup.
            return self.get(purpose, str(pages[0]["id"]), space)
        return self._exchange.page(response, pages[0], space)

    def require_space(self, key: str) -> None:
        response = self._space(key)
        if response.status == 404 and not _is_no_route(response):
            raise response.error(
                "not_found", f"there is no space {key}, or the account cannot see it"
            )

    def parent(self, purpose: str, page_id: str) -> Page | None:
        return self.get(purpose, page_id, None)

    def ancestors(self, page: Page) -> list[str]:
        return page.ancestors()

    def is_home(self, page: Page) -> bool:
        if page.home is None and page.space is not None:
            response = self._space(page.space)
            reported = response.json() if response.status == 200 else None
            return str(member(reported, "homepage", "id")) == page.id
        return bool(page.home)

    def has_children(self, page: Page) -> bool:
        if page.has_children is not None:
            return page.has_children
        purpose = f"searching for pages below the page {page.id}"
        route = content_route(page.id, "child", "page")
        response = self._exchange.ask(purpose, route, {"limit": 1}, _OPTIONAL_READ)
        if response.status == 403:  # there may be some that the account cannot see
            return True
        return response.status == 200 and bool(results_of(response, "a list of pages"))

    def children_ids(self, page: Page) -> list[str]:
        purpose = f"listing the pages below the page {page.id}"
        listed = self._listing(purpose, content_route(page.id, "child", "page"), "id")
        return [str(one["id"]) for one in listed]

    def home(self, key: str) -> str:
        response = self._space(key)
        home = member(response.json(), "homepage", "id") if response.status == 200 else None
        if home is None:
            raise response.error(
                "not_found", f"the space {key} has no visible home page: set title"
            )
        return str(home)

    def space(self, key: str) -> dict[str, Any] | None:
        purpose, query = f"reading the space {key}", {"expand": "homepage,description.plain"}
        response = self._exchange.ask(purpose, path("rest", "api", "space", key), query, (200, 404))
        if response.status == 404:
            self._require_wiki(purpose, response)
            return None
        shown = response.json()
        text = member(shown, "description", "plain", "value")
        return space_of(response, shown, member(shown, "homepage", "title"), text)

    def content_of(self, purpose: str, key: str, kind: str, most: int) -> list[Any]:
        route = path("rest", "api", "space", key, "content", kind)
        return self._exchange.listing(purpose, route, {}, "id", "title", most=most)

    def possibly_renamed(self, purpose: str, key: str, expand: str) -> list[Page]:
        route = path("rest", "api", "space", key, "content", "page")
        entries = self._exchange.listing(purpose, route, {"expand": f"version,{expand}"})
        pages = [page for page in self._parsed(entries, key) if page is not None]
        if len(pages) < len(entries):
            message = "the server returned a page without id, title or version"
            raise errors.ToolchainError("protocol", f"{purpose}: {message}")
        return pages

    def _space(self, key: str) -> Response:
        purpose, route = f"reading the space {key}", path("rest", "api", "space", key)
        return self._exchange.ask(purpose, route, {"expand": "homepage"}, _OPTIONAL_READ)

    def children(self, purpose: str, page_id: str, space: str | None) -> list[Page]:
        """Return the children of a page, without their bodies."""
        expand = ",".join(name for name in self._expand.split(",") if name != _BODY)
        route = content_route(page_id, "child", "page")
        entries = self._listing(purpose, route, "id", expand=expand)
        return [
            page or self.require(purpose, str(entry["id"]), space)
            for page, entry in zip(self._parsed(entries, space), entries, strict=True)
        ]

    def _parsed(self, entries: Sequence[Any], space: str | None) -> list[Page | None]:
        base = self._exchange.site or self._exchange.transport.connection.url
        return [page_of(entry, space, base) for entry in entries]

    # -- writes --------------------------------------------------------------------------------

    def create(
        self, purpose: str, content: Mapping[str, Any], space: str, verify: Verify
    ) -> Page | None:
        response = self._save(purpose, "POST", CONTENT, content, verify)
        return self._written(response, space)

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        """Save a page. `expand` is only sent to servers that returned the parent when reading."""
        expands = page.shows_parent
        response = self._save(
            purpose, "PUT", content_route(page.id), content, verify, expands=expands
        )
        return self._written(response, page.space)

    def trash(self, purpose: str, page_id: str, verify: Verify) -> None:
        expect = (200, 202, 204)
        route = content_route(page_id)
        self._exchange.send(purpose, "DELETE", route, expect, verify=verify, repeatable=True)

    def _save(
        self,
        purpose: str,
        method: str,
        route: str,
        content: Mapping[str, Any],
        verify: Verify,
        *,
        expands: bool = True,
    ) -> Response:
        query = {"expand": self._expand} if expands and self._expands else {}
        expect = (200, 201, 202, 204)
        return self._exchange.send(
            purpose, method, route, expect, query=query, json=content, verify=verify
        )

    def _written(self, response: Response, space: str | None) -> Page | None:
        """Return the page in the response to a write, or None if there is none."""
        try:
            return self._exchange.page(response, response.json(), space)
        except errors.ToolchainError:
            return None

    # -- labels, attachments, properties -------------------------------------------------------

    def labels(self, purpose: str, page_id: str) -> list[Any]:
        return self._listing(purpose, content_route(page_id, "label"), "name")

    def attachments(self, purpose: str, page_id: str) -> list[Any]:
        route = content_route(page_id, "child", "attachment")
        return self._listing(purpose, route, "id", "title", expand="version")

    def read_property(self, purpose: str, page_id: str, key: str) -> Any:
        route = content_route(page_id, "property", key)
        response = self._exchange.ask(purpose, route, {}, (200, 404))
        return response.json() if response.status == 200 else None

    def write_property(
        self, purpose: str, page_id: str, value: Mapping[str, Any], known: Any, verify: Verify
    ) -> None:
        below = ("property",) if known is None else ("property", str(value["key"]))
        method = "POST" if known is None else "PUT"
        route = content_route(page_id, *below)
        self._exchange.send(purpose, method, route, (200, 201, 204), json=value, verify=verify)

    def _listing(self, purpose: str, route: str, *needed: str, **query: str) -> list[Any]:
        """Return all entries of a paginated list of a page.

        :param needed: members of each entry, as in `results_of()`
        """
        try:
            return self._exchange.listing(purpose, route, query, *needed)
        except errors.ToolchainError as error:
            if error.kind == "not_found" and error.status == 404:
                error.with_hint(_NO_LISTING)
            raise

    # -- expansion -----------------------------------------------------------------------------

    def _read(
        self, purpose: str, route: str, query: Mapping[str, str], expect: tuple[int, ...]
    ) -> Response:
        """Read with `expand`. Repeat the read without it if the server may have rejected it."""
        if self._expands:
            expanded = {**query, "expand": self._expand}
            response = self._exchange.ask(purpose, route, expanded, (*expect, 400, 404))
            if not (response.status == 400 or (query == {} and _is_no_route(response))):
                if response.status not in expect:
                    raise self._exchange.transport.failure(response)
                return response
        response = self._exchange.ask(purpose, route, query, expect)
        if response.status == 200:
            self._exchange.memory[_EXPAND_REJECTED] = True
        return response

    @property
    def _expands(self) -> bool:
        """Return whether to send `expand`. It is not sent again after a server rejected it."""
        return not self._exchange.memory.get(_EXPAND_REJECTED)


def _is_no_route(response: Response) -> bool:
    """Return whether a 404 may report a missing route. For a missing page it has `statusCode`."""
    return response.status == 404 and member(json_or_none(response.body), "statusCode") is None


def _has_title(content: Any, title: str) -> bool:
    found = member(content, "title")
    is_page = member(content, "type") in (None, "page")
    return is_page and isinstance(found, str) and same_title(found, title)
