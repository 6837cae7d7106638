# SPDX-License-Identifier: GPL-3.0-or-later
"""The application: the five services and the control interface under one root."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from sandbox.context import Context, context
from sandbox.service import ServiceApp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from sandbox.store import Store

# Each package `sandbox.<name>` offers its service as `SERVICE`.
SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")
SEEDS = Path(__file__).parent / "seeds"

Seed = dict[str, Any]


def load_seed(path: Path) -> Seed:
    """A seed file: YAML, `{service: {settings, credentials, ...}}`."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError(f"{path}: a seed is a mapping of services")
    return data


def default_seeds() -> list[Seed]:
    """The seed of the demo: one file per service."""
    return [load_seed(SEEDS / f"{name}.yml") for name in SERVICES]


def build_app(
    store: Store, seeds: Sequence[Seed] | None = None, flavours: dict[str, str] | None = None
) -> Starlette:
    """The sandbox over this store.

    `seeds` (None: the default seeds) fill an empty store, in order; a store with content is left as
    it is. `flavours` (service: `written` or `real`) count in both cases, and again after a reset.
    """
    current = Context(store)
    for name in SERVICES:
        current.add_service(importlib.import_module(f"sandbox.{name}").SERVICE(current))
    chosen_seeds = default_seeds() if seeds is None else list(seeds)

    def fill(with_seeds: bool) -> None:
        for seed in chosen_seeds if with_seeds else ():
            current.seed(seed)
        for name, flavour in (flavours or {}).items():
            current.update_settings(name, {"flavour": flavour})

    fill(store.is_empty())
    mounts = [
        Mount(f"/{name}", app=ServiceApp(service)) for name, service in current.services.items()
    ]
    roots = [Route(f"/{name}", _context_root, methods=["GET"]) for name in current.services]
    app = Starlette(routes=[Mount("/_sandbox", routes=_control_routes()), *roots, *mounts])
    app.router.redirect_slashes = False
    app.state.context = current
    app.state.fill = fill
    return app


async def _context_root(request: Request) -> Response:
    """A servlet container answers the bare context path with its folder."""
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
    """GET: `?service=&since=&writes=1` gives `requests` and `last` (seq). DELETE: forget them."""
    log = context(request).log
    if request.method == "DELETE":
        log.clear()
        return Response(status_code=204)
    query = request.query_params
    found = log.select(
        query.get("service") or None, int(query.get("since") or 0), query.get("writes") == "1"
    )
    return JSONResponse({"requests": found, "last": log.last})


async def _faults(request: Request) -> Response:
    """GET: pending ones. POST: one fault or a list. DELETE: forget them."""
    faults = context(request).faults
    if request.method == "DELETE":
        faults.clear()
        return Response(status_code=204)
    if request.method == "POST":
        data = await request.json()
        try:
            for item in data if isinstance(data, list) else [data]:
                faults.add(item)
        except ValueError as error:
            return _refused(error)
    return JSONResponse({"faults": faults.pending})


async def _settings(request: Request) -> Response:
    """GET: all. PATCH: `{service: {key: value}}`; answers with all."""
    current = context(request)
    if request.method == "PATCH":
        try:
            for name, changes in (await request.json()).items():
                if name not in current.services:
                    raise ValueError(f"unknown service {name}")
                current.update_settings(name, changes)
        except ValueError as error:
            return _refused(error)
    return JSONResponse({name: current.settings(name) for name in current.services})


async def _reset(request: Request) -> Response:
    """Everything back to the seed."""
    context(request).reset()
    request.app.state.fill(True)
    return Response(status_code=204)


async def _seed(request: Request) -> Response:
    """Merge more data; the shape of a seed file, as JSON."""
    try:
        context(request).seed(await request.json())
    except ValueError as error:
        return _refused(error)
    return Response(status_code=204)


def _refused(error: ValueError) -> Response:
    return JSONResponse({"error": str(error)}, 400)
