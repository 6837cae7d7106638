# SPDX-License-Identifier: GPL-3.0-or-later
"""One request to the tracker, with what a handler needs to answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sandbox.context import Context
from sandbox.rights import Rights
from sandbox.service import Answer, json_body
from sandbox.store import Store
from sandbox.tracker.errors import UNSEEN_CLOUD, UNSEEN_SERVER, refusal
from sandbox.tracker.issues.views import Views, comma_list
from sandbox.tracker.world import Issue, World

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """`views` show what the account of `rights` sees."""

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
    def world(self) -> World:
        return self.views.world

    @property
    def cloud(self) -> bool:
        return self.views.cloud

    @property
    def documents(self) -> bool:
        """Whether texts are documents: in version 3 of the cloud."""
        return self.views.documents

    @property
    def user(self) -> str:
        return self.rights.user or "anonymous"

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def query_list(self, name: str) -> list[str]:
        return comma_list(self.request.query_params.getlist(name))

    def number(self, name: str, default: int) -> int:
        """A number in the query; 404 where it is none, as of every parameter of that kind."""
        text = self.query(name, str(default))
        if not text.lstrip("-").isdigit():
            raise refusal(404, f"null for uri: {self.request.url.path}")
        return int(text)

    def members(self) -> Json:
        """The body as an object; 400 where it is none."""
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
        """Who administers the server may do so with each of its projects [tracker-28]."""
        return self.may("administer", project) or self.rights.may_anywhere("system")

    def issue(self) -> Issue:
        """The issue that the path names; 404 where it is not seen [tracker-5]."""
        return self.seen(self.part("key"))

    def seen(self, key: str) -> Issue:
        found = self.world.find(key)
        if found is not None:
            return found
        if self.world.user is None and self.world.exists(key) is not None:
            words = "You do not have the permission to see the specified issue."
            raise refusal(401, words, "Login Required")
        raise refusal(404, UNSEEN_CLOUD if self.cloud else UNSEEN_SERVER)

    def project(self, wanted: str) -> Json:
        """A project that is seen, by key or id."""
        for project in self.world.projects.values():
            if wanted in (project["key"], project["id"]):
                return project
        raise refusal(404, f"No project could be found with key '{wanted}'.")

    def now(self) -> str:
        moment = datetime.fromtimestamp(self.world.now_ms / 1000, timezone.utc)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{self.world.now_ms % 1000:03d}+0000"

    def next_id(self, kind: str) -> str:
        """As `sandbox.tracker.seeding` counts."""
        return str(FIRST_ID + self.store.next_id(f"tracker.{kind}"))

    def page(self, found: list[Json], name: str = "values", size: int = 50) -> Json:
        """The part of a list that is asked for, with what is needed to go on."""
        start = max(self.number("startAt", 0), 0)
        size = min(self.number("maxResults", size), size)
        part = found[start : start + size]
        last = start + len(part) >= len(found)
        paging = {"startAt": start, "maxResults": size, "total": len(found), "isLast": last}
        return {**paging, name: part}


FIRST_ID = 10000
Handler = Callable[[Call], Response]


def require(answer: Any, otherwise: Answer) -> None:
    """Go no further unless it holds."""
    if not answer:
        raise otherwise
