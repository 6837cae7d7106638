# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply a quality gate, a maximum number of issues by kind, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import ToolchainError, invalid
from ...core.paths.globs import crossing, matcher
from ..responses import Record
from .issue_details import STATUSES
from .issue_search import count

#: Members of a threshold; a list has alternatives.
_MEMBERS = ("severity", "state", "status", "code")
#: Names of severities can be changed per project, their numbers cannot [analysis-15].
_SEVERITIES = {"critical": "1", "error": "2", "warning": "3", "review": "4"}
#: Default names of servers [analysis-15].
_WRITTEN: dict[str, tuple[str, ...]] = {
    "severity": ("Critical", "Error", "Warning", "Review", *_SEVERITIES.values()),
    "state": ("New", "Existing", "Fixed"),
    "status": STATUSES,
}
_SHOWN = ("id", "code", "severity", "state", "status", "owner", "file", "line", "message", "url")


@dataclass(frozen=True)
class ThresholdOptions:
    """Entry of `thresholds`: alternatives per member, and the maximum number of issues."""

    severity: list[str] | None = None
    state: list[str] | None = None
    status: list[str] | None = None
    code: list[str] | None = None
    max: int = 0

    def members(self) -> dict[str, list[str]]:
        """Return the alternatives of the given members."""
        lists = {name: getattr(self, name) for name in _MEMBERS}
        return {name: texts for name, texts in lists.items() if texts is not None}


@dataclass
class Threshold:
    """At most `max` issues of a kind, and their number.

    :param members: the alternatives per member, as the user wrote them
    """

    members: Mapping[str, Sequence[str]]
    max: int
    count: int = 0
    offenders: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.patterns = {
            name: [text.lower() for text in texts] for name, texts in self.members.items()
        }

    @property
    def exceeded(self) -> bool:
        return self.count > self.max

    def matches(self, issue: Mapping[str, Any]) -> bool:
        """Return whether the issue counts; an issue that lacks the member counts, too."""
        for name, among in self.patterns.items():
            shown = _values(issue, name)
            if shown and not any(_test(pattern)(one) for one in shown for pattern in among):
                return False
        return True

    @property
    def words(self) -> str:
        """Return the count as `3 issues with severity Critical and state New (max 0)`."""
        named = [f"{name} {' or '.join(texts)}" for name, texts in self.members.items()]
        kind = f" with {' and '.join(named)}" if named else ""
        return f"{self.count} issue{'' if self.count == 1 else 's'}{kind} (max {self.max})"

    def as_dict(self) -> dict[str, Any]:
        """Return the threshold with `count` and `exceeded`."""
        return {**self.members, "max": self.max, "count": self.count, "exceeded": self.exceeded}


def thresholds(options: Iterable[ThresholdOptions]) -> list[Threshold]:
    """Return the thresholds of the options. Raises `invalid` for a threshold that cannot be
    exceeded.
    """
    found = []
    for option in options:
        members = option.members()
        for name, texts in members.items():
            if not texts:
                raise invalid(f"{name} of a threshold is empty: omit it to count all issues")
        if option.max < 0:
            raise invalid(f"max of a threshold is {option.max}, but must be at least 0")
        found.append(Threshold(members, option.max))
    return found


@dataclass(frozen=True)
class Word:
    """A word of a threshold, and its position."""

    place: str
    name: str
    text: str

    def is_among(self, words: Iterable[str]) -> bool:
        """Return whether the word equals a word in a set of lower-case words."""
        return any(map(_test(self.text.lower()), words))

    @property
    def refusal(self) -> ToolchainError:
        """Return the `invalid` error for an unknown word: a typo would let the gate pass."""
        known = ", ".join(_WRITTEN[self.name])
        return invalid(
            f"{self.place} is '{self.text}', but neither the project nor a default server has this"
            f" {self.name}: use one of {known}"
        )


def unknown(judged: Iterable[Threshold], issues: Iterable[Record]) -> list[Word]:
    """Return the words that are neither documented nor used by an issue."""
    words = [
        Word(f"thresholds[{number}].{name}[{at}]", name, text)
        for number, each in enumerate(judged)
        for name, texts in each.members.items()
        for at, text in enumerate(texts)
    ]
    left = [
        word
        for word in words
        if not word.is_among(one.lower() for one in _WRITTEN.get(word.name, ()))
    ]
    if not left:
        return []
    shown: dict[str, set[str]] = {name: set() for name in _MEMBERS}
    for issue in issues:
        for name in _MEMBERS:
            shown[name].update(_values(issue, name))
    return [word for word in left if not word.is_among(shown[word.name])]


def validate(issues: Iterable[Record], judged: Sequence[Threshold], keep: int) -> None:
    """Count the issues.

    :param keep: maximum number of offenders to keep per threshold
    """
    for issue in issues:
        for each in judged:
            if each.matches(issue):
                each.count += count(issue)
                if len(each.offenders) < keep:
                    each.offenders.append(issue)


def offenders(judged: Iterable[Threshold], keep: int) -> list[dict[str, Any]]:
    """Return the first issues of the exceeded kinds, without duplicates."""
    found = {id(issue): issue for each in judged if each.exceeded for issue in each.offenders}
    return [
        {name: issue[name] for name in _SHOWN if name in issue}
        for issue in list(found.values())[:keep]
    ]


def line(offender: Mapping[str, Any]) -> str:
    """Return an offender as a string: id, code, file and link."""
    names = ("code", "file", "url")
    parts = [f"#{offender.get('id')}", *(str(offender[name]) for name in names if name in offender)]
    return " ".join(parts)


def _values(issue: Mapping[str, Any], name: str) -> list[str]:
    """Return the names of a member of an issue; a severity by its name and its number."""
    shown = [str(issue[name]).lower()] if issue.get(name) is not None else []
    if name == "severity" and issue.get("severityCode") is not None:
        number = str(issue["severityCode"])
        default = [word for word, code in _SEVERITIES.items() if code == number]
        return [*shown, number, *default]
    return shown


def _test(pattern: str) -> Callable[[str], bool]:
    """Return a test for words. They are not paths: `*` also matches slashes."""
    return matcher(crossing(pattern))
