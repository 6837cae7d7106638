# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and data of the issue tracker [W4.2, tracker-0]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.accounts import SETTINGS, Accounts, login_of
from sandbox.context import Context
from sandbox.service import Service, route
from sandbox.tracker import views
from sandbox.tracker.attachments import LOGIN_PAGE, MEDIA, Attachments
from sandbox.tracker.search import Search, read_search, xml_status
from sandbox.tracker.seeding import seed
from sandbox.tracker.views import Views, comma_list
from sandbox.tracker.world import World

AsyncHandler = Callable[[Request], Awaitable[Response]]

_REMOVED = (
    "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API. "
    "A full migration guideline is available at the developer documentation, CHANGE-2046."
)


_DEFAULTS: dict[str, Any] = {
    **SETTINGS,
    "deployment": "Server",
    "max_page": 1000,
    "cloud_max_page": 100,
    "window_limit": None,
    "unstable_order": False,
    "omit_is_last": False,
    "unrecognized": [],
    "attachment_logins": ["basic", "bearer", "oauth"],
    "account_language": "en",
}


class TrackerService(Service):
    """Settings beyond those of `sandbox.accounts`: `deployment` (`Server` or `Cloud`), `max_page`
    (cap of a page), `cloud_max_page` (further cap of the cloud's search), `window_limit` (how
    deep pages may reach, None: no limit), `unstable_order`, `omit_is_last`, `unrecognized`
    (members of a search request that this server does not know), `attachment_logins` (kinds of
    logins that the server takes for the bytes of an attachment), `account_language` (`en` or `de`,
    of names in answers)."""

    name = "tracker"
    defaults = _DEFAULTS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.accounts = Accounts(self)
        self.attachments = Attachments(self)

    @property
    def cloud(self) -> bool:
        return bool(self.settings["deployment"] == "Cloud")

    async def authenticate(self, request: Request) -> Response | None:
        path = request.scope["path"].removeprefix(f"/{self.name}")
        is_open = self.real and path.startswith((MEDIA, LOGIN_PAGE))
        return None if is_open else self.accounts.authenticate(request)

    def reset(self) -> None:
        self.accounts.reset()

    def seed(self, data: dict[str, Any]) -> None:
        seed(self.context, data)

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        if method == "POST" and path.rstrip("/").endswith(("/search", "/search/jql")):
            return False
        return super().is_write(method, path, form)

    def not_found(self, request: Request) -> Response:
        if not self.real:
            return super().not_found(request)
        message = f"null for uri: {quote(request.scope['path'])}"
        return Response(xml_status(404, message), 404, media_type="application/xml")

    def routes(self) -> list[Route]:
        return [
            self._api("/search/jql", self.search_by_token, "GET", "POST", cloud=True),
            self._api("/search", self.search, "GET"),
            self._api("/search", self.search, "POST", real=True),
            self._api("/issue/{key}", self.issue),
            self._api("/project", self.projects),
            self._api("/project/search", self.projects_by_page, real=True, cloud=True),
            self._api("/project/{key}", self.project, real=True),
            self._api("/serverInfo", self.server_info, real=True),
            self._api("/myself", self.myself, real=True),
            self._api("/field", self.fields, real=True),
            self._api("/attachment/{id}", self.attachment, real=True),
            self._api("/attachment/content/{id}", self.attachments.content, real=True, cloud=True),
            route("/secure/attachment/{id}/{name}", self._noted(self.attachments.secure)),
            route(MEDIA + "file/{id}", self._real(self.attachments.media)),
            route(LOGIN_PAGE, self._real(self.attachments.login_page)),
        ]

    def _real(self, handler: AsyncHandler) -> AsyncHandler:
        """Unknown to the written interface, and open to everybody."""

        async def known(request: Request) -> Response:
            return await handler(request) if self.real else self.not_found(request)

        return known

    def _api(
        self,
        path: str,
        handler: AsyncHandler,
        *methods: str,
        real: bool = False,
        cloud: bool = False,
    ) -> Route:
        """`real`: unknown to the written interface; `cloud`: to servers too."""

        async def known(request: Request) -> Response:
            versions = ("2", "3", "latest") if self.cloud else ("2", "latest")
            exists = request.path_params["version"] in versions
            if (real and not self.real) or (cloud and not self.cloud) or not exists:
                return self.not_found(request)
            return await handler(request)

        return route("/rest/api/{version}" + path, self._noted(known), *methods)

    def _noted(self, handler: AsyncHandler) -> AsyncHandler:
        async def noted(request: Request) -> Response:
            response = await handler(request)
            self.accounts.note(request, response)
            if self.cloud:
                response.headers["X-AACCOUNTID"] = f"account-{login_of(request).user}"
            return response

        return noted

    def _world(self, request: Request) -> World:
        return World(self.context.store, login_of(request).user, self.context.now_ms())

    def _views(self, request: Request) -> Views:
        """Server fact [tracker-13]: names come in the language of the account, or in one that is
        forced."""
        base, language = self.context.base_url(request, self.name), None
        if request.headers.get("x-force-accept-language") == "true":
            language = request.headers.get("accept-language")
        language = language or self.settings["account_language"]
        return Views(self._world(request), base, cloud=self.cloud, language=language)

    async def search(self, request: Request) -> Response:
        """[W4.2, tracker-11] (410 in the cloud)."""
        if self.cloud:
            return JSONResponse({"errorMessages": [_REMOVED], "errors": {}}, 410)
        unrecognized = self.settings["unrecognized"]
        asked = await read_search(request, tokens=False, unrecognized=unrecognized)
        return self._search(request).by_offset(asked, written=not self.real)

    async def search_by_token(self, request: Request) -> Response:
        """Server fact [tracker-11] (cloud)."""
        asked = await read_search(request, tokens=True, unrecognized=[])
        return self._search(request).by_token(asked)

    def _search(self, request: Request) -> Search:
        shuffle = self.context.store.next_id("tracker.search")
        return Search(self._views(request), self.settings, shuffle)

    async def issue(self, request: Request) -> Response:
        """[W4.2, tracker-5] (a moved issue has its new key)."""
        shown = self._views(request)
        key = request.path_params["key"]
        issue = shown.world.find(key)
        if issue is None:
            hidden = shown.world.user is None and shown.world.exists(key) is not None
            return self._hidden() if hidden else self._no_issue()
        fields = comma_list(request.query_params.getlist("fields"))
        if not self.real:
            return JSONResponse(shown.written_issue(issue, fields))
        expand = comma_list(request.query_params.getlist("expand"))
        properties = comma_list(request.query_params.getlist("properties"))
        answer = shown.issue(issue, fields or [views.ALL], properties)
        if "names" in expand:
            answer["names"] = views.names()
        if "schema" in expand:
            answer["schema"] = views.schema()
        return JSONResponse(answer)

    def _no_issue(self) -> Response:
        words = (
            "Issue does not exist or you do not have permission to see it."
            if self.cloud
            else "Issue Does Not Exist"
        )
        return JSONResponse({"errorMessages": [words], "errors": {}}, 404)

    def _hidden(self) -> Response:
        words = ["You do not have the permission to see the specified issue.", "Login Required"]
        return JSONResponse({"errorMessages": words, "errors": {}}, 401)

    async def projects(self, request: Request) -> Response:
        """[W4.2, tracker-8]: never paged."""
        shown = self._views(request)
        found = shown.world.projects.values()
        if not self.real:
            return JSONResponse([{"key": one["key"], "name": one["name"]} for one in found])
        expand = "description,lead,url,projectKeys"
        return JSONResponse([{"expand": expand, **shown.project(one)} for one in found])

    async def projects_by_page(self, request: Request) -> Response:
        """Server fact [tracker-8]: what takes the place of the list in the cloud."""
        shown, query = self._views(request), request.query_params
        start, size = int(query.get("startAt") or 0), int(query.get("maxResults") or 50)
        found = [shown.project(one) for one in shown.world.projects.values()]
        page = found[start : start + size]
        answer = {
            "startAt": start,
            "maxResults": size,
            "total": len(found),
            "isLast": start + len(page) >= len(found),
            "values": page,
        }
        return JSONResponse(answer)

    async def project(self, request: Request) -> Response:
        """One project by key or id."""
        shown, wanted = self._views(request), request.path_params["key"]
        for project in shown.world.projects.values():
            if wanted in (project["key"], project["id"]):
                return JSONResponse(shown.whole_project(project))
        message = f"No project could be found with key '{wanted}'."
        return JSONResponse({"errorMessages": [message], "errors": {}}, 404)

    async def server_info(self, request: Request) -> Response:
        """Server fact [tracker-3]: how to tell the deployments apart."""
        numbers = [1001, 0, 0] if self.cloud else [9, 12, 5]
        return JSONResponse(
            {
                "baseUrl": self.context.base_url(request, self.name),
                "version": ".".join(map(str, numbers)),
                "versionNumbers": numbers,
                "deploymentType": self.settings["deployment"],
                "buildNumber": 912005,
                "serverTitle": "Sandbox",
            }
        )

    async def myself(self, request: Request) -> Response:
        """The account that asks; clients check their login with it."""
        return JSONResponse(self._views(request).user(login_of(request).user or "anonymous"))

    async def fields(self, request: Request) -> Response:
        """All fields; clients read them before their first search."""
        return JSONResponse(views.field_list())

    async def attachment(self, request: Request) -> Response:
        """Description of one attachment."""
        found = self.attachments.visible(request)
        if found is None:
            message = f"The attachment with id '{request.path_params['id']}' does not exist"
            return JSONResponse({"errorMessages": [message], "errors": {}}, 404)
        return JSONResponse(self._views(request).attachment(found))
