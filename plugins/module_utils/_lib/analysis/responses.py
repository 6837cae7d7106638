# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse responses of the code analysis server: one JSON object (record) per line.

Sources: interface description [W2.5] for builds; server facts [analysis-2] for all other actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import json_text
from ..core.errors import protocol, shorten
from ..core.http.bodies import MAX_BODY

Record = dict[str, Any]


class UnreadableResponse(ValueError):
    """Raised for a malformed response. The message describes the defect."""


#: Members of error objects with a member `error`, which no record of the server has.
_ERROR_MEMBERS = frozenset({"code", "detail", "error", "message", "path", "status", "timestamp"})
#: Maximum number of characters of an unreadable line in a message.
_MAX_SHOWN = 120


@dataclass(frozen=True)
class Refusal:
    """Error object of the server. `status` may differ from the HTTP status, or be unknown."""

    status: int | None
    message: str


def refusal_of(record: Mapping[str, Any]) -> Refusal | None:
    """Return the record as an error object, or `None` if it is none.

    An error object has an integer `status` outside 200 to 299 and no other member than `message`.
    An issue has both members too, but its `status` is a string. Frameworks and gateways add other
    members to a status from 400, or send a text or an object as `error` with no data.
    """
    status, message = record.get("status"), record.get("message")
    if not isinstance(status, int) or isinstance(status, bool):
        if not (record.get("error") and set(record) <= _ERROR_MEMBERS):
            return None
        error = record["error"]
        inner = error.get("message") if isinstance(error, dict) else error
        places = (record, error) if isinstance(error, dict) else (record,)
        codes = [str(place.get(name)) for place in places for name in ("status", "code")]
        code = next((int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)), None)
        return Refusal(code, str(message or inner or ""))
    if status in range(200, 300) or (status < 400 and not set(record) <= {"status", "message"}):
        return None
    return Refusal(status, str(message or record.get("detail") or record.get("error") or ""))


def records(lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield the records of a response while its lines arrive.

    Accepts blank lines, CRLF, a missing final newline, and a single object over several lines.
    Raises `UnreadableResponse` for other content, for example a truncated response.
    """
    source = (line.strip() for line in lines)
    first = next((line for line in source if line), None)
    if first is None:
        return
    opening = _decoded(first)
    if opening is None:  # a single object over several lines
        rest, size = [first], len(first)
        for line in filter(None, source):
            rest.append(line)
            size += len(line)
            if size > MAX_BODY:
                raise UnreadableResponse("the response is too long and is not JSON")
        opening = _decoded(b"\n".join(rest))
        if opening is None:
            raise UnreadableResponse(_defect(first, len(rest) > 1 and not first.startswith(b"{")))
    yield _object(opening)
    for line in filter(None, source):
        value = _decoded(line)
        if value is None:
            raise UnreadableResponse(_defect(line, any(source)))
        yield _object(value)


def _defect(line: bytes, more_follows: bool) -> str:
    if more_follows or not line.startswith(b"{"):
        return f"a line of the response is not JSON: {_shown(line)}"
    return f"the response is truncated: its last object is incomplete: {_shown(line)}"


def _shown(line: bytes) -> str:
    """Return the start of a line for a message."""
    return f"'{shorten(line[: 4 * _MAX_SHOWN].decode('utf-8', 'replace'), _MAX_SHOWN)}'"


def _decoded(text: bytes) -> Any:
    """Return the JSON value of `text`, or `None` if it is malformed or `null`."""
    try:
        return json_text.loads(text.decode("utf-8-sig"))
    except ValueError:
        return None


def _object(value: Any) -> Record:
    if not isinstance(value, dict):
        text = _shown(str(value).encode())
        raise UnreadableResponse(f"a line of the response is not a JSON object: {text}")
    return value


def one(purpose: str, found: list[Record]) -> Record:
    """Return the only record of a response. Raises `protocol` for any other number of records."""
    if len(found) != 1:
        raise protocol(f"{purpose}: the response has {len(found)} records instead of one")
    return found[0]


def warnings(record: Record) -> list[str]:
    """Return the warnings of a summary or report, which may be a list or a single string."""
    listed = record.get("warnings") or []
    return [str(warning) for warning in (listed if isinstance(listed, list) else [listed])]


def entries(record: Record, member: str) -> list[Record]:
    """Return a list of objects in a record, or an empty list if the server omits it.

    Raises `protocol` for other content.
    """
    found = record.get(member) or []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise protocol(f"{member} in the response is not a list of objects")
    return found


def named(found: Iterable[Record], member: str = "name") -> Iterator[Record]:
    """Yield the records that have a name, with numeric names as strings.

    Records without a name are skipped, because no request can refer to them.
    """
    for record in found:
        name = record.get(member)
        if isinstance(name, int) and not isinstance(name, bool):
            yield {**record, member: str(name)}
        elif isinstance(name, str) and name != "":
            yield record


def texts(record: Record, member: str) -> list[str]:
    """Return a list of strings in a record, which the server may send as comma-separated string.

    Raises `protocol` for other content.
    """
    found = record.get(member) or []
    if isinstance(found, str):
        parts = re.findall(r"(?:[^\\,]|\\.)+", found)
        return [re.sub(r"\\(.)", r"\1", part).strip() for part in parts]
    if not isinstance(found, list) or not all(isinstance(entry, str) for entry in found):
        raise protocol(f"{member} in the response is not a list of strings")
    return found


def flag(value: Any) -> bool:
    """Convert a boolean, number or string to a boolean. Servers send all three."""
    return str(value).lower() in ("true", "1")
