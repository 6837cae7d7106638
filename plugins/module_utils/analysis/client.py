# SPDX-License-Identifier: GPL-3.0-or-later
"""The code analysis server: one address, 43 actions (written interface, 4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core import errors
from ..core.errors import Kind, ToolchainError
from ..core.task import Task
from ..core.wire import Answer, unreadable
from . import answers
from .answers import Record, Refusal, Unreadable

_PATH = "review/api"

#: The actions that only read: they may be sent in check mode and are tried again.
READING = frozenset(
    {
        "builds",
        "defect_types",
        "fchurns",
        "groups",
        "import_status",
        "issue_details",
        "license_count",
        "metrics",
        "modules",
        "project_configuration",
        "projects",
        "report",
        "role_assignments",
        "roles",
        "search",
        "task_status",
        "taxonomies",
        "users",
        "version",
        "views",
    }
)
#: The actions that change the server: sent once.
WRITING = frozenset(
    {
        "create_group",
        "create_module",
        "create_role",
        "create_user",
        "create_view",
        "delete_build",
        "delete_group",
        "delete_module",
        "delete_project",
        "delete_role",
        "delete_user",
        "delete_view",
        "import_project",
        "import_server_configuration",
        "update_build",
        "update_defect_type",
        "update_group",
        "update_module",
        "update_project",
        "update_role_assignment",
        "update_role_permissions",
        "update_status",
        "update_view",
    }
)
ACTIONS = READING | WRITING

# The server has no codes for what went wrong: below its status only its words tell.
_WORDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("conflict", re.compile(r"already (exists?|in use|defined|used)|\bduplicate\b", re.I)),
    ("not_found", re.compile(r"(not|n't) exist|not (be )?found|\bno such\b", re.I)),
    ("auth", re.compile(r"\bl?token\b|log(ged)? ?in\b|authenticat", re.I)),
    ("permission", re.compile(r"permission|not (allowed|authori[sz]ed)|access denied", re.I)),
)
_CLEAR_STATUS = frozenset({401, 403, 404, 409, 429})


@dataclass(frozen=True)
class Call:
    """One action with its parameters: lists become comma lists, C(None) is left out.

    :param optional: parameters that only real servers know; left out once a server has answered
        400 to them
    """

    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)

    def form(self, *, with_optional: bool) -> dict[str, Any]:
        """The fields of the request, without the login."""
        given = {**self.parameters, **(self.optional if with_optional else {})}
        return {"action": self.action, **{name: _plain(value) for name, value in given.items()}}


def comma_list(values: Iterable[str]) -> str:
    """A comma list; a backslash escapes commas and backslashes (server fact: users of a group)."""
    return ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in values)


def _plain(value: Any) -> Any:
    return comma_list(map(str, value)) if isinstance(value, (list, tuple)) else value


class Client:
    """The server of a task.

    :param connections: most connections at once
    """

    def __init__(self, task: Task, *, connections: int = 1) -> None:
        self._transport = task.transport(connections=connections)
        # Kept with the session: the items of a loop need not all be refused.
        self._without_optional: set[str] = self._transport.memory.setdefault("refused", set())

    def ask(self, what: str, call: Call) -> list[Record]:
        """Send an action and give the records of its answer; actions that write answer with none.

        Whether the action may be sent in check mode is decided by :data:`READING` alone.

        :param what: operation and object for messages, as C(updating the role 'x')
        """
        if call.optional and call.action not in self._without_optional:
            try:
                return self._exchange(what, call, with_optional=True)
            except ToolchainError as error:
                if error.status != 400:
                    raise
            records = self._exchange(what, call, with_optional=False)
            self._without_optional.add(call.action)
            return records
        return self._exchange(what, call, with_optional=False)

    def _exchange(self, what: str, call: Call, *, with_optional: bool) -> list[Record]:
        found: list[Record] = []
        self._transport.send(
            what,
            "POST",
            _PATH,
            reads=call.action in READING,
            expect=(200, 204),
            # The error object may come with any status.
            judge=lambda answer: found.extend(self._records(answer)),
            form=call.form(with_optional=with_optional),
        )
        return found

    def _records(self, answer: Answer) -> list[Record]:
        try:
            found = list(answers.records(answer.body.split(b"\n")))
        except Unreadable as error:
            if answer.status != 200:
                raise self._failure(answer) from None
            raise _unreadable(answer, str(error)) from None
        for record in found:
            refusal = answers.refusal_of(record)
            if refusal is not None:
                raise refused(answer, refusal)
        if answer.status not in (200, 204):
            raise self._failure(answer)
        return found

    def _failure(self, answer: Answer) -> ToolchainError:
        """The error of a status without the error object: of a proxy, or of another server."""
        error = self._transport.failure(answer)
        if answer.status in (404, 405):
            error.message += f" ({error.url}): no code analysis server answers there, check url"
        return error


def _unreadable(answer: Answer, reason: str) -> ToolchainError:
    if errors.looks_like_html(answer.text):
        error = unreadable(answer, "JSON")
        error.message += f" ({error.url})"
        return error
    return answer.error("protocol", f"the answer of the server cannot be understood: {reason}")


def refused(answer: Answer, refusal: Refusal) -> ToolchainError:
    """The error that an error object stands for."""
    kind = kind_of(refusal)
    words = errors.shorten(refusal.message)
    said = f": {words}" if words else " without a word"
    hint = ": check username and ltoken" if kind == "auth" else ""
    error = answer.error(kind, f"the server answered {refusal.status}{said}{hint}", words)
    error.status = refusal.status
    return error


def kind_of(refusal: Refusal) -> Kind:
    """What an error object means: a status that says little leaves that to the words."""
    if refusal.status not in _CLEAR_STATUS:
        for kind, pattern in _WORDS:
            if pattern.search(refusal.message) and (refusal.status < 500 or kind == "conflict"):
                return kind
    return errors.kind_of_status(refusal.status) if refusal.status >= 400 else "rejected"
