# SPDX-License-Identifier: GPL-3.0-or-later
"""Read issues, projects, fields and information about the server [W4.2, tracker-0]."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call
from sandbox.tracker.fields import meta
from sandbox.tracker.issues import views, workflow


def issue(call: Call) -> Response:
    """GET /issue/{key}: an issue by key [W4.2], or by a former key after a move [tracker-5]."""
    found, fields = call.issue(), call.query_list("fields")
    if not call.context.real("tracker"):
        return JSONResponse(call.views.written_issue(found, fields))
    expand = call.query_list("expand")
    response = call.views.issue(found, fields or [views.ALL], call.query_list("properties"))
    response |= call.views.expanded(found, expand)
    if "names" in expand:
        response["names"] = call.views.catalogue.names()
    if "schema" in expand:
        response["schema"] = call.views.catalogue.schema()
    if "editmeta" in expand:
        response["editmeta"] = {"fields": meta.edit_fields(call, found)}
    if "transitions" in expand or "transitions.fields" in expand:
        with_fields = "transitions.fields" in expand
        response["transitions"] = workflow.offered(call, found, fields=with_fields)
    return JSONResponse(response)


def changelog(call: Call) -> Response:
    """GET /issue/{key}/changelog of the cloud: the history of an issue, by page."""
    return JSONResponse(call.page(call.views.changelog(call.issue()), size=100))


def projects(call: Call) -> Response:
    """GET /project: all visible projects [W4.2], without paging [tracker-8]."""
    found = call.visible.projects.values()
    if not call.context.real("tracker"):
        return JSONResponse([{"key": record["key"], "name": record["name"]} for record in found])
    expand = "description,lead,url,projectKeys"
    return JSONResponse([{"expand": expand, **call.views.project(record)} for record in found])


def projects_by_page(call: Call) -> Response:
    """GET /project/search: projects by page, which replaces the list in the cloud [tracker-8]."""
    found = [call.views.project(record) for record in call.visible.projects.values()]
    return JSONResponse(call.page(found))


def project(call: Call) -> Response:
    """GET /project/{key}: a project by key or id."""
    return JSONResponse(call.views.whole_project(call.project(call.part("key"))))


def server_info(call: Call) -> Response:
    """GET /serverInfo: clients use it to distinguish servers and the cloud [tracker-3]."""
    numbers = [1001, 0, 0] if call.cloud else list(meta.server_version(call))
    return JSONResponse(
        {
            "baseUrl": call.views.base,
            "version": ".".join(map(str, numbers)),
            "versionNumbers": numbers,
            "deploymentType": call.settings["deployment"],
            "buildNumber": 912005,
            "serverTime": call.now(),
            "serverTitle": "Sandbox",
        }
    )


def fields(call: Call) -> Response:
    """GET /field: all fields, which clients read before their first search."""
    return JSONResponse(call.views.catalogue.listing())
