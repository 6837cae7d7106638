# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `wiki_user_info`: find the names of users by their keys [wiki-21]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.concurrency import spread
from ...core.errors import invalid
from ...core.http.messages import unexpected_body
from ...core.json_text import as_text, member
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import WikiClient
from ..service import SERVICE


@dataclass(frozen=True)
class WikiUserInfoOptions:
    """The options of `wiki_user_info`."""

    keys: Annotated[list[str], Option(empty=False, secret=False)]
    parallel: Positive = 4


class WikiUserInfoOperation(ReadOnly):
    """Find users by their keys, which only servers have."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads()})

    def __init__(self, task: Task, options: WikiUserInfoOptions) -> None:
        self._options = options
        self._client = WikiClient(task, connections=max(10, options.parallel))

    def plan(self) -> Plan:
        if self._client.is_in_cloud:
            raise invalid("keys: users of the cloud have no keys, only account IDs")
        keys = list(dict.fromkeys(self._options.keys))
        rows = spread(self._options.parallel, self._user, keys)
        if not all(row["account"] for row in rows):
            # any other server has no users either
            self._client.ask("reading the task's account", "rest/api/user/current", {}, (200,))
        return unchanged({"users": rows})

    def _user(self, key: str) -> dict[str, Any]:
        purpose = f"searching for the user with the key {key}"
        response = self._client.ask(purpose, "rest/api/user", {"key": key}, (200, 404))
        found = response.json() if response.status == 200 else {}
        name, there = (as_text(member(found, field)) for field in ("username", "userKey"))
        if response.status == 200 and (not name or there not in ("", key)):
            raise unexpected_body(response, f"the name of the user with the key {key}")
        return {
            "key": key,
            "account": name or None,
            "display_name": as_text(member(found, "displayName")) or None,
        }
