# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses of a code analysis server, and its received requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.unit import stub
from tests.unit.stub import Reply, Seen, connection_to

LTOKEN = "0123456789abcdef"


def lines(*records: Mapping[str, Any]) -> Reply:
    """Return a response with a record per line."""
    return Reply(body="".join(json.dumps(record) + "\n" for record in records))


VERSION = lines({"majorVersion": "24", "minorVersion": "2"})


class Stub(stub.Stub):
    """A stub that responds to the action `version`, with which the client verifies the service.

    This response takes no reply and is not in `seen`.

    :param answers: respond only with the replies
    """

    def __init__(
        self,
        *replies: Reply,
        response: Callable[[Seen], Reply] | None = None,
        answers: bool = True,
    ) -> None:
        super().__init__(*replies, response=response)
        self._answers = answers

    def reply_to(self, seen: Seen) -> Reply:
        if self._answers and b"action=version" in seen.body:
            return VERSION
        return super().reply_to(seen)


def refusal(status: int, message: str, *, answered: int | None = None) -> Reply:
    """Return the error object, in a response with the same status or with the status `answered`."""
    return Reply(answered or status, {"status": status, "message": message})


def task_for(stub: Stub, *, read_only: bool = False) -> tuple[Task, list[str]]:
    """Return a task, and the list of its warnings."""
    warnings: list[str] = []
    connection = connection_to(
        stub.url, "analysis", username="analyst", password=Secret(LTOKEN), settings={"retries": 0}
    )
    return Task(connection, warnings.append, read_only), warnings


def sent(stub: Stub) -> list[dict[str, str]]:
    """Return the received forms, without the login."""
    forms = []
    for seen in stub.seen:
        assert (seen.method, seen.path) == ("POST", "/base/review/api")
        form = seen.form
        assert (form.pop("user"), form.pop("ltoken")) == ("analyst", LTOKEN)
        forms.append(form)
    return forms
