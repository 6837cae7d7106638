# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the code analysis server: one address, 43 actions [W4.5]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import errors
from ..core.errors import Kind, ToolchainError
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
#: Maximum bytes of a record.
_LONGEST_LINE = 16 * 1024 * 1024
#: Statuses of a successful read and write; the written interface names none for writes.
_READ, _WRITTEN = frozenset({200, 204}), frozenset({200, 201, 202, 204})
#: Error kinds of an interrupted response.
_BROKEN = frozenset({"network", "timeout"})
#: Lines of a streamed response that are kept for error messages.
_NOTED = 200

# fmt: off
#: Actions that only read: sent in check mode and retried.
READING = frozenset({
    "builds", "defect_types", "fchurns", "groups", "import_status", "issue_details",
    "license_count", "metrics", "modules", "project_configuration", "projects", "report",
    "role_assignments", "roles", "search", "task_status", "taxonomies", "users", "version", "views",
})
#: Actions that change the server: sent once.
WRITING = frozenset({
    "create_group", "create_module", "create_role", "create_user", "create_view", "delete_build",
    "delete_group", "delete_module", "delete_project", "delete_role", "delete_user", "delete_view",
    "import_project", "import_server_configuration", "update_build", "update_defect_type",
    "update_group", "update_module", "update_project", "update_role_assignment",
    "update_role_permissions", "update_status", "update_view",
})
# fmt: on
ACTIONS = READING | WRITING

# The server has no error codes: below the status only its messages distinguish errors.
_WORDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("conflict", re.compile(r"already (exists?|in use|defined|used)|\bduplicate\b", re.I)),
    ("not_found", re.compile(r"(not|n't) exist|not (be )?found|\bno such\b", re.I)),
    ("auth", re.compile(r"\bl?token\b|log(ged)? ?in\b|authenticat", re.I)),
    ("permission", re.compile(r"permission|not (allowed|authori[sz]ed)|access denied", re.I)),
)
#: The Web API takes no application token [analysis-3].
_LOGIN_HINT = (
    ": check username and ltoken; an application token does not work here,"
    " 'kwauth --print-auth-info' prints the ltoken for token_json"
)
_CLEAR_STATUS = frozenset({401, 403, 404, 409, 429})


@dataclass(frozen=True)
class Call:
    """One action with its parameters: lists become comma-separated, `None` is left out.

    :param optional: parameters that only real servers know; left out after a 400
    :param otherwise: parameters that replace `optional` in that case; `None` if the call then has
        no content: the rejection is not a failure, and a verification read decides
    """

    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    otherwise: Mapping[str, Any] | None = field(default_factory=dict)

    def form(self, *, with_optional: bool) -> dict[str, Any]:
        """Return the form fields of the request, without the login."""
        more = self.optional if with_optional else self.otherwise or {}
        values = {**self.parameters, **more}
        return {"action": self.action, **{name: _plain(value) for name, value in values.items()}}


def comma_list(values: Iterable[str]) -> str:
    """Join values by commas; a backslash escapes commas and backslashes ([analysis-9]: users of a
    group).
    """
    return ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in values)


def _plain(value: Any) -> Any:
    return comma_list(map(str, value)) if isinstance(value, (list, tuple)) else value


class AnalysisClient:
    """Client of the server of a task.

    :param connections: maximum number of open connections
    """

    def __init__(self, task: Task, *, connections: int = 1) -> None:
        self._transport = task.transport(connections=connections)
        self._address = clean_url(self._transport.url(_PATH))
        self._retries = int(task.connection.settings["retries"])
        #: Report progress and warnings to the user.
        self.progress, self.warn = task.progress, task.warn
        self.predictions = task.predictions
        #: Error message by action, for rejected parameters of real servers. Kept with the session,
        #: so that not every item of a loop is rejected again.
        self.refusals: dict[str, str] = self._transport.memory.setdefault("refused", {})
        self._left_out: set[str] = self._transport.memory.setdefault("left out", set())

    def ask(self, purpose: str, call: Call, verify: Verify | None = None) -> list[Record]:
        """Send an action and return the records of its response; writes return none.

        :data:`READING` alone decides whether the action may be sent in check mode.

        :param purpose: operation and object for messages, as `updating the role 'x'`
        :param verify: whether a write was carried out
        """
        needed = call.otherwise is None
        if call.optional and (needed or call.action not in self._left_out):
            try:
                return self._exchange(purpose, call, verify, with_optional=True)
            except ToolchainError as error:
                if error.status != 400:
                    raise
                message = error.detail or ""
            if needed:
                self.refusals[call.action] = message
                return []
            try:
                records = self._exchange(purpose, call, verify, with_optional=False)
            except ToolchainError as error:
                raise _also(error, call, message) from None
            self.refusals[call.action] = message
            self._left_out.add(call.action)
            return records
        return self._exchange(purpose, call, verify, with_optional=False)

    def require_service(self) -> None:
        """Raise `not_found` if no code analysis server responds. Call this before an empty response
        counts as "absent": other servers return empty responses too.
        """
        if not self.ask("reading the version", Call("version")):
            raise ToolchainError(
                "not_found", f"there is no code analysis server at {self._address}: check url"
            )

    def stream(self, purpose: str, call: Call, take: Callable[[Iterator[Record]], Taken]) -> Taken:
        """Send a read and process its records as their lines arrive.

        :param take: receives the records; called again if the response was interrupted
        """
        if call.action not in READING:
            raise AssertionError(f"{call.action} is not a read")
        form = call.form(with_optional=True)
        for left in range(self._retries, -1, -1):
            begun = False
            try:
                with self._transport.stream(
                    purpose, _PATH, method="POST", validate=self._validate, form=form
                ) as response:
                    begun = True
                    return take(self._streamed(purpose, response))
            except ToolchainError as error:
                if not begun or left == 0 or error.kind not in _BROKEN:
                    raise
            self._transport.accounting.add(retries=1)
        raise AssertionError("the last attempt returns or raises")

    def _streamed(self, purpose: str, response: Incoming) -> Iterator[Record]:
        seen: list[bytes] = []

        def partial_response() -> Response:
            request = Request(purpose, "POST", self._transport.url(_PATH), reads=True)
            head = b"\n".join(seen)
            return Response(response.status_code, response.headers, head, request, response.url)

        try:
            for record in responses.records(
                _noted(lines(response.iter_content(), _LONGEST_LINE), seen)
            ):
                refusal = responses.refusal_of(record)
                if refusal is not None:
                    raise refused(partial_response(), refusal)
                yield record
        except UnreadableResponse as error:
            raise _unexpected_body(partial_response(), str(error)) from None

    def _validate(self, response: Response) -> None:
        """Raise for a response to a streamed read with another status."""
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
            # The error object may have any status.
            validate=lambda response: found.extend(self._records(response)),
            verify=verify,
            form=call.form(with_optional=with_optional),
        )
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
        """Return the error for a status without an error object: from a proxy, or
        another server.
        """
        error = self._transport.failure(response)
        if response.status in (404, 405):
            error.message += (
                f" ({error.url}): there is no code analysis server at this address, check url"
            )
        return error


def _also(error: ToolchainError, call: Call, words: str) -> ToolchainError:
    """Return the error of a call without its optional parameters, combined with the different error
    of the call with them.
    """
    if error.status != 400 or words in ("", error.detail):
        return error
    return error.with_hint(f"with {', '.join(call.optional)} the server returned: {words}")


def _noted(lines: Iterable[bytes], seen: list[bytes]) -> Iterator[bytes]:
    """Yield the lines and keep the first ones for error messages."""
    for line in lines:
        if len(seen) < _NOTED:
            seen.append(line)
        yield line


def _unexpected_body(response: Response, reason: str) -> ToolchainError:
    """Return the error for an unreadable response, which leaves the outcome of a write unknown."""
    if errors.looks_like_html(response.text):
        error = unexpected_body(response, "JSON")
        error.message += f" ({error.url})"
    else:
        message = f"the response cannot be parsed: {reason}"
        error = response.error("protocol", message)
    error.outcome_unknown = not response.request.reads
    return error


def refused(response: Response, refusal: Refusal) -> ToolchainError:
    """Return the error for an error object."""
    kind = kind_of(refusal)
    error_message = errors.shorten(refusal.message)
    message = f": {error_message}" if error_message else " without an error message"
    hint = _LOGIN_HINT if kind == "auth" else ""
    error = response.error(
        kind, f"the server returned {refusal.status}{message}{hint}", error_message
    )
    error.status = refusal.status
    return error


def kind_of(refusal: Refusal) -> Kind:
    """Return the error kind of an error object: by its message if the status is too general."""
    if refusal.status not in _CLEAR_STATUS:
        for kind, pattern in _WORDS:
            if pattern.search(refusal.message) and (refusal.status < 500 or kind == "conflict"):
                return kind
    return errors.kind_of_status(refusal.status) if refusal.status >= 400 else "rejected"
