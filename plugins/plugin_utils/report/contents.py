# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says: the objects of a run, their numbers, and C(report.json) [C9]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

FORMAT = 1
#: The keys of a finding, in their order.
KEYS = (
    *("host", "service", "server", "kind", "name", "action", "text"),
    *("before", "after", "task", "status"),
)
Object = dict[str, Any]
_NUMBERS = ("ok", "drift", "failed")


def now() -> str:
    """The time, as all times of a report are written."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Row:
    """What was found on one server of a service."""

    service: str
    server: str
    ok: int
    drift: int
    failed: int


@dataclass
class Contents:
    """All objects that a run compared. There is one entry an object, however often it was touched:
    the worst status counts, and what it was first and what it is to be last.
    """

    playbook: str = ""
    check: bool = False
    started: str = field(default_factory=now)
    finished: str = ""
    hosts: list[str] = field(default_factory=list)
    _objects: dict[tuple[str, ...], Object] = field(default_factory=dict)
    _known: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, **values: Any) -> None:
        """Add an object, with the keys of a finding."""
        one = {key: values.get(key) for key in KEYS}
        place = tuple(str(one[key]) for key in ("host", "service", "server", "kind", "name"))
        self._known.add((*place[:2], *place[3:]))
        before = self._objects.get(place)
        self._objects[place] = one if before is None else _both(before, one)

    def knows(self, host: str, service: str, kind: str, name: str) -> bool:
        """Whether an object is there already, on whatever server."""
        return (host, service, kind, name) in self._known

    @property
    def objects(self) -> list[Object]:
        return list(self._objects.values())

    @property
    def findings(self) -> list[Object]:
        return [one for one in self._objects.values() if one["status"] != "ok"]

    @property
    def counts(self) -> dict[str, int]:
        return _counted(self._objects.values())

    def as_json(self) -> dict[str, Any]:
        """C(report.json)."""
        return {
            "format": FORMAT,
            "started": self.started,
            "finished": self.finished,
            "playbook": self.playbook,
            "check": self.check,
            "hosts": self.hosts,
            "counts": self.counts,
            "findings": self.findings,
        }

    def rows(self) -> list[Row]:
        """The servers, by service."""
        places: dict[tuple[str, str], list[Object]] = {}
        for one in self._objects.values():
            places.setdefault((one["service"], one["server"]), []).append(one)
        rows = []
        for place in sorted(places):
            numbers = _counted(places[place])
            rows.append(Row(*place, *(numbers[name] for name in _NUMBERS)))
        return rows

    def sentence(self) -> str:
        """The whole report in a sentence."""
        rows, counts = self.rows(), self.counts
        whole = sum(counts.values())
        objects, servers = _many(whole, "object"), _many(len(rows), "server")
        if not whole:
            return "Nothing was compared."
        if counts["ok"] == whole:
            return f"All of {objects} on {servers} are as wanted."
        where = sum(1 for row in rows if row.drift)
        verb = "differ" if self.check else "were changed"
        text = f"{counts['drift']:,} of {objects} {verb} on {where:,} of {servers}"
        return f"{text}; {counts['failed']:,} failed." if counts["failed"] else f"{text}."


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _counted(objects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = dict.fromkeys(_NUMBERS, 0)
    for one in objects:
        found[one["status"]] += 1
    return found


def _both(first: Object, second: Object) -> Object:
    """One object that was touched twice."""
    worse, other = (
        (second, first)
        if _NUMBERS.index(second["status"]) >= _NUMBERS.index(first["status"])
        else (first, second)
    )
    if worse["status"] != "drift" or other["status"] != "drift":
        return worse
    before = second["before"] if first["before"] is None else first["before"]
    return {**worse, "before": before}
