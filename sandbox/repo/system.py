# SPDX-License-Identifier: GPL-3.0-or-later
"""What the server tells of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: Before 7.82.2: clients that know uploads in parts do not ask for them.
_VERSION = "7.77.5"


def version(request: Request) -> Response:
    """GET /api/system/version: as the vendor's client reads it before it sends a large file
    (jfrog-client-go, artifactory/services/system.go).
    """
    return JSONResponse({"version": _VERSION, "revision": "77705900", "addons": []})
