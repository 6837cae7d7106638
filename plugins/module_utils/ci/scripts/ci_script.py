# SPDX-License-Identifier: GPL-3.0-or-later
"""Running scripts on the CI server [W4.4]."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from ...core import errors
from ...core.errors import ToolchainError, invalid
from ...core.files import text_of
from ...core.http.writes import NOT_KNOWN
from ...core.module.task import Task
from ...core.plan import Plan, unchanged
from ...core.secret import hidden
from . import plain_output, script_wrapper
from .script_console import Said, console_of

_MACHINERY = re.compile(
    r"\s*at (java\.base/)?(org\.codehaus\.groovy|org\.apache\.groovy|groovy\.lang|sun\.reflect"
    r"|java\.lang\.reflect|jdk\.internal)\."
)
_MOST_FRAMES = 8
_NOTHING: dict[str, Any] = {"output": "", "output_lines": [], "result": None}


class ScriptOperation:
    """C(ci_script): what only reads decides whether the script is sent: an C(unless) script, and
    the script itself where it promises to change nothing in check mode.
    """

    def __init__(self, task: Task) -> None:
        params = task.params
        src: str | None = params["src"]
        self._script = params["script"] if src is None else text_of(src, "the script")
        self._unless: str | None = params["unless"]
        self._arguments: Mapping[str, Any] = params["arguments"] or {}
        self._changed_when = _pattern(params["changed_when_output"])
        self._has_dry_run: bool = params["has_dry_run"]
        self._console, self._warn = console_of(task), task.warn

    def plan(self) -> Plan:
        if self._unless is not None:
            what = "running the unless script"
            if _says_true(self._run(what, self._unless, only_reads=True)):
                return unchanged(_NOTHING, state="")
        values: Mapping[str, Any] = _NOTHING
        if self._has_dry_run:
            what = "running the script in check mode"
            values = self._values(self._run(what, self._script, only_reads=True))
            if not values["changed"]:
                return unchanged(values, state="")
        return Plan("", self._script, "run", result=values)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        try:
            return self._values(self._run("running the script", self._script, only_reads=False))
        except ToolchainError as error:
            if not error.unanswered or not self._is_met_now():
                raise
            return {**_NOTHING, "changed": True}

    def _is_met_now(self) -> bool:
        """Whether nothing is left to do after a script whose answer does not tell: the C(unless)
        script is the only way to look.
        """
        if self._unless is None:
            return False
        try:
            what = "running the unless script again"
            return _says_true(self._run(what, self._unless, only_reads=True))
        except ToolchainError:
            return False

    def _values(self, ended: script_wrapper.Ended) -> dict[str, Any]:
        """The return values. Who says whether something changed, in this order: the user's pattern,
        the script itself, and without a word of either every run is a change.
        """
        result = _decoded(ended.result)
        changed = result.get("changed") if isinstance(result, Mapping) else None
        if self._changed_when is not None:
            changed = self._changed_when.search(ended.output) is not None
        changed = changed if isinstance(changed, bool) else True
        return {**_printed(ended), "result": result, "changed": changed}

    def _run(self, what: str, script: str, *, only_reads: bool) -> script_wrapper.Ended:
        """Send a script and wait for its end; C(failed) where it throws."""
        marker = secrets.token_hex(16)
        program = script_wrapper.wrapped(script, self._arguments, marker, only_reads=only_reads)
        said = self._console(what, program, reads=only_reads)
        ended = script_wrapper.ended(said.text, marker)
        if ended is None:
            ended = self._plain(what, said, marker, only_reads)
        if ended.exception is not None:
            raise _thrown(said, ended, ended.exception)
        return ended

    def _plain(self, what: str, said: Said, marker: str, only_reads: bool) -> script_wrapper.Ended:
        """The answer of a server that did not run the program around the script."""
        ended = plain_output.read(said.text, marker)
        if ended is None:
            raise _unfinished(said) if only_reads else _unfinished(said).with_words(NOT_KNOWN)
        if ended.exception is None:
            self._warn(
                f"{what}: the answer does not tell how the script ended; it is taken for the output"
                " of a script that came to its end"
            )
        return ended


def _pattern(given: str | None) -> re.Pattern[str] | None:
    if given is None:
        return None
    try:
        return re.compile(given, re.MULTILINE)
    except re.error as error:
        raise invalid(f"changed_when_output is not a regular expression: {error}") from None


def _printed(ended: script_wrapper.Ended) -> dict[str, Any]:
    return {"output": ended.output, "output_lines": ended.output.splitlines()}


def _says_true(ended: script_wrapper.Ended) -> bool:
    """Whether the script's value, or the last line that it printed, is C(true)."""
    lines = ended.output.rstrip().splitlines()
    value = ended.result is True or ended.result == "true"
    return value or (bool(lines) and lines[-1].strip() == "true")


def _decoded(result: Any) -> Any:
    """A text that is a JSON object or array as what it stands for."""
    looks_so = isinstance(result, str) and result.lstrip().startswith(("{", "["))
    return plain_output.decoded(result) if looks_so else result


def _unfinished(said: Said) -> ToolchainError:
    """The error for an answer that does not tell the end of the script."""
    if said.page is not None:
        said.page.result["changed"] = False  # a page is from something that runs no scripts
        return said.page
    return said.error(
        "protocol",
        "the answer does not tell how the script ended: it was cut, or the script ended the server,"
        " or url is not a CI server",
        errors.shorten(said.text),
    )


def _thrown(said: Said, ended: script_wrapper.Ended, exception: str) -> ToolchainError:
    where = "" if ended.line is None else f" (line {ended.line})"
    error = said.error(
        "failed",
        f"the script threw {errors.shorten(exception)}{where}",
        cut_trace(ended.trace, ended.line),
    )
    error.result.update(_printed(ended), result=None)
    return error


def cut_trace(trace: str, line: int | None) -> str:
    """A stack trace down to the script's own line, without the frames of the language itself."""
    lines = hidden.mask(trace).rstrip().splitlines()
    first = next((n for n, text in enumerate(lines) if text.startswith("\tat ")), len(lines))
    head, frames = lines[:first], lines[first:]
    own = f".groovy:{line})"
    last = next((n for n, frame in enumerate(frames) if own in frame), None)
    if last is None:
        return "\n".join(head)[: errors.WORDS_LIMIT]
    shown = [frame for frame in frames[: last + 1] if not _MACHINERY.match(frame)]
    below = "\n".join(shown[-_MOST_FRAMES:])[-errors.WORDS_LIMIT // 2 :]
    return "\n".join(head)[: errors.WORDS_LIMIT // 2] + "\n" + below
