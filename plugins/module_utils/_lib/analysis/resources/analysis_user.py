# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and delete users: `analysis_user` [W4.5].

Actions: `users`, `create_user`, `delete_user`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.secret import Secret
from ..client import Call
from ..resource import (
    LIMIT,
    Ids,
    Objects,
    Presence,
    Resource,
    ResourceOperation,
    State,
    is_account,
    refusal,
)
from ..responses import Record, flag, named
from ..service import SERVICE


@dataclass(frozen=True)
class UserEntry:
    """Entry of the option `users` of `analysis_config`."""

    name: str
    password: Annotated[str | None, Option(secret=True)] = field(default=None, repr=False)
    state: Presence = "present"


@dataclass(frozen=True)
class AnalysisUserOptions(UserEntry):
    """The options of `analysis_user`."""

    force: bool = False


@dataclass(frozen=True)
class User(Resource):
    """A user, identified by its name.

    :param password: only used to create the user, because servers do not return passwords
    """

    noun: ClassVar[str] = "user"
    option: ClassVar[str] = "users"
    entry_type: ClassVar = UserEntry
    limited: ClassVar[bool] = True

    password: Secret | None = None

    @staticmethod
    def of(entry: UserEntry) -> User:
        desired = None if entry.state == "absent" else {"name": entry.name}
        password = None if entry.password is None else Secret(entry.password)
        return User(f"the user '{entry.name}'", desired, entry.name, password=password)

    @property
    def listing(self) -> Call:
        return Call("users", {"search": self.name})

    @classmethod
    def whole_listing(cls, project: str | None) -> Call:
        return Call("users", {"limit": LIMIT})

    @staticmethod
    def parse(records: Sequence[Record], project: str, ids: Ids) -> Objects:
        return {record["name"]: _state_of(record) for record in named(records)}

    def unreadable(self, current: State | None) -> tuple[str, ...]:
        return ("password",) if current is not None and self.password is not None else ()

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_user", {"name": self.name})
        password = None if self.password is None else self.password.reveal()
        return Call("create_user", {"name": self.name, "password": password})


class AnalysisUserOperation(ResourceOperation):
    """Creates or deletes a user."""

    makes = User
    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(),
            "create": writes(unforeseen=("manage_users",)),
            "delete": writes(unforeseen=("manage_users",)),
        },
        kind="user",
        name="{name}",
    )

    def __init__(self, task: Task, options: AnalysisUserOptions) -> None:
        super().__init__(task, options)
        removes = options.state == "absent" and not options.force
        if removes and is_account(options.name, task.connection.username):
            raise refusal(f"deleting {User.of(options).title}")


def _state_of(record: Record) -> dict[str, Any]:
    state: dict[str, Any] = {"name": record["name"]}
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state
