# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse JQL, the query language of the tracker, to a syntax tree.

This only checks the syntax; `conditions.py` checks whether fields and values exist. Server fact
[tracker-10]: a syntax error is always a 400, regardless of `validateQuery`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sandbox.tracker.search.jql_words import RESERVED_CHARACTERS, RESERVED_WORDS

OPERATORS = "'=', '!=', '<', '>', '<=', '>=', '~', '!~', 'IN', 'NOT IN', 'IS' and 'IS NOT'"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', " ": " "}
_SYMBOLS = ("<=", ">=", "!=", "!~", "&&", "||", "=", "<", ">", "~", "(", ")", ",", "!", "&", "|")
_WORD_OF_SYMBOL = {"&&": "AND", "&": "AND", "||": "OR", "|": "OR", "!": "NOT"}


class JqlSyntaxError(Exception):
    """Error for a query with invalid syntax. The string is the server's error message."""


@dataclass(frozen=True)
class Token:
    """A token. `kind`: `word`, `string`, `symbol` or `end`. `offset`: in characters, from 0."""

    kind: str
    text: str
    offset: int


@dataclass(frozen=True)
class Operand:
    """An operand. `kind`: `value`, `list`, `empty` or `function`, with its name in `values[0]`."""

    kind: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clause:
    """A comparison. `operator`: lower case, for example `>=`, `!~` or `not in`."""

    field: str
    operator: str
    operand: Operand


@dataclass(frozen=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    part: Node


Node = And | Or | Not | Clause


@dataclass(frozen=True)
class OrderTerm:
    field: str
    descending: bool


@dataclass(frozen=True)
class Query:
    """A parsed query. `where`: None without conditions."""

    where: Node | None = None
    order: tuple[OrderTerm, ...] = field(default=())


def parse(text: str) -> Query:
    """Parse a query. Raises `JqlSyntaxError`."""
    return _Parser(text).query()


def _position(text: str, offset: int) -> str:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"(line {line}, character {column})"


def _error(text: str, offset: int, message: str) -> JqlSyntaxError:
    return JqlSyntaxError(f"Error in the JQL Query: {message} {_position(text, offset)}")


def tokens(text: str) -> list[Token]:
    """Return the tokens of a query, and an `end` token."""
    found: list[Token] = []
    offset = 0
    while offset < len(text):
        if text[offset].isspace():
            offset += 1
            continue
        token, offset = _next_token(text, offset)
        found.append(token)
    found.append(Token("end", "", len(text)))
    return found


def _next_token(text: str, start: int) -> tuple[Token, int]:
    if text[start] in "\"'":
        value, end = _quoted(text, start)
        return Token("string", value, start), end
    for symbol in _SYMBOLS:
        if text.startswith(symbol, start):
            return Token("symbol", symbol, start), start + len(symbol)
    return _word(text, start)


def _quoted(text: str, start: int) -> tuple[str, int]:
    quote, offset, value = text[start], start + 1, ""
    while offset < len(text):
        character = text[offset]
        if character == quote:
            return value, offset + 1
        if character == "\\":
            character, offset = _escape(text, offset)
        else:
            offset += 1
        value += character
    partial = text[start + 1 :]
    raise _error(text, start, f"The quoted string '{partial}' has not been completed.")


def _escape(text: str, start: int) -> tuple[str, int]:
    code = text[start + 1 : start + 2]
    if code in _ESCAPES:
        return _ESCAPES[code], start + 2
    unicode_escape = re.compile(r"\\u([0-9a-fA-F]{4})").match(text, start)
    if unicode_escape is not None:
        return chr(int(unicode_escape[1], 16)), start + 6
    raise _error(
        text,
        start,
        f"'\\{code}' is an illegal JQL escape sequence. The valid escape sequences are "
        "\\', \\\", \\t, \\n, \\r, \\\\, '\\ ' and \\uXXXX.",
    )


def _word(text: str, start: int) -> tuple[Token, int]:
    offset, value = start, ""
    while offset < len(text):
        character = text[offset]
        if character.isspace() or character in "\"'=!<>~(),&|":
            break
        if character in RESERVED_CHARACTERS:
            raise _error(
                text,
                offset,
                f"The character '{character}' is a reserved JQL character. You must enclose it "
                f"in a string or use the escape '\\u{ord(character):04x}' instead.",
            )
        if character == "\\":
            character, offset = _escape(text, offset)
        else:
            offset += 1
        value += character
    return Token("word", value, start), offset


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.index = 0

    @property
    def current(self) -> Token:
        return self.tokens[self.index]

    def query(self) -> Query:
        where = None
        if self.current.kind != "end" and not self._at_order():
            where = self._or()
        order = self._order() if self._at_order() else ()
        if self.current.kind != "end":
            raise self._expected("Expecting either 'OR' or 'AND'")
        return Query(where, order)

    def _at_order(self) -> bool:
        return self._is_word("ORDER") and self._is_word("BY", 1)

    def _is_word(self, word: str, ahead: int = 0) -> bool:
        if self.index + ahead >= len(self.tokens):
            return False
        token = self.tokens[self.index + ahead]
        if token.kind == "symbol":
            return _WORD_OF_SYMBOL.get(token.text) == word
        return token.kind == "word" and token.text.upper() == word

    def _take_word(self, word: str) -> bool:
        if not self._is_word(word):
            return False
        self.index += 1
        return True

    def _take_symbol(self, symbol: str) -> bool:
        if self.current != Token("symbol", symbol, self.current.offset):
            return False
        self.index += 1
        return True

    def _expected(self, what: str) -> JqlSyntaxError:
        token = self.current
        if token.kind == "end":
            return _error(self.text, token.offset, f"{what} before the end of the query.")
        return _error(self.text, token.offset, f"{what} but got '{token.text}'.")

    def _or(self) -> Node:
        parts = [self._and()]
        while self._take_word("OR"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self) -> Node:
        parts = [self._not()]
        while self._take_word("AND"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _not(self) -> Node:
        if self._take_word("NOT"):
            return Not(self._not())
        if self._take_symbol("("):
            inner = self._or()
            if not self._take_symbol(")"):
                raise self._expected("Expecting ')'")
            return inner
        return self._clause()

    def _clause(self) -> Clause:
        name = self._text("Expecting a field name")
        operator = self._operator()
        return Clause(name, operator, self._operand(operator))

    def _text(self, what: str) -> str:
        """Parse a field name or a value. Raises an error for a reserved word without quotes.

        :param what: expected token, for the error message
        """
        token = self.current
        if token.kind not in ("word", "string"):
            raise self._expected(what)
        if token.kind == "word" and token.text.lower() in RESERVED_WORDS:
            raise _error(
                self.text,
                token.offset,
                f"'{token.text}' is a reserved JQL word. You must surround it in quotation "
                "marks to use it in a query.",
            )
        self.index += 1
        return token.text

    def _operator(self) -> str:
        for symbol in ("<=", ">=", "!=", "!~", "=", "<", ">", "~"):
            if self._take_symbol(symbol):
                return symbol
        if self._take_word("IN"):
            return "in"
        if self._take_word("IS"):
            return "is not" if self._take_word("NOT") else "is"
        if self._is_word("NOT") and self._is_word("IN", 1):
            self.index += 2
            return "not in"
        failure = self._expected("Expecting operator")
        raise JqlSyntaxError(f"{failure} The valid operators are {OPERATORS}.")

    def _operand(self, operator: str) -> Operand:
        if operator in ("in", "not in"):
            return self._list()
        if self._take_word("EMPTY") or self._take_word("NULL"):
            return Operand("empty")
        if operator in ("is", "is not"):
            raise self._expected("Expecting 'EMPTY' or 'NULL'")
        value = self._text("Expecting either a value, list or function")
        return self._function(value) if self._take_symbol("(") else Operand("value", (value,))

    def _list(self) -> Operand:
        if not self._take_symbol("("):
            raise self._expected("Expecting either a value, list or function")
        values = [self._text("Expecting either a value, list or function")]
        while self._take_symbol(","):
            values.append(self._text("Expecting either a value, list or function"))
        if not self._take_symbol(")"):
            raise self._expected("Expecting ')' or ','")
        return Operand("list", tuple(values))

    def _function(self, name: str) -> Operand:
        if not self._take_symbol(")"):
            raise self._expected("Expecting ')'")
        return Operand("function", (name,))

    def _order(self) -> tuple[OrderTerm, ...]:
        self.index += 2
        terms = [self._order_term()]
        while self._take_symbol(","):
            terms.append(self._order_term())
        if self.current.kind != "end":
            raise self._expected("Expecting either ',', 'ASC' or 'DESC'")
        return tuple(terms)

    def _order_term(self) -> OrderTerm:
        name = self._text("Expecting a field name")
        if self._take_word("DESC"):
            return OrderTerm(name, descending=True)
        self._take_word("ASC")
        return OrderTerm(name, descending=False)
