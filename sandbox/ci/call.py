# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to the CI server while it is resolved to its object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urljoin

from starlette.requests import Request
from starlette.responses import Response

from sandbox import multipart
from sandbox.ci.builds import builds
from sandbox.ci.formats import views
from sandbox.ci.server import access, pages
from sandbox.context import context as find_context
from sandbox.service import ErrorResponse


@dataclass
class Call:
    """A request while it is resolved: its address, its user, and the objects found so far."""

    request: Request
    site: views.ViewContext
    login: access.Login
    rest: list[str]
    job: dict[str, Any] | None = None
    build: dict[str, Any] | None = None
    #: The part of the address that matches a `*` (a plugin name, the path of an artifact).
    name: str = ""

    @property
    def found_job(self) -> dict[str, Any]:
        if self.job is None:
            raise ErrorResponse(pages.not_found())
        return self.job

    @property
    def found_build(self) -> dict[str, Any]:
        if self.build is None:
            raise ErrorResponse(pages.not_found())
        return self.build

    @property
    def build_key(self) -> str:
        return builds.build_key(self.found_build["job"], self.found_build["number"])

    def require(self, permission: str) -> None:
        """Raise 403 without this permission."""
        job = None if self.job is None else self.job["full_name"]
        if not self.login.may(permission, job):
            raise ErrorResponse(pages.denied(self.login.user, permission))

    def absolute(self, address: str) -> str:
        """Return the absolute address for this client, for `Location` (server fact [ci-5])."""
        base = self.site.context.base_url(self.request, "ci").removesuffix("/ci")
        path: str = self.request.scope["path"]
        return urljoin(base + path, address)


Handler = Callable[[Call], Response | Awaitable[Response]]


@dataclass(frozen=True)
class Action:
    """Action behind an address; `listed`: the written interface [W4.4] has the address."""

    handler: Handler
    method: str
    permission: str
    listed: bool = True


async def submitted(request: Request) -> multipart.Form:
    """Return the fields and files of a form, in any encoding."""
    kind = request.headers.get("content-type", "")
    form = multipart.Form(await form_fields(request))
    if not kind.startswith("multipart/form-data"):
        return form
    blobs = find_context(request).store.blobs
    try:
        parts = await multipart.read(kind, request.stream(), blobs)
    except multipart.Broken as error:
        raise ErrorResponse(pages.oops(str(error))) from error
    for name, values in parts.fields.items():
        form.fields.setdefault(name, []).extend(values)
    form.files.update(parts.files)
    return form


async def form_fields(request: Request) -> dict[str, list[str]]:
    """Return the fields of the query and of an urlencoded body; a field may be repeated."""
    sent = request.scope["query_string"].decode("latin-1")
    found = parse_qs(sent, keep_blank_values=True)
    if "x-www-form-urlencoded" in request.headers.get("content-type", ""):
        body = (await request.body()).decode("utf-8", "replace")
        for name, values in parse_qs(body, keep_blank_values=True).items():
            found.setdefault(name, []).extend(values)
    return found
