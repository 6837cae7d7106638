# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an answer of a script console without the line that tells how the script ended.

A server that runs the program around a script writes that line; one that only stands in for a CI
server answers as its script console does: what was printed, the value, or a stack trace.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ...core import errors, json_text
from .script_wrapper import ScriptEnd

# Server fact [ci-16]: C(scriptText) prints the value, where there is one, as its last line.
_RESULT = re.compile(r"^Result: (.*?)\r?\n?\Z", re.MULTILINE)
_EXCEPTION = re.compile(
    r"^(?:(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?=:|\s*$)|Assertion failed:)", re.MULTILINE
)
_FRAME = re.compile(r"^[ \t]+at [\w.$/<>]+\(.*\)[ \t\r]*$", re.MULTILINE)


def read(text: str, marker: str) -> ScriptEnd | None:
    """Read an answer that does not tell the end of the script; C(None) if it proves nothing.

    An empty answer is what a server gives that got no script, a web page comes from something in
    between, and a marker that is there all the same belongs to an answer that was cut or altered.
    """
    if not text.strip() or marker in text or errors.looks_like_html(text):
        return None
    at = _exception_at(text)
    if at is not None:
        trace = text[at:].rstrip()
        said = trace.partition("\n\tat ")[0].strip()
        return ScriptEnd(_without_break(text[:at]), None, said, trace)
    found = _RESULT.search(text)
    if found is None:
        return ScriptEnd(_without_break(text))
    return ScriptEnd(_without_break(text[: found.start()]), decoded(found[1]))


def decoded(text: str) -> Any:
    """A text that is JSON as what it stands for."""
    try:
        return json_text.loads(text, parse_constant=_not_json)
    except ValueError:
        return text


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _exception_at(text: str) -> int | None:
    """Where a stack trace begins: at the name of an exception, or at the line above its frames."""
    named = _EXCEPTION.search(text)
    if named is not None:
        return named.start()
    frame = _FRAME.search(text)
    if frame is None:
        return None
    return text.rstrip().rfind("\n", 0, len(text[: frame.start()].rstrip())) + 1


def _without_break(text: str) -> str:
    return re.sub(r"\r?\n\Z", "", text)
