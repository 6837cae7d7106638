# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of version 2 of the interface, which the cloud has [wiki-30]."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.service import ErrorResponse, route
from sandbox.wiki import details, tree
from sandbox.wiki.errors import error, json_object, member, no_space
from sandbox.wiki.pages import Pages
from sandbox.wiki.spaces import listed_permissions
from sandbox.wiki.views import Views

Json = dict[str, Any]

_BASE = "/api/v2"
_DEFAULT_LIMIT, _MAX_LIMIT, _EMBEDDED, _DEPTH = 25, 250, 50, 2

#: Routes of version 1 that the cloud removed [wiki-30].
GONE = re.compile(
    r"\w+ \S*/content(?:/|/\{id\}(?:/history|/property.*|/child|/child/page|/descendant/page)?)?$"
    r"|GET \S*/space"
)
_REMOVED = "GoneException: This deprecated endpoint has been removed."


class Version2:
    """Request handlers.

    :param views: returns the data that the account of a request can see
    :param note: adds the headers about the login to a response
    :param is_there: returns whether the server has version 2
    """

    def __init__(
        self,
        views: Callable[[Request], Views],
        note: Callable[[Request, Response], None],
        is_there: Callable[[], bool],
    ) -> None:
        self._views, self._note, self._is_there = views, note, is_there

    def routes(self) -> list[Route]:
        page = f"{_BASE}/pages/{{id}}"
        return [
            self._route(f"{_BASE}/spaces", self.spaces),
            self._route(f"{_BASE}/spaces/{{id}}/permissions", self.permissions),
            self._route(f"{_BASE}/spaces/{{id}}/pages", self.pages_of_space),
            self._route(f"{_BASE}/spaces/{{id}}/blogposts", self.blog_posts_of_space),
            self._route(f"{_BASE}/pages", self.find),
            self._route(f"{_BASE}/pages", self.create, "POST"),
            self._route(page, self.read),
            self._route(page, self.replace, "PUT"),
            self._route(page, self.delete, "DELETE"),
            self._route(f"{page}/direct-children", self.children),
            self._route(f"{page}/descendants", self.descendants),
            self._route(f"{page}/ancestors", self.ancestors),
            self._route(f"{page}/labels", self.labels),
            self._route(f"{page}/attachments", self.attachments),
            self._route(f"{page}/properties", self.properties),
            self._route(f"{page}/properties", self.create_property, "POST"),
            self._route(f"{page}/properties/{{property}}", self.property, "PUT", "DELETE"),
            self._route(f"{_BASE}/folders/{{id}}", self.folder),
            self._route(f"{_BASE}/folders/{{id}}/descendants", self.descendants),
        ]

    def _route(self, path: str, handler: Callable[[Request], Any], *methods: str) -> Route:
        async def known(request: Request) -> Response:
            if not self._is_there():
                return Response("Not Found", 404)
            try:
                result = handler(request)
                response = result if isinstance(result, Response) else await result
            except ErrorResponse as error:
                response = _refusal(error.response)
            self._note(request, response)
            return response

        return route(path, known, *methods)

    # -- spaces and pages ----------------------------------------------------------------------

    def spaces(self, request: Request) -> Response:
        views = self._views(request)
        keys, ids = (_words(request, name) for name in ("keys", "ids"))
        found = [
            self._space(key, space, request.query_params.get("description-format"))
            for key, space in views.pages.store.items("wiki.space")
            if views.pages.access.may("view", key)
            and (not keys or key in keys)
            and (not ids or str(space["id"]) in ids)
        ]
        return _part(request, views, found)

    def _space(self, key: str, space: Json, description: str | None) -> Json:
        home = space.get("home")
        shown = {"id": str(space["id"]), "key": key, "name": space["name"], "type": "global"}
        text = {"plain": {"value": space.get("description", ""), "representation": "plain"}}
        shown["description"] = text if description == "plain" else None
        return {**shown, "status": "current", "homepageId": home, "_links": {}}

    def permissions(self, request: Request) -> Response:
        """Return the permissions of a space [wiki-21]."""
        views, number = self._views(request), request.path_params["id"]
        spaces = views.pages.store.items("wiki.space")
        space = next((space for _key, space in spaces if str(space["id"]) == number), None)
        if space is None or not views.pages.access.may("view", space["key"]):
            raise no_space(number)
        return _part(request, views, listed_permissions(space))

    def pages_of_space(self, request: Request) -> Response:
        """GET /spaces/{id}/pages: the current and archived pages of all levels.

        Of the sort orders only `-modified-date` is supported [wiki-30].
        """
        return self._content_of_space(request, "page")

    def blog_posts_of_space(self, request: Request) -> Response:
        """GET /spaces/{id}/blogposts: the current and archived blog posts."""
        return self._content_of_space(request, "blogpost")

    def _content_of_space(self, request: Request, kind: str) -> Response:
        views = self._views(request)
        spaces = views.pages.store.items("wiki.space")
        wanted = request.path_params["id"]
        key = next((key for key, space in spaces if str(space["id"]) == wanted), None)
        if key is None or not views.pages.access.may("view", key):
            raise error(404, f"No space with id {wanted}")
        found = [
            page
            for page in views.pages.all()
            if page["space"] == key
            and page["type"] == kind
            and page["status"] in ("current", "archived")
        ]
        if request.query_params.get("sort") == "-modified-date":
            found.sort(key=lambda page: page["version"]["when"], reverse=True)
        return _part(request, views, [_entry(request, views, page) for page in found])

    def read(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views)
        version = request.query_params.get("version", "")
        if version.isdigit():
            page = views.pages.version(page["id"], int(version))
        shown = _shown(request, views, page)
        labels = [_label(name) for name in page["labels"]]
        operations = [
            {"operation": operation["operation"], "targetType": operation["targetType"]}
            for operation in views.page(page, ["operations"])["operations"]
        ]
        parts = {"labels": labels, "properties": _properties(page), "operations": operations}
        for name, entries in parts.items():
            if request.query_params.get(f"include-{name}") == "true":
                more = len(entries) > _EMBEDDED
                shown[name] = {"results": entries[:_EMBEDDED], "meta": {"hasMore": more}}
        return JSONResponse(shown)

    def _page(self, request: Request, views: Views, *types: str) -> Json:
        """Return the page in the path. Raises a 404 for other content, such as a folder.

        :param types: accepted types instead of `page`
        """
        page = views.pages.get(request.path_params["id"], ("current", "archived"))
        if page["type"] not in (types or ("page",)):
            raise error(404, f"No page with id {page['id']}")
        return page

    def find(self, request: Request) -> Response:
        views, query = self._views(request), request.query_params
        ids = {key: str(space["id"]) for key, space in views.pages.store.items("wiki.space")}
        statuses = _words(request, "status") or ["current", "archived"]
        found = [
            _entry(request, views, page)
            for page in views.pages.all()
            if page["type"] == "page"
            and page["status"] in statuses
            and query.get("space-id") in (None, ids[page["space"]])
            and query.get("title") in (None, page["title"])
        ]
        return _part(request, views, found)

    async def create(self, request: Request) -> Response:
        views, data = self._views(request), json_object(await request.body())
        spaces = views.pages.store.items("wiki.space")
        keys = [key for key, space in spaces if str(space["id"]) == data.get("spaceId")]
        content = {**_content(data), "space": {"key": keys[0] if keys else None}}
        page = views.pages.create(content)
        if "ancestors" not in content:
            home = member(views.pages.store.get("wiki.space", page["space"]), "home")
            page["parent"] = None if request.query_params.get("root-level") == "true" else home
            views.pages.store.put("wiki.page", page["id"], page)
        return JSONResponse(_shown(request, views, page))

    async def replace(self, request: Request) -> Response:
        views, data = self._views(request), json_object(await request.body())
        page = self._page(request, views)
        if str(data.get("id")) != page["id"] or data.get("status") != "current":
            raise error(400, "id and status are required")
        saved = views.pages.replace(page["id"], _content(data))
        if views.pages.settings["rename_rewrites_links"] and saved["title"] != page["title"]:
            tree.follow_title(views.pages, page, saved)
        return JSONResponse(_shown(request, views, saved))

    def delete(self, request: Request) -> Response:
        views = self._views(request)
        views.pages.trash(self._page(request, views)["id"], ("current",))
        return Response(status_code=204)

    def folder(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views, "folder")
        return JSONResponse({**_shown(request, views, page), "type": "folder", "body": None})

    # -- trees ---------------------------------------------------------------------------------

    def children(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views)
        return _part(request, views, list(_below(views.pages, page, 1)))

    def descendants(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views, "page", "folder")
        depth = int(request.query_params.get("depth", _DEPTH))
        return _part(request, views, list(_below(views.pages, page, depth)))

    def ancestors(self, request: Request) -> Response:
        views = self._views(request)
        above = views.pages.ancestors(self._page(request, views))
        return _part(request, views, [{"id": page["id"], "type": page["type"]} for page in above])

    # -- labels, attachments, properties -------------------------------------------------------

    def labels(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views)
        return _part(request, views, [_label(name) for name in page["labels"]])

    def attachments(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views)
        found = [
            {
                "id": attachment["id"],
                "status": "current",
                "title": attachment["name"],
                "pageId": page["id"],
                "mediaType": attachment["media_type"],
                "comment": attachment["comment"],
                "fileSize": attachment["size"],
                "downloadLink": f"/download/attachments/{page['id']}/{attachment['name']}",
                "version": {"number": attachment["version"]},
            }
            for attachment in page["attachments"]
        ]
        return _part(request, views, found)

    def properties(self, request: Request) -> Response:
        views = self._views(request)
        key = request.query_params.get("key")
        entries = _properties(self._page(request, views))
        return _part(request, views, [entry for entry in entries if key in (None, entry["key"])])

    async def create_property(self, request: Request) -> Response:
        views = self._views(request)
        page = self._page(request, views)
        key = details.create_property(views.pages, page, await request.body())
        return JSONResponse(next(entry for entry in _properties(page) if entry["key"] == key))

    async def property(self, request: Request) -> Response:
        views = self._views(request)
        page, number = self._page(request, views), request.path_params["property"]
        known = next((entry for entry in _properties(page) if entry["id"] == number), None)
        if known is None:
            raise error(404, f"No property with id {number}")
        if request.method == "DELETE":
            details.delete_property(views.pages, page, known["key"])
            return Response(status_code=204)
        details.replace_property(views.pages, page, known["key"], await request.body())
        return JSONResponse(next(entry for entry in _properties(page) if entry["id"] == number))


def _content(data: Json) -> Json:
    """Convert the page in a request to the JSON of version 1."""
    body = data.get("body") or {}
    storage = body.get("storage", body)
    content = {"type": "page", "title": data.get("title"), "body": {"storage": storage}}
    parent = data.get("parentId")
    if parent is not None:
        content["ancestors"] = [{"id": parent}]
    return {**content, "version": data.get("version") or {}}


def _shown(request: Request, views: Views, page: Json) -> Json:
    """Return the JSON of a page. A GET returns the body only with `body-format=storage`."""
    space = views.pages.store.get("wiki.space", page["space"]) or {}
    parent, version = page.get("parent"), page["version"]
    above = None if parent is None else views.pages.store.get("wiki.page", parent)
    body = {"storage": {"representation": "storage", "value": page["body"]}}
    with_body = request.method != "GET" or request.query_params.get("body-format") == "storage"
    return {
        "id": page["id"],
        "status": page["status"],
        "title": page["title"],
        "spaceId": str(space.get("id")),
        "parentId": parent,
        **({} if above is None else {"parentType": above["type"]}),
        "createdAt": page["created"]["when"],
        "version": {
            "number": version["number"],
            "message": version["message"],
            "minorEdit": version["minorEdit"],
            "createdAt": version["when"],
        },
        "body": body if with_body else {},
        "_links": {"webui": f"/spaces/{page['space']}/pages/{page['id']}", "base": views.base},
    }


def _entry(request: Request, views: Views, page: Json) -> Json:
    """Return the JSON of a page in a list, whose base URL is that of the list."""
    shown = _shown(request, views, page)
    del shown["_links"]["base"]
    return shown


def _label(name: str) -> Json:
    return {"id": name, "prefix": "global", "name": name}


def _properties(page: Json) -> list[Json]:
    return [
        {
            "id": f"9{number}",
            "key": key,
            "value": found["value"],
            "version": {"number": found["version"]},
        }
        for number, (key, found) in enumerate(sorted(page["properties"].items()))
    ]


def _below(pages: Pages, page: Json, depth: int) -> Iterator[Json]:
    """Yield the JSON of pages and folders below a page, each before its children.

    :param depth: number of levels
    """
    by_parent: dict[str | None, list[Json]] = defaultdict(list)
    for _key, other in sorted(pages.store.items("wiki.page")):
        if other["status"] in ("current", "archived"):
            by_parent[other.get("parent")].append(other)

    def below(parent: str, level: int) -> Iterator[Json]:
        for number, child in enumerate(filter(pages.access.sees, by_parent[parent])):
            names = ("id", "status", "title", "type")
            position = {"parentId": parent, "depth": level, "childPosition": number}
            yield {**{name: child[name] for name in names}, **position}
            if level < depth:
                yield from below(child["id"], level + 1)

    return below(page["id"], 1)


def _words(request: Request, name: str) -> list[str]:
    return [word for word in request.query_params.get(name, "").split(",") if word]


def _part(request: Request, views: Views, found: Sequence[Json]) -> Response:
    """Return the requested part of a list. The link to the next part contains a cursor."""
    query = request.query_params
    limit = min(int(query.get("limit", _DEFAULT_LIMIT)), _MAX_LIMIT)
    start = int(base64.urlsafe_b64decode(query["cursor"])) if "cursor" in query else 0
    end = start + limit
    links = {"base": views.base}
    if end < len(found):
        cursor = base64.urlsafe_b64encode(str(end).encode()).decode()
        path = request.scope["path"]
        links["next"] = f"{path}?{urlencode({**query, 'cursor': cursor})}"
    return JSONResponse({"results": list(found[start:end]), "_links": links})


def _refusal(response: Response) -> Response:
    """Convert an error response of version 1 to version 2."""
    reported = json.loads(bytes(response.body))
    status = response.status_code
    message = str(member(reported, "message")).rpartition("Exception: ")[2]
    code = {404: "NOT_FOUND", 409: "CONFLICT"}.get(status, "INVALID_REQUEST_PARAMETER")
    entry = {"status": status, "code": code, "title": message, "detail": None}
    return JSONResponse({"errors": [entry]}, status)


def gone(status: int) -> Response:
    """Return the response of a removed route of version 1 [wiki-30].

    :param status: 410, or 401 for a token that only has scopes of version 2
    """
    if status == 410:
        body = {"statusCode": 410, "data": {"authorized": True}, "message": _REMOVED}
        return JSONResponse(body, 410)
    body = {"code": 401, "message": "Unauthorized; scope does not match"}
    return JSONResponse(body, 401, {"X-Failure-Category": "FAILURE_CLIENT_SCOPE_CHECK"})
