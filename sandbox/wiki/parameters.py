# SPDX-License-Identifier: GPL-3.0-or-later
"""Common query parameters: paging, expansions and statuses [wiki-7, wiki-11]."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from sandbox.wiki.errors import bad_request
from sandbox.wiki.views import Views

Json = dict[str, Any]

DEFAULT_LIMIT = 25
_MAX_WITH_BODIES = 50


def part(
    request: Request,
    views: Views,
    found: Sequence[Json],
    show: Callable[[Json], Json],
    *,
    default: int = DEFAULT_LIMIT,
    cursor: bool = False,
) -> Json:
    """Return the requested part of a list, with a link to the next part.

    A limit above the maximum is silently reduced.

    :param show: converts an entry to JSON
    :param cursor: use a cursor instead of `start`, like searches in the cloud
    """
    start, limit = _start(request, cursor=cursor), integer(request, "limit", default)
    bodies = views.pages.cloud and any("body" in name for name in expansions(request))
    limit = min(limit, views.settings["list_limit"], _MAX_WITH_BODIES if bodies else limit)
    shown = [show(record) for record in found[start : start + limit]]
    links = {"base": views.base, "context": "/wiki"}
    if start + limit < len(found) and views.settings["next_links"]:
        position = {"cursor": _cursor(start + limit)} if cursor else {"start": start + limit}
        query = {**request.query_params, **position, "limit": limit}
        links["next"] = f"{request.url.path.removeprefix('/wiki')}?{urlencode(query)}"
    response = {"results": shown, "start": start, "limit": limit, "size": len(shown)}
    return {**response, "_links": links}


def _start(request: Request, *, cursor: bool) -> int:
    if not cursor:
        return integer(request, "start", 0)
    given = request.query_params.get("cursor")
    if given is None:
        return 0
    try:
        return int(base64.urlsafe_b64decode(given))
    except (binascii.Error, ValueError):
        raise bad_request(f"Invalid cursor: {given}") from None


def _cursor(start: int) -> str:
    return base64.urlsafe_b64encode(str(start).encode()).decode()


def expansions(request: Request) -> list[str]:
    values = request.query_params.getlist("expand")
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def statuses(request: Request) -> list[str]:
    values = request.query_params.getlist("status")
    return [part for value in values for part in value.split(",") if part] or ["current"]


def integer(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    if value == "":
        return default
    if not value.isdigit():
        raise bad_request(f"{name} is not a number: {value}")
    return int(value)
