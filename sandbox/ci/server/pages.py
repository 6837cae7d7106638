# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML pages, error pages and redirects of the CI server."""

from __future__ import annotations

import html
import re
import uuid

from starlette.responses import Response

# Server fact [ci-1]: a repeated header contains the permissions that imply the missing permission.
IMPLIED_BY = ("hudson.security.Permission.GenericWrite", "hudson.model.Hudson.Administer")
RETRY_FORM = (
    "<form method='POST' action='.'>This URL requires POST. "
    "<input type='submit' value='Try POSTing'></form>"
)


def page(
    title: str, body: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return an HTML page. `title` is escaped, `body` is HTML."""
    text = (
        f"<!DOCTYPE html><html><head><title>{html.escape(title)}</title></head>"
        f"<body><h1>{html.escape(title)}</h1>{body}</body></html>"
    )
    return Response(text, status, headers, "text/html")


def not_found() -> Response:
    return page("Not Found - Jenkins", "<p>The page that you asked for does not exist.</p>", 404)


def oops(message: str) -> Response:
    """Return the page for an uncaught exception. Server fact [ci-4]: it contains a logging id, but
    no stack trace.
    """
    body = (
        "<h2>Oops!</h2><p>A problem occurred while processing the request.</p>"
        f"<p>Logging ID={uuid.uuid4()}</p><!-- {html.escape(message)} -->"
    )
    return page("Jenkins - Oops!", body, 500)


def failed(message: str, status: int = 400) -> Response:
    """Return an error page. Server fact [ci-4]: the header `X-Error` contains the message."""
    headers = {"X-Error": re.sub(r"[^ -~]", " ", message).strip()}
    return page("Error - Jenkins", f"<p>{html.escape(message)}</p>", status, headers)


def refused(message: str, status: int) -> Response:
    """Return an error page of the servlet container, without the header `X-Error` [ci-4]."""
    return page(f"Error {status} {message}", f"<h2>HTTP ERROR {status} {message}</h2>", status)


def no_crumb() -> Response:
    """Return the 403 for a POST without a valid crumb [ci-2]."""
    message = "No valid crumb was included in the request"
    return page(f"Error 403 {message}", f"<h2>HTTP ERROR 403 {message}</h2>", 403)


def bad_credentials() -> Response:
    """Return the 401 for wrong Basic credentials, with a challenge [ci-1]."""
    challenge = {"WWW-Authenticate": 'Basic realm="Jenkins"'}
    return page("Error 401 Unauthorized", "<p>Invalid password/token for user</p>", 401, challenge)


def denied(user: str | None, permission: str) -> Response:
    """Return the 403 for a missing permission, with the permission in a header [ci-1]."""
    headers = {
        "X-You-Are-Authenticated-As": user or "anonymous",
        "X-Required-Permission": permission,
    }
    if user is None:
        text = (
            "<html><head><meta http-equiv='refresh' content='1;url=login?from=%2F'/></head>"
            "<body style='color:white;'>Authentication required</body></html>"
        )
        response = Response(text, 403, headers, "text/html")
    else:
        message = f"<p>{html.escape(user)} is missing the permission {permission}</p>"
        response = page("Access Denied [Jenkins]", message, 403, headers)
    for implied_by in IMPLIED_BY:
        response.headers.append("X-Permission-Implied-By", implied_by)
    return response


def post_only() -> Response:
    """Return the 405 for a GET request of a path that requires POST [ci-4]."""
    return page("Form post required", RETRY_FORM, 405, {"Allow": "POST"})


def redirect(location: str, status: int = 302) -> Response:
    return Response(b"", status, {"Location": location})


def text(content: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status, headers, "text/plain")
