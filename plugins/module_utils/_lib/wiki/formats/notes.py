# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes and tabs of other dialects of Markdown: MkDocs, PyMdown, Docusaurus and VuePress.

`!!! note "Title"`, `??? note` and `=== "Tab"` have indented content. `:::note Title` and
`/// note | Title` end with a line of the same characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .elements import NOTE, line_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_EXPAND = "expand"
_MACROS = {
    **dict.fromkeys(("note", "info", "todo", "seealso", "abstract", "summary", "tldr"), "info"),
    **dict.fromkeys(("example", "examples", "question", "help", "faq", "quote", "cite"), "info"),
    **dict.fromkeys(("tip", "hint", "success", "check", "done"), "tip"),
    **dict.fromkeys(("important", "attention"), "note"),
    **dict.fromkeys(("warning", "caution", "danger", "error", "bug", "failure"), "warning"),
    "details": _EXPAND,
    "tab": "",
}
#: Kinds of notes that need no title, because the macro shows the kind.
_PLAIN = frozenset(("note", "info", "tip", "hint", "important", "warning", "caution", "danger"))
_INDENTED = re.compile(
    r"""(?:(?P<mark>!!!|\?\?\?\+?)[ \t]*(?P<kind>\w[\w-]*)(?:[ \t]+\w[\w-]*)*"""
    r"""|===[!+]?(?=[ \t]+["']))"""
    r"""(?:[ \t]+(?P<quote>["'])(?P<title>.*)(?P=quote))?[ \t]*"""
)
_FENCED = re.compile(
    r"(?P<fence>:{3,}|/{3,})[ \t]*\{?(?:\.callout-)?(?P<kind>[A-Za-z]+)\}?"
    r"(?:[ \t]*\[(?P<label>[^\]]*)\](?:\{[^{}]*\})?|[ \t|]+(?P<title>[^\s|].*))?[ \t]*"
)
_FENCE = re.compile(r"(:{3,}|/{3,}|`{3,}|~{3,})[ \t]*")
_INDENT = 4


class _Note(NamedTuple):
    """The first line of a note. `fence`: characters of its end; empty if it is indented."""

    macro: str
    title: str
    fence: str = ""


def add_notes(parser: MarkdownIt) -> None:
    """Make a parser recognize notes and tabs."""
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "note", _parse, {"alt": interrupted})


def _parse(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    if state.is_code_block(begin):
        return False
    note = _first_line(line_text(state, begin))
    if note is None:
        return False
    after = _fenced(state, begin, end, note.fence) if note.fence else _indented(state, begin, end)
    has_title = note.title and note.macro not in ("", _EXPAND)
    if after is None or not (after > begin + 1 or has_title):
        return False
    if not silent:
        _push(state, note, begin, after)
        state.line = after + bool(note.fence)
    return True


def _first_line(line: str) -> _Note | None:
    found = _INDENTED.fullmatch(line)
    if found is not None and found["mark"] is None:
        return _Note("", found["title"])
    if found is not None:
        macro = _EXPAND if found["mark"][0] == "?" else _MACROS.get(found["kind"].lower(), "info")
        return _Note(macro, _shown(found["title"], found["kind"], macro))
    found = _FENCED.fullmatch(line)
    if found is None or found["kind"].lower() not in _MACROS:
        return None
    macro, title = _MACROS[found["kind"].lower()], found["label"] or found["title"]
    return _Note(macro, _shown(title, found["kind"], macro), found["fence"])


def _shown(title: str | None, kind: str, macro: str) -> str:
    """Return the title of a note: its kind if it has none and its macro does not say it."""
    if title is None and (macro == _EXPAND or kind.lower() not in _PLAIN):
        return kind.capitalize()
    return (title or "").strip()


def _indented(state: StateBlock, begin: int, end: int) -> int:
    """Return the line after the content."""
    indent, after, line = state.sCount[begin] + _INDENT, begin, begin + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= indent):
        after = after if state.isEmpty(line) else line
        line += 1
    return after + 1


def _fenced(state: StateBlock, begin: int, end: int, fence: str) -> int | None:
    """Return the line of the end, or None without one."""
    # Without this memory, many notes without an end take quadratic time.
    unclosed: dict[tuple[str, int], int] = state.env.setdefault("unclosed notes", {})
    shortest = unclosed.get((fence[0], end), len(fence) + 1)
    if len(fence) >= shortest:
        return None
    code = ""
    for line in range(begin + 1, end):
        found = _FENCE.match(line_text(state, line))
        mark = "" if found is None else found[1]
        if mark[:1] in ("`", "~"):
            code = mark if code == "" else "" if mark.startswith(code) else code
        elif not code and mark.startswith(fence) and found and found.end() == len(found.string):
            return line
    unclosed[fence[0], end] = len(fence)
    return None


def _push(state: StateBlock, note: _Note, begin: int, after: int) -> None:
    opening = state.push("note_open", NOTE, 1)
    opening.attrs, opening.map = {"macro": note.macro}, [begin, after]
    if note.title:
        # A note without content is its title.
        tag = "summary" if after > begin + 1 else "p"
        state.push("title_open", tag, 1)
        title = state.push("inline", "", 0)
        title.content, title.map, title.children = note.title, [begin, begin + 1], []
        state.push("title_close", tag, -1)
    outer = (state.parentType, state.lineMax, state.blkIndent)
    state.parentType, state.lineMax = "note", after
    if not note.fence:
        state.blkIndent = state.sCount[begin] + _INDENT
    state.md.block.tokenize(state, begin + 1, after)
    state.parentType, state.lineMax, state.blkIndent = outer
    state.push("note_close", NOTE, -1)
