# SPDX-License-Identifier: GPL-3.0-or-later
"""Users [W4.5].

Actions: C(users), C(create_user), C(delete_user).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core.module.task import Task
from ...core.plan import Plan
from ...core.secret import Secret
from ..answers import Record, flag, named
from ..client import Call
from ..engine.operation import ResourceOperation
from ..engine.resource import STATE, Objects, Resource, State, is_account, refusal, require_names

#: The options of C(analysis_user) without the connection.
OPTIONS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "password": {"type": "str", "no_log": True},
    "state": STATE,
}


@dataclass(frozen=True)
class User(Resource):
    """A user by name. No server tells a password: it counts where the user is created."""

    noun: ClassVar[str] = "user"

    name: str
    password: Secret | None = field(default=None)

    @property
    def key(self) -> Hashable:
        return self.name

    @property
    def listing(self) -> Call:
        return Call("users", {"search": self.name})

    def objects(self, records: Sequence[Record]) -> Objects:
        return objects(records)

    def call(self, plan: Plan) -> Call:
        if plan.action == "delete":
            return Call("delete_user", {"name": self.name})
        password = None if self.password is None else self.password.reveal()
        return Call("create_user", {"name": self.name, "password": password})


class UserOperation(ResourceOperation):
    """The task of C(analysis_user)."""

    def __init__(self, task: Task) -> None:
        user = wanted(task.params)
        super().__init__(task, user)
        removes = user.desired is None and not task.params.get("force")
        if removes and is_account(user.name, task.connection.username):
            raise refusal(f"deleting {user.title}")


def wanted(options: Mapping[str, Any]) -> User:
    """The user that the options of C(analysis_user) ask for."""
    require_names(options, "name")
    name, password = options["name"], options.get("password")
    desired = None if options.get("state") == "absent" else {"name": name}
    return User(f"the user '{name}'", desired, name, None if password is None else Secret(password))


def objects(records: Sequence[Record]) -> dict[Hashable, State]:
    """Users by their names."""
    return {record["name"]: _state_of(record) for record in named(records)}


def _state_of(record: Record) -> dict[str, Any]:
    state: dict[str, Any] = {"name": record["name"]}
    if "readonly" in record:
        state["readonly"] = flag(record["readonly"])
    return state
