# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart the server safely once, and follow it until it is up again: `ci_restart`.

Server facts [ci-3, ci-19]: `POST /safeRestart` returns 302, which proves nothing. Running builds
finish while the server responds as always; then it returns 503, refuses connections, and returns
503 again. `X-Jenkins-Session` differs after each start; sessions and crumbs are then invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.address import path_of, target
from ...core.errors import ToolchainError
from ...core.http.messages import REDIRECTS, Response
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Plan, unchanged
from ...core.polling import PollInterval, PollTimeout
from ..client import object_of, objects, part, refuse_page, server_of
from ..interrupts import interruptible
from ..permissions import MANAGE, READ_SERVER
from ..plugins import plugin_list
from ..waiting import PollingFactory, WaitOptions

#: Addresses that show a running server; the written interface has only the second address.
_PROBES = (("api/json", "quietingDown"), ("pluginManager/api/json", "plugins[shortName]"))
_EXECUTORS = "currentExecutable[fullDisplayName]"
_RUNNING = f"computer[executors[{_EXECUTORS}],oneOffExecutors[{_EXECUTORS}]]"
_WHAT = "restarting the CI server"
_SHOWN_BUILDS = 3
#: Minimum seconds for a poll, however little time is left.
_SHORTEST_POLL = 0.5


@dataclass(frozen=True)
class ServerState:
    """State in a complete response; `None` for unknown parts.

    :param mark: the session id, which changes with each start
    :param quieting: whether it starts no builds, as before a restart
    :param probe: address and tree of the response
    """

    mark: str | None
    version: str | None
    quieting: bool | None
    probe: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class CiRestartOptions(WaitOptions):
    """The options of `ci_restart`."""

    wait_timeout: float = 600
    poll_interval: float = 2
    when_plugins_pending: bool = False


class CiRestartOperation:
    """Restarts the server and waits; `polling` makes the polling interval."""

    descriptor: ClassVar = Descriptor(
        "ci",
        {"restart": writes(READ_SERVER, unforeseen=(MANAGE,)), "wait": reads()},
        kind="server",
        name="restart",
        follows=True,
    )

    def __init__(
        self, task: Task, options: CiRestartOptions, polling: PollingFactory = PollInterval
    ) -> None:
        options.check()
        self._options, self._warn, self._say = options, task.warn, task.progress
        self._server = server_of(task)
        self._polling = polling
        self._last_line = ""
        self._reports_builds = True

    def plan(self) -> Plan:
        before = self._first_state()
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
        lost = self._ask(polling, plan.data)
        if not self._options.wait:
            return {}
        try:
            values = self._watched(polling, plan.data)
        except PollTimeout as error:
            raise lost or _unfinished(error) from None
        except ToolchainError as error:
            raise _unfinished(error) from None
        if self._options.when_plugins_pending and (left := self._pending()):
            self._warn(
                f"{_WHAT}: these changes still wait for a restart after it: {', '.join(left)}"
            )
        return values

    def _first_state(self) -> ServerState:
        """Return the state before the restart, from the first address that the server knows."""
        purpose = "reading the state of the CI server"
        for path, tree in _PROBES:
            response = self._server.read(purpose, path, query={"tree": tree}, expect=(200, 404))
            if response.status == 200:
                return _state(response, (path, tree))
        raise self._server.failure(response)

    def _pending(self) -> list[str]:
        """Return the changes that wait for a restart: plugins, and updates that the update center
        has installed.
        """
        found = [plugin.short_name for plugin in plugin_list.read(self._server) if plugin.waits]
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

    def _ask(self, polling: PollInterval, before: ServerState) -> ToolchainError | None:
        """Request the restart once; return the error of a lost response if it is unknown whether
        the server acts.
        """
        try:
            self._server.write(
                _WHAT,
                "POST",
                "safeRestart",
                expect=(200, 201, 202, 204, 302, 303),
                validate=self._validate,
                verify=lambda: self._acted(polling, before),
            )
        except ToolchainError as error:
            if error.status == 500:
                error.with_hint("a server that cannot restart itself responds like this")
            may_restart = (
                error.outcome_unknown and not error.verified_undone and error.retry_after is None
            )
            if not may_restart or error.status == 500 or not self._options.wait:
                raise
            return error
        return None

    def _validate(self, response: Response) -> None:
        """Raise if the request did not reach the server. Server fact [ci-19]: the redirect leads to
        the start page.
        """
        refuse_page(response)
        location = response.headers.get("Location")
        if response.status not in REDIRECTS or location is None:
            return
        path = path_of(target(response.url, location)).rstrip("/")
        if path not in ("", path_of(self._server.connection.url).rstrip("/")):
            raise self._server.failure(response)

    def _acted(self, polling: PollInterval, before: ServerState) -> bool | None:
        """Return whether the server acts on a request whose response was lost; `None` if it is
        unknown.
        """
        state = self._verify(polling, before)
        if state is None or before.quieting is not False:
            return None
        return state.quieting is True or _is_new(state, before, was_down=False)

    def _watched(self, polling: PollInterval, before: ServerState) -> dict[str, Any]:
        """Wait, interruptible by the user."""
        with interruptible() as say:
            try:
                return self._waited(polling, before)
            except KeyboardInterrupt:
                message = f"{_WHAT}: interrupted; the restart continues"
                say(message)
                raise ToolchainError("failed", message) from None

    def _waited(self, polling: PollInterval, before: ServerState) -> dict[str, Any]:
        """Wait until the server is up again; return the return values."""
        down_since: float | None = None
        quieting = False
        while True:
            state = self._verify(polling, before)
            if state is None:
                down_since = polling.now() if down_since is None else down_since
                self._report("the server is down")
            elif _is_new(state, before, was_down=down_since is not None):
                downtime = 0.0 if down_since is None else polling.now() - down_since
                self._server.forget_login()
                self._report(f"the server is up again, release {state.version}")
                return {"version": state.version, "downtime": round(downtime, 3)}
            elif quieting and state.quieting is False:
                raise ToolchainError("failed", f"{_WHAT}: someone cancelled the restart")
            else:
                down_since, quieting = None, quieting or state.quieting is True
                self._report(self._draining())
            polling.pause(f"{_WHAT}: {self._last_line}")

    def _verify(self, polling: PollInterval, before: ServerState) -> ServerState | None:
        """Poll once; `None` without a complete response. A rejected login ends the task."""
        path, tree = before.probe
        patience = max(_SHORTEST_POLL, polling.left)
        try:
            response = self._server.read(
                _WHAT, path, query={"tree": tree}, once=True, patience=patience
            )
            return _state(response, before.probe)
        except ToolchainError as error:
            if error.status in (401, 403):
                raise
            return None

    def _draining(self) -> str:
        """Return the work that a responding server waits for."""
        builds = self._builds()
        if not builds:
            return "the server is about to go down"
        more = f" and {len(builds) - _SHOWN_BUILDS} more" if len(builds) > _SHOWN_BUILDS else ""
        noun = "build" if len(builds) == 1 else "builds"
        shown = ", ".join(builds[:_SHOWN_BUILDS])
        return f"the server waits for {len(builds)} running {noun}: {shown}{more}"

    def _builds(self) -> list[str]:
        """Return the names of the running builds; empty if unknown."""
        if not self._reports_builds:
            return []
        try:
            query = {"tree": _RUNNING}
            shown = object_of(self._server.read(_WHAT, "computer/api/json", query=query, once=True))
        except ToolchainError:
            self._reports_builds = False
            return []
        names = [
            part(executor.get("currentExecutable")).get("fullDisplayName")
            for computer in objects(shown.get("computer"))
            for kind in ("executors", "oneOffExecutors")
            for executor in objects(computer.get(kind))
        ]
        return sorted(str(name) for name in names if name)

    def _report(self, line: str) -> None:
        if line != self._last_line:
            self._last_line = line
            self._say(f"{_WHAT}: {line}")


def _state(response: Response, probe: tuple[str, str]) -> ServerState:
    """Return the state in a response. Server fact [ci-3]: pages have the session id as well; a
    response without it must be JSON.
    """
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
    """Return whether the server has restarted; without a session id, whether it was down."""
    if state.mark is None or before.mark is None:
        return was_down
    return state.mark != before.mark


def _unfinished(error: ToolchainError) -> ToolchainError:
    """Return an error after the restart was requested: the server restarts, or will do so."""
    error.result = {"changed": True, "version": None, "downtime": None, **error.result}
    return error
