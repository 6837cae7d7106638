# SPDX-License-Identifier: GPL-3.0-or-later
"""Components: create, update, delete and count [tracker-29]."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.issues.changes import save
from sandbox.tracker.projects.version_changes import issues_of
from sandbox.tracker.references import account_name

_MISSING = "The component with id {} does not exist."
_TAKEN = "A component with the name {} already exists in this project."
_EMPTY = "The component name specified is invalid - cannot be an empty string."
_UNRIGHTFUL = "The user {} does not have permission to complete this operation."
_TYPES = ("PROJECT_DEFAULT", "COMPONENT_LEAD", "PROJECT_LEAD", "UNASSIGNED")
_FIELD = "components"


def listed(call: Call) -> Response:
    """GET /project/{key}/components: the components of a project, without paging."""
    return JSONResponse(_of(call, call.project(call.part("key"))["key"]))


def paged(call: Call) -> Response:
    """GET /project/{key}/component of the cloud: the components of a project, by page."""
    return JSONResponse(call.page(_of(call, call.project(call.part("key"))["key"])))


def _of(call: Call, project: str) -> list[Json]:
    known = call.store.values("tracker.component", f"{project}/")
    return [call.views.whole_component(project, record) for record in known]


def _found(call: Call) -> tuple[str, Json]:
    """Return the project key and the component in the path. Raises a 404."""
    number = call.part("id")
    for key, entry in call.store.items("tracker.component"):
        project = key.partition("/")[0]
        if entry["id"] == number and (
            project in call.visible.projects or call.administers(project)
        ):
            return project, entry
    raise refusal(404, _MISSING.format(number))


def _administered(call: Call, project: str) -> None:
    require(call.administers(project), refusal(403, _UNRIGHTFUL.format(call.user)))


def component(call: Call) -> Response:
    """GET /component/{id}: a component. The account must be able to browse the project."""
    project, entry = _found(call)
    require(project in call.visible.projects, refusal(404, _MISSING.format(entry["id"])))
    return JSONResponse(call.views.whole_component(project, entry))


def create(call: Call) -> Response:
    """POST /component: create a component."""
    members = call.members()
    wanted = str(members.get("project") or "")
    require(wanted, refusal(400, errors={"project": "Project must be specified."}))
    project = call.readable(wanted)
    _administered(call, project)
    entry: Json = {"id": call.next_id("component")}
    entry["name"] = _name(call, project, members.get("name"), None)
    _take(call, entry, members)
    call.store.put("tracker.component", f"{project}/{entry['name']}", entry)
    return JSONResponse(call.views.whole_component(project, entry), 201)


def update(call: Call) -> Response:
    """PUT /component/{id}: change the given members of a component."""
    project, entry = _found(call)
    _administered(call, project)
    members, former = call.members(), entry["name"]
    if members.get("name") is not None:
        entry["name"] = _name(call, project, members["name"], entry["id"])
    _take(call, entry, members)
    call.store.delete("tracker.component", f"{project}/{former}")
    call.store.put("tracker.component", f"{project}/{entry['name']}", entry)
    for issue in issues_of(call, project, former, _FIELD) if former != entry["name"] else ():
        names = [entry["name"] if name == former else name for name in issue[_FIELD]]
        call.store.put("tracker.issue", issue["key"], {**issue, _FIELD: names})
    return JSONResponse(call.views.whole_component(project, entry))


def _name(call: Call, project: str, given: object, own: str | None) -> str:
    name = str(given or "").strip()
    require(name, refusal(400, errors={"name": _EMPTY}))
    for known in call.store.values("tracker.component", f"{project}/"):
        if known["name"].lower() == name.lower() and known["id"] != own:
            raise refusal(400, errors={"name": _TAKEN.format(name)})
    return name


def _take(call: Call, entry: Json, members: Json) -> None:
    """Update a component with the members of a request, except the name."""
    if members.get("description") is not None:
        entry["description"] = members["description"]
    kind = members.get("assigneeType")
    require(kind in (None, *_TYPES), refusal(400, f"Unrecognized assignee type {kind}"))
    entry["assigneeType"] = kind or entry.get("assigneeType", _TYPES[0])
    lead = "leadAccountId" if call.cloud else "leadUserName"
    if lead in members:
        entry["lead"] = _lead(call, lead, members[lead]) if members[lead] else None
    may_archive = call.settings["component_archive"] and not call.cloud
    if members.get("archived") is not None and may_archive:
        entry["archived"] = members["archived"] is True


def _lead(call: Call, member: str, given: object) -> str:
    wanted = str(given)
    wanted = (account_name(wanted) or wanted) if call.cloud else wanted
    known = call.store.get("tracker.user", wanted)
    require(known is not None, refusal(400, errors={member: f"The user {wanted} does not exist."}))
    return wanted


def delete(call: Call) -> Response:
    """DELETE /component/{id}: delete a component, or replace it by `moveIssuesTo` in issues."""
    project, entry = _found(call)
    _administered(call, project)
    target = call.query("moveIssuesTo")
    known = call.store.values("tracker.component", f"{project}/")
    names = [record["name"] for record in known if record["id"] == target != entry["id"]]
    require(names or not target, refusal(404, _MISSING.format(target)))
    for issue in issues_of(call, project, entry["name"], _FIELD):
        kept = [name for name in issue[_FIELD] if name != entry["name"]]
        save(call, issue, {**issue, _FIELD: list(dict.fromkeys([*kept, *names]))})
    call.store.delete("tracker.component", f"{project}/{entry['name']}")
    return Response(status_code=204)


def related(call: Call) -> Response:
    """GET /component/{id}/relatedIssueCounts: the number of issues, also of hidden ones."""
    project, entry = _found(call)
    address = f"{call.views.base}/rest/api/2/component/{entry['id']}"
    count = len(issues_of(call, project, entry["name"], _FIELD))
    return JSONResponse({"self": address, "issueCount": count})
