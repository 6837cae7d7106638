# SPDX-License-Identifier: GPL-3.0-or-later
"""An item of the queue: read it, and cancel it for `ci_build_stop` [C8.10, ci-8, ci-25]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.http.transport import Transport
from ...core.plan import Plan, unchanged
from ...core.polling import PollInterval
from .. import stopping
from ..client import object_of, objects, part
from ..job_address import Job, same_job
from . import records

_ITEM = "id,why,cancelled,task[url],executable[number]"
_LEFT = f"builds[{records.BUILD_FIELDS}]{{0,{records.NEWEST}}}"
#: Status of a race in the server between the start of an item and its cancellation.
_RACE = 500


@dataclass(frozen=True)
class ItemState:
    """Whether an item waits or was cancelled, otherwise the number of its build; `None` until the
    server names it.
    """

    waits: bool
    cancelled: bool = False
    number: int | None = None


class QueueItem:
    """An item of the queue for a job; `purpose` is operation and object for messages."""

    def __init__(self, server: Transport, job: Job, number: int, purpose: str) -> None:
        if number < 1:
            raise invalid(
                f"queue_id is {number}, but must be the number of a queue item, 1 or higher"
            )
        self._server, self._job, self.number, self.purpose = server, job, number, purpose

    def read(self) -> ItemState:
        """Return the state of the item. Raises `not_found` for an unknown item, `invalid` for an
        item of another job.

        Server fact [ci-8]: it is known for five minutes after it has left; then only the builds
        show it.
        """
        path = f"queue/item/{self.number}/api/json"
        response = self._server.read(self.purpose, path, query={"tree": _ITEM}, expect=(200, 404))
        if response.status == 404:
            return ItemState(waits=False, number=self._among_builds())
        item = records.typed(object_of(response))
        if not same_job(part(item.get("task")).get("url"), self._job):
            raise invalid(
                f"queue_id: item {self.number} does not belong to the job '{self._job.name}'"
            )
        number = records.number_of(part(item.get("executable")).get("number"))
        cancelled = item.get("cancelled") is True
        return ItemState(number is None and not cancelled, cancelled, number)

    def build_number(self, polling: PollInterval) -> int | None:
        """Return the number of its build, `None` while it waits. Raises `failed` if it was
        cancelled.

        :param polling: for an item that is not known yet [ci-8]
        """
        while True:
            try:
                state = self.read()
                break
            except ToolchainError as error:
                if error.kind != "not_found" or polling.left <= 0:
                    raise
            polling.pause(self.purpose)
        if state.cancelled:
            message = f"queue item {self.number} was cancelled before it was built"
            raise ToolchainError("failed", f"{self.purpose}: {message}")
        return state.number

    def _among_builds(self) -> int:
        path = f"{self._job.path}/api/json"
        response = self._server.read(self.purpose, path, query={"tree": _LEFT})
        for build in map(records.typed, objects(object_of(response).get("builds"))):
            if build.get("queueId") == self.number and build.get("number") is not None:
                return int(build["number"])
        raise response.error(
            "not_found",
            f"there is no item {self.number} in the queue, and none of the newest builds of the"
            " job came from it: it was cancelled more than five minutes ago, or never existed",
        )


class ItemCancellation:
    """Cancels an item that waits; `build` is the build that it became."""

    def __init__(self, server: Transport, job: Job, number: int) -> None:
        self._server, self._job = server, job
        purpose = f"cancelling queue item {number} of the job '{job.name}'"
        self._item = QueueItem(server, job, number, purpose)

    def plan(self) -> Plan:
        """Plan nothing if it has left the queue. Raises `not_found` for an unknown item."""
        item = self._item.read()
        values = {"build": self._shown(item)}
        if not item.waits:
            return unchanged(values)
        state = {"job": self._job.name, "queue_id": self._item.number}
        before, after = {**state, "waiting": True}, {**state, "waiting": False}
        return Plan(before, after, "run", result=values)

    def apply(self) -> Mapping[str, Any]:
        """Cancel it; if it has started meanwhile, nothing is changed and its build is returned."""
        purpose = self._item.purpose
        try:
            stopping.cancel(self._server, purpose, self._item.number, verify=self._is_gone)
        except ToolchainError as error:
            if error.status != _RACE or not self._is_gone():
                raise
        item = self._item.read()
        if item.waits:
            raise ToolchainError(
                "permission",
                f"{purpose}: the server did not cancel it; the account may lack the permission",
                result={"changed": False, "build": None},
            )
        return {"changed": item.number is None, "build": self._shown(item)}

    def _is_gone(self) -> bool:
        return not self._item.read().waits

    def _shown(self, item: ItemState) -> dict[str, Any] | None:
        if item.number is None:
            return None
        path = f"{self._job.path}/{item.number}/api/json"
        query = {"tree": records.BUILD_FIELDS}
        response = self._server.read(self._item.purpose, path, query=query, expect=(200, 404))
        build = {"number": item.number, "queueId": self._item.number}
        if response.status == 200:
            build |= records.typed(object_of(response))
        return records.shown(build, self._job, self._server.connection.url)
