# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the issue tracker: sends requests and explains errors [W4.2]."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..atlassian.rejected_logins import require_login, require_scope
from ..atlassian.scopes import ScopeTable
from ..atlassian.service import is_cloud
from ..core import errors
from ..core.address import Query, origin, path_of
from ..core.errors import Kind, ToolchainError
from ..core.http.file_download import download
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from ..core.json_text import member
from ..core.module.task import Task

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

Taken = TypeVar("Taken")

#: Anti-forgery header [tracker-12].
_XSRF_HEADER = {"X-Atlassian-Token": "no-check"}
#: Key for the ids of written issues in `memory`, and in the folder of the run; and how many of them
#: a search may name.
_WRITTEN, _MAX_WRITTEN = "tracker.written", 50
#: Key in `memory` for the `deploymentType` of the server.
_KIND, _CLOUD = "tracker.deployment", "Cloud"
#: Header of the cloud: the account of the request [tracker-1].
_ACCOUNT = "X-AACCOUNTID"
#: Statuses of an optional read, without which the task can continue.
_REFUSED = frozenset({401, 403, 404})


#: Scopes of a token in the cloud that requests require [tracker-40].
_SCOPES = ScopeTable(
    (
        ("*", r"/(?:user|myself|configuration|groups/picker)\b", "read:jira-user"),
        ("GET", r"/auditing/record\b", "manage:jira-configuration"),
        ("GET", "", "read:jira-work"),
        ("POST", r"/project/[^/]+/role/", "manage:jira-configuration"),
        ("*", r"/(?:version|component|project)\b", "manage:jira-project"),
        ("*", "", "write:jira-work"),
    )
)


def scope_of(method: str, path: str, *, reads: bool) -> str:
    """Return the scope of a request.

    :param reads: whether the request only reads, which some POST requests do
    """
    (scope,) = _SCOPES.of("GET" if reads else method, path)
    return scope


def describe(response: Response) -> str:
    """Return the error message of a response, which may be XML instead of JSON [tracker-2]."""
    _before, begin, xml = response.text.partition("<message>")
    message, end, _after = xml.partition("</message>")
    if begin and end and response.text.lstrip().startswith("<"):
        return html.unescape(message)
    return errors.error_text(response.text)


def not_visible(response: Response, names: str = "") -> ToolchainError:
    """Return the error for a 404, which also reports an object that is not visible [tracker-5].

    :param names: the missing objects, unless the purpose of the request names them
    """
    message = describe(response)
    missing = f"missing, or not visible to this account{names and f': {names}'}"
    return response.error("not_found", f"{missing}; the server returned 404: {message}", message)


class TrackerClient:
    """Send requests to the tracker, and raise errors that explain its responses."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        self._task, self._connections = task, connections
        self._headers = {"Accept": "application/json"}
        self._accepted = False
        language = task.connection.settings.get("accept_language")
        if language is not None:
            self._headers |= {"Accept-Language": language, "X-Force-Accept-Language": "true"}

    @functools.cached_property
    def _transport(self) -> Transport:
        """Return the transport. With `cloud_id: auto`, creating it reads the id of the site."""
        return self._task.transport(describe=describe, connections=self._connections)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the values cached for this server, which the items of a loop share."""
        return self._transport.memory

    @property
    def known_cloud(self) -> bool | None:
        """Return whether the server is in the cloud. None if no request has shown it yet."""
        dialect = str(self._task.connection.settings["dialect"])
        if dialect != "auto" or is_cloud(self._task.connection):
            return dialect != "server"
        kind = self.memory.get(_KIND)
        return None if kind is None else bool(kind == _CLOUD)

    @property
    def cloud(self) -> bool:
        """Return whether the server is in the cloud. The server is asked once [tracker-3]."""
        known = self.known_cloud
        if known is None:
            purpose = "detecting the type of the tracker"
            reported = self.read_optional(purpose, "rest/api/2/serverInfo")
            self.memory[_KIND] = str(member(reported, "deploymentType"))
            known = bool(self.memory[_KIND] == _CLOUD)
        return known

    @property
    def written(self) -> list[int]:
        """Return the ids of issues that this run has written, at most 50.

        The cloud finds the current state of an issue only if the search names its id [tracker-11].
        """
        known: dict[str, int] = self.memory.get(_WRITTEN, {})
        return sorted({**self._task.created.all(_WRITTEN, ""), **known}.values())

    def note_written(self, issue_id: object) -> None:
        """Record the id of an issue for later searches of this run.

        It replaces an id with the same remainder, so that the newest ids of a series stay.
        """
        if str(issue_id).isdecimal():
            number = int(str(issue_id))
            place = str(number % _MAX_WRITTEN)
            self.memory[_WRITTEN] = {**self.memory.get(_WRITTEN, {}), place: number}
            self._task.created.add(_WRITTEN, "", place, value=number)

    @property
    def url(self) -> str:
        """Return the base URL of requests."""
        return self._transport.connection.url

    @property
    def site(self) -> str:
        """Return the base URL for browsers."""
        return self._transport.connection.site or self.url

    def length(self, path: str, query: Query) -> int:
        """Return the length of a request's URL in characters."""
        return len(self._transport.url(path, query))

    def read(
        self, purpose: str, path: str, *, expect: Collection[int] = (200,), **parts: Any
    ) -> Response:
        """Send a read request, which may have any method; see `Transport.read()`.

        Responses are checked for a rejected login first. The tracker may run such a request
        anonymously, and then its error message is misleading [tracker-1].
        """
        headers = dict(self._headers)
        if parts.get("method", "GET") != "GET":
            headers.update(_XSRF_HEADER)
        response = self._transport.read(
            purpose, path, expect=expect, headers=headers, validate=self._require_login, **parts
        )
        self._accepted |= response.status < 400
        if _ACCOUNT in response.headers:
            self.memory[_KIND] = _CLOUD
        return response

    def write(
        self,
        purpose: str,
        method: str,
        path: str,
        *,
        verify: Verify,
        expect: Collection[int] = (200, 201, 204),
        headers: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> Response:
        """Send a write request once; see `Transport.write()`."""
        return self._transport.write(
            purpose,
            method,
            path,
            verify=verify,
            expect=expect,
            headers={**self._headers, **_XSRF_HEADER, **(headers or {})},
            validate=self._validate_write,
            **parts,
        )

    def download(self, purpose: str, address: str, take: Callable[[Incoming], Taken]) -> Taken:
        """Download an absolute URL. Return the result of `take`, which reads the response.

        Server fact [tracker-7]: old servers do not accept tokens for attachments, and redirect to
        their login page. Credentials are not sent to another host, which may require a login.
        """
        connection = self._transport.connection
        try:
            return download(self._transport, purpose, address, take, validate=self._require_login)
        except ToolchainError as error:
            if error.kind == "auth" and origin(address) != origin(connection.url):
                error.with_hint(
                    "the address is not on the server in url, and the login is only sent to that"
                    " server"
                )
            elif error.kind == "auth" and connection.token is not None:
                error.with_hint(
                    "old servers do not accept tokens for attachments: use username and password"
                    " instead"
                )
            raise

    def read_optional(self, purpose: str, path: str, **parts: Any) -> Any:
        """Return the JSON of a read that the task can do without.

        Returns None if the account lacks the permission or the server does not support the read
        [tracker-40]. A rejected login fails the task if no request was accepted before, because the
        next request would repeat it.
        """
        try:
            return self.read(purpose, path, **parts).json()
        except ToolchainError as error:
            malformed = error.kind == "protocol" and error.status == 200
            rejected = error.kind == "auth" and not self._accepted
            if rejected or not (malformed or error.status in _REFUSED):
                raise
            return None

    def _require_login(self, response: Response) -> None:
        request = response.request
        scope = scope_of(request.method, path_of(request.url), reads=request.reads)
        require_scope(response, scope)
        require_login(response, self._transport.connection)

    def _validate_write(self, response: Response) -> None:
        """Check the response to a write.

        Raises `protocol` for an HTML page. Raises `permission` for a 401 if a read has succeeded,
        because then the login is valid [tracker-18].
        """
        self._require_login(response)
        if response.status < 300 and errors.looks_like_html(response.text):
            raise unexpected_body(response, "another response")
        reported = json_or_none(response.body)
        reported = reported if isinstance(reported, Mapping) else {}
        # without these members, the error is about a missing route [tracker-2]
        is_of_tracker = bool({"errorMessages", "errors"} & set(reported))
        if response.status in (404, 405) and not is_of_tracker:
            kind: Kind = "not_found" if response.status == 404 else "rejected"
            raise response.error(
                kind,
                f"the server returned {response.status}: it does not support this change, which"
                " the documented interface does not include",
            )
        if response.status == 401 and self._accepted:
            error_message = errors.shorten(describe(response))
            message = "the server returned 401, although it accepts the login for other requests"
            raise response.error(
                "permission",
                f"{message}: {error_message}" if error_message else message,
                error_message,
            )
