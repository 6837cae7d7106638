# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, change and delete spaces, and their permissions [wiki-20, wiki-21]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.service import json_body
from sandbox.wiki.errors import bad_request, conflict, error, forbidden, no_space
from sandbox.wiki.views import Views

Json = dict[str, Any]

_DEFAULT = {"user:key-reporter": ["space:administer", "space:read"]}
_MAX_SUBJECTS = 40
_NAMES = {"group": "groupName", "user": "userKey"}
#: The permissions of a space [wiki-21]
_OPERATIONS = {
    *(f"space:{name}" for name in ("read", "administer", "export", "restrict")),
    *("space:delete_own", "space:delete_mail"),
    *(
        f"{kind}:{name}"
        for kind in ("page", "blogpost", "comment")
        for name in ("create", "delete")
    ),
    *("attachment:create", "attachment:delete"),
}
#: The permissions of a space of the cloud, as far as the modules know them.
_OPERATIONS_OF_CLOUD = {
    *(_OPERATIONS - {"space:restrict", "space:delete_own", "space:delete_mail"}),
    *("space:restrict_content", "space:delete", "page:archive"),
}


class SpaceEditing:
    """Request handlers. `views`: returns the data that the account of a request can see."""

    def __init__(self, views: Callable[[Request], Views]) -> None:
        self._views = views

    async def create(self, request: Request) -> Response:
        """POST /space: create a space."""
        views, data = self._views(request), json_body(await request.body())
        pages = views.pages
        rights = pages.access.rights
        if rights is not None and not rights.may_anywhere("create_space"):
            raise forbidden("Could not create space")
        key = str(data.get("key") or "")
        if not key or not data.get("name"):
            raise bad_request("A space needs a key and a name")
        if pages.store.get("wiki.space", key) is not None:
            raise conflict(f"A space already exists with key {key}")
        space = {"id": 90 + pages.store.next_id("wiki.space"), "key": key, "name": data["name"]}
        space["description"] = _plain(data)
        pages.store.put("wiki.space", key, space)
        return JSONResponse(views.space(key, ("description.plain",)))

    async def update(self, request: Request) -> Response:
        """PUT /space/{key}: change the given members of a space.

        The request for a personal space names its type.
        """
        views, data = self._views(request), json_body(await request.body())
        space = self._administered(views, request)
        if space["key"].startswith("~") and data.get("type") != "personal":
            raise bad_request("The type of a space cannot be changed")
        changed = {**space, "name": data.get("name", space["name"])}
        if "description" in data:
            changed["description"] = _plain(data)
        if "homepage" in data:
            changed["home"] = str(data["homepage"]["id"])
        views.pages.store.put("wiki.space", space["key"], changed)
        return JSONResponse(views.space(space["key"], ("description.plain", "homepage")))

    async def delete(self, request: Request) -> Response:
        """DELETE /space/{key}: 202, because a real server deletes in the background."""
        views = self._views(request)
        space = self._administered(views, request)
        for page in views.pages.all():
            if page["space"] == space["key"]:
                views.pages.store.delete("wiki.page", page["id"])
        views.pages.store.delete("wiki.space", space["key"])
        return JSONResponse({"id": "1", "links": {"status": "/rest/api/longtask/1"}}, 202)

    def _administered(self, views: Views, request: Request) -> Json:
        space = views.pages.access.space(request.path_params["key"])
        if not views.pages.access.may("administer", space["key"]):
            raise forbidden(f"Could not change the space {space['key']}")
        return space

    async def permissions(self, request: Request) -> Response:
        """List (GET) or set (POST) the permissions of a space. Without the right: 500 [wiki-21]."""
        views = self._views(request)
        access = views.pages.access
        if views.pages.cloud or not access.settings["space_permissions"]:
            raise no_space(request.path_params["key"])
        space = access.space(request.path_params["key"])
        if not access.may("administer", space["key"]):
            raise error(500, "java.lang.NullPointerException")
        known = {**space.get("permissions", _DEFAULT)}
        if request.method == "POST":
            given = json_body(await request.body())
            if len(given) > _MAX_SUBJECTS:
                raise bad_request("too many subjects")
            for entry in given:
                pairs = [
                    f"{operation['targetType']}:{operation['operationKey']}"
                    for operation in entry["operations"]
                ]
                if not _OPERATIONS.issuperset(pairs):
                    raise bad_request("a permission does not exist")
                access.must_know(_named_in(entry), status=404)
                known[_subject_in(entry)] = sorted(pairs)
            views.pages.store.put("wiki.space", space["key"], {**space, "permissions": known})
        shown = [_shown(subject, pair) for subject, pairs in known.items() for pair in pairs]
        return JSONResponse(shown)

    async def grant(self, request: Request) -> Response:
        """POST /space/{key}/permission: a single permission, in the cloud [wiki-21]."""
        views, given = self._views(request), json_body(await request.body())
        if not views.pages.cloud:
            raise error(404, f"null for uri: {request.url.path}")
        space = self._administered(views, request)
        known = {**space.get("permissions", _DEFAULT)}
        kind, name = given["subject"]["type"], given["subject"]["identifier"]
        pair = f"{given['operation']['target']}:{given['operation']['key']}"
        if kind == "group":
            names = [one for one, _members in views.pages.store.items("wiki.group")]
            name = next((one for one in names if views.group(one)["id"] == name), None)
            if name is None:
                raise bad_request("No group found with the given groupName or groupId")
        elif name != "anonymous":
            name = name.removeprefix("account-")
            if not views.pages.access.knows(name):
                raise bad_request("No user found with the given accountId")
            name = f"key-{name}"
        subject = "anonymous" if name == "anonymous" else f"{kind}:{name}"
        held = known.get(subject, [])
        if pair not in _OPERATIONS_OF_CLOUD:
            raise bad_request("a permission does not exist")
        if pair in held or (pair != "space:read" and "space:read" not in held):
            raise bad_request("the permission exists, or there is no permission to read the space")
        known[subject] = sorted([*held, pair])
        views.pages.store.put("wiki.space", space["key"], {**space, "permissions": known})
        return JSONResponse({"id": _number(subject, pair), **given})

    async def revoke(self, request: Request) -> Response:
        """DELETE /space/{key}/permission/{id}: all of a subject with that to read the space."""
        views = self._views(request)
        if not views.pages.cloud:
            raise error(404, f"null for uri: {request.url.path}")
        space = self._administered(views, request)
        known, number = {**space.get("permissions", _DEFAULT)}, request.path_params["id"]
        pairs = [(subject, pair) for subject, held in known.items() for pair in held]
        found = next((one for one in pairs if _number(*one) == number), None)
        if found is None:
            raise error(404, "There is no permission with the given id")
        left = [pair for pair in known[found[0]] if pair != found[1]]
        known[found[0]] = [] if found[1] == "space:read" else left
        views.pages.store.put("wiki.space", space["key"], {**space, "permissions": known})
        return Response(status_code=204)

    async def user(self, request: Request) -> Response:
        """GET /user: an account by its name or key, in the cloud by its id."""
        views, query = self._views(request), request.query_params
        name = query.get("username", query.get("key", "").removeprefix("key-"))
        if views.pages.cloud:
            name = query.get("accountId", "").removeprefix("account-")
        if not views.pages.access.knows(name):
            raise error(404, f"No user found with username : {name}")
        return JSONResponse(views.user(name))


def listed_permissions(space: Json) -> list[Json]:
    """Return the permissions of a space as version 2 of the cloud lists them [wiki-21]."""
    return [
        {
            "id": _number(subject, pair),
            "principal": _principal(subject),
            "operation": {"key": pair.partition(":")[2], "targetType": pair.partition(":")[0]},
        }
        for subject, pairs in space.get("permissions", _DEFAULT).items()
        for pair in pairs
    ]


def _number(subject: str, pair: str) -> str:
    return str(crc32(f"{subject} {pair}".encode()))


def _principal(subject: str) -> Json:
    kind, _colon, name = subject.partition(":")
    if kind == "anonymous":
        return {"type": "user", "id": "anonymous"}
    is_group = kind == "group"
    return {"type": kind, "id": f"id-{name}" if is_group else name.replace("key-", "account-", 1)}


def _plain(data: Json) -> str:
    return str(((data.get("description") or {}).get("plain") or {}).get("value") or "")


def _subject_in(given: Json) -> str:
    kind = next((kind for kind, member in _NAMES.items() if given.get(member)), None)
    return "anonymous" if kind is None else f"{kind}:{given[_NAMES[kind]]}"


def _named_in(given: Json) -> Json:
    """Return the user and the group of an entry in the form of restrictions."""
    key, group = given.get("userKey"), given.get("groupName")
    return {
        "user": [{"username": key.removeprefix("key-")}] if key else [],
        "group": [{"name": group}] if group else [],
    }


def _shown(subject: str, pair: str) -> Json:
    kind, _colon, name = subject.partition(":")
    target, _colon, operation = pair.partition(":")
    shown: Json = {"type": kind}
    if kind != "anonymous":
        shown["name" if kind == "group" else "userKey"] = name
    return {"operation": {"targetType": target, "operationKey": operation}, "subject": shown}
