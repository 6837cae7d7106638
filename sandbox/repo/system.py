# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle requests for the state of the system, and define the identification headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: A version before 7.82.2, because clients send multipart uploads to newer servers.
_VERSION = "7.77.5"
PING = "/api/system/ping"
HEADERS = {
    "X-JFrog-Version": f"Artifactory/{_VERSION} 77705900",
    "X-Artifactory-Id": "0123456789abcdef:-1a2b3c4d:18f0e1d2c3b:-8000",
    "X-Artifactory-Node-Id": "sandbox",
}


def ping(_request: Request) -> Response:
    """Handle GET /api/system/ping [repo-5]: confirm that the server is running."""
    return PlainTextResponse("OK")


def version(request: Request) -> Response:
    """Handle GET /api/system/version: return the version.

    The vendor's client reads it before it uploads a large file (jfrog-client-go,
    artifactory/services/system.go).
    """
    return JSONResponse({"version": _VERSION, "revision": "77705900", "addons": []})
