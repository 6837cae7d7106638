# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a script on the script console and parse its result [ci-16]."""

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

_RUNTIME_FRAME = re.compile(
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
    """Run a script and wait for its end.

    Raises `failed` if the script throws, and `protocol` if the response does not show its end.

    :param arguments: value of `args` in the script; passed as data, never as source
    :param only_reads: value of `check_mode` in the script
    :param warn: receives a warning if the server does not run the wrapper and the output is assumed
        to be complete; `None` means that such a response is an error
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
                f"{purpose}: the response does not show how the script ended. The task assumes that"
                " the output is complete"
            )
    if end is None:
        raise (
            _no_end_error(output)
            if only_reads
            else _no_end_error(output).with_hint(OUTCOME_UNKNOWN)
        )
    if end.exception is not None:
        raise _script_error(output, end, end.exception)
    return end


def printed(end: ScriptEnd) -> dict[str, Any]:
    """Return the output of a script as return values."""
    return {"output": end.output, "output_lines": end.output.splitlines()}


def _no_end_error(output: ConsoleOutput) -> ToolchainError:
    """Return the error for a response that does not show the end of the script."""
    if output.page is not None:
        output.page.result["changed"] = False  # a proxy or login page: no script was run
        return output.page
    return output.error(
        "protocol",
        "the response does not show how the script ended. It was truncated, the script stopped the"
        " server, or url is not a CI server",
        errors.shorten(output.text),
    )


def _script_error(output: ConsoleOutput, end: ScriptEnd, exception: str) -> ToolchainError:
    position = "" if end.line is None else f" (line {end.line})"
    error = output.error(
        "failed",
        f"the script threw {errors.shorten(exception)}{position}",
        cut_trace(end.trace, end.line),
    )
    error.result.update(printed(end), result=None)
    return error


def cut_trace(trace: str, line: int | None) -> str:
    """Return a stack trace that ends with the line of the script, without frames of the Groovy
    runtime.
    """
    lines = hidden.mask(trace).rstrip().splitlines()
    first = next((n for n, text in enumerate(lines) if text.startswith("\tat ")), len(lines))
    head, frames = lines[:first], lines[first:]
    position = f".groovy:{line})"
    last = next((n for n, frame in enumerate(frames) if position in frame), None)
    if last is None:
        return "\n".join(head)[: errors.DETAIL_LIMIT]
    shown = [frame for frame in frames[: last + 1] if not _RUNTIME_FRAME.match(frame)]
    below = "\n".join(shown[-_MAX_FRAMES:])[-errors.DETAIL_LIMIT // 2 :]
    return "\n".join(head)[: errors.DETAIL_LIMIT // 2] + "\n" + below
