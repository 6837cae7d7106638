# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that a run compared, their counts, and `report.json` [C9]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from ..findings import done
from . import ignored
from .since import NO_RUN, Last, Read, finding_id, split

FORMAT = 1
#: The keys of a finding, in the order of `report.json`.
KEYS = (
    *("host", "service", "server", "kind", "name", "action", "text"),
    *("before", "after", "task", "status"),
    *("id", "first_seen", "since", "changed_by", "changed_at"),
)
Object = dict[str, Any]
#: All values of `status`, from the best to the worst.
_STATUSES = ("ok", "unknown", "ignored", "unmanaged", "drift", "failed")
#: The keys of `counts`, in the order of `report.json` and of the tables.
COUNTS = ("ok", "drift", "failed", "unmanaged", "unknown", "ignored")
#: Words for people. All other counts are called by their key.
TITLES = {"ok": "in sync", "drift": "differ"}
#: What a finding calls its sides `before` and `after`, by whether the run was in check mode.
SIDES = {True: ("on the server", "in Git"), False: ("before", "after")}
#: Statuses that `drift_ignore` accepts in every run, because no run changes such objects.
_NEVER_WRITTEN = ("unmanaged", "unknown")


def now() -> str:
    """Return the current time in the format of a report."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Row:
    """The counts of a server.

    :param host: host of the play if the address of the server is unknown, else ""
    :param ok: number of unchanged objects
    :param drift: number of objects that differ, or were changed
    :param unmanaged: number of objects that the desired state does not name
    :param unknown: number of objects that could not be compared completely
    """

    service: str
    server: str
    host: str
    ok: int
    drift: int
    failed: int
    unmanaged: int = 0
    unknown: int = 0
    ignored: int = 0

    def counts(self) -> tuple[int, ...]:
        """Return the counts in the order of :data:`COUNTS`."""
        return tuple(getattr(self, name) for name in COUNTS)

    def title(self) -> tuple[str, str]:
        """Return service and server for display, with replacements for empty values."""
        where = f"host {self.host}" if self.host else "unknown server"
        return self.service or "playbook", self.server or where


@dataclass
class Refused:
    """The tasks of a run that a server refused to log in or to connect."""

    reason: str
    task: str
    hosts: set[str] = field(default_factory=set)
    #: Number of objects that were not compared.
    count: int = 0

    def finding(self, service: str, server: str) -> dict[str, Any]:
        """Return the single finding of the server. Its host is the first one by name."""
        lost = f"; {many(self.count, 'object')} not compared" if self.count else ""
        name = server or service
        return {
            "host": min(self.hosts),
            "service": service,
            "server": server,
            "kind": "server",
            "name": name,
            "action": "none",
            "text": f"server {name}: {self.reason}{lost}",
            "task": self.task,
            "status": "failed",
            "not_compared": self.count,
        }


@dataclass
class Contents:
    """All objects that a run compared, without duplicates.

    If several tasks compare an object, the worst status is stored, with the first `before` and the
    last `after`.
    """

    playbook: str = ""
    check: bool = False
    started: str = field(default_factory=now)
    finished: str = ""
    hosts: list[str] = field(default_factory=list)
    _objects: dict[tuple[str, ...], Object] = field(default_factory=dict)
    _known: set[tuple[str, ...]] = field(default_factory=set)
    _unnamed: dict[tuple[str, str, str], int] = field(default_factory=dict)
    #: (host, task) of results that list all objects, and of failed tasks.
    _whole: set[tuple[str, str]] = field(default_factory=set)
    _broken: set[tuple[str, str]] = field(default_factory=set)
    #: Digests of the changes of an object by its id, for a sealed plan.
    digests: dict[str, list[str]] = field(default_factory=dict)
    #: Address of the server by host and service.
    servers: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Number of changes that a sealed plan does not allow.
    skipped: int = 0
    #: Number of writes that the run has sent, also before the comparison with a sealed plan.
    written: int = 0
    #: Refusals by service and server.
    _refused: dict[tuple[str, str], Refused] = field(default_factory=dict)
    #: File of the desired state by service, kind and name of an object.
    files: dict[tuple[str, str, str], str] = field(default_factory=dict)
    #: `name` and `file` of the approvals of the sealed plan, and why somebody runs the playbook.
    approvals: list[dict[str, str]] = field(default_factory=list)
    reason: str = ""
    #: Set by `since`.
    last_finished: str = ""
    resolved: list[Object] = field(default_factory=list)
    unread: list[Object] = field(default_factory=list)
    resolved_earlier: list[str] = field(default_factory=list)

    def add(self, **values: Any) -> None:
        """Add an object.

        :param values: the keys of a finding (:data:`KEYS`), and `digests` of its changes
        """
        obj = {key: values.get(key) for key in KEYS}
        texts = ("first_seen", "changed_by", "changed_at")
        obj |= {"id": finding_id(obj), "since": ""}
        obj |= {key: values.get(key) or "" for key in texts}
        if obj["status"] == "ignored":  # from a combined report
            obj |= {"reason": values.get("reason") or "", "until": values.get("until") or ""}
        if values.get("fails"):
            obj["fails"] = True
        if values.get("not_compared") is not None:
            obj["not_compared"] = values["not_compared"]
        place = tuple(str(obj[key]) for key in ("host", "service", "server", "kind", "name"))
        self._known.add((*place[:2], *place[3:]))
        self.digests.setdefault(str(obj["id"]), []).extend(values.get("digests") or ())
        before = self._objects.get(place)
        self._objects[place] = obj if before is None else _merged(before, obj)

    def add_refused(self, place: tuple[str, str, str], reason: str, count: int, task: str) -> None:
        """Add objects that were not compared, because the server refused login or connection.

        :param place: host, service and server
        """
        host, *server = place
        refused = self._refused.setdefault((server[0], server[1]), Refused(reason, task))
        refused.hosts.add(host)
        refused.count += count

    def add_task(self, host: str, task: str, *, whole: bool, failed: bool) -> None:
        """Record that a task has ended.

        :param whole: the result lists all objects, also unchanged objects
        """
        if whole:
            self._whole.add((host, task))
        if failed:
            self._broken.add((host, task))

    def since(
        self,
        last: Last = NO_RUN,
        accepted: Sequence[ignored.Ignored] = (),
        *,
        summarised: Mapping[str, Any] | None = None,
    ) -> Contents:
        """Return a copy that has been compared with the last run, with accepted findings marked.

        :param accepted: active entries of `drift_ignore`
        :param summarised: `hosts` and `unread` (ids) of the combined reports, if there are any
        """
        found = replace(self, finished=self.finished or now(), _objects={})
        for place, refused in self._refused.items():
            found.add(**refused.finding(*place))
        found._objects.update(self._objects)
        found._objects = {
            place: found._marked(obj, last, accepted) for place, obj in found._objects.items()
        }
        read = Read(
            {obj["id"] for obj in found.objects if obj["status"] in ("ok", "unknown")},
            self._whole,
            self._broken,
        )
        if summarised is not None:
            read.fresh, read.unread = frozenset(summarised["hosts"]), set(summarised["unread"])
        found.resolved, found.unread = split(last, found.findings, read)
        found.last_finished = last.finished
        again = {finding["id"] for finding in found.findings if finding["status"] != "unknown"}
        found.resolved_earlier = [key for key in last.resolved if key not in again]
        return found

    def _marked(self, obj: Object, last: Last, accepted: Sequence[ignored.Ignored]) -> Object:
        if obj["status"] == "ok":
            return obj
        before = last.same(obj)
        seen = [obj["first_seen"], str((before or {}).get("first_seen") or ""), self.finished]
        marked = {**obj, "since": "new" if before is None else "still"}
        if not self.check and obj["status"] == "drift":
            marked["text"] = done(obj)
        marked["first_seen"] = min(filter(None, seen), default=now())
        if obj["status"] in _NEVER_WRITTEN or (self.check and obj["status"] == "drift"):
            for entry in accepted:
                if entry.matches(marked):
                    until = "" if entry.until is None else str(entry.until)
                    return {**marked, "status": "ignored", "reason": entry.reason, "until": until}
        return marked

    def add_unnamed(self, place: tuple[str, str, str], count: int) -> None:
        """Add unchanged objects without names.

        :param place: result of :func:`place_of`
        """
        self._unnamed[place] = self._unnamed.get(place, 0) + count

    def knows(self, host: str, service: str, kind: str, name: str) -> bool:
        """Return whether an object with this name has been added, on any server."""
        return (host, service, kind, name) in self._known

    def let_fail(self, host: str, service: str, kind: str, name: str) -> None:
        """Let an unmanaged object fail the run."""
        for place, obj in self._objects.items():
            if (*place[:2], *place[3:]) == (host, service, kind, name):
                obj["fails"] = True

    def file_of(self, finding: Mapping[str, Any]) -> str:
        """Return the file of the desired state that describes an object, "" if it is unknown."""
        return self.files.get((finding["service"], finding["kind"], finding["name"]), "")

    @property
    def objects(self) -> list[Object]:
        return list(self._objects.values())

    @property
    def findings(self) -> list[Object]:
        return [obj for obj in self._objects.values() if obj["status"] != "ok"]

    @property
    def counts(self) -> dict[str, int]:
        found = _counted(self._objects.values())
        found["ok"] += sum(self._unnamed.values())
        return found

    def unnamed(self) -> dict[tuple[str, str, str], int]:
        """Return the numbers of unchanged objects without names, by service, server and host."""
        return dict(self._unnamed)

    def summary(self) -> dict[str, Any]:
        """Return the content of `report.json` without the lists of findings."""
        return {
            "format": FORMAT,
            "started": self.started,
            "finished": self.finished,
            "playbook": self.playbook,
            "check": self.check,
            "hosts": self.hosts,
            "reason": self.reason,
            "approvals": self.approvals,
            "result": self.result(),
            "counts": self.counts,
            "servers": [asdict(row) for row in self.rows()],
        }

    def as_json(self) -> dict[str, Any]:
        """Return the content of `report.json`."""
        return {
            **self.summary(),
            "findings": self.findings,
            "resolved": self.resolved,
            "unread": self.unread,
            "resolved_earlier": self.resolved_earlier,
        }

    @property
    def is_empty(self) -> bool:
        """Return whether the run has compared nothing, and nothing has failed."""
        return not self._objects and not self._unnamed

    def result(self) -> str:
        """Return the result of the run, as :func:`result_of`, or `nothing compared`."""
        if self.is_empty:
            return "nothing compared"
        return result_of(self._objects.values(), check=self.check)

    def rows(self) -> list[Row]:
        """Return the counts of each server, sorted by service."""
        places: dict[tuple[str, str, str], list[Object]] = {place: [] for place in self._unnamed}
        for obj in self._objects.values():
            places.setdefault(place_of(obj), []).append(obj)
        rows = []
        for place in sorted(places):
            found = _counted(places[place])
            found["ok"] += self._unnamed.get(place, 0)
            rows.append(Row(*place, *(found[name] for name in COUNTS)))
        return rows

    def sentence(self) -> str:
        """Return a summary of the report in one sentence."""
        rows = [asdict(row) for row in self.rows()]
        return sentence_of(rows, self.findings, check=self.check)

    def totals(self) -> str:
        """Return the numbers of created, updated and deleted objects as a sentence."""
        counts = dict.fromkeys(("create", "update", "delete"), 0)
        for finding in self.findings:
            if finding["status"] == "drift":
                counts[finding["action"]] += 1
        if self.check:
            return f"Plan: {', '.join(f'{count:,} to {verb}' for verb, count in counts.items())}."
        done = ", ".join(f"{count:,} {verb}d" for verb, count in counts.items())
        return f"Applied: {done}; failed: {self.counts['failed']:,}, skipped: {self.skipped:,}."

    @property
    def compared_with(self) -> str:
        """Return the time of the last run with which this run is compared.

        It is "" without a last run, and for a run that changes the servers: findings of such a run
        are neither new nor open.
        """
        return self.last_finished if self.check else ""

    def approval(self) -> str:
        """Return the names of the approvals and the reason of the run as a sentence, or ""."""
        names = " and ".join(dict.fromkeys(approval["name"] for approval in self.approvals))
        parts = [f"Approved by {names}." if names else ""]
        parts.append(f"Reason: {self.reason.rstrip('.')}." if self.reason else "")
        return " ".join(filter(None, parts))

    def changes(self) -> str:
        """Return the numbers of new, open and resolved findings as a sentence.

        Returns "" if the run is not compared with another.
        """
        if not self.compared_with:
            return ""
        marks = [finding["since"] for finding in self.findings if finding["status"] != "ignored"]
        new, still = marks.count("new"), marks.count("still")
        numbers = f"{new:,} new, {still:,} still, {len(self.resolved):,} resolved"
        return f"Since the last run ({self.compared_with}): {numbers}."


def result_of(objects: Iterable[Mapping[str, Any]], *, check: bool = True) -> str:
    """Return the result of a run: `failed`, `differs`, `unmanaged`, `changed` or `as wanted`.

    It is `unmanaged` only if `desired_state_unmanaged` is `fail` for an unmanaged object.
    """
    records = list(objects)
    statuses = {record["status"] for record in records}
    if "failed" in statuses:
        return "failed"
    if check and "drift" in statuses:
        return "differs"
    if any(record["status"] == "unmanaged" and record.get("fails") for record in records):
        return "unmanaged"
    return "changed" if "drift" in statuses else "as wanted"


def sentence_of(
    rows: Sequence[Mapping[str, Any]], findings: Iterable[Mapping[str, Any]], *, check: bool
) -> str:
    """Return a summary of a report in one sentence.

    It begins with the servers that were not read, because the numbers of all others hide them.

    :param rows: the counts of each server, as in `report.json`
    """
    unread = [finding for finding in findings if finding.get("not_compared") is not None]
    lost = Counter(map(place_of, unread))
    read = [row for row in rows if sum(row.get(name, 0) for name in COUNTS) > lost[place_of(row)]]
    counts = {name: sum(row.get(name, 0) for row in rows) for name in COUNTS}
    counts["failed"] -= len(unread)
    total = sum(counts.values())
    parts = [not_read(unread)]
    if total > counts["failed"]:
        parts.append(_compared(read, counts, check=check, alone=not unread))
        text = "; ".join(filter(None, parts))
        return f"{text[:1].upper()}{text[1:]}."
    parts.append(many(total, "failure") if total else "")
    failures = "; ".join(filter(None, parts))
    if failures and not check:
        return f"{failures}."
    return f"{': '.join(filter(None, ['Nothing was compared', failures]))}."


def _compared(
    rows: Sequence[Mapping[str, Any]], counts: Mapping[str, int], *, check: bool, alone: bool
) -> str:
    """Return a summary of the servers that were read.

    :param alone: no other part of the sentence is before this summary
    """
    total = sum(counts.values())
    more = [f"{counts[name]:,} {TITLES.get(name, name)}" for name in COUNTS[2:] if counts[name]]
    if counts["drift"]:
        verbs = ("differs", "differ") if check else ("was changed", "were changed")
        verb = verbs[counts["drift"] != 1]
        if not alone:
            return "; ".join([f"{counts['drift']:,} of {total:,} {verb}", *more])
        objects = part_of(counts["drift"], total, "object")
        servers = part_of(sum(1 for row in rows if row.get("drift")), len(rows), "server")
        return "; ".join([f"{objects} {verb} on {servers}", *more])
    where = f"{many(total, 'object')} on {many(len(rows), 'server')}"
    if more:
        return f"{where}: {', '.join(more)}"
    return f"{where} is in sync" if total == 1 else f"all {where} are in sync"


def not_read(unread: Sequence[Mapping[str, Any]]) -> str:
    """Return "1 server not read (1,200 objects)" for findings with `not_compared`, "" for none."""
    if not unread:
        return ""
    servers = many(len(set(map(place_of, unread))), "server")
    objects = sum(finding["not_compared"] for finding in unread)
    number = f" ({many(objects, 'object')})" if objects else ""
    return f"{servers} not read{number}"


def place_of(obj: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return service and server of a finding, and its host if the server is unknown, else ""."""
    return obj["service"], obj["server"], "" if obj["server"] else obj["host"]


def many(number: int, noun: str) -> str:
    """Return a number with its noun: "1 object", "2,000 objects"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def part_of(number: int, total: int, noun: str) -> str:
    """Return a part of a total: "3 of 54 objects", "all 54 objects", "both objects", "1 object"."""
    if number == total == 2:
        return f"both {noun}s"
    if number == total:
        return f"{'' if total == 1 else 'all '}{many(total, noun)}"
    return f"{number:,} of {many(total, noun)}"


def _counted(objects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = dict.fromkeys(COUNTS, 0)
    for obj in objects:
        found[obj["status"]] += 1
    return found


def _merged(first: Object, second: Object) -> Object:
    """Merge the findings of two tasks about the same object."""
    worse, other = (
        (second, first)
        if _STATUSES.index(second["status"]) >= _STATUSES.index(first["status"])
        else (first, second)
    )
    if worse["status"] != "drift" or other["status"] != "drift":
        return worse
    before = second["before"] if first["before"] is None else first["before"]
    return {**worse, "before": before}
