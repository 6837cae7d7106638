# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP client of the code analysis server, which has one URL for 43 actions [W4.5]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import errors
from ..core.errors import Kind, ToolchainError, protocol
from ..core.http.bodies import lines
from ..core.http.messages import Request, Response, unexpected_body
from ..core.http.writes import Verify
from ..core.module.task import Task
from ..core.secret import clean_url
from . import responses
from .responses import Record, Refusal, UnreadableResponse

if TYPE_CHECKING:
    from ..core.http.bodies import Incoming

Taken = TypeVar("Taken")

_PATH = "review/api"
#: Maximum length of a record in bytes.
_MAX_LINE = 16 * 1024 * 1024
#: Statuses of successful reads and writes. The interface description has none for writes.
_READ, _WRITTEN = frozenset({200, 204}), frozenset({200, 201, 202, 204})
#: Error kinds of an interrupted response.
_INTERRUPTED = frozenset({"network", "timeout"})
#: Number of first lines of a streamed response to store for error messages.
_SAMPLE_LINES = 200

# fmt: off
#: Actions that only read. They are sent in check mode too, and retried.
READING = frozenset({
    "builds", "defect_types", "fchurns", "groups", "import_status", "issue_details",
    "license_count", "metrics", "modules", "project_configuration", "projects", "report",
    "role_assignments", "roles", "search", "task_status", "taxonomies", "users", "version", "views",
})
#: Actions that change the server. They are sent once.
WRITING = frozenset({
    "create_group", "create_module", "create_role", "create_user", "create_view", "delete_build",
    "delete_group", "delete_module", "delete_project", "delete_role", "delete_user", "delete_view",
    "import_project", "import_server_configuration", "update_build", "update_defect_type",
    "update_group", "update_module", "update_project", "update_role_assignment",
    "update_role_permissions", "update_status", "update_view",
})
# fmt: on
ACTIONS = READING | WRITING

# The server has no error codes, so its messages must distinguish errors with the same status.
_MESSAGE_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("conflict", re.compile(r"already (exists?|in use|defined|used)|\bduplicate\b", re.I)),
    ("not_found", re.compile(r"(not|n't) exist|not (be )?found|\bno such\b", re.I)),
    ("auth", re.compile(r"\bl?token\b|log(ged)? ?in\b|authenticat", re.I)),
    ("permission", re.compile(r"permission|not (allowed|authori[sz]ed)|access denied", re.I)),
)
#: The Web API does not accept application tokens [analysis-3].
_LOGIN_HINT = (
    ": check username and ltoken; an application token does not work here,"
    " 'kwauth --print-auth-info' prints the ltoken for token_json"
)
#: Member that the records of a read have, by action. Other programs return other objects.
_MEMBERS = {
    **dict.fromkeys(
        (
            "builds",
            "groups",
            "modules",
            "projects",
            "role_assignments",
            "roles",
            "taxonomies",
            "users",
            "views",
        ),
        "name",
    ),
    "defect_types": "code",
    "issue_details": "id",
    "license_count": "feature",
    "metrics": "tag",
    **dict.fromkeys(("fchurns", "report"), "data"),
    "version": "majorVersion",
}
#: Key in `memory` after a response of this service, and the error without one.
_VERIFIED = "is the service"
_OTHER_SERVICE = "sends no responses of a code analysis server: check url"
_CLEAR_STATUS = frozenset({401, 403, 404, 409, 429})


@dataclass(frozen=True)
class Call:
    """An action with its parameters. Lists are sent comma-separated, `None` is omitted.

    :param optional: parameters that only real servers know; they are omitted after a 400
    :param otherwise: parameters that replace `optional` after a 400; `None` means that the call is
        pointless without `optional`, so a 400 is no error and the verification read decides
    """

    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    otherwise: Mapping[str, Any] | None = field(default_factory=dict)

    def form(self, *, with_optional: bool) -> dict[str, Any]:
        """Return the form fields of the request, except the login."""
        more = self.optional if with_optional else self.otherwise or {}
        values = {**self.parameters, **more}
        plain = {
            name: comma_list(map(str, value)) if isinstance(value, (list, tuple)) else value
            for name, value in values.items()
        }
        return {"action": self.action, **plain}


def comma_list(values: Iterable[str]) -> str:
    """Join values by commas. Commas and backslashes in values are escaped by a backslash, as the
    server documents for the users of a group [analysis-9].
    """
    return ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in values)


class AnalysisClient:
    """Sends actions to the server of a task.

    :param connections: maximum number of open connections
    """

    def __init__(self, task: Task, *, connections: int = 1) -> None:
        self._transport = task.transport(connections=connections)
        self._address = clean_url(self._transport.url(_PATH))
        self._retries = int(task.connection.settings["retries"])
        #: Functions that show progress lines and warnings to the user.
        self.progress, self.warn = task.progress, task.warn
        self.predictions, self.created = task.predictions, task.created
        #: Error messages by action, for optional parameters that the server has rejected. They are
        #: stored with the session, because the items of a loop share it.
        self.refusals: dict[str, str] = self._transport.memory.setdefault("refused", {})
        self._left_out: set[str] = self._transport.memory.setdefault("left out", set())

    def ask(self, purpose: str, call: Call, verify: Verify | None = None) -> list[Record]:
        """Send an action and return the records of the response. Writes return no records.

        In check mode only actions of `READING` are sent.

        :param purpose: operation and object for messages, for example `updating the role 'x'`
        :param verify: returns whether a write was carried out, if its response was lost
        """
        optional_only = call.otherwise is None
        if call.optional and (optional_only or call.action not in self._left_out):
            try:
                return self._exchange(purpose, call, verify, with_optional=True)
            except ToolchainError as error:
                if error.status != 400:
                    raise
                message = error.detail or ""
            if optional_only:
                self.refusals[call.action] = message
                return []
            try:
                records = self._exchange(purpose, call, verify, with_optional=False)
            except ToolchainError as error:
                if error.status == 400 and message not in ("", error.detail):
                    names = ", ".join(call.optional)
                    error.with_hint(f"with {names} the server returned: {message}")
                raise error from None
            self.refusals[call.action] = message
            self._left_out.add(call.action)
            return records
        return self._exchange(purpose, call, verify, with_optional=False)

    def require_service(self) -> None:
        """Raise `protocol` unless a code analysis server responds.

        An empty response is an empty list only if it comes from this service, because other servers
        return empty responses too.
        """
        memory = self._transport.memory
        if _VERIFIED not in memory:
            if not self.ask("reading the version", Call("version")):
                raise protocol(f"{self._address} {_OTHER_SERVICE}")
            memory[_VERIFIED] = True

    def stream(self, purpose: str, call: Call, take: Callable[[Iterator[Record]], Taken]) -> Taken:
        """Send a read, and process its records while the response arrives.

        :param take: processes the records; it is called again if the response was interrupted
        """
        if call.action not in READING:
            raise AssertionError(f"{call.action} is not a read")
        form = call.form(with_optional=True)
        for left in range(self._retries, -1, -1):
            started = False
            try:
                with self._transport.stream(
                    purpose, _PATH, method="POST", validate=self._validate, form=form
                ) as response:
                    started = True
                    return take(self._streamed(purpose, response))
            except ToolchainError as error:
                if not started or left == 0 or error.kind not in _INTERRUPTED:
                    raise
            self._transport.accounting.add(retries=1)
        raise AssertionError("the last attempt returns or raises")

    def _streamed(self, purpose: str, response: Incoming) -> Iterator[Record]:
        seen: list[bytes] = []

        def sampled() -> Iterator[bytes]:
            """Yield the lines, and store the first lines for error messages."""
            for line in lines(response.iter_content(), _MAX_LINE):
                if len(seen) < _SAMPLE_LINES:
                    seen.append(line)
                yield line

        def partial_response() -> Response:
            request = Request(purpose, "POST", self._transport.url(_PATH), reads=True)
            head = b"\n".join(seen)
            return Response(response.status_code, response.headers, head, request, response.url)

        try:
            for record in responses.records(sampled()):
                refusal = responses.refusal_of(record)
                if refusal is not None:
                    raise refused(partial_response(), refusal)
                yield record
        except UnreadableResponse as error:
            raise _unexpected_body(partial_response(), str(error)) from None

    def _validate(self, response: Response) -> None:
        """Raise the error in a response to a streamed read that has an unexpected status."""
        self._records(response)

    def _exchange(
        self, purpose: str, call: Call, verify: Verify | None, *, with_optional: bool
    ) -> list[Record]:
        found: list[Record] = []
        self._transport.send(
            purpose,
            "POST",
            _PATH,
            reads=call.action in READING,
            expect=_WRITTEN,
            # the server may send an error object with any status
            validate=lambda response: found.extend(self._records(response)),
            verify=verify,
            form=call.form(with_optional=with_optional),
        )
        member = _MEMBERS.get(call.action)
        if found and member is not None and not any(member in record for record in found):
            raise protocol(f"{purpose}: {self._address} {_OTHER_SERVICE}")
        if not found and call.action in READING and call.action != "version":
            self.require_service()
        return found

    def _records(self, response: Response) -> list[Record]:
        accepted = response.status in (_READ if response.request.reads else _WRITTEN)
        try:
            found = list(responses.records(response.body.split(b"\n")))
        except UnreadableResponse as error:
            if not accepted:
                raise self._failure(response) from None
            raise _unexpected_body(response, str(error)) from None
        for record in found:
            refusal = responses.refusal_of(record)
            if refusal is not None:
                raise refused(response, refusal)
        if not accepted:
            raise self._failure(response)
        return found

    def _failure(self, response: Response) -> ToolchainError:
        """Return the error for a response without an error object, for example from a proxy."""
        error = self._transport.failure(response)
        if response.status in (404, 405):
            error.message += f" ({error.url}): this is not a code analysis server, check url"
        return error


def _unexpected_body(response: Response, reason: str) -> ToolchainError:
    """Return the error for an unreadable response. The outcome of a write is then unknown."""
    if errors.looks_like_html(response.text):
        error = unexpected_body(response, "JSON")
        error.message += f" ({error.url})"
    else:
        message = f"the response cannot be parsed: {reason}"
        error = response.error("protocol", message)
    error.outcome_unknown = not response.request.reads
    return error


def refused(response: Response, refusal: Refusal) -> ToolchainError:
    """Return the error for an error object of the server."""
    kind = kind_of(refusal)
    error_message = errors.shorten(refusal.message)
    message = f": {error_message}" if error_message else " without an error message"
    hint = _LOGIN_HINT if kind == "auth" else ""
    named = "an error" if refusal.status is None else str(refusal.status)
    error = response.error(kind, f"the server returned {named}{message}{hint}", error_message)
    error.status = refusal.status
    return error


def kind_of(refusal: Refusal) -> Kind:
    """Return the error kind of an error object, from its status or, if that is ambiguous, from its
    message.
    """
    status = refusal.status or 0
    if status not in _CLEAR_STATUS:
        for kind, pattern in _MESSAGE_PATTERNS:
            if pattern.search(refusal.message) and (status < 500 or kind == "conflict"):
                return kind
    return errors.kind_of_status(status) if status >= 400 else "rejected"
