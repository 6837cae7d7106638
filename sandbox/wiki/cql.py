# SPDX-License-Identifier: GPL-3.0-or-later
"""CQL, the wiki's query language: the subset that release tools use [wiki-11].

- fields: `ancestor`, `creator`, `id`, `label`, `parent`, `space`, `text`, `title`, `type`
- operators: `=`, `!=`, `in`, `not in`, `~`, `!~`
- `and`, `or`, `not`, parentheses
- `order by` title, created or id
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sandbox.wiki.errors import bad_request
from sandbox.wiki.pages import Pages

Json = dict[str, Any]
Test = Callable[[Json], bool]

_TOKEN = re.compile(
    r"""\s*(?:("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(!=|!~|[=~(),])|([^\s=~(),!"']+))"""
)
_FIELDS = ("ancestor", "creator", "id", "label", "parent", "space", "text", "title", "type")
_ORDERS = ("title", "created", "id", "lastmodified")


def select(pages: Pages, cql: str, fresh: set[str]) -> list[Json]:
    """Return the current visible pages that match a query, in its order.

    :param fresh: ids of new pages that are not yet in the index
    """
    parsed = _Parser(pages, cql)
    found = [
        page
        for page in pages.all()
        if page["status"] == "current" and page["id"] not in fresh and parsed.test(page)
    ]
    for field, descending in reversed(parsed.order):
        found.sort(key=lambda page: _rank(page, field), reverse=descending)
    return found


def _rank(page: Json, field: str) -> Any:
    if field == "title":
        return page["title"].lower()
    return int(page["id"])


class _Parser:
    """Recursive descent parser. `test` is the condition, `order` the fields of `order by`."""

    def __init__(self, pages: Pages, cql: str) -> None:
        self.pages = pages
        self.cql = cql
        self.tokens = self._tokens(cql)
        self.order: list[tuple[str, bool]] = []
        if not self.tokens or self._word() == "order":
            raise self._wrong("a condition is expected")
        self.test = self._or()
        self._order_by()
        if self.tokens:
            raise self._wrong(f"unexpected {self.tokens[0]}")

    def _wrong(self, what: str) -> Exception:
        return bad_request(f"Could not parse cql : {self.cql} : {what}")

    def _tokens(self, cql: str) -> list[str]:
        found, position = [], 0
        while cql[position:].strip():
            token = _TOKEN.match(cql, position)
            if token is None:
                raise self._wrong(f"unexpected {cql[position:].strip()[:1]}")
            found.append(token[0].strip())
            position = token.end()
        return found

    def _word(self) -> str:
        return self.tokens[0].lower() if self.tokens else ""

    def _next(self) -> str:
        if not self.tokens:
            raise self._wrong("unexpected end")
        return self.tokens.pop(0)

    def _take(self, *words: str) -> bool:
        if self._word() not in words:
            return False
        self.tokens.pop(0)
        return True

    def _or(self) -> Test:
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        return lambda page: any(part(page) for part in parts)

    def _and(self) -> Test:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return lambda page: all(part(page) for part in parts)

    def _one(self) -> Test:
        if self._take("not"):
            part = self._one()
            return lambda page: not part(page)
        if self._take("("):
            part = self._or()
            if not self._take(")"):
                raise self._wrong("missing )")
            return part
        return self._clause()

    def _clause(self) -> Test:
        field = self._next().lower()
        if field not in _FIELDS:
            raise self._wrong(f"no field {field}")
        operator = self._next().lower()
        if operator == "not" and self._take("in"):
            operator = "not in"
        if operator not in ("=", "!=", "~", "!~", "in", "not in"):
            raise self._wrong(f"no operator {operator}")
        values = self._values() if operator.endswith("in") else [self._value()]
        negated = operator in ("!=", "!~", "not in")
        matches = self._matcher(field, values, part="~" in operator)
        return lambda page: matches(page) != negated

    def _value(self) -> str:
        token = self._next()
        if token[0] in "=~!(),":
            raise self._wrong(f"a value is expected, not {token}")
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "\"'" else token

    def _values(self) -> list[str]:
        if not self._take("("):
            raise self._wrong("missing (")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        if not self._take(")"):
            raise self._wrong("missing )")
        return values

    def _matcher(self, field: str, values: list[str], *, part: bool) -> Test:
        wanted = [value.lower() for value in values]
        if part or field == "text":
            return lambda page: any(
                value.strip("*") in text.lower() for value in wanted for text in _texts(page, field)
            )
        return lambda page: any(value.lower() in wanted for value in self._known(page, field))

    def _known(self, page: Json, field: str) -> list[str]:
        """Return the values that a field of a page has."""
        if field == "ancestor":
            return [above["id"] for above in self.pages.ancestors(page)]
        if field == "label":
            return [str(name) for name in page["labels"]]
        if field == "creator":
            return [page["created"]["by"]]
        return [str(page.get(field) or "")]

    def _order_by(self) -> None:
        if not self._take("order"):
            return
        if not self._take("by"):
            raise self._wrong("by is expected")
        while True:
            field = self._next().lower()
            if field not in _ORDERS:
                raise self._wrong(f"no order by {field}")
            descending = self._word() == "desc"
            self._take("asc", "desc")
            self.order.append((field, descending))
            if not self._take(","):
                return


def _texts(page: Json, field: str) -> list[str]:
    return [page["title"]] if field == "title" else [page["title"], page["body"]]
