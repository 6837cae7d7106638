# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize the syntax of site generators in Markdown, outside of code.

`{{< x >}}`, `{{% x %}}` and `{% x %}` stay text, as does a line of `{{ x }}`. A line of them ends
every block. `{{< ref "x" >}}` is a link, and `--8<-- "x"` includes a file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from ...core.errors import invalid
from .elements import TEMPLATE, line_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

#: Returns the Markdown that a name stands for in a line, or None after it has reported a problem.
Include = Callable[[str, int], "str | None"]

#: Maximum number of characters: the library is slow for some inputs, and real pages are smaller.
LONGEST = 1_000_000
#: Scheme of the address of a page that the generator finds by its path or its name.
REFERENCE = "ref:"
#: Keys in the environment of the parser.
INCLUDE, _INCLUDING, _SIZE = "include", "including", "included characters"
_SHORTCODES = (("{{<", ">}}"), ("{{%", "%}}"))
_TAGS = (*_SHORTCODES, ("{%", "%}"))
_LINE_TAGS = (*_TAGS, ("{{", "}}"))
#: Number of characters that an included file counts at least.
_LEAST = 1000
#: Maximum number of lines of a tag.
_MAX_LINES = 50
_NAME = re.compile(r"[{%<\s/*!#.-]*(?P<name>\w[\w./-]*)")
_SNIPPET = re.compile(r"""-+8<-+[ \t]+(?P<quote>["'])(?P<name>[^"']+)(?P=quote)[ \t]*""")
_SNIPPETS = re.compile(r"-+8<-+[ \t]*")
_MARKER = re.compile(
    r"-+8<-+[ \t]*\[[ \t]*(?P<edge>start|end)[ \t]*:[ \t]*(?P<name>[\w-]+)[ \t]*\]"
)
_LINES = re.compile(r"(?P<first>[0-9]*)(?::(?P<last>[0-9]*))?")
_REF = re.compile(
    r"\{\{[<%]\s*(?:rel)?ref\s+(?:path=)?"
    r"""(?:"(?P<double>[^"{}]*)"|'(?P<single>[^'{}]*)'|(?P<bare>[^\s"'{}<>%]+))[^{}<>%]*[>%]\}\}"""
)
_ADDRESS_FOLLOWS = re.compile(r"""(?:\]\(\s*<?|=\s*["']?)\Z""")
_HERE_DOCUMENT = re.compile(r"<<(?=[A-Za-z_])")
#: Raw HTML that only ends with its end tag or its closing characters.
_NOT_INTERRUPTED = re.compile(r"<(?:script|pre|style|textarea|[!?])", re.IGNORECASE)


def add_templates(parser: MarkdownIt) -> None:
    """Make a parser recognize template tags, references and included files."""
    from markdown_it.rules_block import html_block

    interrupted = ["paragraph", "reference", "blockquote", "list"]
    first = parser.block.ruler.get_all_rules()[0]
    parser.block.ruler.before(first, "snippet", _parse_snippet, {"alt": interrupted})
    parser.block.ruler.before(first, TEMPLATE, _parse_line, {"alt": interrupted})

    def html(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
        return html_block(state, begin, _end_of_html(state, begin, end), silent)

    parser.block.ruler.at("html_block", html, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.core.ruler.before("inline", "references", _replace_references)
    parser.inline.ruler.before("escape", TEMPLATE, _parse_inline)
    parser.inline.ruler.before("escape", "here_document", _parse_here_document)


def name_of(tag: str) -> str:
    """Return the name of a template tag, such as `note`, or the tag if it has none."""
    found = _NAME.match(tag)
    return tag if found is None else found["name"]


# -- tags ------------------------------------------------------------------------------------------


def _tag_at(text: str, at: int, kinds: tuple[tuple[str, str], ...]) -> int:
    """Return the end of the tag at a position, or -1."""
    for opening, closing in kinds:
        if text.startswith(opening, at):
            end = text.find(closing, at + len(opening))
            return end if end < 0 else end + len(closing)
    return -1


def _is_line_of_tags(text: str) -> bool:
    """Return whether a text consists of tags."""
    at, text = 0, text.strip()
    while at < len(text):
        at = _tag_at(text, at, _LINE_TAGS)
        if at < 0:
            return False
        at += len(text[at:]) - len(text[at:].lstrip())
    return text != ""


def _lines_of_tags(state: StateBlock, begin: int, end: int) -> int:
    """Return the number of lines of tags at a line, or 0. Several lines only for a single tag."""
    text = line_text(state, begin)
    if not text.startswith("{"):
        return 0
    if _is_line_of_tags(text):
        return 1
    kind = next((kind for kind in _TAGS if text.startswith(kind[0])), None)
    if kind is None or kind[1] in text:
        return 0
    for line in range(begin + 1, min(end, begin + _MAX_LINES)):
        if state.isEmpty(line):
            return 0
        _before, closing, after = line_text(state, line).partition(kind[1])
        if closing:
            return 0 if after.strip() else line + 1 - begin
    return 0


def _parse_line(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    count = _lines_of_tags(state, begin, end)
    if count == 0 or (state.is_code_block(begin) and not _is_outside_code(state, begin, end)):
        return False
    if not silent:
        text = "\n".join(line_text(state, line).rstrip() for line in range(begin, begin + count))
        _push(state, TEMPLATE, text, begin, begin + count)
    return True


def _is_outside_code(state: StateBlock, begin: int, end: int) -> bool:
    """Return whether an indented line of tags is no code.

    Shortcodes never are. Other tags are code if the lines below them are.
    """
    if line_text(state, begin).startswith(tuple(opening for opening, _closing in _SHORTCODES)):
        return True
    for line in range(begin, end):
        if not state.isEmpty(line):
            if not state.is_code_block(line):
                return True
            if not _is_line_of_tags(line_text(state, line)):
                return False
    return True


def _push(state: StateBlock, kind: str, text: str, begin: int, after: int) -> None:
    """Add a paragraph of a text without markup."""
    opening = state.push("paragraph_open", "p", 1)
    opening.map = [begin, after]
    state.push(kind, "", 0).content = text
    state.push("paragraph_close", "p", -1)
    state.line = after


def _parse_inline(state: StateInline, silent: bool) -> bool:
    text, at = state.src, state.pos
    kind = next((kind for kind in _TAGS if text.startswith(kind[0], at)), None)
    if kind is None or at > _last(text, kind[1]):
        return False
    end = _tag_at(text, at, (kind,))
    if end < 0:
        return False
    if not silent:
        state.push(TEMPLATE, "", 0).content = text[at:end]
    state.pos = end
    return True


def _parse_here_document(state: StateInline, silent: bool) -> bool:
    """Keep the `<<EOF` of a shell script, which is otherwise a tag if `>` follows."""
    found = _HERE_DOCUMENT.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.pending += found[0]
    state.pos = found.end()
    return True


@lru_cache(maxsize=8)
def _last(text: str, closing: str) -> int:
    return text.rfind(closing)


def _end_of_html(state: StateBlock, begin: int, end: int) -> int:
    """Return the line at which raw HTML ends because of a line of tags, or `end`."""
    text = line_text(state, begin)
    if not text.startswith("<") or _NOT_INTERRUPTED.match(text):
        return end
    for line in range(begin + 1, end):
        if state.isEmpty(line):
            return end
        if _lines_of_tags(state, line, end):
            return line
    return end


# -- references ------------------------------------------------------------------------------------


def _replace_references(state: StateCore) -> None:
    """Replace `{{< ref "x" >}}` by an address, or by a link if it is not the address of one."""
    for token in state.tokens:
        if token.type in ("inline", "html_block") and _REF.search(token.content):
            is_raw = token.type == "html_block"
            code = [] if is_raw else list(_code_spans(token.content))
            token.content = _with_addresses(token.content, code, is_raw=is_raw)


def _with_addresses(text: str, code: list[tuple[int, int]], *, is_raw: bool) -> str:
    parts, at = [], 0
    for found in _REF.finditer(text):
        if any(begin < found.start() < end for begin, end in code):
            continue
        path = found["double"] or found["single"] or found["bare"] or ""
        address = REFERENCE + quote(path, safe="/#?=&%:")
        before = text[at : found.start()]
        if not is_raw and not _ADDRESS_FOLLOWS.search(before):
            shown = re.sub(r"([\\\[\]*_`<&])", r"\\\1", path)
            address = f"[{shown}]({address})"
        parts += [before, address]
        at = found.end()
    return "".join(parts) + text[at:]


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each code span."""
    runs = list(re.finditer("`+", text))
    later: dict[int, deque[int]] = {}
    for number, run in enumerate(runs):
        later.setdefault(len(run[0]), deque()).append(number)
    number = 0
    while number < len(runs):
        same = later[len(runs[number][0])]
        while same and same[0] <= number:
            same.popleft()
        if same:
            yield runs[number].start(), runs[same[0]].end()
        number = same[0] + 1 if same else number + 1


# -- included files --------------------------------------------------------------------------------


def _parse_snippet(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    text = line_text(state, begin)
    if not text.startswith("-") or state.is_code_block(begin):
        return False
    one = _SNIPPET.fullmatch(text)
    after = begin + 1 if one else _end_of_list(state, begin, end)
    if after is None:
        return False
    if not silent:
        names = [one["name"]] if one else [line_text(state, n) for n in range(begin + 1, after - 1)]
        for name in filter(None, map(str.strip, names)):
            _include(state, name, begin, after)
        state.line = after
    return True


def _end_of_list(state: StateBlock, begin: int, end: int) -> int | None:
    """Return the line after a list of files between two lines of `--8<--`, or None."""
    if not _SNIPPETS.fullmatch(line_text(state, begin)):
        return None
    lines = range(begin + 1, min(end, begin + _MAX_LINES))
    last = (line for line in lines if _SNIPPETS.fullmatch(line_text(state, line)))
    found = next(last, None)
    return None if found is None else found + 1


def _include(state: StateBlock, name: str, begin: int, after: int) -> None:
    """Parse a file in place of a line. Its elements have the number of this line."""
    env = state.env
    include, above = env.get(INCLUDE), env.get(_INCLUDING, ())
    if name in above:
        raise invalid(f"line {begin + 1}: the file '{name}' includes itself")
    text = None if include is None else include(name, begin + 1)
    if text is None:
        kind = TEMPLATE if include is None else "text"
        _push(state, kind, f'--8<-- "{name}"', begin, after)
        return
    size = env.setdefault(_SIZE, [0])
    size[0] += max(len(text), _LEAST)
    if size[0] > LONGEST:
        raise invalid(
            f"line {begin + 1}: the page includes more than {LONGEST // _LEAST} files or {LONGEST}"
            " characters"
        )
    for shared in ("references", "footnotes"):
        env.setdefault(shared, {})
    inner = {**env, _INCLUDING: (*above, name), "unclosed notes": {}}
    count = len(state.tokens)
    state.md.block.parse(text.replace("\r\n", "\n"), state.md, inner, state.tokens)
    for token in state.tokens[count:]:
        token.map = None if token.map is None else [begin, after]


def part_of(text: str, part: str) -> str | None:
    """Return the part of a file that a snippet names: a section, or lines such as `3:5`.

    Returns None if the file has no such section.
    """
    lines = text.splitlines(keepends=True)
    numbers = _LINES.fullmatch(part)
    if part and numbers is None:
        edges = {
            (found["edge"], found["name"]): number
            for number, line in enumerate(lines)
            if (found := _MARKER.search(line)) is not None
        }
        begin, end = edges.get(("start", part)), edges.get(("end", part), len(lines))
        if begin is None:
            return None
        lines = lines[begin + 1 : end]
    elif part and numbers is not None:
        last = numbers["last"] if numbers["last"] is not None else numbers["first"]
        lines = lines[max(0, int(numbers["first"] or 1) - 1) : int(last) if last else None]
    return "".join(line for line in lines if not _MARKER.search(line))
