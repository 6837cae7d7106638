# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a page: listed, added, given a new version, downloaded.

Server facts [wiki-15], as public clients and their issue threads show them (atlassian-python-api
`attach_content`, mark `attachment.go`, md2cf): a name that is in use is refused with 400 and has to
be given its next version under `{attachment}/data`; the answer to the one is a list, to the other
an object; `PUT` on the listing is known to the cloud alone; the version of a file is its own, not
the page's; the listing shows size, media type and comment in `extensions`, the comment in
`metadata` too, and no digest; `version` comes only where it is expanded.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from sandbox.wiki.errors import bad_request, error, forbidden
from sandbox.wiki.pages import Pages

Json = dict[str, Any]

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?')
_PARAMETER = re.compile(rb'[; ](name|filename)="([^"]*)"')
_LONGEST_COMMENT = 255


def form_of(content_type: str, body: bytes) -> Json:
    """The fields of a multipart form as text; `file` as `(name, media type, bytes)`."""
    found = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        raise error(415, "Unsupported Media Type: multipart/form-data is expected")
    limit = b"\r\n--" + found[1].encode()
    form: Json = {}
    for part in (b"\r\n" + body).split(limit)[1:]:
        head, _blank, content = part.partition(b"\r\n\r\n")
        names = {key: value.decode() for key, value in _PARAMETER.findall(head)}
        if b"filename" in names:
            media = re.search(rb"(?i)content-type: *([^\r\n]+)", head)
            kind = "application/octet-stream" if media is None else media[1].decode()
            form[names[b"name"]] = (names[b"filename"], kind, content)
        elif b"name" in names:
            form[names[b"name"]] = content.decode()
    return form


def add(pages: Pages, page: Json, form: Json) -> Json:
    """POST on the listing: a file under a new name."""
    name, _kind, _content = _file(form)
    if any(each["name"] == name for each in page["attachments"]):
        words = "Cannot add a new attachment with same file name as an existing attachment"
        raise bad_request(f"{words}: {name}")
    number = pages.store.next_id("wiki.attachment")
    return _store(pages, page, form, {"id": f"att{number}", "name": name, "version": 0})


def replace(pages: Pages, page: Json, attachment: str, form: Json) -> Json:
    """POST on `data`: the next version of a file, which keeps its name."""
    _file(form)
    for each in page["attachments"]:
        if each["id"] == attachment:
            return _store(pages, page, form, each)
    raise error(404, f"No attachment {attachment} on content {page['id']}")


def content_of(pages: Pages, page: Json, name: str) -> tuple[str, bytes]:
    """Media type and bytes of the newest version."""
    for each in page["attachments"]:
        if each["name"] == name:
            return each["media_type"], pages.store.blobs.read(each["sha256"])
    raise error(404, f"No attachment {name} on content {page['id']}")


def view(base: str, page: Json, attachment: Json, *, version: bool) -> Json:
    """An attachment as the listing shows it."""
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
        shown["version"] = {"number": attachment["version"]}
    return shown


def _file(form: Json) -> tuple[str, str, bytes]:
    file = form.get("file")
    if not isinstance(file, tuple) or file[0] == "":
        raise bad_request("At least one file is expected in the field 'file'")
    return file


def _store(pages: Pages, page: Json, form: Json, attachment: Json) -> Json:
    if page.get("read_only", False):
        raise forbidden(f"Could not create attachments on Content with id {page['id']}")
    _name, kind, content = _file(form)
    comment = form.get("comment", "")
    if len(comment) > _LONGEST_COMMENT:
        raise bad_request(f"Comment cannot be longer than {_LONGEST_COMMENT} characters")
    blob = pages.store.blobs.put(content)
    stored = {
        **attachment,
        "version": attachment["version"] + 1,
        "comment": comment,
        "media_type": kind,
        "size": blob.size,
        "sha256": blob.sha256,
    }
    others = [each for each in page["attachments"] if each["id"] != attachment["id"]]
    pages.store.put("wiki.page", page["id"], {**page, "attachments": [*others, stored]})
    return stored
