# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Markdown, and convert it to documents of the cloud [tracker-25]."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...core.errors import invalid

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    from .documents import Document

try:
    import markdown_it

    MARKDOWN_MISSING = None
except ImportError:
    MARKDOWN_MISSING = traceback.format_exc()

#: Maximum number of characters, and of opening brackets, which the library parses slowly.
_LONGEST, _MAX_BRACKETS = 100_000, 3000
#: Maximum nesting depth. The library silently drops what is nested deeper than its own limit.
_DEEPEST = 40
_ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]{}|\\^`]*[^\s<>\"'()\[\]{}|\\^`.,:;!?]")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TASK = re.compile(r"\[([ xX])\] ")


def parse_markdown(text: str, place: str) -> SyntaxTreeNode:
    """Return the tree of a Markdown text.

    Raises `invalid` if the library is missing, or the text is too long or nested too deeply.

    :param place: the option, for messages
    """
    if MARKDOWN_MISSING is not None:
        raise invalid(
            "text_format=markdown requires the Python library markdown-it-py on the host where the"
            " module runs: pip install markdown-it-py"
        )
    from markdown_it.tree import SyntaxTreeNode

    if len(text) > _LONGEST or text.count("[") > _MAX_BRACKETS:
        raise invalid(
            f"{place} has more than {_LONGEST} characters or {_MAX_BRACKETS} brackets: shorten it"
        )
    tokens = _parser().parse(text)
    if any(token.level > _DEEPEST for token in tokens):
        raise invalid(f"{place} has blocks that are nested deeper than {_DEEPEST} levels")
    return SyntaxTreeNode(tokens)


@cache
def _parser() -> MarkdownIt:
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": 2 * _DEEPEST + 100})
    return parser.enable(["table", "strikethrough"])


def with_addresses(text: str) -> list[tuple[str, bool]]:
    """Split a text into addresses, which readers can click, and the text between them."""
    parts, start = [], 0
    for found in _ADDRESS.finditer(text):
        parts += [(text[start : found.start()], False), (found[0], True)]
        start = found.end()
    return [part for part in (*parts, (text[start:], False)) if part[0]]


def is_break(node: SyntaxTreeNode) -> bool:
    """Return whether an element within a line breaks it."""
    is_html = node.type == "html_inline" and _BREAK.fullmatch(node.content) is not None
    return is_html or node.type == "hardbreak"


def is_comment(node: SyntaxTreeNode) -> bool:
    """Return whether an element is a comment of HTML, which nobody sees."""
    content = node.content.strip() if node.type.startswith("html_") else ""
    return content.startswith("<!--") and content.endswith("-->")


def language_of(node: SyntaxTreeNode) -> str:
    """Return the language of a code block, or ""."""
    return (node.info or "").split(" ")[0].strip() if node.type == "fence" else ""


# -- documents ---------------------------------------------------------------------------------

Marks = tuple[dict[str, Any], ...]

#: Blocks that items of lists, and quotations, may contain.
_SIMPLE = frozenset({"paragraph", "bulletList", "orderedList", "codeBlock"})
_MARKS = {"strong": "strong", "em": "em", "s": "strike"}


def markdown_document(text: str, place: str) -> Document:
    """Convert Markdown to a document. Raises `invalid`, see `parse_markdown`."""
    return {"type": "doc", "version": 1, "content": _blocks(parse_markdown(text, place).children)}


def _blocks(nodes: Iterable[SyntaxTreeNode]) -> list[Document]:
    return [block for node in nodes if not is_comment(node) for block in _block(node)]


def _block(node: SyntaxTreeNode) -> list[Document]:
    convert = _CONVERTERS.get(node.type)
    if convert is None:  # an element without an equivalent, such as a block of HTML
        return [_paragraph([_text(node.content.strip(), ())])]
    found = convert(node)
    return [] if found is None else [found]


def _paragraph(content: list[Document]) -> Document:
    return {"type": "paragraph", "content": content}


def _text(text: str, marks: Marks) -> Document:
    shown: Document = {"type": "text", "text": text}
    return {**shown, "marks": list(marks)} if marks else shown


def _heading(node: SyntaxTreeNode) -> Document | None:
    content = _line(node)
    level = int(node.tag[1:])
    return {"type": "heading", "attrs": {"level": level}, "content": content} if content else None


def _code(node: SyntaxTreeNode) -> Document:
    code, language = node.content.removesuffix("\n"), language_of(node)
    block: Document = {"type": "codeBlock", "content": [_text(code, ())] if code else []}
    return {**block, "attrs": {"language": language}} if language else block


def _quote(node: SyntaxTreeNode) -> Document | None:
    content = _fitted(_blocks(node.children))
    return {"type": "blockquote", "content": content} if content else None


def _list(node: SyntaxTreeNode) -> Document:
    tasks = list(map(_task, node.children))
    if node.type == "bullet_list" and all(tasks):
        return {"type": "taskList", "attrs": {"localId": _id(node)}, "content": tasks}
    items: list[Document] = []
    for item in node.children:
        content = _fitted(_blocks(item.children))
        if not content or content[0]["type"] in ("bulletList", "orderedList"):
            content = [_paragraph([]), *content]
        items.append({"type": "listItem", "content": content})
    if node.type == "bullet_list":
        return {"type": "bulletList", "content": items}
    start = int(node.attrs.get("start", 1))
    return {"type": "orderedList", "attrs": {"order": start}, "content": items}


def _id(node: SyntaxTreeNode) -> str:
    """Return an id that is unique in the document, which tasks need."""
    return f"{node.type}-{node.map[0] if node.map else 0}"


def _task(item: SyntaxTreeNode) -> Document | None:
    """Return the task of an item that is a single paragraph starting with `[ ]` or `[x]`."""
    if len(item.children) != 1 or item.children[0].type != "paragraph":
        return None
    content = _line(item.children[0])
    found = _TASK.match(str(content[0].get("text"))) if content else None
    if found is None:
        return None
    first = {**content[0], "text": found.string[found.end() :]}
    state = "TODO" if found[1] == " " else "DONE"
    kept = [part for part in (first, *content[1:]) if part.get("text") != ""]
    attributes = {"localId": _id(item), "state": state}
    return {"type": "taskItem", "attrs": attributes, "content": kept}


def _table(node: SyntaxTreeNode) -> Document:
    rows = [row for part in node.children for row in part.children]
    kinds = {"th": "tableHeader", "td": "tableCell"}
    content = [
        {
            "type": "tableRow",
            "content": [
                {"type": kinds[cell.type], "content": [_paragraph(_line(cell))]}
                for cell in row.children
            ],
        }
        for row in rows
    ]
    return {"type": "table", "content": content}


def _fitted(blocks: Iterable[Document]) -> list[Document]:
    """Replace the blocks that an item or a quotation cannot contain."""
    found: list[Document] = []
    for block in blocks:
        kind, content = block["type"], block.get("content", [])
        if kind in _SIMPLE:
            found.append(block)
        elif kind == "heading":
            strong = ({"type": "strong"},)
            found.append(_paragraph([_marked(part, strong) for part in content]))
        elif kind == "blockquote":
            found += content
        elif kind == "taskList":
            items: list[Document] = []
            for task in content:
                mark = _text("[x] " if task["attrs"]["state"] == "DONE" else "[ ] ", ())
                inner = [_paragraph([mark, *task["content"]])]
                items.append({"type": "listItem", "content": inner})
            found.append({"type": "bulletList", "content": items})
        elif kind == "table":
            for row in content:
                parts: list[Document] = []
                for cell in row["content"]:
                    parts += [_text(" | ", ())] if parts else []
                    parts += cell["content"][0]["content"]
                found.append(_paragraph(parts))
    return found


def _marked(part: Document, marks: Marks) -> Document:
    known = part.get("marks", [])
    is_code = any(mark["type"] == "code" for mark in known)
    if part["type"] != "text" or is_code:
        return part
    return _text(part["text"], (*known, *(mark for mark in marks if mark not in known)))


def _line(node: SyntaxTreeNode) -> list[Document]:
    """Return the content of a paragraph, heading or cell."""
    return _inline(node.children[0].children if node.children else [], ())


def _inline(nodes: Sequence[SyntaxTreeNode], marks: Marks) -> list[Document]:
    found: list[Document] = []
    for part in (part for node in nodes for part in _parts(node, marks)):
        last = found[-1] if found else {}
        same = last.get("type") == part["type"] == "text" and last.get("marks") == part.get("marks")
        if same:
            found[-1] = {**last, "text": last["text"] + part["text"]}
        elif part.get("text") != "":
            found.append(part)
    return found


def _parts(node: SyntaxTreeNode, marks: Marks) -> list[Document]:
    kind = node.type
    if is_comment(node):
        return []
    if is_break(node):
        return [{"type": "hardBreak"}]
    if kind == "softbreak":
        return [_text(" ", marks)]
    if kind == "code_inline":
        # code may only be a link
        links = tuple(mark for mark in marks if mark["type"] == "link")
        return [_text(node.content, (*links, {"type": "code"}))]
    if kind in _MARKS:
        return _inline(node.children, (*marks, {"type": _MARKS[kind]}))
    if kind == "link":
        return _inline(node.children, (*marks, _link(str(node.attrs.get("href", "")))))
    if kind == "image":
        source = str(node.attrs.get("src", ""))
        more = (_link(source),) if "://" in source and not _has_link(marks) else ()
        return [_text(node.content or source, (*marks, *more))]
    if _has_link(marks):
        return [_text(node.content, marks)]
    return [
        _text(text, (*marks, _link(text)) if is_address else marks)
        for text, is_address in with_addresses(node.content)
    ]


def _link(address: str) -> dict[str, Any]:
    return {"type": "link", "attrs": {"href": address}}


def _has_link(marks: Marks) -> bool:
    return any(mark["type"] == "link" for mark in marks)


_CONVERTERS: dict[str, Callable[[Any], Document | None]] = {
    "paragraph": lambda node: _paragraph(_line(node)),
    "heading": _heading,
    "fence": _code,
    "code_block": _code,
    "blockquote": _quote,
    "bullet_list": _list,
    "ordered_list": _list,
    "table": _table,
    "hr": lambda _node: {"type": "rule"},
}
