# SPDX-License-Identifier: GPL-3.0-or-later
"""Comments of issues [tracker-25]."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.fields.markup import as_markup, is_document
from sandbox.tracker.fields.values import LONGEST_TEXT
from sandbox.tracker.visible import Issue

_ALL = 1048576
#: Members of a comment that are stored as they were sent.
_KEPT = ("visibility", "properties")


def comments(call: Call) -> Response:
    """List the comments of an issue (GET, in the cloud by page), or add a comment (POST).

    The same comment can be added twice.
    """
    issue = call.issue()
    if call.request.method == "POST":
        stored = add(call, issue, call.members())
        return JSONResponse(call.views.comment(issue["id"], stored), 201)
    found = call.views.comments(issue, properties="properties" in call.query_list("expand"))
    if call.query("orderBy") == "-created":
        found = found[::-1]
    size = int(call.settings["cloud_comment_page"]) if call.cloud else _ALL
    page = call.page(found, "comments", size)
    return JSONResponse({name: value for name, value in page.items() if name != "isLast"})


def comment(call: Call) -> Response:
    """Return (GET), change (PUT) or delete (DELETE) a comment by its id."""
    issue, number = call.issue(), call.part("comment")
    key = f"{issue['id']}/{number.rjust(12, '0')}"
    found = call.store.get("tracker.comment", key)
    if found is None:
        raise refusal(404, f"Can not find a comment for the id: {number}.")
    if call.request.method == "GET":
        return JSONResponse(call.views.comment(issue["id"], found))
    own = found["author"] == call.user and call.may("comment", issue["project"])
    allowed = own or call.may("administer", issue["project"])
    verb = "edit" if call.request.method == "PUT" else "delete"
    message = f"You do not have permission to {verb} comment with id: "
    require(allowed, refusal(400, f"{message}{number}"))
    if call.request.method == "PUT":
        given = call.members()
        text = {"body": _text(call, given.get("body")), "updated": call.now()}
        changed = {**found, "visibility": None, **text, **_kept(given)}
        call.store.put("tracker.comment", key, changed)
        return JSONResponse(call.views.comment(issue["id"], changed))
    call.store.delete("tracker.comment", key)
    return Response(status_code=204)


def add(call: Call, issue: Issue, given: Any) -> Json:
    """Add a comment by the account of the request. Raises a 400 or 403."""
    text = _text(call, given.get("body") if isinstance(given, dict) else None)
    if not call.may("comment", issue["project"]):
        message = f"{call.user}, you do not have the permission to comment on this issue."
        raise refusal(403, message) if call.cloud else refusal(400, errors={"comment": message})
    number = call.next_id("comment")
    stored = {
        "id": number,
        "author": call.user,
        "body": text,
        "created": call.now(),
        **_kept(given),
    }
    call.store.put("tracker.comment", f"{issue['id']}/{int(number):012d}", stored)
    call.store.put("tracker.issue", issue["key"], {**issue, "updated": call.now()})
    return stored


def _kept(given: Json) -> Json:
    return {name: given[name] for name in _KEPT if given.get(name)}


def _text(call: Call, body: Any) -> str | Json:
    """Return the text to store: a string, or the document of version 3."""
    if call.documents:
        invalid = refusal(400, errors={"comment": "Comment body is not valid!"})
        require(is_document(body), invalid)
    elif not isinstance(body, str):
        raise refusal(400, errors={"comment": "Comment body can not be empty!"})
    text = as_markup(body)
    if text.strip() == "":
        raise refusal(400, errors={"comment": "Comment body can not be empty!"})
    if len(text) > LONGEST_TEXT:
        message = "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
        raise refusal(400, errors={"comment": message})
    stored: str | Json = body
    return stored
