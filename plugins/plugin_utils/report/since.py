# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the findings of a run with those of the last run: new, still there, mended [C9]."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Finding = dict[str, Any]

#: The keys that identify a finding.
PLACE = ("host", "service", "server", "kind", "name")
#: Maximum number of findings of earlier runs that a report remembers.
MAX_UNREAD = 10_000
_REPORT = "report.json"


def finding_id(one: Mapping[str, Any]) -> str:
    """Return the id of a finding, which stays the same in all runs."""
    place = json.dumps([str(one.get(key) or "") for key in PLACE])
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Last:
    """Findings of the last run by their id, and a warning if its report cannot be read.

    `finished` is empty if there was no run.
    """

    findings: Mapping[str, Finding]
    finished: str = ""
    warning: str = ""
    #: Ids of findings that were mended before.
    mended: tuple[str, ...] = ()


NO_RUN = Last({})


def last_run(folder: Path | None) -> Last:
    """Return the findings that were open after the last run in the folder of the report.

    A run that changes the servers leaves only what failed.
    """
    if folder is None:
        return NO_RUN
    file = folder / _REPORT
    try:
        report = json.loads(file.read_text("utf-8"))
        found = [
            finding
            for finding in report["findings"]
            if report["check"] or finding["status"] == "failed"
        ]
        found += report.get("unread") or []
        finished = str(report["finished"])
        # a report of version 1.0.0 has neither of them
        seen = {"first_seen": finished, "since": "still"}
        findings = {
            key: {**seen, **one, "id": key}
            for one in found
            if str(one["text"])
            for key in [finding_id(one)]
        }
        mended = [finding_id(one) for one in report.get("mended") or []]
        mended += [str(one) for one in report.get("mended_earlier") or []]
        return Last(findings, finished, mended=tuple(mended[:MAX_UNREAD]))
    except FileNotFoundError:
        return NO_RUN
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Last({}, "", f"cannot read the last report {file}: all findings count as new")


@dataclass
class Read:
    """Objects that a run has read. Only their findings can be mended.

    :param ok: ids of the objects that are as wanted
    :param whole: host and task of results that list every object, unchanged ones included
    :param broken: host and task of failures
    :param mended: ids that the summarised reports call mended
    :param unread: ids that they could not read, `None` if the run is not a summary
    :param fresh: hosts of the summarised reports
    """

    ok: set[str]
    whole: set[tuple[str, str]]
    broken: set[tuple[str, str]]
    unread: set[str] | None = None
    fresh: frozenset[str] = frozenset()

    def mended(self, one: Finding) -> bool:
        """Return whether a finding of the last run, which is none of this run, was mended."""
        key = finding_id(one)
        if self.unread is not None:
            return one.get("host") in self.fresh and key not in self.unread
        if key in self.ok:
            return True
        task = (str(one.get("host")), str(one.get("task")))
        if task not in self.whole or task in self.broken:
            return False
        # a missing or differing object may have left the desired state; an unwanted one is gone
        return one.get("status") == "failed" or one.get("action") == "delete"


def split(last: Last, found: Iterable[str], read: Read) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of the last run that are mended, and those that were not read."""
    present = set(found)
    gone = [one for key, one in last.findings.items() if key not in present]
    mended = [record for record in gone if read.mended(record)]
    return mended, [record for record in gone if not read.mended(record)][:MAX_UNREAD]
