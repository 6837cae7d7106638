# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of projects and their actors [tracker-30]."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.references import account_name

#: Roles of a new server. They are global, but their actors belong to a project.
ROLES = {"Users": "10000", "Developers": "10001", "Administrators": "10002"}
_USER, _GROUP = "atlassian-user-role-actor", "atlassian-group-role-actor"
_CATEGORIES = {_USER: "users", _GROUP: "groups"}
_MEMBERS = {"user": "users", "group": "groups"}
_UNRIGHTFUL = "You do not have permission to administer the project."
_UNKNOWN = "We can't find '{}' in any accessible user directory."
_PRESENT = "'{}' is already a member of the project role."


def listed(call: Call) -> Response:
    """GET /project/{key}/role: the URLs of roles by name."""
    project = _project(call)
    return JSONResponse({name: _address(call, project, number) for name, number in ROLES.items()})


def _project(call: Call) -> Json:
    key = call.readable(call.part("key"))
    return {**(call.store.get("tracker.project", key) or {}), "key": key}


def _address(call: Call, project: Json, number: str) -> str:
    return f"{call.views.base}/rest/api/2/project/{project['id']}/role/{number}"


def _found(call: Call) -> tuple[Json, str, Json]:
    """Return the project, and the name and actors of the role in the path."""
    project, number = _project(call), call.part("id")
    name = next((name for name, role_id in ROLES.items() if role_id == number), None)
    if name is None:
        raise refusal(404, f"Can not retrieve a role actor for a null project role: {number}")
    require(call.administers(project["key"]), refusal(403, _UNRIGHTFUL))
    actors = call.store.get("tracker.role", f"{project['key']}/{name}") or {}
    return project, name, {"users": [], "groups": [], **actors}


def role(call: Call) -> Response:
    project, name, actors = _found(call)
    return JSONResponse(_shown(call, project, name, actors))


def _shown(call: Call, project: Json, name: str, actors: Json) -> Json:
    shown = [_user(call, user) for user in actors["users"]]
    shown += [_group(call, group) for group in actors["groups"]]
    number = ROLES[name]
    described = {"self": _address(call, project, number), "name": name, "id": int(number)}
    return {**described, "description": f"A project role: {name}", "actors": shown}


def _user(call: Call, name: str) -> Json:
    reference = call.views.user(name) or {}
    shown = {"displayName": reference["displayName"], "type": _USER}
    own = {"actorUser": {"accountId": reference["accountId"]}} if call.cloud else {"name": name}
    return {**shown, **own}


def _group(call: Call, name: str) -> Json:
    own: Json = {"name": name}
    if call.cloud:
        own = {"actorGroup": {"name": name, "displayName": name, "groupId": f"group-{name}"}}
    return {"displayName": name, "type": _GROUP, **own}


def _known(call: Call, member: str, given: object) -> str:
    """Return the name of a user or group, for which the cloud uses account ids. Raises a 404."""
    wanted = str(given)
    if member == "users" and call.cloud:
        wanted = account_name(wanted) or ""
    kind = "tracker.user" if member == "users" else "tracker.group"
    require(call.store.get(kind, wanted) is not None, refusal(404, _UNKNOWN.format(given)))
    return wanted


def _stored(call: Call, project: Json, name: str, actors: Json) -> Response:
    call.store.put("tracker.role", f"{project['key']}/{name}", actors)
    return JSONResponse(_shown(call, project, name, actors))


def replace(call: Call) -> Response:
    """PUT: replace all actors. Categories that are absent are emptied."""
    project, name, _actors = _found(call)
    given = call.members().get("categorisedActors") or {}
    actors = {
        member: [_known(call, member, name) for name in given.get(category) or ()]
        for category, member in _CATEGORIES.items()
    }
    return _stored(call, project, name, actors)


def add(call: Call) -> Response:
    """POST: add users or groups, but not both in a request."""
    project, name, actors = _found(call)
    given = {key: value for key, value in call.members().items() if value is not None}
    require(len(given) == 1 and set(given) <= set(_MEMBERS), refusal(400, "Specify user or group."))
    for key, names in given.items():
        for given_name in names:
            wanted = _known(call, _MEMBERS[key], given_name)
            present = refusal(400, _PRESENT.format(given_name))
            require(wanted not in actors[_MEMBERS[key]], present)
            actors[_MEMBERS[key]].append(wanted)
    return _stored(call, project, name, actors)


def remove(call: Call) -> Response:
    """DELETE: remove a user or a group."""
    project, name, actors = _found(call)
    for key, member in _MEMBERS.items():
        if call.query(key):
            wanted = _known(call, member, call.query(key))
            message = f"Actor '{wanted}' is not a member of the role."
            require(wanted in actors[member], refusal(404, message))
            actors[member].remove(wanted)
    call.store.put("tracker.role", f"{project['key']}/{name}", actors)
    return Response(status_code=204)
