# SPDX-License-Identifier: GPL-3.0-or-later
"""Module `tracker_user_info`: find users by name, or by email address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.concurrency import spread
from ..core.json_text import as_text
from ..core.module.descriptor import Descriptor, reads
from ..core.module.task import Task
from ..core.module.typed_options import Names, Positive
from ..core.plan import Plan, ReadOnly, unchanged
from .accounts import Account, Accounts, own_account, require_permissions
from .client import TrackerClient
from .service import SERVICE


@dataclass(frozen=True)
class TrackerUserInfoOptions:
    """The options of `tracker_user_info`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [("users", "emails")]}

    users: Names | None = None
    emails: Names | None = None
    parallel: Positive = 4


class TrackerUserInfoOperation(ReadOnly):
    """Find users. A user that does not exist has no matches."""

    descriptor: ClassVar = Descriptor(SERVICE, {"read": reads()})

    def __init__(self, task: Task, options: TrackerUserInfoOptions) -> None:
        self._options = options
        if not (options.users or options.emails):
            task.warn("users and emails are empty: nobody is searched for")
        self._client = TrackerClient(task)
        self._accounts = Accounts(self._client, task.warn, cloud=self._client.cloud)

    def plan(self) -> Plan:
        options = self._options

        def named(name: str) -> dict[str, Any]:
            found = self._accounts.named(name)
            return {"user": name, "email": None, "matches": self._shown([found] if found else [])}

        def with_email(email: str) -> dict[str, Any]:
            found = self._accounts.with_email(email, "emails")
            return {"user": None, "email": email, "matches": self._shown(found)}

        users = spread(options.parallel, named, list(dict.fromkeys(options.users or ())))
        emails = spread(options.parallel, with_email, list(dict.fromkeys(options.emails or ())))
        rows = [*users, *emails]
        if not all(row["matches"] for row in rows):
            # any other server has no users either, and without the permission nobody is found
            own_account(self._client)
            require_permissions(self._client, "searching for users", ["USER_PICKER"])
        return unchanged({"users": rows})

    def _shown(self, found: list[Account]) -> list[dict[str, Any]]:
        return [
            {
                "account": as_text(each.get(self._accounts.member)),
                "key": as_text(each.get("key")) or None,
                "email": as_text(each.get("emailAddress")) or None,
                "display_name": as_text(each.get("displayName")),
                "active": each.get("active") is not False,
            }
            for each in found
        ]
