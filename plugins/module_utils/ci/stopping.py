# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop builds, and remove items from the queue [W4.4].

Server facts [ci-10]: `stop`, `term` and `kill` return 302 to the referrer or to `.`, even if
nothing runs. Only pipelines have `term` and `kill`; otherwise the 302 leads to the same address
with a slash, which does not exist. The build ends some time later, so only a verification read
shows it.
"""

from __future__ import annotations

from urllib.parse import unquote

from ..core.address import path_of, target
from ..core.http.messages import REDIRECTS, Response
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from .client import refuse_page

METHODS = ("stop", "term", "kill")
_SENT = (200, 201, 202, 204, 302, 303)
#: Unknown item, and an item that has left the queue; older servers return 302 or 404.
_LEFT_QUEUE = (404, 422)


def send(
    server: Transport,
    purpose: str,
    build: str,
    method: str,
    *,
    patience: float | None = None,
    verify: Verify | None = None,
) -> bool:
    """Ask the server to stop a build; return false if it does not support this method for the
    build.

    :param build: the path of the build
    :param method: a member of :data:`METHODS`
    :param patience: maximum seconds
    :param verify: whether the build ends
    """

    def check_way_back(response: Response) -> None:
        """Raise for a redirect to another address (to a login page, or from a proxy), which does
        not confirm anything.
        """
        refuse_page(response)
        location = response.headers.get("Location")
        if response.status in REDIRECTS and location is not None:
            there = unquote(path_of(target(response.url, location))).rstrip("/")
            if not there.endswith((f"/{unquote(build)}", f"/{unquote(build)}/{method}")):
                raise server.failure(response)

    response = server.write(
        purpose,
        "POST",
        f"{build}/{method}",
        form={},
        expect=(*_SENT, 404),
        validate=check_way_back,
        patience=patience,
        verify=verify,
    )
    return response.status != 404 and not _leads_to(response, method)


def _leads_to(response: Response, method: str) -> bool:
    """Return whether the redirect leads to the address of the method itself, which does
    not exist.
    """
    location = response.headers.get("Location", "")
    return path_of(target(response.url, location)).endswith(f"/{method}/")


def cancel(
    server: Transport,
    purpose: str,
    item: int,
    *,
    patience: float | None = None,
    verify: Verify | None = None,
) -> bool:
    """Remove an item from the queue; return false if it has left the queue, or the server does not
    support it.

    :param verify: whether it has left the queue
    """
    response = server.write(
        purpose,
        "POST",
        "queue/cancelItem",
        query={"id": item},
        form={},
        expect=(*_SENT, *_LEFT_QUEUE),
        patience=patience,
        verify=verify,
        repeatable=True,
    )
    return response.status not in _LEFT_QUEUE
