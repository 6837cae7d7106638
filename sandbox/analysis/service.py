# SPDX-License-Identifier: GPL-3.0-or-later
"""The code analysis server. All requests go to one URL; a form field contains the action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sandbox.analysis import (
    accounts,
    imports,
    issues,
    permissions,
    projects,
    reports,
    search,
    server,
)
from sandbox.analysis.responses import Call, Record, Refused, error, records
from sandbox.context import Service
from sandbox.service import route

PATH = "/review/api"
COMMON = frozenset({"user", "ltoken", "action"})


@dataclass(frozen=True)
class Action:
    """An action of the server.

    :param handler: returns the records of a read; returns `None` after a write, whose response is
        200 with an empty body
    :param written: parameters in the interface description [W4.5]
    :param more: additional parameters of real servers
    :param report: whether real servers respond with a single object over several lines
        [analysis-2]
    """

    handler: Callable[[Call], list[Record] | None]
    written: frozenset[str]
    more: frozenset[str] = frozenset()
    writes: bool = False
    report: bool = False


def _reads(handler: Callable[[Call], list[Record]], written: str = "", more: str = "") -> Action:
    return Action(handler, frozenset(written.split()), frozenset(more.split()))


def _reports(handler: Callable[[Call], list[Record]], written: str, more: str) -> Action:
    return Action(handler, frozenset(written.split()), frozenset(more.split()), report=True)


def _writes(handler: Callable[[Call], None], written: str, more: str = "") -> Action:
    return Action(handler, frozenset(written.split()), frozenset(more.split()), writes=True)


def _version(call: Call) -> list[Record]:
    major, _dot, minor = str(call.settings["version"]).partition(".")
    return [{"majorVersion": major, "minorVersion": minor}]


_ROLE = " ".join(("name", "allowed_status_transitions", *accounts.WRITTEN_PERMISSIONS))
_ROLE_MORE = " ".join(accounts.PERMISSIONS)
_MODULE_MORE = " ".join(projects.MODULE_LISTS)

# Parameters: written interface [W4.5] and, as `more`, server facts [analysis-0].
ACTIONS: dict[str, Action] = {
    "version": _reads(_version),
    "roles": _reads(accounts.roles, "search"),
    "create_role": _writes(accounts.create_role, _ROLE, _ROLE_MORE),
    "update_role_permissions": _writes(accounts.update_role_permissions, _ROLE, _ROLE_MORE),
    "delete_role": _writes(accounts.delete_role, "name"),
    "role_assignments": _reads(accounts.role_assignments, "search"),
    "update_role_assignment": _writes(
        accounts.update_role_assignment, "name project account group remove"
    ),
    "users": _reads(accounts.users, "search limit"),
    "create_user": _writes(accounts.create_user, "name password"),
    "delete_user": _writes(accounts.delete_user, "name"),
    "groups": _reads(accounts.groups, "search limit", "list_users"),
    "create_group": _writes(accounts.create_group, "name users"),
    "update_group": _writes(accounts.update_group, "name users", "remove_all"),
    "delete_group": _writes(accounts.delete_group, "name"),
    "projects": _reads(projects.projects),
    "update_project": _writes(
        projects.update_project,
        "name new_name",
        "description tags auto_delete_builds auto_delete_threshold",
    ),
    "delete_project": _writes(projects.delete_project, "name"),
    "import_project": _writes(
        imports.import_project, "project sourceURL sourceAdmin sourcePassword"
    ),
    "import_server_configuration": _writes(
        imports.import_server_configuration, "sourceURL sourceAdmin sourcePassword"
    ),
    "import_status": _reads(imports.import_status),
    "builds": _reads(projects.builds, "project username"),
    "update_build": _writes(projects.update_build, "name new_name", "project keepit"),
    "delete_build": _writes(projects.delete_build, "project name"),
    "modules": _reads(projects.modules, "project"),
    "create_module": _writes(projects.create_module, "project name allow_all paths", _MODULE_MORE),
    "update_module": _writes(
        projects.update_module, "project name new_name allow_all paths", _MODULE_MORE
    ),
    "delete_module": _writes(projects.delete_module, "project name"),
    "views": _reads(projects.views, "project"),
    "create_view": _writes(projects.create_view, "project name query", "tags is_public"),
    "update_view": _writes(projects.update_view, "project name tags", "new_name query is_public"),
    "delete_view": _writes(projects.delete_view, "project name"),
    "defect_types": _reads(projects.defect_types, "project", "taxonomy"),
    "update_defect_type": _writes(projects.update_defect_type, "project code enabled", "severity"),
    "search": _reads(search.search, "project query view limit summary"),
    "issue_details": _reads(issues.issue_details, "project id", "include_xsync"),
    "update_status": _writes(
        issues.update_status, "project ids status comment owner", "bug_tracker_id"
    ),
    "report": _reports(
        reports.report,
        "project build x y",
        "filterQuery view xDrilldown yDrilldown group_issues",
    ),
    "metrics": _reads(
        reports.metrics, "project query", "view limit aggregate exclude_system_files"
    ),
    "fchurns": _reports(reports.fchurns, "component", "project view viewCreator latestBuilds"),
    "license_count": _reads(server.license_count, "feature"),
    "task_status": _reads(server.task_status),
    "taxonomies": _reads(server.taxonomies, "project"),
    "project_configuration": _reads(server.project_configuration, "project build"),
}


class AnalysisService(Service):
    """The code analysis server [W4.5, analysis-0]."""

    name = "analysis"
    objects = ("users", "groups", "roles", "projects", "sources", "licenses", "tasks")
    defaults: ClassVar[dict[str, Any]] = {
        "version": "24.2",
        # If false, no login is required and every user has all permissions.
        "access_control": True,
        "error_status_200": False,
        # Status for an object that does not exist. Real servers do not document it.
        "absent_status": 404,
        "content_type": "application/json;charset=UTF-8",
        "line_end": "\n",
        "trailing_newline": True,
        "blank_lines": False,
        # Whether comma-separated lists have backslash escapes. None: only in the flavour `real`.
        "list_escapes": None,
        "modules_show_allow_all": True,
        # Limit of a search without `limit`. The default of real servers is not documented.
        "search_limit": 1000,
        # Whether `summary=true` returns a summary record.
        "search_summary": True,
        # Whether `build:name` matches a part of the name ("contains", older servers) or the whole
        # name ("exact", newest servers).
        "build_search": "contains",
        # Response for an unknown issue: no record ("empty") or the error object ("error"). None
        # selects it by the flavour.
        "unknown_issue": None,
        # Duration of an import from another server in milliseconds.
        "import_ms": 300,
        # Whether the members of a group are `{name, readonly}` instead of names.
        "group_users_as_objects": False,
    }

    def routes(self) -> list[Route]:
        return [
            route(PATH, self._page),
            route(PATH, self._act, "POST"),
        ]

    def seed(self, data: dict[str, Any]) -> None:
        """Store the objects of a seed."""
        for user in data.get("users") or []:
            accounts.seed_user(self.context, user)
        for group in data.get("groups") or []:
            accounts.seed_group(self.context, group)
        for role in data.get("roles") or []:
            accounts.seed_role(self.context, role)
        for project in data.get("projects") or []:
            projects.seed(self.context, project)
            reports.seed_metrics(self.context, project)
        for source in data.get("sources") or []:
            imports.seed_source(self.context, source)
        for number, task in enumerate(data.get("tasks") or []):
            self.context.store.put(server.TASKS, f"{number:03d}", task)
        for feature in data.get("licenses") or []:
            server.seed_license(self.context, feature)

    def tick(self) -> None:
        imports.finish_due(self.context)

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        """Return whether the action writes. An unknown action counts as a write."""
        action = ACTIONS.get(form.get("action", ""))
        return method == "POST" and (action is None or action.writes)

    async def authenticate(self, request: Request) -> Response | None:
        """Check the form fields `user` and `ltoken` [W5]. The reference page needs no login."""
        if request.method != "POST" or not self.settings["access_control"]:
            return None
        try:
            self._log_in(await _form(request))
        except Refused as refused:
            return error(refused, self.settings)
        return None

    def _log_in(self, form: Mapping[str, str]) -> None:
        """Raise 401 or 403 unless the login may send the action.

        The seed has the credentials `users: {name: {ltoken, web_api, read_only}}`.
        """
        known: dict[str, Any] = self.context.credentials(self.name).get("users") or {}
        user = known.get(form.get("user", ""))
        if user is None or form.get("ltoken") != user["ltoken"]:
            raise Refused(401, "User authentication failed. Please run kwauth")
        if not user.get("web_api", True):
            # server fact [analysis-1]: the Web API needs a separate permission
            raise Refused(403, "Access denied: the permission Web API access is missing")
        action = ACTIONS.get(form.get("action", ""))
        if user.get("read_only") and action is not None and action.writes:
            raise Refused(403, "Access denied: you are not allowed to do this")

    def _page(self, request: Request) -> Response:
        """Return the reference page. Server fact [analysis-1]: GET returns 200 with HTML."""
        names = "".join(f"<li>{name}</li>" for name in sorted(ACTIONS))
        text = f"<html><head><title>Web API Reference</title></head><ul>{names}</ul></html>"
        return Response(text, 200, None, "text/html")

    async def _act(self, request: Request) -> Response:
        """Handle POST /review/api [W4.5]."""
        form = await _form(request)
        request.scope["sandbox.entry"].routed = form.get("action") in ACTIONS
        try:
            found = self._carried_out(form)
        except Refused as refused:
            return error(refused, self.settings)
        return records(found, self.settings, pretty=self.real and ACTIONS[form["action"]].report)

    def _carried_out(self, form: Mapping[str, str]) -> list[Record] | None:
        name = form.get("action", "")
        if name == "":
            raise Refused(400, "Missing required parameter: action")
        action = ACTIONS.get(name)
        if action is None:
            raise Refused(400, f"Unknown action: {name}")
        known = COMMON | action.written | (action.more if self.real else frozenset())
        unknown = sorted(set(form) - known)
        if unknown:
            raise Refused(400, f"Unknown parameter: {unknown[0]}")
        call = Call(self.context, form, self.real)
        permissions.require(call, name)
        with self.context.store.transaction():
            return action.handler(call)


async def _form(request: Request) -> dict[str, str]:
    """Return the parameters of the urlencoded body. The server ignores the query string."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))
