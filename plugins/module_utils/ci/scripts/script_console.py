# SPDX-License-Identifier: GPL-3.0-or-later
"""Send programs to the script console, by `POST /scriptText` or `groovy =` over SSH [W4.4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core import errors
from ...core.errors import ToolchainError
from ...core.http.messages import unexpected_body
from ...core.http.transport import Transport
from ...core.module.task import Task
from ..client import server_of
from ..ssh_commands import SshCommands, SshOptions


@dataclass(frozen=True)
class ConsoleOutput:
    """The response of a console; `error` makes an error for the response, from kind, message and
    detail.

    :param page: the error if the response is a web page instead of the script's output
    """

    text: str
    error: Callable[[errors.Kind, str, str | None], ToolchainError]
    page: ToolchainError | None = None


class ScriptConsole(Protocol):
    """Sends a program to the server and waits for its end."""

    def __call__(self, purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        """Run a program on the server, and return its output and its value."""


def console_of(task: Task, options: SshOptions) -> ScriptConsole:
    """Return the script console, over HTTP or SSH."""
    return _ssh(task, options) if options.transport == "ssh" else http_console(server_of(task))


def http_console(server: Transport) -> ScriptConsole:
    """Return the script console over HTTP."""

    def say(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        response = server.send(
            purpose, "POST", "scriptText", reads=reads, expect=(200,), form={"script": program}
        )
        is_page = errors.looks_like_html(response.text)
        page = unexpected_body(response, "the script's output") if is_page else None
        return ConsoleOutput(response.text, response.error, page)

    return say


def _ssh(task: Task, options: SshOptions) -> ScriptConsole:
    commands = SshCommands(task, options)

    def say(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        done = commands.run(purpose, "groovy =", reads=reads, stdin=program)
        return ConsoleOutput(done.output, done.error)

    return say
