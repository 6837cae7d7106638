# SPDX-License-Identifier: GPL-3.0-or-later
"""Markdown footnotes: references `[^name]` and definitions `[^name]: text`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

#: Token type of a reference. Its `content` is the name of the footnote.
REFERENCE = "footnote_reference"
_DEFINITIONS = "footnotes"
_NAME = r"\[\^(?P<name>[^\]\s\[]{1,100})\]"
_REFERENCE = re.compile(_NAME)
_DEFINITION = re.compile(rf"{_NAME}:[ \t]*")
_INDENT = 4


def add_footnotes(parser: MarkdownIt) -> None:
    """Make a parser collect footnote definitions in its environment and recognize references."""
    parser.block.ruler.before(
        "reference", "footnote_definition", _define, {"alt": ["paragraph", "blockquote", "list"]}
    )
    parser.inline.ruler.before("link", REFERENCE, _refer)


def definitions_of(environment: dict[str, object]) -> dict[str, tuple[int, str]]:
    """Return the number of lines before each collected footnote and its Markdown, by name."""
    found = environment.get(_DEFINITIONS)
    return dict(found) if isinstance(found, dict) else {}


def _define(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a definition: its line, and the lines below that are indented or follow directly."""
    if state.level or state.is_code_block(begin):
        return False
    found = _DEFINITION.match(_line(state, begin))
    if found is None:
        return False
    if silent:
        return True
    lines = [_line(state, begin)[found.end() :]]
    after = begin + 1
    while after < end and _continues(state, after, end):
        lines.append("" if state.isEmpty(after) else _line(state, after))
        after += 1
    known = state.env.setdefault(_DEFINITIONS, {})
    known.setdefault(found["name"], (begin, "\n".join(lines)))
    state.line = after
    return True


def _continues(state: StateBlock, line: int, end: int) -> bool:
    if not state.isEmpty(line):
        is_new = _DEFINITION.match(_line(state, line)) is not None
        return state.sCount[line] >= _INDENT or (not state.isEmpty(line - 1) and not is_new)
    after = line + 1
    return after < end and not state.isEmpty(after) and state.sCount[after] >= _INDENT


def _line(state: StateBlock, line: int) -> str:
    """Return a line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _refer(state: StateInline, silent: bool) -> bool:
    found = _REFERENCE.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        token = state.push(REFERENCE, "", 0)
        token.content = found["name"]
    state.pos = found.end()
    return True
