# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins that are exchanged for an access token: OpenID Connect, OAuth 2.0 client credentials.

One exchange serves the run. The workers that Ansible forks share the tokens in memory, never in a
file. Only tasks with the same login wait for each other.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

from .. import json_text
from ..errors import ToolchainError, invalid
from ..files import open_regular
from ..secret import hidden
from .auth import HEADER_VALUE, Outgoing, RenewedLogin
from .connection import Exchange

#: Bytes of the shared memory, and of its first field, the length of the rest.
_SIZE, _LENGTH = 256 * 1024, 8
#: Bytes of an identity token in a file: issuers write at most a few KiB.
_LONGEST_TOKEN = 64 * 1024
#: A token is renewed this part of its lifetime before it expires, but at most this many seconds.
_MARGIN, _LONGEST_MARGIN = 0.1, 60.0
#: Maximum lifetime in seconds; a longer one is as good as none.
_LONGEST_LIFE = 10.0 * 365 * 24 * 3600
#: Statuses of a token service that do not reject the login: a later exchange may succeed.
_LATER = frozenset({408, 429})

#: Attributes of an error that other tasks get.
_ATTRIBUTES = ("kind", "message", "method", "url", "detail", "login_status")
_SECONDS_BETWEEN_TRIES = 0.02

#: Sends a JSON body to the token service. Returns the body of the response and its error function.
Post = Callable[[Exchange, str, Mapping[str, str]], "tuple[bytes, Callable[[str], ToolchainError]]"]


class AccessToken(NamedTuple):
    """An access token. The times are seconds of the monotonic clock, the same in all workers.

    :param renewed: when to renew it
    :param expires: when it is useless; `None` if the server did not tell
    """

    text: str
    renewed: float | None
    expires: float | None

    def is_fresh(self) -> bool:
        return self.renewed is None or monotonic() < self.renewed

    def is_valid(self) -> bool:
        return self.expires is None or monotonic() < self.expires


class FailedExchange(NamedTuple):
    """The last failed exchange of a login, numbered from 1."""

    number: int
    error: Mapping[str, Any]


class Shared(NamedTuple):
    """What the processes of a run share, by login."""

    tokens: dict[str, AccessToken]
    failures: dict[str, FailedExchange]


class SharedTokens:
    """Access tokens in memory that a process shares with the processes it forks later.

    The locks are on bytes of an empty file, so the system drops those of a worker that is killed.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._lock_file, name = tempfile.mkstemp()  # open until the process ends
        os.unlink(name)
        self._threads = threading.Lock()
        #: A lock of each login for the threads of a process, which share its locks on the file.
        self._logins: dict[str, threading.Lock] = {}

    def of(self, login: str) -> tuple[AccessToken | None, FailedExchange | None]:
        """Return the token and the last failure of a login."""
        with self._opened() as shared:
            return shared.tokens.get(login), shared.failures.get(login)

    def add(self, login: str, token: AccessToken) -> None:
        with self._opened() as shared:
            shared.tokens[login] = token

    def add_failure(self, login: str, error: ToolchainError) -> None:
        attributes = {name: getattr(error, name) for name in _ATTRIBUTES}
        with self._opened() as shared:
            last = shared.failures.get(login)
            shared.failures[login] = FailedExchange(last.number + 1 if last else 1, attributes)

    @contextmanager
    def exchanging(self, login: str, patience: float) -> Iterator[None]:
        """Let others that exchange the same login wait until the block ends.

        :param login: hexadecimal digest of the login
        :param patience: seconds to wait for another; then the block begins nevertheless
        """
        deadline = time.monotonic() + patience
        threads, byte = self._logins.setdefault(login, threading.Lock()), 1 + int(login[:12], 16)
        if not threads.acquire(timeout=patience):
            yield
            return
        try:
            while not self._lock(byte) and time.monotonic() < deadline:
                time.sleep(_SECONDS_BETWEEN_TRIES)
            yield
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, byte)
            threads.release()

    def _lock(self, byte: int) -> bool:
        """Lock a byte unless another process has locked it."""
        try:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True

    @contextmanager
    def _opened(self) -> Iterator[Shared]:
        """Yield the content of the memory, and store its changes. Never wait in the block."""
        with self._threads:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX, 1)
            try:
                length = int.from_bytes(self._memory[:_LENGTH], "big")
                stored: list[dict[str, Any]] = [{}, {}]
                if length:
                    stored = json.loads(self._memory[_LENGTH : _LENGTH + length])
                shared = Shared(
                    {login: AccessToken(*values) for login, values in stored[0].items()},
                    {login: FailedExchange(*values) for login, values in stored[1].items()},
                )
                before = Shared(dict(shared.tokens), dict(shared.failures))
                yield shared
                if shared != before:
                    self._store(shared)
            finally:
                fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1)

    def _store(self, shared: Shared) -> None:
        """Store the content. Failures and the oldest tokens are dropped if it is too large."""
        while len(data := json.dumps(shared).encode()) > _SIZE - _LENGTH:
            rest: dict[str, Any] = shared.failures or shared.tokens
            del rest[next(iter(rest))]
        self._memory[:_LENGTH] = bytes(_LENGTH)  # a worker that is killed now leaves no tokens
        self._memory[_LENGTH : _LENGTH + len(data)] = data
        self._memory[:_LENGTH] = len(data).to_bytes(_LENGTH, "big")


@functools.cache
def shared_tokens() -> SharedTokens:
    """Return the tokens of this process. Workers share them if it was called before the fork."""
    return SharedTokens()


class ShortLived(RenewedLogin):
    """Login with an access token, which is renewed before it expires, and once after a 401.

    :param post: sends the request to the token service, as a read
    :param patience: seconds to wait while another task exchanges the same login
    """

    def __init__(self, exchange: Exchange, post: Post, patience: float) -> None:
        self._exchange, self._post, self._patience = exchange, post, patience
        place = [exchange.url, exchange.file, exchange.fields]
        secret = exchange.secret.reveal() if exchange.secret else ""
        self._name = hashlib.sha256(json.dumps([place, secret]).encode()).hexdigest()
        self._token: AccessToken | None = None
        #: A token of a renewal after a 401 that no request has proven yet.
        self._unproven = ""

    def __call__(self, request: Outgoing) -> None:
        """Add the access token."""
        request.headers["Authorization"] = f"Bearer {self.prepare().text}"

    def prepare(self) -> AccessToken:
        """Return a fresh token. The first call of the run exchanges the login for it."""
        token = self._token
        if token is None or not token.is_fresh():
            token = self._token = self._shared(AccessToken.is_fresh, self._renewed)
        hidden.add(token.text)
        return token

    def is_replaced(self, request: Outgoing, status: int) -> bool:
        """Return whether a response with this status is due to a token that has been replaced.

        The server did not act on the request. A new token that is rejected, too, is not replaced.
        """
        sent = request.headers["Authorization"].removeprefix("Bearer ")
        if status != 401:
            self._unproven = "" if sent == self._unproven else self._unproven
            return False
        if sent == self._unproven:
            return False
        # another worker may have renewed it
        token = self._shared(lambda current: current.text != sent, lambda _current: self._new())
        self._token, self._unproven = token, token.text
        return True

    def _shared(
        self,
        is_usable: Callable[[AccessToken], bool],
        renew: Callable[[AccessToken | None], AccessToken],
    ) -> AccessToken:
        """Return the token of the run if it is usable, else renew it.

        A task that waits while another exchanges the same login shares the token, or the failure.
        """
        shared = shared_tokens()
        current, before = shared.of(self._name)
        if current is not None and is_usable(current):
            return current
        with shared.exchanging(self._name, self._patience):
            current, failure = shared.of(self._name)
            if current is not None and is_usable(current):
                return current
            if failure is not None and failure.number > (before.number if before else 0):
                attributes = dict(failure.error)
                failed = ToolchainError(attributes["kind"], attributes["message"])
                vars(failed).update(attributes)
                raise failed
            try:
                token = renew(current)
            except ToolchainError as error:
                shared.add_failure(self._name, error)
                raise
            shared.add(self._name, token)
        return token

    def _renewed(self, current: AccessToken | None) -> AccessToken:
        """Return a new token, or the current one until it expires if the exchange fails."""
        try:
            return self._new()
        except ToolchainError:
            if current is None or not current.is_valid():
                raise
            return AccessToken(current.text, current.expires, current.expires)

    def _new(self) -> AccessToken:
        exchange, started = self._exchange, monotonic()
        purpose = f"exchanging {exchange.option} for an access token at {exchange.url}"
        body = {**dict(exchange.fields), exchange.member: _secret_of(exchange)}
        try:
            data, failure = self._post(exchange, purpose, body)
            return _token_of(data, started, failure)
        except ToolchainError as cause:
            # it has no status of its own: operations would take a 404 for an object that is absent
            status = cause.status or 0
            kind = "auth" if 400 <= status < 500 and status not in _LATER else cause.kind
            error = ToolchainError(
                kind, cause.message, method=cause.method, url=cause.url, detail=cause.detail
            )
            error.login_status = cause.status
            raise error.with_hint(exchange.remedy) from None


def _secret_of(exchange: Exchange) -> str:
    """Return the identity token or client secret. A file is read again for each exchange."""
    if exchange.secret is not None:
        return exchange.secret.reveal()
    file = os.path.abspath(os.path.expanduser(exchange.file or ""))
    try:
        with open(file, "rb", opener=open_regular) as stream:
            text = stream.read(_LONGEST_TOKEN + 1).decode("ascii", "replace").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is invalid"
        raise invalid(f"{exchange.option}: cannot read {file}: {reason}") from None
    hidden.add(text)
    if len(text) > _LONGEST_TOKEN or HEADER_VALUE.fullmatch(text) is None:
        wanted = "must contain the identity token and nothing else"
        raise invalid(f"{exchange.option}: {file} {wanted if text else f'is empty, but {wanted}'}")
    return text


def _token_of(data: bytes, started: float, failure: Callable[[str], ToolchainError]) -> AccessToken:
    """Return the token in a response. Raises `protocol`, without the response: it may be a secret.

    Without a usable lifetime the token serves until the server rejects it.
    """
    try:
        found = json_text.loads(data)
    except ValueError:
        found = None
    text = found.get("access_token") if isinstance(found, Mapping) else None
    if not isinstance(text, str) or HEADER_VALUE.fullmatch(text) is None:
        raise failure("without an access_token")
    hidden.add(text)
    life = _seconds(found.get("expires_in")) if isinstance(found, Mapping) else None
    if life is None:
        return AccessToken(text, None, None)
    margin = min(life * _MARGIN, _LONGEST_MARGIN)
    return AccessToken(text, started + life - margin, started + life)


def _seconds(value: Any) -> float | None:
    """Return a lifetime in seconds, or `None` if it is missing, no number or not positive."""
    try:
        seconds = float(value) if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError, OverflowError):
        return None
    return min(seconds, _LONGEST_LIFE) if seconds > 0 else None
