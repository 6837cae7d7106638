# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads of attachments, on servers and in the cloud [tracker-7]."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from sandbox.accounts import login_of, rights_of
from sandbox.context import Service
from sandbox.tracker.visible import VisibleData

Json = dict[str, Any]

#: Paths that require no login: the media host of the cloud, and the login page.
MEDIA, LOGIN_PAGE = "/media/", "/login.jsp"
_TOKEN_MS = 60_000
# Another name of this machine, so that the media host has another origin than the service.
_OTHER_NAMES = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}
_NOT_FOUND = "<html><body>Page not found</body></html>"
_LOGIN_FORM = (
    "<!DOCTYPE html><html><head><title>Log in - Sandbox</title></head><body>"
    '<form action="/login.jsp" method="post"><input type="text" name="os_username">'
    '<input type="password" name="os_password"></form></body></html>'
)


class Attachments:
    """Request handlers for downloads of attachments."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._secret = secrets.token_bytes()

    async def secure(self, request: Request) -> Response:
        """GET /secure/attachment/{id}/{name}: the content; the name may be omitted [W4.2].

        Server fact [tracker-7]: the server redirects to its login page if an anonymous account may
        not see the attachment. Older releases also do so for logins that only the REST interface
        accepts, such as personal tokens.
        """
        kind = request.headers.get("authorization", "").partition(" ")[0].lower()
        accepted = kind in ("", *self._service.settings["attachment_logins"])
        found = self.visible(request)
        is_hidden = found is None and login_of(request).user is None
        if self._service.real and (not accepted or is_hidden):
            back = quote(request.scope["path"], safe="")
            address = f"/{self._service.name}{LOGIN_PAGE}?os_destination={back}"
            return RedirectResponse(address, 302)
        name = request.path_params.get("name", "")
        if found is None or name not in ("", found["filename"]):
            return HTMLResponse(_NOT_FOUND, 404)
        return self._file(found)

    async def content(self, request: Request) -> Response:
        """GET /rest/api/{2,3}/attachment/content/{id} of the cloud: the content.

        The response redirects to a signed URL on another host, unless the query has
        `redirect=false`.
        """
        found = self.visible(request)
        if found is None:
            message = f"The attachment with id '{request.path_params['id']}' does not exist"
            return Response(message, 404, media_type="text/plain")
        if request.query_params.get("redirect") == "false":
            return self._file(found)
        context = self._service.context
        base = context.base_url(request, self._service.name)
        scheme, _separator, netloc = base.partition("://")
        name, colon, port = netloc.partition(":")
        host = f"{_OTHER_NAMES.get(name, name)}{colon}{port}"
        expires = str(context.now_ms() + _TOKEN_MS)
        token = f"{expires}.{self._signature(found['id'], expires)}"
        return RedirectResponse(f"{scheme}://{host}{MEDIA}file/{found['id']}?token={token}", 303)

    async def media(self, request: Request) -> Response:
        """Return a file of the media host, which only requires the token in the URL."""
        number = request.path_params["id"]
        expires, _dot, signature = request.query_params.get("token", "").partition(".")
        good = hmac.compare_digest(signature, self._signature(number, expires))
        if not good or int(expires) < self._service.context.now_ms():
            return Response("Forbidden", 403, media_type="text/plain")
        found = self._service.context.store.get("tracker.attachment", number)
        return Response(status_code=404) if found is None else self._file(found)

    async def login_page(self, request: Request) -> Response:
        """Return the login page. Its status 200 may mislead clients that expect a file."""
        return HTMLResponse(_LOGIN_FORM)

    def visible(self, request: Request) -> Json | None:
        """Return the requested attachment if the account can see its issue, else None."""
        context = self._service.context
        found = context.store.get("tracker.attachment", request.path_params["id"])
        visible = VisibleData(context.store, rights_of(request, self._service), context.now_ms())
        return found if found is not None and visible.find(found["issue"]) is not None else None

    def _signature(self, number: str, expires: str) -> str:
        return hmac.new(self._secret, f"{number}:{expires}".encode(), hashlib.sha256).hexdigest()

    def _file(self, found: Json) -> Response:
        path = self._service.context.store.blobs.path(found["sha256"])
        return FileResponse(path, media_type=found["mimeType"], filename=found["filename"])
