# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the findings of a run with the last run: new, still open, or resolved [C9]."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Finding = dict[str, Any]

#: The keys that identify a finding.
PLACE = ("host", "service", "server", "kind", "name")
#: Maximum number of findings from earlier runs in a report.
MAX_UNREAD = 10_000
_REPORT = "report.json"
#: Statuses of findings that are open after a run that changes the servers.
_STILL_OPEN = ("failed", "unmanaged", "unknown")


def finding_id(finding: Mapping[str, Any]) -> str:
    """Return the id of a finding, which stays the same in all runs."""
    place = json.dumps([str(finding.get(key) or "") for key in PLACE])
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Last:
    """The open findings after the last run.

    :param findings: open findings by id
    :param finished: time at which the run ended, "" if there is no last run
    :param warning: message if the report of the last run cannot be read
    :param resolved: ids of findings that were resolved by then
    :param enforced: findings of an earlier report that this last run has changed, by id. The next
        run that reads these objects resolves them
    """

    findings: Mapping[str, Finding]
    finished: str = ""
    warning: str = ""
    resolved: tuple[str, ...] = ()
    enforced: Mapping[str, Finding] = field(default_factory=dict)

    def same(self, finding: Mapping[str, Any]) -> Finding | None:
        """Return the finding of the last run that is still open, or `None`.

        An object that differed, and of which only a secret is unknown now, has another finding.
        """
        before = self.findings.get(str(finding.get("id")))
        if before is None or _is_written(before) != _is_written(finding):
            return None
        return before


def _is_written(finding: Mapping[str, Any]) -> bool:
    """Return whether `enforce` would write the object, or failed to read it."""
    return finding.get("action") != "none" or finding.get("status") == "failed"


NO_RUN = Last({})


def last_run(folder: Path | None) -> Last:
    """Read the findings that were open after the last run from the folder of the report.

    A run that changes the servers leaves only failures open, and what it does not manage.
    """
    if folder is None:
        return NO_RUN
    file = folder / _REPORT
    try:
        report = json.loads(file.read_text("utf-8"))
        found = [
            finding
            for finding in report["findings"]
            if report["check"] or finding["status"] in _STILL_OPEN
        ]
        found += report.get("unread") or []
        finished = str(report["finished"])
        findings = {
            key: {**finding, "id": key}
            for finding in found
            if str(finding["text"])
            for key in [finding_id(finding)]
        }
        resolved = [finding_id(finding) for finding in report.get("resolved") or []]
        resolved += [str(finding) for finding in report.get("resolved_earlier") or []]
        enforced = {
            finding_id(finding): {**finding, "reason": str(report.get("reason") or "")}
            for finding in report["findings"]
            if not report["check"] and (finding["status"], finding["since"]) == ("drift", "still")
        }
        return Last(findings, finished, resolved=tuple(resolved[:MAX_UNREAD]), enforced=enforced)
    except FileNotFoundError:
        return NO_RUN
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Last({}, "", f"cannot read the last report {file}: all findings count as new")


@dataclass
class Read:
    """The objects that a run has read. Only the findings of such objects can be resolved.

    :param ok: ids of the objects in their desired state, as far as they can be compared
    :param whole: (host, task) of results that list all objects, also unchanged objects
    :param broken: (host, task) of failed tasks
    :param unread: ids of objects that the combined reports could not read; `None` if the report
        does not combine other reports
    :param fresh: hosts of the combined reports
    """

    ok: set[str]
    whole: set[tuple[str, str]]
    broken: set[tuple[str, str]]
    unread: set[str] | None = None
    fresh: frozenset[str] = frozenset()

    def shows_resolved(self, finding: Finding) -> bool:
        """Return whether a finding of the last run that is not in this run was resolved."""
        key = finding_id(finding)
        if self.unread is not None:
            return finding.get("host") in self.fresh and key not in self.unread
        if key in self.ok:
            return True
        task = (str(finding.get("host")), str(finding.get("task")))
        if task not in self.whole or task in self.broken:
            return False
        # An unwanted object no longer exists. A missing or different object may only have been
        # removed from the desired state.
        gone = finding.get("status") in ("failed", "unmanaged", "unknown")
        return gone or finding.get("action") == "delete"


def split(last: Last, found: Iterable[Finding], read: Read) -> tuple[list[Finding], list[Finding]]:
    """Return the resolved findings of the last run, and those whose objects were not read.

    :param found: findings of this run
    """
    records = list(found)
    present = {record["id"] for record in records if last.same(record) is not None}
    present |= {record["id"] for record in records if _is_written(record)}
    known = {**last.enforced, **last.findings}
    gone = [finding for key, finding in known.items() if key not in present]
    resolved = [
        record
        for record in gone
        if read.shows_resolved(record) and record.get("status") != "unknown"
    ]
    return resolved, [record for record in gone if not read.shows_resolved(record)][:MAX_UNREAD]
