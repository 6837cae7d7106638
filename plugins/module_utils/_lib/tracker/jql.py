# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and build JQL, the tracker's query language."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import ToolchainError, excerpt, invalid
from ..core.module.input_check import Place, split_list
from ..core.module.input_check import text as text_of

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


def _terms_of_order(tokens: list[JqlToken]) -> list[list[JqlToken]] | None:
    """Return the terms after `ORDER BY`, or None if the query has no order."""
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        words = token.kind == following.kind == "word"
        if words and (token.text.lower(), following.text.lower()) == ("order", "by"):
            terms: list[list[JqlToken]] = [[]]
            for part in tokens[index + 2 :]:
                if part == JqlToken("symbol", ","):
                    terms.append([])
                else:
                    terms[-1].append(part)
            return terms
    return None


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
    terms = _terms_of_order(tokens)
    if terms is None:
        return f"{jql.strip()} ORDER BY key".lstrip()
    for term in terms:
        if not term or any(token.kind == "symbol" for token in term):
            return jql  # the server will reject the order
        last = term[-1]
        has_direction = last.kind == "word" and last.text.lower() in _DIRECTIONS
        field = term[:-1] if len(term) > 1 and has_direction else term
        if len(field) == 1 and field[0].text.lower() in _UNIQUE:
            return jql
    if most is not None and len(terms) >= most:
        return jql
    return f"{jql.rstrip()}, key"


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


# -- building ----------------------------------------------------------------------------------

_OPERATORS = ("=", "!=", "<=", ">=", "<", ">", "!~", "~", "not in", "in", "is not", "is")
_NEGATIONS = frozenset({"!=", "not in", "is not"})
_EQUALITIES = frozenset({"=", "in", "is"}) | _NEGATIONS
_KEY = re.compile(
    r"(?P<field>.+?)(?:\s*(?P<symbol>!=|<=|>=|!~|[=<>~])|\s+(?P<word>not\s+in|in|is\s+not|is))",
    re.IGNORECASE | re.DOTALL,
)
#: Operators of other languages and common typos, with the intended operator.
_MISTYPED = {
    **dict.fromkeys(("==", "===", "eq", "equals"), "="),
    **dict.fromkeys(("<>", "!==", "=!", "><", "ne", "!"), "!="),
    **dict.fromkeys(("=<", "lte", "le"), "<="),
    **dict.fromkeys(("=>", "gte", "ge"), ">="),
    **dict.fromkeys(("=~", "~=", "~~", "like", "contains"), "~"),
    **dict.fromkeys(("~!", "not like"), "!~"),
    **dict.fromkeys(("notin", "not_in", "not-in", "!in", "nin"), "not in"),
    **dict.fromkeys(("isnot", "is_not", "is-not", "!is"), "is not"),
    "lt": "<",
    "gt": ">",
    "not": "!=",
}
_SIGN_INSIDE = re.compile(r"[=<>~!]+\s*[^\s=<>~!]")
_HISTORY = ("was", "was not", "was in", "was not in", "changed")
#: Symbols after a field.
_SIGNS = re.compile(r"[=<>~!]+(?:in|is)?$", re.IGNORECASE)
_MAX_WORDS = 3
_PLAIN_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]*|cf\[[0-9]+\]")
_FUNCTION = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_JOINS = ("and", "or")
#: Reserved words of the query language: a field with such a name is quoted.
RESERVED_WORDS = frozenset(
    """
    a abort access add after alias all alter and any are as asc audit avg be before begin between
    boolean break but by byte catch cf changed char character check checkpoint collate collation
    column commit connect continue count create current date decimal declare decrement default
    defaults define delete delimiter desc difference distinct divide do double drop else empty
    encoding end equals escape exclusive exec execute exists explain false fetch file field first
    float for from function go goto grant greater group having identified if immediate in increment
    index initial inner inout input insert int integer intersect intersection into is isempty
    isnull it join last left less like limit lock long max min minus mode modify modulo more
    multiply next no noaudit not notin nowait null number object of on option or order outer output
    power previous prior privileges public raise raw remainder remove rename resource return
    returns revoke right row rowid rownum rows select session set share size sqrt start strict
    string subtract such sum synonym table that the their then there these they this to trans
    transaction trigger true uid union unique update user validate values view was when whenever
    where while will with
    """.split()  # noqa: SIM905 - a list of two hundred literals would be longer than the page
)


def build(clauses: Any, *, join: str = "and", order_by: Any = None) -> str:
    """Return the query for these clauses.

    :param clauses: a query string, a dict, or a list of both. A dict has values by field, with an
        optional operator after the field, or the keys `field`, `operator` and `value`, or clauses
        under `and`, `or` or `not`
    :param join: `and` or `or` between clauses of a dict or list
    :param order_by: fields, optionally followed by `ASC` or `DESC`: a list, or a comma-separated
        string
    """
    if join not in _JOINS:
        raise invalid(f"clauses of a query are joined with 'and' or 'or', not with '{join}'")
    parts = _parts(clauses, join)
    if not parts:
        raise invalid(
            "the query has no clause, so it would match every issue: add at least one clause"
        )
    query = f" {join.upper()} ".join(parts)
    is_text = isinstance(order_by, str)
    terms = split_list(order_by, at_commas=True) if is_text else list(order_by or [])
    order = []
    for term in filter(None, (str(term).strip() for term in terms)):
        field, _blank, direction = term.rpartition(" ")
        if field and direction.lower() in _DIRECTIONS:
            order.append(f"{_field(field.strip())} {direction.upper()}")
        else:
            order.append(_field(term))
    if order:
        query = f"{query} ORDER BY {', '.join(order)}".lstrip()
    require_no_offsets(query)
    return query


def _parts(clauses: Any, join: str) -> list[str]:
    """Return the clauses as query strings."""
    if isinstance(clauses, str):
        return [text_of(clauses, Place("a clause of the query"))]
    if isinstance(clauses, Mapping):
        if "field" in clauses and set(clauses) <= {"field", "operator", "value"}:
            operator = " ".join(str(clauses.get("operator", "=")).lower().split())
            if operator not in _OPERATORS:
                raise _no_operator(operator, "operator")
            return [_comparison(str(clauses["field"]), operator, clauses.get("value"))]
        return [_entry(str(key), value) for key, value in clauses.items()]
    if isinstance(clauses, Sequence):
        return [_element(clause, join) for clause in clauses]
    raise invalid(
        f"the clauses of a query must be a dict, a list or a string, not {excerpt(clauses)}"
    )


def _element(clause: Any, join: str) -> str:
    """Return an element of a list as a query string, in parentheses if necessary."""
    parts = _parts(clause, "and")
    if not parts:
        raise invalid("an entry of the query has no clause: remove it, or add a clause")
    joined = " AND ".join(parts)
    bare = isinstance(clause, Mapping) and (len(parts) == 1 or join == "and")
    return joined if bare else f"({joined})"


def _entry(key: str, value: Any) -> str:
    word = key.strip().lower()
    if word in (*_JOINS, "not"):
        inner = _parts(value, "or" if word == "or" else "and")
        if not inner:
            raise invalid(f"'{word}' has no clause: add at least one clause")
        text = f"({(' OR ' if word == 'or' else ' AND ').join(inner)})"
        return f"NOT {text}" if word == "not" else text
    given = key.strip()
    signs, words = _SIGNS.search(given), given.lower().split()
    counts = range(min(_MAX_WORDS, len(words) - 1), 0, -1)
    endings = (" ".join(words[-count:]) for count in counts)
    known = {*_OPERATORS, *_MISTYPED, *_HISTORY}
    operator = next((ending for ending in endings if ending in known), None)
    if signs is not None:
        operator = signs[0].lower()
    if operator is not None and operator not in _OPERATORS:
        raise _no_operator(operator, f"'{given}'")
    if _SIGN_INSIDE.search(given) is not None:
        raise invalid(
            f"'{given}' is not a field followed by an operator: write a key such as 'created >=',"
            " or set the keys 'field', 'operator' and 'value'"
        )
    found = _KEY.fullmatch(given)
    if found is None:
        return _comparison(given, "=", value)
    operator = found["symbol"] or " ".join(found["word"].lower().split())
    return _comparison(found["field"], operator, value)


def _no_operator(operator: str, place: str) -> ToolchainError:
    """Return the error for an unknown operator, with the intended operator if known."""
    message = f"{place}: '{operator}' is not an operator of the query language"
    if operator in _HISTORY:
        message = f"{place}: write a clause with '{operator}' as a string, in a list of clauses"
    elif operator in _MISTYPED:
        message = f"{message}: write '{_MISTYPED[operator]}'"
    else:
        message = f"{message}, which has {' '.join(_OPERATORS)}"
    return invalid(message)


def _comparison(name: str, operator: str, value: Any) -> str:
    field, negated = _field(name), operator in _NEGATIONS
    is_word = isinstance(value, str) and value.upper() in ("EMPTY", "NULL")
    if value is None or (is_word and operator in ("is", "is not")):
        _allow(name, operator, "nothing")
        return f"{field} {'is not' if negated else 'is'} EMPTY"
    if isinstance(value, Sequence) and not isinstance(value, str):
        _allow(name, operator, "a list")
        return _membership(name, list(value), negated)
    if operator in ("in", "not in"):
        return _membership(name, [value], negated)
    if operator in ("is", "is not"):
        operator = "!=" if negated else "="
    return f"{field} {operator} {_value(value, Place(name))}"


def _allow(name: str, operator: str, operand: str) -> None:
    if operator not in _EQUALITIES:
        raise invalid(f"the field '{name}' cannot be compared with {operand} using '{operator}'")


def _membership(name: str, values: list[Any], negated: bool) -> str:
    """Return a clause with a list of values. None in the list means an empty field."""
    field = _field(name)
    if not values:
        raise invalid(f"the list of values for the field {field} is empty: add at least one value")
    places = [Place(name).entry(number) for number in range(len(values))]
    pairs = zip(values, places, strict=True)
    named = [_value(value, place) for value, place in pairs if value is not None]
    empty = f"{field} {'is not' if negated else 'is'} EMPTY"
    if not named:
        return empty
    text = f"{field} {'not in' if negated else 'in'} ({', '.join(named)})"
    if len(named) == len(values):
        return text
    return f"({text} {'AND' if negated else 'OR'} {empty})"


def _value(value: Any, place: Place) -> str:
    """Return a value as a query string. A dict with `function` and `arguments` is a call."""
    if isinstance(value, bool):
        return quote(str(value).lower())
    if isinstance(value, (int, float)):
        return text_of(value, place)
    if isinstance(value, datetime.datetime):
        return quote(value.isoformat(" ", "minutes"))  # with an offset, `build` rejects it
    if isinstance(value, datetime.date):
        return quote(value.isoformat())
    if isinstance(value, Mapping):
        return _call(value, place)
    if isinstance(value, str):
        if not value.strip():
            raise invalid(f"{place.name} is empty: use null to find issues in which it is empty")
        return quote(value)
    raise invalid(
        f"{place.name} is {excerpt(value)}, but must be a string, a number, a date, null or a"
        " function"
    )


def _call(value: Mapping[str, Any], place: Place) -> str:
    name = str(value.get("function", "")).removesuffix("()")
    if not set(value) <= {"function", "arguments"} or not _FUNCTION.fullmatch(name):
        raise invalid("a function in a query must be a dict with 'function' and 'arguments'")
    arguments = value.get("arguments")
    if arguments is None:
        arguments = []
    elif not isinstance(arguments, (list, tuple)):
        arguments = [arguments]
    return f"{name}({', '.join(_value(argument, place) for argument in arguments)})"


def _field(name: str) -> str:
    plain = _PLAIN_FIELD.fullmatch(name) and name.lower() not in RESERVED_WORDS
    return name if plain else quote(name)
