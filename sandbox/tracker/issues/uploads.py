# SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments of issues: upload, metadata and deletion [tracker-27]."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from sandbox.forms import Part, base_name, parts_of
from sandbox.service import ErrorResponse
from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.issues.changes import item, note
from sandbox.tracker.visible import Issue

_FORGERY_HEADER = "x-atlassian-token"


def upload(call: Call) -> Response:
    """POST /issue/{key}/attachments: attach files. Several files may have the same name."""
    token = call.request.headers.get(_FORGERY_HEADER, "").lower()
    require(
        token in ("no-check", "nocheck"), ErrorResponse(PlainTextResponse("XSRF check failed", 403))
    )
    issue = call.issue()
    message = f"You do not have permission to create attachments for issue {issue['key']}."
    require(call.may("attach", issue["project"]), refusal(403, message))
    files = _files(call)
    stored = [_stored(call, issue, part) for part in files]
    items = [
        item("Attachment", (None, None), (record["id"], record["filename"])) for record in stored
    ]
    note(call, issue, items)
    attachments = [*issue["attachments"], *stored]
    changed = {**issue, "attachments": attachments, "updated": call.now()}
    call.store.put("tracker.issue", issue["key"], changed)
    return JSONResponse([call.views.attachment(record) for record in stored])


def _files(call: Call) -> list[Part]:
    parts = parts_of(call.request.headers.get("content-type", ""), call.body)
    if parts is None:
        raise ErrorResponse(PlainTextResponse("Unsupported Media Type", 415))
    files = [part for part in parts if part.name == "file" and part.filename]
    require(files, refusal(400, "No file was sent in the field 'file'"))
    limit = int(call.settings["upload_limit"])
    for part in files:
        message = f"The file '{part.filename}' exceeds the maximum size of {limit} bytes."
        require(len(part.content) <= limit, refusal(413, message))
        require(
            part.content or call.settings["empty_uploads"],
            refusal(400, f"Cannot attach empty file '{part.filename}'."),
        )
    return files


def _stored(call: Call, issue: Issue, part: Part) -> Json:
    blob = call.store.blobs.put(part.content)
    number = call.next_id("attachment")
    stored = {
        "id": number,
        "filename": base_name(part.filename or ""),
        "mimeType": part.kind,
        "author": call.user,
        "created": call.now(),
        "size": blob.size,
        "sha256": blob.sha256,
    }
    call.store.put("tracker.attachment", number, {**stored, "issue": issue["key"]})
    return stored


def limits(call: Call) -> Response:
    """GET /attachment/meta: the maximum size of an upload."""
    limit = int(call.settings["upload_limit"])
    return JSONResponse({"enabled": True, "uploadLimit": limit})


def attachment(call: Call) -> Response:
    """Return (GET) or delete (DELETE) an attachment."""
    found = call.store.get("tracker.attachment", call.part("id"))
    issue = None if found is None else call.visible.find(found["issue"])
    if found is None or issue is None:
        message = f"The attachment with id '{call.part('id')}' does not exist"
        raise refusal(404, message)
    if call.request.method == "GET":
        return JSONResponse(call.views.attachment(found))
    own = found["author"] == call.user and call.may("attach", issue["project"])
    allowed = own or call.may("administer", issue["project"])
    message = f"You do not have permission to delete attachment with id: {found['id']}"
    require(allowed, refusal(403, message))
    call.store.delete("tracker.attachment", found["id"])
    kept = [other for other in issue["attachments"] if other["id"] != found["id"]]
    call.store.put("tracker.issue", issue["key"], {**issue, "attachments": kept})
    return Response(status_code=204)
