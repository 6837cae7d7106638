# SPDX-License-Identifier: GPL-3.0-or-later
"""Run programs on the script console with `POST /scriptText` or `groovy =` over SSH [W4.4]."""

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
    """Response of the script console.

    :param error: creates an error for the response from kind, message and detail
    :param page: error if the response is a web page instead of the script's output
    """

    text: str
    error: Callable[[errors.Kind, str, str | None], ToolchainError]
    page: ToolchainError | None = None


class ScriptConsole(Protocol):
    """Function that runs a program on the server and waits for its end."""

    def __call__(self, purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        """Run a program and return its output.

        :param reads: whether the program only reads; other programs are not sent in check mode
        """


def console_of(task: Task, options: SshOptions) -> ScriptConsole:
    """Return the script console for the transport that the options select."""
    return (
        _ssh_console(task, options) if options.transport == "ssh" else http_console(server_of(task))
    )


def http_console(server: Transport) -> ScriptConsole:
    """Return the script console over HTTP."""

    def run(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        response = server.send(
            purpose, "POST", "scriptText", reads=reads, expect=(200,), form={"script": program}
        )
        is_page = errors.looks_like_html(response.text)
        page = unexpected_body(response, "the script's output") if is_page else None
        return ConsoleOutput(response.text, response.error, page)

    return run


def _ssh_console(task: Task, options: SshOptions) -> ScriptConsole:
    commands = SshCommands(task, options)

    def run(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        done = commands.run(purpose, "groovy =", reads=reads, stdin=program)
        return ConsoleOutput(done.output, done.error)

    return run
