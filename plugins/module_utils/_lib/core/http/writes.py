# SPDX-License-Identifier: GPL-3.0-or-later
"""Recover from writes whose response was lost: check the server, then retry or report [C1.4]."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..errors import ToolchainError, shorten
from .messages import Accounting, Request, Response, back_off

#: Headers that name the exceeded rate limit.
_REASONS = ("RateLimit-Reason", "X-RateLimit-Reason", "X-Beta-Ratelimit-Reason")
_AN_HOUR = 3600.0
RETRIED_READS = frozenset({408, 429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """The retry rules of a connection.

    :param most: maximum number of retries (`retries`)
    :param longest: maximum pause before a retry, in seconds (`retry_max_wait`)
    """

    most: int
    longest: float
    accounting: Accounting
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], accounting: Accounting, sleep: Callable[[float], None]
    ) -> Retries:
        """Return the retry rules for the settings of a connection."""
        longest = float(settings["retry_max_wait"])
        return cls(int(settings["retries"]), longest, accounting, sleep)

    def pause(self, request: Request, attempt: int, requested: float | None = None) -> float | None:
        """Return the seconds to wait before a retry, or `None` if the request must not be retried.

        :param attempt: number of the attempt that failed, from 0
        :param requested: minimum wait from `Retry-After`, in seconds
        """
        if request.once or attempt >= self.most or (requested or 0.0) > self.longest:
            return None
        pause = max(requested or 0.0, back_off(attempt, self.longest))
        return pause if pause < request.left() else None

    def wait(self, seconds: float, *, counted: bool) -> None:
        """Sleep before the next request.

        :param counted: count that request as a retry
        """
        self.accounting.add(retries=int(counted))
        self.sleep(seconds)

    def too_long(self, response: Response, requested: float, detail: str) -> ToolchainError:
        """Return the error for a server that requests a longer wait than `retry_max_wait`.

        :param requested: the wait in seconds
        :param detail: the server's error message
        """
        message = (
            f"the server returned {response.status} and requests a wait of {requested:.0f} s,"
            f" which is longer than retry_max_wait ({self.longest:g} s)"
        )
        message = f"{message}{limit_of(response)}"
        return response.error("rate_limited", f"{message}: {detail}" if detail else message, detail)


def longest_request(settings: Mapping[str, Any]) -> float:
    """Return the seconds after which a read with all its retries has ended, at most an hour.

    :param settings: settings of a connection
    """
    timeout, longest = float(settings["timeout"]), float(settings["retry_max_wait"])
    # connecting, the head and the body have a timeout each
    return min((int(settings["retries"]) + 1) * (3 * timeout + longest), _AN_HOUR)


def limit_of(response: Response) -> str:
    """Return the rate limit in the headers as a suffix for a message, or "" [tracker-4]."""
    headers = response.headers
    found = next((headers[name] for name in _REASONS if headers.get(name)), "")
    return f" ({shorten(found)})" if response.status in (429, 503) and found else ""


#: Verification read: returns whether the write is done, or `None` if that is unknown.
Verify: TypeAlias = Callable[[], "bool | None"]

OUTCOME_UNKNOWN = "whether it was done is not known"
#: Statuses of a proxy that stopped waiting; the server may still be processing the write.
_LATE_STATUS = frozenset({502, 504})
_LATE_KINDS = frozenset({"network", "timeout"})


@dataclass(frozen=True)
class Write:
    """A request that changes the server, with a verification read for lost responses.

    :param send: sends the request once; returns the response or raises an error
    :param verify: verification read; `None` means that the outcome stays unknown
    :param repeatable: the write is idempotent
    """

    request: Request
    send: Callable[[], Response]
    verify: Verify | None
    repeatable: bool
    retries: Retries

    def execute(self) -> Response:
        """Send the request and return the response.

        If the response was lost and the verification read shows that the write is done, the
        returned response is empty. The request is repeated only after 429, or 503 with
        `Retry-After`, and only if it is repeatable or had no effect.
        """
        attempt = 0
        while True:
            try:
                return self.send()
            except ToolchainError as error:
                error.resent = attempt > 0
                # another client, such as another host of the play, may have created the object
                created = self.request.method == "POST" and error.kind == "conflict"
                if self._is_gone(error) or (created and self._verify_once() is True):
                    return _confirmed(self.request)
                if not error.outcome_unknown:
                    raise
                done = self._verify(error)
                if done:
                    return _confirmed(self.request)
                may_repeat = error.retry_after is not None and (done is False or self.repeatable)
                if not (may_repeat and self._wait(attempt, error.retry_after, counted=True)):
                    raise self._with_hint(error, done) from None
            attempt += 1

    def _is_gone(self, error: ToolchainError) -> bool:
        """Return whether a repeated DELETE got 404, because an earlier attempt succeeded."""
        return error.resent and self.request.method == "DELETE" and error.status == 404

    def _verify(self, error: ToolchainError) -> bool | None:
        """Run the verification read. Repeat it if the server may still be processing the write."""
        late = error.kind in _LATE_KINDS or error.status in _LATE_STATUS
        done = self._verify_once()
        for attempt in range(self.retries.most if late else 0):
            if done is not False or not self._wait(attempt):
                break
            done = self._verify_once()
        return done

    def _verify_once(self) -> bool | None:
        if self.verify is None:
            return None
        try:
            return self.verify()
        except ToolchainError:
            return None

    def _wait(self, attempt: int, requested: float | None = None, *, counted: bool = False) -> bool:
        """Sleep before the next attempt. Return `False` if no attempt is left."""
        pause = self.retries.pause(self.request, attempt, requested)
        if pause is not None:
            self.retries.wait(pause, counted=counted)
        return pause is not None

    def _with_hint(self, error: ToolchainError, done: bool | None) -> ToolchainError:
        """Add to the error message whether the write had an effect."""
        if done is None:
            return error.with_hint(OUTCOME_UNKNOWN)
        error.verified_undone = True
        before = "by this request " if self.retries.accounting.acknowledged else ""
        return error.with_hint(f"{before}nothing was changed")


def _confirmed(request: Request) -> Response:
    """Return an empty response for a write that was confirmed by a verification read."""
    return Response(204, {}, b"", request, request.url)
