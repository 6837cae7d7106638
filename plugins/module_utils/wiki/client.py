# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the wiki: send requests for pages and parse the responses [W2.3, W4.3].

The written interface has no lookup by title, no creation, no labels and no attachments: these
follow the server facts [wiki-0].
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from ..core import errors
from ..core.address import path, path_of
from ..core.http.download import Taken, download
from ..core.http.file_download import RemoteContent, download_into
from ..core.http.login_refusal import require_login, require_scope
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from ..core.module.task import Task
from . import predicted_pages
from .error_text import describe
from .names import composed, decomposed
from .page import Page, member, page_of
from .scopes import scopes_of

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

CONTENT = "rest/api/content"
#: Server fact [wiki-1]: a response has body and ancestors only if they are expanded.
_BODY = "body.storage"
_EXPAND = f"{_BODY},version,space,ancestors"
_LABELS = "metadata.labels"
#: Shows whether a page may be removed: its children, and the home page of its space [wiki-11].
_OBSTACLES = "children.page,space.homepage"
#: The operations that the account may do with the page [wiki-18].
_RIGHTS = "operations"
#: Server fact [wiki-11]: the maximum number of entries in a part of a list.
_LIMIT = 200
_MAX_ENTRIES = 100_000
_REFUSED = "wiki.expand refused"
#: Expected statuses of a read that some servers do not support.
_OPTIONAL_READ = (200, 400, 403, 404, 405)
_SUCCESSOR = "its successor is api/v2/pages, which this module does not speak"
_NO_LOOKUP = (
    "this server has no look-up by title (the written interface of the wiki knows none):"
    " only page_id finds a page there"
)
_NO_LISTING = "the written interface of the wiki knows neither labels nor attachments"


class WikiClient:
    """Read and write pages with their labels, properties and attachments.

    :param labels: expand the labels
    :param obstacles: expand children and home page, see `removal_obstacle`
    :param rights: in check mode, expand the operations that the account may do
    :param more: further members to expand
    :param connections: maximum number of connections
    """

    def __init__(
        self,
        task: Task,
        *,
        labels: bool = False,
        obstacles: bool = False,
        rights: bool = False,
        more: Sequence[str] = (),
        connections: int = 10,
    ) -> None:
        self.predictions = task.predictions
        self._task, self._connections = task, connections
        optional = {_LABELS: labels, _OBSTACLES: obstacles, _RIGHTS: rights and task.read_only}
        chosen = [name for name, wanted in optional.items() if wanted]
        self._expand = ",".join([_EXPAND, *chosen, *more])

    @functools.cached_property
    def _transport(self) -> Transport:
        """Return the transport. With `cloud_id: auto` it reads the id of the site first."""
        return self._task.transport(describe=describe, connections=self._connections)

    @property
    def _base(self) -> str:
        """Return the base address for people."""
        connection = self._transport.connection
        return connection.site or connection.url

    def get(self, what: str, page_id: str, space: str | None) -> Page | None:
        """Return a page by id; None if it is missing or not visible.

        `space` here and below: the space key for servers that do not show it.
        """
        response = self._read(what, place_of(page_id), {}, (200, 404))
        return None if response.status == 404 else self._page(response, response.json(), space)

    def find_by_id(self, what: str, page_id: str, space: str | None) -> Page | None:
        """Return a page like `get()`. Raise `not_found` if there is no wiki at this address."""
        response = self._read(what, place_of(page_id), {}, (200, 404))
        if response.status == 200:
            return self._page(response, response.json(), space)
        if _is_no_route(response):
            listed = self._ask(what, CONTENT, {"limit": 1}, (200, 400, 404, 405))
            if not isinstance(member(json_or_none(listed.body), "results"), list):
                raise response.error("not_found", "no wiki answers at this address: check url")
        return None

    def require_space(self, key: str) -> None:
        """Raise `not_found` if a space is missing or not visible.

        Servers without this read pass the check.
        """
        if self.predictions.get("space", key.lower()) is not None:
            return
        response = self._space(key)
        if response.status == 404 and not _is_no_route(response):
            raise response.error("not_found", f"there is no space {key}, or no right to see it")

    def require_parent(self, page_id: str, space: str | None, child: str = "") -> None:
        """Check the parent of a page.

        Raises `not_found` if it is missing or not visible, `conflict` if it is in another space,
        `rejected` if it is the page `child` itself or below it.
        """
        found = predicted_pages.by_id(self.predictions, page_id)
        if found is None:
            found = self.get(f"reading the parent page {page_id}", page_id, None)
        if found is None or found.status != "current":
            said = f"there is no page {page_id} to be the parent, or no right to see it"
            raise errors.ToolchainError("not_found", f"parent_id: {said}")
        if space and found.space and space.lower() != found.space.lower():
            said = f"the page {page_id} is in the space {found.space}, not in {space}"
            raise errors.ToolchainError("conflict", f"parent_id: {said}")
        if child in (found.id, *found.ancestors()):
            said = f"the page {page_id} is the page itself, or below it, and cannot be its parent"
            raise errors.ToolchainError("rejected", f"parent_id: {said}")

    def removal_obstacle(self, page: Page) -> str | None:
        """Return a reason not to remove a page: it is a home page or has children; else None."""
        home, below = page.home, page.has_children
        if home is None and page.space is not None:
            response = self._space(page.space)
            told = response.json() if response.status == 200 else None
            home = str(member(told, "homepage", "id")) == page.id
        if home:
            return f"it is the home page of the space {page.space}"
        if below is None:
            what = f"looking for pages below the page {page.id}"
            response = self._ask(
                what, place_of(page.id, "child", "page"), {"limit": 1}, _OPTIONAL_READ
            )
            below = response.status == 200 and bool(_results(response, "a list of pages"))
        return "pages are below it" if below else None

    def home(self, key: str) -> str:
        """Return the id of the home page of a space. Raises `not_found`."""
        response = self._space(key)
        home = member(response.json(), "homepage", "id") if response.status == 200 else None
        if home is None:
            raise response.error("not_found", f"the space {key} shows no home page: name a title")
        return str(home)

    def _space(self, key: str) -> Response:
        what = f"reading the space {key}"
        return self._ask(
            what, path("rest", "api", "space", key), {"expand": "homepage"}, _OPTIONAL_READ
        )

    def children(self, what: str, page_id: str, space: str | None) -> list[Page]:
        """Return the children of a page, without their bodies."""
        expand = ",".join(name for name in self._expand.split(",") if name != _BODY)
        entries = self.listing(what, place_of(page_id, "child", "page"), expand=expand)
        return [
            page_of(entry, space, self._base) or self.require(what, str(member(entry, "id")), space)
            for entry in entries
        ]

    def read_json(self, what: str, place: str) -> Any:
        """Return the JSON below a page, for example a property; None if it does not exist."""
        response = self._ask(what, place, {}, (200, 404))
        return response.json() if response.status == 200 else None

    def require(self, what: str, page_id: str, space: str | None) -> Page:
        """Return a page by id. Raise `not_found` if it is missing or not visible."""
        response = self._read(what, place_of(page_id), {}, (200,))
        return self._page(response, response.json(), space)

    def find(self, what: str, space: str, title: str) -> Page | None:
        """Return the page with a title; the server trims titles and ignores case.

        An umlaut in a stored title may be one code point or two, so both spellings are tried.
        Raises `not_found` if the server has no lookup by title.
        """
        spellings = dict.fromkeys((composed(title), decomposed(title)))
        found = (self._find_spelling(what, space, spelling) for spelling in spellings)
        return next((page for page in found if page is not None), None)

    def _find_spelling(self, what: str, space: str, title: str) -> Page | None:
        query = {"spaceKey": space, "title": title, "type": "page"}
        try:
            response = self._read(what, CONTENT, query, (200,))
        except errors.ToolchainError as error:
            if error.kind == "not_found" and error.status == 404:
                error.with_hint(_NO_LOOKUP)
            raise
        pages = [one for one in _results(response, "a list of pages") if _has_title(one, title)]
        pages.sort(key=lambda one: one["title"] != title)
        if not pages:
            return None
        page_id = member(pages[0], "id")
        if page_id is not None and member(pages[0], "body", "storage", "value") is None:
            # Some servers do not expand the results of a lookup.
            return self.get(what, str(page_id), space)
        return self._page(response, pages[0], space)

    def create(self, what: str, content: Mapping[str, Any], verify: Verify) -> Response:
        return self._write(what, "POST", CONTENT, content, verify)

    def replace(
        self, what: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Response:
        """Save a page. Servers that showed no parent do not support `expand` here."""
        place = place_of(page.id)
        return self._write(what, "PUT", place, content, verify, expands=page.shows_parent)

    def trash(self, what: str, page_id: str, verify: Verify) -> Response:
        place = place_of(page_id)
        return self.send(what, "DELETE", place, (200, 202, 204), verify=verify, repeatable=True)

    def written(self, response: Response, space: str | None) -> Page | None:
        """Return the page in the response to a write; None if the response contains none."""
        try:
            return self._page(response, response.json(), space)
        except errors.ToolchainError:
            return None

    # -- labels, properties, attachments -------------------------------------------------------

    def listing(self, what: str, place: str, **query: str) -> list[Any]:
        """Return all entries of a paginated list."""
        found: list[Any] = []
        while True:
            part = {**query, "start": len(found), "limit": _LIMIT}
            try:
                response = self._ask(what, place, part, (200,))
            except errors.ToolchainError as error:
                if error.kind == "not_found" and error.status == 404:
                    error.with_hint(_NO_LISTING)
                raise
            entries = _results(response, "a list")
            if (entries and entries[0] in found) or len(found) > _MAX_ENTRIES:
                raise response.error(
                    "protocol", f"the list does not end after {len(found)} entries"
                )
            found += entries
            if not entries or member(response.json(), "_links", "next") is None:
                return found

    def send(
        self, what: str, method: str, place: str, expect: tuple[int, ...], **parts: Any
    ) -> Response:
        """Send a write with the XSRF header; `parts` are those of `Transport.write()`."""
        own = {"Accept": "application/json", "X-Atlassian-Token": "no-check"}
        headers = {**own, **parts.pop("headers", {})}
        return self._transport.write(
            what,
            method,
            place,
            headers=headers,
            expect=expect,
            validate=self._validate_write,
            **parts,
        )

    def download(self, what: str, place: str, take: Callable[[Incoming], Taken]) -> Taken:
        """Download a content; return the result of `take`."""
        return download(self._transport, what, place, take, validate=self._require_login)

    def download_into(self, what: str, place: str, file: IO[bytes], size: int) -> None:
        """Download `size` bytes into an open file. Raise `protocol` if the size differs."""
        content = RemoteContent(size=size)
        validate = self._require_login
        download_into(self._transport, what, place, file, content=content, validate=validate)

    # -- sending requests ----------------------------------------------------------------------

    def _read(
        self, what: str, place: str, query: Mapping[str, str], expect: tuple[int, ...]
    ) -> Response:
        """Read with `expand`, and again without it if the server may reject the query."""
        if self._expands:
            expanded = {**query, "expand": self._expand}
            response = self._ask(what, place, expanded, (*expect, 400, 404))
            if not (response.status == 400 or (query == {} and _is_no_route(response))):
                if response.status not in expect:
                    raise self._transport.failure(response)
                return response
        response = self._ask(what, place, query, expect)
        if response.status == 200:
            self._transport.memory[_REFUSED] = True
        return response

    @property
    def _expands(self) -> bool:
        """Return whether to send `expand`. A server that rejected it once is not asked again."""
        return not self._transport.memory.get(_REFUSED)

    def _ask(
        self, what: str, place: str, query: Mapping[str, Any], expect: tuple[int, ...]
    ) -> Response:
        return self._transport.read(
            what,
            place,
            query=query,
            headers={"Accept": "application/json"},
            expect=expect,
            validate=self._require_login,
        )

    def _write(
        self,
        what: str,
        method: str,
        place: str,
        content: Mapping[str, Any],
        verify: Verify,
        *,
        expands: bool = True,
    ) -> Response:
        query = {"expand": self._expand} if expands and self._expands else {}
        expect = (200, 201, 202, 204)
        return self.send(what, method, place, expect, query=query, json=content, verify=verify)

    def _require_login(self, response: Response) -> None:
        asked = response.request
        require_scope(response, scopes_of(asked.method, path_of(asked.url)))
        require_login(response, self._transport.connection)
        if response.status == 410:
            said = errors.shorten(describe(response))
            raise response.error(
                "not_found", f"the server returned 410: {said}; {_SUCCESSOR}", said
            )

    def _validate_write(self, response: Response) -> None:
        """Check like a read, and raise `protocol` for an HTML page with a success status."""
        self._require_login(response)
        if response.status < 300 and errors.looks_like_html(response.text):
            raise unexpected_body(response, "another answer")

    # -- parsing responses ---------------------------------------------------------------------

    def _page(self, response: Response, content: Any, space: str | None) -> Page:
        """Parse a page. Raise `protocol` if it has no id, title or version."""
        found = page_of(content, space, self._base)
        if found is None:
            raise unexpected_body(response, "a page with id, title and version")
        return found


def place_of(page_id: str, *below: str) -> str:
    """Return the path of a page, or of a resource below it."""
    return "/".join((CONTENT, path(page_id, *below)))


def _is_no_route(response: Response) -> bool:
    """Return whether a 404 may mean the address instead of the page: the wiki's own has
    `statusCode`.
    """
    return response.status == 404 and member(json_or_none(response.body), "statusCode") is None


def _results(response: Response, wanted: str) -> list[Any]:
    results = member(response.json(), "results")
    if not isinstance(results, list) or not all(isinstance(one, Mapping) for one in results):
        raise unexpected_body(response, wanted)
    return results


def _has_title(content: Any, title: str) -> bool:
    found = member(content, "title")
    is_page = member(content, "type") in (None, "page")
    return is_page and isinstance(found, str) and composed(found).lower() == composed(title).lower()
