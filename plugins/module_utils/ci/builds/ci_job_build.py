# SPDX-License-Identifier: GPL-3.0-or-later
"""C(ci_job_build): builds that are started once and followed to their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError
from ...core.interrupts import interruptible
from ...core.module.task import Task
from ...core.plan import Operation, Plan, unchanged
from ...core.polling import Pace, TimeUp
from ..client import server_of
from . import records
from .build_request import Order, Paces
from .many_builds import ManyBuilds


def operation(task: Task, paces: Paces = Pace) -> Operation:
    """The operation of the module: one build, or those that C(builds) lists."""
    return JobBuild(task, paces) if task.params["builds"] is None else ManyBuilds(task, paces)


class JobBuild:
    """One build of one job; C(paces) makes the pauses."""

    def __init__(self, task: Task, paces: Paces = Pace) -> None:
        self._task, self._params, self._paces = task, task.params, paces
        self._order = Order(task, server_of(task), task.params, paces)

    def plan(self) -> Plan:
        order = self._order
        order.compare(order.read())
        if order.outstanding:
            build = {"job": order.job.name, "parameters": order.wanted.shown}
            item = records.not_begun(None, order.wanted.shown)
            plan = Plan({}, {"build": build}, "run")
            return plan.returning(build=item, queue_id=None, console=[], joined=False)
        if order.finished is None:
            return unchanged(self._carried_out())
        self._watched()
        order.watch.finish()
        return unchanged(order.values())

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        return self._carried_out()

    def _watched(self) -> None:
        pace = self._paces(float(self._params["wait_timeout"]), self._params["poll_interval"])
        self._order.be_watched(pace, self._task.progress)

    def _carried_out(self) -> dict[str, Any]:
        """Start the build where there is none, and wait for its end if asked to."""
        order, wait = self._order, bool(self._params["wait"])
        self._watched()
        with interruptible() as say:
            try:
                if order.outstanding:
                    order.begin(wait=wait)
                self._follow(wait)
            except KeyboardInterrupt:
                error = ToolchainError("failed", f"interrupted; {order.left_alone(at_once=True)}")
                say(error.message)
                raise self._telling(error) from None
        return order.values()

    def _follow(self, wait: bool) -> None:
        """Every failure tells what is known of the build."""
        order = self._order
        try:
            if wait:
                order.watch.follow()
                order.judge()
        except ToolchainError as error:
            if isinstance(error, TimeUp):
                error.message = order.out_of_time()
            raise self._telling(error) from None

    def _telling(self, error: ToolchainError) -> ToolchainError:
        known = {"changed": self._order.started, **self._order.values()}
        error.result = {**known, **error.result}
        return error
