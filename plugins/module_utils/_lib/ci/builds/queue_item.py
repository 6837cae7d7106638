# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and cancel items of the build queue, for `ci_build_stop` [C8.10, ci-8, ci-25].

Server facts [ci-10]: `stop`, `term` and `kill` redirect to the referrer or to `.`, even if the
build is not running. Only pipeline builds support `term` and `kill`; for other builds the server
redirects to the same URL with a trailing slash, which does not exist. The build ends later, so the
response does not show whether it has stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from ...core.address import path_of, target
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import REDIRECTS, Response
from ...core.http.transport import Transport
from ...core.http.writes import Verify
from ...core.json_text import json_objects
from ...core.progress import PollInterval
from ..client import REDIRECTED, object_of, part, refuse_page
from ..job_address import Job, same_job
from . import records

METHODS = ("stop", "term", "kill")
#: Maximum seconds to wait until the server knows a queue item, or the number of its build.
ITEM_SECONDS = 2.0
#: Statuses for an item that is unknown or has left the queue. Older servers return 302 or 404.
_LEFT_QUEUE = (404, 422)


def send(
    server: Transport,
    purpose: str,
    build: str,
    method: str,
    *,
    patience: float | None = None,
    verify: Verify | None = None,
) -> bool:
    """Request the end of a build. Return false if the build does not support the method.

    :param build: path of the build
    :param method: a member of `METHODS`
    :param patience: timeout in seconds, including retries
    :param verify: returns whether the build ends, if the response was lost
    """

    def check_redirect(response: Response) -> None:
        """Raise an error for a redirect that does not come from this method, for example to a login
        page.
        """
        refuse_page(response)
        location = response.headers.get("Location")
        if response.status in REDIRECTS and location is not None:
            there = unquote(path_of(target(response.url, location))).rstrip("/")
            if not there.endswith((f"/{unquote(build)}", f"/{unquote(build)}/{method}")):
                raise server.failure(response)

    response = server.write(
        purpose,
        "POST",
        f"{build}/{method}",
        form={},
        expect=(*REDIRECTED, 404),
        validate=check_redirect,
        patience=patience,
        verify=verify,
    )
    # a redirect to the URL of the method itself means that the build lacks it
    there = path_of(target(response.url, response.headers.get("Location", "")))
    return response.status != 404 and not there.endswith(f"/{method}/")


def cancel(
    server: Transport,
    purpose: str,
    item: int,
    *,
    patience: float | None = None,
    verify: Verify | None = None,
) -> bool:
    """Cancel a queue item. Return false if the item has left the queue, or the server cannot cancel
    items.

    :param item: queue id
    :param patience: timeout in seconds, including retries
    :param verify: returns whether the item has left the queue, if the response was lost
    """
    response = server.write(
        purpose,
        "POST",
        "queue/cancelItem",
        query={"id": item},
        form={},
        expect=(*REDIRECTED, *_LEFT_QUEUE),
        patience=patience,
        verify=verify,
        repeatable=True,
    )
    return response.status not in _LEFT_QUEUE


_ITEM = "id,why,cancelled,task[url],executable[number]"


@dataclass(frozen=True)
class ItemState:
    """State of a queue item: waiting, cancelled, or started as build `number`.

    `number` is also `None` for a started build whose number the server does not yet return.
    """

    waits: bool
    cancelled: bool = False
    number: int | None = None


class QueueItem:
    """A queue item of a job.

    :param purpose: operation and object for messages
    """

    def __init__(self, server: Transport, job: Job, number: int, purpose: str) -> None:
        self._server, self._job, self.number, self.purpose = server, job, number, purpose

    def read(self) -> ItemState:
        """Return the state of the item.

        Server fact [ci-8]: the server forgets an item five minutes after it has left the queue.
        After that, only `queueId` of the build refers to the item.

        Raises `not_found` for an unknown item, and `invalid` for an item of another job.
        """
        path = f"queue/item/{self.number}/api/json"
        response = self._server.read(self.purpose, path, query={"tree": _ITEM}, expect=(200, 404))
        if response.status == 404:
            query = {"tree": f"builds[{records.BUILD_FIELDS}]{{0,{records.NEWEST}}}"}
            response = self._server.read(self.purpose, f"{self._job.path}/api/json", query=query)
            for build in map(records.typed, json_objects(object_of(response).get("builds"))):
                if build.get("queueId") == self.number and build.get("number") is not None:
                    return ItemState(waits=False, number=int(build["number"]))
            raise response.error(
                "not_found",
                f"queue item {self.number} is unknown, and none of the newest builds of the job"
                " came from it. It never existed, was cancelled more than five minutes ago, or got"
                " another id when the server was restarted: use the number of the build",
            )
        item = records.typed(object_of(response))
        if not same_job(part(item.get("task")).get("url"), self._job):
            raise invalid(
                f"queue_id: item {self.number} does not belong to the job '{self._job.name}'"
            )
        number = records.number_of(part(item.get("executable")).get("number"))
        cancelled = item.get("cancelled") is True
        return ItemState(number is None and not cancelled, cancelled, number)

    def known(self, polling: PollInterval) -> ItemState:
        """Return the state of the item, which the server may not know yet [ci-8].

        :param polling: time limit for an unknown item
        """
        return polling.until_found(self.purpose, self.read)

    def build_number(self, polling: PollInterval) -> int | None:
        """Return the number of the build, or `None` if the item is still waiting.

        Raises `failed` if the item was cancelled.

        :param polling: time limit for an unknown item
        """
        state = self.known(polling)
        if state.cancelled:
            message = f"queue item {self.number} was cancelled before it was built"
            raise ToolchainError("failed", f"{self.purpose}: {message}")
        return state.number
