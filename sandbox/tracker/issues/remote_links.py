# SPDX-License-Identifier: GPL-3.0-or-later
"""Links from issues to pages of other servers [tracker-44]."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.visible import Issue

_KIND = "tracker.remotelink"
_LONGEST = 255


def remote_links(call: Call) -> Response:
    """List the remote links of an issue (GET), create or replace one (POST), or delete one."""
    issue = _linkable(call)
    if call.request.method == "POST":
        return _posted(call, issue)
    wanted, known = call.query("globalId"), call.store.values(_KIND, f"{issue['id']}/")
    found = [record for record in known if wanted in ("", record.get("globalId"))]
    if call.request.method == "GET":
        require(found or not wanted, refusal(404, "No remote issue link with that globalId."))
        shown = [_shown(call, issue, record) for record in found]
        return JSONResponse(shown[0] if wanted else shown)
    _require_right(call, issue)
    require(wanted and found, refusal(404, "No remote issue link with that globalId."))
    call.store.delete(_KIND, _key(issue, found[0]["id"]))
    return Response(status_code=204)


def remote_link(call: Call) -> Response:
    """Return (GET), replace (PUT) or delete (DELETE) a remote link by its id."""
    issue, number = _linkable(call), call.part("link")
    found = call.store.get(_KIND, _key(issue, number))
    if found is None:
        raise refusal(404, f"The remote link with id '{number}' does not exist.")
    if call.request.method == "GET":
        return JSONResponse(_shown(call, issue, found))
    _require_right(call, issue)
    if call.request.method == "DELETE":
        call.store.delete(_KIND, _key(issue, number))
    else:
        call.store.put(_KIND, _key(issue, number), {**_read(call.members()), "id": number})
    return Response(status_code=204)


def _linkable(call: Call) -> Issue:
    require(call.settings["linking"], refusal(403, "Issue linking is currently disabled."))
    return call.issue()


def _posted(call: Call, issue: Issue) -> Response:
    _require_right(call, issue)
    record = _read(call.members())
    known = call.store.values(_KIND, f"{issue['id']}/")
    same = [
        one for one in known if record.get("globalId") and one.get("globalId") == record["globalId"]
    ]
    number = same[0]["id"] if same else call.next_id("remotelink")
    call.store.put(_KIND, _key(issue, number), {**record, "id": number})
    # a server responds with 200 to both, the cloud with 201 to a creation
    status = 201 if call.cloud and not same else 200
    return JSONResponse({"id": int(number), "self": _address(call, issue, number)}, status)


def _read(given: Json) -> Json:
    """Return the stored members. Those that the request does not have are removed."""
    errors: dict[str, str] = {}
    linked: Any = given.get("object")
    linked = linked if isinstance(linked, dict) else {}
    for name in ("url", "title"):
        if not str(linked.get(name) or "").strip():
            errors[name] = f"'{name}' is required."
    if "://" not in str(linked.get("url")):
        errors["url"] = "The URL is not valid."
    if len(str(given.get("globalId") or "")) > _LONGEST:
        errors["globalId"] = f"'globalId' must not exceed {_LONGEST} characters."
    if errors:
        raise refusal(400, errors=errors)
    names = ("globalId", "application", "relationship", "object")
    return {name: given[name] for name in names if given.get(name)}


def _shown(call: Call, issue: Issue, record: Json) -> Json:
    linked = {"icon": {}, "status": {"icon": {}}, **record["object"]}
    number = record["id"]
    shown = {"application": {}, **record, "object": linked}
    return {**shown, "id": int(number), "self": _address(call, issue, number)}


def _address(call: Call, issue: Issue, number: str) -> str:
    return f"{call.views.base}/rest/api/2/issue/{issue['id']}/remotelink/{number}"


def _key(issue: Issue, number: str) -> str:
    return f"{issue['id']}/{number}"


def _require_right(call: Call, issue: Issue) -> None:
    message = f"No Link Issue Permission for issue '{issue['key']}'"
    require(call.may("link", issue["project"]), refusal(403, message))


def drop_all(call: Call, issue: Issue) -> None:
    """Delete all remote links of a deleted issue."""
    for record in call.store.values(_KIND, f"{issue['id']}/"):
        call.store.delete(_KIND, _key(issue, record["id"]))
