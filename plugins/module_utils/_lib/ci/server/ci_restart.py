# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart the server after its running builds, and wait until it is up again: `ci_restart`.

Server facts [ci-3, ci-19]: `POST /safeRestart` returns 302 even if it has no effect. The server
responds normally until the running builds have finished. It then returns 503, refuses connections,
and returns 503 and for logins 401 while it starts. Each start changes `X-Jenkins-Session` and
invalidates login sessions and CSRF crumbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.address import path_of, target
from ...core.errors import ToolchainError, listed
from ...core.http.messages import REDIRECTS, Response
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Seconds
from ...core.plan import Plan, unchanged
from ...core.progress import PollInterval, PollTimeout
from ..builds.followed_build import ProgressLines
from ..client import MANAGE, READ_SERVER, REDIRECTED, object_of, part, refuse_page, server_of
from ..service import SERVICE
from ..waiting import Outage, PollingFactory, Timeout, WaitOptions, interruptible, patience
from . import installed_plugins

#: Paths and `tree` queries that show a running server. The interface description has only the
#: second path.
_PROBES = (("api/json", "quietingDown"), ("pluginManager/api/json", "plugins[shortName]"))
_EXECUTORS = "currentExecutable[fullDisplayName]"
_RUNNING = f"computer[executors[{_EXECUTORS}],oneOffExecutors[{_EXECUTORS}]]"
_PURPOSE = "restarting the CI server"
_SHOWN_BUILDS = 3
_ABOUT_TO_GO = "the server is about to go down"


@dataclass(frozen=True)
class ServerState:
    """State of the server from a complete response. `None` means unknown.

    :param mark: id that changes with each start of the server
    :param quieting: whether the server starts no more builds, as before a restart
    :param probe: path and `tree` query of the request
    """

    mark: str | None
    version: str | None
    quieting: bool | None
    probe: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class CiRestartOptions(WaitOptions):
    """The options of `ci_restart`."""

    wait_timeout: Timeout = 600
    poll_interval: Seconds = 2
    when_plugins_pending: bool = False


class CiRestartOperation:
    """Restarts the server and waits until it is up again.

    :param polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"restart": writes(READ_SERVER, unforeseen=(MANAGE,)), "wait": reads()},
        kind="server",
        name="restart",
        follows=True,
    )

    def __init__(
        self, task: Task, options: CiRestartOptions, polling: PollingFactory = PollInterval
    ) -> None:
        self._options, self._warn, self._say = options, task.warn, task.progress
        self._server = server_of(task)
        self._polling = polling

    def lock_names(self) -> list[str]:
        """Return the server for the locks of the run, unless each task restarts it anyway."""
        return ["restart"] if self._options.when_plugins_pending else []

    def plan(self) -> Plan:
        purpose = "reading the state of the CI server"
        for path, tree in _PROBES:
            response = self._server.read(purpose, path, query={"tree": tree}, expect=(200, 404))
            if response.status == 200:
                before = _state(response, (path, tree))
                break
        else:
            raise self._server.failure(response)
        values = {"version": before.version, "downtime": None}
        if not self._options.when_plugins_pending:
            return Plan({}, {"restart": "safe"}, "run", result=values, data=before)
        pending = self._pending()
        if not pending:
            return unchanged(values)
        after = {"restart": "safe", "pending": pending}
        return Plan({}, after, "run", result=values, data=before)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        polling = self._polling(self._options.wait_timeout, self._options.poll_interval)
        response_error: ToolchainError | None = None
        before: ServerState = plan.data
        try:
            self._server.write(
                _PURPOSE,
                "POST",
                "safeRestart",
                expect=REDIRECTED,
                validate=self._validate,
                verify=lambda: self._is_restarting(polling, before),
            )
        except ToolchainError as error:
            if error.status == 500:
                error.with_hint("the server may be unable to restart itself; restart its service")
            may_restart = (
                error.outcome_unknown and not error.verified_undone and error.retry_after is None
            )
            if not may_restart or error.status == 500 or not self._options.wait:
                raise
            response_error = error
        if not self._options.wait:
            return {}
        try:
            with interruptible() as say:
                try:
                    values = self._wait(polling, before)
                except KeyboardInterrupt:
                    message = f"{_PURPOSE}: interrupted; the restart continues"
                    say(message)
                    raise ToolchainError("failed", message) from None
        except PollTimeout as error:
            raise response_error or _with_result(error) from None
        except ToolchainError as error:
            raise _with_result(error) from None
        if self._options.when_plugins_pending and (left := self._pending()):
            self._warn(f"{_PURPOSE}: changes that still require a restart: {', '.join(left)}")
        return values

    def _pending(self) -> list[str]:
        """Return the changes that require a restart: names of plugins, and "installed updates"."""
        found = [
            plugin.short_name for plugin in installed_plugins.read(self._server) if plugin.waits
        ]
        response = self._server.read(
            "checking whether a restart is needed",
            "updateCenter/api/json",
            query={"tree": "restartRequiredForCompletion"},
            expect=(200, 404),
        )
        if (
            response.status == 200
            and object_of(response).get("restartRequiredForCompletion") is True
        ):
            found.append("installed updates")
        return found

    def _validate(self, response: Response) -> None:
        """Raise an error unless the response comes from `safeRestart`, which redirects to the start
        page [ci-19].
        """
        refuse_page(response)
        location = response.headers.get("Location")
        if response.status not in REDIRECTS or location is None:
            return
        path = path_of(target(response.url, location)).rstrip("/")
        if path not in ("", path_of(self._server.connection.url).rstrip("/")):
            raise self._server.failure(response)

    def _is_restarting(self, polling: PollInterval, before: ServerState) -> bool | None:
        """After a lost response, return whether the server restarts or is about to restart.

        Returns `None` if that is unknown.
        """
        state = self._poll(polling, before, Outage(self._server, polling.now))
        if state is None or before.quieting is not False:
            return None
        return state.quieting is True or _is_new(state, before, was_down=False)

    def _wait(self, polling: PollInterval, before: ServerState) -> dict[str, Any]:
        """Wait until the server is up again, and return the values for the result."""
        progress, outage = ProgressLines(self._say, polling), Outage(self._server, polling.now)
        down_since: float | None = None
        quieting = False
        draining: str | None = _ABOUT_TO_GO
        while True:
            state = self._poll(polling, before, outage)
            if state is None:
                down_since = polling.now() if down_since is None else down_since
                line = f"{_PURPOSE}: the server is down"
            elif _is_new(state, before, was_down=down_since is not None):
                downtime = 0.0 if down_since is None else polling.now() - down_since
                self._server.forget_login()
                progress.running(f"{_PURPOSE}: the server is up again, release {state.version}")
                return {"version": state.version, "downtime": round(downtime, 3)}
            elif quieting and state.quieting is False:
                raise ToolchainError("failed", f"{_PURPOSE}: another user cancelled the restart")
            else:
                down_since, quieting = None, quieting or state.quieting is True
                draining = None if draining is None else self._draining()
                line = f"{_PURPOSE}: {draining or _ABOUT_TO_GO}"
            progress.running(line)
            polling.pause(line)

    def _poll(
        self, polling: PollInterval, before: ServerState, outage: Outage
    ) -> ServerState | None:
        """Return the current state, or `None` without a complete response.

        Raises an error if the login is rejected, unless the server starts or shuts down.
        """
        path, tree = before.probe
        try:
            response = self._server.read(
                _PURPOSE, path, query={"tree": tree}, once=True, patience=patience(polling)
            )
            outage.is_over()
            return _state(response, before.probe)
        except ToolchainError as error:
            if error.status in (401, 403) and not outage.passes(error):
                raise
            return None

    def _draining(self) -> str | None:
        """Return what the server waits for before it restarts; `None` if that cannot be read."""
        try:
            query = {"tree": _RUNNING}
            shown = object_of(
                self._server.read(_PURPOSE, "computer/api/json", query=query, once=True)
            )
        except ToolchainError:
            return None
        names = [
            part(executor.get("currentExecutable")).get("fullDisplayName")
            for computer in json_objects(shown.get("computer"))
            for kind in ("executors", "oneOffExecutors")
            for executor in json_objects(computer.get(kind))
        ]
        builds = sorted(str(name) for name in names if name)
        if not builds:
            return _ABOUT_TO_GO
        noun = "build" if len(builds) == 1 else "builds"
        return f"the server waits for {len(builds)} running {noun}: {listed(builds, _SHOWN_BUILDS)}"


def _state(response: Response, probe: tuple[str, str]) -> ServerState:
    """Return the state in a response, which must be JSON if it has no session id [ci-3]."""
    mark = response.headers.get("X-Jenkins-Session")
    try:
        quieting = object_of(response).get("quietingDown")
    except ToolchainError:
        if mark is None:
            raise
        quieting = None
    version = response.headers.get("X-Jenkins")
    return ServerState(mark, version, quieting if isinstance(quieting, bool) else None, probe)


def _is_new(state: ServerState, before: ServerState, *, was_down: bool) -> bool:
    """Return whether the server has restarted: its session id has changed. Without session ids,
    return whether it was down.
    """
    if state.mark is None or before.mark is None:
        return was_down
    return state.mark != before.mark


def _with_result(error: ToolchainError) -> ToolchainError:
    """Add the result to an error that occurred after the restart was requested."""
    error.result = {"changed": True, "version": None, "downtime": None, **error.result}
    return error
