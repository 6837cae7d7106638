# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins that are exchanged for an access token: OpenID Connect, OAuth 2.0 client credentials.

One exchange serves the run. The workers that Ansible forks share the tokens in memory, never in a
file.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

from .. import json_text
from ..errors import ToolchainError, invalid
from ..files import open_regular
from ..secret import hidden
from .auth import HEADER_VALUE, Outgoing
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


class SharedTokens:
    """Access tokens in memory that a process shares with the processes it forks later."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        # stays empty: the system drops the lock of a worker that is killed
        self._lock_file = tempfile.TemporaryFile()  # noqa: SIM115
        self._threads = threading.Lock()

    @contextmanager
    def locked(self) -> Iterator[dict[str, AccessToken]]:
        """Yield the tokens by login. Changes are stored, and others wait until the block ends."""
        with self._threads:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX)
            try:
                known = self._load()
                before = dict(known)
                yield known
                if known != before:
                    self._store(known)
            finally:
                fcntl.lockf(self._lock_file, fcntl.LOCK_UN)

    def _load(self) -> dict[str, AccessToken]:
        length = int.from_bytes(self._memory[:_LENGTH], "big")
        stored = json.loads(self._memory[_LENGTH : _LENGTH + length]) if length else {}
        return {name: AccessToken(*values) for name, values in stored.items()}

    def _store(self, known: Mapping[str, AccessToken]) -> None:
        """Store the tokens; the oldest are dropped if the memory is too small."""
        rest = dict(known)
        while len(data := json.dumps(rest).encode()) > _SIZE - _LENGTH:
            del rest[next(iter(rest))]
        self._memory[:_LENGTH] = bytes(_LENGTH)  # a worker that is killed now leaves no tokens
        self._memory[_LENGTH : _LENGTH + len(data)] = data
        self._memory[:_LENGTH] = len(data).to_bytes(_LENGTH, "big")


@functools.cache
def shared_tokens() -> SharedTokens:
    """Return the tokens of this process. Workers share them if it was called before the fork."""
    return SharedTokens()


class ShortLived:
    """Login with an access token, which is renewed before it expires, and once after a 401.

    :param post: sends the request to the token service, as a read
    """

    def __init__(self, exchange: Exchange, post: Post) -> None:
        self._exchange, self._post = exchange, post
        place = [exchange.url, exchange.file, exchange.fields]
        secret = exchange.secret.reveal() if exchange.secret else ""
        self._name = hashlib.sha256(json.dumps([place, secret]).encode()).hexdigest()
        self._token: AccessToken | None = None
        #: A token of a renewal after a 401 that no request has proven yet.
        self._unproven = ""
        #: Failed exchanges. Threads that waited for one of them do not repeat it.
        self._failures: list[ToolchainError] = []

    def __call__(self, request: Outgoing) -> None:
        """Add the access token."""
        request.headers["Authorization"] = f"Bearer {self.prepare().text}"

    def prepare(self) -> AccessToken:
        """Return a fresh token. The first call of the run exchanges the login for it."""
        token = self._token
        if token is None or not token.is_fresh():
            failures = len(self._failures)
            with shared_tokens().locked() as known:
                current = known.get(self._name)
                if len(self._failures) > failures and (current is None or not current.is_fresh()):
                    last = self._failures[-1]
                    raise last.with_message(last.message)
                token = self._token = known[self._name] = self._fresh(current)
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
        with shared_tokens().locked() as known:
            current = known.get(self._name)
            if current is None or current.text == sent:  # no other worker has renewed it
                current = known[self._name] = self._new()
            self._token, self._unproven = current, current.text
        return True

    def _fresh(self, current: AccessToken | None) -> AccessToken:
        """Return the current token if it is fresh, else a new one."""
        if current is not None and current.is_fresh():
            return current
        try:
            return self._new()
        except ToolchainError:
            if current is None or not current.is_valid():
                raise
            # it serves until it expires
            return AccessToken(current.text, current.expires, current.expires)

    def _new(self) -> AccessToken:
        exchange, started = self._exchange, monotonic()
        purpose = f"exchanging {exchange.option} for an access token at {exchange.url}"
        body = {**dict(exchange.fields), exchange.member: _secret_of(exchange)}
        try:
            data, failure = self._post(exchange, purpose, body)
            return _token_of(data, started, failure)
        except ToolchainError as error:
            failed = _failed_login(error, exchange.remedy)
            self._failures.append(failed)
            raise failed from None


def _failed_login(cause: ToolchainError, remedy: str) -> ToolchainError:
    """Return the error for a failed exchange.

    It has no status of its own: operations would take a 404 for an object that is absent.
    """
    status = cause.status or 0
    kind = "auth" if 400 <= status < 500 and status not in _LATER else cause.kind
    error = ToolchainError(
        kind, cause.message, method=cause.method, url=cause.url, detail=cause.detail
    )
    error.login_status = cause.status
    return error.with_hint(remedy)


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
