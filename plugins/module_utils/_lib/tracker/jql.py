# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse JQL, the tracker's query language: order, times with a UTC offset, quoted values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.errors import invalid

#: Fields with unique values.
_UNIQUE = frozenset({"key", "issuekey", "issue", "id"})
_DIRECTIONS = frozenset({"asc", "desc"})
_TOKEN = re.compile(
    r"""\s+|(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>(?:[^\s"'=!<>~(),&|\\]|\\.)+)|(?P<symbol>.)""",
    re.DOTALL,
)
#: A date with a time and a UTC offset.
_TIME_WITH_OFFSET = re.compile(
    r"\s*(?P<day>\d{4}[-/]\d\d?[-/]\d\d?)[T\s]\s*(?P<time>\d\d?:\d\d)(:\d\d([.,]\d+)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d?(:?\d\d)?)\s*",
    re.IGNORECASE,
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class JqlToken:
    """A token. `kind`: `quoted`, `word` or `symbol`. `text`: without quotation marks."""

    kind: str
    text: str


def _tokens(jql: str) -> Iterator[JqlToken]:
    for found in _TOKEN.finditer(jql):
        kind = found.lastgroup
        if kind is not None:
            text = found[kind]
            yield JqlToken(kind, text[1:-1] if kind == "quoted" else text)


def _order(tokens: list[JqlToken]) -> list[JqlToken] | None:
    """Return the tokens after `ORDER BY`, or None if the query has no order."""
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        words = token.kind == following.kind == "word"
        if words and (token.text.lower(), following.text.lower()) == ("order", "by"):
            return tokens[index + 2 :]
    return None


def _is_term(tokens: list[JqlToken]) -> bool:
    """Return whether the tokens form a term of an order: no symbol is among them."""
    fields = [token for token in tokens if token.kind != "symbol"]
    return len(fields) == len(tokens) and bool(tokens)


def _terms(tokens: list[JqlToken]) -> list[list[JqlToken]]:
    terms: list[list[JqlToken]] = [[]]
    for token in tokens:
        if token == JqlToken("symbol", ","):
            terms.append([])
        else:
            terms[-1].append(token)
    return terms


def require_no_offsets(jql: str) -> None:
    """Raise `invalid` for a time with a UTC offset [tracker-10].

    A text search (`~`, `!~`) compares no times.
    """
    before = ""
    for token in _tokens(jql):
        found = _TIME_WITH_OFFSET.fullmatch(token.text)
        if found is not None and before != "~":
            raise invalid(
                f"the query contains '{token.text}', but the query language knows the time zone of"
                f" the account only: write '{found['day']} {found['time']}' in that time zone, or a"
                " relative time such as '-2h'"
            )
        before = token.text


def with_unique_order(jql: str, most: int | None = None) -> str:
    """Append `key` to the order of a query, unless the order is already unique.

    Without a unique order a server may return an issue on two pages and skip another issue
    [tracker-9]. A query that cannot be parsed stays unchanged, so the server's error message
    matches it.

    :param most: maximum number of terms; an order that has as many stays unchanged
    """
    tokens = list(_tokens(jql))
    if any(token.kind == "symbol" and token.text in "\"'\\" for token in tokens):
        return jql
    order = _order(tokens)
    if order is None:
        return f"{jql.strip()} ORDER BY key".lstrip()
    terms = _terms(order)
    if not all(map(_is_term, terms)) or any(_is_unique(term) for term in terms):
        return jql
    if most is not None and len(terms) >= most:
        return jql
    return f"{jql.rstrip()}, key"


def _is_unique(term: list[JqlToken]) -> bool:
    *field, last = term
    if field and last.kind == "word" and last.text.lower() in _DIRECTIONS:
        last = field.pop()
    return not field and last.text.lower() in _UNIQUE


def quote(text: str) -> str:
    """Quote a string as a single value of a query.

    Backslashes, quotation marks and control characters are escaped. A value can therefore neither
    end the string nor extend the query.
    """
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if unicodedata.category(character) == "Cc":
        return f"\\u{ord(character):04x}"
    if unicodedata.category(character) == "Cs":
        raise invalid(
            "a value of the query contains an unpaired surrogate, which is not a valid character"
        )
    return character
