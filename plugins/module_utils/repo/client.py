# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the repository manager: transport, dialect and paths."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from ..core import address
from ..core.errors import ToolchainError, invalid, looks_like_html
from ..core.http.messages import Response, unexpected_body
from ..core.module.task import Task
from ..core.paths.globs import has_wildcards
from .dialect import JFROG, Dialect, dialect_of, generic, is_jfrog
from .error_text import describe, errors_in, messages_of

#: Keys of the session's memory, and the address that only one dialect has [repo-5].
_SPEAKS_JFROG, _VERSION = "speaks jfrog", "api/system/version"
#: Statuses of a server that does not know an address.
_UNKNOWN = (400, 404, 405, 501)
#: Characters that no repository key has.
_NO_KEY = re.compile(r"[/*?\s]")
INSIDE_ARCHIVE = (
    "which addresses a file inside an archive: an item deployed to this path could not be"
    " downloaded"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: Start of an HTML fragment. No plain response of the server starts like this.
_PART_OF_PAGE = re.compile(
    r"[\ufeff\s]*<(?:!--|(?:a|b|br|center|div|form|h\d|img|link|meta|p|script|span|style|table"
    r"|title)\b)",
    re.IGNORECASE,
)


class RepoClient:
    """Client of a repository manager with at most `connections` open connections."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        settings = task.connection.settings
        self._named, self._generic = dialect_of(settings), generic(settings["vendor"])
        self._finding = threading.Lock()
        self.connections, self.warn = connections, task.warn
        self.predictions = task.predictions
        #: Whether requests for properties or checksums are worthwhile: the written interface lists
        #: neither.
        self.reports_properties = True
        self.reports_checksums = True
        self.transport = task.transport(
            describe=describe,
            notice=self._notice,
            api_key_headers={one.api_key_header for one in self._possible()},
            connections=connections,
        )

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the server. With `auto` it is detected from earlier responses,
        otherwise by a request [C1.6].
        """
        if self._named is not None:
            return self._named
        return JFROG if self._speaks_jfrog() else self._generic

    def rehearses_promotions(self) -> bool:
        """Return whether a promotion with `dryRun` certainly promotes nothing: the dialect supports
        it, and the server identified itself as a server of that dialect, whatever the option
        `dialect` is.
        """
        if not self.dialect.rehearses_promotions:
            return False
        try:
            return self._speaks_jfrog()
        except ToolchainError:
            return False

    def builds_key(self, project: str | None) -> str:
        """Return the repository of the build records of a project, or of those outside projects.

        Server fact [repo-32]: the project `default` means none.
        """
        self.require_projects(project)
        if project in (None, "default"):
            return self.dialect.builds_key
        return f"{project}-build-info"

    def require_projects(self, project: str | None) -> None:
        """Raise `rejected` for a project on a server without projects, which would ignore it and
        use objects outside. To save a request, call this after the first response.
        """
        if project is not None and not self.dialect.has_projects:
            raise ToolchainError(
                "rejected",
                f"project: this server does not support projects, so '{project}' cannot exist"
                " (check the option dialect)",
            )

    def _speaks_jfrog(self) -> bool:
        """Return whether the server identified itself; if no response did so yet, ask once."""
        with self._finding:
            if _SPEAKS_JFROG not in self.transport.memory:
                self.transport.memory[_SPEAKS_JFROG] = self._ask()
            return bool(self.transport.memory[_SPEAKS_JFROG])

    def _possible(self) -> tuple[Dialect, ...]:
        """Return the dialects that the server may speak, before any request was sent."""
        return (JFROG, self._generic) if self._named is None else (self._named,)

    def _notice(self, headers: Mapping[str, str]) -> None:
        if is_jfrog(headers):
            self.transport.memory[_SPEAKS_JFROG] = True

    def _ask(self) -> bool:
        """Request an address that the written interface does not have. A server without its own
        headers may be behind a proxy that removes them.
        """
        try:
            response = self.transport.read(
                "detecting the dialect of the server", _VERSION, expect=(200, *_UNKNOWN)
            )
            return response.status == 200 and "version" in object_of(response, "its version")
        except ToolchainError as error:
            if _SPEAKS_JFROG in self.transport.memory:
                return True
            raise error.with_hint("the option dialect saves this request") from None

    def write(self, purpose: str, method: str, path: str, **parts: Any) -> Response:
        """Send a write; see :meth:`Transport.send`. A response with an HTML page or with errors is
        a failure whatever its status.
        """
        return self.transport.write(purpose, method, path, validate=refuse_reported, **parts)


def refuse_page(response: Response) -> None:
    """Raise `protocol` if a successful response is an HTML page or a fragment, `auth` for a login
    form.
    """
    if response.status >= 300:
        return
    text = response.text
    if _PART_OF_PAGE.match(text) or looks_like_html(text):
        raise unexpected_body(response, "JSON or text")


def refuse_reported(response: Response) -> None:
    """Raise for an HTML page, and for errors in a response of any status.

    Server fact [repo-28]: a 401 with messages is about permissions, not about the login.
    """
    refuse_page(response)
    if response.status == 401 and messages_of(response.text):
        message = describe(response)
        raise response.error("permission", f"the server returned 401: {message}", message)
    if response.status >= 300:
        return
    reported = errors_in(response.text)
    if reported:
        message = f"the server returned {response.status}, but reports: {reported}"
        raise response.error("rejected", message, reported)


def object_of(response: Response, wanted: str) -> Mapping[str, Any]:
    """Return the JSON object of a response. Raises `protocol` for anything else."""
    decoded = response.json()
    if not isinstance(decoded, Mapping):
        raise unexpected_body(response, wanted)
    return decoded


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list; empty if the value is not a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def objects_of(response: Response, member: str, wanted: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list in a response; empty if it is `null`. Raises `protocol` if it is
    missing or not a list.
    """
    decoded = object_of(response, wanted)
    if member not in decoded:
        raise unexpected_body(response, wanted)
    return listed_objects(response, decoded[member], wanted)


def listed_objects(response: Response, listed: Any, wanted: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list; empty if it is `null`. Raises `protocol` if it is
    not a list.
    """
    if not isinstance(listed, (list, type(None))):
        raise unexpected_body(response, wanted)
    return objects(listed)


def segments(path: str) -> list[str]:
    """Split a path in a repository, without its leading and trailing slashes.

    Raises `invalid` for `..`, `.` and empty segments, which servers resolve differently.
    """
    trimmed = path.strip("/")
    found = trimmed.split("/") if trimmed else []
    if not address.LEADING_ELSEWHERE.isdisjoint(found):
        raise invalid(f"the path '{path}' has an empty, '.' or '..' segment")
    return found


def join(*parts: str) -> str:
    """Join parts of a path with single slashes; empty parts are left out."""
    return "/".join([bare for part in parts if (bare := part.strip("/"))])


def item_path(repo: str, path: str, *, slash: bool = False) -> str:
    """Return the address of an item, relative to the base address."""
    return address.path(repo, *segments(path), slash=slash)


def refuse_glob(path: str) -> None:
    """Raise `invalid` for a path with wildcards if it must name a single item."""
    if has_wildcards(path):
        raise invalid(
            f"path: '{path}' contains wildcards, but must name a single item; use artifact_cleanup"
            " to delete by pattern"
        )


def is_inside_archive(path: str) -> bool:
    """Return whether a server reads a path as an entry inside an archive."""
    return "!/" in path


def require_new_path(option: str, path: str) -> None:
    """Raise `invalid` for an unintended path of a new item: a server accepts wildcards, surrounding
    blanks and control characters.
    """
    if is_inside_archive(path):
        raise invalid(f"{option}: '{path}' contains '!/', {INSIDE_ARCHIVE}")
    for segment in segments(path):
        if segment != segment.strip() or _CONTROL.search(segment):
            reason = "leading or trailing blanks in a segment, or a control character"
        elif has_wildcards(segment):
            reason = "wildcards, but must name a new item"
        else:
            continue
        raise invalid(f"{option}: '{path}' contains {reason}")


def repository_key(name: str, value: str) -> str:
    """Return the value of an option that names a repository. Raises `invalid` if it cannot be a
    key.
    """
    if _NO_KEY.search(value) or value in ("", ".", ".."):
        raise invalid(f"{name}: '{value}' is not the key of a repository")
    return value
