# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters and responses of the code analysis server [analysis-2]."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from sandbox.context import Context

Record = dict[str, Any]


class Refused(Exception):
    """Error object of the server: `status` and `message`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Call:
    """An action with its parameters. A parameter that the request lacks is `None`."""

    context: Context
    form: Mapping[str, str]
    real: bool

    @property
    def settings(self) -> dict[str, Any]:
        return self.context.settings("analysis")

    def text(self, name: str) -> str | None:
        return self.form.get(name)

    def required(self, name: str) -> str:
        value = self.form.get(name)
        if value is None or value == "":
            raise Refused(400, f"Missing required parameter: {name}")
        return value

    def boolean(self, name: str) -> bool | None:
        """Parse a boolean. Only lower-case `true` and `false` are valid."""
        value = self.form.get(name)
        if value is None:
            return None
        if value not in ("true", "false"):
            raise Refused(400, f"Invalid value for boolean parameter {name}: {value}")
        return value == "true"

    def listed(self, name: str) -> list[str] | None:
        r"""Parse a comma-separated list. Server fact [analysis-9]: `\,` and `\\` are escapes.

        The interface description [W4.5] has no escapes. The setting `list_escapes` overrides the
        default of the flavour.
        """
        value = self.form.get(name)
        if value is None:
            return None
        escapes = self.settings["list_escapes"]
        if self.real if escapes is None else escapes:
            return split_list(value)
        return [part for part in value.split(",") if part != ""]

    def limit(self) -> int:
        """Return the parameter `limit`. Server fact [analysis-9]: its default is 1000."""
        value = self.form.get("limit")
        if value is None:
            return 1000
        if not value.isdigit():
            raise Refused(400, f"Invalid value for integer parameter limit: {value}")
        return int(value)

    def absent(self, what: str) -> Refused:
        """Return the error for an object that does not exist, with a status from the settings.

        The status is not documented.
        """
        return Refused(int(self.settings["absent_status"]), f"{what} does not exist")


def split_list(value: str) -> list[str]:
    """Split a string at commas. A backslash escapes the next character."""
    parts, current, escaped = [], "", False
    for char in value:
        if escaped:
            current, escaped = current + char, False
        elif char == "\\":
            escaped = True
        elif char == ",":
            parts.append(current)
            current = ""
        else:
            current += char
    return [part for part in [*parts, current] if part != ""]


def contains_or_exact(names: Iterable[str], search: str | None) -> list[str]:
    """Return the names that contain the string or, after a leading `+`, equal it."""
    if not search:
        return list(names)
    if search.startswith("+"):
        return [name for name in names if name == search[1:]]
    return [name for name in names if search.lower() in name.lower()]


def by_pattern(names: Iterable[str], search: str | None) -> list[str]:
    """Return the names that match a pattern, in which `*` matches any characters."""
    pattern = (search or "*").replace("[", "[[]").replace("?", "[?]")
    return [name for name in names if fnmatch.fnmatchcase(name.lower(), pattern.lower())]


def _text(record: Record, indent: int | None) -> str:
    """Encode a record as JSON. Server fact [analysis-2]: `=` and HTML characters are escaped."""
    text = json.dumps(record, ensure_ascii=False, indent=indent)
    for char in "=<>&'":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def records(
    found: Sequence[Record] | None, settings: dict[str, Any], *, pretty: bool = False
) -> Response:
    """Return a response with one JSON object per line, or an empty body for `None`.

    Server facts [analysis-2, analysis-14]: servers differ in line ends, blank lines and the final
    newline. A report is a single object over several lines.

    :param pretty: whether to indent the object
    """
    end = str(settings["line_end"])
    between = end + end if settings["blank_lines"] else end
    text = between.join(_text(record, 2 if pretty else None) for record in found or [])
    if text and settings["trailing_newline"]:
        text += end
    return Response(text, 200, None, str(settings["content_type"]))


def error(refused: Refused, settings: dict[str, Any]) -> Response:
    """Return the response with an error object. Server fact [analysis-2]: some servers send it with
    status 200.
    """
    status = 200 if settings["error_status_200"] else refused.status
    text = json.dumps({"status": refused.status, "message": refused.message}) + "\n"
    return Response(text, status, None, str(settings["content_type"]))
