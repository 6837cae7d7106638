# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP client of the CI server: transport, JSON access and error messages [W4.4, W5]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import errors
from ..core.address import is_login_page, target
from ..core.http.messages import REDIRECTS, Response, unexpected_body
from ..core.http.transport import Transport
from ..core.module.task import Task
from .service import Crumb

READ_SERVER = "hudson.model.Hudson.Read"
SYSTEM_READ = "hudson.model.Hudson.SystemRead"
MANAGE = "hudson.model.Hudson.Manage"
ADMINISTER = "hudson.model.Hudson.Administer"
READ_JOB = "hudson.model.Item.Read"
EXTENDED_READ = "hudson.model.Item.ExtendedRead"
CREATE = "hudson.model.Item.Create"
CONFIGURE = "hudson.model.Item.Configure"
DELETE = "hudson.model.Item.Delete"
BUILD = "hudson.model.Item.Build"
CANCEL = "hudson.model.Item.Cancel"
DELETE_RUN = "hudson.model.Run.Delete"
UPDATE_RUN = "hudson.model.Run.Update"
#: Permissions without which the server reports that a job does not exist.
SEES_JOB = (READ_SERVER, READ_JOB)
_CREDENTIALS = "com.cloudbees.plugins.credentials.CredentialsProvider"
VIEW_CREDENTIALS = f"{_CREDENTIALS}.View"
CREATE_CREDENTIALS = f"{_CREDENTIALS}.Create"
UPDATE_CREDENTIALS = f"{_CREDENTIALS}.Update"
DELETE_CREDENTIALS = f"{_CREDENTIALS}.Delete"
OF_CREDENTIALS = (VIEW_CREDENTIALS, CREATE_CREDENTIALS, UPDATE_CREDENTIALS, DELETE_CREDENTIALS)
CREATE_NODE = "hudson.model.Computer.Create"
READ_NODE = "hudson.model.Computer.ExtendedRead"
CONFIGURE_NODE = "hudson.model.Computer.Configure"
DELETE_NODE = "hudson.model.Computer.Delete"
DISCONNECT_NODE = "hudson.model.Computer.Disconnect"
CONNECT_NODE = "hudson.model.Computer.Connect"
OF_NODES = (CREATE_NODE, READ_NODE, CONFIGURE_NODE, DELETE_NODE, DISCONNECT_NODE, CONNECT_NODE)
READ_VIEW = "hudson.model.View.Read"
CREATE_VIEW = "hudson.model.View.Create"
CONFIGURE_VIEW = "hudson.model.View.Configure"
DELETE_VIEW = "hudson.model.View.Delete"
OF_VIEWS = (READ_VIEW, CREATE_VIEW, CONFIGURE_VIEW, DELETE_VIEW)


#: Path of a job. A job may be named `login`, so its path does not count as a login page.
_JOB = re.compile(r"/job/[^/?#]+/?(?:[?#]|$)")
_CHARSET = re.compile(r"(?i)\bcharset=\"?([\w.:-]+)")
_DECLARATION = re.compile(rb"\s*<\?xml\b(?:[^>]*?\bencoding=[\"']([\w.-]+))?|\xef\xbb\xbf")
_LOGGING_ID = re.compile(r"Logging ID=([0-9A-Za-z-]+)")


def server_of(task: Task, *, connections: int = 10) -> Transport:
    """Return the transport of a task. Its writes send the CSRF crumb.

    :param connections: maximum number of open connections
    """
    return task.transport(describe=describe, guard=Crumb, connections=connections)


def refuse_page(response: Response) -> None:
    """Raise `auth` if a successful response to a write is a login form, `protocol` for another HTML
    page.
    """
    if response.status < 300 and errors.looks_like_html(response.text):
        raise unexpected_body(response, "another response")


def require_confirmation(server: Transport, response: Response) -> None:
    """Raise an error if the response does not confirm a write: an HTML page, or a redirect to a
    login page.
    """
    location = response.headers.get("Location")
    if response.status not in REDIRECTS or location is None:
        refuse_page(response)
    elif leads_to_login(response, location):
        raise server.failure(response)


def leads_to_login(response: Response, location: str) -> bool:
    """Return whether a redirect leads to a login page, and not to a job named `login`."""
    there = target(response.url, location)
    return is_login_page(there) and _JOB.search(there) is None


def object_of(response: Response) -> Mapping[str, Any]:
    """Return the JSON object in a response. Raises `protocol` for other content."""
    shown = response.json()
    if not isinstance(shown, Mapping):
        raise response.error("protocol", "the server returned JSON that is not an object")
    return shown


def document_text(response: Response) -> str:
    """Return the text of a `config.xml`.

    Server fact [ci-14]: some of them have neither a charset nor a declaration, and are ISO-8859-1.
    """
    header = _CHARSET.search(response.headers.get("Content-Type", ""))
    declaration = _DECLARATION.match(response.body)
    charset = "utf-8" if declaration else "iso-8859-1"
    if header:
        charset = header[1]
    elif declaration and declaration[1]:
        charset = declaration[1].decode("ascii")
    try:
        return response.body.decode(charset, errors="replace")
    except LookupError:
        return response.text


def part(value: object) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object, otherwise an empty object."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the JSON objects in a list. Return an empty list if `value` is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def describe(response: Response) -> str:
    """Return the server's error message.

    Server facts [ci-1, ci-4]: the message for a rejected request is in the header `X-Error`, a
    missing permission in `X-Required-Permission`. After an uncaught exception, the HTML page
    contains an id under which the server's log has the stack trace.
    """
    headers = response.headers
    permission = headers.get("X-Required-Permission")
    if permission is not None:
        user = headers.get("X-You-Are-Authenticated-As") or "the account"
        return f"{user} lacks the permission {permission}"
    message = headers.get("X-Error") or errors.error_text(response.text)
    logged = _LOGGING_ID.search(response.text)
    if logged is None or logged[1] in message:
        return message
    return f"{message}; see the id {logged[1]} in the server's log"
