# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the Markdown parser for syntax beyond CommonMark.

Footnotes: `[^x]` refers to a definition `[^x]: text`.

Notes and tabs of MkDocs, PyMdown, Docusaurus and VuePress: `!!! note "Title"`, `??? note` and
`=== "Tab"` have indented content. `:::note Title` and `/// note | Title` end with a line of the
same characters.

Tags of site generators, outside of code: `{{< x >}}`, `{{% x %}}` and `{% x %}` stay text, as does
a line of `{{ x }}`. A line of them ends every block. `{{< ref "x" >}}` is a link, and
`--8<-- "x"` includes a file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from ...core.errors import invalid
from .elements import FOOTNOTE, NOTE, TEMPLATE

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
_DEFINITIONS, _UNCLOSED = "footnotes", "unclosed notes"
_BRACKET = re.compile(r"[\[\]]")
#: Number of open brackets from which on brackets are counted, and the maximum of that count. The
#: library takes up to a millisecond for a bracket.
_DEEP, _MAX_DEEP = 10, 3000
#: Indentation of the content of footnotes and notes.
_INDENT = 4


def add_dialects(parser: MarkdownIt) -> None:
    """Add the rules to a parser. It then skips opening brackets that no bracket closes, and rejects
    too many others.
    """
    from markdown_it.rules_inline import image, link

    block, inline = parser.block.ruler, parser.inline.ruler
    parser.core.ruler.before("inline", "brackets", _require_few_brackets)
    inline.at("link", _if_closed(link))
    inline.at("image", _if_closed(image))
    alternatives = ["paragraph", "blockquote", "list"]
    block.before("reference", "footnote_definition", _parse_footnote, {"alt": alternatives})
    inline.before("link", FOOTNOTE, _parse_footnote_reference)
    alternatives = [*alternatives, "reference"]
    block.before("fence", "note", _parse_note, {"alt": alternatives})
    first = block.get_all_rules()[0]
    block.before(first, "snippet", _parse_snippet, {"alt": alternatives})
    block.before(first, TEMPLATE, _parse_line_of_tags, {"alt": alternatives})
    block.at("html_block", _parse_html, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.core.ruler.before("inline", "references", _replace_references)
    inline.before("escape", TEMPLATE, _parse_tag)
    inline.before("escape", "here_document", _parse_here_document)


def _line(state: StateBlock, line: int) -> str:
    """Return a line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


@lru_cache(maxsize=8)
def _last(text: str, closing: str) -> int:
    return text.rfind(closing)


# -- brackets --------------------------------------------------------------------------------------


def _if_closed(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    def parse(state: StateInline, silent: bool) -> bool:
        return state.pos < _last(state.src, "]") and rule(state, silent)

    return parse


def _require_few_brackets(state: StateCore) -> None:
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


# -- footnotes -------------------------------------------------------------------------------------

_FOOTNOTE = re.compile(r"\[\^(?P<name>[^\]\s\[]{1,100})\]")
_DEFINITION = re.compile(rf"{_FOOTNOTE.pattern}:[ \t]*")


def footnotes_of(environment: dict[str, object]) -> dict[str, tuple[int, str]]:
    """Return the number of lines before each collected footnote and its Markdown, by name."""
    found = environment.get(_DEFINITIONS)
    return dict(found) if isinstance(found, dict) else {}


def _parse_footnote(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a definition: its line, and the lines below that are indented or follow directly."""
    if state.level or state.is_code_block(begin):
        return False
    found = _DEFINITION.match(_line(state, begin))
    if found is None or silent:
        return found is not None
    lines, after = [_line(state, begin)[found.end() :]], begin + 1
    while after < end:
        if state.isEmpty(after):
            is_last = after + 1 >= end or state.isEmpty(after + 1)
            if is_last or state.sCount[after + 1] < _INDENT:
                break
        elif state.sCount[after] < _INDENT and (
            state.isEmpty(after - 1) or _DEFINITION.match(_line(state, after))
        ):
            break
        lines.append("" if state.isEmpty(after) else _line(state, after))
        after += 1
    known = state.env.setdefault(_DEFINITIONS, {})
    known.setdefault(found["name"], (begin, "\n".join(lines)))
    state.line = after
    return True


def _parse_footnote_reference(state: StateInline, silent: bool) -> bool:
    found = _FOOTNOTE.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push(FOOTNOTE, "", 0).content = found["name"]
    state.pos = found.end()
    return True


# -- notes and tabs --------------------------------------------------------------------------------

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


class _Note(NamedTuple):
    """The first line of a note. `fence`: characters of its end; empty if it is indented."""

    macro: str
    title: str
    fence: str = ""


def _parse_note(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    note = None if state.is_code_block(begin) else _first_line(_line(state, begin))
    if note is None:
        return False
    indent, after = state.sCount[begin] + _INDENT, begin
    if note.fence:
        found = _end_of_fenced(state, begin, end, note.fence)
        if found is None:
            return False
        after = found
    else:
        line = begin + 1
        while line < end and (state.isEmpty(line) or state.sCount[line] >= indent):
            after = after if state.isEmpty(line) else line
            line += 1
        after += 1
    has_title = note.title and note.macro not in ("", _EXPAND)
    if not (after > begin + 1 or has_title):
        return False
    if silent:
        return True
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
    state.blkIndent = state.blkIndent if note.fence else indent
    state.md.block.tokenize(state, begin + 1, after)
    state.parentType, state.lineMax, state.blkIndent = outer
    state.push("note_close", NOTE, -1)
    state.line = after + bool(note.fence)
    return True


def _first_line(line: str) -> _Note | None:
    found = _INDENTED.fullmatch(line)
    if found is not None and found["mark"] is None:
        return _Note("", found["title"])
    if found is not None:
        macro, title, fence = _MACROS.get(found["kind"].lower(), "info"), found["title"], ""
        macro = _EXPAND if found["mark"][0] == "?" else macro
    else:
        found = _FENCED.fullmatch(line)
        if found is None or found["kind"].lower() not in _MACROS:
            return None
        macro, fence = _MACROS[found["kind"].lower()], found["fence"]
        title = found["label"] or found["title"]
    kind = found["kind"]
    if title is None and (macro == _EXPAND or kind.lower() not in _PLAIN):
        title = kind.capitalize()
    return _Note(macro, (title or "").strip(), fence)


def _end_of_fenced(state: StateBlock, begin: int, end: int, fence: str) -> int | None:
    """Return the line of the end, or None without one."""
    # Without this memory, many notes without an end take quadratic time.
    unclosed: dict[tuple[str, int], int] = state.env.setdefault(_UNCLOSED, {})
    if len(fence) >= unclosed.get((fence[0], end), len(fence) + 1):
        return None
    code = ""
    for line in range(begin + 1, end):
        found = _FENCE.match(_line(state, line))
        mark = "" if found is None else found[1]
        if mark[:1] in ("`", "~"):
            code = mark if code == "" else "" if mark.startswith(code) else code
        elif not code and mark.startswith(fence) and found and found.end() == len(found.string):
            return line
    unclosed[fence[0], end] = len(fence)
    return None


# -- tags of site generators -----------------------------------------------------------------------

_SHORTCODES = (("{{<", ">}}"), ("{{%", "%}}"))
_TAGS = (*_SHORTCODES, ("{%", "%}"))
_LINE_TAGS = (*_TAGS, ("{{", "}}"))
#: Maximum number of lines of a tag, and of a list of included files.
_MAX_LINES = 50
_NAME = re.compile(r"[{%<\s/*!#.-]*(?P<name>\w[\w./-]*)")
_HERE_DOCUMENT = re.compile(r"<<(?=[A-Za-z_])")
#: Raw HTML that only ends with its end tag or its closing characters.
_NOT_INTERRUPTED = re.compile(r"<(?:script|pre|style|textarea|[!?])", re.IGNORECASE)


def name_of(tag: str) -> str:
    """Return the name of a template tag, such as `note`, or the tag if it has none."""
    found = _NAME.match(tag)
    return tag if found is None else found["name"]


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
    text = _line(state, begin)
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
        _before, closing, after = _line(state, line).partition(kind[1])
        if closing:
            return 0 if after.strip() else line + 1 - begin
    return 0


def _parse_line_of_tags(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a line of tags, which is code if it and the lines below are. Shortcodes never are."""
    count = _lines_of_tags(state, begin, end)
    shortcodes = tuple(opening for opening, _closing in _SHORTCODES)
    if count and state.is_code_block(begin) and not _line(state, begin).startswith(shortcodes):
        for line in range(begin, end):
            if state.isEmpty(line):
                continue
            if not state.is_code_block(line):
                break
            if not _is_line_of_tags(_line(state, line)):
                return False
    if count == 0:
        return False
    if not silent:
        text = "\n".join(_line(state, line).rstrip() for line in range(begin, begin + count))
        _push_text(state, TEMPLATE, text, begin, begin + count)
    return True


def _push_text(state: StateBlock, kind: str, text: str, begin: int, after: int) -> None:
    """Add a paragraph of a text without markup."""
    opening = state.push("paragraph_open", "p", 1)
    opening.map = [begin, after]
    state.push(kind, "", 0).content = text
    state.push("paragraph_close", "p", -1)
    state.line = after


def _parse_tag(state: StateInline, silent: bool) -> bool:
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


def _parse_html(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse raw HTML, which also ends before a line of tags."""
    from markdown_it.rules_block import html_block

    text, after = _line(state, begin), begin + 1
    if not text.startswith("<"):
        return False
    while after < end and not state.isEmpty(after) and not _NOT_INTERRUPTED.match(text):
        if _lines_of_tags(state, after, end):
            return html_block(state, begin, after, silent)
        after += 1
    return html_block(state, begin, end, silent)


# -- references ------------------------------------------------------------------------------------

_REF = re.compile(
    r"\{\{[<%]\s*(?:rel)?ref\s+(?:path=)?"
    r"""(?:"(?P<double>[^"{}]*)"|'(?P<single>[^'{}]*)'|(?P<bare>[^\s"'{}<>%]+))[^{}<>%]*[>%]\}\}"""
)
_ADDRESS_FOLLOWS = re.compile(r"""(?:\]\(\s*<?|=\s*["']?)\Z""")


def _replace_references(state: StateCore) -> None:
    """Replace `{{< ref "x" >}}` by an address, or by a link if it is not the address of one."""
    for token in state.tokens:
        text, is_raw = token.content, token.type == "html_block"
        if not (token.type in ("inline", "html_block") and _REF.search(text)):
            continue
        code = [] if is_raw else list(_code_spans(text))
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
        token.content = "".join(parts) + text[at:]


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

#: Number of characters that an included file counts at least.
_LEAST = 1000
_SNIPPET = re.compile(r"""-+8<-+[ \t]+(?P<quote>["'])(?P<name>[^"']+)(?P=quote)[ \t]*""")
_SNIPPETS = re.compile(r"-+8<-+[ \t]*")
_MARKER = re.compile(
    r"-+8<-+[ \t]*\[[ \t]*(?P<edge>start|end)[ \t]*:[ \t]*(?P<name>[\w-]+)[ \t]*\]"
)
_LINES = re.compile(r"(?P<first>[0-9]*)(?::(?P<last>[0-9]*))?")


def _parse_snippet(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a file to include, or a list of files between two lines of `--8<--`."""
    text = _line(state, begin)
    if not text.startswith("-") or state.is_code_block(begin):
        return False
    one = _SNIPPET.fullmatch(text)
    names, after = [] if one is None else [one["name"]], begin + 1
    if one is None:
        if not _SNIPPETS.fullmatch(text):
            return False
        lines = [_line(state, line) for line in range(begin + 1, min(end, begin + _MAX_LINES))]
        last = next((at for at, line in enumerate(lines) if _SNIPPETS.fullmatch(line)), None)
        if last is None:
            return False
        names, after = lines[:last], begin + last + 2
    if not silent:
        for name in filter(None, map(str.strip, names)):
            _include(state, name, begin, after)
        state.line = after
    return True


def _include(state: StateBlock, name: str, begin: int, after: int) -> None:
    """Parse a file in place of a line. Its elements have the number of this line."""
    env = state.env
    include, above = env.get(INCLUDE), env.get(_INCLUDING, ())
    if name in above:
        raise invalid(f"line {begin + 1}: the file '{name}' includes itself")
    text = None if include is None else include(name, begin + 1)
    if text is None:
        kind = TEMPLATE if include is None else "text"
        _push_text(state, kind, f'--8<-- "{name}"', begin, after)
        return
    size = env.setdefault(_SIZE, [0])
    size[0] += max(len(text), _LEAST)
    if size[0] > LONGEST:
        raise invalid(
            f"line {begin + 1}: the page includes more than {LONGEST // _LEAST} files or {LONGEST}"
            " characters"
        )
    for shared in ("references", _DEFINITIONS):
        env.setdefault(shared, {})
    inner = {**env, _INCLUDING: (*above, name), _UNCLOSED: {}}
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
