# SPDX-License-Identifier: GPL-3.0-or-later
"""Recover from writes whose response was lost: check the server, then retry or report [C1.4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ToolchainError
from .messages import Request, Response
from .retries import Retries

#: Looks at the server: C(True) the write is done, C(False) it is not, C(None) cannot be told.
Verify: TypeAlias = Callable[[], "bool | None"]

OUTCOME_UNKNOWN = "whether it was done is not known"
#: Answers after which the server may still be at it: a proxy, or we, gave up before it did.
_LATE_STATUS = frozenset({502, 504})
_LATE_KINDS = frozenset({"network", "timeout"})


@dataclass(frozen=True)
class Write:
    """A request that changes the server, and how to find out whether it did.

    :param send: sends it once and gives the answer, or raises what that stands for
    :param verify: reads whether it is done; without it nothing can be told
    :param repeatable: doing it twice is the same as doing it once
    """

    request: Request
    send: Callable[[], Response]
    verify: Verify | None
    repeatable: bool
    retries: Retries

    def carried_out(self) -> Response:
        """The answer; one without a body where only the look tells that it is done.

        It is sent again only after 429, or 503 with C(Retry-After), and only where the server
        surely did not act, or where that makes no difference.
        """
        attempt = 0
        while True:
            try:
                return self.send()
            except ToolchainError as error:
                error.resent = attempt > 0
                if self._is_gone(error) or self._is_done_by_another(error):
                    return _stand_in(self.request)
                if not error.outcome_unknown:
                    raise
                done = self._verify(error)
                if done:
                    return _stand_in(self.request)
                if not self._may_repeat(error, done, attempt):
                    raise self._told(error, done) from None
            attempt += 1

    def _is_gone(self, error: ToolchainError) -> bool:
        """Whether an earlier attempt was what deleted the object that is not found now."""
        return error.resent and self.request.method == "DELETE" and error.status == 404

    def _is_done_by_another(self, error: ToolchainError) -> bool:
        """Whether a creation clashed with one that did the same, as of the next host of a play."""
        created = self.request.method == "POST" and error.kind == "conflict"
        return created and self._verify_once() is True

    def _verify(self, error: ToolchainError) -> bool | None:
        """Look, and look again for a while where the server may still be at it."""
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
        """Make the pause after an attempt; false where there is none left."""
        pause = self.retries.pause(self.request, attempt, asked)
        if pause is not None:
            self.retries.rest(pause, counted=counted)
        return pause is not None

    def _told(self, error: ToolchainError, done: bool | None) -> ToolchainError:
        """The error with what is known of its effect."""
        if done is None:
            return error.with_hint(OUTCOME_UNKNOWN)
        error.verified_undone = True
        before = "by this request " if self.retries.accounting.acknowledged else ""
        return error.with_hint(f"{before}nothing was changed")


def _stand_in(request: Request) -> Response:
    """In place of an answer that does not tell what the look has told."""
    return Response(204, {}, b"", request, request.url)
