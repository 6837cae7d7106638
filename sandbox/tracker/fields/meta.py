# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata of fields: createmeta, editmeta and lists of values [tracker-21, tracker-22]."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import UNSEEN_SERVER, refusal
from sandbox.tracker.fields.fields import CREATE, Field
from sandbox.tracker.issues.changes import editable
from sandbox.tracker.visible import Issue


def described(call: Call, field: Field, project: str, *, required: bool) -> Json:
    """Return the metadata of a field on a screen."""
    shown: Json = {
        "required": required,
        "schema": field.schema(),
        "name": call.views.catalogue.name(field),
        "operations": field.operations,
    }
    if call.cloud:
        shown["key"] = field.id
    allowed = _allowed(call, field, project)
    return shown if allowed is None else {**shown, "allowedValues": allowed}


def _allowed(call: Call, field: Field, project: str) -> list[Json] | None:
    kind = field.items if field.type == "array" else field.type
    if kind == "option":
        return [call.views.option(field, value) for value in field.options]
    if kind == "option-with-child":
        return [_with_children(call, field, value) for value in field.options]
    if kind == "version":
        return call.views.versions(project)
    if kind == "component":
        known = call.store.values("tracker.component", f"{project}/")
        return [call.views.component(project, record["name"]) for record in known]
    if kind in ("priority", "resolution", "issuetype"):
        return _list(call, kind)
    return None


def _with_children(call: Call, field: Field, value: str) -> Json:
    children = [call.views.child(field, value, child) for child in field.children_of(value)]
    return {**call.views.option(field, value), "children": children}


def _list(call: Call, kind: str) -> list[Json]:
    known = sorted(call.store.items(f"tracker.{kind}"), key=lambda item: int(item[1]["id"]))
    shown = [call.views.named(kind, name) for name, _entry in known]
    return [record for record in shown if record is not None]


def list_of(call: Call) -> Response:
    """GET /priority, /resolution, /issuetype and /status: all values."""
    kind = call.request.url.path.rpartition("/")[2]
    if kind == "status":
        return JSONResponse([call.views.status(name) for name in call.store.keys("tracker.status")])
    return JSONResponse(_list(call, kind))


def _creatable(call: Call, wanted: str) -> Json | None:
    """Return the project with a key or id if the account may create issues there, else None."""
    for key, project in call.visible.projects.items():
        if wanted in (key, project["id"]) and call.may("create", key):
            return project
    return None


def _fields(call: Call, project: Json) -> dict[str, Json]:
    needed = call.views.catalogue.required(project)
    return {
        number: described(call, field, project["key"], required=number in needed)
        for number, field in call.views.catalogue.on_screen(project, CREATE).items()
    }


def createmeta(call: Call) -> Response:
    """GET /issue/createmeta: projects, issue types and fields of new issues.

    Only in the cloud and on servers before 9. Server 9 takes "createmeta" for an issue key.
    """
    gone = not call.cloud and server_version(call)[0] >= 9
    require(not gone, refusal(404, UNSEEN_SERVER))
    wanted = call.query_list("projectKeys") or call.query_list("projectIds")
    names, whole = call.query_list("issuetypeNames"), call.query_list("expand")
    shown = []
    for key in wanted or list(call.visible.projects):
        project = _creatable(call, key)
        if project is None:
            continue
        types = [
            record for record in _list(call, "issuetype") if not names or record["name"] in names
        ]
        if "projects.issuetypes.fields" in whole:
            types = [{**type_, "fields": _fields(call, project)} for type_ in types]
        shown.append({**call.views.project(project), "issuetypes": types})
    return JSONResponse({"expand": "projects", "projects": shown})


def server_version(call: Call) -> tuple[int, ...]:
    return tuple(int(part) for part in str(call.settings["version"]).split("."))


def _new_createmeta(call: Call) -> Json:
    """Return the project in the path of an endpoint that servers before 8.4 do not have."""
    known = call.cloud or server_version(call) >= (8, 4)
    require(known, refusal(404, f"null for uri: {call.request.url.path}"))
    project = _creatable(call, call.part("project"))
    if project is None:
        raise refusal(400, "Project or issue type not found, or no permission to create issues.")
    return project


def create_types(call: Call) -> Response:
    """GET /issue/createmeta/{project}/issuetypes: the issue types of a project."""
    _new_createmeta(call)
    name = "issueTypes" if call.cloud else "values"
    return JSONResponse(call.page(_list(call, "issuetype"), name))


def create_fields(call: Call) -> Response:
    """GET /issue/createmeta/{project}/issuetypes/{id}: the fields of a new issue, by page."""
    project = _new_createmeta(call)
    known = {record["id"] for record in _list(call, "issuetype")}
    require(call.part("id") in known, refusal(400, "The issue type selected is invalid."))
    found = _fields(call, project)
    fields = [{**metadata, "fieldId": number} for number, metadata in found.items()]
    size = int(call.settings["createmeta_page"])
    return JSONResponse(call.page(fields, "fields" if call.cloud else "values", size))


def edit_fields(call: Call, issue: Issue) -> Json:
    """Return the metadata of the fields that the account may set now, by id."""
    return {
        number: described(
            call, field, issue["project"], required=number in ("summary", "issuetype")
        )
        for number, field in editable(call, issue).items()
    }


def editmeta(call: Call) -> Response:
    return JSONResponse({"fields": edit_fields(call, call.issue())})
