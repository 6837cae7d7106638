# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in version 2 of the interface, which the cloud uses [wiki-30].

Labels are changed and files uploaded through version 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..core.address import path
from ..core.errors import not_found
from ..core.http import paged_list
from ..core.http.messages import Response, json_or_none
from ..core.http.writes import Verify
from ..core.json_text import as_text, member
from .exchange import WikiExchange, results_of, saved_in, space_of
from .page import Page, same_title, whole_results

_PAGES, _SPACES, _FOLDERS = "api/v2/pages", "api/v2/spaces", "api/v2/folders"
#: Maximum number of entries in a part of a list, and of levels in a list of descendants.
_LIMIT, _LEVELS = 250, 5
#: Members that version 1 expands, and the query parameter of version 2 that includes them.
_INCLUDED = {
    "metadata.labels": "include-labels",
    "metadata.properties": "include-properties",
    "operations": "include-operations",
}
#: Key in `memory` for the spaces that were read, by id.
_KNOWN = "wiki.spaces"
_NEXT = re.compile(r'<([^<>]*)>[^<>,]*\brel="?next"?')


class PagesOfVersion2:
    """Read and write pages in version 2 of the interface.

    :param expand: names that the members to expand have in version 1
    """

    def __init__(self, exchange: WikiExchange, expand: Sequence[str]) -> None:
        self._exchange = exchange
        self._included = {
            parameter: True
            for name, parameter in _INCLUDED.items()
            if any(path == name or path.startswith(f"{name}.") for path in expand)
        }

    def get(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        response = self._read(purpose, page_id, (200, 404))
        return None if response.status == 404 else self._page(response, response.json(), space)

    def find_by_id(self, purpose: str, page_id: str, space: str | None) -> Page | None:
        response = self._read(purpose, page_id, (200, 404))
        if response.status == 200:
            return self._page(response, response.json(), space)
        if not isinstance(json_or_none(response.body), Mapping):
            raise response.error("not_found", "there is no wiki at this address: check url")
        return None

    def require(self, purpose: str, page_id: str, space: str | None) -> Page:
        response = self._read(purpose, page_id, (200,))
        return self._page(response, response.json(), space)

    def saved(self, purpose: str, page_id: str, version: int) -> tuple[str, str] | None:
        query = {"body-format": "storage", "version": str(version)}
        response = self._exchange.ask(purpose, _page_route(page_id), query, (200, 404))
        return saved_in(json_or_none(response.body))

    def find(self, purpose: str, space: str, title: str) -> Page | None:
        """Return the page with a title, which may be archived: its title is still in use."""
        known = self._space(space)
        if known is None:
            return None
        query = {"space-id": str(known["id"]), "title": title, "body-format": "storage"}
        response = self._exchange.ask(purpose, _PAGES, query, (200,))
        found = [
            result
            for result in results_of(response, "a list of pages", "id", "title", "status")
            if same_title(str(result["title"]), title)
            and result["status"] in ("current", "archived")
        ]
        found.sort(key=lambda one: one["status"] != "current")
        if not found:
            return None
        if self._included and found[0]["status"] == "current":
            return self.get(purpose, str(found[0]["id"]), space)
        return self._page(response, found[0], space)

    def require_space(self, key: str) -> None:
        if self._space(key) is None:
            message = f"there is no space {key}, or the account cannot see it"
            raise not_found(f"reading the space {key}: {message}")

    def parent(self, purpose: str, page_id: str) -> Page | None:
        """Return the page or folder with an id, or None [wiki-30]."""
        page = self.get(purpose, page_id, None)
        if page is not None:
            return page
        route = f"{_FOLDERS}/{path(page_id)}"
        response = self._exchange.ask(purpose, route, {}, (200, 400, 404))
        if response.status != 200:
            return None
        shown = response.json()
        folder = {"version": {"number": 1}, **shown} if isinstance(shown, Mapping) else shown
        return self._page(response, folder, None)

    def ancestors(self, page: Page) -> list[str]:
        purpose = f"reading the pages above '{page.title}' ({page.id})"
        if page.type == "page":
            listed = self._listing(purpose, _page_route(page.id, "ancestors"), "id")
            return [str(one["id"]) for one in listed]
        above = None if page.parent is None else self.parent(purpose, page.parent)
        return [] if above is None else [*self.ancestors(above), above.id]

    def is_home(self, page: Page) -> bool:
        return bool(page.home)

    def has_children(self, page: Page) -> bool:
        purpose = f"searching for pages below the page {page.id}"
        route = _page_route(page.id, "direct-children")
        response = self._exchange.ask(purpose, route, {"limit": 1}, (200,))
        return bool(results_of(response, "a list of pages"))

    def children_ids(self, page: Page) -> list[str]:
        purpose = f"listing the pages below the page {page.id}"
        listed = self._listing(purpose, _page_route(page.id, "direct-children"), "id")
        return [str(one["id"]) for one in listed]

    def home(self, key: str) -> str:
        self.require_space(key)
        home = member(self._space(key), "homepageId")
        if home is None:
            message = f"the space {key} has no visible home page: set title"
            raise not_found(f"reading the space {key}: {message}")
        return str(home)

    def space(self, key: str) -> dict[str, Any] | None:
        purpose = f"reading the space {key}"
        query = {"keys": key, "description-format": "plain"}
        response = self._exchange.ask(purpose, _SPACES, query, (200,))
        listed = results_of(response, "a list of spaces", "id", "key")
        shown = next(
            (one for one in listed if as_text(one.get("key")).lower() == key.lower()), None
        )
        if shown is None:
            return None
        self._remember(listed, key)
        home = member(shown, "homepageId")
        purpose = f"reading the home page of the space {key}"
        page = None if home is None else self.get(purpose, str(home), key)
        text = member(shown, "description", "plain", "value")
        return space_of(response, shown, page and page.title, text)

    def content_of(self, purpose: str, key: str, kind: str, most: int) -> list[Any]:
        return self._listing(purpose, self._below_space(key, f"{kind}s"), "id", "title", most=most)

    def space_permissions(self, purpose: str, key: str) -> list[Any]:
        """Return the permissions of a space as JSON objects."""
        route = self._below_space(key, "permissions")
        return self._listing(purpose, route, "id", "operation.key", "operation.targetType")

    def _below_space(self, key: str, name: str) -> str:
        """Return the route of a list of a space. Raises `not_found` if the space is missing."""
        self.require_space(key)
        return f"{_SPACES}/{path(str(member(self._space(key), 'id')), name)}"

    def possibly_renamed(self, purpose: str, key: str, _expand: str) -> list[Page]:
        route = self._below_space(key, "pages")
        query = {"sort": "-modified-date", "limit": _LIMIT}
        response = self._exchange.ask(purpose, route, query, (200,))
        pages = [
            self._page(response, shown, key)
            for shown in results_of(response, "a list of pages", "id", "title", "version.number")
        ]
        return [page for page in pages if page.status == "current" and page.version > 1]

    def descendants(self, purpose: str, page_id: str) -> list[tuple[str, str]]:
        """Return pairs of page id and parent id for all current pages below a page, parents first.

        The parent of a page in a folder is the page above the folder.
        """
        entries: dict[str, Mapping[str, Any]] = {}
        tops = [(_PAGES, page_id)]
        while tops:
            base, top = tops.pop()
            route, needed = f"{base}/{path(top, 'descendants')}", ("id", "parentId", "depth")
            listed = self._listing(purpose, route, *needed, depth=_LEVELS)
            by_id = {str(entry["id"]): entry for entry in listed}
            new = {key: entry for key, entry in by_id.items() if key not in entries}
            entries.update(new)
            tops += [
                (_FOLDERS if entry.get("type") == "folder" else _PAGES, key)
                for key, entry in new.items()
                if entry["depth"] == _LEVELS and entry.get("type", "page") in ("page", "folder")
            ]
        return parents_of(entries, page_id)

    # -- writes --------------------------------------------------------------------------------

    def create(
        self, purpose: str, content: Mapping[str, Any], space: str, verify: Verify
    ) -> Page | None:
        """Create a page, then its properties with a request for each property."""
        self.require_space(space)
        body = {"spaceId": str(member(self._space(space), "id")), **sent(content)}
        query = {} if "parentId" in body else {"root-level": True}
        response = self._exchange.send(
            purpose, "POST", _PAGES, (200, 201, 204), query=query, json=body, verify=verify
        )
        page = self._written(response, space)
        properties = member(content, "metadata", "properties")
        if page is None or not properties:
            return page
        made = {
            key: self._new_property(purpose, page.id, {"key": key, "value": value["value"]})
            for key, value in properties.items()
        }
        known = {key: shown for key, shown in made.items() if member(shown, "id") is not None}
        return replace(page, content={**page.content, "metadata": {"properties": known}})

    def replace(
        self, purpose: str, page: Page, content: Mapping[str, Any], verify: Verify
    ) -> Page | None:
        body = {"id": page.id, **sent(content), "version": content["version"]}
        route = _page_route(page.id)
        response = self._exchange.send(purpose, "PUT", route, (200, 204), json=body, verify=verify)
        return self._written(response, page.space)

    def trash(self, purpose: str, page_id: str, verify: Verify) -> None:
        route, expect = _page_route(page_id), (200, 202, 204)
        self._exchange.send(purpose, "DELETE", route, expect, verify=verify, repeatable=True)

    # -- labels, attachments, properties -------------------------------------------------------

    def labels(self, purpose: str, page_id: str) -> list[Any]:
        return self._listing(purpose, _page_route(page_id, "labels"), "name")

    def attachments(self, purpose: str, page_id: str) -> list[Any]:
        return [
            attachment_of(one)
            for one in self._listing(purpose, _page_route(page_id, "attachments"), "id", "title")
        ]

    def read_property(self, purpose: str, page_id: str, key: str) -> Any:
        found = self._listing(purpose, _page_route(page_id, "properties"), "key", key=key)
        return next((one for one in found if one["key"] == key), None)

    def write_property(
        self, purpose: str, page_id: str, value: Mapping[str, Any], known: Any, verify: Verify
    ) -> None:
        if known is None:
            self._new_property(purpose, page_id, value, verify)
            return
        route = _page_route(page_id, "properties", str(member(known, "id")))
        self._exchange.send(purpose, "PUT", route, (200, 204), json=value, verify=verify)

    def _new_property(
        self, purpose: str, page_id: str, value: Mapping[str, Any], verify: Verify | None = None
    ) -> Any:
        key = str(value["key"])

        def is_there() -> bool:
            return bool(
                member(self.read_property(purpose, page_id, key), "value") == value["value"]
            )

        route = _page_route(page_id, "properties")
        response = self._exchange.send(
            purpose, "POST", route, (200, 201, 204), json=value, verify=verify or is_there
        )
        return json_or_none(response.body)

    # -- sending and parsing -------------------------------------------------------------------

    def _read(self, purpose: str, page_id: str, expect: tuple[int, ...]) -> Response:
        query = {"body-format": "storage", **self._included}
        return self._exchange.ask(purpose, _page_route(page_id), query, expect)

    def _listing(
        self, purpose: str, route: str, *needed: str, most: int | None = None, **query: Any
    ) -> list[Any]:
        """Return the entries of a paginated list.

        Only the cursor of the link to the next part is used, because the link may lead to another
        host [tracker-40].

        :param needed: members of each entry, as in `results_of()`
        :param most: stop after the page with more entries than this; None reads all pages
        """

        def read(_start: int, cursor: Any) -> paged_list.Page:
            part = {**query, "limit": _LIMIT, "cursor": cursor}
            response = self._exchange.ask(purpose, route, part, (200,))
            entries = results_of(response, "a list", *needed)
            return paged_list.Page(response, response.json(), entries, next_cursor(response))

        return paged_list.read_all(read, most=most)

    def _space(self, key: str | None = None, space_id: str | None = None) -> Any:
        """Return the space with a key or id, or None. Each space is read once per connection."""
        found = self._remember([], key, space_id)
        if found is not None:
            return found
        purpose = f"reading the space {key or space_id}"
        query = {"ids": space_id} if key is None else {"keys": key}
        response = self._exchange.ask(purpose, _SPACES, query, (200,))
        listed = results_of(response, "a list of spaces", "id", "key")
        return self._remember(listed, key, space_id)

    def _remember(self, listed: Sequence[Any], key: str | None, space_id: str | None = None) -> Any:
        """Cache the listed spaces. Return the cached space with a key or id, or None."""
        known: dict[str, Any] = self._exchange.memory.setdefault(_KNOWN, {})
        for space in listed:
            number = as_text(space.get("id"))
            known[number] = {**space, "id": number}
        return next(
            (
                space
                for space in list(known.values())
                if space["id"] == space_id
                or (key is not None and as_text(space.get("key")).lower() == key.lower())
            ),
            None,
        )

    def _page(self, response: Response, shown: Any, space: str | None) -> Page:
        space_id = member(shown, "spaceId")
        known = None if space_id is None else self._space(space_id=str(space_id))
        base = self._exchange.site or member(response.json(), "_links", "base")
        return self._exchange.page(response, content_of(shown, known, base), space)

    def _written(self, response: Response, space: str | None) -> Page | None:
        shown = json_or_none(response.body)
        if member(shown, "version", "number") is None:
            return None
        return self._page(response, shown, space)


def _page_route(page_id: str, *below: str) -> str:
    return f"{_PAGES}/{path(page_id, *below)}"


def content_of(shown: Any, space: Any, base: Any) -> dict[str, Any]:
    """Convert a page or folder of version 2 to the JSON of version 1.

    :param shown: page or folder, a JSON object
    :param space: its space, a JSON object or None
    :param base: base URL for links in a browser, or None
    """
    if not isinstance(shown, Mapping):
        return {}
    parts = ("id", "status", "title", "version", "body")
    content = {name: shown[name] for name in parts if name in shown}
    content["type"] = "folder" if shown.get("type") == "folder" else "page"
    links = shown.get("_links")
    shown_links = {**links} if isinstance(links, Mapping) else {}
    content["_links"] = shown_links if base is None else {**shown_links, "base": base}
    if space is not None:
        home = member(space, "homepageId")
        shown_home = {} if home is None else {"homepage": {"id": home}}
        content["space"] = {"key": member(space, "key"), **shown_home}
    if "parentId" in shown:
        parent = shown["parentId"]
        content["ancestors"] = [] if parent is None else [{"id": parent}]
    operations = whole_results(shown.get("operations"))
    if operations is not None:
        content["operations"] = operations
    # incomplete lists are left out
    metadata: dict[str, Any] = {}
    labels = whole_results(shown.get("labels"), "name")
    if labels is not None:
        metadata["labels"] = {"results": labels}
    properties = whole_results(shown.get("properties"), "key")
    if properties is not None:
        metadata["properties"] = {str(entry["key"]): entry for entry in properties}
    return {**content, "metadata": metadata}


def attachment_of(shown: Any) -> dict[str, Any]:
    """Convert an attachment to the JSON of version 1.

    Version 2 prefixes the id with `att`. Uploads use version 1, which has no prefix.
    """
    return {
        "id": str(member(shown, "id")).removeprefix("att"),
        "title": member(shown, "title"),
        "version": member(shown, "version"),
        "extensions": {"fileSize": member(shown, "fileSize"), "comment": member(shown, "comment")},
        "_links": {
            "download": member(shown, "downloadLink") or member(shown, "_links", "download")
        },
    }


def sent(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a page of version 1 to a request body of version 2, without id, space and version."""
    storage = member(content, "body", "storage")
    body = {
        "status": "current",
        "title": content["title"],
        "body": {"representation": "storage", "value": member(storage, "value")},
    }
    above = content.get("ancestors")
    return {**body, "parentId": str(above[-1]["id"])} if above else body


def next_cursor(response: Response) -> str | None:
    """Return the cursor for the next part of a list, or None for the last part.

    Raises `protocol` if the link to the next part has no cursor.
    """
    link = member(response.json(), "_links", "next")
    if link is None:
        found = _NEXT.search(response.headers.get("Link", ""))
        link = None if found is None else found[1]
    if not link:
        return None
    cursors = parse_qs(urlsplit(str(link)).query).get("cursor")
    if not cursors:
        raise response.error("protocol", "the link to the next part of the list has no cursor")
    return cursors[0]


def parents_of(entries: Mapping[str, Mapping[str, Any]], top: str) -> list[tuple[str, str]]:
    """Return pairs of page id and parent id for the current pages, parents first.

    The parent of a page in a folder is the page above the folder.

    :param entries: all descendants by id, pages and folders
    :param top: id of the page above all of them
    """
    children: dict[str, list[str]] = {}
    for entry_id, entry in entries.items():
        children.setdefault(as_text(entry.get("parentId")), []).append(entry_id)
    pairs: list[tuple[str, str]] = []
    todo = [(entry_id, top) for entry_id in children.get(top, [])]
    while todo:
        entry_id, parent = todo.pop(0)
        is_page = entries[entry_id].get("type", "page") == "page"
        if is_page and entries[entry_id].get("status", "current") == "current":
            pairs.append((entry_id, parent))
            parent = entry_id
        todo += [(child, parent) for child in children.pop(entry_id, [])]
    return pairs
