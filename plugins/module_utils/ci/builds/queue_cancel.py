# SPDX-License-Identifier: GPL-3.0-or-later
"""Cancel an item in the queue: `ci_build_stop` with `queue_id` [C8.10, ci-25]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.http.transport import Transport
from ...core.plan import Plan, unchanged
from .. import stopping
from ..client import object_of, objects, part
from ..job_address import Job, same_job
from . import records

_ITEM = "id,why,cancelled,task[url],executable[number]"
_LEFT = f"builds[{records.BUILD_FIELDS}]{{0,{records.NEWEST}}}"
#: Status of a race in the server between the start of an item and its cancellation.
_RACE = 500


class QueueItem:
    """An item of the queue for a job; `build` is the build that it became."""

    def __init__(self, server: Transport, job: Job, number: int) -> None:
        if number < 1:
            raise invalid(f"queue_id is {number}: give the number of a queue item, 1 or more")
        self._server, self._job, self._number = server, job, number
        self._what = f"cancelling queue item {number} of the job '{job.name}'"

    def plan(self) -> Plan:
        """Plan nothing if it has left the queue. Raises `not_found` for an unknown item."""
        waits, build = self._verify()
        values = {"build": self._shown(build)}
        if not waits:
            return unchanged(values)
        state = {"job": self._job.name, "queue_id": self._number}
        before, after = {**state, "waiting": True}, {**state, "waiting": False}
        return Plan(before, after, "run", result=values)

    def apply(self) -> Mapping[str, Any]:
        """Cancel it; if it has started meanwhile, nothing is changed and its build is returned."""
        try:
            stopping.cancel(self._server, self._what, self._number, verify=self._is_gone)
        except ToolchainError as error:
            if error.status != _RACE or not self._is_gone():
                raise
        waits, build = self._verify()
        if waits:
            raise ToolchainError(
                "permission",
                f"{self._what}: the server has not cancelled it, as for an account that may not",
                result={"changed": False, "build": None},
            )
        return {"changed": build is None, "build": self._shown(build)}

    def _is_gone(self) -> bool:
        return not self._verify()[0]

    def _verify(self) -> tuple[bool, Mapping[str, Any] | None]:
        """Return whether it waits, and the build that it became.

        Server fact [ci-8]: it is known for five minutes after it has left; then only the builds
        show it.
        """
        path = f"queue/item/{self._number}/api/json"
        response = self._server.read(self._what, path, query={"tree": _ITEM}, expect=(200, 404))
        if response.status == 404:
            return False, self._among_builds()
        item = records.typed(object_of(response))
        if not same_job(part(item.get("task")).get("url"), self._job):
            raise invalid(f"queue_id: item {self._number} is not one of the job '{self._job.name}'")
        number = records.number_of(part(item.get("executable")).get("number"))
        if number is not None:
            return False, self._build(number)
        return not item.get("cancelled"), None

    def _among_builds(self) -> Mapping[str, Any]:
        path = f"{self._job.path}/api/json"
        response = self._server.read(self._what, path, query={"tree": _LEFT})
        for build in map(records.typed, objects(object_of(response).get("builds"))):
            if build.get("queueId") == self._number:
                return build
        raise response.error(
            "not_found",
            f"there is no item {self._number} in the queue, and none of the newest builds of the"
            " job was one: it was cancelled more than five minutes ago, or was never there",
        )

    def _build(self, number: int) -> Mapping[str, Any]:
        path = f"{self._job.path}/{number}/api/json"
        query = {"tree": records.BUILD_FIELDS}
        response = self._server.read(self._what, path, query=query, expect=(200, 404))
        known = {"number": number, "queueId": self._number}
        return known if response.status == 404 else {**known, **records.typed(object_of(response))}

    def _shown(self, build: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if build is None:
            return None
        return records.shown(build, self._job, self._server.connection.url)
