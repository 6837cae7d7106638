# SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments of a page: list, add, update, download and delete [wiki-15].

- POST on the list adds files and returns a list. The name of an existing attachment is an error.
- POST on `{attachment}/data` adds a version and returns an object.
- PUT on the list adds files or versions, but only in the cloud.
- An attachment has its own version number, independent of the page.
- The list contains size, media type and comment in `extensions`, the comment also in `metadata`,
  and no digest. It contains `version` only if that is expanded.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sandbox.forms import Part, base_name, parts_of
from sandbox.wiki.errors import bad_request, error
from sandbox.wiki.pages import Pages

Json = dict[str, Any]

_LONGEST_COMMENT = 255


def form_of(content_type: str, body: bytes) -> list[Part]:
    """Parse a multipart form. Raises a 415 if the body is not a form."""
    parts = parts_of(content_type, body)
    if parts is None:
        raise error(415, "Unsupported Media Type: multipart/form-data is expected")
    return parts


def add(pages: Pages, page: Json, form: list[Part], *, replaces: bool) -> list[Json]:
    """Add the files of a form (POST on the list).

    :param replaces: whether to add a version if an attachment has the name (PUT)
    """
    stored = []
    for file in _files(form):
        name = base_name(file.filename or "")
        known = next((known for known in page["attachments"] if known["name"] == name), None)
        if known is not None and not replaces:
            message = "Cannot add a new attachment with same file name as an existing attachment"
            raise error(int(pages.settings["duplicate_attachment_status"]), f"{message}: {name}")
        if known is None:
            number = pages.store.next_id("wiki.attachment")
            known = {"id": f"att{number}", "name": name, "version": 0}
        page, attachment = _store(pages, page, form, file, known)
        stored.append(attachment)
    return stored


def replace(pages: Pages, page: Json, number: str, form: list[Part]) -> Json:
    """Add a version of an attachment, which keeps its name (POST on `data`)."""
    file = _files(form)[0]
    for attachment in page["attachments"]:
        if attachment["id"].removeprefix("att") == number.removeprefix("att"):
            return _store(pages, page, form, file, attachment)[1]
    raise error(404, f"No attachment {number} on content {page['id']}")


def content_of(pages: Pages, page: Json, name: str) -> tuple[str, bytes]:
    """Return media type and content of the newest version."""
    for attachment in page["attachments"]:
        if attachment["name"] == name:
            return attachment["media_type"], pages.store.blobs.read(attachment["sha256"])
    raise error(404, f"No attachment {name} on content {page['id']}")


def find(pages: Pages, number: str) -> tuple[Json, Json] | None:
    """Return the page and the attachment with an id, or None if the page is not visible."""
    for page in pages.all():
        for attachment in page["attachments"]:
            if attachment["id"] == number:
                return page, attachment
    return None


def delete(pages: Pages, page: Json, attachment: Json) -> None:
    pages.access.must_delete_attachments(page)
    others = [other for other in page["attachments"] if other["id"] != attachment["id"]]
    pages.store.put("wiki.page", page["id"], {**page, "attachments": others})


def view(base: str, page: Json, attachment: Json, *, version: bool) -> Json:
    """Return the JSON of an attachment. `version`: whether to include the version."""
    comment, kind = attachment["comment"], attachment["media_type"]
    file = f"{quote(attachment['name'], safe='')}?version={attachment['version']}"
    shown: Json = {
        "id": attachment["id"],
        "type": "attachment",
        "status": "current",
        "title": attachment["name"],
        "metadata": {"comment": comment, "mediaType": kind},
        "extensions": {"mediaType": kind, "fileSize": attachment["size"], "comment": comment},
        "_links": {
            "download": f"/download/attachments/{page['id']}/{file}",
            "self": f"{base}/rest/api/content/{attachment['id']}",
        },
    }
    if version:
        when = page["version"]["when"]
        shown["version"] = {"number": attachment["version"], "when": when, "minorEdit": False}
    return shown


def _files(form: list[Part]) -> list[Part]:
    files = [part for part in form if part.name == "file" and part.filename]
    if not files:
        raise bad_request("At least one file is expected in the field 'file'")
    return files


def _comment(form: list[Part]) -> str:
    comment = "".join(part.content.decode() for part in form if part.name == "comment")
    if len(comment) > _LONGEST_COMMENT:
        raise bad_request(f"Comment cannot be longer than {_LONGEST_COMMENT} characters")
    return comment


def _store(
    pages: Pages, page: Json, form: list[Part], file: Part, attachment: Json
) -> tuple[Json, Json]:
    """Store a version of an attachment. Return the changed page and the attachment.

    The server also adds a version if the content is the same.
    """
    pages.access.must_attach(page)
    comment, limit = _comment(form), int(pages.settings["upload_limit"])
    if len(file.content) > limit:
        raise error(413, f"The file {file.filename} exceeds the maximum size of {limit} bytes")
    blob = pages.store.blobs.put(file.content)
    stored = {
        **attachment,
        "version": attachment["version"] + 1,
        "comment": comment,
        "media_type": file.kind,
        "size": blob.size,
        "sha256": blob.sha256,
    }
    others = [other for other in page["attachments"] if other["id"] != attachment["id"]]
    changed = {**page, "attachments": [*others, stored]}
    pages.store.put("wiki.page", page["id"], changed)
    return changed, stored
