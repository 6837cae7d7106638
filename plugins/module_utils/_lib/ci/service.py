# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI server: its login, and the CSRF crumb that its writes need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core import errors
from ..core.connection.auth import HEADER_VALUE
from ..core.connection.service import Service
from ..core.errors import ToolchainError

if TYPE_CHECKING:
    from ..core.http.messages import Response
    from ..core.http.transport import Transport

#: Matches a 403 about the CSRF crumb. With `\b`, because Jenkins pages also have "breadcrumbs".
_CRUMB = re.compile(r"\bcrumb\b", re.IGNORECASE)


class CiService(Service):
    """The CI server."""

    name = "ci"
    interface_path = re.compile(r"/api/(json|xml|python)$")
    headers = ("X-Jenkins",)


SERVICE = CiService()


class Crumb:
    """The CSRF crumb of the server, requested with the credentials and cookies of the write.

    The crumb issuer returns 404 if CSRF protection is switched off. If the server nevertheless
    rejects a write without a crumb, the XML API of the issuer is tried. It accepts only the two
    XPath expressions in `_XML` [W4.4, W5, repo-0].
    """

    _XML = ('concat(//crumbRequestField,":",//crumb)', "concat(//crumbRequestField,'=',//crumb)")

    def __init__(self, server: Transport) -> None:
        #: The cache of the keep-alive session lets a loop request the crumb only once.
        self._server, self._memory = server, server.memory
        self._needed = False

    def headers(self) -> dict[str, str]:
        """Return the header that a write needs, or an empty dict if the server requires none."""
        if "crumb" not in self._memory:
            self._memory["crumb"] = self._request()
        crumb: Mapping[str, str] = self._memory["crumb"]
        return dict(crumb)

    def is_rejected(self, response: Response) -> bool:
        """Return whether a 403 is due to the crumb."""
        if "X-Required-Permission" in response.headers:
            return False
        return _CRUMB.search(errors.error_text(response.text)) is not None

    def forget(self) -> None:
        """Discard the crumb that the server rejected, and remember whether it was empty."""
        self._needed = self._memory.pop("crumb", None) == {}

    def _request(self) -> dict[str, str]:
        status, body = self._fetch("crumbIssuer/api/json", (200, 400, 404, 405, 406))
        switched_off = status == 404
        if switched_off and not self._needed:
            return {}
        if status == 200 and isinstance(body, Mapping):
            field, crumb = body.get("crumbRequestField") or "Jenkins-Crumb", body.get("crumb")
            if crumb and _is_header(str(field), str(crumb)):
                return {str(field): str(crumb)}
        for expression in self._XML:
            status, body = self._fetch(
                "crumbIssuer/api/xml", (200, 403, 404), query={"xpath": expression}
            )
            field, separator, crumb = (
                str(body).strip().partition(expression[len("concat(//crumbRequestField,") + 1])
            )
            if status == 200 and separator and _is_header(field, crumb):
                return {field: crumb}
        if switched_off:
            return {}
        raise ToolchainError(
            "protocol", "the CI server returned an invalid CSRF crumb", status=status
        )

    def _fetch(self, path: str, expect: tuple[int, ...], **parts: Any) -> tuple[int, Any]:
        """Return the status, and the body as JSON if it is JSON, else as a string."""
        response = self._server.read("requesting a crumb", path, expect=expect, **parts)
        text = response.text  # `json()` raises `auth` for a login form
        decode = text.lstrip().startswith("{") or 'type="password"' in text.lower()
        return response.status, response.json() if response.status == 200 and decode else text


def _is_header(name: str, value: str) -> bool:
    """Return whether name and value form a valid header."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", name) and HEADER_VALUE.fullmatch(value))
