# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP connections with deadlines for slow responses [C1.4], for sessions of `requests`.

The library bounds every single wait for bytes, so a server that sends byte after byte never exceeds
that bound. Here the response head has the time of one wait, and the body a minimum rate.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPMessage, HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

from ..address import NOWHERE, Origin, UnfitRequest, origin, prepared_url, usual_target
from ..concurrency import MAX_CONCURRENCY
from ..connection.auth import Content, Login, Outgoing
from ..connection.connection import Connection
from ..errors import invalid
from ..secret import hidden, misplaced_user_info
from .bodies import ACCEPTED, SMALL, BodyError, Incoming, SlowBody
from .messages import Accounting

#: Why the library is missing; `None` if it is there. It is loaded with the first session: a task
#: that sends nothing does not need it.
REQUESTS_MISSING: str | None = None
_found = importlib.util.find_spec("requests")
if _found is None or not _found.submodule_search_locations:
    REQUESTS_MISSING = "ImportError: No module named 'requests'"


def pooled_session(connection: Connection, *, connections: int, cookies: bool) -> PooledSession:
    """Return the session of a connection in this process. Sessions with different credentials or
    TLS options are never shared; a forked worker, or another environment, has its own.
    """
    names = [name for name in os.environ if name.lower().endswith(("_proxy", "_ca_bundle"))]
    environment = [(name, os.environ[name]) for name in names]
    return cached_session(connection, connections, cookies, os.getpid(), *environment)


@functools.lru_cache(maxsize=8)  # a session per service, and some for a loop over logins
def cached_session(
    connection: Connection, connections: int, cookies: bool, *_key: Any
) -> PooledSession:
    """Return the session of a connection; see :func:`pooled_session`, which adds the key."""
    settings, home = connection.settings, origin(connection.url)
    session = PooledSession(connections, home if cookies else None)
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    session.verify = settings.get("ca_path") or bundle or True
    if not settings.get("validate_certs", True):
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        session.verify = False
    elif home[0] == "https" and session.verify == bundle and not os.path.exists(bundle or ""):
        raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: '{bundle}' does not exist")
    certificate, key = settings.get("client_cert") or None, settings.get("client_key")
    session.cert = (certificate, key) if certificate and key else certificate
    return session


try:
    from requests import ConnectionError as LostConnection
    from requests import PreparedRequest, RequestException, Session, utils
    from requests.adapters import HTTPAdapter
    from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
    from requests.structures import CaseInsensitiveDict
    from urllib3 import Timeout
    from urllib3.exceptions import ConnectTimeoutError, HTTPError
except ImportError:  # the runner has reported it; only the sanity test imports this file then
    Session = HTTPAdapter = object  # type: ignore[assignment, misc]


_HEADERS = {"Accept-Encoding": ACCEPTED, "Connection": "keep-alive"}
_HEADER = re.compile(r"(?=[\0-\xff]*\Z)[^:\s][^:\r\n]*: (?:[^\s\0][^\r\n\0]*)?")
#: Headers with only usual characters, each ended by a line feed.
_USUAL_HEADERS = re.compile(r"(?:[!-9;-~]+: [!-~][ -~]*\n)*")
#: A response head as most servers send it, which all readers understand in the same way.
_USUAL_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9]{2}) ?([ -~]*)\r\n"
    rb"((?:[A-Za-z0-9-]+: [!-~](?:[ -~]*[!-~])?\r\n)*)\r\n"
)
_USUAL_LENGTH = re.compile("[0-9]{1,15}")
#: Number of headers up to which the library accepts a head.
_MAX_HEADERS = 100

#: Bytes a second that a body has to bring at least, on average over the time of one wait.
_MIN_RATE = 1024
#: Bytes of the lines in a head, and in the trailers after the chunks of a body.
_MAX_LINE_BYTES = 1024 * 1024
_BUFFER = 32 * 1024
#: The library also accepts signs, blanks, `0x` and underscores, and reads on after `-1` [RFC 9112].
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")


class DeadlineStream(io.RawIOBase):
    """Bytes of a response: the head must be complete within the time of one wait, and the body must
    keep :data:`_MIN_RATE`. Only the time spent on waiting counts.
    """

    def __init__(self, raw: io.RawIOBase, sock: Any) -> None:
        self._raw, self._socket = raw, sock
        self._limit: float = sock.gettimeout()
        self._in_head, self._waited, self._received = True, 0.0, 0
        if hasattr(sock, "suppress_ragged_eofs"):
            # only `close_notify` distinguishes the end of the body from a lost connection
            sock.suppress_ragged_eofs = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._in_head and self._received:  # setting it costs the interpreter lock
            self._socket.settimeout(self._limit - self._waited)
        begun = time.monotonic()
        try:
            count = self._raw.readinto(buffer)
        except ssl.SSLEOFError:
            raise ConnectionAbortedError("the TLS connection ended without close_notify") from None
        self._waited += time.monotonic() - begun
        self._received += count or 0
        left = self._limit - self._waited
        if self._in_head:
            if self._received and not count:
                raise ConnectionAbortedError("the response ended inside its head")
            if left <= 0:
                raise TimeoutError("the response head did not arrive in time")
        elif count and left <= 0:
            if self._received < _MIN_RATE * self._waited:
                raise SlowBody
            self._waited, self._received = 0.0, 0
        return count

    def end_head(self) -> None:
        """Restore the timeout of the socket; the body follows."""
        self._in_head, self._waited, self._received = False, 0.0, 0
        if self._socket.gettimeout() != self._limit:
            self._socket.settimeout(self._limit)

    def close(self) -> None:
        self._raw.close()
        super().close()


class ResponseReader(io.BufferedReader):
    """The stream from which `http.client` reads a response, with limits that it lacks.

    Without them it accepts endless lines, and chunk sizes such as `-5`.
    """

    in_chunks, line_bytes = False, 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if self.in_chunks and line:
            found = _CHUNK_SIZE.fullmatch(line)
            if found is None:
                raise BodyError("a chunk of the response has an invalid size")
            self.in_chunks = int(found[1], 16) > 0  # then come the trailers
            return line
        self.line_bytes += len(line)
        if self.line_bytes > _MAX_LINE_BYTES:
            raise ConnectionAbortedError("the response has too many header or trailer lines")
        return line


class DeadlineResponse(HTTPResponse):
    """Response of the standard library with deadlines, also for `CONNECT`. It rejects heads after
    which two readers would find different bodies.
    """

    def __init__(self, sock: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.is_of_head = options.get("method") == "HEAD"
        self.stream = DeadlineStream(self.fp.detach(), sock)
        self.fp: ResponseReader = ResponseReader(self.stream, _BUFFER)

    def begin(self) -> None:
        if self.headers is None and self._has_begun():
            self.stream.end_head()
            return
        super().begin()
        encodings = self.headers.get_all("Transfer-Encoding", [])
        if encodings and (len(encodings) > 1 or not self.chunked):
            raise BodyError("the response has a Transfer-Encoding other than 'chunked'")
        lengths = ",".join(self.headers.get_all("Content-Length", [])).split(",")
        if len({length.strip() for length in lengths}) > 1:
            raise BodyError("the response has conflicting lengths")
        self.stream.end_head()
        self.fp.in_chunks = bool(self.chunked)

    def _has_begun(self) -> bool:
        """Read the head if it is a usual one with a single length, and return whether it was.

        The parser of the library is that of e-mails, which takes as long as the rest of a response.
        """
        found = _USUAL_HEAD.match(self.fp.peek())
        if found is None:
            return False
        lines = found[3].decode("ascii").split("\r\n")[:-1]
        pairs = [(name, value) for name, _colon, value in (line.partition(": ") for line in lines)]
        values = {name.lower(): value for name, value in pairs}
        length = values.get("content-length", "")
        is_repeated = len(values) < len(pairs) or len(pairs) > _MAX_HEADERS
        if is_repeated or "transfer-encoding" in values or not _USUAL_LENGTH.fullmatch(length):
            return False
        self.fp.read(found.end())
        self.headers = self.msg = HTTPMessage()
        for name, value in pairs:
            self.headers.set_raw(name, value)
        self.version, self.code, self.reason = 11, int(found[1]), found[2].decode("ascii").strip()
        self.status = self.code
        self.chunked = False
        self.will_close = "close" in values.get("connection", "").lower()
        has_no_body = self.is_of_head or self.status in (204, 304)
        self.length = 0 if has_no_body else int(length)
        return True

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if amt and not data and self.length:  # urllib3 before 2 does not raise
            raise IncompleteRead(data, self.length)
        return data


class _DeadlineConnection:
    """Part of a connection class of urllib3: use the response class above, and send the head
    together with a small body. Otherwise the server wakes up twice.
    """

    response_class = DeadlineResponse
    sock: Any
    timeout: float | None
    #: The head and a small body, until they are sent; `None`: parts are sent immediately.
    unsent: bytes | None = None
    #: The headers of the request, until its first line is sent.
    fields: str = ""

    def request(self, *arguments: Any, **options: Any) -> None:
        self.unsent, self.fields = b"", ""
        super().request(*arguments, **options)  # type: ignore[misc]
        self.send(b"")  # the end of the request

    def putheader(self, header: str, *values: str | bytes) -> None:
        """Add a header. The session has checked it: the library checks each of its parts again."""
        (value,) = values
        text = value if isinstance(value, str) else value.decode("latin-1")
        self.fields += f"{header}: {text}\r\n"

    def send(self, data: bytes) -> None:
        if self.fields:  # after the first line, which is followed by an empty one
            data, self.fields = data[:-2] + f"{self.fields}\r\n".encode("latin-1"), ""
        if self.unsent is not None and 0 < len(data) <= SMALL:
            self.unsent += data
            return
        parts, self.unsent = (self.unsent, data), None
        for part in filter(None, parts):
            super().send(part)  # type: ignore[misc]

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc] # the connection class comes after this one
        except TimeoutError as error:  # of the proxy or of TLS: no request was sent
            raise ConnectTimeoutError(self, "the handshake did not finish in time") from error
        self.sock.settimeout(self.timeout)  # the response to CONNECT used some time


class DeadlineAdapter(HTTPAdapter):
    """Adapter whose connections have deadlines, direct and through proxies (SOCKS too)."""

    #: The last origin, and its pool.
    last: tuple[Origin, Any] = NOWHERE, None

    def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Content | None,
        *,
        there: Origin,
        timeout: float,
        proxies: dict[str, str],
        verify: Any,
        cert: Any,
    ) -> Any:
        """Send a request and return the response of urllib3, of which only the head has been read.

        `send` of the library does the same, but selects pool, proxy and certificates anew each
        time, and wraps the response: this takes as long as the transfer of a small file.
        """
        target, last = usual_target(url), self.last
        address = url if target else prepared_url(url)
        if last[0] != there:
            if hasattr(self, "get_connection_with_tls_context"):
                request = _prepared(address)
                pool: Any = self.get_connection_with_tls_context(request, verify, proxies, cert)
            else:  # requests before 2.32
                pool = self.get_connection(address, proxies)
            self.cert_verify(pool, address, verify, cert)
            last = self.last = there, pool
        if proxies or not target:
            target = self.request_url(_prepared(address), proxies)
        try:
            return last[1].request(
                method=method,
                url=target,
                body=body,
                headers=headers,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
                retries=self.max_retries,
                timeout=Timeout(connect=timeout, read=timeout),
            )
        except OSError as error:
            raise LostConnection(error) from None

    def cert_verify(self, conn: Any, *arguments: Any) -> None:
        """Prepare the pool of an origin, from which connections are taken."""
        super().cert_verify(conn, *arguments)  # type: ignore[no-untyped-call]
        plain = conn.ConnectionCls  # read once: other threads prepare the same pool
        if not issubclass(plain, _DeadlineConnection):
            bases = (_DeadlineConnection, plain)
            conn.ConnectionCls = type("DeadlineConnection", bases, {})


def _prepared(url: str, headers: Mapping[str, str] | None = None) -> PreparedRequest:
    """Return a request as functions of the library expect it."""
    # not prepared as a whole by the library: the signature of OAuth must stay
    request = PreparedRequest()
    request.url, request.headers = url, CaseInsensitiveDict(headers)
    return request


class PooledSession(Session):
    """Session of an origin, with a cache for facts from its responses.

    It does not follow redirects, because the transport does so by its own rules.

    :param connections: maximum number of connections to an origin; further requests wait
    :param cookies_of: the only origin that sets and gets cookies, `None` if there is none. The
        library also sends them to other ports, and to neighbours in their domain.
    """

    def __init__(self, connections: int, cookies_of: Origin | None) -> None:
        super().__init__()
        self.memory: dict[str, Any] = {}
        self._cookies_of = cookies_of
        self._proxies: dict[Origin, dict[str, str]] = {}
        #: What a request, or reading its response, raises.
        self.errors = (RequestException, HTTPError, BodyError, UnfitRequest)
        # urllib3 allocates a slot for every connection at once
        slots = min(connections, MAX_CONCURRENCY)
        self.adapter = DeadlineAdapter(pool_maxsize=slots, pool_block=True)
        self.mount("https://", self.adapter)
        self.mount("http://", self.adapter)

    def exchange(
        self,
        outgoing: Outgoing,
        there: Origin,
        login: Login,
        accounting: Accounting,
        *,
        timeout: float,
    ) -> Incoming:
        """Send a request, and read no body: `Session.send` would read that of a redirect.

        :param there: the origin of the address
        """
        login(outgoing)
        url, body = outgoing.url, outgoing.body or None
        headers = {**_HEADERS, **outgoing.headers}
        _check_headers(headers)
        if body is not None:
            headers["Content-Length"] = str(len(body))
        elif outgoing.method not in ("GET", "HEAD"):
            headers.setdefault("Content-Length", "0")
        jar = self.cookies if there == self._cookies_of else None
        if jar is not None:
            request = _prepared(prepared_url(url), headers)
            request.prepare_cookies(jar)
            headers = dict(request.headers)
        raw = self.adapter.open(
            outgoing.method,
            url,
            headers,
            body,
            there=there,
            timeout=timeout,
            proxies=self._proxy_for(url, there),
            verify=self.verify,
            cert=self.cert,
        )
        if "Set-Cookie" in raw.headers:
            jar = RequestsCookieJar() if jar is None else jar
            request = _prepared(prepared_url(url), headers)
            extract_cookies_to_jar(jar, request, raw)  # type: ignore[no-untyped-call]
        cookies = [cookie.value or "" for cookie in jar or ()]
        # shorter values are flags or languages, and parts of other words
        hidden.add(*[value for value in cookies if len(value) >= 8])
        return Incoming(raw, url, accounting)

    def _proxy_for(self, url: str, there: Origin) -> dict[str, str]:
        """Return the proxy that `requests` chooses; its login is kept out of all output."""
        if there not in self._proxies:
            proxy = utils.select_proxy(url, utils.get_environ_proxies(url))
            _check_proxy(proxy or "")
            self._proxies[there] = {there[0]: proxy} if proxy else {}
        for proxy in self._proxies[there].values():
            user, password = utils.get_auth_from_url(proxy)
            hidden.add(password, b64encode(f"{user}:{password}".encode()).decode() if user else "")
        return self._proxies[there]


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raise `UnfitRequest` for a header that cannot be sent.

    The message of the library would show the value, which may be a secret.
    """
    lines = "".join([f"{name}: {value}\n" for name, value in headers.items()])
    if _USUAL_HEADERS.fullmatch(lines) and lines.count("\n") == len(headers):
        return
    for name, value in headers.items():
        if _HEADER.fullmatch(f"{name}: {value}") is None:
            raise UnfitRequest(
                f"the header {name!r} contains a character that is invalid in a header"
            )


def _check_proxy(proxy: str) -> None:
    """Raise `UnfitRequest` if the address of a proxy, or the encoding of its login, is invalid.

    The library would read a part of the password as the host or port, and print it.
    """
    address = proxy if "://" in proxy else f"http://{proxy}"
    start, end = misplaced_user_info(address)
    if end > start:
        raise UnfitRequest(
            "the login of the proxy in the environment contains a character such as #, ?, / or a"
            " backslash: percent-encode its user name and password"
        )
    try:
        parts = urlsplit(address)  # `port` raises for a port that is no number
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if proxy and not is_address:
        raise UnfitRequest(
            "the address of the proxy in the environment is invalid: set HTTP_PROXY and HTTPS_PROXY"
            " to an address such as http://host:3128"
        )
