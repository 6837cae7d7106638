# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of the issue tracker: requests, refused logins, error texts [W4.2]."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import errors
from ..core.address import Query, origin
from ..core.errors import Kind, ToolchainError
from ..core.http.download import download
from ..core.http.login_refusal import require_login
from ..core.http.messages import Response, json_or_none, unexpected_body
from ..core.http.writes import Verify
from ..core.module.task import Task

if TYPE_CHECKING:
    from ..core.http.connections import Incoming

Taken = TypeVar("Taken")

#: The header against forged requests [tracker-12].
_UNFORGED = {"X-Atlassian-Token": "no-check"}


def describe(response: Response) -> str:
    """The tracker's words; some of its errors are XML although JSON was asked for [tracker-2]."""
    _before, begin, rest = response.text.partition("<message>")
    message, end, _behind = rest.partition("</message>")
    if begin and end and response.text.lstrip().startswith("<"):
        return html.unescape(message)
    return errors.error_text(response.text)


class TrackerClient:
    """Requests to the tracker, with its own rules for logins and refusals."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        self._transport = task.transport(describe=describe, connections=connections)
        self._headers = {"Accept": "application/json"}
        self._accepted = False
        language = task.connection.settings.get("accept_language")
        if language is not None:
            self._headers |= {"Accept-Language": language, "X-Force-Accept-Language": "true"}

    @property
    def memory(self) -> dict[str, Any]:
        """What is known of this server, for the next item of a loop."""
        return self._transport.memory

    @property
    def url(self) -> str:
        """The base address."""
        return self._transport.connection.url

    def length(self, path: str, query: Query) -> int:
        """How long the address of a request is, in characters."""
        return len(self._transport.url(path, query))

    def read(
        self, what: str, path: str, *, expect: Collection[int] = (200,), **parts: Any
    ) -> Response:
        """The answer to a request with any method that reads; see C(Transport.send).

        Every answer is asked first whether the server took the login: a query that ran for nobody
        fails for reasons that have nothing to do with it [tracker-1].
        """
        headers = dict(self._headers)
        if parts.get("method", "GET") != "GET":
            headers.update(_UNFORGED)
        response = self._transport.read(
            what, path, expect=expect, headers=headers, validate=self._require_login, **parts
        )
        self._accepted |= response.status < 400
        return response

    def write(
        self,
        what: str,
        method: str,
        path: str,
        *,
        verify: Verify,
        expect: Collection[int] = (200, 201, 204),
        headers: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> Response:
        """Send a request that changes something, once; see C(Transport.write)."""
        return self._transport.write(
            what,
            method,
            path,
            verify=verify,
            expect=expect,
            headers={**self._headers, **_UNFORGED, **(headers or {})},
            validate=self._require_taken,
            **parts,
        )

    def download(self, what: str, address: str, take: Callable[[Incoming], Taken]) -> Taken:
        """What C(take) makes of the bytes at an absolute address (see C(core.download)).

        Server fact [tracker-7]: old servers take no token for attachments, but send to their login
        page. An address elsewhere gets no credentials, and may want some.
        """
        connection = self._transport.connection
        try:
            return download(self._transport, what, address, take, validate=self._require_login)
        except ToolchainError as error:
            if error.kind == "auth" and origin(address) != origin(connection.url):
                error.with_hint(
                    "the address is not on the server that url names, which alone gets the login"
                )
            elif error.kind == "auth" and connection.token is not None:
                error.with_hint(
                    "old servers take no token for attachments: use username and password there"
                )
            raise

    def _require_login(self, response: Response) -> None:
        require_login(response, self._transport.connection)

    def _require_taken(self, response: Response) -> None:
        """As for a read. A web page with a success status is no answer to a write, and a 401 to an
        account whose reads were answered is no matter of its login [tracker-18].
        """
        self._require_login(response)
        if response.status < 300 and errors.looks_like_html(response.text):
            raise unexpected_body(response, "another answer")
        if response.status in (404, 405) and not _is_of_tracker(response):
            said = f"the server returned {response.status}, and does not know this request"
            kind: Kind = "not_found" if response.status == 404 else "rejected"
            raise response.error(
                kind, f"{said}: the written interface has none to change something"
            )
        if response.status == 401 and self._accepted:
            said = errors.shorten(describe(response))
            message = "the server returned 401, and takes the login for other requests"
            raise response.error("permission", f"{message}: {said}" if said else message, said)


def _is_of_tracker(response: Response) -> bool:
    """Whether an error is the tracker's own, not that of what has no such address [tracker-2]."""
    told = json_or_none(response.body)
    return isinstance(told, Mapping) and bool({"errorMessages", "errors"} & set(told))
