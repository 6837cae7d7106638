# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether a release has to wait, before its first write [C7]."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ....module_utils._lib.core.errors import ToolchainError, excerpt, invalid, listed, shorten
from ....module_utils._lib.core.times import iso, moment_of, waiting
from ..sentence_error import did_you_mean
from .builds import entries
from .run import Result, Run, mapping

_FREEZE, _HOLD = "release_freeze", "release_hold"
# With a zone: the controller and the team may be in different ones.
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(:\d\d(?:\.\d+)?)? ?(Z|[+-]\d\d:?\d\d)", re.IGNORECASE
)
#: Maximum number of issues in a message.
_SHOWN = 5


@dataclass(frozen=True)
class _Freeze:
    begin: datetime
    end: datetime
    reason: str
    exempt: Collection[str]

    def covers(self, moment: datetime, names: Collection[str]) -> bool:
        """Return whether it stops a release of these names, which are all exempt or none."""
        is_exempt = bool(names) and set(names) <= set(self.exempt)
        return self.begin <= moment < self.end and not is_exempt


def freeze(run: Run) -> Result:
    """Raise `waiting` if an entry of `release_freeze` stops the release now.

    :raises ToolchainError: `invalid` for an entry that cannot be understood, also of another time
    """
    found = [_freeze(f"{_FREEZE}[{place}]", entry) for place, entry in enumerate(_listed(run))]
    names = _released(run)
    moment, reasons = _now(), list[str]()
    # one may begin before another has ended
    while active := [each for each in found if each.covers(moment, names)]:
        for each in active:
            because = f": {each.reason}" if each.reason else ""
            reasons.append(f"releases are frozen since {iso(each.begin)}{because}")
        moment = max(each.end for each in active)
    if reasons:
        raise waiting("; ".join(dict.fromkeys(reasons)), moment)
    return {}


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _listed(run: Run) -> Sequence[Any]:
    given = _given(run, _FREEZE)
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise invalid(
            f"{_FREEZE} must be a list of mappings with from and to, not {excerpt(given)}"
        )
    return given


def _given(run: Run, name: str) -> Any:
    """Return the value of a gate, `None` without one. Raises `invalid` for a blank value: the gate
    would be open although somebody has set it.
    """
    value = run.value(name)
    if _is_blank(run.template(run.variables.get(name)) if value is None else value):
        raise invalid(f"{name} is empty: remove the variable, or set it to a value")
    return value


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _freeze(place: str, entry: Any) -> _Freeze:
    read = _entry(place, entry, ("from", "to", "reason", "except"))
    begin, end = (_time(f"{place}.{name}", read.get(name)) for name in ("from", "to"))
    if begin >= end:
        raise invalid(f"{place}: from must be before to")
    exempt = read.get("except") or []
    if isinstance(exempt, str):
        exempt = exempt.split(",")
    if not isinstance(exempt, list | tuple):
        raise invalid(f"{place}.except must be a list of names, not {excerpt(exempt)}")
    names = [_text(f"{place}.except[{number}]", name) for number, name in enumerate(exempt)]
    return _Freeze(begin, end, _reason(place, read), names)


def _entry(place: str, entry: Any, known: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise invalid(f"{place} must be a mapping of {', '.join(known)}, not {excerpt(entry)}")
    for name in entry:
        if name not in known:
            hint = did_you_mean(str(name), known, f": write {', '.join(known)}")
            raise invalid(f"{place} has the unknown key {excerpt(name)}{hint}")
    return entry


def _time(place: str, value: Any) -> datetime:
    """Parse a time with a zone. YAML reads such a time without quotes as a datetime, too."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    moment = moment_of(f"{found[1]}{found[2] or ':00'}{found[3]}") if found else None
    if moment is None:
        raise invalid(
            f"{place} is {excerpt(value)}, but must be a time with a zone, such as"
            " '2026-12-24T18:00:00+01:00' in quotes"
        )
    return moment


def _reason(place: str, entry: Mapping[str, Any]) -> str:
    return _text(f"{place}.reason", entry["reason"]) if entry.get("reason") is not None else ""


def _text(place: str, value: Any) -> str:
    if isinstance(value, float | bool) or not isinstance(value, str | int) or _is_blank(value):
        raise invalid(f"{place} must be a string with content, not {excerpt(value)}")
    return str(value).strip()


def _released(run: Run) -> set[str]:
    """Return the names of builds, images and bundles that the run releases. The name of a result of
    a later task is "", which nothing exempts.
    """
    published = run.variables.get("release_build_publish")
    published = published if isinstance(published, Mapping) else run.evaluated(published)
    name = run.evaluated(mapping(published).get("build_name")) if published else None
    found = [name] if published else []
    for variable, option in (
        ("release_builds", "build_name"),
        ("release_images", "image"),
        ("release_bundles", "name"),
    ):
        found += [entry.get(option) for entry in entries(run, variable)]
    return {str(name or "") for name in found}


def holds(run: Run) -> Result:
    """Return the entries of `release_hold`: dicts of `jql` and `reason`."""
    given = _given(run, _HOLD)
    if given is None:
        return {"holds": []}
    found = []
    for place, entry in enumerate(given if isinstance(given, list | tuple) else [given]):
        name = f"{_HOLD}[{place}]" if isinstance(given, list | tuple) else _HOLD
        read = entry if isinstance(entry, Mapping) else {"jql": entry}
        read = _entry(name, read, ("jql", "reason"))
        jql = _text(f"{name}.jql", read.get("jql"))
        found.append({"jql": jql, "reason": _reason(name, read)})
    return {"holds": found}


def held(run: Run, holds: Sequence[Mapping[str, Any]], searches: Sequence[Any]) -> Result:
    """Raise `waiting` if a search of `release_hold` has found issues.

    :param searches: results of `jql_search`, in the order of `holds`
    :raises ToolchainError: `protocol` if a search does not show that there are none
    """
    reasons = []
    if len(searches) != len(holds):
        raise ToolchainError("protocol", f"{_HOLD}: a search has no result")
    for hold, search in zip(holds, searches, strict=True):
        issues = search.get("issues")
        if not isinstance(issues, list) or (
            not issues and (search.get("warnings") or search.get("complete") is not True)
        ):
            warnings = "; ".join(map(str, search.get("warnings") or ["its result is incomplete"]))
            raise ToolchainError(
                "protocol",
                f"{_HOLD}: it is unknown whether issues match {hold['jql']!r}: {shorten(warnings)}",
            )
        if issues:
            because = f": {hold['reason']}" if hold["reason"] else ""
            reasons.append(f"{_issues(issues)} stop the release until no issue matches{because}")
    if reasons:
        raise waiting("; ".join(reasons), None)
    return {}


def _issues(issues: Sequence[Mapping[str, Any]]) -> str:
    """Return the keys, summaries and ages of issues for a message."""
    texts = []
    for issue in issues:
        fields = mapping(issue.get("fields"))
        summary = f" '{shorten(str(fields['summary']), 80)}'" if fields.get("summary") else ""
        since = iso(moment_of(fields.get("created")))
        texts.append(f"{issue.get('key')}{summary}{f' (since {since})' if since else ''}")
    return listed(texts, _SHOWN)


def waits(run: Run, result: Mapping[str, Any]) -> Result:
    """Return why a task waits, as `waiting`: a dict of `reason` and `until`, or {}.

    :param result: the result of the task, which may be a loop
    """
    found = [
        item["waiting"]
        for item in [result, *(result.get("results") or ())]
        if isinstance(item, Mapping) and item.get("failed") and item.get("waiting")
    ]
    # another item may have failed in earnest
    kinds = {
        mapping(item.get("error")).get("kind")
        for item in result.get("results") or ()
        if isinstance(item, Mapping) and item.get("failed")
    }
    if not found or not kinds <= {"waiting"}:
        return {"waiting": {}}
    return {"waiting": max(found, key=lambda each: str(each["until"] or ""))}
