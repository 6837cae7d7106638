# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP client of a task: login, redirects, retries, check mode and accounting [C1.3, C1.4]."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .. import errors
from ..address import NOWHERE, Query, encode, is_forbidden_redirect, is_login_page, origin, target
from ..connection.auth import Anonymous, Login, Outgoing, RenewedLogin, hide
from ..connection.connection import Connection
from ..errors import ToolchainError, invalid, protocol
from ..secret import clean_url
from .bodies import SMALL, Incoming
from .connections import pooled_session
from .messages import REDIRECTS, Accounting, Failure, Request, Response, retry_after
from .writes import RETRIED_READS, Retries, Verify, Write, limit_of

if TYPE_CHECKING:
    from .multipart import Upload

#: Methods that change nothing.
_SAFE = frozenset({"GET", "HEAD"})
_KEEPING_METHOD = frozenset({307, 308})
_MAX_REDIRECTS = 5
#: Minimum timeout in seconds, because a request with a timeout of 0 always fails.
_SHORTEST_TIMEOUT = 0.1


class WriteGuard(Protocol):
    """Headers that a server requires with each write, such as a token against forged requests."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers, which it requests from the server if it has none."""

    def is_rejected(self, response: Response) -> bool:
        """Return whether a 403 is due to the headers."""

    def forget(self) -> None:
        """Discard the headers, because they are outdated."""


class Transport:
    """Sends the requests of a task to a service.

    :param read_only: raise an error instead of sending a write (check mode)
    :param describe: extracts the server's error message from a response
    :param notice: called with the headers of every response of the server
    :param connections: maximum number of connections
    :param guard: creates the guard of the writes. The session cookie is then kept, and requests
        other than GET and HEAD have the headers of the guard
    """

    def __init__(
        self,
        connection: Connection,
        login: Login,
        *,
        read_only: bool,
        accounting: Accounting | None = None,
        describe: Callable[[Response], str] | None = None,
        notice: Callable[[Mapping[str, str]], None] | None = None,
        connections: int = 10,
        guard: Callable[[Transport], WriteGuard] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        hide(connection)
        self.connection, self._home = connection, origin(connection.url)
        self.accounting = Accounting() if accounting is None else accounting
        self._login, self._read_only = login, read_only
        self._describe = describe or (lambda response: errors.error_text(response.text))
        self._notice = notice or (lambda headers: None)
        self._session = pooled_session(
            connection, connections=connections, cookies=guard is not None
        )
        self._timeout = float(connection.settings["timeout"])
        self._retries = Retries.of(connection.settings, self.accounting, sleep)
        self._guard = None if guard is None else guard(self)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the cache of the keep-alive session, a dict that is empty at first."""
        return self._session.memory

    def forget_login(self) -> None:
        """Drop the cookies and the headers of writes, for example after a restart of the server."""
        self._session.cookies.clear()
        if self._guard is not None:
            self._guard.forget()

    def url(self, path: str, query: Query | None = None) -> str:
        """Return the URL for a path and a query.

        :param path: percent-encoded path below the base address, or an absolute URL
        """
        address = (
            path
            if path[:8].lower().startswith(("http://", "https://"))
            else f"{self.connection.url}/{path.lstrip('/')}"
        )
        encoded = encode(query) if query is not None else ""
        return f"{address}{'&' if '?' in address else '?'}{encoded}" if encoded else address

    def read(
        self,
        purpose: str,
        path: str,
        *,
        method: str = "GET",
        expect: Collection[int] = (200,),
        validate: Callable[[Response], None] | None = None,
        **parts: Any,
    ) -> Response:
        """Send a request that changes nothing, and return the response.

        Raises a `ToolchainError` for a status that is not in `expect`.

        :param purpose: operation and object for messages, for example `reading the role 'x'`
        :param path: percent-encoded, relative to the base address
        :param validate: called before the status is checked; raises errors that the status does
            not show
        :param parts: `query`, `headers`, and at most one body: `json` (any value), `form` (a
            query), `body` (bytes), or `open_body` with `size`. `patience` limits the seconds with
            all retries, `once` disables retries
        """
        return self._send_checked(
            self._request(purpose, method, path, True, **parts), expect, validate
        )

    def write(
        self,
        purpose: str,
        method: str,
        path: str,
        *,
        expect: Collection[int] = (200, 201, 202, 204),
        validate: Callable[[Response], None] | None = None,
        verify: Verify | None = None,
        repeatable: bool = False,
        **parts: Any,
    ) -> Response:
        """Send a request that changes the server, and return the response.

        If the response was lost, and the verification read shows that the write is done, the
        returned response has no body.

        :param verify: see :class:`Write`, also for `repeatable`
        :param parts: see :meth:`read`, also for the other parameters
        """
        request = self._request(purpose, method, path, False, **parts)
        exchange = partial(self._send_checked, request, expect, validate)
        response = Write(request, exchange, verify, repeatable, self._retries).execute()
        self.accounting.add(acknowledged=int(response.status < 400))
        return response

    def send(
        self,
        purpose: str,
        method: str,
        path: str,
        *,
        reads: bool,
        verify: Verify | None = None,
        **parts: Any,
    ) -> Response:
        """Call :meth:`read` or :meth:`write`, for endpoints that serve both."""
        if reads:
            return self.read(purpose, path, method=method, **parts)
        return self.write(purpose, method, path, verify=verify, **parts)

    def _send_checked(
        self, request: Request, expect: Collection[int], validate: Callable[[Response], None] | None
    ) -> Response:
        response = _read_response(request, self._send_with_retries(request))
        if validate is not None:
            validate(response)
        if response.status not in expect:
            raise self.failure(response)
        return response

    @contextmanager
    def stream(
        self,
        purpose: str,
        path: str,
        *,
        method: str = "GET",
        validate: Callable[[Response], None] | None = None,
        **parts: Any,
    ) -> Iterator[Incoming]:
        """Send a GET request, and let the caller read the body in chunks.

        Raises an error for a status other than 200; `validate` may raise a more specific error.
        """
        request = self._request(purpose, method, path, True, streamed=True, **parts)
        incoming = self._send_with_retries(request)
        try:
            if incoming.status_code != 200:
                response = _read_response(request, incoming)
                if validate is not None:
                    validate(response)
                raise self.failure(response)
            yield incoming
        except self._session.errors as error:
            from .network_errors import failure_of  # for errors only

            raise failure_of(error, request, self._timeout).error from None
        finally:
            incoming.close()

    def failure(self, response: Response) -> ToolchainError:
        """Return the error for an error response or a redirect."""
        location = response.headers.get("Location")
        if location is not None and response.status in REDIRECTS:
            return self._redirect_error(
                response.request, response.status, target(response.url, location)
            )
        detail = errors.shorten(self._describe(response))
        delay = retry_after(response.headers.get("Retry-After"))
        if response.status in RETRIED_READS and (delay or 0.0) > self._retries.longest:
            return self._retries.too_long(response, delay or 0.0, detail)
        reason = f": {detail}" if detail else " without an error message"
        kind, remedy = errors.kind_of_status(response.status), ""
        if response.status in (401, 403) and origin(response.url) == self._home:
            service = self.connection.service
            remedy = service.rejected_login(self.connection, response.status, detail)
        message = f"the server returned {response.status}{limit_of(response)}{reason}"
        error = response.error("auth" if remedy else kind, message, detail)
        return error.with_hint(remedy) if remedy else error

    def _request(
        self,
        purpose: str,
        method: str,
        path: str,
        reads: bool,
        *,
        query: Query | None = None,
        patience: float | None = None,
        **parts: Any,
    ) -> Request:
        if self._read_only and not reads:
            raise invalid(
                f"{purpose}: not sent, because this request would change the server in check mode"
            )
        headers = {"Accept": "*/*", "User-Agent": "delivery.toolchain"}
        if "json" in parts:
            headers["Content-Type"] = "application/json"
            parts["body"] = json.dumps(parts.pop("json"), ensure_ascii=False).encode()
        elif "form" in parts:
            headers["Content-Type"] = "application/x-www-form-urlencoded;charset=UTF-8"
            parts["body"] = encode(parts.pop("form")).encode("ascii")
        headers.update(parts.pop("headers", {}))
        if patience is not None:
            parts["deadline"] = time.monotonic() + patience
        known = self.connection.service.headers
        url = self.url(path, query)
        return Request(purpose, method, url, reads, headers, service_headers=known, **parts)

    def _send_with_retries(self, request: Request) -> Incoming:
        """Send a request, with retries. Rejected headers of the guard are renewed once."""
        attempt, renewed = 0, False
        while True:
            outcome = self._send_following_redirects(request)
            if not renewed and self._is_rejected_by_guard(request, outcome):
                self.forget_login()
                renewed = True
                continue
            delay = None  # seconds before a retry; a write that got a response is not retried here
            if isinstance(outcome, Failure):
                delay = 0.0 if outcome.may_repeat else None
            elif request.reads and outcome.status_code in RETRIED_READS:
                delay = retry_after(outcome.headers.get("Retry-After")) or 0.0
            pause = None if delay is None else self._retries.pause(request, attempt, delay)
            if pause is None:
                break
            if not isinstance(outcome, Failure):
                outcome.close()  # an unread response would occupy its connection
            self._retries.wait(pause, counted=True)
            attempt += 1
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    def _send_following_redirects(self, request: Request) -> Incoming | Failure:
        """Send a request, and follow redirects if it is a read.

        Redirects to another origin are followed only if the request allows foreign hosts.
        """
        started, url = time.monotonic(), request.url
        timeout = max(_SHORTEST_TIMEOUT, min(self._timeout, request.left()))
        try:
            for _hop in range(_MAX_REDIRECTS):
                incoming = self._send_once(request, url, timeout)
                location = incoming.headers.get("Location")
                if not request.reads or incoming.status_code not in REDIRECTS or location is None:
                    return incoming
                incoming.close()
                there = target(url, location)
                keeps_body = request.body is None or incoming.status_code in _KEEPING_METHOD
                forbidden = is_forbidden_redirect(url, there, foreign_hosts=request.foreign_hosts)
                if is_login_page(there, url) or not keeps_body or forbidden:
                    raise self._redirect_error(request, incoming.status_code, there)
                url = there
        except self._session.errors as error:
            from .network_errors import failure_of  # for errors only

            return failure_of(error, request, timeout)
        finally:
            self.accounting.add(seconds=time.monotonic() - started)
        raise ToolchainError(
            "protocol",
            f"{request.purpose}: the server returned {incoming.status_code} and redirected"
            f" {_MAX_REDIRECTS} times: check url",
            status=incoming.status_code,
            method=request.method,
            url=clean_url(url),
        )

    def _send_once(
        self, request: Request, url: str, timeout: float, *, renewed: bool = False
    ) -> Incoming:
        """Send a request, and send it again if its short-lived token has been replaced.

        :param renewed: whether this is the second time
        """
        there = origin(url)
        at_home = there == self._home
        if there == NOWHERE or not (at_home or request.foreign_hosts):
            address = errors.shorten(clean_url(url), errors.ADDRESS_LIMIT)
            wrong = f"is not an address on the server at {self.connection.url}"
            raise protocol(f"{request.purpose}: {address} {wrong}")
        outgoing = Outgoing(request.method, url, dict(request.headers))
        if self._guard is not None and request.method not in _SAFE:
            outgoing.headers.update(self._guard.headers())
        login = self._login if at_home and not request.anonymous else Anonymous()
        if isinstance(login, RenewedLogin):
            login.prepare()  # before the request is counted, because it may fail
        outgoing.body = body = self._body(request)
        try:
            incoming = self._session.exchange(
                outgoing, there, login, self.accounting, timeout=timeout
            )
        finally:
            upload = None if isinstance(body, bytes) else body
            # an upload counts its bytes itself; `outgoing.body` may contain the login
            sent = 0 if upload is not None else len(outgoing.body or b"")
            self.accounting.add(requests=1, writes=int(not request.reads), bytes_sent=sent)
            if upload is not None:
                upload.close()
        replaced = isinstance(login, RenewedLogin) and login.is_replaced(
            outgoing, incoming.status_code
        )
        if replaced and not renewed:
            incoming.close()
            return self._send_once(request, url, timeout, renewed=True)
        if at_home:
            self._notice(incoming.headers)
        if not request.streamed or incoming.status_code != 200:
            incoming.read()
        return incoming

    def _body(self, request: Request) -> bytes | Upload | None:
        if request.open_body is None or request.size == 0:
            return request.body
        from .multipart import Upload, small_body  # few modules upload files

        if request.size <= SMALL:
            return small_body(request.purpose, request.open_body, request.size)
        return Upload(request.purpose, request.open_body, request.size, self.accounting)

    def _redirect_error(self, request: Request, status: int, target: str) -> ToolchainError:
        login = is_login_page(target, request.url)
        where = errors.shorten(clean_url(target), errors.ADDRESS_LIMIT)
        if login:
            reason = f"redirects to its login page {where}: check the credentials"
        else:
            reason = f"redirects to {where}, which is not followed: check url"
        message = f"{request.purpose}: the server returned {status} and {reason}"
        url = clean_url(request.url)
        return ToolchainError(
            "auth" if login else "protocol", message, status=status, method=request.method, url=url
        )

    def _is_rejected_by_guard(self, request: Request, outcome: Incoming | Failure) -> bool:
        if self._guard is None or isinstance(outcome, Failure) or request.method in _SAFE:
            return False
        rejected = outcome.status_code == 403
        return rejected and self._guard.is_rejected(_read_response(request, outcome))


def _read_response(request: Request, incoming: Incoming) -> Response:
    """Read the body of an incoming response, and convert the response to a `Response`."""
    return Response(incoming.status_code, incoming.headers, incoming.content, request, incoming.url)
