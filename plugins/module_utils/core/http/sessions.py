# SPDX-License-Identifier: GPL-3.0-or-later
"""Kept-alive sessions: one per server and credential in a process, shared by the items of a loop
and by nobody else.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ..connection.options import Connection
from ..errors import ToolchainError, invalid
from .bodies import ACCEPTED, BodyError
from .connections import paced_adapter

if TYPE_CHECKING:
    from ..accounting import Accounting
    from ..connection.auth import Login

#: The traceback of the missing library, C(None) where it is there.
REQUESTS_MISSING: str | None = None
REQUEST_ERRORS: tuple[type[Exception], ...] = ()
try:
    import requests
    import urllib3
    from requests.cookies import extract_cookies_to_jar
    from requests.utils import get_environ_proxies

    REQUEST_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, BodyError)
except ImportError:
    REQUESTS_MISSING = traceback.format_exc()


#: Bytes of a body that are read and sent at once. Of what has C(read) the libraries take 16 KiB.
_BLOCK = 1024 * 1024


class Upload:
    """A body that is read from a file while it is sent; its length is known, so that it is not sent
    in chunks.
    """

    def __init__(
        self, what: str, open_body: Callable[[], IO[bytes]], size: int, accounting: Accounting
    ) -> None:
        self._what, self._size, self._accounting = what, size, accounting
        with self._reading():
            self._file = open_body()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        missing = self._size
        while missing:
            with self._reading():
                block = self._file.read(min(missing, _BLOCK))
            if not block:
                said = f"{self._what}: the file got shorter while it was sent"
                raise ToolchainError("failed", said)
            missing -= len(block)
            self._accounting.add(bytes_sent=len(block))
            yield block

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Trouble with the file is none with the connection."""
        try:
            yield
        except OSError as error:
            said = f"{self._what}: the file cannot be read: {error.strerror or error}"
            raise ToolchainError("failed", said) from None


@dataclass
class Kept:
    """A session and what is remembered with it (the crumb of the CI server)."""

    session: requests.Session
    verify: bool | str
    cert: tuple[str, str] | str | None
    keeps_cookies: bool = False
    memory: dict[str, Any] = field(default_factory=dict)

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        body: bytes | Upload | None,
        login: Login,
        timeout: float,
        proxies: Mapping[str, str],
    ) -> requests.Response:
        """One exchange without following redirects; of the environment only proxies count.

        The request is prepared here and given to the adapter: what the session does besides
        (merging settings, of which it has none, hooks, cookies that nobody keeps) takes as long as
        a small exchange.
        """
        prepared = requests.PreparedRequest()
        prepared.prepare_method(method)
        prepared.prepare_url(url, None)
        prepared.prepare_headers({**self.session.headers, **headers})
        if self.keeps_cookies:
            prepared.prepare_cookies(self.session.cookies)
        prepared.prepare_body(body, None)
        prepared.prepare_auth(login, url)
        response = self.session.get_adapter(prepared.url or url).send(
            prepared,
            timeout=timeout,
            stream=True,
            verify=self.verify,
            cert=self.cert,
            proxies=dict(proxies),
        )
        if self.keeps_cookies:
            extract_cookies_to_jar(  # type: ignore[no-untyped-call]
                self.session.cookies, prepared, response.raw
            )
        # urllib3 before 2 takes a body that breaks off for a whole one unless it is told
        response.raw.enforce_content_length = True
        return response


class Proxies:
    """The proxies that the environment names, which is searched once per task and origin: that
    takes as long as a small exchange.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int | None], Mapping[str, str]] = {}

    def of(self, place: tuple[str, str, int | None], url: str) -> Mapping[str, str]:
        """The proxies for an address, whose origin is C(place)."""
        if place not in self._known:
            self._known[place] = get_environ_proxies(url)
        return self._known[place]


#: Most sessions that are kept: one for each service, and some for a loop over logins.
_MOST_KEPT = 8
_kept: dict[tuple[Any, ...], Kept] = {}  # the one that was used last at the end
_lock = threading.Lock()


def kept_session(connection: Connection, *, connections: int, cookies: bool) -> Kept:
    """The session of a connection in this process, made where there is none yet.

    The key holds address, credential and TLS options: sessions with different credentials are never
    shared, and a
    forked worker does not use its parent's.
    """
    tls = tuple(
        connection.settings.get(name)
        for name in ("validate_certs", "ca_path", "client_cert", "client_key")
    )
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    key = (os.getpid(), connection, tls, bundle, connections, cookies)
    with _lock:
        kept = _kept.pop(key, None) or _new_session(connection, bundle, connections, cookies)
        _kept[key] = kept
        while len(_kept) > _MOST_KEPT:
            _forget(next(iter(_kept)))
        return kept


def _forget(key: tuple[Any, ...]) -> None:
    """Close a session; that of the process before the fork is the other process's to close."""
    kept = _kept.pop(key)
    if key[0] == os.getpid():
        kept.session.close()


def _new_session(
    connection: Connection, bundle: str | None, connections: int, cookies: bool
) -> Kept:
    settings = connection.settings
    session = requests.Session()
    session.trust_env = False  # a ~/.netrc that nobody named must not replace the credential
    session.headers["Accept-Encoding"] = ACCEPTED
    adapter = paced_adapter()(pool_maxsize=connections, max_retries=0, pool_block=True)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    verify: bool | str = bool(settings.get("validate_certs", True))
    if verify:
        verify = settings.get("ca_path") or bundle or True
        secure = connection.url.startswith("https:")
        if secure and bundle and verify == bundle and not os.path.exists(bundle):
            raise invalid(f"REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE: there is no '{bundle}'")
    else:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    certificate, key = settings.get("client_cert"), settings.get("client_key")
    both = (certificate, key) if certificate and key else certificate
    return Kept(session, verify, both, cookies)
