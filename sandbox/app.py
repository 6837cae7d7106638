# SPDX-License-Identifier: GPL-3.0-or-later
"""The ASGI application with the five services and the control interface."""

from __future__ import annotations

import importlib
import json
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from sandbox.store import Snapshot, Store

# Each package `sandbox.<name>` exports its service class as `SERVICE`.
SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")
SEEDS = Path(__file__).parent / "seeds"
# The parser of libyaml is ten times as fast; some builds of PyYAML lack it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A reset within this many seconds reuses the snapshot. Seeds contain times relative to now, which
# are then at most this late.
_SNAPSHOT_SECONDS = 10.0

Seed = dict[str, Any]


def load_seed(path: Path) -> Seed:
    """Load a seed file, YAML with `{service: {settings, credentials, ...}}`.

    Raises `ValueError` if it is not a mapping in YAML.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 (a safe one)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} is not a seed: it must be a mapping with a key per service")
    return data


def default_seeds() -> list[Seed]:
    """Return the seeds of the demo, one per service."""
    return [load_seed(SEEDS / f"{name}.yml") for name in SERVICES]


def build_app(
    store: Store, seeds: Sequence[Seed] | None = None, flavours: dict[str, str] | None = None
) -> Starlette:
    """Build the sandbox application on a store.

    :param seeds: data for an empty store, merged in order; None means the default seeds. A store
        with content stays unchanged
    :param flavours: `written` or `real` by service; also set again after a reset
    """
    current = Context(store)
    for name in SERVICES:
        current.add_service(importlib.import_module(f"sandbox.{name}").SERVICE(current))
    chosen_seeds = default_seeds() if seeds is None else list(seeds)

    def fill(with_seeds: bool) -> None:
        # In a transaction, because only an empty database is filled at the next start.
        with store.transaction():
            for seed in chosen_seeds if with_seeds else ():
                current.seed(seed)
        for name, flavour in (flavours or {}).items():
            current.update_settings(name, {"flavour": flavour})

    fill(store.is_empty())
    apps = {name: ServiceApp(service) for name, service in current.services.items()}
    mounts = [Mount(f"/{name}", app=service_app) for name, service_app in apps.items()]
    roots = [Route(f"/{name}", _context_root, methods=["GET"]) for name in current.services]
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_control_routes()), *roots, *mounts, _outside(apps)]
    )
    app.router.redirect_slashes = False
    app.state.context = current
    app.state.reset = _resetting(current, fill)
    return app


def _resetting(current: Context, fill: Callable[[bool], None]) -> Callable[[], None]:
    """Return a function that restores the seeds. It uses a snapshot for repeated resets."""
    latest: list[tuple[float, Snapshot]] = []

    def reset() -> None:
        if latest and time.monotonic() - latest[0][0] < _SNAPSHOT_SECONDS:
            current.reset(latest[0][1])
            return
        current.reset(None)
        fill(True)
        latest[:] = [(time.monotonic(), current.store.snapshot())]

    return reset


def _outside(apps: dict[str, ServiceApp]) -> Mount:
    """Route paths outside of all prefixes to the service that serves them."""

    async def find(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].decode("latin-1")
        for name, service_app in apps.items():
            inside = service_app.service.inside(path)
            if inside is not None:
                mapped = {"raw_path": inside.encode("latin-1"), "root_path": f"/{name}"}
                await service_app({**scope, **mapped}, receive, send)
                return
        await Response("Not Found", 404)(scope, receive, send)

    return Mount("/", app=find)


async def _context_root(request: Request) -> Response:
    """Redirect the context path without a slash at the end, like a servlet container."""
    return RedirectResponse(f"{request.scope['path']}/", 302)


def _control_routes() -> list[Route]:
    return [
        Route("/health", _health),
        Route("/requests", _requests, methods=["GET", "DELETE"]),
        Route("/faults", _faults, methods=["GET", "POST", "PUT", "DELETE"]),
        Route("/settings", _settings, methods=["GET", "PATCH"]),
        Route("/reset", _reset, methods=["POST"]),
        Route("/seed", _seed, methods=["POST"]),
    ]


async def _health(request: Request) -> Response:
    return JSONResponse(
        {"status": "ok", "pid": os.getpid(), "services": list(context(request).services)}
    )


async def _requests(request: Request) -> Response:
    """Handle the request log.

    GET `?service=&since=&writes=1` returns `requests`, `last` and `forgotten`, see
    `sandbox.log.Log`. DELETE clears the log.
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
    """Handle faults. GET returns pending faults, POST adds one or a list, DELETE removes all, PUT
    replaces all by a list.

    `last` in the response is the number of the newest request in the log.
    """
    current = context(request)
    faults = current.faults
    if request.method in ("PUT", "DELETE"):
        faults.clear()
    if request.method == "DELETE":
        return Response(status_code=204)
    if request.method in ("POST", "PUT"):
        try:
            _add_faults(current, await request.json())
        except ValueError as error:
            return _refused(error)
    return JSONResponse({"faults": faults.pending, "last": current.log.last})


def _add_faults(current: Context, data: Any) -> None:
    for item in data if isinstance(data, list) else [data]:
        current.known_services([_mapping(item, "a fault").get("service")])
        current.faults.add(item)


async def _settings(request: Request) -> Response:
    """Handle settings. PATCH changes them: `{service: {key: value}}`. Both return all settings."""
    current = context(request)
    if request.method == "PATCH":
        try:
            _change_settings(current, await request.json())
        except ValueError as error:
            return _refused(error)
    return JSONResponse({name: current.settings(name) for name in current.services})


def _change_settings(current: Context, data: Any) -> None:
    changes = _mapping(data, "the settings")
    current.known_services(changes)
    for name, settings in changes.items():
        current.update_settings(name, _mapping(settings, name))


async def _reset(request: Request) -> Response:
    """Restore the seed.

    The body may be JSON with `settings`, `seed` and `faults`, which are then those of PATCH
    `/settings`, POST `/seed` and POST `/faults`. `last` in the response is the number of the newest
    request in the log.
    """
    current = context(request)
    request.app.state.reset()
    try:
        given = _mapping(json.loads(await request.body() or b"{}"), "the body")
        _change_settings(current, given.get("settings", {}))
        current.seed(_mapping(given.get("seed", {}), "a seed"))
        _add_faults(current, given.get("faults", []))
    except ValueError as error:
        return _refused(error)
    return JSONResponse({"last": current.log.last})


async def _seed(request: Request) -> Response:
    """Merge seed data, which is JSON in the format of a seed file."""
    try:
        context(request).seed(_mapping(await request.json(), "a seed"))
    except ValueError as error:
        return _refused(error)
    return Response(status_code=204)


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object")
    return value


def _refused(error: ValueError) -> Response:
    return JSONResponse({"error": str(error)}, 400)
