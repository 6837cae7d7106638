# SPDX-License-Identifier: GPL-3.0-or-later
"""What all operations on the repository manager share: transport, dialect and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import wire
from ..core.errors import invalid, looks_like_html
from ..core.task import Task
from ..core.wire import Answer, unreadable
from .dialect import dialect_of
from .words import describe, errors_in


class Client:
    """The way to one repository manager; C(connections) is the most that are open at once."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        self.dialect = dialect_of(task.connection.settings)
        self.connections = connections
        #: Whether asking for properties or checksums is worth a request: the written interface
        #: lists neither.
        self.tells_properties = True
        self.tells_checksums = True
        self.transport = task.transport(
            describe=describe,
            api_key_header=self.dialect.api_key_header,
            connections=connections,
        )

    def write(self, what: str, method: str, path: str, **parts: Any) -> Answer:
        """Send a write; see :meth:`Transport.send`. An answer that is a page, or that reports
        errors, is a failure whatever its status.
        """
        return self.transport.write(what, method, path, judge=_refuse, **parts)

    def query_items(
        self, what: str, criteria: Mapping[str, Any], fields: Sequence[str]
    ) -> list[Mapping[str, Any]] | None:
        """Results of an item query; C(None) where the server refuses it or trimmed the results.

        Written interface 4.1; server fact: non-administrators must ask for repo, path and name.
        """
        wanted = ["repo", "path", "name", *fields]
        text = f"items.find({json_text(criteria)}).include({', '.join(map(json_text, wanted))})"
        answer = self.transport.read(
            what,
            "api/search/aql",
            method="POST",
            body=text.encode(),
            headers={"Content-Type": "text/plain"},
            expect=(200, 400, 403, 404, 405, 408),
        )
        if answer.status != 200:
            return None
        decoded = object_of(answer, "the result of a query")
        if (decoded.get("range") or {}).get("notification"):
            return None
        return [row for row in decoded.get("results") or [] if isinstance(row, Mapping)]


def _refuse(answer: Answer) -> None:
    if answer.status >= 300:
        return
    if looks_like_html(answer.text):
        raise unreadable(answer, "JSON or text")
    reported = errors_in(answer.text)
    if reported:
        said = f"the server answered {answer.status}, but reports: {reported}"
        raise answer.error("rejected", said, reported)


def json_text(value: Any) -> str:
    """C(value) as the query language takes it: JSON."""
    return json.dumps(value, ensure_ascii=False)


def object_of(answer: Answer, wanted: str) -> Mapping[str, Any]:
    """The JSON object of an answer; C(protocol) where it is something else."""
    decoded = answer.json()
    if not isinstance(decoded, Mapping):
        raise unreadable(answer, wanted)
    return decoded


def segments(path: str) -> list[str]:
    """The segments of a path in a repository, without slashes at its ends.

    Raises C(invalid) for C(..), C(.) and empty segments: servers resolve them in their own ways.
    """
    trimmed = path.strip("/")
    found = trimmed.split("/") if trimmed else []
    if any(segment in ("", ".", "..") for segment in found):
        raise invalid(f"the path '{path}' has an empty, '.' or '..' segment")
    return found


def join(*parts: str) -> str:
    """Parts of a path with one slash between them; empty parts are left out."""
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def item_path(repo: str, path: str, *, slash: bool = False) -> str:
    """The address of an item, relative to the base address."""
    return wire.path(repo, *segments(path), slash=slash)


def repository_key(name: str, value: str) -> str:
    """The value of an option that names a repository; C(invalid) where it cannot be a key."""
    if value.strip() == "" or "/" in value or value in (".", ".."):
        raise invalid(f"{name}: '{value}' is not the key of a repository")
    return value
