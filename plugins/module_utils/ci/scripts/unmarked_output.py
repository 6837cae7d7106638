# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a response of a script console that lacks the line about the end of the script.

A server that runs the wrapper writes that line. A server that only imitates a CI server returns the
output, the value, or a stack trace, as its script console does.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ...core import errors, json_text
from .script_wrapper import ScriptEnd

# Server fact [ci-16]: `scriptText` prints the value, if there is one, as its last line.
_RESULT = re.compile(r"^Result: (.*?)\r?\n?\Z", re.MULTILINE)
_EXCEPTION = re.compile(
    r"^(?:(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?=:|\s*$)|Assertion failed:)", re.MULTILINE
)
_FRAME = re.compile(r"^[ \t]+at [\w.$/<>]+\(.*\)[ \t\r]*$", re.MULTILINE)


def read(text: str, marker: str) -> ScriptEnd | None:
    """Parse a response that does not show the end of the script; return `None` if it proves
    nothing.

    A response is empty if the server got no script. A web page comes from a proxy or a login. If
    the response contains a marker anyway, it was truncated or altered.
    """
    if not text.strip() or marker in text or errors.looks_like_html(text):
        return None
    at = _exception_at(text)
    if at is not None:
        trace = text[at:].rstrip()
        message = trace.partition("\n\tat ")[0].strip()
        return ScriptEnd(_without_break(text[:at]), None, message, trace)
    found = _RESULT.search(text)
    if found is None:
        return ScriptEnd(_without_break(text))
    return ScriptEnd(_without_break(text[: found.start()]), decoded(found[1]))


def decoded(text: str) -> Any:
    """Return the parsed value of a JSON string, else the string."""
    try:
        return json_text.loads(text, parse_constant=_not_json)
    except ValueError:
        return text


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _exception_at(text: str) -> int | None:
    """Return the start of a stack trace: the name of an exception, or the line above its frames."""
    named = _EXCEPTION.search(text)
    if named is not None:
        return named.start()
    frame = _FRAME.search(text)
    if frame is None:
        return None
    return text.rstrip().rfind("\n", 0, len(text[: frame.start()].rstrip())) + 1


def _without_break(text: str) -> str:
    return re.sub(r"\r?\n\Z", "", text)
