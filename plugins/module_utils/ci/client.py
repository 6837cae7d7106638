# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of the CI server, and the texts of its error answers [W4.4, W5]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import errors
from ..core.address import is_login_page, target
from ..core.http.messages import REDIRECTS, Response, unexpected_body
from ..core.http.transport import Transport
from ..core.module.task import Task

#: A job, which may have any name.
_JOB = re.compile(r"/job/[^/?#]+/?(?:[?#]|$)")
_LOGGING_ID = re.compile(r"Logging ID=([0-9A-Za-z-]+)")


def server_of(task: Task, *, connections: int = 10) -> Transport:
    """The server of a task; writes carry the anti-forgery token.

    :param connections: most connections at once
    """
    return task.transport(describe=describe, crumbs=True, connections=connections)


def refuse_page(response: Response) -> None:
    """Raise C(protocol), or C(auth) for a login form, if a web page answers a write."""
    if response.status < 300 and errors.looks_like_html(response.text):
        raise unexpected_body(response, "another answer")


def refuse_evasion(server: Transport, response: Response) -> None:
    """Raise where a write was answered with a web page, or with the way to a login page (C(auth)):
    neither is a yes.
    """
    location = response.headers.get("Location")
    if response.status not in REDIRECTS or location is None:
        refuse_page(response)
    elif leads_to_login(response, location):
        raise server.failure(response)


def leads_to_login(response: Response, location: str) -> bool:
    """Whether a redirect leads to a login page; that of a job with such a name is none."""
    there = target(response.url, location)
    return is_login_page(there) and _JOB.search(there) is None


def object_of(response: Response) -> Mapping[str, Any]:
    """The JSON object of an answer; C(protocol) if the answer is something else."""
    shown = response.json()
    if not isinstance(shown, Mapping):
        raise response.error("protocol", "the server returned with JSON, but not with an object")
    return shown


def part(value: object) -> Mapping[str, Any]:
    """An object inside an answer; empty for any other value."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list inside an answer; none for any other value."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def describe(response: Response) -> str:
    """The server's words in an error answer.

    Server facts [ci-1, ci-4]: a refused request has its words in C(X-Error), a missing permission
    is named in C(X-Required-Permission), an uncaught exception leaves a logging id in an HTML page.
    """
    headers = response.headers
    permission = headers.get("X-Required-Permission")
    if permission is not None:
        user = headers.get("X-You-Are-Authenticated-As") or "the account"
        return f"{user} lacks the permission {permission}"
    said = headers.get("X-Error") or errors.error_text(response.text)
    logged = _LOGGING_ID.search(response.text)
    if logged is None or logged[1] in said:
        return said
    return f"{said}; the server's log has it under the id {logged[1]}"
