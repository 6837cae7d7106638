# SPDX-License-Identifier: GPL-3.0-or-later
"""Users, permissions and assignees [tracker-23]."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.rights import Rights
from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import Unsuitable, refusal
from sandbox.tracker.references import account_name
from sandbox.tracker.visible import Issue

_STRICT = "'accountId' must be the only user identifying query parameter in GDPR strict mode."
_AUTOMATIC = "-1"
_LIMIT, _GROUPS = 50, 20


def read_user(call: Call, value: Any) -> str | None:
    """Parse a user: `{name}` on a server, `{accountId}` or `{id}` in the cloud.

    Returns None if the value, its name or its id is null: no user.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Unsuitable("data was not an object")
    if not call.cloud:
        return _known(call, value.get("name", value.get("key")))
    if "accountId" not in value and "id" not in value:
        raise Unsuitable(_STRICT)
    wanted = value.get("accountId", value.get("id"))
    return None if wanted is None else _known(call, account_name(str(wanted)) or str(wanted))


def _known(call: Call, name: Any) -> str | None:
    if name is None:
        return None
    for known in call.store.keys("tracker.user"):
        if known.lower() == str(name).lower():
            return known
    raise Unsuitable(f"User '{name}' does not exist.")


def read_assignee(call: Call, issue: Issue, value: Any) -> str | None:
    """Parse the new assignee of an issue, or None. Raises `Unsuitable`.

    The account must have the permission to assign issues, and the assignee must be assignable.
    """
    name, project = None, issue["project"]
    # Clients may also send the number -1.
    named = (value.get("name"), value.get("accountId")) if isinstance(value, dict) else ()
    if _AUTOMATIC in map(str, named):
        name = call.visible.projects[project].get("lead")
    else:
        name = read_user(call, value)
    if not call.may("assign", project):
        raise Unsuitable("You do not have permission to assign issues.")
    if name is not None and not assignable(call, name, project):
        raise Unsuitable(f"User '{name}' cannot be assigned issues.")
    return name


def assignable(call: Call, name: str, project: str) -> bool:
    known = call.store.get("tracker.user", name) or {}
    others = Rights(call.context.credentials("tracker"), name)
    return bool(known.get("active", True)) and others.may("assignable", project)


def myself(call: Call) -> Response:
    """GET /myself: the account of the request, with which clients check their login."""
    if call.rights.user is None:
        raise refusal(401, "You are not authenticated.")
    shown = call.views.user(call.rights.user)
    if "groups" in call.query_list("expand") and shown is not None:
        groups = call.store.items("tracker.group")
        names = [{"name": name} for name, one in groups if call.rights.user in one["members"]]
        shown["groups"] = {"size": len(names), "items": names}
    return JSONResponse(shown)


def user(call: Call) -> Response:
    """GET /user: a user by name on a server, by account id in the cloud."""
    if call.cloud and (call.query("username") or call.query("key")):
        raise refusal(400, _STRICT)
    wanted = call.query("accountId") if call.cloud else call.query("username", call.query("key"))
    name = (account_name(wanted) if call.cloud else wanted) or wanted
    if call.query("key"):
        keys = {known.get("key", one): one for one, known in call.store.items("tracker.user")}
        name = keys.get(wanted, "")
    if call.store.get("tracker.user", name) is None:
        raise refusal(404, f"The user named '{wanted}' does not exist")
    return JSONResponse(call.views.user(name))


def groups(call: Call) -> Response:
    """GET /groups/picker: groups by a part of their name, none without the permission."""
    wanted = call.query("query").lower()
    known = call.store.keys("tracker.group") if call.rights.may_anywhere("users") else []
    names = [name for name in known if wanted in name.lower()]
    shown = names[: call.number("maxResults", _GROUPS)]
    listed = [{"name": name, "html": name, "labels": []} for name in shown]
    header = f"Showing {len(listed)} of {len(names)} matching groups"
    return JSONResponse({"header": header, "total": len(names), "groups": listed})


def users(call: Call) -> Response:
    """GET /user/search: users by the start of their names."""
    return _people(call, _search(call))


def assignable_users(call: Call) -> Response:
    """GET /user/assignable/search: users that issues of a project can be assigned to."""
    project = call.query("project") or call.seen(call.query("issueKey"))["project"]
    call.project(project)
    return _people(call, [name for name in _search(call) if assignable(call, name, project)])


def _search(call: Call) -> list[str]:
    """Return users by the start of their name, display name, one of its words, or email address.

    The cloud hides email addresses, but finds their accounts [tracker-23].
    """
    if call.cloud and call.query("username"):
        raise refusal(400, _STRICT)
    wanted = call.query("query") if call.cloud else call.query("username")
    found = []
    for name, known in call.store.items("tracker.user"):
        mail = known.get("emailAddress", f"{name}@example.com")
        words = [
            name,
            mail,
            *str(known.get("displayName", "")).split(),
            known.get("displayName", ""),
        ]
        if wanted in ("", ".") or any(word.lower().startswith(wanted.lower()) for word in words):
            found.append(name)
    return found


def _people(call: Call, names: list[str]) -> Response:
    start, size = call.number("startAt", 0), call.number("maxResults", _LIMIT)
    return JSONResponse([call.views.user(name) for name in names[start : start + size]])


def permissions(call: Call) -> Response:
    """GET /mypermissions: permissions of the account, also for an issue or a project.

    The cloud requires the names of permissions in the query [tracker-28].
    """
    asked = call.query_list("permissions")
    require(asked or not call.cloud, refusal(400, "The 'permissions' query parameter is required."))
    named = call.query("issueKey")
    key = call.seen(named)["project"] if named else call.query("projectKey") or None
    shown: Json = {}
    for number, (name, permission) in enumerate(sorted(_KEYS.items())):
        if name in asked or not asked:
            have = (
                call.rights.may_anywhere(permission)
                if key is None or permission == _OF_THE_SERVER
                else call.may(permission, key)
            )
            shown[name] = {"id": str(number), "key": name, "name": name, "havePermission": have}
    return JSONResponse({"permissions": shown})


_OF_THE_SERVER = "system"
_KEYS = {
    "ADMINISTER": _OF_THE_SERVER,
    "ADD_COMMENTS": "comment",
    "ADMINISTER_PROJECTS": "administer",
    "ASSIGNABLE_USER": "assignable",
    "ASSIGN_ISSUES": "assign",
    "BROWSE_PROJECTS": "browse",
    "CREATE_ATTACHMENTS": "attach",
    "CREATE_ISSUES": "create",
    "DELETE_ISSUES": "delete",
    "DELETE_OWN_COMMENTS": "comment",
    "EDIT_ISSUES": "edit",
    "EDIT_OWN_COMMENTS": "comment",
    "LINK_ISSUES": "link",
    "MANAGE_WATCHERS": "watch",
    "TRANSITION_ISSUES": "transition",
    "USER_PICKER": "users",
}
