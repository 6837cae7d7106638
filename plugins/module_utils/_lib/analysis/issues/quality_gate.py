# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a quality gate, which limits the number of issues of some kinds. Sends no requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from ...core.errors import ToolchainError, invalid, quoted
from ...core.globs import crossing, matcher
from ...core.module.typed_options import NotNegative, Option
from ..responses import Record
from .issue_details import STATUSES
from .issue_search import count

#: Members of a threshold. A list of values contains alternatives.
_MEMBERS = ("severity", "state", "status", "code")
#: Default names of severities by number. A project can change only the names [analysis-15].
_SEVERITIES = {
    "1": "Critical",
    "2": "Error",
    "3": "Warning",
    "4": "Review",
    **{str(number): f"Severity {number}" for number in range(5, 11)},
}
#: Default values on servers [analysis-15].
_DEFAULT_VALUES: dict[str, tuple[str, ...]] = {
    "severity": (*_SEVERITIES.values(), *_SEVERITIES),
    "state": ("New", "Existing", "Fixed"),
    "status": STATUSES,
}
_SHOWN = ("id", "code", "severity", "state", "status", "owner", "file", "line", "message", "url")


_Values = Annotated["list[str] | None", Option(empty=False)]


@dataclass(frozen=True)
class ThresholdOptions:
    """Entry of `thresholds`: alternative values per member, and the maximum number of issues."""

    severity: _Values = None
    state: _Values = None
    status: _Values = None
    code: _Values = None
    max: NotNegative = 0

    def members(self) -> dict[str, list[str]]:
        """Return the alternative values of the members that are set."""
        lists = {name: getattr(self, name) for name in _MEMBERS}
        return {name: texts for name, texts in lists.items() if texts is not None}


@dataclass
class Threshold:
    """A kind of issues with their maximum number, and the issues that were counted.

    :param members: alternative values per member, as the user wrote them
    :param count: number of matching issues
    :param offenders: first matching issues
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
        """Return whether the issue counts. A member that the issue lacks counts as a match."""
        for name, patterns in self.patterns.items():
            used = _values(issue, name)
            if used and not any(
                _matcher_of(pattern)(value) for value in used for pattern in patterns
            ):
                return False
        return True

    @property
    def words(self) -> str:
        """Return the count for messages: `3 issues with severity Critical (max 0)`."""
        named = [f"{name} {' or '.join(texts)}" for name, texts in self.members.items()]
        kind = f" with {' and '.join(named)}" if named else ""
        return f"{self.count} issue{'' if self.count == 1 else 's'}{kind} (max {self.max})"

    def as_dict(self) -> dict[str, Any]:
        """Return the threshold with `count` and `exceeded`."""
        return {**self.members, "max": self.max, "count": self.count, "exceeded": self.exceeded}


def thresholds(options: Iterable[ThresholdOptions]) -> list[Threshold]:
    """Return the thresholds of the options."""
    return [Threshold(option.members(), option.max) for option in options]


@dataclass(frozen=True)
class Word:
    """A value in a threshold.

    :param place: its option, for example `thresholds[0].state[1]`
    :param name: member of the threshold
    :param used: values that issues of the project have
    """

    place: str
    name: str
    text: str
    used: tuple[str, ...] = ()

    def is_among(self, words: Iterable[str]) -> bool:
        """Return whether the value, which may have wildcards, matches a lower-case string."""
        return any(map(_matcher_of(self.text.lower()), words))

    @property
    def refusal(self) -> ToolchainError:
        """Return the `invalid` error for an unknown value."""
        default = _DEFAULT_VALUES[self.name]
        lower = [value.lower() for value in default]
        labels = sorted(value for value in self.used if value.lower() not in lower)
        return invalid(
            f"{self.place} is '{self.text}', but this {self.name} does not exist in the project:"
            f" use one of {quoted((*labels, *default), len(labels) + len(default))}"
        )


def unknown(thresholds: Iterable[Threshold], issues: Iterable[Record]) -> list[Word]:
    """Return the values in thresholds that are neither documented nor used by an issue."""
    words = [
        Word(f"thresholds[{number}].{name}[{index}]", name, text)
        for number, threshold in enumerate(thresholds)
        for name, texts in threshold.members.items()
        for index, text in enumerate(texts)
    ]
    undocumented = [
        word
        for word in words
        if not word.is_among(value.lower() for value in _DEFAULT_VALUES.get(word.name, ()))
    ]
    if not undocumented:
        return []
    used: dict[str, set[str]] = {name: set() for name in _MEMBERS}
    for issue in issues:
        for name in _MEMBERS:
            used[name].update(_labels(issue, name))
    return [
        replace(word, used=tuple(used[word.name]))
        for word in undocumented
        if not word.is_among(label.lower() for label in used[word.name])
    ]


def validate(issues: Iterable[Record], thresholds: Sequence[Threshold], keep: int) -> None:
    """Count the issues that match the thresholds.

    :param keep: maximum number of issues to store per threshold
    """
    for issue in issues:
        for threshold in thresholds:
            if threshold.matches(issue):
                threshold.count += count(issue)
                if len(threshold.offenders) < keep:
                    threshold.offenders.append(issue)


def offenders(thresholds: Iterable[Threshold], keep: int) -> list[dict[str, Any]]:
    """Return the first issues of the exceeded thresholds, without duplicates.

    :param keep: maximum number of issues to return
    """
    found = {
        id(issue): issue
        for threshold in thresholds
        if threshold.exceeded
        for issue in threshold.offenders
    }
    return [
        {name: issue[name] for name in _SHOWN if name in issue}
        for issue in list(found.values())[:keep]
    ]


def line(offender: Mapping[str, Any]) -> str:
    """Return id, code, file and URL of an issue for messages."""
    names = ("code", "file", "url")
    parts = [f"#{offender.get('id')}", *(str(offender[name]) for name in names if name in offender)]
    return " ".join(parts)


def _values(issue: Mapping[str, Any], name: str) -> list[str]:
    """Return the lower-case values of a member of an issue. A severity has names and a number."""
    used = _labels(issue, name)
    if name == "severity" and issue.get("severityCode") is not None:
        number = str(issue["severityCode"])
        used += [number, _SEVERITIES.get(number, number)]
    return [value.lower() for value in used]


def _labels(issue: Mapping[str, Any], name: str) -> list[str]:
    """Return the value of a member as the project names it, or nothing if the issue lacks it."""
    return [] if issue.get(name) is None else [str(issue[name])]


def _matcher_of(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches strings with a pattern. `*` also matches slashes."""
    return matcher(crossing(pattern))
