# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that every route of the sandbox requires a permission or has a reason to require none.

The permission tests of the services contain the rows for operations that modules use. This file
contains the rows for the other routes, and verifies that no route is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, cast

import pytest
import requests
from starlette.routing import Route

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import client
from sandbox.analysis.service import ACTIONS
from sandbox.ci.actions import job_actions, root_actions
from sandbox.ci.builds.build_actions import build_actions
from sandbox.ci.call import Action
from sandbox.client import Sandbox
from sandbox.context import Context, Service
from tests.faults.permissions import LOGINS as LIMITED
from tests.faults.permissions import allow
from tests.helpers.connections import LOGINS
from tests.helpers.permissions import ADMIN, ALL
from tests.integration.sandbox import (
    test_sandbox_analysis_permissions,
    test_sandbox_ci_permissions,
    test_sandbox_permissions,
    test_sandbox_repo_permissions,
)

MADE = "MADE"
SYSTEM = "hudson.model.Hudson.SystemRead"
REFUSED = (401, 403, 404)


@dataclass(frozen=True)
class Row:
    """A request that is rejected for an account with all permissions except `rights`.

    `before`: a request sent first with all permissions; the id from its response replaces `MADE`.
    `sent`: arguments for `requests`. `cloud`: only cloud servers have the route.
    """

    service: str
    rights: tuple[str, ...]
    method: str
    path: str
    sent: dict[str, Any] | None = None
    before: tuple[str, str, dict[str, Any]] | None = None
    cloud: bool = False
    refused: tuple[int, ...] = REFUSED

    def __str__(self) -> str:
        action = (self.sent or {}).get("data", "")
        named = action["action"] if isinstance(action, dict) and "action" in action else self.path
        return f"{self.service} {self.method} {named}"


def repo(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return Row("repo", (right,), method, path, *more, **others)


def tracker(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return Row("tracker", tuple(right.split()), method, f"/rest/api/2{path}", *more, **others)


def wiki(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return Row("wiki", (right,), method, f"/rest/api{path}", *more, **others)


def wiki2(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return replace(wiki(right, method, "", *more, **others), path=f"/api/v2{path}", cloud=True)


def ci(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return Row("ci", (right,), method, path, *more, **others)


def analysis(right: str, action: str, **values: str) -> Row:
    form = {"data": {"action": action, **values}}
    return Row("analysis", (right,), "POST", "/review/api", form)


SOURCE = "generic-snapshot-local"
FILE = f"{SOURCE}/agent/1.0.0/agent.txt"
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
BLOBS = "/api/docker/docker-staging-local/v2/app/blobs"
UPLOAD: tuple[str, str, dict[str, Any]] = ("POST", f"{BLOBS}/uploads/", {})
BUILD = {"buildName": "agent", "buildNumber": "12"}
LIFECYCLE, VERSION = "/lifecycle/api/v2", "agent/1.10.1"
BUNDLE = {
    "release_bundle_name": "agent",
    "release_bundle_version": "2.0.0",
    "source_type": "artifacts",
    "source": {"artifacts": [{"path": FILE}]},
}
PROMOTED = {"json": {"environment": "PROD"}}
PROMOTION = ("POST", f"{LIFECYCLE}/promotion/records/{VERSION}", PROMOTED)
RULES = {"json": {"distribution_rules": [{"site_name": "edge-1"}]}}
DISTRIBUTION = ("POST", f"{LIFECYCLE}/distribution/distribute/{VERSION}", RULES)
FORM: dict[str, Any] = {"files": {"file": ("a.txt", b"a")}}
COMMENT = ("POST", "/rest/api/2/issue/REL-19/comment", {"json": {"body": "x"}})
REMOTE = {"json": {"globalId": "1", "object": {"url": "https://example.com", "title": "x"}}}
LINKED = {
    "json": {
        "type": {"name": "Blocks"},
        "inwardIssue": {"key": "REL-1"},
        "outwardIssue": {"key": "REL-3"},
    }
}
ROLE = "/project/REL/role/10001"
NEW = {"project": {"key": "REL"}, "issuetype": {"name": "Task"}, "summary": "x"}
PROPERTY = ("POST", "/rest/api/content/1002/property", {"json": {"key": "k", "value": 1}})
PAGE2 = {
    "id": "1002",
    "status": "current",
    "title": "Handbook",
    "body": {"representation": "storage", "value": "<p>x</p>"},
    "version": {"number": 4},
}
NEW2 = {**PAGE2, "title": "New", "spaceId": "91"}
PROPERTY2 = ("POST", "/api/v2/pages/1002/properties", {"json": {"key": "k", "value": 1}})
NEXT2 = {"json": {"key": "k", "value": 2, "version": {"number": 2}}}
ATTACHED = ("POST", "/rest/api/content/1002/child/attachment", FORM)
PAGE = test_sandbox_permissions.storage("New", 1)
JOB, MAIN = "/job/long-history", "/job/delivery/job/service/job/main"
SERVICE = MAIN.removesuffix("/job/main")
IN_PROJECT = {"project": "toolchain"}


def access(method: str, path: str, **sent: Any) -> Row:
    return repo(ADMIN, method, f"/access/api/v2/{path}", {"json": sent} if sent else None)


def older(method: str, path: str, **sent: Any) -> Row:
    return repo(ADMIN, method, f"/api/security/{path}", {"json": sent} if sent else None)


def lifecycle(right: str, method: str, path: str, *more: Any, **others: Any) -> Row:
    return repo(right, method, f"{LIFECYCLE}/{path}", *more, **others)


PERMISSIONS = "api/v2/security/permissions"
RESOURCE = {"targets": {"ANY LOCAL": {}}, "actions": {"users": {"reader": ["READ"]}}}
OLD_RESOURCE = {"repositories": ["ANY LOCAL"], "actions": {"users": {"reader": ["read"]}}}
TESTER = {"email": "tester@example.org", "password": "Secret-1234"}

ROWS = [
    access("GET", "groups"),
    access("POST", "groups", name="testers"),
    access("GET", "groups/developers"),
    access("PATCH", "groups/developers", description="x"),
    access("PATCH", "groups/developers/members", add=["reader"]),
    access("DELETE", "groups/developers"),
    access("GET", "users"),
    access("POST", "users", username="tester", **TESTER),
    access("GET", "users/reader"),
    access("PATCH", "users/reader", email="x@example.org"),
    access("PATCH", "users/reader/groups", add=["developers"]),
    access("DELETE", "users/reader"),
    older("GET", "groups"),
    older("GET", "groups/developers"),
    older("PUT", "groups/testers", description="x"),
    older("POST", "groups/developers", description="x"),
    older("DELETE", "groups/developers"),
    older("GET", "users"),
    older("GET", "users/reader"),
    older("PUT", "users/tester", **TESTER),
    older("POST", "users/reader", email="x@example.org"),
    older("DELETE", "users/reader"),
    access("GET", "permissions"),
    access("POST", "permissions", name="new", resources={"artifact": RESOURCE}),
    access("GET", "permissions/releases"),
    access("PUT", "permissions/releases/artifact", **RESOURCE),
    access("DELETE", "permissions/releases/artifact"),
    access("DELETE", "permissions/releases"),
    repo(ADMIN, "GET", f"/{PERMISSIONS}"),
    repo(ADMIN, "GET", f"/{PERMISSIONS}/releases"),
    repo(ADMIN, "POST", f"/{PERMISSIONS}/new", {"json": {"repo": OLD_RESOURCE}}),
    repo(ADMIN, "PUT", f"/{PERMISSIONS}/releases", {"json": {"repo": OLD_RESOURCE}}),
    repo(ADMIN, "DELETE", f"/{PERMISSIONS}/releases"),
    repo(ADMIN, "GET", f"/api/storage/auto-trashcan/{SOURCE}", before=("DELETE", f"/{FILE}", {})),
    repo(
        *("read", "POST", "/api/search/buildArtifacts", {"json": BUILD}),
        before=("PUT", f"/api/storage/{FILE}?properties=build.name=agent;build.number=12", {}),
    ),
    repo(
        *("delete", "POST", "/api/build/delete"),
        {"json": {"buildName": "agent", "buildNumbers": ["12"]}},
    ),
    repo("annotate", "PATCH", f"/api/metadata/{FILE}", {"json": {"props": {"k": "v"}}}),
    repo("read", "GET", f"/api/storage/{SOURCE}"),
    repo("annotate", "PUT", f"/api/storage/{SOURCE}?properties=k=v"),
    repo("read", "GET", f"/{SOURCE}"),
    repo("delete", "DELETE", f"/{SOURCE}"),
    repo("deploy", "GET", f"{BLOBS}/uploads/{MADE}", before=UPLOAD),
    repo("deploy", "PATCH", f"{BLOBS}/uploads/{MADE}", {"data": b"x"}, before=UPLOAD),
    repo("deploy", "PUT", f"{BLOBS}/uploads/{MADE}?digest={EMPTY}", before=UPLOAD),
    repo("deploy", "DELETE", f"{BLOBS}/uploads/{MADE}", before=UPLOAD),
    repo(
        *("read", "GET", f"{BLOBS}/{EMPTY}"),
        before=("POST", f"{BLOBS}/uploads/?digest={EMPTY}", {}),
    ),
    repo("read", "GET", f"/api/docker/docker-staging-local/v2/app/referrers/{EMPTY}"),
    lifecycle("deploy", "POST", "release_bundle", {"json": BUNDLE}),
    lifecycle("read", "GET", f"release_bundle/existence/{VERSION}"),
    lifecycle("read", "GET", f"release_bundle/statuses/{VERSION}"),
    lifecycle("read", "GET", "release_bundle/groups"),
    lifecycle("read", "GET", "release_bundle/records/agent"),
    lifecycle("read", "GET", f"release_bundle/records/{VERSION}"),
    lifecycle("delete", "DELETE", f"release_bundle/records/{VERSION}"),
    lifecycle("deploy", "POST", f"promotion/records/{VERSION}", PROMOTED),
    lifecycle("read", "GET", f"promotion/records/{VERSION}"),
    lifecycle("read", "GET", f"promotion/records/{VERSION}/{MADE}", before=PROMOTION),
    lifecycle("read", "GET", f"promotion/statuses/{VERSION}/{MADE}", before=PROMOTION),
    lifecycle("deploy", "POST", f"distribution/distribute/{VERSION}", RULES),
    lifecycle("deploy", "POST", f"distribution/remote_delete/{VERSION}", RULES),
    lifecycle("read", "GET", f"distribution/trackers/{VERSION}"),
    lifecycle("read", "GET", f"distribution/trackers/{VERSION}/{MADE}", before=DISTRIBUTION),
    tracker(
        *("create", "POST", "/issue/bulk", {"json": {"issueUpdates": [{"fields": NEW}]}}),
        refused=(400,),
    ),
    tracker("create", "GET", "/issue/createmeta/REL/issuetypes/10001", refused=(400,)),
    tracker("browse", "GET", f"/issue/REL-19/comment/{MADE}", before=COMMENT),
    tracker(
        *("administer", "DELETE", f"/issue/REL-19/comment/{MADE}"), before=COMMENT, refused=(400,)
    ),
    tracker(
        *("administer", "PUT", f"/issue/REL-19/comment/{MADE}", {"json": {"body": "y"}}),
        before=COMMENT,
        refused=(400,),
    ),
    tracker("browse", "GET", "/issue/REL-19/watchers"),
    tracker("watch", "POST", "/issue/REL-19/watchers", {"json": "alice"}),
    tracker("watch", "DELETE", "/issue/REL-19/watchers?username=alice"),
    tracker("browse", "GET", "/issue/REL-19/editmeta"),
    tracker("browse", "GET", "/issue/REL-19/changelog", cloud=True),
    tracker("browse", "GET", "/issue/REL-1/properties"),
    tracker("browse", "GET", "/issue/REL-1/properties/release"),
    tracker("edit", "PUT", "/issue/REL-1/properties/release", {"json": 1}),
    tracker("edit", "DELETE", "/issue/REL-1/properties/release"),
    tracker("browse", "GET", "/issue/REL-19/remotelink"),
    tracker("link", "POST", "/issue/REL-19/remotelink", REMOTE),
    tracker(
        *("link", "DELETE", "/issue/REL-19/remotelink?globalId=1"),
        before=("POST", "/rest/api/2/issue/REL-19/remotelink", REMOTE),
    ),
    *(
        tracker(
            *(right, method, f"/issue/REL-19/remotelink/{MADE}", body),
            before=("POST", "/rest/api/2/issue/REL-19/remotelink", REMOTE),
        )
        for right, method, body in (
            ("browse", "GET", {}),
            ("link", "PUT", REMOTE),
            ("link", "DELETE", {}),
        )
    ),
    tracker("browse", "GET", "/issueLink/10001", before=("POST", "/rest/api/2/issueLink", LINKED)),
    tracker(
        *("link", "DELETE", "/issueLink/10001"), before=("POST", "/rest/api/2/issueLink", LINKED)
    ),
    tracker("browse administer", "GET", "/project/REL/versions"),
    tracker("browse administer", "GET", "/project/REL/version"),
    tracker("browse", "GET", "/project/REL/components"),
    tracker("browse", "GET", "/project/REL/component", cloud=True),
    tracker("browse", "GET", "/component/10001"),
    tracker("administer", "POST", "/component", {"json": {"project": "REL", "name": "x"}}),
    tracker("administer", "PUT", "/component/10001", {"json": {"description": "x"}}),
    tracker("administer", "DELETE", "/component/10001"),
    tracker("browse administer", "GET", "/component/10001/relatedIssueCounts"),
    tracker("browse administer", "GET", "/project/REL/role"),
    tracker("administer", "GET", ROLE),
    tracker("administer", "PUT", ROLE, {"json": {"categorisedActors": {}}}),
    tracker("administer", "POST", ROLE, {"json": {"user": ["boris"]}}),
    tracker("administer", "DELETE", f"{ROLE}?user=alice"),
    tracker("browse administer", "GET", "/version/10001"),
    tracker("administer", "PUT", "/version/10001/mergeto/10002"),
    tracker("browse administer", "GET", "/version/10001/unresolvedIssueCount"),
    tracker("browse administer", "GET", "/version/10001/relatedIssueCounts"),
    tracker("browse", "GET", "/attachment/501"),
    tracker("browse", "GET", "/attachment/content/501", cloud=True),
    Row("tracker", ("browse",), "GET", "/secure/attachment/501/server%20log.txt"),
    wiki("add", "POST", "/content/", {"json": PAGE}),
    wiki("view", "GET", "/content/1002/history"),
    wiki("view", "GET", "/content/1002/property"),
    wiki("view", "GET", "/content/1002/property/k", before=PROPERTY),
    wiki("add", "DELETE", "/content/1002/property/k", before=PROPERTY),
    wiki("view", "GET", "/content/1002/label"),
    wiki("add", "DELETE", "/content/1002/label?name=handbook"),
    wiki("view", "GET", "/content/1001/child"),
    wiki("view", "GET", "/content/1001/child/comment"),
    wiki("view", "GET", "/content/1001/descendant/page"),
    wiki("add", "PUT", "/content/1003/move/append/1002", cloud=True),
    wiki("view", "GET", "/content/1002/restriction/byOperation"),
    Row("wiki", ("view",), "GET", "/rest/experimental/content/1002/restriction/byOperation"),
    wiki("view", "GET", "/content/1002/restriction/byOperation/read"),
    wiki("add", "PUT", "/content/1002/restriction", {"json": []}),
    wiki("add", "DELETE", "/content/1002/restriction", cloud=True),
    wiki("view", "GET", "/space/REL/content/page"),
    wiki("create_space", "POST", "/space", {"json": {"key": "NEW", "name": "x"}}),
    wiki("administer", "PUT", "/space/REL", {"json": {"name": "x"}}),
    wiki("administer", "DELETE", "/space/REL"),
    wiki("administer", "GET", "/space/REL/permissions", refused=(500,)),
    wiki("administer", "POST", "/space/REL/permissions", {"json": []}, refused=(500,)),
    wiki("view", "GET", "/content/1002/child/attachment"),
    wiki("attach", "PUT", "/content/1002/child/attachment", FORM, cloud=True),
    wiki("attach", "POST", f"/content/1002/child/attachment/{MADE}/data", FORM, before=ATTACHED),
    wiki2("view", "GET", "/spaces/91/pages"),
    wiki2("view", "GET", "/spaces/91/blogposts"),
    wiki2("view", "GET", "/pages/1002"),
    wiki2("add", "POST", "/pages", {"json": NEW2}),
    wiki2("add", "PUT", "/pages/1002", {"json": PAGE2}),
    wiki2("delete", "DELETE", "/pages/1002"),
    wiki2("view", "GET", "/pages/1001/direct-children"),
    wiki2("view", "GET", "/pages/1001/descendants"),
    wiki2("view", "GET", "/pages/1002/ancestors"),
    wiki2("view", "GET", "/pages/1002/labels"),
    wiki2("view", "GET", "/pages/1002/attachments"),
    wiki2("view", "GET", "/pages/1002/properties"),
    wiki2("add", "POST", "/pages/1002/properties", {"json": {"key": "k", "value": 1}}),
    wiki2("add", "PUT", f"/pages/1002/properties/{MADE}", NEXT2, before=PROPERTY2),
    wiki2("add", "DELETE", f"/pages/1002/properties/{MADE}", before=PROPERTY2),
    Row("wiki", ("view",), "GET", "/download/attachments/1002/a.txt", before=ATTACHED),
    ci(client.ADMINISTER, "POST", "/cancelQuietDown"),
    ci(client.ADMINISTER, "POST", "/pluginManager/installPlugins", {"json": {"plugins": []}}),
    ci(client.ADMINISTER, "POST", "/pluginManager/install"),
    ci(client.ADMINISTER, "POST", "/pluginManager/checkUpdatesServer"),
    ci(client.ADMINISTER, "POST", "/pluginManager/plugin/git/makeEnabled"),
    ci(SYSTEM, "GET", "/pluginManager"),
    ci(SYSTEM, "GET", "/pluginManager/installed"),
    ci(SYSTEM, "GET", "/pluginManager/updates"),
    ci(client.READ_SERVER, "GET", "/"),
    ci(client.BUILD, "POST", "/job/no-parameters/build"),
    ci(client.EXTENDED_READ, "GET", f"{JOB}/configure"),
    ci(client.CONFIGURE, "POST", f"{JOB}/doRename?newName=other"),
    ci(client.READ_JOB, "GET", f"{JOB}/"),
    ci(client.READ_JOB, "GET", f"{SERVICE}/computation/consoleText"),
    ci(client.READ_JOB, "GET", f"{SERVICE}/computation/logText/progressiveText"),
    ci(client.UPDATE_RUN, "POST", f"{JOB}/120/toggleLogKeep"),
    ci(client.READ_JOB, "GET", f"{JOB}/120/"),
    ci(client.READ_JOB, "GET", f"{JOB}/120/logText/progressiveText"),
    ci(client.READ_JOB, "GET", f"{JOB}/120/buildNumber"),
    ci(client.CANCEL, "POST", f"{MAIN}/1/term", before=("POST", f"{MAIN}/build", {})),
    ci(client.CANCEL, "POST", f"{MAIN}/1/stop", before=("POST", f"{MAIN}/build", {})),
    ci(client.CANCEL, "POST", f"{MAIN}/1/kill", before=("POST", f"{MAIN}/build", {})),
    analysis("manage_roles", "update_role_permissions", name="Developer"),
    analysis(
        "manage_roles", "import_server_configuration", **test_sandbox_analysis_permissions.SOURCE
    ),
    analysis("manage_users", "update_group", name="developers", users="bob"),
    analysis("manage_users", "delete_group", name="developers"),
    analysis(
        "change_project_settings", "update_build", name="build_10", new_name="n", **IN_PROJECT
    ),
    analysis("delete_build", "delete_build", name="build_10", **IN_PROJECT),
    analysis(
        "manage_modules", "update_module", name="core", paths="**", allow_all="true", **IN_PROJECT
    ),
    analysis("manage_modules", "delete_module", name="core", **IN_PROJECT),
    analysis("change_project_settings", "update_view", name="critical", tags="x", **IN_PROJECT),
    analysis("change_project_settings", "delete_view", name="critical", **IN_PROJECT),
    analysis(
        *("change_project_settings", "update_defect_type"),
        code="ABV.GENERAL",
        enabled="false",
        **IN_PROJECT,
    ),
]

_FILTERED = "shows what the account may see, and no more: tests of the service"
_OPEN = "tells what everybody who has logged in may know"
_TWIN = "another address of a route that has a row, with the same handler"
_LOGS_IN = "is itself a login, which the tests of logins send"
_SIGNED = "whoever has its address may read, which is signed"
#: Routes that need no row, as glob patterns, with the reason.
FREE: dict[str, dict[str, str]] = {
    "repo": {
        "GET /_store/*": _SIGNED,
        "GET /api/repositories": _FILTERED,
        "GET /api/repositories/": _FILTERED,
        "POST /api/search/aql": _FILTERED,
        "GET /api/search/artifact": _FILTERED,
        "GET /api/search/prop": _FILTERED,
        "GET /api/search/checksum": _FILTERED,
        "GET /api/system/ping": _OPEN,
        "GET /access/api/v1/system/ping": _OPEN,
        "* /access/api/v1/projects/_/attach/*": "needs a token: test_repository_is_attached_to_a_project",
        "POST /access/api/v1/oidc/token": _LOGS_IN,
        "* /access/api/v1/tokens*": "every account manages its own tokens",
        "GET /v2/": _OPEN,
        "GET /api/docker/{repo}/v2/": _OPEN,
        "GET /search/pattern": _TWIN,
        "PUT /storage/*": _TWIN,
        "* /api/container/*": _TWIN,
        "* /api/{rest:path}": "there is nothing at such an address",
    },
    "tracker": {
        "POST /oauth/token": _LOGS_IN,
        "* /rest/api/{version}/search*": _FILTERED,
        "GET /rest/api/{version}/project": _FILTERED,
        "GET /rest/api/{version}/project/search": _FILTERED,
        "GET /rest/api/{version}/issue/createmeta": _FILTERED,
        "GET /rest/api/{version}/user*": "accounts are not part of a project",
        "GET /rest/api/{version}/groups/picker": _FILTERED,
        "GET /rest/api/{version}/my*": "tells of the account itself",
        "GET /rest/api/{version}/issueLinkType*": _OPEN,
        "GET /rest/api/{version}/serverInfo": _OPEN,
        "GET /rest/api/{version}/field": _OPEN,
        "GET /rest/api/{version}/attachment/meta": _OPEN,
        "GET /rest/api/{version}/priority": _OPEN,
        "GET /rest/api/{version}/resolution": _OPEN,
        "GET /rest/api/{version}/status": _OPEN,
        "GET /rest/api/{version}/issuetype": _OPEN,
        "GET /media/file/{id}": _SIGNED,
        "GET /login.jsp": _OPEN,
        "* /rest/pat/latest/tokens*": "every account manages its own tokens",
    },
    "wiki": {
        "POST /oauth/token": _LOGS_IN,
        "GET /_edge/tenant_info": "tells everybody the id of the site",
        "GET /api/v2/spaces": _FILTERED,
        "GET /api/v2/pages": _FILTERED,
        "GET /api/v2/folders/*": "a folder is stored like a page, and read by the same function",
        "GET /rest/api/content": _FILTERED,
        "GET /rest/api/content/search": _FILTERED,
        "GET /rest/api/search": _FILTERED,
        "GET /rest/api/space": _FILTERED,
        "GET /rest/api/user": "accounts are not part of a space",
        "GET /rest/api/user/memberof": "groups are not part of a space",
        "GET /rest/api/group/{name}": "groups are not part of a space",
        "GET /rest/api/group/picker": "groups are not part of a space",
        "GET /rest/api/group/by-id": "groups are not part of a space",
        "* /rest/api/space/{key}/permission*": "the right to administer: permission tests of wiki_space",
        "GET /api/v2/spaces/{id}/permissions": "who sees the space may: permission tests of wiki_space",
        "GET /rest/api/user/current": "tells of the account itself",
        "* /rest/pat/latest/tokens*": "every account manages its own tokens",
    },
    "ci": {
        "GET root login": _OPEN,
        "GET job indexing/*": _TWIN,
        "POST build input/*": "one of two rights, or a submitter: permission tests of the module",
        "POST root queue/*": "the right is one to the job that waits: test_queue_shows_readable_items_only",
    },
    "analysis": {"GET *": "reading needs no role: test_reading_requires_no_role"},
}


def _service(name: str) -> Service:
    found = vars(import_module(f"sandbox.{name}.service")).values()
    kinds = [each for each in found if isinstance(each, type) and issubclass(each, Service)]
    return next(kind for kind in kinds if kind is not Service)(cast(Context, None))


def _routes(name: str) -> list[Route]:
    return _service(name).routes()


def _route_of(routes: list[Route], method: str, path: str) -> str:
    """Return the route that handles a request, as `METHOD address`."""
    for route in routes:
        if route.path_regex.match(path) and method in (route.methods or ()):
            return f"{'GET' if method == 'HEAD' else method} {route.path}"
    raise AssertionError(f"no route for {method} {path}")


def _ci_tables() -> dict[str, dict[str, Action]]:
    return {"root": root_actions(), "job": job_actions(), "build": build_actions()}


def _ci_route_of(method: str, path: str) -> str:
    job, build, rest = cast(
        re.Match[str], re.match(r"((?:/job/[^/]+)*)(/\d+)?/?(.*)", path)
    ).groups()
    kind = "build" if build else "job" if job else "root"
    rest = rest.rstrip("/")
    for name, action in _ci_tables()[kind].items():
        own, _blank, address = name.rpartition(" ") if " " in name else ("", "", name)
        if (own or action.method) == method and fnmatchcase(rest, address):
            return f"{method} {kind} {address}"
    # the export of an object requires the same permission as its page
    return f"GET {kind} api"


def _known(name: str) -> set[str]:
    """Return every route of a service, as `METHOD address`."""
    if name == "analysis":
        return {f"{'POST' if one.writes else 'GET'} {each}" for each, one in ACTIONS.items()}
    if name == "ci":
        found = set()
        for kind, table in _ci_tables().items():
            for each, action in table.items():
                own, _blank, address = each.rpartition(" ") if " " in each else ("", "", each)
                found.add(f"{own or action.method} {kind} {address}")
        return found
    return {
        f"{method} {route.path}"
        for route in _routes(name)
        for method in (route.methods or set()) - {"HEAD"}
    }


def _asked(name: str) -> set[str]:
    """Return the routes that have a row, here or in the permission tests of the service."""
    if name == "analysis":
        rows = [str(row).rpartition(" ")[2] for row in ROWS if row.service == name]
        return {
            f"POST {each}"
            for each in (*rows, *(one[0] for one in test_sandbox_analysis_permissions.TABLE))
        }
    asked = [(row.method, row.path) for row in ROWS if row.service == name]
    if name == "ci":
        others = test_sandbox_ci_permissions.OPERATIONS.values()
        asked += [(other.method, other.path) for other in others]
        return {_ci_route_of(method, path.partition("?")[0]) for method, path in asked}
    if name == "repo":
        asked += [
            (operation.method, operation.path)
            for operation in test_sandbox_repo_permissions.OPERATIONS.values()
        ]
    else:
        found = test_sandbox_permissions.OPERATIONS
        asked += [(one.method, one.path) for one in found if one.service == name]
    routes = _routes(name)
    return {_route_of(routes, method, path.partition("?")[0]) for method, path in asked}


@pytest.mark.parametrize("name", FREE)
def test_every_route_has_a_row_or_reason(name: str) -> None:
    known, asked = _known(name), _asked(name)
    free = {each for each in known for glob in FREE[name] if fnmatchcase(each, glob)}
    assert known - asked - free == set()
    unused = {glob for glob in FREE[name] if not any(fnmatchcase(each, glob) for each in known)}
    assert unused == set()


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as found:
        found.trust_env = False
        yield found


def _send(
    session: requests.Session, sandbox: Sandbox, row: Row, login: dict[str, str], **what: Any
) -> requests.Response:
    headers = {"X-Atlassian-Token": "no-check"}
    method, path, sent = what["method"], what["path"], dict(what["sent"] or {})
    auth = (login["username"], login["password"]) if "password" in login else None
    if "ltoken" in login:
        sent["data"] = {**sent["data"], "user": login["username"], "ltoken": login["ltoken"]}
    elif auth is None:
        headers["Authorization"] = f"Bearer {login['token']}"
    url = sandbox.urls[row.service] + path
    return session.request(
        method, url, headers=headers, auth=auth, timeout=10, allow_redirects=False, **sent
    )


def _made(response: requests.Response) -> str:
    """Return the id of the object that a request created."""
    assert response.status_code < 400, response.text
    if response.headers.get("content-type", "").startswith("application/json"):
        reported = response.json()
        first = (reported.get("results") or [reported])[0]
        return str(first.get("id", first.get("created_millis", "")))
    return response.headers.get("Location", "").rpartition("/")[2]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_route_requires_its_permission(
    fresh: Callable[[str], Sandbox], session: requests.Session, row: Row
) -> None:
    sandbox = fresh("real")
    if row.cloud:
        more = {"version_2": True} if row.service == "wiki" else {}
        sandbox.settings(row.service, deployment="Cloud", **more)
    made = ""
    if row.before is not None:
        method, path, sent = row.before
        login = LOGINS[row.service]
        made = _made(_send(session, sandbox, row, login, method=method, path=path, sent=sent))
    request = {"method": row.method, "path": row.path.replace(MADE, made), "sent": row.sent}
    allow(sandbox, row.service, [one for one in ALL[row.service] if one not in row.rights])
    mark = sandbox.mark()
    refused = _send(session, sandbox, row, LIMITED[row.service], **request)
    assert refused.status_code in row.refused, refused.text
    written = sandbox.requests(row.service, writes=True, since=mark)
    assert all(one["status"] >= 400 for one in written)
    allow(sandbox, row.service, [*ALL[row.service], *row.rights])
    allowed = _send(session, sandbox, row, LIMITED[row.service], **request)
    assert allowed.status_code < 400, allowed.text


def test_upload_belongs_to_its_repository(
    fresh: Callable[[str], Sandbox], session: requests.Session
) -> None:
    """Verify that an upload is not found in another repository, even with the right to
    push there.
    """
    sandbox = fresh("real")
    row = repo("deploy", *UPLOAD[:2])
    login = LOGINS["repo"]
    made = _made(_send(session, sandbox, row, login, method="POST", path=row.path, sent=None))
    other = f"{BLOBS}/uploads/{made}".replace("docker-staging-local", "docker-release-local")
    response = _send(session, sandbox, row, login, method="DELETE", path=other, sent=None)
    assert response.status_code == 404
