# SPDX-License-Identifier: GPL-3.0-or-later
"""One request to the CI server on its way to the object that it names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from sandbox.ci import access, builds, pages, views
from sandbox.service import Answer


@dataclass
class Call:
    """One request on its way: where it goes, who asks, and what was found on the way there."""

    request: Request
    world: views.World
    login: access.Login
    rest: list[str]
    job: dict[str, Any] | None = None
    build: dict[str, Any] | None = None

    @property
    def found_job(self) -> dict[str, Any]:
        if self.job is None:
            raise Answer(pages.not_found())
        return self.job

    @property
    def found_build(self) -> dict[str, Any]:
        if self.build is None:
            raise Answer(pages.not_found())
        return self.build

    @property
    def build_key(self) -> str:
        return builds.build_key(self.found_build["job"], self.found_build["number"])

    def require(self, permission: str) -> None:
        """Go no further without this permission."""
        if not self.login.may(permission):
            raise Answer(pages.denied(self.login.user, permission))


Handler = Callable[[Call], Response | Awaitable[Response]]


@dataclass(frozen=True)
class Action:
    """What stands behind an address; `listed`: the written interface [W4.4] has it."""

    handler: Handler
    method: str
    permission: str
    listed: bool = True


async def form_fields(request: Request) -> dict[str, list[str]]:
    """Fields of the query and of an urlencoded body; a field may be repeated."""
    sent = request.scope["query_string"].decode("latin-1")
    found = parse_qs(sent, keep_blank_values=True)
    if "x-www-form-urlencoded" in request.headers.get("content-type", ""):
        body = (await request.body()).decode("utf-8", "replace")
        for name, values in parse_qs(body, keep_blank_values=True).items():
            found.setdefault(name, []).extend(values)
    return found
