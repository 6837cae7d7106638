# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a script on a script console, and find out how it ended [ci-16]."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from ...core import errors
from ...core.errors import ToolchainError
from ...core.http.writes import OUTCOME_UNKNOWN
from ...core.secret import hidden
from . import unmarked_output
from .script_console import ConsoleOutput, ScriptConsole
from .script_wrapper import ScriptEnd, ended, wrapped

_MACHINERY = re.compile(
    r"\s*at (java\.base/)?(org\.codehaus\.groovy|org\.apache\.groovy|groovy\.lang|sun\.reflect"
    r"|java\.lang\.reflect|jdk\.internal)\."
)
_MAX_FRAMES = 8


def run_script(
    console: ScriptConsole,
    purpose: str,
    script: str,
    arguments: Mapping[str, Any],
    *,
    only_reads: bool,
    warn: Callable[[str], None] | None = None,
) -> ScriptEnd:
    """Send a script and wait for its end; raise `failed` if it throws.

    :param arguments: value of `args` in the script; passed as data, never as source
    :param warn: reports that a server does not run the wrapper, so the end of the script is
        assumed; without it such a response is `protocol`
    """
    marker = secrets.token_hex(16)
    output = console(
        purpose, wrapped(script, arguments, marker, only_reads=only_reads), reads=only_reads
    )
    end = ended(output.text, marker)
    if end is None and warn is not None:
        end = unmarked_output.read(output.text, marker)
        if end is not None and end.exception is None:
            warn(
                f"{purpose}: the response does not show how the script ended; the task assumes that"
                " the output is complete"
            )
    if end is None:
        raise _unfinished(output) if only_reads else _unfinished(output).with_hint(OUTCOME_UNKNOWN)
    if end.exception is not None:
        raise _thrown(output, end, end.exception)
    return end


def printed(end: ScriptEnd) -> dict[str, Any]:
    """Return the output of a script as return values."""
    return {"output": end.output, "output_lines": end.output.splitlines()}


def _unfinished(output: ConsoleOutput) -> ToolchainError:
    """Return the error for a response that does not show the end of the script."""
    if output.page is not None:
        output.page.result["changed"] = False  # a page is from something that runs no scripts
        return output.page
    return output.error(
        "protocol",
        "the response does not show how the script ended: it was truncated, the script stopped the"
        " server, or url is not a CI server",
        errors.shorten(output.text),
    )


def _thrown(output: ConsoleOutput, end: ScriptEnd, exception: str) -> ToolchainError:
    where = "" if end.line is None else f" (line {end.line})"
    error = output.error(
        "failed",
        f"the script threw {errors.shorten(exception)}{where}",
        cut_trace(end.trace, end.line),
    )
    error.result.update(printed(end), result=None)
    return error


def cut_trace(trace: str, line: int | None) -> str:
    """Return a stack trace down to the script's own line, without the frames of the language
    itself.
    """
    lines = hidden.mask(trace).rstrip().splitlines()
    first = next((n for n, text in enumerate(lines) if text.startswith("\tat ")), len(lines))
    head, frames = lines[:first], lines[first:]
    position = f".groovy:{line})"
    last = next((n for n, frame in enumerate(frames) if position in frame), None)
    if last is None:
        return "\n".join(head)[: errors.DETAIL_LIMIT]
    shown = [frame for frame in frames[: last + 1] if not _MACHINERY.match(frame)]
    below = "\n".join(shown[-_MAX_FRAMES:])[-errors.DETAIL_LIMIT // 2 :]
    return "\n".join(head)[: errors.DETAIL_LIMIT // 2] + "\n" + below
