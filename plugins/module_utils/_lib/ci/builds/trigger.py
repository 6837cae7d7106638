# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a build exactly once, and find the started build if the response was lost.

Server facts [ci-6]: the server responds with 201 and the URL of a queue item; with 303 if the build
was merged into a waiting item with the same parameters; with 302 to the job if nothing was queued.
The URL begins with the root URL that the server is configured with, so only the number in it is
used.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ...core.address import path_of
from ...core.errors import ToolchainError
from ...core.http.messages import Response
from ...core.http.multipart import MultipartForm
from ...core.http.transport import Transport
from ...core.progress import PollInterval, PollTimeout
from ...core.secret import clean_url
from ..client import REDIRECTED, describe, leads_to_login, refuse_page
from ..job_address import Job
from ..waiting import patience
from . import parameters
from .parameters import WantedParameters
from .records import JobState, TriggeredBuild, find_build, users_of

_ITEM = re.compile(r"(?:^|/)queue/item/([0-9]{1,18})/?$")
#: Number of newest builds among which the started build is searched.
_LOOKBACK = 50
#: Maximum number of searches for a build whose trigger response was lost. Without a visible queue
#: the searches must last longer than a quiet period.
_MAX_CHECKS = 5
_MAX_CHECKS_WITHOUT_QUEUE = 8
#: Maximum number of searches after a response which reports that nothing was queued.
_MAX_CHECKS_IF_REJECTED = 2
#: Maximum duration of a search.
_MAX_SECONDS = 30.0
#: Error kinds of a complete response: the server has finished the request, one search is enough.
_FINAL_KINDS = frozenset({"rate_limited", "protocol", "auth", "rejected"})
_WRONG_PARAMETERS = re.compile(
    r"not parameteri[sz]ed|no such parameter|illegal (choice|number of parameter values)",
    re.IGNORECASE,
)


class BuildClaims:
    """Assigns builds to the triggers of a task, which may start builds with equal parameters.

    :param announced: jobs and parameters of all builds that the task starts
    """

    def __init__(self, announced: Iterable[tuple[Job, WantedParameters]] = ()) -> None:
        self._announced = [(job.path, wanted.comparable_form) for job, wanted in announced]
        self._owners: dict[tuple[str, int], object] = {}
        self._lock = threading.Lock()

    def is_alone(self, job: Job, wanted: WantedParameters) -> bool:
        """Return whether no other trigger of the task has the same job and parameters."""
        return self._announced.count((job.path, wanted.comparable_form)) <= 1

    def take(self, job: Job, found: TriggeredBuild, owner: object, session: str) -> bool:
        """Claim a build for `owner`. Return false if another owner has claimed the build.

        :param session: mark of the start of the server, after which queue ids have other meanings
        """
        keys = ((f" {session}", found.item), (job.path, found.number))
        known = [(scope, number) for scope, number in keys if number is not None]
        with self._lock:
            if any(self._owners.get(key, owner) is not owner for key in known):
                return False
            self._owners.update(dict.fromkeys(known, owner))
            return True


class Trigger:
    """Starts a build of a job with the given parameters.

    :param state: state of the job before the start
    :param user: logged-in user; a build with another user as its cause does not match
    :param claims: assignment of builds to the triggers of the task
    """

    def __init__(
        self,
        server: Transport,
        job: Job,
        state: JobState,
        wanted: WantedParameters,
        *,
        user: str | None,
        claims: BuildClaims,
    ) -> None:
        self._server, self._job, self._state, self._wanted = server, job, state, wanted
        self._user, self._claims = user, claims
        self._purpose = f"building the job '{job.name}'"
        self._seen: TriggeredBuild | None = None

    def send(
        self, delay: int | None, polling: Callable[[float], PollInterval], *, wait: float | None
    ) -> TriggeredBuild | Callable[[], TriggeredBuild]:
        """Start the build, and return it if the response contains its queue item. Otherwise return
        a function that searches for it. Call that after all triggers of the task are sent.

        :param delay: quiet period in seconds; `None` means that of the job
        :param polling: creates the `PollInterval` of a search from its timeout in seconds
        :param wait: maximum seconds to search for the build if the response does not contain its
            queue item; `None` means that the build may remain unknown
        """
        try:
            response = self._post(delay)
        except ToolchainError as error:
            refused = self._nothing_started(error)
            if error.outcome_unknown and not (error.verified_undone and error.kind in _FINAL_KINDS):
                limit = _MAX_CHECKS if self._state.queue_known else _MAX_CHECKS_WITHOUT_QUEUE
                return partial(self._search, refused, polling, limit=limit)
            raise refused from None
        if self._seen is not None:
            return self._seen
        location = response.headers.get("Location", "")
        item = _ITEM.search(path_of(location))
        if item is not None:
            found = TriggeredBuild(int(item[1]), folded=response.status in (302, 303))
            if not found.folded:
                self._claims.take(self._job, found, self, self._state.session)
            return found
        if response.status == 302:
            if leads_to_login(response, location):
                raise self._nothing_started(self._server.failure(response))
            refused = response.error(
                "rejected",
                f"the server queued nothing and redirected to {clean_url(location)}. An identical"
                " build is already waiting, or a plugin of the server rejects builds of this job",
            )
            # an identical item of another trigger counts as our build
            self._claims = BuildClaims()
            refused = self._nothing_started(refused)
            return partial(self._search, refused, polling, limit=_MAX_CHECKS_IF_REJECTED)
        if wait is None:
            return lambda: self.find()[0] or TriggeredBuild(None)
        unnamed = response.error("protocol", "the response does not contain the queue item")
        longest = min(wait, _MAX_SECONDS + (delay or 0))
        return partial(self._search, unnamed, polling, longest)

    def _post(self, delay: int | None) -> Response:
        """Send the trigger. Files are streamed from disk.

        Server fact [ci-6]: `build` rejects a job with parameters, and `buildWithParameters` rejects
        a job without. `buildWithParameters` fills in default values.
        """
        wanted = self._wanted
        plain = not self._state.definitions and not wanted.form and not wanted.files
        body: dict[str, Any] = {"form": wanted.form}
        if wanted.files:
            form = MultipartForm(wanted.form, wanted.files)
            headers = {"Content-Type": form.content_type}
            body = {"headers": headers, "open_body": form.open, "size": form.size}
        return self._server.write(
            self._purpose,
            "POST",
            f"{self._job.path}/{'build' if plain else 'buildWithParameters'}",
            query={} if delay is None else {"delay": f"{delay}sec"},
            expect=REDIRECTED,
            validate=self._validate,
            verify=self._exists,
            **body,
        )

    def _validate(self, response: Response) -> None:
        """Raise an error for an invalid parameter value.

        Server fact [ci-7]: the server responds with 500 and starts nothing.
        """
        if "Location" not in response.headers:
            refuse_page(response)
        if response.status == 500 and _WRONG_PARAMETERS.search(describe(response)):
            error = self._server.failure(response)
            error.outcome_unknown = False
            raise error

    def _exists(self) -> bool | None:
        """Return whether this trigger has started its build.

        Returns `None` if that is unknown: another trigger of the task starts an equal build, or the
        server does not show its queue.
        """
        if not self._claims.is_alone(self._job, self._wanted):
            return None
        self._seen, answered = self.find()
        if self._seen is not None:
            return True
        return False if answered and self._state.queue_known else None

    def _search(
        self,
        error: ToolchainError,
        start_polling: Callable[[float], PollInterval],
        seconds: float = _MAX_SECONDS,
        limit: float = float("inf"),
    ) -> TriggeredBuild:
        """Search for the started build in the queue and among the new builds. Raise `error` if it
        is not found. The trigger is never sent again.

        :param start_polling: returns the polling interval for a time limit, which starts then
        :param limit: maximum number of searches within the time limit
        """
        polling = start_polling(seconds)
        while True:
            found, answered = self.find(patience(polling))
            if found is not None:
                return found
            limit -= int(answered)
            try:
                if limit <= 0:
                    break
                polling.pause(self._purpose)
            except PollTimeout:
                break
        raise error.with_hint("no matching build was found; the request was not repeated")

    def find(self, seconds: float | None = None) -> tuple[TriggeredBuild | None, bool]:
        """Search once by parameters, cause and time for a build that no other trigger has claimed.
        Return it or `None`, and whether the server responded with all new builds.

        :param seconds: timeout of the request
        """

        def is_ours(found: TriggeredBuild, shown: Mapping[str, Any], job: JobState) -> bool:
            users = users_of(shown)
            mine = self._user is None or not users or self._user.casefold() in users
            same = mine and parameters.equal(self._wanted, shown)
            later = same and self._is_later(found, shown, job)
            return later and self._claims.take(self._job, found, self, job.session)

        since = self._state.next_number
        place = self._server, self._purpose, self._job
        return find_build(*place, is_ours, _LOOKBACK, since=since, patience=seconds)

    def _is_later(self, found: TriggeredBuild, shown: Mapping[str, Any], job: JobState) -> bool:
        """Return whether a build or queue item came after the first read of the job.

        Queue ids increase, but not across a restart [ci-8].
        """
        if job.session != self._state.session:
            begun = shown.get("inQueueSince") or shown.get("timestamp")
            return begun is None or begun >= self._state.read_at
        if found.item:
            return found.item > self._state.newest_queue_id
        return found.number is not None

    def _nothing_started(self, error: ToolchainError) -> ToolchainError:
        """Complete the error of a trigger that started nothing.

        Server fact [ci-7]: the server responds to an invalid parameter value with 500. Newer
        servers send no message with it.
        """
        error.result["changed"] = False
        if _WRONG_PARAMETERS.search(error.detail or ""):
            error.kind = "rejected"
        elif error.status != 500 or error.method != "POST":
            return error
        repeated = ", ".join(self._wanted.repeated)
        if repeated:
            return error.with_hint(f"{repeated} may accept only one value: set list_style to comma")
        return error.with_hint("check the values of the parameters")
