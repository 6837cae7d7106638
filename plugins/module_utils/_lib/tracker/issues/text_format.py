# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the texts of a task to what the server stores [tracker-25, tracker-45].

The cloud stores documents, other servers wiki markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import invalid
from .documents import to_document
from .markdown import (
    is_break,
    is_comment,
    language_of,
    markdown_document,
    parse_markdown,
    with_addresses,
)

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_ITEM = r"^ {0,8}(?:[-*+#]{1,6}|\d{1,9}[.)]) \S"
#: Text that is plainly Markdown or wiki markup: headings, code, links, strong text, lists, tables.
_MARKUP = re.compile(
    r"^#{1,6} \S|^h[1-6]\. \S|^ {0,3}(?:```|~~~)|\{(?:code|noformat|quote|panel|color)\b[^}\n]*\}"
    r"|\[[^\[\]|\n]+\|[^\[\]|\n]+\]|\[[^\[\]\n]+\]\([^()\s]+\)|\*\*[^*\s][^*\n]*\*\*"
    rf"|{_ITEM}[^\n]*\n{_ITEM}|^\|\|[^|\n]+\|\||^\|[^\n]*\|\n\|[ :|-]+\|$",
    re.MULTILINE,
)
_SHOWN = 40


@dataclass(frozen=True)
class TextFormat:
    """The format of the texts of a task.

    :param markdown: whether they are Markdown
    :param cloud: whether the server stores documents
    :param warn: shows a warning to the user
    """

    markdown: bool
    cloud: bool
    warn: Callable[[str], None]

    def stored(self, text: str, place: str) -> Any:
        """Return a text as the server stores it: a document in the cloud, else a string.

        :param place: the option, for messages
        """
        if self.cloud and not text.strip():
            return None
        if self.markdown:
            return markdown_document(text, place) if self.cloud else wiki_markup(text, place)
        if not self.cloud:
            return text
        found = _MARKUP.search(text)
        if found is not None:
            line = found[0].partition("\n")[0].strip()[:_SHOWN]
            self.warn(
                f"{place} looks like Markdown or wiki markup ('{line}'), which the cloud shows"
                " unchanged: write Markdown, and set text_format to markdown"
            )
        return to_document(text)


# -- wiki markup -------------------------------------------------------------------------------

#: Languages of the code macro: a server shows an error for others.
_LANGUAGES = frozenset(
    (
        *("actionscript", "ada", "applescript", "bash", "c", "c#", "c++", "cpp", "css", "erlang"),
        *("go", "groovy", "haskell", "html", "java", "javascript", "js", "json", "lua", "objc"),
        *("perl", "php", "python", "r", "ruby", "scala", "sh", "sql", "swift", "visualbasic"),
        *("xml", "yaml"),
    )
)
_ALIASES = {"console": "bash", "golang": "go", "py": "python", "shell": "bash", "yml": "yaml"}
#: Characters that always begin markup, and those that do at the edge of a word.
_ALWAYS = re.compile(r"[{}\[\]|]|!(?=\S)|\?(?=\?)|\((?=(?:[xyni/!?*+-]|on|off|\*[rgby])\))")
_EDGE = re.compile(r"(?<!\w)[*_+^~-](?=\S)|(?<=\S)[*_+^~-](?!\w)")
#: Begin of a line that would be a heading, a quotation, an item of a list or a rule.
_BEGIN = re.compile(r"^(?:(h[1-6]|bq)\.(?=\s)|[*#-]+(?=\s)|-{4,}$)", re.MULTILINE)
_MARKS = {"strong": "*", "em": "_", "s": "-"}
_LINE_BREAK = "\\\\ "


def wiki_markup(text: str, place: str) -> str:
    """Convert Markdown to wiki markup. Raises `invalid`, see `parse_markdown`."""
    return _joined(_blocks(parse_markdown(text, place).children, place))


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block)


def _blocks(nodes: Sequence[SyntaxTreeNode], place: str) -> list[str]:
    return [_block(node, place) for node in nodes if not is_comment(node)]


def _block(node: SyntaxTreeNode, place: str) -> str:
    kind = node.type
    if kind == "paragraph":
        return _BEGIN.sub(
            lambda found: found[0].replace(".", "\\.") if found[1] else f"\\{found[0]}",
            _line(node, "\n"),
        )
    if kind == "heading":
        content = _line(node, " ")
        return f"{node.tag}. {content}" if content else ""
    if kind in ("fence", "code_block"):
        return _code(node, place)
    if kind == "blockquote":
        return f"{{quote}}\n{_joined(_within_quote(node, place))}\n{{quote}}"
    if kind in ("bullet_list", "ordered_list"):
        return "\n".join(_items(node, "", place))
    if kind == "table":
        rows = [row for part in node.children for row in part.children]
        return "\n".join(map(_row, rows))
    return "----" if kind == "hr" else _escaped(node.content.strip())


def _within_quote(node: SyntaxTreeNode, place: str) -> list[str]:
    """Return the blocks of a quotation, which cannot contain another one."""
    found: list[str] = []
    for inner in node.children:
        is_quote = inner.type == "blockquote"
        found += _within_quote(inner, place) if is_quote else _blocks([inner], place)
    return found


def _code(node: SyntaxTreeNode, place: str) -> str:
    content = node.content.removesuffix("\n")
    language = language_of(node).lower()
    language = _ALIASES.get(language, language)
    if "{code" not in content:
        language = f":{language}" if language in _LANGUAGES else ""
        return f"{{code{language}}}\n{content}\n{{code}}"
    if "{noformat" in content:
        raise invalid(
            f"{place} has a code block that contains both {{code and {{noformat, which wiki markup"
            " cannot contain: split it"
        )
    return f"{{noformat}}\n{content}\n{{noformat}}"


def _items(node: SyntaxTreeNode, marks: str, place: str) -> list[str]:
    """Return the lines of a list. The marks of inner lists begin with those of the outer lists."""
    marks += "*" if node.type == "bullet_list" else "#"
    lines: list[str] = []
    for item in node.children:
        lines.append(f"{marks} ")
        for inner in item.children:
            if inner.type in ("bullet_list", "ordered_list"):
                lines += _items(inner, marks, place)
            elif inner.type == "paragraph":
                text = _line(inner, _LINE_BREAK)
                if lines[-1] == f"{marks} ":
                    lines[-1] += text
                elif lines[-1].startswith(marks):
                    lines[-1] += f" {_LINE_BREAK}{text}"
                else:
                    lines.append(text)
            elif not is_comment(inner):
                lines.append(_block(inner, place))
    return [line for line in lines if line.strip() != marks]


def _row(row: SyntaxTreeNode) -> str:
    bars = {"th": "||", "td": "|"}
    cells = [f"{bars[cell.type]}{_line(cell, _LINE_BREAK) or ' '}" for cell in row.children]
    return "".join(cells) + (bars[row.children[-1].type] if row.children else "")


def _line(node: SyntaxTreeNode, line_break: str) -> str:
    """Return the content of a paragraph, heading or cell."""
    return _inline(node.children[0].children if node.children else [], line_break).strip()


def _inline(nodes: Sequence[SyntaxTreeNode], line_break: str) -> str:
    written = ""
    for number, node in enumerate(nodes):
        if node.type in _MARKS:
            content, mark = _inline(node.children, line_break), _MARKS[node.type]
            after = nodes[number + 1].content[:1] if number + 1 < len(nodes) else ""
            if re.match(r"\w", written[-1:]) or re.match(r"\w", after):
                mark = f"{{{mark}}}"  # within a word
            written += f"{mark}{content}{mark}" if content else ""
        else:
            written += _part(node, line_break)
    return written


def _part(node: SyntaxTreeNode, line_break: str) -> str:
    kind = node.type
    if is_comment(node):
        return ""
    if is_break(node):
        return line_break
    if kind == "softbreak":
        return " "
    if kind == "code_inline":
        return f"{{{{{re.sub(r'[{}]', _escape, node.content)}}}}}"
    if kind == "link":
        content, address = _inline(node.children, " "), _address(str(node.attrs.get("href", "")))
        return f"[{content}|{address}]" if content not in ("", address) else f"[{address}]"
    if kind == "image":
        return f"!{_address(str(node.attrs.get('src', '')))}!"
    return "".join(
        text if is_address else _escaped(text) for text, is_address in with_addresses(node.content)
    )


def _address(address: str) -> str:
    """Return an address without the characters that would end it."""
    return re.sub(r"[|\]!{}\s]", lambda found: f"%{ord(found[0]):02X}", address)


def _escaped(text: str) -> str:
    """Return a text in which no character is markup."""
    text = text.replace("\\", "&#92;")
    return _ALWAYS.sub(_escape, _EDGE.sub(_escape, text))


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
