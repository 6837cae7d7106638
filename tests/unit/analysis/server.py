# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of a code analysis server, and what arrived there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import Secret
from tests.unit.stub import Reply, Stub, connection_to

LTOKEN = "0123456789abcdef"


def lines(*records: Mapping[str, Any]) -> Reply:
    """An answer with a record per line."""
    return Reply(body="".join(json.dumps(record) + "\n" for record in records))


def refusal(status: int, message: str, *, answered: int | None = None) -> Reply:
    """The error object, in an answer of the same status or of `answered`."""
    return Reply(answered or status, {"status": status, "message": message})


def task_for(stub: Stub, *, read_only: bool = False) -> tuple[Task, list[str]]:
    """A task, and the warnings that it gives."""
    warnings: list[str] = []
    connection = connection_to(
        stub.url, "analysis", username="analyst", ltoken=Secret(LTOKEN), settings={"retries": 0}
    )
    return Task(connection, warnings.append, read_only), warnings


def sent(stub: Stub) -> list[dict[str, str]]:
    """The forms that arrived, without the login."""
    forms = []
    for seen in stub.seen:
        assert (seen.method, seen.path) == ("POST", "/base/review/api")
        form = seen.form
        assert (form.pop("user"), form.pop("ltoken")) == ("analyst", LTOKEN)
        forms.append(form)
    return forms
