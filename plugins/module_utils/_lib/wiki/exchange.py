# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the wiki: logins, scopes, error messages, versions of the interface [wiki-2]."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from ..atlassian.rejected_logins import require_login, require_scope
from ..atlassian.scopes import ScopeTable
from ..atlassian.service import is_cloud
from ..core import errors
from ..core.address import path, path_of
from ..core.http import paged_list
from ..core.http.file_download import RemoteContent, Taken, download, download_into
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.transport import Transport
from ..core.json_text import member
from ..core.module.task import Task
from .page import Page, page_of

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

CONTENT = "rest/api/content"
#: Server fact [wiki-11]: the server returns at most this many entries in a page of a list.
_LIMIT = 200
_SPACES = "api/v2/spaces"
#: Key in `memory` for the version of the interface, 1 or 2.
_VERSION = "wiki.version"
_SUCCESSOR = "its successor is api/v2/pages: set dialect to auto or cloud_v2"
_JAVA_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
# The path of a wiki on a cloud site or on the gateway; the group is the path below the wiki.
_BELOW_WIKI = re.compile(r"(?:/ex/confluence/[^/]+)?/wiki(/.*)")

#: Scopes of a token in the cloud that requests require [wiki-30].
_SCOPES = ScopeTable(
    (
        # version 2 of the interface
        ("GET", r"/api/v2/pages/[^/]+/properties", "read:page"),
        ("*", r"/api/v2/pages/[^/]+/properties", "write:page read:page"),
        ("GET", r"/api/v2/pages/[^/]+/labels", "read:page"),
        ("*", r"/api/v2/.*comments", "read:comment"),
        ("GET", r"/api/v2/.*attachments", "read:attachment"),
        ("DELETE", r"/api/v2/attachments", "delete:attachment"),
        ("GET", r"/api/v2/.*/(?:descendants|direct-children)", "read:hierarchical-content"),
        ("GET", r"/api/v2/.*/ancestors", "read:content.metadata"),
        ("GET", r"/api/v2/folders", "read:folder"),
        ("GET", r"/api/v2/spaces/[^/]+/(?:pages|blogposts)", "read:page"),
        ("GET", r"/api/v2/spaces", "read:space"),
        ("GET", r"/api/v2/", "read:page"),
        ("DELETE", r"/api/v2/", "delete:page"),
        ("*", r"/api/v2/", "write:page"),
        # version 1
        ("GET", r"/label", "read:label"),
        ("POST", r"/label", "write:label read:label"),
        ("*", r"/label", "write:label"),
        ("GET", r"/property\b", "read:content.property"),
        ("*", r"/property\b", "write:content.property"),
        ("GET", r"/attachment|/download/", "read:attachment"),
        ("*", r"/attachment", "write:attachment read:content-details"),
        ("*", r"/space/[^/]+/permission\b", "write:space.permission read:space.permission"),
        ("GET", r"/space(?:/[^/]+)?/?$", "read:space"),
        ("DELETE", r"/space/[^/]+/?$", "delete:space read:content.metadata"),
        ("*", r"/space(?:/[^/]+)?/?$", "write:space read:space-details write:space.permission"),
        ("GET", r"/group\b", "read:group"),
        ("GET", r"/user/memberof", "read:group read:user"),
        ("GET", "", "read:content-details"),
        ("*", r"/restriction", "write:content.restriction read:content-details"),
        ("*", "", "write:content"),
    )
)


def scopes_of(method: str, path: str) -> tuple[str, ...]:
    """Return the scopes of a token that a request requires, the most specific one first."""
    return tuple(f"{scope}:confluence" for scope in _SCOPES.of(method, path))


def describe(response: Response) -> str:
    """Return the error message of a response, without the Java package of an exception [wiki-2]."""
    decoded = json_or_none(response.body)
    text = member(decoded, "message")
    if not isinstance(text, str):
        return errors.error_text(response.text)
    lines = [_JAVA_PACKAGE.sub("", text).strip()]
    details = member(decoded, "data", "errors")
    for entry in details if isinstance(details, list) else ():
        message = member(entry, "message")
        if isinstance(message, Mapping):
            message = message.get("translation") or message.get("key")
        lines += [message] if isinstance(message, str) else []
    return "; ".join(dict.fromkeys(filter(None, lines)))


class WikiExchange:
    """Send the requests of a task to the wiki."""

    def __init__(self, task: Task, connections: int) -> None:
        self._task, self._connections = task, connections

    @functools.cached_property
    def transport(self) -> Transport:
        """Return the transport. With `cloud_id: auto`, creating it reads the id of the site."""
        return self._task.transport(describe=describe, connections=self._connections)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the values cached for this server, which the items of a loop share."""
        return self.transport.memory

    @property
    def site(self) -> str:
        """Return the URL of the site for browsers if requests go to a gateway, else ''."""
        return self.transport.connection.site

    # -- version of the interface --------------------------------------------------------------

    @property
    def version(self) -> int:
        """Return the version of the interface, 1 or 2. The cloud is probed once [wiki-30]."""
        if _VERSION not in self.memory:
            is_second = self._dialect == "cloud_v2"
            if self._dialect == "auto":
                is_second = is_cloud(self._task.connection) and self._has_version_2()
            self.memory[_VERSION] = 2 if is_second else 1
        return int(self.memory[_VERSION])

    @property
    def _dialect(self) -> str:
        return str(self._task.connection.settings.get("dialect", "auto"))

    @property
    def is_in_cloud(self) -> bool:
        """Return whether the server is in the cloud, by its address or the dialect."""
        is_known = self._dialect == "auto" and is_cloud(self._task.connection)
        return is_known or self._dialect.startswith("cloud")

    def _has_version_2(self) -> bool:
        """Return whether the server has version 2, regardless of the permissions of the account."""
        purpose = "checking for version 2 of the wiki's interface"
        try:
            response = self.ask(purpose, _SPACES, {"limit": 1}, (200, 400, 403, 404, 405))
        except errors.ToolchainError as error:
            if error.kind != "permission" and error.status != 410:
                raise
            return error.kind == "permission"
        listed = isinstance(member(json_or_none(response.body), "results"), list)
        return response.status == 403 or (response.status == 200 and listed)

    def switches(self, error: errors.ToolchainError) -> bool:
        """Return whether to repeat a read with version 2, because version 1 is gone [wiki-30]."""
        if error.status != 410 or self._dialect != "auto" or self.version == 2:
            return False
        if self._has_version_2():
            self.memory[_VERSION] = 2
        return self.version == 2

    # -- requests ------------------------------------------------------------------------------

    def ask(
        self, purpose: str, route: str, query: Mapping[str, Any], expect: Collection[int]
    ) -> Response:
        """Send a read request."""
        headers, validate = {"Accept": "application/json"}, self._require_login
        return self.transport.read(
            purpose, route, query=query, headers=headers, expect=expect, validate=validate
        )

    def listing(
        self,
        purpose: str,
        route: str,
        query: Mapping[str, Any],
        *needed: str,
        most: int | None = None,
    ) -> list[Any]:
        """Return the entries of a list of version 1.

        :param needed: members of each entry, as in `results_of()`
        :param most: stop after the page with more entries than this; None reads all pages
        """

        def read(start: int, _link: Any) -> paged_list.Page:
            part = {**query, "start": start, "limit": _LIMIT}
            response = self.ask(purpose, route, part, (200,))
            entries, shown = results_of(response, "a list", *needed), response.json()
            link = member(shown, "_links", "next")
            starts = parse_qs(urlsplit(str(link or "")).query).get("start", [])
            following = next((int(start) for start in starts if start.isdecimal()), None)
            return paged_list.Page(response, shown, entries, link, following)

        return paged_list.read_all(read, _LIMIT, most)

    def send(
        self, purpose: str, method: str, route: str, expect: tuple[int, ...], **parts: Any
    ) -> Response:
        """Send a write request with the XSRF header.

        :param parts: further arguments of `Transport.write()`
        """
        defaults = {"Accept": "application/json", "X-Atlassian-Token": "no-check"}
        parts["headers"] = {**defaults, **parts.get("headers", {})}
        validate = self._validate_write
        return self.transport.write(
            purpose, method, route, expect=expect, validate=validate, **parts
        )

    def download(self, purpose: str, route: str, take: Callable[[Incoming], Taken]) -> Taken:
        """Download a file. Return the result of `take`, which reads the response."""
        validate = self._require_login
        return download(self.transport, purpose, self._rebased(route), take, validate=validate)

    def download_into(self, purpose: str, route: str, file: IO[bytes], size: int) -> None:
        """Download `size` bytes into an open file. Raises `protocol` if the size differs."""
        content, validate = RemoteContent(size=size), self._require_login
        route = self._rebased(route)
        download_into(self.transport, purpose, route, file, content=content, validate=validate)

    def _rebased(self, route: str) -> str:
        """Return the path of a link relative to the base URL of the connection.

        The cloud may return links to the site although the request went to the gateway
        [tracker-40].
        """
        if not is_cloud(self._task.connection) and self.version == 1:
            return route
        parts = urlsplit(route)
        below = _BELOW_WIKI.fullmatch(parts.path)
        if below is None and parts.netloc:
            return route
        found = parts.path if below is None else below[1]
        return f"{found}?{parts.query}" if parts.query else found

    def _require_login(self, response: Response) -> None:
        asked = response.request
        require_scope(response, scopes_of(asked.method, path_of(asked.url))[0])
        require_login(response, self.transport.connection)
        if response.status == 410:
            message = errors.shorten(describe(response))
            raise response.error(
                "not_found", f"the server returned 410: {message}; {_SUCCESSOR}", message
            )

    def _validate_write(self, response: Response) -> None:
        """Validate like a read, and raise `protocol` for an HTML page with a success status."""
        self._require_login(response)
        if response.status < 300 and errors.looks_like_html(response.text):
            raise unexpected_body(response, "another response")

    # -- responses -----------------------------------------------------------------------------

    def page(self, response: Response, content: Any, space: str | None) -> Page:
        """Parse the JSON of a page. Raises `protocol` if it has no id, title or version."""
        found = page_of(content, space, self.site or self.transport.connection.url)
        if found is None:
            raise unexpected_body(response, "a page with id, title and version")
        return found


def saved_in(page: Any) -> tuple[str, str] | None:
    """Return title and body of a version of a page, or None if the answer has none."""
    title, body = member(page, "title"), member(page, "body", "storage", "value")
    return (title, body) if isinstance(title, str) and isinstance(body, str) else None


def results_of(response: Response, wanted: str, *needed: str) -> list[Any]:
    """Return the `results` of a response.

    Raises `protocol` if they are not a list of objects with the needed members. An entry that was
    dropped instead would look like an object that does not exist.

    :param wanted: the expected content, for the error message
    :param needed: names of members, such as `version.number`
    """
    results = member(response.json(), "results")
    if not isinstance(results, list) or not all(isinstance(result, Mapping) for result in results):
        raise unexpected_body(response, wanted)
    for name in needed:
        if any(member(entry, *name.split(".")) is None for entry in results):
            raise response.error("protocol", f"the server returned a list entry without '{name}'")
    return results


def space_of(response: Response, shown: Any, home: Any, description: Any) -> dict[str, Any]:
    """Return a space as `id`, `name`, `description` and `home_page`.

    Raises `protocol` if it has no id or name.

    :param shown: the server's JSON object
    :param home: title of the home page, or None
    """
    name, number = member(shown, "name"), member(shown, "id")
    if not isinstance(name, str) or number is None:
        raise unexpected_body(response, "a space")
    text = str(description or "")
    return {"id": str(number), "name": name, "description": text, "home_page": home}


def content_route(page_id: str, *below: str) -> str:
    """Return the route of a page in version 1, or of a resource below the page."""
    return "/".join((CONTENT, path(page_id, *below)))
