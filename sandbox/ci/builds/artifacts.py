# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads of build artifacts [ci-24]."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import AsyncIterator, Iterator
from email.utils import formatdate, parsedate_to_datetime
from typing import Any

from starlette.responses import RedirectResponse, Response, StreamingResponse

from sandbox import object_store
from sandbox.ci.builds.archiving import Artifact
from sandbox.ci.call import Call
from sandbox.ci.server import pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

_RANGE = re.compile(r"bytes=(\d+)-(\d*)\Z")
_CHUNK = 1024 * 1024


def get(call: Call) -> Response:
    """Handle GET and HEAD {build}/artifact/PATH: a file, a folder index, or a zip archive."""
    build, path = call.found_build, call.name
    if ".." in re.split(r"[/\\]", path):
        raise ErrorResponse(pages.failed("Relative paths are not allowed"))
    folder, star, _rest = path.partition("*zip*")
    found = {entry["path"]: entry for entry in build.get("artifacts", [])}
    if star:
        return StreamingResponse(
            _zipped(call.site.context, found, folder), media_type="application/zip"
        )
    if path in found:
        return _file(call, build, found[path])
    below = [name for name in found if path == "" or name.startswith(f"{path.rstrip('/')}/")]
    if not below:
        raise ErrorResponse(pages.not_found())
    if not call.request.scope["path"].endswith("/"):
        return pages.redirect(call.absolute(call.request.scope["path"] + "/"))
    links = "".join(f"<a href='{html.escape(name)}'>{html.escape(name)}</a>" for name in below)
    return pages.page("Artifacts", links)


def _zipped(context: Context, found: dict[str, Artifact], folder: str) -> Iterator[bytes]:
    """Yield a zip archive of a folder. Server fact [ci-24]: the response has no length."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, artifact in found.items():
            if path.startswith(folder):
                archive.write(context.store.blobs.path(artifact["sha256"]), f"archive/{path}")
    yield content.getvalue()


def _file(call: Call, build: dict[str, Any], artifact: Artifact) -> Response:
    request, context = call.request, call.site.context
    if context.settings("ci")["artifact_redirect"] and request.method == "GET":
        return RedirectResponse(object_store.address(request, "ci", artifact["sha256"]), 302)
    modified = build["end_ms"] // 1000
    headers = {"Last-Modified": formatdate(modified, usegmt=True), "Accept-Ranges": "bytes"}
    if _is_fresh(request.headers.get("if-modified-since"), modified):
        return Response(status_code=304, headers=headers)
    kind, size = "application/octet-stream", artifact["size"]
    span = _RANGE.match(request.headers.get("range", ""))
    path = str(context.store.blobs.path(artifact["sha256"]))
    if span is not None and int(span[1]) < size:
        # server fact [ci-24]: the server supports a single range and ignores other range headers
        first, last = int(span[1]), min(int(span[2] or size), size - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        headers["Content-Length"] = str(last - first + 1)
        return StreamingResponse(_part(path, first, last), 206, headers, kind)
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(size)}, media_type=kind)
    headers["Content-Length"] = str(size)
    return StreamingResponse(_part(path, 0, size - 1), 200, headers, kind)


def _is_fresh(since: str | None, modified: int) -> bool:
    try:
        return since is not None and modified <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


async def _part(path: str, first: int, last: int) -> AsyncIterator[bytes]:
    left = last - first + 1
    with open(path, "rb") as file:
        file.seek(first)
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            left -= len(chunk)
            yield chunk
