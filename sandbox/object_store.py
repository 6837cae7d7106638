# SPDX-License-Identifier: GPL-3.0-or-later
"""An object store on another host, to which services redirect downloads of large files.

Its URLs are signed, expire after a minute and only allow GET. It rejects requests that also contain
a login: server facts [repo-26, ci-24].
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, Response

from sandbox.context import context
from sandbox.service import route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

PREFIX = "/_store/"
_SECONDS = 60
_KEY = secrets.token_bytes()
# Another name of this machine, so that the store has another origin than the service.
_OTHER_NAMES = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}


def address(request: Request, service: str, sha256: str) -> str:
    """Return a signed URL for the content with a SHA-256."""
    host, _colon, port = (request.headers.get("host") or "127.0.0.1").partition(":")
    expires = str(int(time.time()) + _SECONDS)
    store = f"{_OTHER_NAMES.get(host, '127.0.0.1')}:{port}".rstrip(":")
    return (
        f"{request.scope['scheme']}://{store}/{service}{PREFIX}{sha256}"
        f"?X-Amz-Expires={expires}&X-Amz-Signature={_signature(sha256, expires)}"
    )


def _signature(sha256: str, expires: str) -> str:
    return hmac.new(_KEY, f"{sha256}:{expires}".encode(), hashlib.sha256).hexdigest()


def asked(request: Request, service: str) -> bool:
    """Return whether a request goes to the store, which requires no login."""
    path: str = request.scope["path"]
    return path.startswith(f"/{service}{PREFIX}")


def routes() -> list[Route]:
    """Return the routes of the store below the prefix of a service."""
    return [route(f"{PREFIX}{{sha256}}", _get)]


def _get(request: Request) -> Response:
    sha256, query = request.path_params["sha256"], request.query_params
    if "authorization" in request.headers:
        return _refusal(400, "InvalidArgument", "Only one auth mechanism allowed")
    expires = query.get("X-Amz-Expires", "0")
    signature = _signature(sha256, expires).encode()
    given = query.get("X-Amz-Signature", "").encode()
    if request.method != "GET" or not hmac.compare_digest(signature, given):
        return _refusal(403, "SignatureDoesNotMatch", "The signature does not match.")
    if not expires.isdigit() or int(expires) < time.time():
        return _refusal(403, "AccessDenied", "Request has expired")
    path = context(request).store.blobs.path(sha256)
    if not path.exists():
        return _refusal(404, "NoSuchKey", "The specified key does not exist.")
    headers = {"ETag": f'"{sha256[:32]}-1"', "Server": "AmazonS3"}
    return FileResponse(path, headers=headers, media_type="application/octet-stream")


def _refusal(status: int, code: str, message: str) -> Response:
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Response(text, status, media_type="application/xml")
