# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to the CI server, and its error pages in words (written interface, 4.4 and 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..core import errors
from ..core.task import Task
from ..core.transport import Transport
from ..core.wire import Answer

_SECRET_NAME = re.compile(r"passw|secret|token|credential|api_?key", re.IGNORECASE)
_SHORTEST_SECRET = 6
_LOGGING_ID = re.compile(r"Logging ID=([0-9A-Za-z-]+)")


def server_of(task: Task) -> Transport:
    """The server of a task; writes carry the anti-forgery token."""
    return task.transport(describe=describe, crumbs=True)


def hide_secrets(task: Task, values: Any) -> list[str]:
    """Keep values out of all output whose names say that they are secret, at any depth; gives them.
    What is shorter than a secret can be (C(true), a port) is left alone, as it would be masked in
    every other text.
    """
    found = list(_secrets_in(values))
    for secret in found:
        task.hide(secret)
    return found


def _secrets_in(values: Any, named_so: bool = False) -> Iterator[str]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _secrets_in(value, _SECRET_NAME.search(str(name)) is not None)
    elif isinstance(values, list):
        for value in values:
            yield from _secrets_in(value, named_so)
    elif named_so and isinstance(values, (str, int, float)) and not isinstance(values, bool):
        text = str(values)
        if len(text) >= _SHORTEST_SECRET:
            yield text


def object_of(answer: Answer) -> Mapping[str, Any]:
    """The JSON object of an answer; C(protocol) where it is something else."""
    shown = answer.json()
    if not isinstance(shown, Mapping):
        raise answer.error("protocol", "the server answered with JSON, but not with an object")
    return shown


def part(value: object) -> Mapping[str, Any]:
    """An object inside an answer, empty where something else is there."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list inside an answer, none where something else is there."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def describe(answer: Answer) -> str:
    """The server's words in an error answer.

    Server facts: a refused request has its words in C(X-Error), a missing permission is named in
    C(X-Required-Permission), an uncaught exception leaves a logging id in an HTML page.
    """
    headers = answer.headers
    permission = headers.get("X-Required-Permission")
    if permission is not None:
        user = headers.get("X-You-Are-Authenticated-As") or "the account"
        return f"{user} lacks the permission {permission}"
    said = headers.get("X-Error") or errors.words(answer.text)
    logged = _LOGGING_ID.search(answer.text)
    if logged is None or logged[1] in said:
        return said
    return f"{said}; the server's log has it under the id {logged[1]}"
