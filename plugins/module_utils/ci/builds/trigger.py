# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a build once, and find it again if the response was lost.

Server facts [ci-6]: 201 with the address of a queue item; 303 if the build was merged into a
waiting item with the same parameters; 302 to the job if nothing was queued. The address has the
server's own root URL, so only its number is used.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from ...core.address import path_of
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.multipart import MultipartForm
from ...core.http.transport import Transport
from ...core.polling import PollInterval, PollTimeout
from ...core.secret import clean_url
from ..client import describe, leads_to_login, objects, refuse_page
from ..job_address import Job
from . import parameters
from .followed_build import patience
from .records import JobState, queued_items, read_job, whole_builds

_ITEM = re.compile(r"(?:^|/)queue/item/([0-9]{1,18})/?$")
#: Number of newest builds to search for the started build.
_LOOKBACK = 50
#: Number of searches and maximum seconds for a build whose response was lost: longer than a quiet
#: period if the server does not show its queue. Number of searches if the response reports that
#: there is no build.
_MAX_CHECKS = 5
_MAX_CHECKS_WITHOUT_QUEUE = 8
_MAX_CHECKS_IF_REJECTED = 2
_LOOKING = 30.0
#: Error kinds after which the server has finished: one search is enough.
_ANSWERED = frozenset({"rate_limited", "protocol", "auth", "rejected"})
_WRONG_PARAMETERS = re.compile(
    r"not parameteri[sz]ed|no such parameter|illegal (choice|number of parameter values)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TriggeredBuild:
    """A started build, by its queue item or number. It has neither if the server accepted the
    request without naming it.

    :param folded: the item existed before, with equal parameters
    :param build: state of a build that existed before
    """

    item: int | None
    number: int | None = None
    folded: bool = False
    build: Mapping[str, Any] | None = None


class BuildClaims:
    """Assignment of builds to requests of a task: equal builds differ only in their numbers."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], object] = {}
        self._announced: list[tuple[Any, ...]] = []
        self._lock = threading.Lock()

    def announce(self, job: Job, wanted: parameters.WantedParameters) -> None:
        """Announce a trigger, before any trigger of the task is sent."""
        self._announced.append((job.path, wanted.form))

    def is_alone(self, job: Job, wanted: parameters.WantedParameters) -> bool:
        """Return whether such a build can only belong to a single trigger of the task."""
        return self._announced.count((job.path, wanted.form)) <= 1

    def take(self, job: Job, found: TriggeredBuild, owner: object) -> bool:
        """Claim a build for its owner; return false if another owner has claimed it."""
        places = (("", found.item), (job.path, found.number))
        known = [(place, number) for place, number in places if number is not None]
        with self._lock:
            if any(self._owners.get(key, owner) is not owner for key in known):
                return False
            self._owners.update(dict.fromkeys(known, owner))
            return True


def _body(wanted: parameters.WantedParameters) -> dict[str, Any]:
    """Return the form, with files that are read while they are sent."""
    if not wanted.files:
        return {"form": wanted.form}
    form = MultipartForm(wanted.form, wanted.files)
    return {
        "headers": {"Content-Type": form.content_type},
        "open_body": form.open,
        "size": form.size,
    }


class Trigger:
    """A build of `job` with the wanted parameters.

    :param state: the job as it was read before
    :param user: the logged-in user: a build with another user as its cause is not ours
    :param claims: builds that belong to other triggers of the task
    """

    def __init__(
        self,
        server: Transport,
        job: Job,
        state: JobState,
        wanted: parameters.WantedParameters,
        *,
        user: str | None,
        claims: BuildClaims,
    ) -> None:
        self._server, self._job, self._state = server, job, state
        self._wanted, self._user, self._claims = wanted, user, claims
        self._purpose = f"building the job '{job.name}'"
        self._seen: TriggeredBuild | None = None

    def send(
        self, delay: int | None, polling: Callable[[float], PollInterval], *, wait: float | None
    ) -> TriggeredBuild | Callable[[], TriggeredBuild]:
        """Start the build. Return it if the response names it, otherwise a function that searches
        for it. Call that function when no other trigger of the task is running.

        :param delay: quiet period in seconds, `None` for the job's own
        :param polling: makes the polling interval of a search, given its maximum duration
        :param wait: maximum seconds until the build is known, which a server need not name; `None`:
            it need not be known
        """
        try:
            response = self._post(delay)
        except ToolchainError as error:
            refused = self._refusal(error)
            if error.outcome_unknown and not (error.verified_undone and error.kind in _ANSWERED):
                looks = _MAX_CHECKS if self._state.queue_known else _MAX_CHECKS_WITHOUT_QUEUE
                return partial(self._found_or, refused, lambda: polling(_LOOKING), looks)
            raise refused from None
        if self._seen is not None:
            return self._seen
        location = response.headers.get("Location", "")
        item = _ITEM.search(path_of(location))
        if item is not None:
            found = TriggeredBuild(int(item[1]), folded=response.status in (302, 303))
            if not found.folded:
                self._claims.take(self._job, found, self)
            return found
        if response.status == 302:
            refused = self._refused(response, location)
            self._claims = BuildClaims()  # the item may belong to another trigger
            return partial(
                self._found_or, refused, lambda: polling(_LOOKING), _MAX_CHECKS_IF_REJECTED
            )
        if wait is None:
            return lambda: self._verify()[0] or TriggeredBuild(None)
        unnamed = response.error("protocol", "the server did not name the queue item of the build")
        longest = min(wait, _LOOKING + (delay or 0))
        return partial(self._found_or, unnamed, lambda: polling(longest))

    def number(self) -> int | None:
        """Return the current number of our build in the job, whatever its queue item is."""
        found = self._verify()[0]
        return None if found is None else found.number

    def _post(self, delay: int | None) -> Response:
        """Send the trigger. Server fact [ci-6]: `build` rejects a job with parameters,
        `buildWithParameters` one without; the latter fills in defaults.
        """
        definitions = self._state.definitions
        wanted = self._wanted
        plain = not definitions and not wanted.form and not wanted.files
        return self._server.write(
            self._purpose,
            "POST",
            f"{self._job.path}/{'build' if plain else 'buildWithParameters'}",
            query={} if delay is None else {"delay": f"{delay}sec"},
            expect=(200, 201, 202, 204, 302, 303),
            validate=self._validate,
            verify=self._is_there,
            **_body(wanted),
        )

    def _validate(self, response: Response) -> None:
        """Raise for an invalid parameter value. Server fact [ci-7]: it is a 500, and nothing was
        started.
        """
        if "Location" not in response.headers:
            refuse_page(response)
        if response.status == 500 and _WRONG_PARAMETERS.search(describe(response)):
            error = self._server.failure(response)
            error.outcome_unknown = False
            raise error

    def _is_there(self) -> bool | None:
        """Return whether our own build exists; `None` if another trigger of the task starts an
        equal build, or the server does not show its queue.
        """
        if not self._claims.is_alone(self._job, self._wanted):
            return None
        self._seen, answered = self._verify()
        if self._seen is not None:
            return True
        return False if answered and self._state.queue_known else None

    def _refused(self, response: Response, location: str) -> ToolchainError:
        if leads_to_login(response, location):
            raise self._refusal(self._server.failure(response))
        return self._refusal(
            response.error(
                "rejected",
                f"the server queued nothing (it returned 302 to {clean_url(location)}): an"
                " extension of the server rejects builds of this job, or an identical build is"
                " already waiting",
            )
        )

    def _found_or(
        self, error: ToolchainError, begun: Callable[[], PollInterval], looks: float = float("inf")
    ) -> TriggeredBuild:
        """Search our own build in the queue and among the new builds; never send again.

        :param begun: starts the clock
        :param looks: maximum number of searches within the time
        """
        polling = begun()
        while True:
            found, answered = self._verify(patience(polling))
            if found is not None:
                return found
            looks -= int(answered)
            try:
                if looks <= 0:
                    break
                polling.pause(self._purpose)
            except PollTimeout:
                break
        raise error.with_hint("no matching build was found, and the request is not sent again")

    def _verify(self, seconds: float | None = None) -> tuple[TriggeredBuild | None, bool]:
        """Return our own build, and whether the server responded within this time."""
        try:
            state = read_job(self._server, self._purpose, self._job, _LOOKBACK, seconds)
            return self._own(state), True
        except ToolchainError:
            return None, False

    def _own(self, state: JobState) -> TriggeredBuild | None:
        """Return the first build that belongs to this trigger and to no other."""
        candidates = chain(self._new_builds(state), self._new_items(state))
        take = self._claims.take
        return next((found for found in candidates if take(self._job, found, self)), None)

    def _new_builds(self, state: JobState) -> Iterator[TriggeredBuild]:
        """Yield the builds, oldest first, that are new since the job was read."""
        before = self._state.newest_queue_id
        new = whole_builds(self._server, self._purpose, self._job, state, self._state.next_number)
        for build in reversed(list(new)):
            queue_id = build.get("queueId")
            if (queue_id is None or queue_id > before) and self._is_ours(build):
                yield TriggeredBuild(queue_id, int(build["number"]))

    def _new_items(self, state: JobState) -> Iterator[TriggeredBuild]:
        for item in queued_items(self._server, self._purpose, self._job, state):
            later = (item.get("id") or 0) > self._state.newest_queue_id
            if later and self._is_ours(item):
                yield TriggeredBuild(int(item["id"]))

    def _is_ours(self, shown: Mapping[str, Any]) -> bool:
        users = {
            str(cause["userId"]).casefold()
            for action in objects(shown.get("actions"))
            for cause in objects(action.get("causes"))
            if cause.get("userId")
        }
        mine = self._user is None or not users or self._user.casefold() in users
        return mine and parameters.equal(self._wanted, shown)

    def _refusal(self, error: ToolchainError) -> ToolchainError:
        """Return the error of a trigger that certainly started nothing.

        Server fact [ci-7]: an invalid parameter value is a 500, on newer servers without a message.
        """
        error.result["changed"] = False
        if _WRONG_PARAMETERS.search(error.detail or ""):
            error.kind = "rejected"
        elif error.status != 500 or error.method != "POST":
            return error
        repeated = ", ".join(self._wanted.repeated)
        if repeated:
            return error.with_hint(f"{repeated} may accept only one value: set list_style to comma")
        return error.with_hint("a possible cause is a value that a parameter does not accept")
