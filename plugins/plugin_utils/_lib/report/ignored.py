# SPDX-License-Identifier: GPL-3.0-or-later
"""Read `drift_ignore`, the list of accepted differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ....module_utils._lib.core.globs import matcher
from ..sentence_error import SentenceError, did_you_mean

_PATTERNS = ("id", "service", "server", "kind", "name")
_KEYS = (*_PATTERNS, "until", "reason")


class IgnoreError(SentenceError):
    """An entry of `drift_ignore` is invalid. The message names the entry."""


@dataclass(frozen=True)
class Ignored:
    """An entry of `drift_ignore`.

    :param patterns: glob patterns by key of a finding
    :param until: last day on which the entry is active, `None` for no end
    """

    patterns: Mapping[str, str]
    until: date | None
    reason: str

    def matches(self, finding: Mapping[str, Any]) -> bool:
        """Return whether all patterns match a finding."""
        return all(
            matcher(pattern)(str(finding.get(key) or "")) for key, pattern in self.patterns.items()
        )

    def warning(self, today: date) -> str:
        """Return a warning if the entry has expired or matches every finding, else ""."""
        shown = ", ".join(f"{key}: {pattern}" for key, pattern in self.patterns.items())
        if self.until is not None and self.until < today:
            return (
                f"drift_ignore: the entry with {shown} expired on {self.until}: remove or renew it"
            )
        if all(set(pattern) <= set("*?/") for pattern in self.patterns.values()):
            return f"drift_ignore: the entry with {shown} is too broad: it can hide every finding"
        return ""


def parse(entries: Any) -> list[Ignored]:
    """Parse the value of `drift_ignore`.

    :raises IgnoreError: if it is not a list, or an entry is invalid
    """
    if entries in (None, "", []):
        return []
    if isinstance(entries, str | Mapping) or not isinstance(entries, Sequence):
        raise IgnoreError("drift_ignore must be a list: write each entry as '- name: a pattern'")
    return [_entry(number, entry) for number, entry in enumerate(entries)]


def active(entries: Sequence[Ignored], today: date) -> list[Ignored]:
    """Return the entries that have not expired."""
    return [entry for entry in entries if entry.until is None or entry.until >= today]


def warnings(entries: Sequence[Ignored], today: date) -> Iterator[str]:
    """Yield a warning for each entry that has expired or is too broad."""
    yield from filter(None, (entry.warning(today) for entry in entries))


def _entry(number: int, entry: Any) -> Ignored:
    place = f"drift_ignore[{number}]"
    if not isinstance(entry, Mapping):
        raise IgnoreError(f"{place} is not a mapping: write the pattern as 'name: a pattern'")
    for key in entry:
        if key not in _KEYS:
            hint = did_you_mean(str(key), _KEYS, f": its keys are {', '.join(_KEYS)}")
            raise IgnoreError(f"{place} has the unknown key {key}{hint}")
    patterns = {key: str(entry[key]) for key in _PATTERNS if entry.get(key) not in (None, "")}
    if not patterns:
        raise IgnoreError(f"{place} has no pattern: set at least one of {', '.join(_PATTERNS)}")
    return Ignored(patterns, _day(place, entry.get("until")), str(entry.get("reason") or ""))


def _day(place: str, value: Any) -> date | None:
    if value in (None, ""):
        return None
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        wanted = "write the last day as 2026-12-31"
        raise IgnoreError(f"{place}.until is not a date: '{value}'; {wanted}") from None
