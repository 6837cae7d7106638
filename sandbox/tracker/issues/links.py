# SPDX-License-Identifier: GPL-3.0-or-later
"""Links between issues. The `inwardIssue` of a request is the source [tracker-26]."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.issues import comments
from sandbox.tracker.issues.changes import item, note
from sandbox.tracker.visible import Issue


def link_types(call: Call) -> Response:
    """Return the link types. Raises a 404 if linking is disabled."""
    require(call.settings["linking"], refusal(404, "Issue linking is currently disabled."))
    names = call.store.keys("tracker.linktype")
    return JSONResponse({"issueLinkTypes": [call.views.link_type(name) for name in names]})


def link_type(call: Call) -> Response:
    for name, known in call.store.items("tracker.linktype"):
        if call.part("id") == known["id"]:
            return JSONResponse(call.views.link_type(name))
    raise refusal(404, f"No issue link type with id '{call.part('id')}' found.")


def create(call: Call) -> Response:
    """POST /issueLink: create a link. An existing link gets the same response."""
    add(call, call.members())
    return Response(status_code=201)


def link(call: Call) -> Response:
    """Return (GET) or delete (DELETE) a link."""
    found = call.store.get("tracker.link", call.part("id"))
    shown = None if found is None else call.views.whole_link(found)
    if found is None or shown is None:
        raise refusal(404, f"No issue link with id '{call.part('id')}' exists.")
    if call.request.method == "GET":
        return JSONResponse(shown)
    for side in ("source", "target"):
        _require_right(call, call.seen(found[side]))
    _drop(call, found)
    return Response(status_code=204)


def add(call: Call, given: Any, subject: Issue | None = None) -> None:
    """Link two issues.

    :param given: the link in a request
    :param subject: in an edit, the edited issue, which `given` does not contain
    """
    if not isinstance(given, dict):
        raise refusal(400, "A link must be an object")
    name = _type(call, given.get("type"))
    source = _side(call, given, "inwardIssue", subject)
    target = _side(call, given, "outwardIssue", subject)
    for issue in (source, target):
        _require_right(call, issue)
    if source["id"] == target["id"]:
        raise refusal(400, "You cannot link an issue to itself.")
    if not _exists(call, name, source, target):
        _keep(call, name, source, target)
    if given.get("comment"):
        # The comment is also added if the link exists already.
        comments.add(call, source, given["comment"])


def _type(call: Call, given: Any) -> str:
    given = given if isinstance(given, dict) else {}
    for name, known in call.store.items("tracker.linktype"):
        if name == given.get("name") or known["id"] == str(given.get("id")):
            return name
    raise refusal(404, f"No issue link type with name '{given.get('name')}' found.")


def _side(call: Call, given: Json, member: str, subject: Issue | None) -> Issue:
    named = given.get(member)
    if not isinstance(named, dict):
        if subject is None:
            raise refusal(400, f"'{member}' is required")
        return subject
    return call.seen(str(named.get("key", named.get("id"))))


def _require_right(call: Call, issue: Issue) -> None:
    message = f"No Link Issue Permission for issue '{issue['key']}'"
    require(call.may("link", issue["project"]), refusal(403 if call.cloud else 401, message))


def _exists(call: Call, name: str, source: Issue, target: Issue) -> bool:
    wanted = (name, source["id"], target["id"])
    known = call.store.values("tracker.linked", f"{source['id']}/")
    return any((record["type"], record["source"], record["target"]) == wanted for record in known)


def _keep(call: Call, name: str, source: Issue, target: Issue) -> None:
    number, known = call.next_id("link"), call.visible.named("linktype", name)
    stored = {"id": number, "type": name, "source": source["id"], "target": target["id"]}
    call.store.put("tracker.link", number, stored)
    for issue, other, phrase in (
        (source, target, known["outward"]),
        (target, source, known["inward"]),
    ):
        call.store.put("tracker.linked", f"{issue['id']}/{number}", stored)
        message = f"This issue {phrase} {other['key']}"
        note(call, issue, [item("Link", (None, None), (other["key"], message))])


def _drop(call: Call, stored: Json) -> None:
    call.store.delete("tracker.link", stored["id"])
    for side in ("source", "target"):
        call.store.delete("tracker.linked", f"{stored[side]}/{stored['id']}")


def drop_all(call: Call, issue: Issue) -> None:
    """Delete all links of a deleted issue."""
    for stored in call.store.values("tracker.linked", f"{issue['id']}/"):
        _drop(call, stored)
