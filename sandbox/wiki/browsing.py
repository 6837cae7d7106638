# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for trees, restrictions, spaces, searches and accounts [wiki-9, wiki-11, wiki-19]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.wiki import comments, cql, tree
from sandbox.wiki.errors import bad_request, error
from sandbox.wiki.parameters import expansions, integer, part
from sandbox.wiki.views import OPERATIONS, Views, listing

Json = dict[str, Any]

_KINDS = ("page", "attachment", "comment")


class Browsing:
    """Request handlers. `views`: returns the data that the account of a request can see."""

    def __init__(self, views: Callable[[Request], Views]) -> None:
        self._views = views

    def _pages(self, request: Request, views: Views, found: list[Json]) -> Response:
        expand = expansions(request)
        return JSONResponse(part(request, views, found, lambda page: views.page(page, expand)))

    async def children(self, request: Request) -> Response:
        """GET /content/{id}/child/page: the current child pages in display order."""
        views = self._views(request)
        page = views.pages.get(request.path_params["id"])
        return self._pages(request, views, tree.children(views.pages, page["space"], page["id"]))

    async def child_kinds(self, request: Request) -> Response:
        """GET /content/{id}/child: only the expanded kinds of children."""
        views = self._views(request)
        page = views.pages.get(request.path_params["id"])
        expand = expansions(request)
        shown = {kind: views.embedded(page, kind) for kind in _KINDS if kind in expand}
        if "comment" in shown:
            found = comments.of_page(views.pages, page)
            shown["comment"] = listing([comments.view(views, each, expand) for each in found])
        expandable = dict.fromkeys((kind for kind in _KINDS if kind not in expand), "")
        return JSONResponse({**shown, "_expandable": expandable, "_links": {"base": views.base}})

    async def comments(self, request: Request) -> Response:
        """GET /content/{id}/child/comment: the comments of a page, the oldest first [wiki-17]."""
        views, expand = self._views(request), expansions(request)
        page = views.pages.get(request.path_params["id"])
        found = comments.of_page(views.pages, page)
        return JSONResponse(
            part(request, views, found, lambda each: comments.view(views, each, expand))
        )

    async def descendants(self, request: Request) -> Response:
        """GET /content/{id}/descendant/page: the descendants of all levels."""
        views = self._views(request)
        page = views.pages.get(request.path_params["id"])
        return self._pages(request, views, list(tree.descendants(views.pages, page)))

    async def move(self, request: Request) -> Response:
        """PUT /content/{id}/move/{position}/{target}: move a page with its descendants.

        Only in the cloud and on newer servers.
        """
        views = self._views(request)
        pages, params = views.pages, request.path_params
        if not (pages.cloud or pages.settings["move_address"]):
            raise error(404, f"null for uri: {request.url.path}")
        page, target = pages.get(params["id"]), pages.get(params["target"])
        with pages.store.transaction():
            tree.move(pages, page, params["position"], target)
        return JSONResponse({"pageId": page["id"]})

    async def restrictions(self, request: Request) -> Response:
        """GET /content/{id}/restriction/byOperation: the restrictions of a page [wiki-19]."""
        views = self._views(request)
        page = views.pages.get(request.path_params["id"])
        return JSONResponse({**views.restrictions(page), "_links": {"base": views.base}})

    async def restrict(self, request: Request) -> Response:
        """PUT /content/{id}/restriction: replace the given operations [wiki-19].

        In the cloud the other operations lose their restrictions. DELETE removes all, only there.
        """
        views = self._views(request)
        pages = views.pages
        servers = request.method == "PUT" and pages.access.settings["restriction_address"]
        if not (pages.cloud or servers):
            return Response(status_code=405)
        page = pages.get(request.path_params["id"])
        pages.access.must_edit(page)
        users = {} if pages.cloud else dict(page.get("restrictions") or {})
        groups = {} if pages.cloud else dict(page.get("restricted_groups") or {})
        for given in await request.json() if request.method == "PUT" else ():
            pages.access.must_know(given["restrictions"], status=400)
            named = given["restrictions"]
            if pages.cloud and not all(named.values()):
                raise bad_request("a list of users or groups is empty")
            operation = given["operation"]
            users[operation] = [_user_in(pages.cloud, user) for user in named.get("user", ())]
            groups[operation] = [_group_in(pages.cloud, entry) for entry in named.get("group", ())]
        changed = {**page, "restrictions": users, "restricted_groups": groups}
        pages.store.put("wiki.page", page["id"], changed)
        if not pages.cloud:
            return await self.restrictions(request)
        shown = listing([views.restriction(changed, operation) for operation in OPERATIONS])
        return JSONResponse({**shown, "restrictionsHash": "", "_links": {"base": views.base}})

    async def restriction(self, request: Request) -> Response:
        """GET /content/{id}/restriction/byOperation/{operation}: the members from `start` on."""
        views, operation = self._views(request), request.path_params["operation"]
        page = views.pages.get(request.path_params["id"])
        if operation not in OPERATIONS:
            raise bad_request(f"no operation {operation}")
        return JSONResponse(views.restriction(page, operation, integer(request, "start", 0)))

    async def groups(self, request: Request) -> Response:
        """GET /group/picker?query=: the groups whose name contains the text, in the cloud."""
        views, text = self._views(request), request.query_params.get("query", "")
        if not views.pages.cloud:
            raise error(404, f"null for uri: {request.url.path}")
        names = [name for name, _members in views.pages.store.items("wiki.group") if text in name]
        return JSONResponse(part(request, views, [views.group(name) for name in names], dict))

    async def group(self, request: Request) -> Response:
        """GET /group/{name}: a group of a server [wiki-18]."""
        views, name = self._views(request), request.path_params["name"]
        if views.pages.cloud or views.pages.store.get("wiki.group", name) is None:
            raise error(404, f"No group found with name: {name}")
        return JSONResponse(views.group(name))

    async def group_by_id(self, request: Request) -> Response:
        """GET /group/by-id?id=: a group of the cloud [wiki-21]."""
        views, number = self._views(request), request.query_params.get("id")
        names = [name for name, _members in views.pages.store.items("wiki.group")]
        found = [shown for name in names if (shown := views.group(name)).get("id") == number]
        if not found or not views.pages.cloud:
            raise error(404, f"No group found with id: {number}")
        return JSONResponse(found[0])

    async def groups_of_user(self, request: Request) -> Response:
        """GET /user/memberof: the groups of an account."""
        views = self._views(request)
        cloud = views.pages.cloud
        wanted = _user_in(cloud, dict(request.query_params))
        known = views.pages.store.items("wiki.group")
        names = [name for name, members in known if wanted in members["members"]]
        return JSONResponse(
            part(request, views, [views.group(name) for name in sorted(names)], dict)
        )

    # -- spaces ------------------------------------------------------------------------------

    async def spaces(self, request: Request) -> Response:
        """GET /space: the visible spaces."""
        views, expand = self._views(request), expansions(request)
        wanted = request.query_params.getlist("spaceKey")
        found = [
            space
            for key, space in views.pages.store.items("wiki.space")
            if views.pages.access.may("view", key) and (not wanted or key in wanted)
        ]
        shown = part(request, views, found, lambda space: views.space(space["key"], expand))
        return JSONResponse(shown)

    async def space(self, request: Request) -> Response:
        views = self._views(request)
        key = views.pages.access.space(request.path_params["key"])["key"]
        return JSONResponse(views.space(key, expansions(request)))

    async def space_content(self, request: Request) -> Response:
        """GET /space/{key}/content/{type}: all pages, those at the top with `depth=root`, or all
        blog posts.
        """
        views = self._views(request)
        key = views.pages.access.space(request.path_params["key"])["key"]
        if request.query_params.get("depth") == "root":
            return self._pages(request, views, tree.children(views.pages, key, None))
        found = [
            page
            for page in views.pages.all()
            if (page["space"], page["status"]) == (key, "current")
            and page["type"] == request.path_params["type"]
        ]
        return self._pages(request, views, found)

    # -- searches ----------------------------------------------------------------------------

    def _found(self, request: Request, views: Views) -> list[Json]:
        query = request.query_params.get("cql", "")
        return cql.select(views.pages, query, views.pages.unindexed())

    async def content_search(self, request: Request) -> Response:
        """GET /content/search?cql=: pages that match."""
        views, expand = self._views(request), expansions(request)
        found = self._found(request, views)
        cursor = views.pages.cloud
        shown = part(request, views, found, lambda page: views.page(page, expand), cursor=cursor)
        return JSONResponse({**shown, "totalSize": len(found)})

    async def search(self, request: Request) -> Response:
        """GET /search?cql=: results that contain the pages that match."""
        views = self._views(request)
        expand = [
            name.removeprefix("content.")
            for name in expansions(request)
            if name.startswith("content.")
        ]

        def show(page: Json) -> Json:
            content = views.page(page, expand)
            return {
                "content": content,
                "title": page["title"],
                "excerpt": "",
                "url": content["_links"]["webui"],
                "entityType": "content",
                "lastModified": page["version"]["when"],
            }

        found = self._found(request, views)
        shown = part(request, views, found, show, cursor=views.pages.cloud)
        query = request.query_params.get("cql", "")
        return JSONResponse({**shown, "totalSize": len(found), "cqlQuery": query})

    async def current_user(self, request: Request) -> Response:
        """GET /user/current: the account of the request, which may be anonymous."""
        views = self._views(request)
        if views.pages.user == "anonymous":
            return JSONResponse({"type": "anonymous", "displayName": "Anonymous"})
        return JSONResponse(views.user(views.pages.user))


def _user_in(cloud: bool, given: dict[str, Any]) -> str:
    """Return the user name for the account in a request."""
    if cloud:
        return str(given.get("accountId")).removeprefix("account-")
    return str(given.get("username"))


def _group_in(cloud: bool, given: dict[str, Any]) -> str:
    """Return the name of the group in a request. The cloud knows groups by their id [wiki-19]."""
    if not cloud:
        return str(given["name"])
    if "id" not in given:
        raise bad_request("a group has no id")
    return str(given["id"]).removeprefix("id-")
