# SPDX-License-Identifier: GPL-3.0-or-later
"""Start an import from another server once, and poll `import_status` until it has finished.

Server facts [analysis-5]: both import actions return an empty body and continue in the background.
`import_status` returns a record per project, whose members are not documented. This module assigns
a record to a project if one of its values is the project's name, and reads only `status`,
`progress` and `message`. An import with an unknown status counts as finished when its project
exists and its record no longer changes.

Example:

    polling = ImportPolling(client, Import("importing the project 'x'", call, "x"), interval)
    polling.start()  # sends the write, unless the same import is already running
    polling.finish()  # waits, reports progress, and returns the records of the import
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...core.errors import ToolchainError, shorten
from ...core.module.typed_options import Seconds
from ...core.progress import PollInterval
from ..client import AnalysisClient, Call
from ..responses import Record, named

ImportState = Literal["running", "done", "failed", "unknown"]

#: Time for which a started import may be missing in `import_status`: the lower of these seconds and
#: this share of the timeout.
_GRACE = 15.0
_GRACE_SHARE = 0.5
#: Kind of the times at which the run has started imports, by project.
_STARTED = "import"
_STATES: dict[str, ImportState] = {
    **dict.fromkeys(("queued", "running"), "running"),
    **dict.fromkeys(("completed", "done", "finished"), "done"),
    **dict.fromkeys(("aborted", "error", "failed"), "failed"),
}
#: Members that change during an import.
_PROGRESS_MEMBERS = ("status", "progress", "message")
_UNAVAILABLE = (502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class ImportWaitOptions:
    """The options of modules that wait for an import."""

    wait: bool = True
    wait_timeout: Seconds = 3600
    poll_interval: Seconds = 5

    def interval(self) -> PollInterval:
        return PollInterval(self.wait_timeout, self.poll_interval)


@dataclass(frozen=True)
class Import:
    """An import to start.

    :param title: import for messages, for example `importing the project 'x'`
    :param call: call that starts the import
    :param project: name of the project that the import creates; `None` for an import of settings,
        to which every new record belongs
    """

    title: str
    call: Call
    project: str | None = None


def is_running(client: AnalysisClient, project: str) -> bool:
    """Return whether an import of the project is running."""
    records = client.ask(f"reading the imports of the project '{project}'", Call("import_status"))
    return any(_is_running(record, project) for record in records) or _is_new(client, project)


def _is_new(client: AnalysisClient, project: str) -> bool:
    """Return whether another task of the run has just started an import of the project, which may
    still be missing in `import_status`.
    """
    started: float | None = client.created.get(_STARTED, project)
    return started is not None and time.time() - started < _GRACE


def state_of(record: Record) -> ImportState:
    return _STATES.get(str(record.get("status")).lower(), "unknown")


class ImportPolling:
    """Starts an import and waits for its end."""

    def __init__(self, client: AnalysisClient, wanted: Import, interval: PollInterval) -> None:
        self._client, self._wanted, self._interval = client, wanted, interval
        #: Records from before the start.
        self._earlier: list[Record] = []
        self._last = ""
        self._started = 0.0

    def start(self) -> None:
        """Start the import, unless an import of the same project is running.

        After a lost response, `import_status` shows whether the import has started.
        """
        shown, project = self._records(), self._wanted.project
        self._earlier = [record for record in shown if not _is_running(record, project)]
        if len(self._earlier) < len(shown):
            return
        if project is not None:
            if _is_new(self._client, project):
                return
            self._client.created.add(_STARTED, project, value=time.time())

        def has_started() -> bool | None:
            """Return whether the import has a record, or its project exists.

            Returns `None` if that is unknown for an import of settings.
            """
            if self._new_records(self._records()) or self._exists():
                return True
            return None if project is None else False

        self._client.ask(self._wanted.title, self._wanted.call, has_started)
        self._started = self._interval.passed

    def finish(self) -> list[Record]:
        """Wait for the end of the import, and return its records, which may be none.

        Raises `failed` with the server's message if the import failed. Raises `timeout` if it takes
        too long; the import then continues on the server.
        """
        while True:
            try:
                finished = self._finished_records()
            except ToolchainError as error:
                temporary = error.kind in ("network", "timeout", "rate_limited")
                if not temporary and error.status not in _UNAVAILABLE:
                    raise
                finished = None
                self._report("the server does not respond; still waiting")
            if finished is not None:
                self._client.created.remove(_STARTED, str(self._wanted.project))
                return finished
            last = f" ({self._last})" if self._last else ""
            self._interval.pause(f"{self._wanted.title}: the import has not finished{last}")

    def _records(self) -> list[Record]:
        return self._client.ask(f"{self._wanted.title}: reading its status", Call("import_status"))

    def _new_records(self, shown: Sequence[Record]) -> list[Record]:
        """Return the records that appeared after the start of this import.

        Earlier records that the server no longer lists are forgotten, so an equal record that
        appears later counts as new.
        """
        unmatched, new = list(self._earlier), []
        for record in shown:
            earlier = next(
                (candidate for candidate in unmatched if _is_same(candidate, record)), None
            )
            if earlier is None:
                new.append(record)
            else:
                unmatched.remove(earlier)
        for record in unmatched:
            self._earlier.remove(record)
        project = self._wanted.project
        return [record for record in new if project is None or _belongs_to(record, project)]

    def _finished_records(self) -> list[Record] | None:
        """Return the records of the import if it has finished, or `None` if it is running.

        Raises `failed` if the import failed.
        """
        project, shown = self._wanted.project, self._records()
        records = self._new_records(shown)
        grace = min(_GRACE, self._interval.timeout * _GRACE_SHARE)
        waited = self._interval.passed - self._started >= grace
        if not records and project is not None and waited:
            # a server that stores only the last record returns an equal record for the same result
            records = [record for record in shown if _belongs_to(record, project)][-1:]
        states = {state_of(record) for record in records}
        if "failed" in states:
            failed = [record for record in records if state_of(record) == "failed"]
            raise self._failed(_status_line(failed[0]))
        line = "; ".join(filter(None, map(_status_line, records))) or "started"
        settled = not records or (waited and line == self._last)
        if states == {"done"}:
            return records
        if "running" not in states and settled:
            if self._exists() if project is not None else waited:
                return records
            if not records and waited:
                raise self._failed("the server lists neither the import nor the project")
        self._report(line)
        return None

    def _exists(self) -> bool:
        """Return whether the project exists. Return false for an import of settings."""
        if self._wanted.project is None:
            return False
        records = self._client.ask(f"{self._wanted.title}: searching for it", Call("projects"))
        return any(record["name"] == self._wanted.project for record in named(records))

    def _failed(self, reason: str) -> ToolchainError:
        """Return the error for a failed import, which may have created the project nevertheless."""
        detail = shorten(reason)
        error = ToolchainError("failed", f"{self._wanted.title}: {detail}", detail=detail)
        if self._wanted.project is None:
            return error
        try:
            exists = self._exists()
        except ToolchainError:
            return error  # whether the project exists cannot be read
        error.result["changed"] = exists
        return error.with_hint("a project with this name exists now") if exists else error

    def _report(self, line: str) -> None:
        """Report progress if the line differs from the last one."""
        if line != self._last:
            self._last = line
            self._client.progress(f"{self._wanted.title}: {line}")


def _belongs_to(record: Record, project: str | None) -> bool:
    return project in [value for value in record.values() if isinstance(value, str)]


def _is_running(record: Record, project: str | None) -> bool:
    return state_of(record) == "running" and _belongs_to(record, project)


def _is_same(earlier: Record, record: Record) -> bool:
    """Return whether a record equals an earlier record, or shows its progress."""
    before, after = dict(earlier), dict(record)
    for name in _PROGRESS_MEMBERS:
        before.pop(name, None)
        after.pop(name, None)
    return earlier == record or (before == after and state_of(earlier) == "running")


def _status_line(record: Record) -> str:
    """Return the server's message in a record, or its status and progress."""
    if record.get("message"):
        return str(record["message"])
    progress = f"{record['progress']} %" if "progress" in record else ""
    return " ".join(filter(None, [str(record.get("status") or ""), progress]))
