# SPDX-License-Identifier: GPL-3.0-or-later
"""Quiet-down and safe restart, driven by the clock [ci-19].

Phases of a safe restart: running builds drain, 503 "restarting", no response, 503 "getting ready to
work". Then the server has a new session mark and no old sessions. The durations are settings.
"""

from __future__ import annotations

from typing import Any

from sandbox.ci.plugins import plugin_manager, update_center
from sandbox.ci.server.access import Crumbs
from sandbox.context import Context

_STATE = "ci.state"
NORMAL, RESTARTING, REFUSING, LOADING = "normal", "restarting", "refusing", "loading"


def request_restart(context: Context) -> None:
    if context.store.get(_STATE, "restart") is None:
        context.store.put(_STATE, "restart", {"requested_ms": context.now_ms(), "down_ms": None})


def quiet_down(context: Context) -> None:
    context.store.put(_STATE, "quiet", {"since_ms": context.now_ms()})


def cancel_quiet_down(context: Context) -> None:
    """Cancel a quiet-down, or a safe restart that still drains."""
    if quieting(context):
        _resume(context, context.now_ms())


def quieting(context: Context) -> bool:
    """Return whether new builds have to wait."""
    store = context.store
    return store.get(_STATE, "restart") is not None or store.get(_STATE, "quiet") is not None


def resumed_ms(context: Context) -> int:
    """Return the last time at which builds were allowed to start again."""
    resumed = context.store.get(_STATE, "resumed")
    return 0 if resumed is None else int(resumed["at"])


def _resume(context: Context, at: int) -> None:
    context.store.delete(_STATE, "restart")
    context.store.delete(_STATE, "quiet")
    context.store.put(_STATE, "resumed", {"at": at})


def _milliseconds(context: Context, setting: str) -> int:
    return int(float(context.settings("ci")[setting]) * 1000)


def advance(context: Context, now: int) -> None:
    """Advance a restart; called if no build is running."""
    state = context.store.get(_STATE, "restart")
    if state is None:
        return
    drained = state["requested_ms"] + _milliseconds(context, "restart_drain_seconds")
    if state["down_ms"] is None and now >= drained:
        state["down_ms"] = now
        context.store.put(_STATE, "restart", state)
    if state["down_ms"] is not None and now >= _up_ms(context, state):
        Crumbs(context).start()
        plugin_manager.settle(context)
        update_center.forget(context)
        _resume(context, _up_ms(context, state))


def _up_ms(context: Context, state: dict[str, Any]) -> int:
    parts = ("down", "refused", "boot")
    return int(state["down_ms"]) + sum(
        _milliseconds(context, f"restart_{part}_seconds") for part in parts
    )


def phase(context: Context) -> str:
    """Return the current state of the server as seen by a client."""
    state = context.store.get(_STATE, "restart")
    if state is None or state["down_ms"] is None:
        return NORMAL
    down = int(state["down_ms"]) + _milliseconds(context, "restart_down_seconds")
    if context.now_ms() < down:
        return RESTARTING
    refused = down + _milliseconds(context, "restart_refused_seconds")
    return REFUSING if context.now_ms() < refused else LOADING
