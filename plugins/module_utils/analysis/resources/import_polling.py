# SPDX-License-Identifier: GPL-3.0-or-later
"""Start an import from another server once, and follow it with `import_status`.

Server facts [analysis-5]: both imports return an empty body and continue in the background.
`import_status` returns a record per project; its members are not published. A record belongs to a
project if one of its values is the project's name. Of the rest only `status`, `progress` and
`message` are read. Any other status is unknown: the import then counts as finished if its project
exists (settings leave no such sign) and the record does not change anymore.

    polling = ImportPolling(client, Import("importing the project 'x'", call, "x"), interval)
    polling.start()    # a write; none is sent if such an import is already running
    polling.finish()   # reads until the import has ended, reports progress, returns its records
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...core.errors import ToolchainError, invalid, shorten
from ...core.polling import PollInterval
from ..client import AnalysisClient, Call
from ..responses import Record, named

ImportState = Literal["running", "done", "failed", "unknown"]

#: Seconds, and share of the timeout, for which a started import may be invisible; the shorter time
#: counts.
_GRACE = 15.0
_GRACE_SHARE = 0.5
_STATES: dict[str, ImportState] = {
    **dict.fromkeys(("queued", "running"), "running"),
    **dict.fromkeys(("completed", "done", "finished"), "done"),
    **dict.fromkeys(("aborted", "error", "failed"), "failed"),
}
#: Members that change during an import.
_CHANGING = ("status", "progress", "message")
_UNAVAILABLE = (502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class ImportWaitOptions:
    """The options of modules that wait for an import."""

    wait: bool = True
    wait_timeout: float = 3600
    poll_interval: float = 5

    def interval(self) -> PollInterval:
        """Return the polling interval. Raises `invalid` for a timeout or interval of zero."""
        times = {"wait_timeout": self.wait_timeout, "poll_interval": self.poll_interval}
        for name, seconds in times.items():
            if seconds <= 0:
                raise invalid(f"{name} must be greater than 0, not {seconds:g}")
        return PollInterval(self.wait_timeout, self.poll_interval)


@dataclass(frozen=True)
class Import:
    """A wanted import.

    :param title: the import in messages, as `importing the project 'x'`
    :param call: the write that starts it
    :param project: name of the project that it creates; `None` for settings: then every new record
        counts
    """

    title: str
    call: Call
    project: str | None = None


def is_running(client: AnalysisClient, project: str) -> bool:
    """Return whether an import of the project is running."""
    records = client.ask(f"reading the imports of the project '{project}'", Call("import_status"))
    return any(_is_running(record, project) for record in records)


def state_of(record: Record) -> ImportState:
    return _STATES.get(str(record.get("status")).lower(), "unknown")


class ImportPolling:
    """An import, from start to end."""

    def __init__(self, client: AnalysisClient, wanted: Import, interval: PollInterval) -> None:
        self._client, self._wanted, self._interval = client, wanted, interval
        #: Records from before the start.
        self._earlier: list[Record] = []
        self._last = ""
        self._started = 0.0

    def start(self) -> None:
        """Start the import once; after a lost response, the status decides whether it has begun.

        A running import of the same project is not started again.
        """
        shown, project = self._records(), self._wanted.project
        self._earlier = [record for record in shown if not _is_running(record, project)]
        if len(self._earlier) < len(shown):
            return
        self._client.ask(self._wanted.title, self._wanted.call, self._has_begun)
        self._started = self._interval.passed

    def finish(self) -> list[Record]:
        """Wait for the end and return the records of the import; empty if the server shows none.

        Raises `failed` with the server's message if the import failed, `timeout` if it takes too
        long; it then continues on the server.
        """
        while True:
            try:
                ended = self._ended()
            except ToolchainError as error:
                passing = error.kind in ("network", "timeout", "rate_limited")
                if not passing and error.status not in _UNAVAILABLE:
                    raise
                ended = None
                self._report("the server does not respond; still waiting")
            if ended is not None:
                return ended
            last = f" ({self._last})" if self._last else ""
            self._interval.pause(f"{self._wanted.title}: it has not finished{last}")

    def _records(self) -> list[Record]:
        return self._client.ask(f"{self._wanted.title}: reading its status", Call("import_status"))

    def _ours(self, shown: Sequence[Record]) -> list[Record]:
        """Return the new records of this import. An earlier record that is no longer listed is
        forgotten: an equal record that is listed later is new.
        """
        gone, new = list(self._earlier), []
        for record in shown:
            earlier = next((candidate for candidate in gone if _is_same(candidate, record)), None)
            if earlier is None:
                new.append(record)
            else:
                gone.remove(earlier)
        for record in gone:
            self._earlier.remove(record)
        project = self._wanted.project
        return [record for record in new if project is None or _is_of(record, project)]

    def _ended(self) -> list[Record] | None:
        """Return the records of a finished import; `None` while it runs."""
        project, shown = self._wanted.project, self._records()
        ours = self._ours(shown)
        grace = min(_GRACE, self._interval.timeout * _GRACE_SHARE)
        waited = self._interval.passed - self._started >= grace
        if not ours and project is not None and waited:
            # a server that keeps only the last record shows equal records for equal results
            ours = [record for record in shown if _is_of(record, project)][-1:]
        states = {state_of(record) for record in ours}
        if "failed" in states:
            failed = [record for record in ours if state_of(record) == "failed"]
            raise self._failed(_line(failed[0]))
        line = "; ".join(filter(None, map(_line, ours))) or "started"
        settled = not ours or (waited and line == self._last)
        if states == {"done"}:
            return ours
        if "running" not in states and settled:
            if self._exists() if project is not None else waited:
                return ours
            if not ours and waited:
                raise self._failed("the server shows neither the import nor the project")
        self._report(line)
        return None

    def _has_begun(self) -> bool | None:
        """Return whether this import has left a sign; `None` if it is unknown: settings may leave
        none.
        """
        if self._ours(self._records()) or self._exists():
            return True
        return None if self._wanted.project is None else False

    def _exists(self) -> bool:
        """Return whether the project exists; an import of settings has no such sign."""
        if self._wanted.project is None:
            return False
        records = self._client.ask(f"{self._wanted.title}: searching for it", Call("projects"))
        return any(record["name"] == self._wanted.project for record in named(records))

    def _failed(self, reason: str) -> ToolchainError:
        """Return the error with the state of the server: the project may exist in spite of it."""
        detail = shorten(reason)
        error = ToolchainError("failed", f"{self._wanted.title}: {detail}", detail=detail)
        if self._wanted.project is None:
            return error
        try:
            exists = self._exists()
        except ToolchainError:
            return error  # the import was started, and its result cannot be read
        error.result["changed"] = exists
        return error.with_hint("it left a project with this name") if exists else error

    def _report(self, line: str) -> None:
        """Report progress if it is new."""
        if line != self._last:
            self._last = line
            self._client.progress(f"{self._wanted.title}: {line}")


def _is_of(record: Record, project: str | None) -> bool:
    return project in [value for value in record.values() if isinstance(value, str)]


def _is_running(record: Record, project: str | None) -> bool:
    return state_of(record) == "running" and _is_of(record, project)


def _is_same(earlier: Record, record: Record) -> bool:
    """Return whether a record is an earlier one, or a later state of an earlier running import."""
    before, after = dict(earlier), dict(record)
    for name in _CHANGING:
        before.pop(name, None)
        after.pop(name, None)
    return earlier == record or (before == after and state_of(earlier) == "running")


def _line(record: Record) -> str:
    """Return the server's message, otherwise status and progress."""
    if record.get("message"):
        return str(record["message"])
    progress = f"{record['progress']} %" if "progress" in record else ""
    return " ".join(filter(None, [str(record.get("status") or ""), progress]))
