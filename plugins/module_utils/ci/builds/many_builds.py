# SPDX-License-Identifier: GPL-3.0-or-later
"""C(ci_job_build) with C(builds): many builds in one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.concurrency import bounded, first_alone
from ...core.errors import Kind, ToolchainError, invalid, shorten
from ...core.interrupts import interruptible
from ...core.module.task import Task
from ...core.plan import Plan, unchanged
from ...core.polling import Pace, TimeUp
from ..client import server_of
from . import records
from .build_request import Order, Paces
from .many_builds_watcher import Fleet, Follower
from .trigger import Claims


class _Entry:
    """An entry of C(builds); C(error) is why its build is not there, or not good."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.error: ToolchainError | None = None
        #: An earlier entry that asks for the very same build.
        self.twin: _Entry | None = None

    @property
    def outstanding(self) -> bool:
        return self.error is None and self.twin is None and self.order.outstanding

    def attempt(self, step: Callable[[], Any]) -> None:
        """Take a step; an error ends this entry and no other."""
        try:
            step()
        except ToolchainError as error:
            self.error = error

    def key(self) -> tuple[Any, ...]:
        """Job and parameters, those that cannot be compared as they are sent."""
        wanted = self.order.wanted
        hidden = [pair for pair in wanted.form if pair[0] not in wanted.expected]
        return self.order.job.path, tuple(sorted(wanted.expected.items())), tuple(hidden)


class ManyBuilds:
    """The builds that a task lists: started side by side, followed together, judged each by
    itself. What is wrong with one does not keep the others from being built.
    """

    def __init__(self, task: Task, paces: Paces = Pace) -> None:
        self._task, self._params, self._paces = task, task.params, paces
        self._parallel = int(task.params["parallel"])
        if self._parallel < 1:
            raise invalid(f"parallel is {self._parallel}: give 1 or more")
        self._server = server_of(task)
        claims = Claims()
        self._entries = [
            _Entry(Order(task, self._server, _options(task.params, given), paces, claims))
            for given in task.params["builds"]
        ]

    def plan(self) -> Plan:
        self._compare()
        begun = [entry for entry in self._entries if entry.outstanding]
        if not begun:
            return unchanged(self._carried_out([]))
        wanted = [
            {"job": entry.order.job.name, "parameters": entry.order.wanted.shown} for entry in begun
        ]
        plan = Plan({}, {"builds": wanted}, "run").returning(**self._result())
        return replace(plan, failure=self._failure(changed=True))

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._carried_out([entry for entry in self._entries if entry.outstanding])

    def _compare(self) -> None:
        """Read each job once, and find out which builds are to be started."""
        by_job: dict[str, list[_Entry]] = {}
        for entry in self._entries:
            by_job.setdefault(entry.order.job.path, []).append(entry)
        states = bounded(self._parallel, self._read, list(by_job.values()))
        for entries, state in zip(by_job.values(), states, strict=True):
            for entry in entries:
                if isinstance(state, ToolchainError):
                    entry.error = state
                else:
                    self._compare_one(entry, state)
        self._find_twins()

    def _read(self, entries: Sequence[_Entry]) -> records.State | ToolchainError:
        """The job of these entries, with as many builds as the most curious of them wants."""
        order = max((entry.order for entry in entries), key=lambda order: order.lookback)
        try:
            return order.read()
        except ToolchainError as error:
            return error

    def _compare_one(self, entry: _Entry, state: records.State) -> None:
        entry.attempt(lambda: entry.order.compare(state))

    def _find_twins(self) -> None:
        """With C(unless_successful) a build that is wanted twice is started once."""
        first: dict[tuple[Any, ...], _Entry] = {}
        for entry in self._entries:
            if entry.outstanding and entry.order.if_needed:
                twin = first.setdefault(entry.key(), entry)
                entry.twin = None if twin is entry else twin

    def _carried_out(self, begun: Sequence[_Entry]) -> dict[str, Any]:
        """Start builds, wait for all, judge each; raises when one of them went wrong."""
        wait = bool(self._params["wait"])
        pace = self._paces(float(self._params["wait_timeout"]), self._params["poll_interval"])
        for entry in self._entries:
            entry.order.be_watched(pace, lambda line: None)
        with interruptible() as say:
            try:
                self._begin(begun, wait)
                if wait:
                    self._follow(pace)
            except KeyboardInterrupt:
                self._interrupted(say)
        failure = self._failure(changed=any(entry.order.started for entry in self._entries))
        if failure is not None:
            raise failure
        return self._result()

    def _begin(self, begun: Sequence[_Entry], wait: bool) -> None:
        def ask(entry: _Entry) -> None:
            entry.attempt(lambda: entry.order.ask(wait=wait))

        for entry in begun:
            entry.order.announce()
        # alone, so that the others find its session and its anti-forgery token
        for _done in first_alone(self._parallel, ask, begun):
            pass
        asked = [entry for entry in begun if entry.error is None]
        for _done in bounded(self._parallel, lambda one: one.attempt(one.order.settle), asked):
            pass

    def _follow(self, pace: Pace) -> None:
        followers = {
            entry: Follower(entry.order.watch, entry.order.first_number)
            for entry in self._entries
            if entry.error is None and entry.twin is None and entry.order.finished is None
        }
        fleet = Fleet(
            self._server, list(followers.values()), pace, self._task.progress, self._parallel
        )
        try:
            fleet.follow()
        except TimeUp:
            late = [entry for entry, follower in followers.items() if follower.open]
            for _done in bounded(self._parallel, self._out_of_time, late):
                pass
        for entry, follower in followers.items():
            entry.error = entry.error or follower.error
        ended = [entry for entry in self._entries if entry.order.watch.over]
        for _done in bounded(self._parallel, lambda entry: entry.order.watch.finish(), ended):
            pass
        for entry in followers:
            if entry.error is None:
                entry.attempt(entry.order.judge)

    def _out_of_time(self, entry: _Entry) -> None:
        entry.error = TimeUp("timeout", entry.order.out_of_time())

    def _interrupted(self, say: Callable[[str], None]) -> None:
        """Say what becomes of each build that goes on."""
        left = [
            entry
            for entry in self._entries
            if entry.error is None and entry.twin is None and not entry.order.watch.over
        ]

        def leave(entry: _Entry) -> None:
            words = entry.order.left_alone(at_once=True)
            entry.error = ToolchainError("failed", f"interrupted; {words}")
            say(entry.error.message)

        for _done in bounded(self._parallel, leave, left):
            pass

    def _failure(self, *, changed: bool) -> ToolchainError | None:
        """One error for all that went wrong, C(None) where nothing did."""
        wrong = [entry.error for entry in self._entries if entry.error is not None]
        if not wrong:
            return None
        kinds: set[Kind] = {error.kind for error in wrong}
        messages = "; ".join(dict.fromkeys(error.message for error in wrong))
        words = f"{len(wrong)} of {len(self._entries)} builds went wrong: {shorten(messages)}"
        kind = kinds.pop() if len(kinds) == 1 else "failed"
        return ToolchainError(kind, words, result={**self._result(), "changed": changed})

    def _result(self) -> dict[str, Any]:
        return {"builds": [self._row(entry) for entry in self._entries]}

    def _row(self, entry: _Entry) -> dict[str, Any]:
        source = entry.twin or entry
        error = source.error
        failure = None if error is None else self._task.failure(error)
        values = source.order.values()
        if entry.twin is not None:
            values["joined"] = True
        return {
            "job": entry.order.job.name,
            **values,
            "ok": error is None,
            "msg": None if failure is None else failure["msg"],
            "error": None if failure is None else failure["error"],
        }


def _options(params: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one build: those of its entry before those of the task."""
    own = {name: value for name, value in given.items() if value is not None}
    return {**params, "parameters": None, **own}
