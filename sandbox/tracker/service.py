# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and settings of the issue tracker [W4.2, tracker-0]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox import client_credentials
from sandbox.accounts import SETTINGS, Accounts, login_of, rights_of
from sandbox.client_credentials import ClientCredentials
from sandbox.context import Context, Service
from sandbox.personal_tokens import ADDRESS, PersonalTokens
from sandbox.service import ErrorResponse, route
from sandbox.tracker.call import Call, Handler
from sandbox.tracker.fields import meta
from sandbox.tracker.issues import (
    comments,
    editing,
    links,
    reading,
    remote_links,
    uploads,
    watchers,
    workflow,
)
from sandbox.tracker.issues.attachments import LOGIN_PAGE, MEDIA, Attachments
from sandbox.tracker.issues.views import Views
from sandbox.tracker.projects import components, people, roles, versions
from sandbox.tracker.search.search import Search, read_search, xml_status
from sandbox.tracker.seeding import seed
from sandbox.tracker.visible import VisibleData

AsyncHandler = Callable[[Request], Awaitable[Response]]

_REMOVED = (
    "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API. "
    "A full migration guideline is available at the developer documentation, CHANGE-2046."
)


_DEFAULTS: dict[str, Any] = {
    **SETTINGS,
    "deployment": "Server",
    "version": "9.12.5",
    "max_page": 1000,
    "cloud_max_page": 100,
    "cloud_comment_page": 100,
    "createmeta_page": 50,
    "window_limit": None,
    "unstable_order": False,
    "omit_is_last": False,
    "unrecognized": [],
    "attachment_logins": ["basic", "bearer", "oauth"],
    "account_language": "en",
    "index_lag_ms": 0,
    "index_lag_searches": 0,
    "version_post_ignores_states": False,
    "remove_and_swap": True,
    "component_archive": True,
    "transition_fields_ignored": False,
    "ignored_fields": [],
    "linking": True,
    "upload_limit": 10 * 1024 * 1024,
    "empty_uploads": True,
}


class TrackerService(Service):
    """The issue tracker. Settings in addition to those of `sandbox.accounts`:

    - `deployment`: `Server` or `Cloud`; `version`: version of a server
    - `max_page`: maximum page size; `cloud_max_page`: further limit of the cloud's search
    - `cloud_comment_page`, `createmeta_page`: page sizes
    - `window_limit`: maximum of startAt + maxResults; None means no limit
    - `unstable_order`: whether pages of searches overlap; `omit_is_last`: whether to omit `isLast`
    - `unrecognized`: members that this server does not know
    - `attachment_logins`: authentication schemes that are accepted for attachment downloads
    - `account_language`: language (`en` or `de`) of names in responses
    - `index_lag_ms`, `index_lag_searches`: time and number of searches that do not find a new issue
    - `version_post_ignores_states`: whether a new version ignores `released`, as on old servers
    - `remove_and_swap`: whether the endpoint exists; old servers do not have it
    - `component_archive`: whether components can be archived; old servers ignore `archived`
    - `transition_fields_ignored`: whether to ignore fields of a transition without a screen instead
      of rejecting them
    - `ignored_fields`: ids of fields whose values are accepted, but not stored [tracker-22]
    - `linking`: whether links between issues are enabled
    - `upload_limit`: maximum number of bytes; `empty_uploads`: whether to accept empty files
    """

    name = "tracker"
    objects = (
        *("components", "fields", "groups", "issues", "link_types", "projects", "roles", "series"),
        *("statuses", "users", "versions", "workflows"),
    )
    logins = ("clients", "oauth", "tokens", "users")
    defaults = _DEFAULTS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.accounts = Accounts(self)
        self.attachments = Attachments(self)
        self.tokens = PersonalTokens(self)
        self.clients = ClientCredentials(self)

    @property
    def cloud(self) -> bool:
        return bool(self.settings["deployment"] == "Cloud")

    async def authenticate(self, request: Request) -> Response | None:
        path = request.scope["path"].removeprefix(f"/{self.name}")
        is_open = path.startswith((MEDIA, LOGIN_PAGE, client_credentials.ADDRESS))
        return None if is_open else self.accounts.authenticate(request)

    def reset(self) -> None:
        self.accounts.reset()

    def seed(self, data: dict[str, Any]) -> None:
        seed(self.context, data)

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        reads = ("/search", "/search/jql", client_credentials.ADDRESS)
        if method == "POST" and path.rstrip("/").endswith(reads):
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
            self._api("/project", self._called(reading.projects)),
            *self._issue_routes(),
            *self._detail_routes(),
            *self._version_routes(),
            *self._project_routes(),
            *self._list_routes(),
            self._api("/attachment/content/{id}", self.attachments.content, real=True, cloud=True),
            self._on("/attachment/{id}", uploads.attachment, "GET", "DELETE"),
            route("/secure/attachment/{id}/{name}", self._noted(self.attachments.secure)),
            route("/secure/attachment/{id}/", self._noted(self._real(self.attachments.secure))),
            route(MEDIA + "file/{id}", self._real(self.attachments.media)),
            route(LOGIN_PAGE, self._real(self.attachments.login_page)),
            route(client_credentials.ADDRESS, self.clients.token, "POST"),
            route(ADDRESS, self._noted(self.tokens.tokens), "GET", "POST"),
            route(ADDRESS + "/{id}", self._noted(self.tokens.token), "DELETE"),
        ]

    def _issue_routes(self) -> list[Route]:
        on = self._on
        return [
            on("/issue", editing.create, "POST"),
            on("/issue/bulk", editing.create_many, "POST"),
            on("/issue/createmeta", meta.createmeta),
            on("/issue/createmeta/{project}/issuetypes", meta.create_types),
            on("/issue/createmeta/{project}/issuetypes/{id}", meta.create_fields),
            self._api("/issue/{key}", self._called(reading.issue)),
            on("/issue/{key}", editing.edit, "PUT"),
            on("/issue/{key}", editing.delete, "DELETE"),
        ]

    def _detail_routes(self) -> list[Route]:
        on = self._on
        return [
            on("/issue/{key}/editmeta", meta.editmeta),
            on("/issue/{key}/assignee", editing.assign, "PUT"),
            on("/issue/{key}/transitions", workflow.transitions),
            on("/issue/{key}/transitions", workflow.transition, "POST"),
            on("/issue/{key}/comment", comments.comments, "GET", "POST"),
            on("/issue/{key}/comment/{comment}", comments.comment, "GET", "PUT", "DELETE"),
            on("/issue/{key}/watchers", watchers.watchers),
            on("/issue/{key}/watchers", watchers.add, "POST"),
            on("/issue/{key}/watchers", watchers.remove, "DELETE"),
            on("/issue/{key}/attachments", uploads.upload, "POST"),
            on("/issue/{key}/changelog", reading.changelog, cloud=True),
            on("/issue/{key}/properties", editing.issue_properties),
            on("/issue/{key}/properties/{name}", editing.issue_property, "GET", "PUT", "DELETE"),
            on("/issue/{key}/remotelink", remote_links.remote_links, "GET", "POST", "DELETE"),
            on("/issue/{key}/remotelink/{link}", remote_links.remote_link, "GET", "PUT", "DELETE"),
            on("/issueLink", links.create, "POST"),
            on("/issueLink/{id}", links.link, "GET", "DELETE"),
            on("/issueLinkType", links.link_types),
            on("/issueLinkType/{id}", links.link_type),
        ]

    def _version_routes(self) -> list[Route]:
        on = self._on
        return [
            on("/project/search", reading.projects_by_page, cloud=True),
            on("/project/{key}", reading.project),
            on("/project/{key}/versions", versions.listed),
            on("/project/{key}/version", versions.paged),
            on("/version", versions.create, "POST"),
            on("/version/{id}", versions.version),
            on("/version/{id}", versions.update, "PUT"),
            on("/version/{id}", versions.delete, "DELETE"),
            on("/version/{id}/removeAndSwap", versions.swap, "POST"),
            on("/version/{id}/mergeto/{target}", versions.merge, "PUT"),
            on("/version/{id}/move", versions.move, "POST"),
            on("/version/{id}/unresolvedIssueCount", versions.unresolved),
            on("/version/{id}/relatedIssueCounts", versions.related),
        ]

    def _project_routes(self) -> list[Route]:
        on = self._on
        return [
            on("/project/{key}/components", components.listed),
            on("/project/{key}/component", components.paged, cloud=True),
            on("/component", components.create, "POST"),
            on("/component/{id}", components.component),
            on("/component/{id}", components.update, "PUT"),
            on("/component/{id}", components.delete, "DELETE"),
            on("/component/{id}/relatedIssueCounts", components.related),
            on("/project/{key}/role", roles.listed),
            on("/project/{key}/role/{id}", roles.role),
            on("/project/{key}/role/{id}", roles.replace, "PUT"),
            on("/project/{key}/role/{id}", roles.add, "POST"),
            on("/project/{key}/role/{id}", roles.remove, "DELETE"),
        ]

    def _list_routes(self) -> list[Route]:
        on = self._on
        return [
            on("/serverInfo", reading.server_info),
            on("/myself", people.myself),
            on("/mypermissions", people.permissions),
            on("/user", people.user),
            on("/user/search", people.users),
            on("/user/assignable/search", people.assignable_users),
            on("/groups/picker", people.groups),
            on("/field", reading.fields),
            on("/attachment/meta", uploads.limits),
            *(on(f"/{kind}", meta.list_of) for kind in _LISTS),
        ]

    def _real(self, handler: AsyncHandler) -> AsyncHandler:
        """Return a handler that responds with 404 in the written flavour."""

        async def known(request: Request) -> Response:
            return await handler(request) if self.real else self.not_found(request)

        return known

    def _on(self, path: str, handler: Handler, *methods: str, cloud: bool = False) -> Route:
        """Return the route of an endpoint that the written interface does not define."""
        return self._api(path, self._called(handler), *methods, real=True, cloud=cloud)

    def _called(self, handler: Handler) -> AsyncHandler:
        """Return a handler that runs in a transaction. A rejected request leaves no changes."""

        async def called(request: Request) -> Response:
            body = await request.body()
            rights = rights_of(request, self)
            with self.context.store.transaction():
                return handler(Call(self.context, request, body, self._views(request), rights))

        return called

    def _api(
        self,
        path: str,
        handler: AsyncHandler,
        *methods: str,
        real: bool = False,
        cloud: bool = False,
    ) -> Route:
        """Return the route of a REST endpoint.

        :param real: whether the endpoint is missing in the written interface
        :param cloud: whether it is also missing on servers
        """

        async def known(request: Request) -> Response:
            versions = ("2", "3", "latest") if self.cloud else ("2", "latest")
            exists = request.path_params["version"] in versions
            if (real and not self.real) or (cloud and not self.cloud) or not exists:
                return self.not_found(request)
            return await handler(request)

        return route("/rest/api/{version}" + path, self._noted(known), *methods)

    def _noted(self, handler: AsyncHandler) -> AsyncHandler:
        async def noted(request: Request) -> Response:
            try:
                response = await handler(request)
            except ErrorResponse as error:
                response = error.response
            self.accounts.note(request, response)
            if self.cloud:
                response.headers["X-AACCOUNTID"] = f"account-{login_of(request).user}"
            return response

        return noted

    def _views(self, request: Request) -> Views:
        """Return the data that the account of a request can see.

        Server fact [tracker-13]: names are in the language of the account, unless the request
        forces another language.
        """
        base, language = self.context.base_url(request, self.name), None
        if request.headers.get("x-force-accept-language") == "true":
            language = request.headers.get("accept-language")
        language = language or self.settings["account_language"]
        documents = self.cloud and request.path_params["version"] == "3"
        visible = VisibleData(self.context.store, rights_of(request, self), self.context.now_ms())
        views = Views(visible, base, cloud=self.cloud, language=language, documents=documents)
        if self.cloud:
            views.embedded = int(self.settings["cloud_comment_page"])
        return views

    async def search(self, request: Request) -> Response:
        """/search: search by offset [W4.2]. In the cloud it is a 410 [tracker-11]."""
        if self.cloud:
            return JSONResponse({"errorMessages": [_REMOVED], "errors": {}}, 410)
        unrecognized = self.settings["unrecognized"]
        asked = await read_search(request, tokens=False, unrecognized=unrecognized)
        return self._search(request).by_offset(asked, written=not self.real)

    async def search_by_token(self, request: Request) -> Response:
        """/search/jql: search by token, only in the cloud [tracker-11]."""
        asked = await read_search(request, tokens=True, unrecognized=[])
        return self._search(request).by_token(asked)

    def _search(self, request: Request) -> Search:
        shuffle = self.context.store.next_id("tracker.search")
        return Search(self._views(request), self.settings, shuffle)


_LISTS = ("priority", "resolution", "status", "issuetype")
