# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of the code analysis server: JSON objects, one per line.

Sources: written interface [W2.5], for builds; server facts [analysis-2] for all else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import json_text
from ..core.errors import ToolchainError
from ..core.http.bodies import MOST_BYTES

Record = dict[str, Any]


class UnreadableAnswer(ValueError):
    """An answer that is not what the server promises; the text says how it is broken."""


@dataclass(frozen=True)
class Refusal:
    """The error object of the server; its C(status) may differ from that of the answer."""

    status: int
    message: str


def refusal_of(record: Mapping[str, Any]) -> Refusal | None:
    """The error that a record is: an integer C(status) and no other member than C(message).

    Records of a search have both too, but a C(status) that is a text, and many more members. The
    status is that of HTTP: one that says that all is well is no error.
    """
    status = record.get("status")
    if (
        not isinstance(status, int)
        or isinstance(status, bool)
        or status in range(200, 300)
        or not set(record) <= {"status", "message"}
    ):
        return None
    return Refusal(status, str(record.get("message") or ""))


def records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The objects of an answer, each as soon as its line is there.

    Blank lines, CRLF and a missing last newline are fine; so is one object over several lines.
    Raises :class:`UnreadableAnswer` for everything else, a cut answer above all.
    """
    source = (line.strip() for line in lines)
    first = next((line for line in source if line), None)
    if first is None:
        return
    opening = _decoded(first)
    if opening is None:
        yield _spread_object(first, source)
        return
    yield _object(opening)
    for line in filter(None, source):
        value = _decoded(line)
        if value is None:
            raise UnreadableAnswer(_where(line, any(source)))
        yield _object(value)


def _spread_object(first: bytes, rest: Iterable[bytes]) -> Record:
    lines, size = [first], len(first)
    for line in filter(None, rest):
        lines.append(line)
        size += len(line)
        if size > MOST_BYTES:
            raise UnreadableAnswer("the answer is no JSON, and longer than can be read")
    value = _decoded(b"\n".join(lines))
    if value is None:
        raise UnreadableAnswer(_where(first, len(lines) > 1 and not first.startswith(b"{")))
    return _object(value)


def _where(line: bytes, more_follows: bool) -> str:
    if more_follows or not line.startswith(b"{"):
        return "a line of the answer is not JSON"
    return "the answer was cut: its last object is not complete"


def _decoded(text: bytes) -> Any:
    """The JSON value of C(text), C(None) where it is none (a bare C(null) is no record either)."""
    try:
        return json_text.loads(text.decode("utf-8-sig"))
    except ValueError:
        return None


def _object(value: Any) -> Record:
    if not isinstance(value, dict):
        raise UnreadableAnswer("a line of the answer is not a JSON object")
    return value


def one(what: str, found: list[Record]) -> Record:
    """The only record of an answer that has one; C(protocol) for none and for several."""
    if len(found) != 1:
        raise ToolchainError(
            "protocol", f"{what}: the server returned with {len(found)} records instead of one"
        )
    return found[0]


def warnings(record: Record) -> list[str]:
    """What the server warns of in a summary or a report: a list, or one text."""
    said = record.get("warnings") or []
    return [str(each) for each in (said if isinstance(said, list) else [said])]


def entries(record: Record, member: str) -> list[Record]:
    """The objects in a list of a record; none where the server leaves the list out."""
    found = record.get(member) or []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ToolchainError(
            "protocol", f"the record of the server has no list of objects as {member}"
        )
    return found


def named(found: Iterable[Record], member: str = "name") -> Iterator[Record]:
    """The records of objects, whose names are texts; a number is taken for one, and what has
    neither is left out: nothing could be asked of it.
    """
    for record in found:
        name = record.get(member)
        if isinstance(name, int) and not isinstance(name, bool):
            yield {**record, member: str(name)}
        elif isinstance(name, str) and name != "":
            yield record


def texts(record: Record, member: str) -> list[str]:
    """The texts in a list of a record; it may be a comma list, as the parameter of that name is."""
    found = record.get(member) or []
    if isinstance(found, str):
        parts = re.findall(r"(?:[^\\,]|\\.)+", found)
        return [re.sub(r"\\(.)", r"\1", part).strip() for part in parts]
    if not isinstance(found, list) or not all(isinstance(entry, str) for entry in found):
        raise ToolchainError(
            "protocol", f"the record of the server has no list of texts as {member}"
        )
    return found


def flag(value: Any) -> bool:
    """Whether a member says yes: servers write such members as booleans, numbers or texts."""
    return str(value).lower() in ("true", "1")
