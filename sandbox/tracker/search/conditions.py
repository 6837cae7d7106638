# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate a parsed query: semantic errors, matching issues and their order [tracker-32].

Server facts [tracker-10]: unknown fields and values are semantic errors, a 400. With
`validateQuery=warn` they are warnings, and the clause matches no issue.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from sandbox.tracker.fields.markup import as_markup
from sandbox.tracker.search.jql import And, Clause, Node, Not, Operand, Or, OrderTerm, Query
from sandbox.tracker.visible import LISTS, VisibleData, issue_number, milliseconds

Issue = dict[str, Any]

_ALIASES = {
    "issue": "key",
    "issuekey": "key",
    "id": "key",
    "type": "issuetype",
    "createddate": "created",
    "updateddate": "updated",
}
_NAMED = ("project", "status", "statuscategory", "issuetype", "resolution", "priority", *LISTS)
_PEOPLE = ("assignee", "reporter")
_TEXTS = ("summary", "description", "text")
_DATES = ("created", "updated")
_EQUALITY = ("=", "!=", "in", "not in", "is", "is not")
_ORDERED = ("<", "<=", ">", ">=")
_OPERATORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_NAMED, *_PEOPLE, "labels"), _EQUALITY),
    **dict.fromkeys(("key", *_DATES), _EQUALITY + _ORDERED),
    **dict.fromkeys(_TEXTS, ("~", "!~", "is", "is not")),
}
_PERIOD = re.compile(r"\s*[+-]?\d+[wdhm](\s*\d+[wdhm])*\s*")
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
_DATE_FORMATS = ("%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M", "%Y-%m-%d", "%Y/%m/%d")


def field_of(name: str) -> str:
    """Return the field for a name or alias, ignoring case."""
    lowered = name.lower()
    return _ALIASES.get(lowered, lowered)


def has_unique_order(query: Query) -> bool:
    """Return whether the order of a query is unique, so that no page loses issues [tracker-9]."""
    return any(field_of(term.field) == "key" for term in query.order)


class Conditions:
    """Evaluate queries for the data that an account can see."""

    def __init__(self, visible: VisibleData) -> None:
        self.visible = visible

    # -- semantic errors ---------------------------------------------------------------------

    def problems(self, query: Query) -> list[str]:
        """Return the server's messages for unknown fields, unknown values and wrong operators."""
        found: list[str] = []
        for clause in _clauses(query.where):
            found += self._problems_of(clause)
        for term in query.order:
            if field_of(term.field) not in _OPERATORS or field_of(term.field) == "text":
                found.append(
                    f"Not able to sort using field '{term.field}' because it does not exist "
                    "or is not sortable."
                )
        return found

    def _problems_of(self, clause: Clause) -> list[str]:
        name = field_of(clause.field)
        if name not in _OPERATORS:
            return [
                f"Field '{clause.field}' does not exist or you do not have permission to view it."
            ]
        if clause.operator not in _OPERATORS[name]:
            return [
                f"The operator '{clause.operator}' is not supported by the '{clause.field}' field."
            ]
        if clause.operand.kind == "empty":
            return []
        if clause.operand.kind == "function":
            return self._problems_of_function(clause, name)
        return [
            problem
            for value in clause.operand.values
            if (problem := self._problem_of_value(clause.field, name, value)) is not None
        ]

    def _problems_of_function(self, clause: Clause, name: str) -> list[str]:
        function = clause.operand.values[0]
        if function.lower() == "currentuser" and name in _PEOPLE:
            return []
        if function.lower() == "now" and name in _DATES:
            return []
        return [f"Unable to find JQL function '{function}()'."]

    def _problem_of_value(self, field: str, name: str, value: str) -> str | None:
        if name in _DATES:
            return None if self._date(value) is not None else _bad_date(field, value)
        if name in _TEXTS:
            return _bad_text(field, value)
        if name == "key":
            return self._problem_of_key(field, value)
        known = self.visible.known(name)
        if known is None or value.lower() in known:
            return None
        return f"The value '{value}' does not exist for the field '{field}'."

    def _problem_of_key(self, field: str, value: str) -> str | None:
        if self.visible.find(value) is not None:
            return None
        if value.isdigit():
            return f"A value with ID '{value}' does not exist for the field '{field}'."
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*-\d+", value):
            return f"An issue with key '{value}' does not exist for field '{field}'."
        return f"The issue key '{value}' for field '{field}' is invalid."

    # -- matches -----------------------------------------------------------------------------

    def matches(self, node: Node | None, issue: Issue) -> bool:
        """Return whether an issue matches. A clause with a semantic error never matches."""
        if node is None:
            return True
        if isinstance(node, And):
            return all(self.matches(part, issue) for part in node.parts)
        if isinstance(node, Or):
            return any(self.matches(part, issue) for part in node.parts)
        if isinstance(node, Not):
            return not self.matches(node.part, issue)
        return not self._problems_of(node) and self._fulfils(node, issue)

    def _fulfils(self, clause: Clause, issue: Issue) -> bool:
        name, operator = field_of(clause.field), clause.operator
        empty = self._is_empty(name, issue)
        if clause.operand.kind == "empty":
            return empty == (operator in ("=", "is", "in"))
        if empty:
            # By the vendor's JQL reference, an empty field neither equals nor differs from a value.
            return name == "resolution" and _names_unresolved(clause)
        if operator in ("~", "!~"):
            return _contains(self._text(name, issue), clause.operand.values[0]) == (operator == "~")
        if operator in _ORDERED:
            return self._compares(name, operator, clause.operand, issue)
        return self._equals(name, clause.operand, issue) == (operator in ("=", "in"))

    def _is_empty(self, name: str, issue: Issue) -> bool:
        if name in _TEXTS:
            return self._text(name, issue).strip() == ""
        if name in _DATES or name == "key":
            return False
        return not self.visible.identities(name, issue)

    def _text(self, name: str, issue: Issue) -> str:
        if name == "text":
            return f"{issue['summary']}\n{as_markup(issue.get('description') or '')}"
        return as_markup(issue.get(name) or "")

    def _equals(self, name: str, operand: Operand, issue: Issue) -> bool:
        if name in _DATES:
            date = milliseconds(issue[name])
            return any(date == self._operand_date(operand, value) for value in operand.values)
        if operand.kind == "function":
            return self.visible.user in self.visible.identities(name, issue)
        wanted = {value.lower() for value in operand.values}
        if name == "key":
            named = (self.visible.find(value) for value in wanted)
            return any(found is not None and found["key"] == issue["key"] for found in named)
        return bool(wanted & self.visible.identities(name, issue))

    def _compares(self, name: str, operator: str, operand: Operand, issue: Issue) -> bool:
        value = operand.values[0]
        if name in _DATES:
            limit = self._operand_date(operand, value)
            return _in_order(operator, milliseconds(issue[name]), limit)
        other = self.visible.find(value)
        if other is None:
            raise LookupError(f"an unknown key is a semantic error: {value}")
        if value.isdigit():
            return _in_order(operator, int(issue["id"]), int(other["id"]))
        if issue["project"] != other["project"]:
            return False
        return _in_order(operator, issue_number(issue["key"]), issue_number(other["key"]))

    def _operand_date(self, operand: Operand, value: str) -> int:
        date = self.visible.now_ms if operand.kind == "function" else self._date(value)
        if date is None:
            raise LookupError(f"a date that does not parse is a semantic error: {value}")
        return date

    def _date(self, value: str) -> int | None:
        """Parse a date, or a period before or after now. Return epoch milliseconds, or None."""
        if _PERIOD.fullmatch(value):
            sign = -1 if value.strip().startswith("-") else 1
            parts = re.findall(r"(\d+)([wdhm])", value)
            span = sum(
                (timedelta(**{_UNITS[unit]: int(count)}) for count, unit in parts), timedelta()
            )
            return self.visible.now_ms + sign * int(span.total_seconds() * 1000)
        for date_format in _DATE_FORMATS:
            try:
                parsed = datetime.strptime(value, date_format).replace(tzinfo=timezone.utc)
            except ValueError:
                continue
            return int(parsed.timestamp() * 1000)
        return None

    # -- order -------------------------------------------------------------------------------

    def ordered(self, query: Query, issues: Iterable[Issue], shuffle: int | None) -> list[Issue]:
        """Sort issues by the order of a query, then newest first.

        :param shuffle: seed for a random order of equal issues, as on servers with unstable paging
            [tracker-9]; None means newest first
        """
        result = sorted(issues, key=lambda issue: int(issue["id"]), reverse=True)
        if shuffle is not None:
            random.Random(shuffle).shuffle(result)
        for term in reversed(query.order):
            key = self._sort_key(term)
            if key is not None:
                result.sort(key=key, reverse=term.descending)
        return result

    def _sort_key(self, term: OrderTerm) -> Callable[[Issue], Any] | None:
        name = field_of(term.field)
        if name not in _OPERATORS or name == "text":
            return None
        if name == "key":
            return lambda issue: (issue["project"], issue_number(issue["key"]))
        if name in _DATES:
            return lambda issue: milliseconds(issue[name])
        return lambda issue: self.visible.rank(name, issue)


def _clauses(node: Node | None) -> list[Clause]:
    if node is None:
        return []
    if isinstance(node, Clause):
        return [node]
    if isinstance(node, Not):
        return _clauses(node.part)
    return [clause for part in node.parts for clause in _clauses(part)]


def _names_unresolved(clause: Clause) -> bool:
    values = {value.lower() for value in clause.operand.values}
    return clause.operator in ("=", "in") and "unresolved" in values


def _in_order(operator: str, left: int, right: int) -> bool:
    if operator == "<":
        return left < right
    if operator == "<=":
        return left <= right
    return left > right if operator == ">" else left >= right


def _bad_date(field: str, value: str) -> str:
    return (
        f"Date value '{value}' for field '{field}' is invalid. Valid formats include: "
        "'yyyy/MM/dd HH:mm', 'yyyy-MM-dd HH:mm', 'yyyy/MM/dd', 'yyyy-MM-dd', or a period format "
        "e.g. '-5d', '4w 2d'."
    )


def _bad_text(field: str, value: str) -> str | None:
    if value.strip() == "":
        return f"The field '{field}' does not support searching for an empty string."
    if value.lstrip()[0] in "*?":
        return (
            f"The text query '{value}' for field '{field}' is not allowed to start "
            f"with character '{value.lstrip()[0]}'."
        )
    return None


def _contains(text: str, wanted: str) -> bool:
    """Return whether a text contains all words and quoted phrases of a search string.

    A word that ends with `*` matches the start of a word.
    """
    words = re.findall(r"\w+", text.lower())
    for phrase, word in re.findall(r'"([^"]*)"|(\S+)', wanted.lower()):
        parts = re.findall(r"\w+", phrase or word)
        prefix = word.endswith("*")
        if parts and not _has_sequence(words, parts, prefix):
            return False
    return True


def _has_sequence(words: list[str], parts: list[str], prefix: bool) -> bool:
    for start in range(len(words) - len(parts) + 1):
        window = words[start : start + len(parts)]
        last = window[-1].startswith(parts[-1]) if prefix else window[-1] == parts[-1]
        if last and window[:-1] == parts[:-1]:
            return True
    return False
