# SPDX-License-Identifier: GPL-3.0-or-later
"""System information: ping, version and identification headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: A version before 7.82.2, so that clients do not use multipart uploads.
_VERSION = "7.77.5"
PING = "/api/system/ping"
HEADERS = {
    "X-JFrog-Version": f"Artifactory/{_VERSION} 77705900",
    "X-Artifactory-Id": "0123456789abcdef:-1a2b3c4d:18f0e1d2c3b:-8000",
    "X-Artifactory-Node-Id": "sandbox",
}


def ping(_request: Request) -> Response:
    """GET /api/system/ping: server fact [repo-5]."""
    return PlainTextResponse("OK")


def version(request: Request) -> Response:
    """GET /api/system/version, which the vendor's client reads before it uploads a large file
    (jfrog-client-go, artifactory/services/system.go).
    """
    return JSONResponse({"version": _VERSION, "revision": "77705900", "addons": []})
