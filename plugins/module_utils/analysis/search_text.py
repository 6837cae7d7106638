# SPDX-License-Identifier: GPL-3.0-or-later
"""Build and parse search strings: terms `keyword:value`, separated by blanks.

Sources: written interface [W4.5] (search query rules); server facts [analysis-16]: values of one
keyword are alternatives, different keywords must all match. No blank follows the colon, names with
blanks are quoted, and an unknown keyword is only a warning. There is no escape for a quotation
mark, so a string with both kinds of them cannot be searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import invalid
from ..core.module import input_check

#: Values that need no quotation marks; the asterisk is a wildcard.
_PLAIN = re.compile(r"[\w.*/\\-]+")
_KEYWORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TERM = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_VALUE = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_BUILD, _BUILD_EXACT, _TEXT = "build", "build_exact", "text"
#: Values of `build` that are not names [analysis-16].
_ANY_BUILD = frozenset({"any", "last"})


def build(clauses: Any) -> str:
    """Return the search string for keywords and values.

    Besides keywords, `clauses` may have `build_exact` and `text` (full-text search). A list has
    alternatives; `None` is left out. Raises `invalid` for several builds, an empty value, or a
    value with both kinds of quotation marks.
    """
    if not isinstance(clauses, Mapping):
        raise invalid(f"the query must be a dict of keywords and values, not {clauses!r}")
    terms: list[str] = []
    for keyword, value in clauses.items():
        if value is not None:
            terms += _terms(str(keyword), value)
    if not terms:
        raise invalid("the query has no keyword and would match every issue: omit the query")
    text = " ".join(terms)
    require_one_build(text)
    return text


def exact_build(name: str) -> str:
    """Return the term for exactly this build."""
    return f"{_BUILD}:+{_quoted(_BUILD, name)}"


def joined(*parts: str | None) -> str | None:
    """Join search strings that must all match; `None` without search strings."""
    return " ".join(part for part in parts if part) or None


def has_keyword(text: str, keyword: str) -> bool:
    return any(name == keyword for name, value in _pairs(text))


def builds_of(text: str) -> list[str]:
    """Return the values of `build` in a search string, unchanged."""
    values = (value for name, value in _pairs(text) if name == _BUILD)
    return [each.strip() for value in values for each in _VALUE.findall(value)]


def require_one_build(text: str) -> None:
    """Raise `invalid` for a search in several builds, which servers do not support."""
    found = builds_of(text)
    if len(found) > 1:
        raise invalid(f"a search can name only one build, not {len(found)}: {', '.join(found)}")


def names_build(value: str, builds: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a value of `build` matches all builds or any of the given builds."""
    text = build_name(value).casefold()
    names = [str(record.get("name")).casefold() for record in builds]
    if value.startswith("+"):
        return text in names
    numbers = [str(record.get("id")) for record in builds]
    if text in _ANY_BUILD or text in numbers:
        return True
    pattern = re.compile(".*".join(map(re.escape, text.split("*"))))
    return any(pattern.search(name) for name in names)


def build_name(value: str) -> str:
    """Return the name, or part of a name, in a value of `build`."""
    text = value.removeprefix("+")
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]
    return text[1:-1] if quoted else text


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the terms with a keyword, which is case-insensitive."""
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
        return [_quoted(keyword, _text_of(keyword, each)) for each in values]
    if keyword == _BUILD_EXACT:
        return [exact_build(_text_of(keyword, each)) for each in values]
    written = [_quoted(keyword, _text_of(keyword, each)) for each in values]
    plain = [each for each in written if _PLAIN.fullmatch(each)]
    quoted = [each for each in written if each not in plain]
    # Quoted values in a list are not documented; a keyword may always be repeated.
    return [f"{keyword}:{each}" for each in [*([",".join(plain)] if plain else []), *quoted]]


def _text_of(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return input_check.text(value, input_check.Place(keyword))


def _quoted(keyword: str, text: str) -> str:
    """Return a value for a query, quoted if necessary."""
    if any(character < " " or character == "\x7f" for character in text):
        raise invalid(f"the value of {keyword} has a line break or another control character")
    if _PLAIN.fullmatch(text):
        return text
    for mark in "'\"":
        if mark not in text:
            return f"{mark}{text}{mark}"
    raise invalid(
        f"the value of {keyword} has both kinds of quotation marks, which a query cannot contain:"
        f" {text}"
    )
