# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and data of the wiki [W4.3, wiki-0]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sandbox import client_credentials
from sandbox.accounts import SETTINGS, Accounts, rights_of
from sandbox.client_credentials import ClientCredentials
from sandbox.context import Context, Service
from sandbox.personal_tokens import ADDRESS, PersonalTokens
from sandbox.service import ErrorResponse, route
from sandbox.wiki import attachments, comments, details, tree
from sandbox.wiki.browsing import Browsing
from sandbox.wiki.errors import json_object
from sandbox.wiki.pages import Pages
from sandbox.wiki.parameters import expansions, part, statuses
from sandbox.wiki.spaces import SpaceEditing
from sandbox.wiki.version2 import GONE, Version2, gone
from sandbox.wiki.views import GET_DEFAULT, POST_DEFAULT, Views, label, listing, written_page

AsyncHandler = Callable[[Request], Awaitable[Response]]

_ATTACHMENTS_LIMIT = 50
_TENANT = "/_edge/tenant_info"
# Content types that a browser can send to another site, so they require the anti-forgery header.
_FORGEABLE = ("multipart/form-data", "application/x-www-form-urlencoded", "text/plain")
_CREATED = "2026-01-05T09:00:00.000Z"
_DEFAULTS: dict[str, Any] = {
    **SETTINGS,
    "deployment": "Server",
    "require_xsrf": None,
    "rewrite_on_save": None,
    "omit_ancestors_moves": False,
    "empty_ancestors_moves": False,
    "orphans_below_home": False,
    "differing_space": "error",
    "edits_before_put": 0,
    "edit_body": None,
    "downloads_refuse_tokens": False,
    "uneditable_status": 403,
    "duplicate_attachment_status": 400,
    "upload_limit": 100 * 1024 * 1024,
    "max_body": 5 * 1024 * 1024,
    "restriction_address": True,
    "space_permissions": True,
    "known_users": ["reporter", "author", "reader", "outsider"],
    "move_address": False,
    "list_limit": 200,
    "next_links": True,
    "rename_rewrites_links": True,
    "trash_blocks_titles": False,
    "index_lag_searches": 0,
    "version_2": False,
    "version_1_pages": 200,
    "cloud_id": "",
}


class WikiService(Service):
    """The wiki. Settings in addition to those of `sandbox.accounts`:

    - `deployment`: `Server` or `Cloud`
    - `require_xsrf`: whether writes require the anti-forgery header. None means that forms do, and
      in the written interface all writes
    - `rewrite_on_save`: whether bodies are rewritten. None means in the real flavour only
    - `omit_ancestors_moves`, `empty_ancestors_moves`: a PUT without a parent moves the page to the
      top
    - `orphans_below_home`: a new page without a parent is created below the home page
    - `differing_space`: `error` or `move`
    - `edits_before_put`: number of PUTs before which another user saves the page with the body
      `edit_body`. None means the unchanged body
    - `downloads_refuse_tokens`: redirect downloads with a token to the login page, because
      downloads do not belong to the REST interface [tracker-7]
    - `uneditable_status`: 403 or 404, for a page that is readable but not writable
    - `duplicate_attachment_status`: 400 or 409
    - `upload_limit`, `max_body`: maximum number of bytes
    - `space_permissions`: false for servers before 9.1, which do not report permissions
    - `known_users`: accounts that can be found by name
    - `restriction_address`: false for servers before 8.8, which cannot set restrictions
    - `move_address`: whether servers have the endpoint that moves pages
    - `list_limit`, `next_links`: maximum number of entries in a page of a list, and whether such a
      page links to the next one [wiki-11]
    - `rename_rewrites_links`: renaming a page updates the links to it
    - `trash_blocks_titles`: titles of trashed pages cannot be used again
    - `index_lag_searches`: number of searches that do not find a new page yet
    - `version_2`: whether version 2 of the cloud exists [wiki-30]
    - `version_1_pages`: status of pages, spaces, children and properties in version 1: 200, 410 or
      401
    - `cloud_id`: id of the site, which is also served at the gateway [tracker-40]
    """

    name = "wiki"
    objects = ("groups", "pages", "spaces")
    logins = ("clients", "oauth", "tokens", "users")
    defaults = _DEFAULTS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.accounts = Accounts(self)
        self.browsing = Browsing(self._views)
        self.tokens = PersonalTokens(self)
        self.clients = ClientCredentials(self)
        self.spaces = SpaceEditing(self._views)
        self.version2 = Version2(
            self._views, self.accounts.note, lambda: bool(self.real and self.settings["version_2"])
        )

    async def authenticate(self, request: Request) -> Response | None:
        if request.scope["path"].endswith((_TENANT, client_credentials.ADDRESS)):
            return None
        refusal = self.accounts.authenticate(request)
        if refusal is not None or request.method in ("GET", "HEAD"):
            return refusal
        return self._xsrf(request)

    def _xsrf(self, request: Request) -> Response | None:
        """Return a 403 if a write lacks the anti-forgery header [wiki-3], else None.

        The written interface calls the header `X-Vendor-Token`.
        """
        real = self.real
        names = ["x-atlassian-token"] if real else ["x-atlassian-token", "x-vendor-token"]
        values = [request.headers.get(name, "").lower() for name in names]
        needed = self.settings["require_xsrf"]
        if needed is None:
            kind = _content_type(request).partition(";")[0].strip().lower()
            needed = not real or (request.method != "DELETE" and kind in _FORGEABLE)
        if needed and not {"no-check", "nocheck"} & set(values):
            return PlainTextResponse("XSRF check failed", 403)
        return None

    def inside(self, path: str) -> str | None:
        """Map the paths of the gateway and of the site's id to this service [tracker-40]."""
        gateway = f"/ex/confluence/{self.settings['cloud_id']}/{self.name}/"
        if not self.settings["cloud_id"] or not path.startswith((gateway, _TENANT)):
            return None
        return (
            f"/{self.name}{path}" if path == _TENANT else path[len(gateway) - len(self.name) - 2 :]
        )

    async def tenant(self, request: Request) -> Response:
        """Return the id of the site, which requires no login [tracker-40]."""
        return JSONResponse({"cloudId": self.settings["cloud_id"]})

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        return super().is_write(method, path, form) and path != client_credentials.ADDRESS

    def reset(self) -> None:
        self.accounts.reset()

    def seed(self, data: dict[str, Any]) -> None:
        """Store the seed data.

        - `groups`: {name: [member]}
        - `spaces`: [{key, name, home?, anonymous?}]
        - `pages`: [{id, space, title, body, parent?, version?, status?, labels?, properties?,
          position?, hidden?, read_only?, restrictions?: {read: [name], update: [name]}}]
        """
        store = self.context.store
        for name, members in data.get("groups", {}).items():
            store.put("wiki.group", name, {"members": members})
        for space in data.get("spaces", []):
            known = store.get("wiki.space", space["key"])
            number = known["id"] if known is not None else 90 + store.next_id("wiki.space")
            store.put("wiki.space", space["key"], {"id": number, **space})
        pages = Pages(self.context, None)
        for page in map(_seeded, data.get("pages", [])):
            store.put("wiki.page", page["id"], page)
            pages.keep_title(page)

    def routes(self) -> list[Route]:
        content = "/rest/api/content"
        page = content + "/{id}"
        return [
            route(_TENANT, self.tenant),
            route(client_credentials.ADDRESS, self.clients.token, "POST"),
            *self.version2.routes(),
            self._route(content, self.find),
            self._route(content, self.create, "POST"),
            self._route(content + "/", self.create, "POST"),
            self._route(content + "/search", self.browsing.content_search),
            self._route(page, self.read, written=True),
            self._route(page, self.replace, "PUT", written=True),
            self._route(page, self.delete, "DELETE"),
            self._route(page + "/history", self.history),
            self._route(page + "/property", self.properties, "GET", "POST"),
            self._route(page + "/property/{key}", self.property, "GET", "PUT", "DELETE"),
            self._route(page + "/label", self.labels, "GET", "POST", "DELETE"),
            self._route(page + "/label/{name}", self.label, "DELETE"),
            *self._browsing_routes(page),
            self._route(page + "/child/attachment", self.attachments, "GET", "POST", "PUT"),
            self._route(page + "/child/attachment/{attachment}/data", self.attachment, "POST"),
            self._route("/download/attachments/{id}/{name}", self.download),
            self._route(ADDRESS, self.tokens.tokens, "GET", "POST"),
            self._route(ADDRESS + "/{id}", self.tokens.token, "DELETE"),
        ]

    def _browsing_routes(self, page: str) -> list[Route]:
        browsing, space = self.browsing, "/rest/api/space"
        experimental = page.replace("/api/", "/experimental/")
        return [
            self._route(page + "/child", browsing.child_kinds),
            self._route(page + "/child/page", browsing.children),
            self._route(page + "/child/comment", browsing.comments),
            self._route(page + "/descendant/page", browsing.descendants),
            self._route(page + "/move/{position}/{target}", browsing.move, "PUT"),
            self._route(page + "/restriction/byOperation", browsing.restrictions),
            self._route(experimental + "/restriction/byOperation", browsing.restrictions),
            self._route(page + "/restriction/byOperation/{operation}", browsing.restriction),
            self._route(page + "/restriction", browsing.restrict, "PUT", "DELETE"),
            self._route("/rest/api/group/picker", browsing.groups),
            self._route("/rest/api/group/by-id", browsing.group_by_id),
            self._route("/rest/api/group/{name}", browsing.group),
            self._route("/rest/api/user/memberof", browsing.groups_of_user),
            self._route(space, browsing.spaces),
            self._route(space, self.spaces.create, "POST"),
            self._route(space + "/{key}", self.spaces.update, "PUT"),
            self._route(space + "/{key}", self.spaces.delete, "DELETE"),
            self._route(space + "/{key}/permissions", self.spaces.permissions, "GET", "POST"),
            self._route(space + "/{key}/permission", self.spaces.grant, "POST"),
            self._route(space + "/{key}/permission/{id}", self.spaces.revoke, "DELETE"),
            self._route("/rest/api/user", self.spaces.user),
            self._route(space + "/{key}", browsing.space),
            self._route(space + "/{key}/content/{type}", browsing.space_content),
            self._route("/rest/api/search", browsing.search),
            self._route("/rest/api/user/current", browsing.current_user),
        ]

    def _route(
        self, path: str, handler: AsyncHandler, *methods: str, written: bool = False
    ) -> Route:
        """Return the route of an endpoint.

        :param written: whether the written interface defines the endpoint too
        """

        async def known(request: Request) -> Response:
            if not written and not self.real:
                return self.not_found(request)
            if self.settings["version_1_pages"] != 200 and GONE.match(f"{request.method} {path}"):
                return gone(int(self.settings["version_1_pages"]))
            try:
                response = await handler(request)
            except ErrorResponse as error:
                response = error.response
            self.accounts.note(request, response)
            return response

        return route(path, known, *methods)

    def _pages(self, request: Request) -> Pages:
        return Pages(self.context, rights_of(request, self))

    def _shown(
        self, request: Request, page: dict[str, Any], default: Sequence[str]
    ) -> JSONResponse:
        if not self.real:
            return JSONResponse(written_page(page))
        views = self._views(request)
        return JSONResponse(views.page(page, expansions(request) or default))

    def _views(self, request: Request) -> Views:
        return Views(self._pages(request), self.context.base_url(request, self.name))

    async def read(self, request: Request) -> Response:
        """GET /content/{id}: a page, by default with its space, history and version [wiki-1]."""
        pages, page_id = self._pages(request), request.path_params["id"]
        version = request.query_params.get("version")
        if version is not None and version.isdigit():
            return self._shown(request, pages.version(page_id, int(version)), GET_DEFAULT)
        return self._shown(request, pages.get(page_id, statuses(request)), GET_DEFAULT)

    async def find(self, request: Request) -> Response:
        """GET /content: pages by space and title [wiki-7]. By default nothing is expanded."""
        query = request.query_params
        wanted = statuses(request)
        pages, space, title = self._pages(request), query.get("spaceKey"), query.get("title")
        titled = None if space is None or title is None else pages.titled(space, title)
        found = [
            page
            for page in (pages.all() if titled is None else titled)
            if space in (None, page["space"])
            and pages.access.sees(page)
            and (title is None or title.lower() == page["title"].lower())
            and query.get("type", "page") == page["type"]
            and (page["status"] in wanted or "any" in wanted)
        ]
        views = self._views(request)
        expand = expansions(request)
        return JSONResponse(part(request, views, found, lambda page: views.page(page, expand)))

    async def create(self, request: Request) -> Response:
        """POST /content: create a page [wiki-3], or a comment on one [wiki-17]."""
        pages, data = self._pages(request), json_object(await request.body())
        if data.get("type") == "comment":
            comment, expand = comments.create(pages, data), expansions(request)
            default = ("body.storage", "container", "version")
            return JSONResponse(comments.view(self._views(request), comment, expand or default))
        return self._shown(request, pages.create(data), POST_DEFAULT)

    async def replace(self, request: Request) -> Response:
        """PUT /content/{id}: save a page [W4.3, wiki-3].

        The response contains the body only if it is expanded.
        """
        data = json_object(await request.body())
        pages, page_id = self._pages(request), request.path_params["id"]
        before = pages.get(page_id, ("any",))
        page = pages.replace(page_id, data)
        if self.settings["rename_rewrites_links"] and page["title"] != before["title"]:
            tree.follow_title(pages, before, page)
        return self._shown(request, page, GET_DEFAULT)

    async def delete(self, request: Request) -> Response:
        """DELETE /content/{id}: trash a page, or delete it with `status=trashed`.

        The id of an attachment deletes the attachment.
        """
        pages, number = self._pages(request), request.path_params["id"]
        found = attachments.find(pages, number) if number.startswith("att") else None
        if found is not None:
            attachments.delete(pages, *found)
        else:
            pages.trash(number, statuses(request))
        return Response(status_code=204)

    async def history(self, request: Request) -> Response:
        """GET /content/{id}/history: the author of the page and its newest version."""
        page = self._pages(request).get(request.path_params["id"])
        return JSONResponse(self._views(request).history(page, whole=True))

    async def properties(self, request: Request) -> Response:
        """List the properties of a page (GET), or create one (POST): 409 if it exists [wiki-6]."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        if request.method == "POST":
            key = details.create_property(pages, page, await request.body())
            return JSONResponse(views.property(page, key))
        known = [views.property(page, key) for key in page["properties"]]
        return JSONResponse(part(request, views, known, dict))

    async def property(self, request: Request) -> Response:
        """Return (GET), save (PUT) or delete (DELETE) a property [wiki-6].

        A missing property is a 404. PUT requires the next version number.
        """
        pages, key = self._pages(request), request.path_params["key"]
        page = pages.get(request.path_params["id"])
        if request.method == "DELETE":
            details.delete_property(pages, page, key)
            return Response(status_code=204)
        if request.method == "PUT":
            details.replace_property(pages, page, key, await request.body())
        details.find_property(page, key)
        return JSONResponse(self._views(request).property(page, key))

    async def labels(self, request: Request) -> Response:
        """List the labels of a page (GET), add labels (POST), or remove one (DELETE `?name=`)."""
        pages = self._pages(request)
        page = pages.get(request.path_params["id"])
        if request.method == "DELETE":
            details.remove_label(pages, page, request.query_params.get("name", ""))
            return Response(status_code=204)
        if request.method == "POST":
            details.add_labels(pages, page, await request.body())
        return JSONResponse(listing([label(name) for name in page["labels"]]))

    async def label(self, request: Request) -> Response:
        """DELETE /content/{id}/label/{name}: remove a label."""
        pages = self._pages(request)
        page = pages.get(request.path_params["id"])
        details.remove_label(pages, page, request.path_params["name"])
        return Response(status_code=204)

    async def attachments(self, request: Request) -> Response:
        """List the attachments of a page (GET), by default 50, or add files (POST, PUT)."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        if request.method == "PUT" and not pages.cloud:
            return self.method_not_allowed(request, "GET, POST")
        if request.method != "GET":
            form = attachments.form_of(_content_type(request), await request.body())
            added = attachments.add(pages, page, form, replaces=request.method == "PUT")
            shown = [views.attachment(page, file, version=True) for file in added]
            return JSONResponse(listing(shown))
        wanted, expand = request.query_params.get("filename"), expansions(request)
        found = [
            attachment for attachment in page["attachments"] if wanted in (None, attachment["name"])
        ]

        def show(attachment: dict[str, Any]) -> dict[str, Any]:
            return views.attachment(page, attachment, version="version" in expand)

        return JSONResponse(part(request, views, found, show, default=_ATTACHMENTS_LIMIT))

    async def attachment(self, request: Request) -> Response:
        """POST /content/{id}/child/attachment/{attachment}/data: add a version."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        form = attachments.form_of(_content_type(request), await request.body())
        stored = attachments.replace(pages, page, request.path_params["attachment"], form)
        return JSONResponse(views.attachment(page, stored, version=True))

    async def download(self, request: Request) -> Response:
        """GET /download/attachments/{id}/{name}: the newest version of an attachment."""
        by_token = request.headers.get("authorization", "").startswith("Bearer ")
        if self.settings["downloads_refuse_tokens"] and by_token:
            return RedirectResponse(f"/{self.name}/login.action?os_destination=x", 302)
        pages = self._pages(request)
        page = pages.get(request.path_params["id"])
        kind, content = attachments.content_of(pages, page, request.path_params["name"])
        return Response(content, media_type=kind)


def _seeded(page: dict[str, Any]) -> dict[str, Any]:
    version = {"number": page.get("version", 1), "when": _CREATED, "by": "admin"}
    parent = page.get("parent")
    properties = {
        key: {"value": value, "version": 1} for key, value in page.get("properties", {}).items()
    }
    return {
        "type": "page",
        "status": "current",
        "body": "",
        "labels": [],
        "attachments": [],
        **page,
        "id": str(page["id"]),
        "parent": None if parent is None else str(parent),
        "version": {**version, "message": "", "minorEdit": False},
        "created": {"when": _CREATED, "by": "admin"},
        "properties": properties,
    }


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "")
