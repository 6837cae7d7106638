# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports from another server: started once, then followed by C(import_status).

Server facts [analysis-5]: both imports answer with an empty body and go on in the background;
C(import_status) gives a record per project, whose members are not documented. A record therefore
counts for a project when one of its values is the project's name, its state is read from words as
C(completed) or C(failed), and a project that is listed while no record tells of its import has been
imported. Whether records of earlier imports stay is not documented, either: see
:class:`EarlierRecords`.

    polling = ImportPolling(client, Import("importing the project 'x'", call, "x"), pace)
    polling.start()    # a write; sends none where such an import runs already
    polling.finish()   # reads until it is over, with lines of progress; the records of it

What is not to be waited for is only started.
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

#: How long nothing may be seen of an import after its start, in seconds: this long, and at most
#: so much of the time that there is.
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
        """The pace of the polling; C(invalid) for no time at all."""
        times = {"wait_timeout": self.wait_timeout, "poll_interval": self.poll_interval}
        for name, seconds in times.items():
            if seconds <= 0:
                raise invalid(f"{name} must be greater than 0, not {seconds:g}")
        return PollInterval(self.wait_timeout, self.poll_interval)


@dataclass(frozen=True)
class Import:
    """An import that is wanted.

    :param title: the import in messages, as C(importing the project 'x')
    :param call: the write that starts it
    :param project: name of the project that it makes, C(None) for all else: then every record that
        was not there before counts
    """

    title: str
    call: Call
    project: str | None = None


def is_running(client: AnalysisClient, project: str) -> bool:
    """Whether the server says that an import of the project goes on."""
    records = client.ask(f"reading the imports of the project '{project}'", Call("import_status"))
    return _running([record for record in records if _is_of(record, project)])


class ImportPolling:
    """One import, from its start to its end."""

    def __init__(self, client: AnalysisClient, wanted: Import, pace: PollInterval) -> None:
        self._client, self._wanted, self._pace = client, wanted, pace
        self._earlier = EarlierRecords([])
        self._last = ""
        self._started = 0.0

    def start(self) -> None:
        """Start the import, once: after a lost answer the status tells whether it has begun.

        An import of the same project that runs already is not started again.
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
        """Wait for the end; the records that the server shows of it, none where it shows none.

        C(failed) with the server's words where the import failed, C(timeout) where time is up; the
        import goes on in spite of that.
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
        """The records of this import among those that the server shows."""
        return [each for each in self._earlier.others(shown) if self._may_be_ours(each)]

    def _may_be_ours(self, record: Record) -> bool:
        project = self._wanted.project
        return project is None or _is_of(record, project)

    def _verify(self) -> list[Record] | None:
        """The records of this import if it is over, C(None) while it goes on."""
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
        """Whether there is a sign of this import; C(None): settings may leave none."""
        if self._ours(self._records()) or self._is_there():
            return True
        return None if self._wanted.project is None else False

    def _is_there(self) -> bool:
        """Whether the project is there; the settings of a server have no such sign."""
        if self._wanted.project is None:
            return False
        records = self._client.ask(f"{self._wanted.title}: looking for it", Call("projects"))
        return any(each["name"] == self._wanted.project for each in named(records))

    def _grace_is_over(self) -> bool:
        grace = min(_GRACE, self._pace.timeout * _GRACE_SHARE)
        return self._pace.passed - self._started >= grace

    def _written_over(self, shown: Sequence[Record]) -> list[Record]:
        """The one record that may be of this import although it looks as it did before: servers
        that keep the last import alone show the same of two that end in the same way.
        """
        project = self._wanted.project
        found = [each for each in shown if self._may_be_ours(each)]
        told_of_another = project is None and any("project" in each for each in found)
        return found if len(found) == 1 and not told_of_another else []

    def _unseen(self) -> list[Record]:
        """The end of an import of which nothing was seen: settings leave no other trace."""
        if self._wanted.project is not None:
            raise self._failed("the server shows neither the import nor the project")
        return []

    def _failed(self, words: str) -> ToolchainError:
        """The error, with what became of the server: a project may be there in spite of it."""
        said = shorten(words)
        error = ToolchainError("failed", f"{self._wanted.title}: {said}", detail=said)
        if self._wanted.project is None:
            return error
        try:
            made = self._is_there()
        except ToolchainError:
            return error  # an import was started, and what it has left cannot be read
        error.result["changed"] = made
        return error.with_hint("it has left a project of this name") if made else error

    def _pause(self) -> None:
        last = f" ({self._last})" if self._last else ""
        self._pace.pause(f"{self._wanted.title}: it goes on{last}")

    def _say(self, line: str) -> None:
        """A line for a waiting user, where it says something new."""
        if line != self._last:
            self._last = line
            self._client.progress(f"{self._wanted.title}: {line}")


class EarlierRecords:
    """The records that were there before an import was started, so that its own are known.

    A record that looks like an earlier one is another one where both are shown (the server adds
    records) and where the earlier one was not shown in between (it writes them over). One of an
    import that ran already goes on.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    def others(self, shown: Sequence[Record]) -> list[Record]:
        """Those that are not among the earlier ones. What is not shown any more is forgotten."""
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
    """Whether a record is that of an import that ran before, a while later."""
    changing = {*_STATES, *_PERCENT, *_WORDS}
    before, after = (
        {name: value for name, value in each.items() if name not in changing}
        for each in (earlier, record)
    )
    return state_of(earlier) == "running" and before == after


def state_of(record: Record) -> ImportState:
    """What a record of C(import_status) says; what cannot be understood counts as running."""
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
    """What a record says of how far the import is."""
    said = next((str(record[name]) for name in _STATES if record.get(name)), "")
    percent = _percent(record)
    return " ".join(filter(None, [said, "" if percent is None else f"{percent:g} %"]))


def _words_of(record: Record) -> str:
    """The server's words for what went wrong."""
    said = next((str(record[name]) for name in _WORDS if record.get(name)), "")
    return said or _line(record)
