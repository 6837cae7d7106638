# SPDX-License-Identifier: GPL-3.0-or-later
"""Build JQL queries from dicts and lists, with quoted values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ToolchainError, excerpt, invalid
from ..core.module.input_check import Place, split_list
from ..core.module.input_check import text as text_of
from .jql import quote, require_no_offsets

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
_CLAUSE = {"field", "operator", "value"}
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
    order = ", ".join(_order_term(term) for term in terms if str(term).strip())
    if order:
        query = f"{query} ORDER BY {order}".lstrip()
    require_no_offsets(query)
    return query


def _parts(clauses: Any, join: str) -> list[str]:
    """Return the clauses as query strings."""
    if isinstance(clauses, str):
        return [text_of(clauses, Place("a clause of the query"))]
    if isinstance(clauses, Mapping):
        if "field" in clauses and set(clauses) <= _CLAUSE:
            return [_explicit(clauses)]
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


def _explicit(clause: Mapping[str, Any]) -> str:
    operator = " ".join(str(clause.get("operator", "=")).lower().split())
    if operator not in _OPERATORS:
        raise _no_operator(operator, "operator")
    return _comparison(str(clause["field"]), operator, clause.get("value"))


def _entry(key: str, value: Any) -> str:
    word = key.strip().lower()
    if word in (*_JOINS, "not"):
        inner = _parts(value, "or" if word == "or" else "and")
        if not inner:
            raise invalid(f"'{word}' has no clause: add at least one clause")
        text = f"({(' OR ' if word == 'or' else ' AND ').join(inner)})"
        return f"NOT {text}" if word == "not" else text
    _reject_mistyped(key.strip())
    found = _KEY.fullmatch(key.strip())
    if found is None:
        return _comparison(key.strip(), "=", value)
    operator = found["symbol"] or " ".join(found["word"].lower().split())
    return _comparison(found["field"], operator, value)


def _reject_mistyped(key: str) -> None:
    """Raise `invalid` for a key that ends with a mistyped operator."""
    signs = _SIGNS.search(key)
    operator = signs[0].lower() if signs is not None else _last_words(key)
    if operator is not None and operator not in _OPERATORS:
        raise _no_operator(operator, f"'{key}'")
    if _SIGN_INSIDE.search(key) is not None:
        raise invalid(
            f"'{key}' is not a field followed by an operator: write a key such as 'created >=', or"
            " set the keys 'field', 'operator' and 'value'"
        )


def _last_words(key: str) -> str | None:
    """Return the words at the end of a key that are, or look like, an operator."""
    words = key.lower().split()
    for count in range(min(_MAX_WORDS, len(words) - 1), 0, -1):
        operator = " ".join(words[-count:])
        if operator in _OPERATORS or operator in _MISTYPED or operator in _HISTORY:
            return operator
    return None


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
    if value is None or _says_empty(operator, value):
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


def _says_empty(operator: str, value: Any) -> bool:
    is_word = isinstance(value, str) and value.upper() in ("EMPTY", "NULL")
    return operator in ("is", "is not") and is_word


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


def _order_term(term: Any) -> str:
    field, _blank, direction = str(term).strip().rpartition(" ")
    if direction.upper() in ("ASC", "DESC") and field:
        return f"{_field(field.strip())} {direction.upper()}"
    return _field(str(term).strip())
