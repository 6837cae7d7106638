# SPDX-License-Identifier: GPL-3.0-or-later
"""One way to the server: login, TLS, redirects, retries, the gate of check mode, accounting
[C1.3, C1.4].
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from .. import errors
from ..accounting import Accounting
from ..address import NOWHERE, Query, encode, is_login_page, leads_elsewhere, origin, target
from ..connection.auth import Anonymous, Crumb, Login, Outgoing, hide
from ..connection.options import Connection
from ..errors import ToolchainError, invalid
from ..secret import clean_url
from .bodies import Incoming
from .messages import REDIRECTS, Request, Response, retry_after
from .network_errors import Failure, failure_of
from .retries import RETRIED_READS, Retries
from .sessions import SMALL, Proxies, Upload, pooled_session, request_errors, small_body
from .writes import Verify, Write

_KEEPING_METHOD = frozenset({307, 308})
_MOST_REDIRECTS = 5
#: Seconds that a request gets at least: with none left it could not be sent at all.
_SHORTEST_TIMEOUT = 0.1
#: The words of a 403 that is about the anti-forgery token; every page has a trail of breadcrumbs.
_CRUMB = re.compile(r"\bcrumb\b", re.IGNORECASE)


class Transport:
    """All requests of one task to one service.

    :param read_only: check mode: a request that is not marked as a read raises instead of leaving
    :param describe: turns an error answer into the server's words (one decoder per service)
    :param notice: is shown the headers of every answer of the server, whatever its status
    :param connections: most connections at once
    :param crumbs: keep the session cookie and send the anti-forgery token of the CI server with
        every POST
    """

    def __init__(
        self,
        connection: Connection,
        login: Login,
        *,
        read_only: bool,
        accounting: Accounting | None = None,
        proxies: Proxies | None = None,
        describe: Callable[[Response], str] | None = None,
        notice: Callable[[Mapping[str, str]], None] | None = None,
        connections: int = 10,
        crumbs: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        hide(connection)
        self.connection, self._home = connection, origin(connection.url)
        self.accounting = Accounting() if accounting is None else accounting
        self._login, self._read_only = login, read_only
        self._describe = describe or (lambda response: errors.error_text(response.text))
        self._notice = notice or (lambda headers: None)
        self._session = pooled_session(connection, connections=connections, cookies=crumbs)
        self._proxies = Proxies() if proxies is None else proxies
        self._timeout = float(connection.settings["timeout"])
        self._retries = Retries.of(connection.settings, self.accounting, sleep)
        self._crumb = Crumb(self._fetch_crumb, self._session.memory) if crumbs else None

    @property
    def memory(self) -> dict[str, Any]:
        """What is known of this server as long as its kept-alive session lives; empty at first."""
        return self._session.memory

    def forget_login(self) -> None:
        """Drop cookies and crumb, as after a restart of the server."""
        self._session.forget_cookies()
        if self._crumb is not None:
            self._crumb.forget()

    def url(self, path: str, query: Query | None = None) -> str:
        """The address of an encoded path below the base address; an absolute one stays as it is."""
        address = (
            path
            if path[:8].lower().startswith(("http://", "https://"))
            else f"{self.connection.url}/{path.lstrip('/')}"
        )
        encoded = encode(query) if query is not None else ""
        return f"{address}{'&' if '?' in address else '?'}{encoded}" if encoded else address

    def read(
        self,
        what: str,
        path: str,
        *,
        method: str = "GET",
        expect: Collection[int] = (200,),
        validate: Callable[[Response], None] | None = None,
        **parts: Any,
    ) -> Response:
        """Send a request that changes nothing, and give its whole answer.

        :param what: operation and object for messages, as C(reading the role 'x')
        :param path: encoded, relative to the base address
        :param parts: C(query), C(json) (any), C(form) (a query), C(body) (bytes), C(open_body) with
            C(size), C(headers), C(patience) (most seconds, all repetitions included), C(once) (no
            repetitions)
        :param expect: statuses that are an answer; every other one raises with the kind it stands
            for
        :param validate: is shown the answer before its status counts, and raises for what a status
            does not tell
        """
        return self._answer(self._request(what, method, path, True, **parts), expect, validate)

    def write(
        self,
        what: str,
        method: str,
        path: str,
        *,
        expect: Collection[int] = (200, 201, 202, 204),
        validate: Callable[[Response], None] | None = None,
        verify: Verify | None = None,
        repeatable: bool = False,
        **parts: Any,
    ) -> Response:
        """Send a request that changes the server, once; see :meth:`read`, and for C(verify) and
        C(repeatable) :class:`Write`. Where the look alone tells that it is done, the answer is one
        without a body.
        """
        request = self._request(what, method, path, False, **parts)
        exchange = partial(self._answer, request, expect, validate)
        response = Write(request, exchange, verify, repeatable, self._retries).carried_out()
        self.accounting.add(acknowledged=int(response.status < 400))
        return response

    def send(
        self,
        what: str,
        method: str,
        path: str,
        *,
        reads: bool,
        verify: Verify | None = None,
        **parts: Any,
    ) -> Response:
        """Read or write, where one address serves both."""
        if reads:
            return self.read(what, path, method=method, **parts)
        return self.write(what, method, path, verify=verify, **parts)

    def _answer(
        self, request: Request, expect: Collection[int], validate: Callable[[Response], None] | None
    ) -> Response:
        response = _whole(request, self._incoming(request))
        if validate is not None:
            validate(response)
        if response.status not in expect:
            raise self.failure(response)
        return response

    @contextmanager
    def stream(
        self,
        what: str,
        path: str,
        *,
        method: str = "GET",
        validate: Callable[[Response], None] | None = None,
        **parts: Any,
    ) -> Iterator[Incoming]:
        """A read whose body is taken piece by piece (C(iter_content)); a status
        other than 200 raises, C(validate) first.
        """
        request = self._request(what, method, path, True, streamed=True, **parts)
        incoming = self._incoming(request)
        try:
            if incoming.status_code != 200:
                response = _whole(request, incoming)
                if validate is not None:
                    validate(response)
                raise self.failure(response)
            yield incoming
        except request_errors() as error:
            raise failure_of(error, request, self._timeout).error from None
        finally:
            incoming.close()

    def failure(self, response: Response) -> ToolchainError:
        """The error that an answer stands for."""
        location = response.headers.get("Location")
        if location is not None and response.status in REDIRECTS:
            return self._redirect_error(
                response.request, response.status, target(response.url, location)
            )
        detail = errors.shorten(self._describe(response))
        asked = retry_after(response.headers.get("Retry-After"))
        if asked is not None and self._retries.is_too_long(response.status, asked):
            return self._retries.refusal(response, asked, detail)
        said = f": {detail}" if detail else " without a word"
        return response.error(
            errors.kind_of_status(response.status),
            f"the server returned {response.status}{said}",
            detail,
        )

    def _request(
        self,
        what: str,
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
                f"{what}: stopped, because a request that writes must not be sent in check mode"
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
        return Request(what, method, self.url(path, query), reads, headers, **parts)

    def _incoming(self, request: Request) -> Incoming:
        """Send, wait and send again as the rules have it."""
        attempt, crumb_renewed = 0, False
        while True:
            outcome = self._attempt(request)
            if not crumb_renewed and self._crumb_refused(request, outcome):
                self.forget_login()
                crumb_renewed = True
                continue
            asked = self._invitation(request, outcome)
            wait = None if asked is None else self._retries.pause(request, attempt, asked)
            if wait is None:
                break
            if not isinstance(outcome, Failure):
                outcome.close()  # an answer that nobody reads would keep its connection
            self._retries.rest(wait, counted=True)
            attempt += 1
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    def _attempt(self, request: Request) -> Incoming | Failure:
        """Send the request; follow the redirects of a read within its origin (beyond it where that
        was asked for).
        """
        started, url = time.monotonic(), request.url
        timeout = max(_SHORTEST_TIMEOUT, min(self._timeout, request.left()))
        try:
            for _hop in range(_MOST_REDIRECTS):
                incoming = self._exchange(request, url, timeout)
                location = incoming.headers.get("Location")
                if not request.reads or incoming.status_code not in REDIRECTS or location is None:
                    return incoming
                incoming.close()
                url = self._next_hop(request, incoming.status_code, url, target(url, location))
        except request_errors() as error:
            return failure_of(error, request, timeout)
        finally:
            self.accounting.add(seconds=time.monotonic() - started)
        raise ToolchainError(
            "protocol",
            f"{request.what}: the server returned {incoming.status_code} and redirects in circles",
            status=incoming.status_code,
            method=request.method,
            url=clean_url(url),
        )

    def _next_hop(self, request: Request, status: int, url: str, there: str) -> str:
        """Where a redirect of a read leads; raises where it must not be followed."""
        keeps_body = request.body is None or status in _KEEPING_METHOD
        far = leads_elsewhere(url, there, foreign_hosts=request.foreign_hosts)
        if is_login_page(there, url) or not keeps_body or far:
            raise self._redirect_error(request, status, there)
        return there

    def _exchange(self, request: Request, url: str, timeout: float) -> Incoming:
        there = origin(url)
        at_home = there == self._home
        if there == NOWHERE or not (at_home or request.foreign_hosts):
            address = errors.shorten(clean_url(url), errors.ADDRESS_LIMIT)
            wrong = f"is not an address on the server at {self.connection.url}"
            raise ToolchainError("protocol", f"{request.what}: {address} {wrong}")
        headers = dict(request.headers)
        if self._crumb is not None and request.method == "POST":
            headers.update(self._crumb.headers())
        body = self._body(request)
        outgoing = Outgoing(request.method, url, headers, body)
        try:
            incoming = self._session.send(
                outgoing,
                self._login if at_home else Anonymous(),
                self.accounting,
                timeout=timeout,
                proxy=self._proxies.of(there, url),
            )
        finally:
            sent = 0 if isinstance(body, Upload) else len(outgoing.body or b"")  # with the login
            self.accounting.add(requests=1, writes=int(not request.reads), bytes_sent=sent)
            if isinstance(body, Upload):
                body.close()
        if at_home:
            self._notice(incoming.headers)
        if not request.streamed or incoming.status_code != 200:
            incoming.read()
        return incoming

    def _body(self, request: Request) -> bytes | Upload | None:
        if request.open_body is None or request.size == 0:
            return request.body
        if request.size <= SMALL:
            return small_body(request.what, request.open_body, request.size)
        return Upload(request.what, request.open_body, request.size, self.accounting)

    def _invitation(self, request: Request, outcome: Incoming | Failure) -> float | None:
        """Seconds after which the request may be sent again, C(None) where it must not be. What a
        write did that was answered is not known here.
        """
        if isinstance(outcome, Failure):
            return 0.0 if outcome.may_repeat else None
        if not request.reads or outcome.status_code not in RETRIED_READS:
            return None
        return retry_after(outcome.headers.get("Retry-After")) or 0.0

    def _redirect_error(self, request: Request, status: int, target: str) -> ToolchainError:
        login = is_login_page(target, request.url)
        where = errors.shorten(clean_url(target), errors.ADDRESS_LIMIT)
        if login:
            reason = f"redirects to its login page {where}: check the credentials"
        else:
            reason = f"redirects to {where}, which is not followed: correct url"
        message = f"{request.what}: the server returned {status} and {reason}"
        url = clean_url(request.url)
        return ToolchainError(
            "auth" if login else "protocol", message, status=status, method=request.method, url=url
        )

    def _crumb_refused(self, request: Request, outcome: Incoming | Failure) -> bool:
        if self._crumb is None or isinstance(outcome, Failure) or request.method != "POST":
            return False
        if outcome.status_code != 403 or "X-Required-Permission" in outcome.headers:
            return False
        return _CRUMB.search(errors.error_text(outcome.text)) is not None

    def _fetch_crumb(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        response = self.read(
            "asking for a crumb",
            path,
            query=query,
            expect=(200, 403, 404) if "xml" in path else (200, 400, 404, 405, 406),
        )
        text = response.text  # a login form is as wrong here as where JSON is expected
        decode = text.lstrip().startswith("{") or 'type="password"' in text.lower()
        return response.status, response.json() if response.status == 200 and decode else text


def _whole(request: Request, incoming: Incoming) -> Response:
    """The answer with all of its body."""
    return Response(incoming.status_code, incoming.headers, incoming.content, request, incoming.url)
