# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate quiet-down and safe restart [ci-19].

A safe restart waits for the running builds. The server then responds with 503 "restarting", does
not respond, responds with 401 to every login, and with 503 "getting ready to work". After that it
has a new session id and no login sessions. Settings contain the duration of each phase.
"""

from __future__ import annotations

from typing import Any

from sandbox.ci.plugins import plugin_manager, update_center
from sandbox.ci.server.access import Crumbs
from sandbox.context import Context

_STATE = "ci.state"
NORMAL, RESTARTING, REFUSING = "normal", "restarting", "refusing"
#: The server has not loaded its users yet; then, it has.
WITHOUT_USERS, LOADING = "without users", "loading"


def request_restart(context: Context) -> None:
    if context.store.get(_STATE, "restart") is None:
        context.store.put(_STATE, "restart", {"requested_ms": context.now_ms(), "down_ms": None})


def quiet_down(context: Context) -> None:
    context.store.put(_STATE, "quiet", {"since_ms": context.now_ms()})


def cancel_quiet_down(context: Context) -> None:
    """Cancel a quiet-down, or a safe restart that still waits for builds."""
    if quieting(context):
        _resume(context, context.now_ms())


def quieting(context: Context) -> bool:
    """Return whether the server starts no new builds."""
    store = context.store
    return store.get(_STATE, "restart") is not None or store.get(_STATE, "quiet") is not None


def resumed_ms(context: Context) -> int:
    """Return the time in epoch ms at which builds were last allowed to start again."""
    resumed = context.store.get(_STATE, "resumed")
    return 0 if resumed is None else int(resumed["at"])


def _resume(context: Context, at: int) -> None:
    context.store.delete(_STATE, "restart")
    context.store.delete(_STATE, "quiet")
    context.store.put(_STATE, "resumed", {"at": at})


def _milliseconds(context: Context, setting: str) -> int:
    return int(float(context.settings("ci")[setting]) * 1000)


def advance(context: Context, now: int) -> bool:
    """Continue a restart up to the time `now`. Return whether it ends.

    Call this only if no build is running.
    """
    state = context.store.get(_STATE, "restart")
    if state is None:
        return False
    drained = state["requested_ms"] + _milliseconds(context, "restart_drain_seconds")
    if state["down_ms"] is None and now >= drained:
        state["down_ms"] = now
        context.store.put(_STATE, "restart", state)
    if state["down_ms"] is not None and now >= _up_ms(context, state):
        Crumbs(context).start()
        plugin_manager.settle(context)
        update_center.forget(context)
        _resume(context, _up_ms(context, state))
        return True
    return False


def _up_ms(context: Context, state: dict[str, Any]) -> int:
    parts = ("down", "refused", "without_users", "boot")
    return int(state["down_ms"]) + sum(
        _milliseconds(context, f"restart_{part}_seconds") for part in parts
    )


def phase(context: Context) -> str:
    """Return the current phase of a restart, or `NORMAL`."""
    state = context.store.get(_STATE, "restart")
    if state is None or state["down_ms"] is None:
        return NORMAL
    down = int(state["down_ms"]) + _milliseconds(context, "restart_down_seconds")
    if context.now_ms() < down:
        return RESTARTING
    refused = down + _milliseconds(context, "restart_refused_seconds")
    if context.now_ms() < refused:
        return REFUSING
    unloaded = refused + _milliseconds(context, "restart_without_users_seconds")
    return WITHOUT_USERS if context.now_ms() < unloaded else LOADING
