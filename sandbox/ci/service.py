# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI server: login, CSRF crumbs, routing and data formats."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sandbox import object_store
from sandbox.ci.actions import SCRIPT_STATE, find, form_page, job_actions, root_actions
from sandbox.ci.builds import archiving, builds, history, queue
from sandbox.ci.builds.build_actions import build_actions
from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.configuration import casc, credentials, list_views, nodes
from sandbox.ci.formats import markup, views
from sandbox.ci.formats.exports import Exported, TreeError, by_depth, by_tree, constants, parse_tree
from sandbox.ci.jobs import jobs, scans
from sandbox.ci.plugins import plugin_manager, update_center
from sandbox.ci.scripts import scripts
from sandbox.ci.server import access, api_tokens, pages, restart, server_views
from sandbox.context import Context, Service
from sandbox.service import ErrorResponse, route

METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
FORMATS = ("json", "xml", "python")
_READING_POSTS = ("/configuration-as-code/export", "/configuration-as-code/check")
# Addresses that have data as well as a page.
_OBJECTS: tuple[list[str], ...] = (
    [],
    ["computer"],
    ["me"],
    ["pluginManager"],
    ["queue"],
    ["updateCenter"],
)
#: Lists of a seed, and the functions that store their entries.
_SEEDED: dict[str, Callable[[Context, dict[str, Any]], object]] = {
    "plugins": plugin_manager.put,
    "update_site": update_center.put,
    "builds": history.put,
    "stored_credentials": credentials.put,
    "nodes": nodes.put,
    "views": list_views.put,
    "api_tokens": api_tokens.put,
}
# Server fact [ci-1]: all other addresses require read permission on the server. The crumb issuer
# checks the permission itself if it needs it [ci-2].
_OPEN = (["login"], ["crumbIssuer"])


class CiService(Service):
    """The CI server [W4.4, ci-0]."""

    name = "ci"
    objects = (*_SEEDED, "jobs", "state", "configuration")
    logins = ("users", "anonymous_permissions")
    defaults: ClassVar[dict[str, Any]] = {
        # Release in the header `X-Jenkins`.
        "version": "2.479.3",
        # Java version of the server.
        "java": "17",
        # Header `X-SSH-Endpoint` of the login page; None: the SSH server is off.
        "ssh_endpoint": None,
        "crumb_issuer": True,
        "crumb_field": "Jenkins-Crumb",
        "crumb_needs_session": True,
        # Base of the `url` fields; None: the address that the client used.
        "root_url": None,
        # Request that makes a copied job buildable: config.xml, submitDescription (very old
        # servers), or none.
        "copy_released_by": "config.xml",
        # Whether an XPath may return strings, which a plugin can allow.
        "xpath_primitives": False,
        # Status for buildWithParameters of a job without parameters: 400 since release 2.524,
        # before that 500.
        "not_parameterized_status": 400,
        # How long an item is known after it left the queue, and the delay until its build is shown.
        "queue_item_seconds": 300,
        "executable_lag_seconds": 0,
        # Update centre: duration of an installation, and whether its site is known from the start.
        "install_seconds": 0.2,
        "site_fetched": True,
        "update_sites": ["default"],
        # Whether artifacts are in an object store.
        "artifact_redirect": False,
        "restart_supported": True,
        "restart_drain_seconds": 0.2,
        "restart_down_seconds": 0.3,
        "restart_refused_seconds": 0.2,
        "restart_without_users_seconds": 0.2,
        "restart_boot_seconds": 0.2,
        # Whether endpoints exist that the written interface does not list; None: only with the
        # flavour `real`.
        "unlisted_endpoints": None,
        # Request of configuration as code that configures: configure, apply (before 2025), or None
        # without the plugin; the paths that the server does not take over; its variables; and the
        # content of its own files.
        "casc": "configure",
        "casc_ignores": [],
        "casc_variables": {},
        "casc_files": {},
        # ids of the credentials that builds have used since they were saved
        "used_credentials": [],
        # Whether administrators may create API tokens of other users.
        "admin_creates_tokens": False,
        "scripts": [],
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.crumbs = access.Crumbs(context)
        if not context.store.is_empty():
            # The process restarted with a saved state.
            self.crumbs.start()
        self._root, self._job, self._build = root_actions(), job_actions(), build_actions()

    def routes(self) -> list[Route]:
        return [*object_store.routes(), route("/{path:path}", self._dispatch, *METHODS)]

    def tick(self) -> None:
        """Carry out due events of builds, whose effects other services show."""
        builds.advance(self.context)
        scans.advance(self.context)
        update_center.advance(self.context)

    def seed(self, data: dict[str, Any]) -> None:
        """Store a seed: `jobs: {full name: definition}`, `state`, `configuration`, and lists.

        `_SEEDED` has the names of the lists.
        """
        for name, definition in (data.get("jobs") or {}).items():
            jobs.put(self.context, name, definition or {})
        for name, put in _SEEDED.items():
            for entry in data.get(name) or []:
                put(self.context, entry)
        if data.get("configuration"):
            casc.put(self.context, data["configuration"])
        if data.get("state"):
            self.context.store.put(SCRIPT_STATE, "state", data["state"])

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        """Return true for every POST except a wrapped script in check mode and the check for
        missing plugins, which change nothing.
        """
        if method in ("GET", "HEAD", "OPTIONS"):
            return False
        if path == "/pluginManager/prevalidateConfig" or path in _READING_POSTS:
            return False
        wrapped = scripts.wrapped_call(form.get("script", "")) if path == "/scriptText" else None
        return wrapped is None or not wrapped[0].check_mode

    async def authenticate(self, request: Request) -> Response | None:
        """Return an error during a restart, or for an invalid login or crumb."""
        if object_store.asked(request, self.name):
            return None
        refusal = await self._refusal(request)
        if refusal is None or refusal.status_code == 403:  # a crumb is missing
            return refusal
        return self._stamped(refusal, request.method)

    async def _refusal(self, request: Request) -> Response | None:
        phase = restart.phase(self.context)
        if phase == restart.RESTARTING:
            return pages.page("Jenkins", "<h1>Please wait while Jenkins is restarting</h1>", 503)
        if phase == restart.REFUSING:
            request.scope["sandbox.transport"].abort()
        if phase == restart.WITHOUT_USERS and "authorization" in request.headers:
            return pages.bad_credentials()
        if phase != restart.NORMAL:
            message = "<h1>Please wait while Jenkins is getting ready to work</h1>"
            return pages.page("Jenkins", message, 503)
        login = access.log_in(self.context, request)
        if login is None:
            return pages.bad_credentials()
        request.state.login = login
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return None
        form = {name: values[-1] for name, values in (await form_fields(request)).items()}
        return None if self.crumbs.accepts(login, request, form) else pages.no_crumb()

    def not_found(self, request: Request) -> Response:
        return self._stamped(pages.not_found(), request.method)

    def _stamped(self, response: Response, method: str) -> Response:
        """Add the headers of the server. Only pages and data have version and session [ci-3]."""
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Server"] = "Jetty(12.0.13)"
        if response.status_code == 409 or (method == "POST" and response.status_code < 400):
            return response
        response.headers["X-Hudson"] = "1.395"
        response.headers["X-Jenkins"] = self.settings["version"]
        response.headers["X-Jenkins-Session"] = self.crumbs.mark
        return response

    async def _dispatch(self, request: Request) -> Response:
        """Handle all requests."""
        try:
            call = self._resolve(request)
            answer = self._act(call)
            response = answer if isinstance(answer, Response) else await answer
        except ErrorResponse as ended:
            response = ended.response
        location = response.headers.get("Location")
        if response.status_code == 302 and location is not None:
            # server fact [ci-5]
            root = self.context.base_url(request, self.name).removesuffix(f"/{self.name}")
            response.headers["Location"] = location.removeprefix(root)
        return self._stamped(response, request.method)

    def _resolve(self, request: Request) -> Call:
        """Resolve the job and the build in the path. The remaining segments name the action."""
        sent = request.scope["path"][len(self.name) + 2 :]
        parts = [unquote(part) for part in sent.split("/") if part != ""]
        base = self.settings["root_url"] or self.context.base_url(request, self.name)
        site = views.ViewContext(self.context, base.rstrip("/"), self.real, request.state.login)
        call = Call(request, site, request.state.login, parts)
        if parts[:1] not in _OPEN:
            call.require(access.READ)
        path: list[str] = []
        while call.rest[:1] == ["job"] and len(call.rest) > 1:
            path.append(call.rest[1])
            call.rest = call.rest[2:]
        if path:
            self._find_job(call, "/".join(path))
        return call

    def _find_job(self, call: Call, name: str) -> None:
        call.job = jobs.find(self.context, name)
        name = name if call.job is None else call.job["full_name"]
        # server fact [ci-1]: a job that the user may not see is a 404, or a 403 for anonymous users
        if call.login.user is None and not call.login.sees(name):
            raise ErrorResponse(pages.denied(None, access.ITEM_READ))
        if call.job is None or not call.login.sees(name):
            raise ErrorResponse(pages.not_found())
        if not call.rest or jobs.is_container(call.job):
            return
        number: int | None = None
        if call.rest[0].isdigit():
            number = int(call.rest[0])
        elif call.rest[0] in views.PERMALINKS:
            number = views.permalink(call.site, name, call.rest[0])
        else:
            return
        call.build = None if number is None else builds.get(self.context, name, number)
        if call.build is None:
            raise ErrorResponse(pages.not_found())
        call.rest = call.rest[1:]

    def _act(self, call: Call) -> Response | Awaitable[Response]:
        action = self._action(call)
        if action is None and (data := _data_address(call.rest)) is not None:
            call.rest = data
            return self._api(call)
        if action is None or not self._has(action.listed):
            call.request.scope["sandbox.entry"].routed = action is not None
            raise ErrorResponse(pages.not_found())
        # A DELETE exists only for actions that are defined for it.
        if call.request.method == "DELETE" and action.method != "DELETE":
            raise ErrorResponse(pages.not_found())
        if action.method == "POST" and call.request.method != "POST":
            return form_page() if call.rest == ["safeRestart"] else pages.post_only()
        if action.permission:
            call.require(action.permission)
        return action.handler(call)

    def _action(self, call: Call) -> Action | None:
        """Return the action for the path of a request, or `None`.

        Server fact [ci-11]: additional segments of the path are ignored.
        """
        table = self._root
        if call.job is not None:
            table = self._job if call.build is None else self._build
        data = _data_address(call.rest)
        if data is None:
            return find(call, table)
        whole, call.rest = call.rest, data[:-2]
        action = None if call.rest[:1] in _OBJECTS else find(call, table)
        if action is None:
            call.rest = whole
        return action

    def _has(self, listed: bool) -> bool:
        unlisted = self.settings["unlisted_endpoints"]
        return listed or (self.real if unlisted is None else bool(unlisted))

    def _api(self, call: Call) -> Response:
        """Handle `api/json`, `api/xml` and `api/python` of all exported objects."""
        if call.rest == ["crumbIssuer", "api", call.rest[-1]]:
            return self._crumb(call)
        call.require(access.READ if call.job is None else access.ITEM_READ)
        exported = self._exported(call)
        if exported is None:
            raise ErrorResponse(pages.not_found())
        return _rendered(call, exported, bool(self.settings["xpath_primitives"]))

    def _exported(self, call: Call) -> Exported | None:
        target = call.rest[:-2]
        if call.build is not None:
            return views.build_view(call.site, call.build) if target == [] else None
        if target[:1] == ["credentials"] and self._has(False):
            return credentials.exported(call, target)
        if target[:1] == ["view"] and len(target) == 2 and self._has(False):
            return list_views.exported(call, target[1])
        if call.job is not None:
            return self._job_view(call, call.job) if target == [] else None
        if target == ["pluginManager"]:
            call.require(access.SYSTEM_READ)
            return plugin_manager.manager_view(self.context)
        return self._unlisted(call, target) if self._has(False) else None

    def _job_view(self, call: Call, job: dict[str, Any]) -> Exported:
        shown = views.job_view(call.site, job)
        if job["kind"] == jobs.FOLDER and self._has(False):
            shown.fields.update(list_views.fields(self.context, str(job["full_name"])))
        return shown

    def _unlisted(self, call: Call, target: list[str]) -> Exported | None:
        if target == []:
            return server_views.server_view(call.site)
        if target[:1] in (["me"], ["user"], ["whoAmI"]):
            return server_views.account_view(call.site, call.login.user, target)
        if target[:1] == ["computer"] and len(target) == 2:
            return nodes.exported(call, target[1])
        if target == ["computer"]:
            return server_views.computers_view(call.site)
        if target[:1] == ["updateCenter"]:
            call.require(access.SYSTEM_READ)
            return self._update_center(target[1:])
        if target[:1] == ["fingerprint"] and len(target) == 2:
            return archiving.fingerprint_view(self.context.store.values(builds.BUILDS), target[1])
        if target == ["queue"]:
            return views.queue_list(call.site)
        if target[:2] == ["queue", "item"] and len(target) == 3 and target[2].isdigit():
            item = queue.get(self.context, int(target[2]))
            if item is not None and call.login.sees(item["job"]):
                return views.queue_view(call.site, item)
        return None

    def _update_center(self, target: list[str]) -> Exported | None:
        if target == ["site", "default"]:
            return update_center.site_view(self.context)
        return update_center.view(self.context) if target == [] else None

    def _crumb(self, call: Call) -> Response:
        """Handle the crumb issuer [W4.4, ci-2]."""
        settings = self.settings
        if not settings["crumb_issuer"]:
            raise ErrorResponse(pages.not_found())
        if settings["crumb_needs_session"]:
            # written interface [W9]: since 2.176.2 the request needs credentials
            call.require(access.READ)
        exported, cookie = self.crumbs.answer(call.login, call.request)
        xpath = call.request.query_params.get("xpath")
        if call.rest[-1] == "xml" and xpath is not None:
            between = access.separator(xpath, self.real)
            if between is not None:
                message = f"{exported['crumbRequestField']}{between}{exported['crumb']}"
                return access.with_cookie(pages.text(message), cookie)
        names = {name: value for name, value in exported.items() if name != "_class"}
        shown = Exported(exported["_class"], constants(**names))
        return access.with_cookie(_rendered(call, shown, False), cookie)


def _data_address(rest: list[str]) -> list[str] | None:
    """Return the segments before the data format, such as `api/json`, or `None` without a format.

    Server fact [ci-11]: segments after the data format are ignored.
    """
    if rest[:1] == ["artifact"]:
        return None
    for at in range(len(rest) - 1):
        if rest[at] == "api" and rest[at + 1] in FORMATS:
            return rest[: at + 2]
    return None


def _python_text(data: Any) -> str:
    """Format data as a Python literal with double-quoted strings, which is close to JSON."""
    if isinstance(data, dict):
        members = (f"{json.dumps(name)}:{_python_text(value)}" for name, value in data.items())
        return "{" + ",".join(members) + "}"
    if isinstance(data, list):
        return "[" + ",".join(map(_python_text, data)) + "]"
    return json.dumps(data) if isinstance(data, str) else repr(data)


def _rendered(call: Call, exported: Exported, primitives: bool) -> Response:
    """Return data in the requested format. The status is 500 if `tree` or `depth` is malformed."""
    query = call.request.query_params
    try:
        tree = query.get("tree")
        if tree:
            data = by_tree(exported, parse_tree(tree))
        else:
            data = by_depth(exported, int(query.get("depth") or 0))
    except (TreeError, ValueError) as error:
        return pages.oops(str(error))
    kind = call.rest[-1]
    if kind == "json":
        pretty = query.get("pretty") in ("true", "1")
        text = json.dumps(data, ensure_ascii=False, indent=2 if pretty else None)
        return Response(text, 200, None, "application/json;charset=utf-8")
    if kind == "python":
        return Response(_python_text(data), 200, None, "text/x-python;charset=utf-8")
    selection = markup.Selection(
        query.get("xpath"),
        tuple(query.getlist("exclude")),
        query.get("wrapper"),
        primitives,
        relative=not call.site.real,
    )
    try:
        text, media_type = markup.render(markup.to_xml(data), selection)
    except markup.XPathRefused as refused:
        if refused.status == 404:  # server fact [ci-12]
            return pages.text(refused.message, 404)
        return pages.failed(refused.message, refused.status)
    return Response(text, 200, None, media_type)
