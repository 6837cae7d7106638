# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a response of the script console without the marker line.

A real CI server runs the wrapper, which prints that line. A server that imitates a CI server may
return only output, value or stack trace of the script.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ...core import errors, json_text
from .script_wrapper import ScriptEnd

# Server fact [ci-16]: `scriptText` prints the value of a script as the last line.
_RESULT = re.compile(r"^Result: (.*?)\r?\n?\Z", re.MULTILINE)
_EXCEPTION = re.compile(
    r"^(?:(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?=:|\s*$)|Assertion failed:)", re.MULTILINE
)
_FRAME = re.compile(r"^[ \t]+at [\w.$/<>]+\(.*\)[ \t\r]*$", re.MULTILINE)


def read(text: str, marker: str) -> ScriptEnd | None:
    """Parse a response without a valid marker line. Return `None` if the script may not have ended.

    This is so for an empty response, for a web page of a proxy or login, and for a response that
    contains the marker elsewhere, because it was truncated or altered.
    """
    if not text.strip() or marker in text or errors.looks_like_html(text):
        return None
    start = _start_of_exception(text)
    if start is not None:
        trace = text[start:].rstrip()
        message = trace.partition("\n\tat ")[0].strip()
        return ScriptEnd(_without_line_break(text[:start]), None, message, trace)
    found = _RESULT.search(text)
    if found is None:
        return ScriptEnd(_without_line_break(text))
    return ScriptEnd(_without_line_break(text[: found.start()]), decoded(found[1]))


def decoded(text: str) -> Any:
    """Parse a JSON text. Return the text unchanged if it is not JSON."""
    try:
        return json_text.loads(text, parse_constant=_reject_constant)
    except ValueError:
        return text


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _start_of_exception(text: str) -> int | None:
    """Return the offset of the exception in a text: its name, or the line before its first frame.

    Returns `None` without a stack trace.
    """
    named = _EXCEPTION.search(text)
    if named is not None:
        return named.start()
    frame = _FRAME.search(text)
    if frame is None:
        return None
    return text.rstrip().rfind("\n", 0, len(text[: frame.start()].rstrip())) + 1


def _without_line_break(text: str) -> str:
    return re.sub(r"\r?\n\Z", "", text)
