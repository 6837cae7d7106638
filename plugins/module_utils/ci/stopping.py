# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop builds and cancel queue items [W4.4].

Server facts [ci-10]: `stop`, `term` and `kill` redirect to the referrer or to `.`, even if the
build is not running. Only pipeline builds support `term` and `kill`; for other builds the server
redirects to the same URL with a trailing slash, which does not exist. The build ends later, so the
response does not show whether it has stopped.
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
#: Statuses for an item that is unknown or has left the queue. Older servers return 302 or 404.
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
    """Request the end of a build. Return false if the build does not support the method.

    :param build: path of the build
    :param method: a member of `METHODS`
    :param patience: timeout in seconds, including retries
    :param verify: returns whether the build ends, if the response was lost
    """

    def check_redirect(response: Response) -> None:
        """Raise an error for a redirect that does not come from this method, for example to a login
        page.
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
        validate=check_redirect,
        patience=patience,
        verify=verify,
    )
    return response.status != 404 and not _leads_to(response, method)


def _leads_to(response: Response, method: str) -> bool:
    """Return whether a redirect leads to the URL of the method itself: the build lacks it."""
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
    """Cancel a queue item. Return false if the item has left the queue, or the server cannot cancel
    items.

    :param item: queue id
    :param patience: timeout in seconds, including retries
    :param verify: returns whether the item has left the queue, if the response was lost
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
