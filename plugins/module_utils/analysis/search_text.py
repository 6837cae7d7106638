# SPDX-License-Identifier: GPL-3.0-or-later
"""Build and parse search queries: terms `keyword:value`, separated by blanks [W4.5].

Server facts [analysis-16]: a search matches one of the values of a keyword, and all keywords. No
blank follows the colon. A value with blanks is quoted. Quotation marks cannot be escaped, so a
value cannot contain both kinds. The server only warns about unknown keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ..core.errors import invalid
from ..core.json_text import as_text
from ..core.module import input_check

#: Values without quotation marks. The asterisk is a wildcard.
_PLAIN = re.compile(r"[\w.*/\\-]+")
_KEYWORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TERM = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_VALUE = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_BUILD, _BUILD_EXACT, _TEXT = "build", "build_exact", "text"
#: Values of `build` with a special meaning [analysis-16].
_ANY_BUILD = frozenset({"any", "last"})


def build(clauses: Any) -> str:
    """Return the search query for a dict of keywords and values.

    Raises `invalid` for several builds, an empty value, or a value with both kinds of quotation
    marks.

    :param clauses: keyword to a value, a list of alternatives, or `None` to omit the keyword;
        additional keywords are `build_exact` and `text` (full-text search)
    """
    if not isinstance(clauses, Mapping):
        raise invalid(f"the query must be a dict of keywords and values, not {clauses!r}")
    terms: list[str] = []
    # words after a keyword could be taken for a part of its value
    for keyword, value in sorted(clauses.items(), key=lambda clause: str(clause[0]) != _TEXT):
        if value is not None:
            terms += _terms(str(keyword), value)
    if not terms:
        raise invalid("the query is empty and would match every issue: omit it")
    text = " ".join(terms)
    require_one_build(text)
    return text


def exact_build(name: str) -> str:
    """Return the search term that matches only the build with this name."""
    return f"{_BUILD}:+{_quoted(_BUILD, name)}"


def joined(*parts: str | None) -> str | None:
    """Join queries that must all match. Return `None` without queries."""
    return " ".join(part for part in parts if part) or None


def has_keyword(text: str, keyword: str) -> bool:
    return any(name == keyword for name, value in _pairs(text))


def builds_of(text: str) -> list[str]:
    """Return the values of the keyword `build` in a query, unchanged."""
    values = (value for name, value in _pairs(text) if name == _BUILD)
    return [item.strip() for value in values for item in _VALUE.findall(value)]


def require_one_build(text: str) -> None:
    """Raise `invalid` for a query with several builds, which servers do not support."""
    found = builds_of(text)
    if len(found) > 1:
        raise invalid(f"the query has {len(found)} builds; use only one: {', '.join(found)}")


def require_exact_build(text: str) -> None:
    """Raise `invalid` for a build that is not named exactly: `build:x` may match other builds."""
    for value in builds_of(text):
        if not value.startswith("+"):
            name = build_name(value)
            raise invalid(
                f"the query contains build:{value}, which may match other builds or none: set build"
                f" to '{name}', or write {exact_build(name)}"
            )


def require_values(text: str) -> None:
    """Raise `invalid` for a keyword without a value, as in `severity: 1` and `severity :1`."""
    for term in _TERM.findall(text):
        keyword, colon, value = term.partition(":")
        values = _QUOTED.sub(lambda quoted: quoted[0][1:-1].replace(",", " "), value).split(",")
        if colon and not keyword and value:
            raise invalid(
                f"the query contains '{term}' without a keyword: write it directly before the"
                " colon, as in severity:1,2"
            )
        is_keyword = _KEYWORD.fullmatch(keyword) or not keyword
        if colon and is_keyword and not all(item.strip(" +") for item in values):
            raise invalid(
                f"the query contains '{term}' without a value: write the value directly after the"
                " colon, as in severity:1,2"
            )


def require_quoted_values(text: str) -> None:
    """Raise `invalid` for a word after a term, as in `status:Not a Problem`, and for a quotation
    mark without its pair.
    """
    if _TERM.sub("", text).strip():
        raise invalid(f"the query has a quotation mark without its pair: {text}")
    terms = _TERM.findall(text)
    for number, term in enumerate(terms):
        words = " ".join(takewhile(_is_word, terms[number + 1 :])) if ":" in term else ""
        if words:
            keyword, plus, value = re.split(r":(\+?)", term, maxsplit=1)
            raise invalid(
                f"the query contains '{term} {words}': quote a value with blanks, as in"
                f" {keyword}:{plus}'{value} {words}', and write other words before the first"
                " keyword"
            )


def _is_word(term: str) -> bool:
    return ":" not in term and term[0] not in "'\""


def names_build(value: str, builds: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a value of `build` matches a build of the project.

    :param builds: records of the project's builds
    """
    text = build_name(value).casefold()
    names = [as_text(record.get("name")).casefold() for record in builds]
    if value.startswith("+"):
        return text in names
    numbers = [as_text(record.get("id")) for record in builds]
    if text in _ANY_BUILD or text in numbers:
        return True
    pattern = re.compile(".*".join(map(re.escape, text.split("*"))))
    return any(pattern.search(name) for name in names)


def build_name(value: str) -> str:
    """Return the build name in a search value such as `+'release 1'`."""
    text = value.removeprefix("+")
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]
    return text[1:-1] if quoted else text


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keyword, in lower case, and the value of each term."""
    for term in _TERM.findall(text):
        keyword, colon, value = term.partition(":")
        if colon and _KEYWORD.fullmatch(keyword):
            yield keyword.lower(), value


def _terms(keyword: str, value: Any) -> list[str]:
    if _KEYWORD.fullmatch(keyword) is None:
        raise invalid(f"'{keyword}' is not a search keyword: it must be one word")
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise invalid(f"the list of {keyword} is empty: omit it to match all")
    if keyword == _TEXT:
        return [_quoted(keyword, _text_of(keyword, item)) for item in values]
    if keyword == _BUILD_EXACT:
        return [exact_build(_text_of(keyword, item)) for item in values]
    values = [_quoted(keyword, _text_of(keyword, item)) for item in values]
    plain = [item for item in values if _PLAIN.fullmatch(item)]
    quoted = [item for item in values if item not in plain]
    # repeat the keyword for quoted values, because lists of quoted values are not documented
    return [f"{keyword}:{item}" for item in [*([",".join(plain)] if plain else []), *quoted]]


def _text_of(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return input_check.text(value, input_check.Place(keyword))


def _quoted(keyword: str, text: str) -> str:
    """Return a value for a query, with quotation marks if necessary."""
    if any(character < " " or character == "\x7f" for character in text):
        raise invalid(f"the value of {keyword} contains a line break or another control character")
    if _PLAIN.fullmatch(text):
        return text
    for mark in "'\"":
        if mark not in text:
            return f"{mark}{text}{mark}"
    raise invalid(
        f"the value of {keyword} contains both kinds of quotation marks; use only one: {text}"
    )
