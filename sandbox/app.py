# SPDX-License-Identifier: GPL-3.0-or-later
"""The application: the five services and the control interface under a single root."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from sandbox.context import Context, context
from sandbox.service import ServiceApp
from sandbox.store import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from sandbox.store import Snapshot, Store

# Each package `sandbox.<name>` exports its service as `SERVICE`.
SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")
SEEDS = Path(__file__).parent / "seeds"
# Seeds contain relative times; a reset within this many seconds reuses the snapshot, because nobody
# notices such a shift.
_SEEDED_LATELY = 10.0

Seed = dict[str, Any]


def load_seed(path: Path) -> Seed:
    """Load a seed file: YAML, `{service: {settings, credentials, ...}}`."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path}: a seed is a mapping of services")
    return data


def default_seeds() -> list[Seed]:
    """Return the seeds of the demo: a file per service."""
    return [load_seed(SEEDS / f"{name}.yml") for name in SERVICES]


def build_app(
    store: Store, seeds: Sequence[Seed] | None = None, flavours: dict[str, str] | None = None
) -> Starlette:
    """Build the sandbox application over this store.

    `seeds` (None: the default seeds) fill an empty store, in order. A store with content is not
    changed. `flavours` (service: `written` or `real`) apply in both cases, and again after a reset.
    """
    current = Context(store)
    for name in SERVICES:
        current.add_service(importlib.import_module(f"sandbox.{name}").SERVICE(current))
    chosen_seeds = default_seeds() if seeds is None else list(seeds)

    def fill(with_seeds: bool) -> None:
        # All or nothing: a half-filled database would never be filled completely.
        with store.transaction():
            for seed in chosen_seeds if with_seeds else ():
                current.seed(seed)
        for name, flavour in (flavours or {}).items():
            current.update_settings(name, {"flavour": flavour})

    fill(store.is_empty())
    apps = {name: ServiceApp(service) for name, service in current.services.items()}
    mounts = [Mount(f"/{name}", app=each) for name, each in apps.items()]
    roots = [Route(f"/{name}", _context_root, methods=["GET"]) for name in current.services]
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_control_routes()), *roots, *mounts, _outside(apps)]
    )
    app.router.redirect_slashes = False
    app.state.context = current
    app.state.reset = _resetting(current, fill)
    return app


def _resetting(current: Context, fill: Callable[[bool], None]) -> Callable[[], None]:
    """Return a function that restores the seeds; repeated resets use a snapshot and are faster."""
    lately: list[tuple[float, Snapshot]] = []

    def reset() -> None:
        if lately and time.monotonic() - lately[0][0] < _SEEDED_LATELY:
            current.reset(lately[0][1])
            return
        current.reset(NOTHING)
        fill(True)
        lately[:] = [(time.monotonic(), current.store.snapshot())]

    return reset


def _outside(apps: dict[str, ServiceApp]) -> Mount:
    """Route addresses outside of a service's prefix to the service that serves them."""

    async def find(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].decode("latin-1")
        for name, each in apps.items():
            inside = each.service.inside(path)
            if inside is not None:
                place = {"raw_path": inside.encode("latin-1"), "root_path": f"/{name}"}
                await each({**scope, **place}, receive, send)
                return
        await Response("Not Found", 404)(scope, receive, send)

    return Mount("/", app=find)


async def _context_root(request: Request) -> Response:
    """Redirect the bare context path to its folder, as a servlet container does."""
    return RedirectResponse(f"{request.scope['path']}/", 302)


def _control_routes() -> list[Route]:
    return [
        Route("/health", _health),
        Route("/requests", _requests, methods=["GET", "DELETE"]),
        Route("/faults", _faults, methods=["GET", "POST", "DELETE"]),
        Route("/settings", _settings, methods=["GET", "PATCH"]),
        Route("/reset", _reset, methods=["POST"]),
        Route("/seed", _seed, methods=["POST"]),
    ]


async def _health(request: Request) -> Response:
    return JSONResponse(
        {"status": "ok", "pid": os.getpid(), "services": list(context(request).services)}
    )


async def _requests(request: Request) -> Response:
    """Return or clear the log.

    GET `?service=&since=&writes=1` returns `requests`, `last`, `forgotten`. DELETE clears the log.
    """
    log = context(request).log
    if request.method == "DELETE":
        log.clear()
        return Response(status_code=204)
    query = request.query_params
    try:
        since = int(query.get("since") or 0)
    except ValueError as error:
        return _refused(error)
    found = log.select(query.get("service") or None, since, query.get("writes") == "1")
    return JSONResponse({"requests": found, "last": log.last, "forgotten": log.forgotten})


async def _faults(request: Request) -> Response:
    """Handle faults. GET: pending faults. POST: add a fault or a list. DELETE: remove all."""
    current = context(request)
    faults = current.faults
    if request.method == "DELETE":
        faults.clear()
        return Response(status_code=204)
    if request.method == "POST":
        try:
            data = await request.json()
            for item in data if isinstance(data, list) else [data]:
                current.known_services([_mapping(item, "a fault").get("service")])
                faults.add(item)
        except ValueError as error:
            return _refused(error)
    return JSONResponse({"faults": faults.pending})


async def _settings(request: Request) -> Response:
    """Handle settings. GET: all. PATCH: `{service: {key: value}}`; returns all settings."""
    current = context(request)
    if request.method == "PATCH":
        try:
            changes = _mapping(await request.json(), "the body")
            current.known_services(changes)
            for name, settings in changes.items():
                current.update_settings(name, _mapping(settings, name))
        except ValueError as error:
            return _refused(error)
    return JSONResponse({name: current.settings(name) for name in current.services})


async def _reset(request: Request) -> Response:
    """Restore the seed."""
    request.app.state.reset()
    return Response(status_code=204)


async def _seed(request: Request) -> Response:
    """Merge more seed data: JSON in the format of a seed file."""
    try:
        context(request).seed(_mapping(await request.json(), "a seed"))
    except ValueError as error:
        return _refused(error)
    return Response(status_code=204)


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is to be an object")
    return value


def _refused(error: ValueError) -> Response:
    return JSONResponse({"error": str(error)}, 400)
