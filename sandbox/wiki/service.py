# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and data of the wiki [W4.3, wiki-0]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sandbox.accounts import SETTINGS, Accounts, login_of
from sandbox.context import Context
from sandbox.service import Answer, Service, route
from sandbox.wiki import attachments, details
from sandbox.wiki.errors import bad_request, json_object
from sandbox.wiki.pages import Pages
from sandbox.wiki.views import GET_DEFAULT, POST_DEFAULT, Views, label, listing, written_page

AsyncHandler = Callable[[Request], Awaitable[Response]]

_DEFAULT_LIMIT = 25
_MAX_LIMIT = 200
_ATTACHMENTS_LIMIT = 50
_CREATED = "2026-01-05T09:00:00.000Z"
_DEFAULTS: dict[str, Any] = {
    **SETTINGS,
    "require_xsrf": True,
    "rewrite_on_save": None,
    "omit_ancestors_moves": False,
    "empty_ancestors_moves": False,
    "differing_space": "error",
    "edits_before_put": 0,
    "edit_body": None,
    "downloads_refuse_tokens": False,
}


class WikiService(Service):
    """Settings beyond those of `sandbox.accounts`: `require_xsrf` (writes need the anti-forgery
    header), `rewrite_on_save` (None: as the flavour has it), `omit_ancestors_moves` and
    `empty_ancestors_moves` (a PUT without a parent moves the page to the top), `differing_space`
    (`error` or `move`), `edits_before_put` (before that many PUTs another writer saves the page,
    with the body `edit_body`, None: the same), `downloads_refuse_tokens` ([tracker-7]: a
    download is no REST, so that a token may be sent to the login page there)."""

    name = "wiki"
    defaults = _DEFAULTS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.accounts = Accounts(self)

    async def authenticate(self, request: Request) -> Response | None:
        refusal = self.accounts.authenticate(request)
        if refusal is not None or request.method in ("GET", "HEAD"):
            return refusal
        return self._xsrf(request)

    def _xsrf(self, request: Request) -> Response | None:
        """Server fact [wiki-3]; the written interface calls the header `X-Vendor-Token`."""
        names = ["x-atlassian-token"] if self.real else ["x-atlassian-token", "x-vendor-token"]
        values = [request.headers.get(name, "").lower() for name in names]
        if self.settings["require_xsrf"] and not {"no-check", "nocheck"} & set(values):
            return PlainTextResponse("XSRF check failed", 403)
        return None

    def reset(self) -> None:
        self.accounts.reset()

    def seed(self, data: dict[str, Any]) -> None:
        """`spaces` ([{key, name, home?}]) and `pages` ([{id, space, title, body, parent?, version?,
        status?, labels?, properties?, hidden?, read_only?}])."""
        store = self.context.store
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
            self._route(content, self.find),
            self._route(content, self.create, "POST"),
            self._route(content + "/", self.create, "POST"),
            self._route(page, self.read, written=True),
            self._route(page, self.replace, "PUT", written=True),
            self._route(page, self.delete, "DELETE"),
            self._route(page + "/history", self.history),
            self._route(page + "/property", self.properties, "GET", "POST"),
            self._route(page + "/property/{key}", self.property, "GET", "PUT", "DELETE"),
            self._route(page + "/label", self.labels, "GET", "POST", "DELETE"),
            self._route(page + "/label/{name}", self.label, "DELETE"),
            self._route(page + "/child/page", self.children),
            self._route("/rest/api/space/{key}", self.space),
            self._route(page + "/child/attachment", self.attachments, "GET", "POST"),
            self._route(page + "/child/attachment/{attachment}/data", self.attachment, "POST"),
            self._route("/download/attachments/{id}/{name}", self.download),
        ]

    def _route(
        self, path: str, handler: AsyncHandler, *methods: str, written: bool = False
    ) -> Route:
        """`written`: known to the written interface too."""

        async def known(request: Request) -> Response:
            if not written and not self.real:
                return self.not_found(request)
            try:
                response = await handler(request)
            except Answer as answer:
                response = answer.response
            self.accounts.note(request, response)
            return response

        return route(path, known, *methods)

    def _pages(self, request: Request) -> Pages:
        return Pages(self.context, login_of(request).user)

    def _shown(
        self, request: Request, page: dict[str, Any], default: Sequence[str]
    ) -> JSONResponse:
        if not self.real:
            return JSONResponse(written_page(page))
        views = self._views(request)
        return JSONResponse(views.page(page, _expand(request) or default))

    def _views(self, request: Request) -> Views:
        return Views(self._pages(request), self.context.base_url(request, self.name))

    async def read(self, request: Request) -> Response:
        """Written interface [W4.3] (the query counts for nothing); server fact [wiki-1]."""
        pages, page_id = self._pages(request), request.path_params["id"]
        if not self.real:
            return self._shown(request, pages.get(page_id), ())
        version = request.query_params.get("version")
        if version is not None and version.isdigit():
            return self._shown(request, pages.version(page_id, int(version)), GET_DEFAULT)
        return self._shown(request, pages.get(page_id, _statuses(request)), GET_DEFAULT)

    async def find(self, request: Request) -> Response:
        """Server fact [wiki-7]; list results expand nothing by themselves [wiki-1]."""
        query = request.query_params
        statuses = _statuses(request)
        pages, space, title = self._pages(request), query.get("spaceKey"), query.get("title")
        titled = None if space is None or title is None else pages.titled(space, title)
        found = [
            page
            for page in (pages.all() if titled is None else titled)
            if space in (None, page["space"])
            and (title is None or title.lower() == page["title"].lower())
            and query.get("type", "page") == page["type"]
            and (page["status"] in statuses or "any" in statuses)
        ]
        views = self._views(request)
        return _part(request, views, found, lambda page: views.page(page, _expand(request)))

    async def children(self, request: Request) -> Response:
        """Server fact [wiki-11]: the pages right below one."""
        pages, views = self._pages(request), self._views(request)
        found = pages.children(pages.get(request.path_params["id"]))
        return _part(request, views, found, lambda page: views.page(page, _expand(request)))

    async def space(self, request: Request) -> Response:
        """A space, with its home page where that is expanded."""
        key = request.path_params["key"]
        self._pages(request).home(key)
        return JSONResponse(self._views(request).space(key, home="homepage" in _expand(request)))

    async def create(self, request: Request) -> Response:
        """Server facts [wiki-3]."""
        page = self._pages(request).create(json_object(await request.body()))
        return self._shown(request, page, POST_DEFAULT)

    async def replace(self, request: Request) -> Response:
        """[W4.3, wiki-3] (the body only when it is expanded)."""
        data = json_object(await request.body())
        page = self._pages(request).replace(request.path_params["id"], data)
        return self._shown(request, page, GET_DEFAULT)

    async def delete(self, request: Request) -> Response:
        """To the trash; with `status=trashed` for good."""
        self._pages(request).trash(request.path_params["id"], _statuses(request))
        return Response(status_code=204)

    async def history(self, request: Request) -> Response:
        """Who wrote the page, and its newest version."""
        page = self._pages(request).get(request.path_params["id"])
        return JSONResponse(self._views(request).history(page, whole=True))

    async def properties(self, request: Request) -> Response:
        """Server fact [wiki-6]: POST creates, 409 where the property is there already."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        if request.method == "POST":
            key = details.create_property(pages, page, await request.body())
            return JSONResponse(views.property(page, key))
        return JSONResponse(listing([views.property(page, key) for key in page["properties"]]))

    async def property(self, request: Request) -> Response:
        """Server fact [wiki-6]: 404 means none; PUT needs the next version."""
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
        """GET, POST `[{prefix, name}]`, DELETE `?name=`."""
        pages = self._pages(request)
        page = pages.get(request.path_params["id"])
        if request.method == "DELETE":
            details.remove_label(pages, page, request.query_params.get("name", ""))
            return Response(status_code=204)
        if request.method == "POST":
            details.add_labels(pages, page, await request.body())
        return JSONResponse(listing([label(name) for name in page["labels"]]))

    async def label(self, request: Request) -> Response:
        """DELETE of one label by its path."""
        pages = self._pages(request)
        page = pages.get(request.path_params["id"])
        details.remove_label(pages, page, request.path_params["name"])
        return Response(status_code=204)

    async def attachments(self, request: Request) -> Response:
        """GET `?filename=&start=&limit=`, in parts of 50 unless asked otherwise; POST a form."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        if request.method == "POST":
            form = attachments.form_of(_content_type(request), await request.body())
            added = attachments.add(pages, page, form)
            return JSONResponse(listing([attachments.view(views.base, page, added, version=True)]))
        wanted, expand = request.query_params.get("filename"), _expand(request)
        found = [each for each in page["attachments"] if wanted in (None, each["name"])]

        def show(each: dict[str, Any]) -> dict[str, Any]:
            return attachments.view(views.base, page, each, version="version" in expand)

        return _part(request, views, found, show, _ATTACHMENTS_LIMIT)

    async def attachment(self, request: Request) -> Response:
        """The next version of a file."""
        pages, views = self._pages(request), self._views(request)
        page = pages.get(request.path_params["id"])
        form = attachments.form_of(_content_type(request), await request.body())
        stored = attachments.replace(pages, page, request.path_params["attachment"], form)
        return JSONResponse(attachments.view(views.base, page, stored, version=True))

    async def download(self, request: Request) -> Response:
        """The newest bytes of a file."""
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


def _part(
    request: Request,
    views: Views,
    found: list[dict[str, Any]],
    show: Callable[[dict[str, Any]], dict[str, Any]],
    default: int = _DEFAULT_LIMIT,
) -> JSONResponse:
    """The part of a list that was asked for, with the way to the next one [wiki-7]."""
    start, limit = _integer(request, "start", 0), _integer(request, "limit", default)
    limit = min(limit, _MAX_LIMIT)
    shown = [show(each) for each in found[start : start + limit]]
    links = {"base": views.base, "context": "/wiki"}
    if start + limit < len(found):
        query = {**request.query_params, "start": start + limit, "limit": limit}
        links["next"] = f"{request.url.path.removeprefix('/wiki')}?{urlencode(query)}"
    answer = {"results": shown, "start": start, "limit": limit, "size": len(shown)}
    return JSONResponse({**answer, "_links": links})


def _expand(request: Request) -> list[str]:
    values = request.query_params.getlist("expand")
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _statuses(request: Request) -> list[str]:
    values = request.query_params.getlist("status")
    return [part for value in values for part in value.split(",") if part] or ["current"]


def _integer(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    if value == "":
        return default
    if not value.isdigit():
        raise bad_request(f"{name} is not a number: {value}")
    return int(value)
