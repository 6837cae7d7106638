# SPDX-License-Identifier: GPL-3.0-or-later
"""Recover from writes whose response was lost: check the server, then retry or report [C1.4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ToolchainError
from .messages import Request, Response
from .retries import Retries

#: Checks the server: `True` the write is done, `False` it is not, `None` unknown.
Verify: TypeAlias = Callable[[], "bool | None"]

OUTCOME_UNKNOWN = "whether it was done is not known"
#: Statuses after which the server may still be working: a proxy, or this client, gave up earlier.
_LATE_STATUS = frozenset({502, 504})
_LATE_KINDS = frozenset({"network", "timeout"})


@dataclass(frozen=True)
class Write:
    """A request that changes the server, with a check of its effect.

    :param send: sends the request once; returns the response, or raises its error
    :param verify: reads whether the write is done; without it the outcome of a lost response is
        unknown
    :param repeatable: a second write has no further effect
    """

    request: Request
    send: Callable[[], Response]
    verify: Verify | None
    repeatable: bool
    retries: Retries

    def carried_out(self) -> Response:
        """Return the response. It has no body if only the verification read shows that the write is
        done.

        The request is sent again only after 429, or 503 with `Retry-After`. The server must surely
        not have acted, or the write must be repeatable.
        """
        attempt = 0
        while True:
            try:
                return self.send()
            except ToolchainError as error:
                error.resent = attempt > 0
                if self._is_gone(error) or self._is_done_by_another(error):
                    return _confirmed(self.request)
                if not error.outcome_unknown:
                    raise
                done = self._verify(error)
                if done:
                    return _confirmed(self.request)
                if not self._may_repeat(error, done, attempt):
                    raise self._with_hint(error, done) from None
            attempt += 1

    def _is_gone(self, error: ToolchainError) -> bool:
        """Return whether an earlier attempt deleted the object that is not found now."""
        return error.resent and self.request.method == "DELETE" and error.status == 404

    def _is_done_by_another(self, error: ToolchainError) -> bool:
        """Return whether a creation conflicts with an equal creation, as by the next host of a
        play.
        """
        created = self.request.method == "POST" and error.kind == "conflict"
        return created and self._verify_once() is True

    def _verify(self, error: ToolchainError) -> bool | None:
        """Run the verification read; repeat it for a while if the server may still be working."""
        late = error.kind in _LATE_KINDS or error.status in _LATE_STATUS
        done = self._verify_once()
        for attempt in range(self.retries.most if late else 0):
            if done is not False or not self._rest(attempt):
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

    def _may_repeat(self, error: ToolchainError, done: bool | None, attempt: int) -> bool:
        if error.retry_after is None or not (done is False or self.repeatable):
            return False
        return self._rest(attempt, error.retry_after, counted=True)

    def _rest(self, attempt: int, asked: float | None = None, *, counted: bool = False) -> bool:
        """Make the pause after an attempt; return false if no attempt is left."""
        pause = self.retries.pause(self.request, attempt, asked)
        if pause is not None:
            self.retries.rest(pause, counted=counted)
        return pause is not None

    def _with_hint(self, error: ToolchainError, done: bool | None) -> ToolchainError:
        """Return the error with a hint about the effect of the write."""
        if done is None:
            return error.with_hint(OUTCOME_UNKNOWN)
        error.verified_undone = True
        before = "by this request " if self.retries.accounting.acknowledged else ""
        return error.with_hint(f"{before}nothing was changed")


def _confirmed(request: Request) -> Response:
    """Return an empty response for a write that the verification read has confirmed."""
    return Response(204, {}, b"", request, request.url)
