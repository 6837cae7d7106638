# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to the tracker, with the data and helpers that handlers need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sandbox.context import Context
from sandbox.rights import Rights
from sandbox.service import ErrorResponse, json_body
from sandbox.store import Store
from sandbox.tracker.errors import UNSEEN_CLOUD, UNSEEN_SERVER, refusal
from sandbox.tracker.issues.views import Views, comma_list
from sandbox.tracker.visible import Issue, VisibleData

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A request to the tracker.

    `views`: only contains data that the account can see. `rights`: permissions of the account.
    """

    context: Context
    request: Request
    body: bytes
    views: Views
    rights: Rights

    @property
    def settings(self) -> Json:
        return self.context.settings("tracker")

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def visible(self) -> VisibleData:
        return self.views.visible

    @property
    def cloud(self) -> bool:
        return self.views.cloud

    @property
    def documents(self) -> bool:
        """Return whether texts are documents, as in version 3 of the cloud."""
        return self.views.documents

    @property
    def user(self) -> str:
        return self.rights.user or "anonymous"

    def part(self, name: str) -> str:
        """Return a parameter of the request path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def query_list(self, name: str) -> list[str]:
        return comma_list(self.request.query_params.getlist(name))

    def number(self, name: str, default: int) -> int:
        """Parse a number in the query. Raises a 404 if it is invalid, like the server."""
        text = self.query(name, str(default))
        if not text.lstrip("-").isdigit():
            raise refusal(404, f"null for uri: {self.request.url.path}")
        return int(text)

    def members(self) -> Json:
        """Parse the body. Raises a 400 if it is not a JSON object, or has an unknown member."""
        found = json_body(self.body)
        if not isinstance(found, dict):
            raise refusal(400, "Unexpected end-of-input: expected a JSON object")
        for name in found:
            if name in self.settings["unrecognized"]:
                raise refusal(400, f'Unrecognized field "{name}", not marked as ignorable')
        return found

    def may(self, permission: str, project: str) -> bool:
        return self.rights.may(permission, project)

    def administers(self, project: str) -> bool:
        """Return whether the account may administer a project.

        Administrators of the server may administer all projects [tracker-28].
        """
        return self.may("administer", project) or self.rights.may_anywhere("system")

    def issue(self) -> Issue:
        """Return the issue in the path. Raises a 404 if it is not visible [tracker-5]."""
        return self.seen(self.part("key"))

    def seen(self, key: str) -> Issue:
        found = self.visible.find(key)
        if found is not None:
            return found
        if self.visible.user is None and self.visible.exists(key) is not None:
            message = "You do not have the permission to see the specified issue."
            raise refusal(401, message, "Login Required")
        raise refusal(404, UNSEEN_CLOUD if self.cloud else UNSEEN_SERVER)

    def project(self, wanted: str) -> Json:
        """Return the visible project with a key or id. Raises a 404."""
        for project in self.visible.projects.values():
            if wanted in (project["key"], project["id"]):
                return project
        raise refusal(404, f"No project could be found with key '{wanted}'.")

    def readable(self, wanted: str) -> str:
        """Return the key of the project with a key or id. Raises a 404.

        The account must have the permission to browse or to administer the project.
        """
        for key, project in self.store.items("tracker.project"):
            seen = key in self.visible.projects or self.administers(key)
            if seen and wanted in (key, project["id"]):
                return key
        raise refusal(404, f"No project could be found with key '{wanted}'.")

    def now(self) -> str:
        moment = datetime.fromtimestamp(self.visible.now_ms / 1000, timezone.utc)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{self.visible.now_ms % 1000:03d}+0000"

    def next_id(self, kind: str) -> str:
        """Return the next id of a kind. Seeds use the same sequence."""
        return str(FIRST_ID + self.store.next_id(f"tracker.{kind}"))

    def page(self, found: list[Json], name: str = "values", size: int = 50) -> Json:
        """Return the requested page of a list, with the members about paging.

        :param name: member for the entries
        :param size: default and maximum page size
        """
        start = max(self.number("startAt", 0), 0)
        size = min(self.number("maxResults", size), size)
        part = found[start : start + size]
        last = start + len(part) >= len(found)
        paging = {"startAt": start, "maxResults": size, "total": len(found), "isLast": last}
        return {**paging, name: part}


FIRST_ID = 10000
Handler = Callable[[Call], Response]


def require(condition: Any, error: ErrorResponse) -> None:
    """Raise an error response if a condition is false or empty."""
    if not condition:
        raise error
