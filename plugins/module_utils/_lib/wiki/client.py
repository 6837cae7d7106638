# SPDX-License-Identifier: GPL-3.0-or-later
"""Client for pages with their labels, properties and attachments [W2.3, W4.3].

It uses the version of the interface that the server supports [wiki-30].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.address import path
from ..core.errors import ToolchainError, conflict, not_found, protocol, rejected
from ..core.http.messages import Response, json_or_none
from ..core.http.writes import Verify
from ..core.json_text import member
from ..core.module.task import Task
from .exchange import CONTENT, WikiExchange, content_route, results_of, saved_in, space_of
from .page import (
    Page,
    PredictedPages,
    address_of,
    composed,
    decomposed,
    number,
    page_of,
    same_title,
)
from .version2 import PagesOfVersion2

Found = TypeVar("Found")

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
    """Read and write pages in version 1 of the interface, which self-hosted servers use.

    The written interface has no lookup by title, no creation, no labels and no attachments. These
    follow server facts [wiki-0].

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

    def saved(self, purpose: str, page_id: str, version: int) -> tuple[str, str] | None:
        query = {"status": "historical", "version": str(version), "expand": "body.storage"}
        response = self._exchange.ask(purpose, content_route(page_id), query, (200, 404))
        return saved_in(json_or_none(response.body))

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        query = {"spaceKey": space, "title": title, "type": "page"}
        try:
            response = self._read(purpose, CONTENT, query, (200,))
        except ToolchainError as error:
            if error.kind == "not_found" and error.status == 404:
                error.with_hint(_NO_LOOKUP)
            raise
        pages = [
            result
            for result in results_of(response, "a list of pages", "id", "title")
            if result.get("type") in (None, "page") and same_title(str(result["title"]), title)
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
            raise protocol(f"{purpose}: {message}")
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
        return self._save(purpose, "POST", CONTENT, content, verify, space=space)

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        """Save a page. `expand` is only sent to servers that returned the parent when reading."""
        route, expands = content_route(page.id), page.shows_parent
        return self._save(purpose, "PUT", route, content, verify, space=page.space, expands=expands)

    def _save(
        self,
        purpose: str,
        method: str,
        route: str,
        content: Mapping[str, Any],
        verify: Verify,
        *,
        space: str | None,
        expands: bool = True,
    ) -> Page | None:
        """Save a page. Return the page in the response, or None if there is none."""
        query = {"expand": self._expand} if expands and self._expands else {}
        expect = (200, 201, 202, 204)
        response = self._exchange.send(
            purpose, method, route, expect, query=query, json=content, verify=verify
        )
        try:
            return self._exchange.page(response, response.json(), space)
        except ToolchainError:
            return None

    def trash(self, purpose: str, page_id: str, verify: Verify) -> None:
        expect = (200, 202, 204)
        route = content_route(page_id)
        self._exchange.send(purpose, "DELETE", route, expect, verify=verify, repeatable=True)

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
        except ToolchainError as error:
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


#: Server fact [wiki-1]: a response has body and ancestors only if they are expanded.
_EXPAND = "body.storage,version,space,ancestors"
_LABELS = "metadata.labels"
#: Prefix of the member to expand for a content property, with which pages are marked [wiki-6].
PROPERTIES = "metadata.properties"
#: Members that show whether a page may be removed: children, and the space's home page [wiki-11].
_OBSTACLES = "children.page,space.homepage"
#: The operations that the account may perform on the page [wiki-18].
_RIGHTS = "operations"
#: Kind of the ids of pages that the run has written, by space and title.
_WRITTEN = "page"


class WikiClient(WikiExchange):
    """Read and write pages with their labels, properties and attachments.

    :param labels: expand the labels
    :param obstacles: expand children and home page for `removal_obstacle()`
    :param rights: in check mode, expand the operations that the account may perform
    :param more: names of further members to expand
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
        self.predicted = PredictedPages(task.predictions)
        optional = {_LABELS: labels, _OBSTACLES: obstacles, _RIGHTS: rights and task.read_only}
        chosen = [name for name, wanted in optional.items() if wanted]
        super().__init__(task, connections)
        self._version1 = PagesOfVersion1(self, ",".join([_EXPAND, *chosen, *more]))
        self._version2 = PagesOfVersion2(self, [*chosen, *more])

    @property
    def _pages(self) -> PagesOfVersion1 | PagesOfVersion2:
        return self._version2 if self.version == 2 else self._version1

    def _read(self, read: Callable[[PagesOfVersion1 | PagesOfVersion2], Found]) -> Found:
        """Call `read`. Call it again with version 2 if the server has removed version 1."""
        try:
            return read(self._pages)
        except ToolchainError as error:
            if not self.switches(error):
                raise
        return read(self._pages)

    def get(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Return the page with an id, or None if it is missing or not visible.

        :param space: space key of the page, for servers that do not return it
        """
        return self._read(lambda pages: pages.get(purpose, page_id, space))

    def find_by_id(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        """Like `get()`, but raise `not_found` if there is no wiki at this address."""
        found = self._read(lambda pages: pages.find_by_id(purpose, page_id, space))
        return None if found is None else self.predicted.renamed(found)

    def require(self, purpose: str, page_id: str, space: str | None) -> Page:
        """Return the page with an id, which may be a predicted page.

        Raises `not_found` if it is missing or not visible.
        """
        predicted = self.predicted.by_id(page_id)
        if predicted is not None:
            return predicted
        found = self._read(lambda pages: pages.require(purpose, page_id, space))
        return self.predicted.renamed(found)

    def saved(self, purpose: str, page_id: str, version: int) -> tuple[str, str] | None:
        """Return title and body of a former version of a page, or None if it is gone."""
        return self._read(lambda pages: pages.saved(purpose, page_id, version))

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        """Return the page of a space with a title, or None. In the cloud it may be archived.

        The server trims titles and ignores case. Stored titles may be in NFC or NFD, so both are
        tried. Raises `not_found` if the server cannot find pages by title.
        """
        page_id = self.predicted.renamed_to(space, title)
        if page_id is not None:
            return self.find_by_id(purpose, page_id, space)
        found = self._current(purpose, space, title)
        if found is not None:
            now = self.predicted.renamed(found)
            return found if now.title == found.title else None
        return None

    def _current(self, purpose: str, space: str, title: str) -> Page | None:
        """Return the page with a title. A page that the run has written is read by its id: lookups
        by title lag behind in the cloud [wiki-3].
        """
        written = self._task.created.get(_WRITTEN, address_of(space, title))
        if written is not None:
            found = self.get(purpose, written, space)
            in_use = found is not None and found.status in ("current", "archived")
            if found is not None and in_use and same_title(found.title, title):
                return found
        forms = dict.fromkeys((composed(title), decomposed(title)))
        pages = (self._find(purpose, space, form) for form in forms)
        return next((page for page in pages if page is not None and page.id != written), None)

    def _note_written(self, page: Page | None, *titles: str) -> None:
        """Record the id of a page for later lookups of the run by its present or former titles."""
        if page is not None and page.space is not None and self.is_in_cloud:
            for title in (page.title, *titles):
                self._task.created.add(_WRITTEN, address_of(page.space, title), value=page.id)

    def _find(self, purpose: str, space: str, title: str) -> Page | None:
        return self._read(lambda pages: pages.find(purpose, space, title))

    def require_space(self, key: str) -> None:
        """Raise `not_found` if a space is missing or not visible.

        Does nothing if the server has no route that reads spaces.
        """
        if not self.predicted.has_space(key):
            self._read(lambda pages: pages.require_space(key))

    def require_parent(self, page_id: str, space: str | None, child: str = "") -> Page:
        """Return the parent of a page, which may be a folder in the cloud.

        Raises `not_found` if it is missing or not visible, `conflict` if it is in another space,
        `rejected` if it is the page `child` or a descendant of that page.
        """
        found = self.predicted.by_id(page_id)
        if found is None:
            purpose = f"reading the parent page {page_id}"
            found = self._read(lambda pages: pages.parent(purpose, page_id))
        if found is None or found.status != "current":
            message = f"the parent page {page_id} does not exist, or the account cannot see it"
            raise not_found(f"parent_id: {message}")
        if space and found.space and space.lower() != found.space.lower():
            message = f"the page {page_id} is in the space {found.space}, not in {space}"
            raise conflict(f"parent_id: {message}")
        if child and child in (found.id, *self.ancestors(found)):
            message = f"the page {page_id} cannot be the parent: it is the page itself, or below it"
            raise rejected(f"parent_id: {message}")
        return found

    def parent_titled(self, title: str, space: str, upcoming: str | None = None) -> str:
        """Return the id of the page `parent_title`. Raises `not_found` if it does not exist.

        :param upcoming: id of a page that the task gives the title, if the wiki has no such page
        """
        title = composed(title)
        found = self.find(f"searching for the parent page '{title}'", space, title)
        found = found or self.predicted.by_title(space, title)
        if found is not None:
            return found.id
        if upcoming is not None:
            return upcoming
        message = f"there is no page '{title}' in the space {space}"
        raise not_found(f"parent_title: {message}, or the account cannot see it")

    def shown_parent(self, page_id: str) -> str:
        """Return the title of a parent for a diff, or its id if the account cannot see it."""
        purpose = f"reading the parent page {page_id}"
        try:
            found = self._read(lambda pages: pages.parent(purpose, page_id))
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            found = None
        return page_id if found is None else found.title

    def ancestors(self, page: Page) -> list[str]:
        """Return the ids of the ancestors of a page."""
        return self._read(lambda pages: pages.ancestors(page))

    def removal_obstacle(self, page: Page) -> str | None:
        """Return why a page must not be removed, or None. Home pages and parents must stay."""
        if self._read(lambda pages: pages.is_home(page)):
            return f"it is the home page of the space {page.space}"
        below = self._read(lambda pages: pages.has_children(page))
        gone = self.predicted.removed_below(page)
        if below and gone:
            below = not gone.issuperset(self._read(lambda pages: pages.children_ids(page)))
        return "it has child pages" if below else None

    def home(self, key: str) -> str:
        """Return the id of the home page of a space. Raises `not_found` if there is none."""
        return self._read(lambda pages: pages.home(key))

    def space(self, key: str) -> dict[str, Any] | None:
        """Return `id`, `name`, `description` and `home_page` (its title) of a space.

        Returns None if the space is missing. Raises `not_found` if there is no wiki at this
        address.
        """
        return self._read(lambda pages: pages.space(key))

    def content_of(self, purpose: str, key: str, kind: str, most: int) -> list[Any]:
        """Return the pages or blog posts of a space as JSON objects, without bodies.

        :param kind: `page` or `blogpost`
        :param most: after more objects than this, others may be missing
        """
        return self._read(lambda pages: pages.content_of(purpose, key, kind, most))

    def space_permissions(self, purpose: str, key: str) -> list[Any]:
        """Return the permissions of a space as JSON objects. For version 2 only."""
        return self._version2.space_permissions(purpose, key)

    def possibly_renamed(self, purpose: str, key: str, expand: str) -> list[Page]:
        """Return pages of a space that may have been renamed, without bodies.

        In version 2 these are pages among those that were changed last; version 1 lists all pages.

        :param expand: further member to expand, which version 2 does not show in lists
        """
        return self._read(lambda pages: pages.possibly_renamed(purpose, key, expand))

    def groups_of(self, account: Mapping[str, str]) -> frozenset[str]:
        """Return the names of the groups of an account. Empty if it may not list them.

        :param account: the parameter that identifies the account
        """
        purpose = "reading the groups of the account"
        try:
            listed = self.listing(purpose, "rest/api/user/memberof", account, "name")
        except ToolchainError as error:
            if error.status not in (403, 404):
                raise
            return frozenset()
        return frozenset(str(group["name"]) for group in listed)

    def require_named(self, kind: str, name: str, identity: str = "username") -> None:
        """Raise `not_found` for a user or group that the wiki does not have [wiki-18].

        Does nothing if the server does not tell, for example because the account may not ask.

        :param identity: name of the parameter that identifies a user
        """
        route, query = "rest/api/user", {identity: name}
        if kind == "group":
            if not {"", ".", ".."}.isdisjoint(name.split("/")):
                return  # no address can contain this name
            route, query = f"rest/api/group/{path(name)}", {}
        purpose = f"searching for the {kind} '{name}'"
        try:
            response = self.ask(purpose, route, query, (200, 400, 403, 404))
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            return  # the token has no scope for accounts
        if response.status == 404:
            raise response.error("not_found", f"there is no {kind} '{name}'")

    def children(self, purpose: str, page_id: str, space: str | None) -> list[Page]:
        """Return the children of a page, without their bodies. For version 1 only."""
        return self._version1.children(purpose, page_id, space)

    def descendants(self, purpose: str, page_id: str) -> list[tuple[str, str]] | None:
        """Return pairs of page id and parent id for all pages below a page, parents first.

        Returns None in version 1, which only lists the children of a page.
        """
        return self._version2.descendants(purpose, page_id) if self.version == 2 else None

    def create(
        self, purpose: str, content: Mapping[str, Any], space: str, verify: Verify
    ) -> Page | None:
        """Create a page. Return it, or None if the response does not contain it."""
        made = self._pages.create(purpose, content, space, verify)
        self._note_written(made)
        return made

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        """Save a page. Return it, or None if the response does not contain it."""
        saved = self._pages.replace(purpose, page, content, verify)
        self._note_written(page, content["title"])
        return saved

    def trash(self, purpose: str, page: Page, verify: Verify) -> None:
        self._pages.trash(purpose, page.id, verify)
        self._note_written(page)

    # -- labels, properties, attachments -------------------------------------------------------

    def labels(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.labels(purpose, page_id))

    def attachments(self, purpose: str, page_id: str) -> list[Any]:
        return self._read(lambda pages: pages.attachments(purpose, page_id))

    def with_property(self, page: Page, key: str) -> Page:
        """Return the page with a content property, for servers that do not expand it [wiki-6]."""
        metadata = member(page.content, "metadata") or {}
        if member(metadata, "properties") is not None:
            return page
        purpose = f"reading the mark of the page '{page.title}' ({page.id})"
        found = self._read(lambda pages: pages.read_property(purpose, page.id, key))
        shown = {**metadata, "properties": {} if found is None else {key: found}}
        return replace(page, content={**page.content, "metadata": shown})

    def write_property(self, page: Page, key: str, value: Any) -> None:
        """Write a property. After a conflict, read the current one before the next attempt."""
        purpose = f"marking the page '{page.title}' ({page.id})"

        def read() -> Any:
            return self._read(lambda pages: pages.read_property(purpose, page.id, key))

        def is_written() -> bool:
            return bool(member(read(), "value") == value)

        def write(known: Any) -> None:
            version = number(member(known, "version", "number"))
            following = {} if version is None else {"version": {"number": version + 1}}
            sent = {"key": key, "value": value, **following}
            current = known if following else None
            self._pages.write_property(purpose, page.id, sent, current, is_written)

        try:
            write(page.content_property(key))
        except ToolchainError as error:
            if error.status != 409:
                raise
            now = read()
            if member(now, "value") != value:
                write(now)
