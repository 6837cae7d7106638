# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the Release Lifecycle API for a version of a release bundle [repo-33]."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ...core import address
from ...core.errors import ToolchainError, conflict, invalid, not_found, protocol, shorten
from ...core.http.messages import Response, expected, unexpected_body
from ...core.http.writes import Verify
from ...core.json_text import json_objects
from ...core.module.task import Task
from ...core.module.typed_options import Option, Seconds
from ...core.plan import without_none
from ...core.progress import PollInterval
from ..client import LIFECYCLE, PlatformClient, listed_objects, object_of, repository_key

_API = "api/v2"
COMPLETED = "COMPLETED"
_RUNNING = frozenset(
    {"PENDING", "STARTED", "PROCESSING", "QUEUED", "IN_QUEUE", "IN_PROGRESS", "RUNNING"}
)
_FAILED = frozenset({"FAILED", "REJECTED", "ABORTED", "NOT_DISTRIBUTED"})
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LONGEST = {"name": 128, "version": 32}
_PAGE = 100
#: Limit for a server that ignores `offset`.
_MAX_PAGES = 1000


#: Option with the name of the key pair that signs the bundle.
SigningKey = Annotated["str | None", Option(secret=False)]


@dataclass(frozen=True, kw_only=True)
class BundleOptions:
    """The options that identify a version of a release bundle."""

    name: str
    version: str
    project: str | None = None
    repository_key: Annotated[str | None, Option(secret=False)] = None

    def check(self) -> None:
        check_names(self)


@dataclass(frozen=True, kw_only=True)
class BundleWaitOptions(BundleOptions):
    """Common options of modules that wait for the server; times are in seconds."""

    wait: bool = True
    wait_timeout: Seconds = 600
    poll_interval: Seconds = 5

    def polling(self) -> PollInterval:
        return PollInterval(self.wait_timeout, self.poll_interval)


@dataclass(frozen=True)
class Progress:
    """Status of a bundle, a promotion or a distribution, and the server's messages about it.

    :param status: in upper case with underscores, such as `IN_PROGRESS`
    """

    status: str
    messages: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        return self.status in _RUNNING

    @property
    def failed(self) -> bool:
        return self.status in _FAILED

    @property
    def reported(self) -> str:
        return f"{self.status}{': ' if self.messages else ''}{shorten('; '.join(self.messages))}"


def progress_of(response: Response, row: Mapping[str, Any] | None = None) -> Progress:
    """Return the status in a response. Raises `protocol` if it has none.

    :param row: object of the response that has the status; `None` means the whole response
    """
    row = object_of(response, "a status") if row is None else row
    status = row.get("status")
    if not isinstance(status, str) or not status.strip():
        raise unexpected_body(response, "a status")
    messages = row.get("messages")
    texts = [
        str(entry.get("text") or entry.get("message") or "")
        if isinstance(entry, Mapping)
        else str(entry)
        for entry in (messages if isinstance(messages, list) else ())
    ]
    upper = re.sub(r"[\s-]+", "_", status.strip()).upper()
    return Progress(upper, tuple(filter(None, texts)))


def check_names(options: Any) -> None:
    """Raise `invalid` for names, versions and keys that the server does not accept."""
    for option, longest in _LONGEST.items():
        value = getattr(options, option)
        if value is not None and (_NAME.fullmatch(value) is None or len(value) > longest):
            raise invalid(
                f"{option} is '{value}', but must have at most {longest} letters, digits, '_', '.'"
                " and '-', and not begin with '.' or '-'"
            )
    for option in ("project", "repository_key"):
        value = getattr(options, option)
        if value is not None:
            repository_key(option, value)


class Bundle:
    """A version of a release bundle on the server."""

    def __init__(
        self, task: Task, options: BundleOptions, client: PlatformClient | None = None
    ) -> None:
        self.name, self.version, self.project = options.name, options.version, options.project
        self.client = client or PlatformClient(task, LIFECYCLE)
        self.label = f"the release bundle '{self.name}' {self.version}"
        self.task = task
        self.query = without_none(
            {"project": options.project, "repository_key": options.repository_key}
        )
        is_default = options.project in (None, "default")
        default = "release-bundles-v2" if is_default else f"{options.project}-release-bundles-v2"
        self.repository = options.repository_key or default

    def path(self, kind: str, *more: str) -> str:
        return f"{_API}/{kind}/{address.path(self.name, self.version, *more)}"

    def read(self, purpose: str, path: str, *, expect: Collection[int] = (200,)) -> Response:
        return self.client.read(f"{purpose} of {self.label}", path, query=self.query, expect=expect)

    def write(
        self,
        purpose: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        signing_key: str | None = None,
        verify: Verify | None = None,
        **parts: Any,
    ) -> Response:
        """Start an operation on the server, which responds before the operation has finished."""
        headers = {} if signing_key is None else {"X-JFrog-Signing-Key-Name": signing_key}
        query = {**self.query, "async": True, **(query or {})}
        return self.client.write(
            purpose, method, path, query=query, headers=headers, verify=verify, **parts
        )

    def state(self) -> Progress | None:
        """Check whether the version exists; return its status, or `None` if it does not exist."""
        response = self.read(
            "searching for a record", self.path("release_bundle/existence"), expect=(200, 404)
        )
        if response.status == 404:
            return None
        exists = expected(response, bool, "whether a bundle exists", "exists")
        return self.status() if exists else None

    def status(self) -> Progress | None:
        """Read the status of the version; return `None` after a 404."""
        path = self.path("release_bundle/statuses")
        response = self.read("reading the status", path, expect=(200, 404))
        return None if response.status == 404 else progress_of(response)

    @property
    def prediction_key(self) -> tuple[str, ...]:
        return "release bundle", self.repository, self.name, self.version

    @property
    def is_predicted(self) -> bool:
        """Return whether an earlier task would create the version in check mode."""
        return self.task.predictions.get(*self.prediction_key) is not None

    def record(self) -> Mapping[str, Any]:
        """Read the record of the version, which lists its artifacts."""
        response = self.read("reading the record", self.path("release_bundle/records"))
        found = object_of(response, "a release bundle")
        if not isinstance(found.get("artifacts"), (list, type(None))):
            raise unexpected_body(response, "a release bundle")
        return found

    def require_completed(self) -> None:
        """Raise an error unless the version is completed or still being created.

        The kind is `not_found` if it does not exist, `failed` if its creation failed, and
        `conflict` for any other status.
        """
        found = Progress(COMPLETED) if self.is_predicted else self.state()
        if found is None:
            raise not_found(f"there is no {self.label.removeprefix('the ')}")
        if found.failed:
            raise ToolchainError("failed", f"{self.label} is incomplete: {found.reported}")
        if not found.running and found.status != COMPLETED:
            raise conflict(f"{self.label} has the status {found.reported}")

    def shown(self, status: str | None, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the return value `bundle`; some of its values come from the record, if given."""
        known = record or {}
        return {
            "name": self.name,
            "version": self.version,
            "project": self.project,
            "repository_key": known.get("repository_key") or self.repository,
            "status": status,
            "created": known.get("created"),
            "created_by": known.get("created_by"),
            "artifacts": None if record is None else len(json_objects(record.get("artifacts"))),
        }

    def follow(
        self, doing: str, read: Callable[[], Progress | None], polling: PollInterval
    ) -> Progress | None:
        """Poll the status of an operation until it has ended; return the last status.

        :param doing: operation for messages, such as `promoting the release bundle 'x' 1`
        :param read: returns the current status; `None` if the object no longer exists
        :raises ToolchainError: `failed` with the server's messages, `timeout` after `wait_timeout`
        """
        seen = ""
        while True:
            found = read()
            if found is None or not found.running:
                break
            if found.status != seen:
                seen = found.status
                self.task.progress(f"{doing}: {seen}")
            polling.pause(f"{doing}: the server still reports {seen}")
        if found is not None and found.failed:
            raise ToolchainError("failed", f"{doing}: the server reports {found.reported}")
        return found


def pages(
    client: PlatformClient, purpose: str, path: str, member: str, query: Mapping[str, Any]
) -> list[tuple[Response, Mapping[str, Any]]]:
    """Read all pages of a list; return its objects, each with its response.

    :param member: key of the list in a response
    :raises ToolchainError: `not_found` after a 404, `protocol` if the list never ends or is
        incomplete
    """
    found: list[tuple[Response, Mapping[str, Any]]] = []
    start = 0
    for _page in range(_MAX_PAGES):
        span = {"offset": start, "limit": _PAGE}
        response = client.read(purpose, path, query={**query, **span})
        body = object_of(response, f"a list of {member}")
        some = listed_objects(response, body.get(member), f"a list of {member}")
        count = body["total"] if isinstance(body.get("total"), int) else None
        start += len(some)
        known = [row for _response, row in found]
        new = [(response, row) for row in some if row not in known]
        found += new
        # a server that ignores `offset` sends a page again, which ends the list if it is not full
        if len(found) >= count if count is not None else not new and len(some) < _PAGE:
            return found
        if not new:
            announced = "further" if count is None else count
            raise protocol(
                f"{purpose}: the server announced {announced} entries, but returned {len(found)}"
            )
    raise protocol(f"{purpose}: the list has more than {_MAX_PAGES} pages")
