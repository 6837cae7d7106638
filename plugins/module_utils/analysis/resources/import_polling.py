# SPDX-License-Identifier: GPL-3.0-or-later
"""Start an import from another server once, and follow it with `import_status`.

Server facts [analysis-5]: both imports return an empty body and continue in the background.
`import_status` returns a record per project with undocumented members. A record therefore belongs
to a project if one of its values is the project's name. Its state is parsed from words such as
`completed` or `failed`. A listed project without a record has been imported. Whether records of
earlier imports are kept is not documented: see :class:`EarlierRecords`.

    polling = ImportPolling(client, Import("importing the project 'x'", call, "x"), interval)
    polling.start()    # a write; none is sent if such an import is already running
    polling.finish()   # reads until the import has ended, reports progress, returns its records
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...core.errors import ToolchainError, invalid, shorten
from ...core.polling import PollInterval
from ..client import AnalysisClient, Call
from ..responses import Record, named

ImportState = Literal["running", "done", "failed"]

#: Seconds, and share of the timeout, for which a started import may be invisible; the shorter time
#: counts.
_GRACE = 15.0
_GRACE_SHARE = 0.5
_STATES = ("status", "state", "result", "phase")
_PERCENT = ("progress", "percent", "percentage")
_WORDS = ("message", "error", "reason", "detail", "description")
_FAILED = re.compile(r"fail|error|abort|cancel|reject", re.I)
_DONE = re.compile(r"\b(complete[d]?|finish(ed)?|done|success\w*|succeeded|imported|ok)\b", re.I)
_UNAVAILABLE = (502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class ImportWaitOptions:
    """The options of modules that wait for an import."""

    wait: bool = True
    wait_timeout: float = 3600
    poll_interval: float = 5

    def pace(self) -> PollInterval:
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
    return _running([record for record in records if _is_of(record, project)])


class ImportPolling:
    """An import, from start to end."""

    def __init__(self, client: AnalysisClient, wanted: Import, pace: PollInterval) -> None:
        self._client, self._wanted, self._pace = client, wanted, pace
        self._earlier = EarlierRecords([])
        self._last = ""
        self._started = 0.0

    def start(self) -> None:
        """Start the import once; after a lost response, the status decides whether it has begun.

        A running import of the same project is not started again.
        """
        shown, project = self._records(), self._wanted.project
        if project is not None and _running([each for each in shown if _is_of(each, project)]):
            shown = [each for each in shown if state_of(each) != "running"]
            self._earlier = EarlierRecords(shown)
            return
        self._earlier = EarlierRecords(shown)
        self._client.ask(self._wanted.title, self._wanted.call, self._has_begun)
        self._started = self._pace.passed

    def finish(self) -> list[Record]:
        """Wait for the end and return the records of the import; empty if the server shows none.

        Raises `failed` with the server's message if the import failed, `timeout` if it takes too
        long; it then continues on the server.
        """
        while True:
            try:
                ended = self._verify()
            except ToolchainError as error:
                passing = error.kind in ("network", "timeout", "rate_limited")
                if not passing and error.status not in _UNAVAILABLE:
                    raise
                ended = None
                self._say("the server does not answer, still waiting")
            if ended is not None:
                return ended
            self._pause()

    def _records(self) -> list[Record]:
        return self._client.ask(f"{self._wanted.title}: reading its status", Call("import_status"))

    def _ours(self, shown: Sequence[Record]) -> list[Record]:
        """Return the records of this import."""
        return [each for each in self._earlier.others(shown) if self._may_be_ours(each)]

    def _may_be_ours(self, record: Record) -> bool:
        project = self._wanted.project
        return project is None or _is_of(record, project)

    def _verify(self) -> list[Record] | None:
        """Return the records of a finished import; `None` while it runs."""
        shown = self._records()
        ours = self._ours(shown)
        if not ours:
            if self._is_there():
                return []
            if self._grace_is_over():
                ours = self._written_over(shown)
                if not ours:
                    return self._unseen()
        for record in ours:
            if state_of(record) == "failed":
                raise self._failed(_words_of(record))
        if ours and not _running(ours):
            return ours
        self._say("; ".join(filter(None, map(_line, ours))) or "started")
        return None

    def _has_begun(self) -> bool | None:
        """Return whether this import has left a sign; `None` if it is unknown: settings may leave
        none.
        """
        if self._ours(self._records()) or self._is_there():
            return True
        return None if self._wanted.project is None else False

    def _is_there(self) -> bool:
        """Return whether the project exists; an import of settings has no such sign."""
        if self._wanted.project is None:
            return False
        records = self._client.ask(f"{self._wanted.title}: looking for it", Call("projects"))
        return any(each["name"] == self._wanted.project for each in named(records))

    def _grace_is_over(self) -> bool:
        grace = min(_GRACE, self._pace.timeout * _GRACE_SHARE)
        return self._pace.passed - self._started >= grace

    def _written_over(self, shown: Sequence[Record]) -> list[Record]:
        """Return the single record that may belong to this import although it is unchanged: servers
        that keep only the last import show equal records for equal results.
        """
        project = self._wanted.project
        found = [each for each in shown if self._may_be_ours(each)]
        told_of_another = project is None and any("project" in each for each in found)
        return found if len(found) == 1 and not told_of_another else []

    def _unseen(self) -> list[Record]:
        """Return the result of an import that left no record: an import of settings has no other
        sign.
        """
        if self._wanted.project is not None:
            raise self._failed("the server shows neither the import nor the project")
        return []

    def _failed(self, words: str) -> ToolchainError:
        """Return the error with the state of the server: the project may exist nevertheless."""
        said = shorten(words)
        error = ToolchainError("failed", f"{self._wanted.title}: {said}", detail=said)
        if self._wanted.project is None:
            return error
        try:
            made = self._is_there()
        except ToolchainError:
            return error  # the import was started, and its result cannot be read
        error.result["changed"] = made
        return error.with_hint("it has left a project of this name") if made else error

    def _pause(self) -> None:
        last = f" ({self._last})" if self._last else ""
        self._pace.pause(f"{self._wanted.title}: it goes on{last}")

    def _say(self, line: str) -> None:
        """Report progress if it is new."""
        if line != self._last:
            self._last = line
            self._client.progress(f"{self._wanted.title}: {line}")


class EarlierRecords:
    """Records from before the import was started.

    A record equal to an earlier record is new if both are listed (the server adds records), or if
    the earlier record was absent in between (the server replaces records). A record of an import
    that was already running continues.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    def others(self, shown: Sequence[Record]) -> list[Record]:
        """Return the records that are not earlier records. Earlier records that are no longer
        listed are forgotten.
        """
        gone, new = list(self._records), []
        for record in shown:
            if record in gone:
                gone.remove(record)
            else:
                new.append(record)
        found = []
        for record in new:
            going_on = [each for each in gone if _goes_on(each, record)]
            if going_on:
                gone.remove(going_on[0])
                self._records[self._records.index(going_on[0])] = record
            else:
                found.append(record)
        for record in gone:
            self._records.remove(record)
        return found


def _goes_on(earlier: Record, record: Record) -> bool:
    """Return whether a record is a later state of an earlier running import."""
    changing = {*_STATES, *_PERCENT, *_WORDS}
    before, after = (
        {name: value for name, value in each.items() if name not in changing}
        for each in (earlier, record)
    )
    return state_of(earlier) == "running" and before == after


def state_of(record: Record) -> ImportState:
    """Return the state in a record of `import_status`; an unknown state counts as running."""
    said = " ".join(str(record[name]) for name in _STATES if name in record)
    if _FAILED.search(said):
        return "failed"
    percent = _percent(record)
    over = _DONE.search(said) or (percent is not None and percent >= 100)
    return "done" if over else "running"


def _percent(record: Record) -> float | None:
    for name in _PERCENT:
        try:
            return float(str(record[name]).rstrip(" %"))
        except (KeyError, ValueError):
            continue
    return None


def _is_of(record: Record, project: str) -> bool:
    return project in [value for value in record.values() if isinstance(value, str)]


def _running(records: Sequence[Record]) -> bool:
    return any(state_of(record) == "running" for record in records)


def _line(record: Record) -> str:
    """Return the progress in a record."""
    said = next((str(record[name]) for name in _STATES if record.get(name)), "")
    percent = _percent(record)
    return " ".join(filter(None, [said, "" if percent is None else f"{percent:g} %"]))


def _words_of(record: Record) -> str:
    """Return the server's error message."""
    said = next((str(record[name]) for name in _WORDS if record.get(name)), "")
    return said or _line(record)
