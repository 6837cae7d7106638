# SPDX-License-Identifier: GPL-3.0-or-later
"""C(ci_build_stop): the end of a running build [C3.2]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.module.task import Task
from ...core.plan import Plan, unchanged
from ...core.polling import Pace, TimeUp
from .. import stopping
from ..client import object_of, server_of
from ..job_address import build_path, job_of
from . import records
from .build_request import Paces
from .build_watcher import Watch

#: A number, or a name that stands for one, as C(lastBuild).
_BUILD = re.compile(r"[0-9]+|[A-Za-z][A-Za-z0-9_-]*")
_LOWEST = {"wait_timeout": 0, "grace": 0}
#: How long a build may take to end whose stop was not answered, in seconds.
_READING_BACK = 5.0


def build_segment(given: object) -> str:
    """The last part of a build's address: its number or a permalink; C(invalid) for others."""
    text = str(given).strip()
    if _BUILD.fullmatch(text) is None:
        raise invalid(f"build is '{text}': give a number, or a permalink such as lastBuild")
    return text


class BuildStop:
    """One build that is to be stopped; C(paces) makes the pauses."""

    def __init__(self, task: Task, paces: Paces = Pace) -> None:
        self._task, self._params, self._paces = task, task.params, paces
        for name, lowest in _LOWEST.items():
            if task.params[name] < lowest:
                raise invalid(f"{name} is {task.params[name]}: give {lowest} or more")
        if task.params["poll_interval"] <= 0:
            raise invalid("poll_interval is the time between two polls: give more than 0 seconds")
        if task.params["escalate"] and not task.params["wait"]:
            raise invalid("escalate needs wait: the next method is for a build that goes on")
        self._job = job_of(task.params["job"], task.connection.url)
        self._segment = build_segment(task.params["build"])
        self._what = f"stopping build {self._segment} of the job '{self._job.name}'"
        self._server = server_of(task)
        self._watch = self._watching(float(task.params["wait_timeout"]))

    def plan(self) -> Plan:
        path = f"{self._job.path}/{self._segment}/api/json"
        answer = self._server.read(
            self._what, path, query={"tree": records.BUILD_FIELDS}, expect=(200, 404)
        )
        if answer.status == 404:
            raise answer.error(
                "not_found",
                "the server answered 404: there is no such job or build, or the account may not"
                " see it",
            )
        shown = object_of(answer)
        number = records.number_of(shown.get("number", self._segment))
        if number is None:
            raise answer.error("protocol", "the server does not tell the number of the build")
        if not records.tells_end(shown):
            query = {"tree": records.SUMMARIES}
            listed = self._server.read(self._what, f"{self._job.path}/api/json", query=query)
            shown = {**records.summary(listed, number), **shown}
        self._watch.take_build({**shown, "number": number}, answer)
        if self._watch.over or records.is_idle(self._watch.build or {}):
            return unchanged(self._values())
        state = {"job": self._job.name, "build": number}
        before, after = {**state, "running": True}, {**state, "running": False}
        return Plan(before, after, "run").returning(**self._values())

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        started = self._paces(float(self._params["wait_timeout"]), 1)
        *first, last = self._methods()
        told = False
        for method in (*first, last):
            known = self._send(method)
            told = told or known
            if method == last and not told:
                raise self._unknown(method)
            if not self._params["wait"]:
                break
            if method != last and not known:
                continue
            left = started.left
            if method != last:
                left = min(float(self._params["grace"]), left)
            if self._ends_within(left):
                return self._values()
            if started.left <= 0:
                break
        if self._params["wait"]:
            raise self._goes_on()
        self._watch.step()
        return self._values()

    def _methods(self) -> tuple[str, ...]:
        first = stopping.METHODS.index(self._params["method"])
        return stopping.METHODS[first : None if self._params["escalate"] else first + 1]

    def _send(self, method: str) -> bool:
        """Send one method; false where the server does not have it."""
        number = self._watch.number
        if number is None:
            raise AssertionError("apply follows plan")
        what = f"{self._what} by {method}"
        path = build_path(self._job, number)
        return stopping.send(self._server, what, path, method, look=self._read_back)

    def _read_back(self) -> bool:
        """Whether the build ends although the answer to its stop does not tell."""
        return self._ends_within(_READING_BACK)

    def _ends_within(self, seconds: float) -> bool:
        self._watch = self._watching(seconds, self._watch)
        try:
            self._watch.follow()
        except TimeUp:
            return False
        return True

    def _watching(self, seconds: float, before: Watch | None = None) -> Watch:
        pace = self._paces(seconds, float(self._params["poll_interval"]))
        watch = Watch(self._server, self._job, pace, self._task.progress, 0)
        watch.build = None if before is None else before.build
        return watch

    def _goes_on(self) -> ToolchainError:
        hint = "" if self._params["escalate"] else "; escalate: true tries harder methods"
        return ToolchainError(
            "timeout",
            f"{self._what}: it was told to stop, but goes on ({self._watch.url}), and wait_timeout"
            f" ({self._params['wait_timeout']:g} s) is over{hint}",
            url=self._watch.url,
            result={"changed": True, **self._values()},
        )

    def _unknown(self, method: str) -> ToolchainError:
        """Server fact [ci-10]: C(term) and C(kill) are there for pipelines alone."""
        return ToolchainError(
            "rejected",
            f"{self._what}: the server has no {method} for this build, as for all that are no"
            " pipelines, or the build is gone",
            status=404,
            method="POST",
            url=self._watch.url,
            result=self._values(),
        )

    def _values(self) -> dict[str, Any]:
        shown = self._watch.build or {}
        return {"build": records.shown(shown, self._job, self._task.connection.url)}
