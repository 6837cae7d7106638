# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends programs to the script console, by C(POST /scriptText) or C(groovy =) over SSH [W4.4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core import errors
from ...core.errors import ToolchainError
from ...core.http.messages import unexpected_body
from ...core.module.task import Task
from ..client import server_of
from ..ssh_commands import SshCommands, SshOptions


@dataclass(frozen=True)
class ConsoleAnswer:
    """What a console said; C(error) makes an error of it, from kind, message and detail.

    :param page: the error for a web page in place of what a script printed
    """

    text: str
    error: Callable[[errors.Kind, str, str | None], ToolchainError]
    page: ToolchainError | None = None


class ScriptConsole(Protocol):
    """Hands a program to the server, which runs it to its end."""

    def __call__(self, what: str, program: str, *, reads: bool) -> ConsoleAnswer:
        """What it printed and returned."""


def console_of(task: Task, options: SshOptions) -> ScriptConsole:
    """The script console, over HTTP or SSH."""
    return _ssh(task, options) if options.transport == "ssh" else _http(task)


def _http(task: Task) -> ScriptConsole:
    server = server_of(task)

    def say(what: str, program: str, *, reads: bool) -> ConsoleAnswer:
        response = server.send(
            what, "POST", "scriptText", reads=reads, expect=(200,), form={"script": program}
        )
        is_page = errors.looks_like_html(response.text)
        page = unexpected_body(response, "the script's output") if is_page else None
        return ConsoleAnswer(response.text, response.error, page)

    return say


def _ssh(task: Task, options: SshOptions) -> ScriptConsole:
    commands = SshCommands(task, options)

    def say(what: str, program: str, *, reads: bool) -> ConsoleAnswer:
        done = commands.run(what, "groovy =", reads=reads, given=program)
        return ConsoleAnswer(done.output, done.error)

    return say
