# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP client of the CI server: transport, error messages, JSON, and objects that are stored as XML
[W4.4, W5].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..core import errors
from ..core.address import is_login_page, target
from ..core.errors import ToolchainError
from ..core.http.messages import REDIRECTS, Response, json_or_none, unexpected_body
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from ..core.json_text import member
from ..core.module.authorship import Author, author
from ..core.module.task import Task
from . import xml_reader
from .service import Crumb
from .xml_reader import XmlElement

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
#: The server translates the reason for which a node is offline [ci-41].
_ENGLISH = {"Accept-Language": "en"}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
#: Characters that require XML 1.1. Very old servers can only read XML 1.0 [ci-14].
_NEWER = re.compile(r"&#|[\x01-\x08\x0b\x0c\x0e-\x1f]")
_DONE = (200, 201, 202, 204)
#: The server redirects after a form [ci-41], a new build [ci-6], or the configuration of a job
#: [ci-21].
REDIRECTED = (*_DONE, 302, 303)
FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_COMPUTED = ("MultiBranchProject", "OrganizationFolder")


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


def is_folder(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a folder of any kind."""
    name = str(shown.get("_class"))
    return "jobs" in shown or name == FOLDER or name.endswith(_COMPUTED)


def is_computed(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a computed folder, such as a multibranch project.

    Only computed folders have the field `buildable`.
    """
    named = str(shown.get("_class")).endswith(_COMPUTED)
    return is_folder(shown) and (named or "buildable" in shown)


@contextmanager
def naming_class(name: str) -> Iterator[None]:
    """Add a hint to an error of the server for an object of the class `name`.

    Server facts [ci-21, ci-42]: a class that the server does not know is an uncaught exception.
    """
    try:
        yield
    except ToolchainError as error:
        if error.status == 500:
            error.with_hint(f"the plugin with the class {name} may be missing")
        raise


class ServerObjects:
    """Sends requests for objects of the server."""

    def __init__(self, server: Transport) -> None:
        self._server = server

    def read(self, purpose: str, path: str, tree: str | None = None) -> Response | None:
        """Send a read. Return `None` if the CI server responds with 404.

        Raises `not_found` if another server, for example a proxy, responds with 404.
        """
        query = {} if tree is None else {"tree": tree}
        response = self._server.read(
            purpose, path, query=query, headers=_ENGLISH, expect=(200, 404)
        )
        if response.status != 404:
            return response
        # server fact [ci-3]: a response without these headers comes from a proxy
        if "X-Jenkins" not in response.headers and "X-Hudson" not in response.headers:
            raise response.error(
                "not_found", "the server returned 404, but it is not a CI server: check url"
            )
        return None

    def shown(self, purpose: str, path: str, tree: str) -> Mapping[str, Any] | None:
        """Return the JSON of an object, or `None` if the object does not exist."""
        response = self.read(purpose, f"{path}/api/json".lstrip("/"), tree)
        return None if response is None else object_of(response)

    def author(self, purpose: str, path: str) -> Author:
        """Return who changed a job or node last, from the plugin jobConfigHistory [ci-46].

        Its times have no zone, so they are unknown.
        """
        history = "jobConfigHistory"
        response = self.read(purpose, f"{path}/{history}/api/json", f"{history}[date,user,userID]")
        listed = member(None if response is None else json_or_none(response.body), history)
        found = listed if isinstance(listed, list) else ()
        entries = [entry for entry in found if isinstance(member(entry, "date"), str)]
        last = max(entries, key=lambda entry: str(entry["date"]), default=None)
        return author([member(last, "userID"), member(last, "user")])

    def text(self, purpose: str, path: str) -> str | None:
        """Return the XML configuration of an object, or `None` if the object does not exist.

        Raises `protocol` if the response is not XML, for example empty.
        """
        response = self.read(purpose, f"{path}/config.xml")
        if response is None:
            return None
        refuse_page(response)
        text = document_text(response)
        try:
            xml_reader.parse(text)
        except xml_reader.UnreadableXml as error:
            message = f"cannot parse the server's configuration: {error}"
            raise response.error("protocol", message) from None
        return text

    def document(self, purpose: str, path: str) -> XmlElement | None:
        """Return the parsed configuration of an object, or `None` if the object does not exist."""
        text = self.text(purpose, path)
        return None if text is None else xml_reader.parse(text)

    def send(
        self, purpose: str, path: str, root: XmlElement | str, verify: Verify, **parts: Any
    ) -> None:
        """Send the XML configuration of an object."""
        text = root if isinstance(root, str) else xml_reader.written_in_lines(root)
        version = "1.1" if _NEWER.search(text) else "1.0"
        body = f"<?xml version='{version}' encoding='UTF-8'?>\n{text}".encode()
        self.write(purpose, path, verify, headers=_XML, body=body, **parts)

    def delete(self, purpose: str, path: str, gone: Verify) -> None:
        try:
            self.write(purpose, f"{path}/doDelete", gone, form={})
        except ToolchainError as error:
            # another client may have deleted the object at the same time
            if error.status not in (400, 404) or not gone():
                raise

    def write(
        self, purpose: str, path: str, verify: Verify, method: str = "POST", **parts: Any
    ) -> None:
        parts.setdefault("expect", REDIRECTED if "form" in parts else _DONE)
        self._server.write(
            purpose,
            method,
            path,
            validate=partial(require_confirmation, self._server),
            verify=verify,
            **parts,
        )
