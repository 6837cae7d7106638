# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, edit, assign and delete issues [tracker-20, tracker-22, tracker-23]."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.service import ErrorResponse, json_body
from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import Unsuitable, not_on_screen, refusal
from sandbox.tracker.fields.fields import CREATE
from sandbox.tracker.issues import comments, links, remote_links
from sandbox.tracker.issues.changes import Changes, editable
from sandbox.tracker.issues.workflow import initial_status
from sandbox.tracker.projects.people import read_assignee
from sandbox.tracker.search.search import UNINDEXED
from sandbox.tracker.visible import Issue, issue_number

_BULK = 50
_MISSING = {
    "summary": "You must specify a summary of the issue.",
    "issuetype": "issue type is required",
    "project": "project is required",
}


def create(call: Call) -> Response:
    """POST /issue: create an issue. The response only contains id, key and URL."""
    return JSONResponse(_created(call, call.members()), 201)


def create_many(call: Call) -> Response:
    """POST /issue/bulk: create issues. Invalid issues are reported, the others created."""
    wanted = call.members().get("issueUpdates") or []
    require(len(wanted) <= _BULK, refusal(400, f"The limit of {_BULK} issues was exceeded."))
    made: list[Json] = []
    failed: list[Json] = []
    for number, members in enumerate(wanted):
        try:
            made.append(_created(call, members))
        except ErrorResponse as error:
            errors = json_body(bytes(error.response.body))
            failed.append({"status": 400, "elementErrors": errors, "failedElementNumber": number})
    return JSONResponse({"issues": made, "errors": failed}, 201 if made else 400)


def _created(call: Call, members: Json) -> Json:
    project = _project(call, members)
    issue = _blank(call, project)
    screen = call.views.catalogue.on_screen(project, CREATE)
    changes = Changes(call, issue, screen)
    fields = {name: value for name, value in members["fields"].items() if name != "project"}
    changes.take({**members, "fields": fields})
    names = call.views.catalogue
    messages = {
        number: _MISSING.get(number, f"{names.name(names.all[number])} is required.")
        for number in names.required(project)
    }
    changes.require(messages)
    changes.refuse()
    return _kept(call, project, changes.issue, members)


def _project(call: Call, members: Json) -> Json:
    """Return the project of a new issue. Raises a 400 if the account may not create it there."""
    fields = members.get("fields")
    require(isinstance(fields, dict), refusal(400, "Field 'fields' is required"))
    given: Any = members["fields"].get("project")
    if not isinstance(given, dict):
        present = members["fields"]
        missing = {name: message for name, message in _MISSING.items() if name not in present}
        raise refusal(400, errors={**missing, "project": _MISSING["project"]})
    wanted = {str(value) for name, value in given.items() if name in ("key", "id")}
    for project in call.visible.projects.values():
        if wanted & {project["key"], project["id"]}:
            errors = {"project": "You cannot create issues in this project."}
            require(call.may("create", project["key"]), refusal(400, errors=errors))
            return project
    raise refusal(400, errors={"project": "valid project is required"})


def _blank(call: Call, project: Json) -> Issue:
    priority = "Medium" if call.store.get("tracker.priority", "Medium") else None
    return {
        "project": project["key"],
        "reporter": call.user,
        "priority": priority,
        "attachments": [],
        "created": call.now(),
        "updated": call.now(),
    }


def _kept(call: Call, project: Json, issue: Issue, members: Json) -> Json:
    issue["id"] = call.next_id("issue")
    issue["key"] = f"{project['key']}-{_next_number(call, project['key'])}"
    issue["status"] = initial_status(call, project["key"])
    properties = members.get("properties") or []
    issue["properties"] = {entry["key"]: entry.get("value") for entry in properties}
    call.store.put("tracker.issue", issue["key"], issue)
    call.store.put("tracker.other_key", issue["id"], {"key": issue["key"]})
    lag, searches = call.settings["index_lag_ms"], call.settings["index_lag_searches"]
    if lag or searches:
        waits = {"until": call.visible.now_ms + lag, "searches": searches}
        call.store.put(UNINDEXED, issue["id"], waits)
    address = f"{call.views.base}/rest/api/2/issue/{issue['id']}"
    return {"id": issue["id"], "key": issue["key"], "self": address}


def _next_number(call: Call, project: str) -> int:
    """Return the next issue number of a project. Numbers of deleted issues are not reused."""
    known = call.store.get("tracker.number", project) or {"last": 0}
    numbers = [issue_number(key) for key in call.store.keys("tracker.issue", f"{project}-")]
    number = max([known["last"], *numbers]) + 1
    call.store.put("tracker.number", project, {"last": number})
    return int(number)


def edit(call: Call) -> Response:
    """PUT /issue/{key}: change fields, and add comments and links."""
    issue = call.issue()
    members = call.members()
    if call.query("notifyUsers") == "false" and not call.cloud:
        message = (
            "To discard the user notification admin or project admin permissions are required."
        )
        require(call.may("administer", issue["project"]), refusal(403, message))
    changes = Changes(call, issue, editable(call, issue))
    changes.take(members)
    changed = changes.save()
    for step in changes.apart.get("comment", []):
        comments.add(call, changed, step.get("add"))
    for step in changes.apart.get("issuelinks", []):
        links.add(call, step.get("add"), subject=changed)
    for entry in members.get("properties") or []:
        changed.setdefault("properties", {})[entry["key"]] = entry.get("value")
        call.store.put("tracker.issue", changed["key"], changed)
    return Response(status_code=204)


def assign(call: Call) -> Response:
    """PUT /issue/{key}/assignee: assign an issue, without the permission to edit."""
    issue = call.issue()
    changes = Changes(call, issue, {})
    try:
        changes.issue["assignee"] = read_assignee(call, issue, call.members())
    except Unsuitable as problem:
        raise refusal(400, errors={"assignee": str(problem)}) from None
    changes.save()
    return Response(status_code=204)


def delete(call: Call) -> Response:
    """DELETE /issue/{key}: delete an issue with its comments, attachments and links."""
    issue = call.issue()
    message = "You do not have permission to delete issues in this project."
    require(call.may("delete", issue["project"]), refusal(403, message))
    links.drop_all(call, issue)
    remote_links.drop_all(call, issue)
    for kind in ("comment", "history"):
        for key in call.store.keys(f"tracker.{kind}", f"{issue['id']}/"):
            call.store.delete(f"tracker.{kind}", key)
    for item in issue["attachments"]:
        call.store.delete("tracker.attachment", item["id"])
    call.store.delete("tracker.issue", issue["key"])
    return Response(status_code=204)


def issue_property(call: Call) -> Response:
    """Return (GET), set (PUT) or delete (DELETE) a property of an issue."""
    issue, name = call.issue(), call.part("name")
    known = issue.setdefault("properties", {})
    if call.request.method == "GET":
        require(name in known, refusal(404, f"The property {name} does not exist."))
        return JSONResponse({"key": name, "value": known[name]})
    require(call.may("edit", issue["project"]), refusal(403, not_on_screen(name)))
    status = 200 if name in known else 201
    if call.request.method == "DELETE":
        require(known.pop(name, None) is not None, refusal(404, f"No property {name}."))
        status = 204
    else:
        known[name] = json_body(call.body)
    call.store.put("tracker.issue", issue["key"], issue)
    return Response(status_code=status)


def issue_properties(call: Call) -> Response:
    """Return the names of the properties of an issue."""
    names = call.issue().get("properties", {})
    return JSONResponse({"keys": [{"key": name} for name in sorted(names)]})
