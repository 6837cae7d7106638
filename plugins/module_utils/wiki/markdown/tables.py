# SPDX-License-Identifier: GPL-3.0-or-later
"""Render tables of Markdown and raw HTML as storage format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .elements import CELLS, Element, Node
from .inline import InlineRenderer

_SPAN = re.compile(r"[1-9][0-9]{0,2}")
_WIDTH = re.compile(r"(?:.*\bwidth:\s*)?([1-9][0-9]{0,4}(?:\.[0-9]+)?)\s*(px|%)?\s*(?:;.*)?", re.S)
_ALIGNMENT = re.compile(r"(?:.*\btext-align:\s*)?(left|center|right)\s*(?:;.*)?", re.S | re.I)


def aligned(element: Element) -> str:
    """Return the attribute for the alignment of an element, or an empty string."""
    for name in ("style", "align"):
        found = _ALIGNMENT.fullmatch(element.attributes.get(name, "").strip())
        if found is not None:
            return f' style="text-align: {found[1].lower()};"'
    return ""


class TableRenderer:
    """Render tables. All rows are in the body of the table, as the server stores them.

    :param flow: renders content whose text must be in blocks
    :param mixed: renders content of text and blocks
    """

    def __init__(
        self,
        inline: InlineRenderer,
        flow: Callable[[Sequence[Node]], str],
        mixed: Callable[[Sequence[Node]], str],
    ) -> None:
        self._inline, self._flow, self._mixed = inline, flow, mixed

    def render(self, table: Element) -> str:
        rows: list[str] = []
        columns: list[Element] = []
        #: Captions, and content outside of cells.
        above: list[Node] = []
        todo: list[Node] = list(reversed(table.children))
        while todo:
            node = todo.pop()
            if isinstance(node, str) or node.tag not in (
                *("thead", "tbody", "tfoot", "colgroup", "col", "tr"),
                *CELLS,
            ):
                above.append(node)
            elif node.tag == "col":
                columns.append(node)
            elif node.tag == "tr":
                rows.append(self._row(node.children))
            elif node.tag in CELLS:
                rows.append(self._row([node]))
            else:
                todo += reversed(node.children)
        content = "".join(f"<tr>{row}</tr>" for row in rows if row)
        body = f"<table>{_columns(columns)}<tbody>{content}</tbody></table>" if content else ""
        return self._flow(above) + body

    def _row(self, nodes: Sequence[Node]) -> str:
        cells: list[str] = []
        for node in nodes:
            if isinstance(node, Element) and node.tag in CELLS:
                content = self._inline.anchors(node) + self._mixed(node.children)
                cells.append(f"<{node.tag}{_spans(node)}{aligned(node)}>{content}</{node.tag}>")
            elif content := self._mixed([node]):
                cells.append(f"<td>{content}</td>")
        return "".join(cells)


def _spans(cell: Element) -> str:
    spans = {name: cell.attributes.get(name, "").strip() for name in ("colspan", "rowspan")}
    return "".join(
        f' {name}="{span}"' for name, span in spans.items() if _SPAN.fullmatch(span) and span != "1"
    )


def _columns(columns: Sequence[Element]) -> str:
    """Return the widths of the columns, if the table has any."""
    widths = [_width(column) for column in columns]
    return (
        f"<colgroup>{''.join(widths)}</colgroup>" if any("style" in one for one in widths) else ""
    )


def _width(column: Element) -> str:
    span = _SPAN.fullmatch(column.attributes.get("span", ""))
    more = "" if span is None else f' span="{span[0]}"'
    for name in ("style", "width"):
        found = _WIDTH.fullmatch(column.attributes.get(name, "").strip())
        if found is not None:
            more += f' style="width: {found[1]}{found[2] or "px"};"'
            break
    return f"<col{more}/>"
