# SPDX-License-Identifier: GPL-3.0-or-later
"""Combine the reports of several runs [C9]."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ....module_utils._lib.core.json_text import json_objects
from ..sentence_error import SentenceError
from .contents import FORMAT, KEYS
from .since import finding_id
from .writing import RUNNING

_FILE = "report.json"
_ACTIONS = ("create", "update", "delete")
_STATUSES = {
    "drift": _ACTIONS,
    "ignored": (*_ACTIONS, "none"),
    **dict.fromkeys(("failed", "unmanaged", "unknown"), ("none",)),
}
#: Optional keys of a finding, because reports of older releases do not have them.
_MORE = ("id", "first_seen", "since", "reason", "until", "fails", "not_compared")


class SummaryError(SentenceError):
    """There are no reports to combine."""

    prefix = "Cannot summarise the reports: "


class _UnusableError(Exception):
    """A report cannot be used. The message begins with a verb: "has no report.json; ..."."""


def report_paths(given: Path | Sequence[Path], summary: Path) -> list[Path]:
    """Return the paths of the reports, without the combined report.

    :param given: a list of paths, or a folder whose subfolders contain the reports
    :param summary: folder of the combined report
    :raises SummaryError: if the folder cannot be read
    """
    summary = summary.resolve()
    if isinstance(given, Path):
        try:
            inside = sorted(path for path in given.iterdir() if path.is_dir())
        except OSError as error:
            raise SummaryError(f"cannot read the folder {given}: {error.strerror}") from error
        given = [path for path in inside if not path.name.startswith(".")]
    return [place for place in given if place.resolve() not in (summary, summary / _FILE)]


def read(
    places: Sequence[Path], expected: Iterable[str], max_age: timedelta | None, at: datetime
) -> dict[str, Any]:
    """Read reports and combine them.

    A report that is missing, invalid, too old, or followed by a run without a report adds a finding
    with the status `failed`. A host in `expected` that is in no report adds one, too.

    :param places: folders of reports, or files `report.json`
    :param at: current time, for the age of the reports
    :return: `check`, `hosts`, `findings`, `unread` (ids of findings that the runs could not check
        again) and `unchanged` (dicts with `service`, `server`, `host` and `ok`)
    :raises SummaryError: if `places` is empty
    """
    if not places:
        raise SummaryError(
            "there are no reports: set summary_reports to a folder of report folders, or a list"
        )
    summary: dict[str, Any] = {"check": True, "hosts": [], "findings": [], "unread": []}
    summary["unchanged"] = []
    for place in places:
        try:
            report = _read(place)
            age = at - _time(report)
        except _UnusableError as error:
            summary["findings"].append(_failure(place.name, str(place), str(error)))
            continue
        hosts = [str(host) for host in report["hosts"]]
        for text in _outdated(place, age, max_age):
            summary["findings"].append(_failure(", ".join(hosts), str(place), text))
        summary["check"] = summary["check"] and bool(report.get("check"))
        summary["hosts"] = sorted({*summary["hosts"], *hosts})
        summary["findings"] += report["findings"]
        summary["unread"] += [finding_id(finding) for finding in json_objects(report.get("unread"))]
        summary["unchanged"] += _unchanged(report)
    for host in sorted(set(expected) - set(summary["hosts"])):
        text = "is in no report; check that its run has ended, and the folder of its report"
        summary["findings"].append(_failure(host, host, text, kind="host"))
    return summary


def _outdated(place: Path, age: timedelta, max_age: timedelta | None) -> Iterator[str]:
    """Yield the reasons why a report is not the current one."""
    if max_age is not None and age > max_age:
        yield f"is {_duration(age)} old, the limit is {_duration(max_age)}; run drift again"
    if ((place.parent if place.is_file() else place) / RUNNING).exists():
        yield (
            "is of an earlier run: the last run has begun, but has not ended; wait for it, or run"
            " drift again if it was interrupted"
        )


def _read(place: Path) -> dict[str, Any]:
    try:
        file = place if place.is_file() else place / _FILE
        report = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise _UnusableError(f"has no {_FILE}; check that its run ended") from None
    except OSError as error:
        raise _UnusableError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise _UnusableError("cannot be read: it is not JSON; run drift again") from None
    if isinstance(report, dict) and report.get("format", FORMAT) != FORMAT:
        found = str(report["format"])[:20]
        raise _UnusableError(
            f"has format {found}, but this release reads format {FORMAT}; use the same release of"
            " the collection for all runs"
        )
    if not _is_report(report):
        raise _UnusableError("cannot be read: it is not a report; run drift again")
    return {**report, "findings": [_finding(finding) for finding in report["findings"]]}


def _is_report(report: Any) -> bool:
    strings = set(KEYS) - {"before", "after", *_MORE}
    return (
        isinstance(report, dict)
        and report.get("format") == FORMAT
        and isinstance(report.get("hosts"), list)
        and isinstance(report.get("findings"), list)
        and isinstance(report.get("counts"), dict)
        and _is_count(report["counts"].get("ok"))
        and all(
            isinstance(finding, Mapping)
            and all(isinstance(finding.get(key), str) for key in strings)
            and finding["action"] in _STATUSES.get(finding["status"], ())
            for finding in report["findings"]
        )
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    keys = [key for key in (*KEYS, *_MORE) if key in finding or key not in _MORE]
    found = {key: finding.get(key) for key in keys}
    if not _is_count(found.get("not_compared", 0)):
        del found["not_compared"]
    return found


def _time(report: Mapping[str, Any]) -> datetime:
    try:
        return datetime.strptime(str(report.get("finished")), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise _UnusableError("cannot be read: 'finished' is not a time; run drift again") from None


def _unchanged(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the number of unchanged objects of each server.

    Reports of release 1.0.0 have only the sum.
    """
    rows = report.get("servers")
    if not isinstance(rows, list):
        hosts = ", ".join(map(str, report["hosts"]))
        rows = [{"service": "", "server": "", "host": hosts, "ok": report["counts"]["ok"]}]
    for row in rows:
        if isinstance(row, Mapping) and _is_count(row.get("ok")) and row["ok"]:
            yield {
                **{key: str(row.get(key) or "") for key in ("service", "server", "host")},
                "ok": row["ok"],
            }


def _failure(host: str, name: str, text: str, *, kind: str = "report") -> dict[str, Any]:
    finding = dict.fromkeys((key for key in KEYS if key not in _MORE), "")
    finding |= {"host": host, "kind": kind, "name": name, "action": "none", "status": "failed"}
    finding["text"] = f"{kind} {name}: {text}"
    return {**finding, "before": None, "after": None}


def _duration(age: timedelta) -> str:
    """Format a duration as in `summary_max_age`, for example `26h`."""
    minutes = int(age.total_seconds() // 60)
    if minutes >= 2 * 24 * 60:
        return f"{minutes // (24 * 60)}d"
    return f"{minutes // 60}h" if minutes >= 2 * 60 else f"{minutes}m"
