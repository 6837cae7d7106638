# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the build that a task requests, check its result, and return its values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...core.errors import Kind, ToolchainError, shorten
from ...core.http.transport import Transport
from ...core.module.task import Task
from ...core.progress import PollInterval, PollTimeout
from ..job_address import build_path
from ..waiting import PollingFactory
from . import build_watcher, queue_item, records
from .build_request import ResolvedBuild
from .followed_build import FollowedBuild
from .records import TriggeredBuild
from .trigger import BuildClaims, Trigger

#: Maximum seconds to wait for the end of a build after a stop request.
_STOP_SECONDS = 10.0
#: Maximum seconds for the stop request after Ctrl-C.
_INTERRUPT_SECONDS = 5.0


class RequestedBuild(FollowedBuild):
    """A requested build: started if necessary, followed to its end, and validated.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    def __init__(
        self,
        task: Task,
        server: Transport,
        resolved: ResolvedBuild,
        make_polling: PollingFactory,
    ) -> None:
        options, found = resolved.options, resolved.found
        super().__init__(
            server,
            resolved.job,
            make_polling(0, 1),
            keep=options.console_lines,
            on_input=options.on_input,
            found=found,
            first=resolved.state.next_number,
            session=resolved.state.session,
        )
        self.resolved = resolved
        self._task, self._options, self._make_polling = task, options, make_polling
        self._trigger: Trigger | None = None
        self._find_started: Callable[[], TriggeredBuild] | None = None
        self.started = False
        if found is not None and found.build is not None and resolved.response is not None:
            self.attempt(partial(self.take_build, found.build, resolved.response))
        #: Whether the build is one that existed before.
        self.joined = found is not None and not self.over
        self.error = self.error or resolved.error
        # the result has the item of a build that cannot be followed, too
        self.item = self.item or options.queue_id

    @property
    def is_known(self) -> bool:
        """Return whether the build has a queue item or a number, or an earlier task started it."""
        awaited = self._options.state == "finished"
        return awaited or self.item is not None or self.number is not None

    def ask(self, claims: BuildClaims) -> None:
        """Send the trigger. Call `settle` after the triggers of all builds of the task."""
        options, user = self._options, self._task.connection.username
        self._trigger = Trigger(self._server, self.resolved, user=user, claims=claims)
        limit = options.wait_timeout if options.wait else None
        started = self._trigger.send(options.delay, self._short_polling, wait=limit)
        if isinstance(started, TriggeredBuild):
            self._take_started(started)
        else:
            self._find_started = started

    def settle(self) -> None:
        """Search for the started build if the response did not contain its queue item."""
        if self._find_started is not None:
            self._take_started(self._find_started())

    def find(self) -> tuple[TriggeredBuild | None, bool]:
        return super().find() if self._trigger is None else self._trigger.find()

    def validate(self) -> None:
        """Raise `failed` if the result of the build is not in `accept`."""
        build, accept = self.build or {}, self._options.accept
        if build.get("result") in accept:
            return
        reason = "" if self.console is None else self.console.reason()
        raise ToolchainError(
            "failed",
            f"{self.resolved.purpose}: build #{build.get('number')} ended with"
            f" {build.get('result') or 'no result'} instead of {' or '.join(accept)}"
            f" ({self.url}){': ' if reason else ''}{shorten(reason)}",
            url=self.url,
            detail=reason or None,
        )

    def abandon(self, *, at_once: bool) -> str:
        """Stop waiting for the build, and return its state for a message. With `stop_on_timeout`
        the build is stopped if this task started it.

        :param at_once: whether to return without waiting for the end of the stopped build
        """
        purpose = self.resolved.purpose
        if self.resolved.outstanding and self._trigger is None:
            return f"{purpose}: the build was not started"
        if not self._options.stop_on_timeout or not self.started or self.joined:
            return self.running()
        try:
            return f"{purpose}: {self._stopped(at_once)} ({self.url})"
        except ToolchainError as error:
            return f"{self.running()}, and it could not be stopped: {error.message}"

    def out_of_time(self) -> PollTimeout:
        """Return the error after `wait_timeout`. Its kind is `waiting` if the build waits for an
        input, otherwise `timeout`.
        """
        limit = f"wait_timeout ({self._options.wait_timeout:g} s)"
        message = f"{self.abandon(at_once=False)}; {limit} expired"
        kind: Kind = "timeout" if self.input is None else "waiting"
        return PollTimeout(kind, message)

    def values(self) -> dict[str, Any]:
        """Return the return values `build`, `queue_id`, `console` and `joined`."""
        console, wanted = self.console, dict(self.resolved.wanted.shown)
        if console is not None and console.error is not None:
            self._task.warn(
                f"{self.resolved.purpose}: the console log is missing: {console.error.message}"
            )
        build = records.shown(self.build or {}, self.job, self._task.connection.url)
        if "actions" not in (self.build or {}):
            build["parameters"] = wanted
        item = build["queue_id"] if self.item is None else self.item
        return {
            "build": {**build, "queue_id": item, "input": self.input},
            "queue_id": item,
            "console": [] if console is None else console.lines(),
            "joined": self.joined,
        }

    def _take_started(self, triggered: TriggeredBuild) -> None:
        if triggered.item is None and triggered.number is None:
            self._task.warn(
                f"{self.resolved.purpose}: the response does not contain the queue item"
            )
        self.started, self.joined = True, triggered.folded
        self.take(triggered)

    def _short_polling(self, timeout: float) -> PollInterval:
        return self._make_polling(timeout, self._options.poll_interval)

    def _stopped(self, at_once: bool) -> str:
        """Stop the build or cancel its queue item. Return the outcome for a message."""
        patience = _INTERRUPT_SECONDS if at_once else None
        purpose = f"stopping a build of the job '{self.job.name}'"
        if self.number is None and self.item is not None:
            if queue_item.cancel(self._server, purpose, self.item, patience=patience):
                return f"queue item {self.item} was cancelled"
            self.step()
        number = self.number
        if number is None:
            raise ToolchainError("failed", f"{purpose}: the build has no number yet")
        try:
            path = build_path(self.job, number)
            queue_item.send(self._server, purpose, path, "stop", patience=patience)
        except ToolchainError as error:
            if not error.outcome_unknown:
                raise
        if at_once:
            return f"build #{number} was asked to stop"
        try:
            polling = self._short_polling(_STOP_SECONDS)
            build_watcher.follow(self._server, self, polling, lambda line: None)
        except PollTimeout:
            return f"build #{number} was asked to stop, but is still running"
        return f"build #{number} was stopped"
