# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit the time that the Markdown library takes for opening brackets of links and images."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ...core.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_BRACKET = re.compile(r"[\[\]]")
#: Number of open brackets from which on brackets are counted, and the maximum of that count. The
#: library takes up to a millisecond for a bracket.
_DEEP, _MAX_DEEP = 10, 3000


def add_brackets(parser: MarkdownIt) -> None:
    """Make a parser skip opening brackets that no bracket closes, and reject too many others."""
    from markdown_it.rules_inline import image, link

    parser.core.ruler.before("inline", "brackets", _require_few)
    parser.inline.ruler.at("link", _if_closed(link))
    parser.inline.ruler.at("image", _if_closed(image))


def _if_closed(
    rule: Callable[[StateInline, bool], bool],
) -> Callable[[StateInline, bool], bool]:
    def parse(state: StateInline, silent: bool) -> bool:
        return state.pos < _last_closing(state.src) and rule(state, silent)

    return parse


@lru_cache(maxsize=1)
def _last_closing(text: str) -> int:
    return text.rfind("]")


def _require_few(state: StateCore) -> None:
    """Raise `invalid` for too many brackets inside others that no bracket closes at once."""
    deep = 0
    for token in state.tokens:
        content = token.content if token.type == "inline" else ""
        depth = 0
        for found in _BRACKET.finditer(content, 0, content.rfind("]") + 1):
            depth = depth + 1 if found[0] == "[" else max(0, depth - 1)
            deep += found[0] == "[" and depth > _DEEP
        if deep > _MAX_DEEP:
            line = 1 if token.map is None else token.map[0] + 1
            raise invalid(
                f"line {line}: the file has more than {_MAX_DEEP} brackets '[' within others: write"
                " \\[ for those that are no links, or use a code block"
            )
