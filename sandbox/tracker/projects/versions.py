# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions: create, update, sort, delete and count [tracker-15, tracker-16]."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import Unsuitable, refusal
from sandbox.tracker.fields.values import read_date
from sandbox.tracker.projects import version_changes

_LONGEST = 255
_DATES = ("startDate", "releaseDate")
_EMPTY = "You must specify a valid version name"
_TAKEN = "A version with this name already exists in this project."
_UNRIGHTFUL = "You must have global or project administrator rights in order to modify versions."
_STATES = ("released", "archived", "unreleased")


def listed(call: Call) -> Response:
    """GET /project/{key}/versions: the versions of a project, without paging."""
    return JSONResponse(call.views.versions(call.readable(call.part("key"))))


def paged(call: Call) -> Response:
    """GET /project/{key}/version: versions by page, in the cloud filtered by query and status."""
    found = call.views.versions(call.readable(call.part("key")))
    if call.cloud:
        text, states = call.query("query").lower(), call.query_list("status")
        found = [
            record
            for record in found
            if text in f"{record['name']} {record.get('description', '')}".lower()
            and (not states or _state(record) in states)
        ]
    if call.query("orderBy").lstrip("+-") == "name":
        descending = call.query("orderBy")[0] == "-"
        found.sort(key=lambda record: str(record["name"]), reverse=descending)
    return JSONResponse(call.page(found))


def _state(version: Json) -> str:
    if version["archived"]:
        return "archived"
    return "released" if version["released"] else "unreleased"


def _found(call: Call) -> tuple[str, Json]:
    """Return the project key and the version in the path. Raises a 404."""
    project, entry = version_changes.by_id(call, call.part("id")) or ("", None)
    seen = project in call.visible.projects or call.administers(project)
    if entry is None or not seen:
        raise refusal(404, f"Could not find version for id '{call.part('id')}'")
    return project, entry


def version(call: Call) -> Response:
    project, entry = _found(call)
    return JSONResponse(call.views.version(project, entry["name"]))


def create(call: Call) -> Response:
    """POST /version: create a version. Older servers ignore `released` and `archived`."""
    members = call.members()
    wanted = str(members.get("project") or members.get("projectId") or "")
    require(wanted, refusal(400, "Project must be specified to create a version."))
    project = next(
        (
            key
            for key, known in call.store.items("tracker.project")
            if wanted in (key, known["id"]) and call.administers(key)
        ),
        None,
    )
    if project is None:
        message = "either does not exist or you do not have permission to create versions in it."
        raise refusal(404, f"Project with key '{wanted}' {message}")
    number = call.next_id("version")
    entry: Json = {"id": number, "sequence": float(number)}
    entry["name"] = _name(call, project, members.get("name"), None)
    accepted = dict(members)
    if call.settings["version_post_ignores_states"]:
        accepted = {name: value for name, value in members.items() if name not in _STATES}
    _take(entry, accepted, "creating")
    call.store.put("tracker.version", f"{project}/{entry['name']}", entry)
    return JSONResponse(call.views.version(project, entry["name"]), 201)


def update(call: Call) -> Response:
    """PUT /version/{id}: change the given members of a version. A null changes nothing."""
    project, entry = _found(call)
    if not call.administers(project):
        raise refusal(404 if call.cloud else 403, _UNRIGHTFUL)
    members, before = call.members(), dict(entry)
    if members.get("name") is not None:
        entry["name"] = _name(call, project, members["name"], entry["id"])
    _take(entry, members, "editing")
    releases = bool(entry.get("released")) and not before.get("released")
    target = None
    if releases and members.get("moveUnfixedIssuesTo"):
        target = _by_address(call, project, members["moveUnfixedIssuesTo"])
    version_changes.rename(call, project, before["name"], entry)
    if target is not None:
        version_changes.move_unresolved(call, project, entry["name"], target["name"])
    return JSONResponse(call.views.version(project, entry["name"]))


def _name(call: Call, project: str, given: Any, own: str | None) -> str:
    """Return the trimmed name in a request. Raises a 400 if it is invalid or in use.

    Server fact [tracker-17]: names are unique regardless of case.
    """
    name = str(given or "").strip()
    require(name, refusal(400, errors={"name": _EMPTY}))
    long = f"The version name is too long. It must not exceed {_LONGEST} characters."
    require(len(name) <= _LONGEST, refusal(400, errors={"name": long}))
    for known in call.store.values("tracker.version", f"{project}/"):
        if known["name"].lower() == name.lower() and known["id"] != own:
            raise refusal(400, errors={"name": _TAKEN})
    return name


def _take(entry: Json, members: Json, what: str) -> None:
    """Update a version with the members of a request, except the name.

    :param what: `creating` or `editing`, for error messages
    """
    for name in ("released", "archived"):
        if members.get(name) is not None:
            entry[name] = members[name] is True
    if members.get("description") is not None:
        entry["description"] = members["description"]
    for name in _DATES:
        _take_date(entry, members, name, what)
    start, release = (entry.get(name) for name in _DATES)
    if start and release and start > release:
        message = "The start date must be before the release date."
        raise refusal(400, errors={"startDate": message})


def _take_date(entry: Json, members: Json, name: str, what: str) -> None:
    """Set a date, which has two members with different formats. An empty value clears it."""
    users = "user" + name[0].upper() + name[1:]
    if name in members and users in members:
        message = f"Only one of '{name}' and '{users}' can be specified when {what} a version."
        raise refusal(400, message)
    try:
        if name in members:
            entry[name] = read_date(members[name]) if members[name] else None
        elif users in members:
            entry[name] = _read_user_date(members[users]) if members[users] else None
    except Unsuitable as problem:
        raise refusal(400, errors={name: str(problem)}) from None


def _read_user_date(text: Any) -> str:
    try:
        return datetime.strptime(f"{text} +0000", "%d/%b/%y %z").date().isoformat()
    except ValueError:
        message = f"Please enter the date in the following format: d/MMM/yy, not {text}"
        raise Unsuitable(message) from None


def _by_address(call: Call, project: str, address: Any) -> Json:
    found = version_changes.by_id(call, str(address).rpartition("/")[2])
    if found is None or found[0] != project:
        raise refusal(404, f"Could not find version for '{address}'")
    return found[1]


def _administered(call: Call) -> tuple[str, Json]:
    """Return the project key and the version in the path, to administer it.

    Server fact [tracker-18]: a missing permission is a 401, although the login is valid.
    """
    project, entry = _found(call)
    message = f"The user {call.user} does not have permission to complete this operation."
    require(call.administers(project), refusal(401, message))
    return project, entry


def delete(call: Call) -> Response:
    """DELETE /version/{id}: delete a version. The query may contain target versions."""
    project, entry = _administered(call)
    targets = {
        "fixVersions": call.query("moveFixIssuesTo"),
        "versions": call.query("moveAffectedIssuesTo"),
    }
    # Older servers also accept the URL of a version.
    targets = {field: given.rpartition("/")[2] for field, given in targets.items()}
    version_changes.remove(call, project, entry, targets)
    return Response(status_code=204)


def swap(call: Call) -> Response:
    """POST /version/{id}/removeAndSwap: delete a version. Target versions are numbers."""
    known = call.cloud or call.settings["remove_and_swap"]
    require(known, refusal(404, f"null for uri: {call.request.url.path}"))
    project, entry = _administered(call)
    members = call.members()
    targets = {}
    for field, name in (("fixVersions", "moveFixIssuesTo"), ("versions", "moveAffectedIssuesTo")):
        given = members.get(name)
        number = given is None or (isinstance(given, int) and not isinstance(given, bool))
        require(number, refusal(400, f"Can not deserialize '{name}': a number is expected"))
        targets[field] = "" if given is None else str(given)
    version_changes.remove(call, project, entry, targets)
    return Response(status_code=204)


def merge(call: Call) -> Response:
    """PUT /version/{id}/mergeto/{target}: move the issues, then delete the version."""
    project, entry = _administered(call)
    target = call.part("target")
    version_changes.remove(call, project, entry, {"fixVersions": target, "versions": target})
    return Response(status_code=204)


def move(call: Call) -> Response:
    """POST /version/{id}/move: change the order of versions.

    The body has `position`, or `after` with the URL of another version.
    """
    project, entry = _administered(call)
    members = call.members()
    others = sorted(
        call.store.values("tracker.version", f"{project}/"),
        key=lambda other: float(other.get("sequence", other["id"])),
    )
    ids = [other["id"] for other in others]
    index = ids.index(entry["id"])
    del others[index], ids[index]
    if "after" in members:
        after = _by_address(call, project, members["after"])
        index = 1 + ids.index(after["id"])
    else:
        steps = {"Earlier": index - 1, "Later": index + 1, "First": 0, "Last": len(others)}
        position = members.get("position")
        require(position in steps, refusal(400, f"Invalid position: {position}"))
        index = max(steps[str(position)], 0)
    others.insert(index, entry)
    for sequence, known in enumerate(others):
        key = f"{project}/{known['name']}"
        call.store.put("tracker.version", key, {**known, "sequence": float(sequence)})
    return JSONResponse(call.views.version(project, entry["name"]))


def unresolved(call: Call) -> Response:
    """GET /version/{id}/unresolvedIssueCount: the number of issues, also of hidden ones."""
    project, entry = _found(call)
    found = version_changes.issues_of(call, project, entry["name"], "fixVersions")
    open_issues = [issue for issue in found if issue.get("resolution") is None]
    counts = {"issuesUnresolvedCount": len(open_issues)}
    if call.cloud:
        counts["issuesCount"] = len(found)
    return JSONResponse({"self": f"{_address(call, entry)}/unresolvedIssueCount", **counts})


def related(call: Call) -> Response:
    project, entry = _found(call)
    fixed, affected = (
        len(version_changes.issues_of(call, project, entry["name"], field))
        for field in ("fixVersions", "versions")
    )
    return JSONResponse(
        {
            "self": f"{_address(call, entry)}/relatedIssueCounts",
            "issuesFixedCount": fixed,
            "issuesAffectedCount": affected,
            "issueCountWithCustomFieldsShowingVersion": 0,
            "customFieldUsage": [],
        }
    )


def _address(call: Call, entry: Json) -> str:
    return f"{call.views.base}/rest/api/2/version/{entry['id']}"
