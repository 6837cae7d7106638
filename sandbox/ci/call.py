# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the CI server, and the actions that handle them."""

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
    """A request with its user, and the job and build that its path names.

    :param rest: segments of the path below the job or build
    """

    request: Request
    site: views.ViewContext
    login: access.Login
    rest: list[str]
    job: dict[str, Any] | None = None
    build: dict[str, Any] | None = None
    #: Part of the path that matches `*`, for example the name of a plugin.
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
        """Raise 403 if the user lacks the permission."""
        job = None if self.job is None else self.job["full_name"]
        if not self.login.may(permission, job):
            raise ErrorResponse(pages.denied(self.login.user, permission))

    def absolute(self, address: str) -> str:
        """Return the absolute URL for the header `Location` [ci-5]."""
        base = self.site.context.base_url(self.request, "ci").removesuffix("/ci")
        path: str = self.request.scope["path"]
        return urljoin(base + path, address)


Handler = Callable[[Call], Response | Awaitable[Response]]


@dataclass(frozen=True)
class Action:
    """Handler of a path.

    :param permission: required permission; "" means none
    :param listed: whether the interface description [W4.4] contains the path
    """

    handler: Handler
    method: str
    permission: str
    listed: bool = True


async def submitted(request: Request) -> multipart.Form:
    """Return the fields and files of a form, urlencoded or multipart."""
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
    """Return the values of the fields in the query string and in an urlencoded body."""
    sent = request.scope["query_string"].decode("latin-1")
    found = parse_qs(sent, keep_blank_values=True)
    if "x-www-form-urlencoded" in request.headers.get("content-type", ""):
        body = (await request.body()).decode("utf-8", "replace")
        for name, values in parse_qs(body, keep_blank_values=True).items():
            found.setdefault(name, []).extend(values)
    return found
