# SPDX-License-Identifier: GPL-3.0-or-later
"""The two ways to the script console: C(POST /scriptText) and the SSH command C(groovy =)
[W4.4].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core import errors
from ...core.errors import ToolchainError
from ...core.http.messages import unreadable
from ...core.module.task import Task
from ..client import server_of
from ..ssh_commands import CommandLine


@dataclass(frozen=True)
class Said:
    """What a console said; C(error) makes an error of it, from kind, message and detail.

    :param page: the error for a web page in place of what a script printed
    """

    text: str
    error: Callable[[errors.Kind, str, str | None], ToolchainError]
    page: ToolchainError | None = None


class Console(Protocol):
    """Hands a program to the server, which runs it to its end."""

    def __call__(self, what: str, program: str, *, reads: bool) -> Said: ...


def console_of(task: Task) -> Console:
    """The console that the options of a task ask for."""
    return _ssh(task) if task.params["transport"] == "ssh" else _http(task)


def _http(task: Task) -> Console:
    server = server_of(task)

    def say(what: str, program: str, *, reads: bool) -> Said:
        answer = server.send(
            what, "POST", "scriptText", reads=reads, expect=(200,), form={"script": program}
        )
        is_page = errors.looks_like_html(answer.text)
        page = unreadable(answer, "the script's output") if is_page else None
        return Said(answer.text, answer.error, page)

    return say


def _ssh(task: Task) -> Console:
    commands = CommandLine(task)

    def say(what: str, program: str, *, reads: bool) -> Said:
        done = commands.run(what, "groovy =", reads=reads, given=program)
        return Said(done.output, done.error)

    return say
