# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the platform's other APIs, such as `/access` and `/lifecycle`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import ToolchainError, looks_like_html
from ..core.http.messages import Response, json_or_none
from ..core.module.task import Task
from .client import JFROG, objects, refuse_page
from .error_text import describe
from .service import platform_of

#: Statuses with which a server or a proxy rejects an unknown path.
_UNKNOWN = (404, 405)
#: Keys in `errors[]` that the platform's other APIs use, but not the repository manager [repo-31].
_PLATFORM_KEYS = ("code", "title", "detail")


@dataclass(frozen=True)
class Interface:
    """An API of the platform next to the repository manager.

    :param segment: first path segment below the base address of the platform
    :param probe: path below the segment that every server with this API knows
    :param needs: required product and version, for messages
    """

    segment: str
    probe: str
    needs: str


ACCESS = Interface("access", "api/v1/system/ping", "Artifactory 7.49.3 or newer")
LIFECYCLE = Interface(
    "lifecycle",
    "api/v2/release_bundle/groups",
    "Artifactory 7.63.2 or newer, Pro or Enterprise",
)


class InterfaceMissing(ToolchainError):
    """The server does not have this API, or a proxy does not expose it."""


class PlatformClient:
    """Client of one API of the platform, with the login and the limits of the task.

    Server fact [repo-31]: a server without this API, or a proxy in front of it, also returns 404.
    The methods then raise :class:`InterfaceMissing`. Any other 404 means that an object is absent.
    """

    def __init__(self, task: Task, interface: Interface, *, connections: int = 4) -> None:
        self._interface, self._connection = interface, task.connection
        platform = platform_of(task.connection.url, task.connection.settings)
        self.base = f"{platform}/{interface.segment}"
        self.warn = task.warn
        self.transport = task.transport(
            describe=describe,
            api_key_headers=[JFROG.api_key_header],
            connections=connections,
            base=self.base,
        )

    def read(self, purpose: str, path: str, **parts: Any) -> Response:
        """Send a read to a path below the API; see :meth:`Transport.read`."""
        check = partial(self._check, parts.get("expect", ()))
        return self.transport.read(purpose, path, validate=check, **parts)

    def write(self, purpose: str, method: str, path: str, **parts: Any) -> Response:
        """Send a write to a path below the API; see :meth:`Transport.write`."""
        check = partial(self._check, parts.get("expect", ()))
        return self.transport.write(purpose, method, path, validate=check, **parts)

    def _check(self, expect: Collection[int], response: Response) -> None:
        refuse_page(response)
        if response.status in _UNKNOWN and not self._is_from_interface(response):
            raise self.missing(response)
        if response.status in (401, 403) and response.status not in expect and self.lacks_token():
            error = self.transport.failure(response)
            raise error.with_hint(
                f"/{self._interface.segment} may require an access token: set token"
            )

    def lacks_token(self) -> bool:
        """Return whether the task logs in with something other than an access token."""
        return self._connection.has_credentials and not self._connection.sends_token

    def _is_from_interface(self, response: Response) -> bool:
        """Return whether a 404 or 405 comes from the API itself; if unclear, send a probe once."""
        if looks_like_html(response.text):
            return False
        return _has_platform_error(response) or self._has_interface()

    def _has_interface(self) -> bool:
        """Return whether the server has the API, as found by a probe; the result is cached."""
        name = f"has {self._interface.segment}"
        if name not in self.transport.memory:
            self.transport.memory[name] = self._probe()
        return bool(self.transport.memory[name])

    def _probe(self) -> bool:
        purpose = f"checking whether the server has {self.base}"
        try:
            response = self.transport.read(
                purpose,
                self._interface.probe,
                expect=(200, 401, 403, *_UNKNOWN),
                validate=refuse_page,
            )
        except ToolchainError as error:
            if error.kind != "protocol":
                raise
            return False
        return response.status not in _UNKNOWN or _has_platform_error(response)

    def missing(self, response: Response) -> InterfaceMissing:
        """Return the error for a response from a server without this API."""
        segment, needs = self._interface.segment, self._interface.needs
        error = response.error("not_found", "")
        return InterfaceMissing(
            "not_found",
            f"{response.request.purpose}: the server has no interface {self.base}"
            f" ({response.status}): it requires {needs}. If a proxy exposes only the repository"
            f" manager, make it expose /{segment} as well, or set platform_url; otherwise check"
            " url",
            status=error.status,
            method=error.method,
            url=error.url,
            detail=describe(response) or None,
        )


def _has_platform_error(response: Response) -> bool:
    """Return whether the body is an error in the format of the platform's other APIs."""
    decoded = json_or_none(response.body)
    found = objects(decoded.get("errors")) if isinstance(decoded, Mapping) else []
    return any(isinstance(record.get(member), str) for record in found for member in _PLATFORM_KEYS)
