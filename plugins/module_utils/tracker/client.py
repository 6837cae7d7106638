# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the issue tracker: requests, rejected logins, error messages [W4.2]."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import errors
from ..core.address import Query, origin, path_of
from ..core.errors import Kind, ToolchainError
from ..core.http.download import download
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.rejected_logins import require_login, require_scope
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from ..core.module.task import Task
from .scopes import scope_of

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

Taken = TypeVar("Taken")

#: Anti-forgery header [tracker-12].
_UNFORGED = {"X-Atlassian-Token": "no-check"}
#: Memory of created issues, and the maximum number of them that a search may name.
_WRITTEN, _MAX_WRITTEN = "tracker.written", 50
#: Statuses of an optional read, without which the task can continue.
_REFUSED = frozenset({401, 403, 404})


def describe(response: Response) -> str:
    """Return the tracker's error message; some errors are XML although JSON was requested
    [tracker-2].
    """
    _before, begin, rest = response.text.partition("<message>")
    message, end, _behind = rest.partition("</message>")
    if begin and end and response.text.lstrip().startswith("<"):
        return html.unescape(message)
    return errors.error_text(response.text)


class TrackerClient:
    """Requests to the tracker, with its rules for logins and errors."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        self._task, self._connections = task, connections
        self._headers = {"Accept": "application/json"}
        self._accepted = False
        language = task.connection.settings.get("accept_language")
        if language is not None:
            self._headers |= {"Accept-Language": language, "X-Force-Accept-Language": "true"}

    @functools.cached_property
    def _transport(self) -> Transport:
        """Return the transport. With `cloud_id: auto` it reads the id of the site first."""
        return self._task.transport(describe=describe, connections=self._connections)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the memory of this server for the next item of a loop."""
        return self._transport.memory

    @property
    def written(self) -> list[int]:
        """Return the ids of issues that this connection created, newest last: a search of the cloud
        finds them at once if it names them [tracker-11].
        """
        found: list[int] = self.memory.setdefault(_WRITTEN, [])
        return found

    def note_written(self, issue_id: object) -> None:
        """Remember the id of an issue that was created."""
        if str(issue_id).isdecimal():
            self.memory[_WRITTEN] = [*self.written, int(str(issue_id))][-_MAX_WRITTEN:]

    @property
    def url(self) -> str:
        """Return the base address of requests."""
        return self._transport.connection.url

    @property
    def site(self) -> str:
        """Return the base address for people."""
        return self._transport.connection.site or self.url

    def length(self, path: str, query: Query) -> int:
        """Return the length of a request's address in characters."""
        return len(self._transport.url(path, query))

    def read(
        self, purpose: str, path: str, *, expect: Collection[int] = (200,), **parts: Any
    ) -> Response:
        """Send a read with any method; see `Transport.send`.

        The login is verified with every response first: a query that ran anonymously fails for
        unrelated reasons [tracker-1].
        """
        headers = dict(self._headers)
        if parts.get("method", "GET") != "GET":
            headers.update(_UNFORGED)
        response = self._transport.read(
            purpose, path, expect=expect, headers=headers, validate=self._require_login, **parts
        )
        self._accepted |= response.status < 400
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
        """Send a write once; see `Transport.write`."""
        return self._transport.write(
            purpose,
            method,
            path,
            verify=verify,
            expect=expect,
            headers={**self._headers, **_UNFORGED, **(headers or {})},
            validate=self._require_taken,
            **parts,
        )

    def download(self, purpose: str, address: str, take: Callable[[Incoming], Taken]) -> Taken:
        """Download an absolute address and return the result of `take` (see `core.download`).

        Server fact [tracker-7]: old servers accept no token for attachments and redirect to their
        login page. Another host gets no credentials, and may require some.
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
        """Return the JSON of an optional read; None if the account lacks the permission, or the
        server does not support it. The task continues without it [tracker-40].
        """
        try:
            return json_or_none(self.read(purpose, path, **parts).body)
        except ToolchainError as error:
            if error.status not in _REFUSED:
                raise
            return None

    def _require_login(self, response: Response) -> None:
        asked = response.request
        scopes = scope_of(asked.method, path_of(asked.url), reads=asked.reads)
        require_scope(response, scopes)
        require_login(response, self._transport.connection)

    def _require_taken(self, response: Response) -> None:
        """Verify the login as for a read. An HTML page is not a response to a write. A 401 for an
        account whose reads succeeded is not about its login [tracker-18].
        """
        self._require_login(response)
        if response.status < 300 and errors.looks_like_html(response.text):
            raise unexpected_body(response, "another response")
        if response.status in (404, 405) and not _is_of_tracker(response):
            error_message = (
                f"the server returned {response.status}, and does not support this request"
            )
            kind: Kind = "not_found" if response.status == 404 else "rejected"
            raise response.error(
                kind, f"{error_message}: the documented interface cannot change anything"
            )
        if response.status == 401 and self._accepted:
            error_message = errors.shorten(describe(response))
            message = "the server returned 401, although it accepts the login for other requests"
            raise response.error(
                "permission",
                f"{message}: {error_message}" if error_message else message,
                error_message,
            )


def _is_of_tracker(response: Response) -> bool:
    """Return whether an error is from the tracker, not from a server without such an address
    [tracker-2].
    """
    reported = json_or_none(response.body)
    return isinstance(reported, Mapping) and bool({"errorMessages", "errors"} & set(reported))
