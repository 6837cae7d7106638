# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two page bodies in storage format, and report ignored differences.

Server facts [wiki-5]: on save, the wiki adds ids and marks, sorts the parameters of macros, wraps
table rows in a `tbody`, and removes whitespace between blocks. In links it removes the key of the
page's own space. Inline comments of readers add marker elements. The editor of the cloud puts the
text of list items, cells and tasks into paragraphs, and adds widths, layouts and an empty paragraph
at the end. Everything else counts as a difference: letter case, attributes set by the author, and
whitespace inside text or code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from xml.sax.saxutils import escape

from .parser import HEADINGS, Comment, Malformed, Node, StorageElement, parse

_MACROS = frozenset({"ac:structured-macro", "ac:macro"})
_PARAMETER = "ac:parameter"
MARKER = "ac:inline-comment-marker"
_TASK_ID = "ac:task-uuid"
_SPACE_KEY = "ri:space-key"
#: The server sets this attribute if the author has not.
_MACRO_ID = "ac:macro-id"
_VERSION = "ac:schema-version"
#: Attributes that the server may change at any time.
_VOLATILE = frozenset({"ac:local-id", "local-id", "ri:version-at-save", "ac:task-list-id"})
#: Attributes that the editor of the cloud adds to elements.
_ADDED = {
    "ac:image": frozenset(
        (
            *("ac:width", "ac:height", "ac:original-width", "ac:original-height"),
            *("ac:custom-width", "ac:layout", "ac:align"),
        )
    ),
    "ac:layout-section": frozenset({"ac:breakout-mode", "ac:breakout-width"}),
    "ac:link": frozenset({"ac:card-appearance"}),
}
#: Parameters that it adds to macros.
_BREAKOUT = frozenset({"breakoutMode", "breakoutWidth"})
_TABLE_CLASSES = frozenset({"wrapped", "relative-table", "fixed-table", "confluenceTable"})
_TABLE_WIDTH = re.compile(r"\s*width:\s*[0-9.]+(?:px|%);?\s*")
_PLACEHOLDER = "placeholder-inline-tasks"
#: Attribute of the wiki's editor (`data-*`) that readers can see: the colour of a table cell.
_VISIBLE = "data-highlight-colour"

_LINKS = frozenset({"ri:page", "ri:blog-post"})
BLOCKS = frozenset(("p", *HEADINGS, "div", "table", "ul", "ol", "dl", "blockquote", "pre", "hr"))
_WIKI_BLOCKS = frozenset({"ac:structured-macro", "ac:layout", "ac:task-list"})
#: Elements without text, in which whitespace is insignificant.
_STRUCTURES = frozenset(
    (
        *("table", "thead", "tbody", "tfoot", "tr", "colgroup", "ul", "ol", "dl"),
        *("ac:layout", "ac:layout-section", "ac:task-list", "ac:task"),
        *("ac:structured-macro", "ac:macro", "ac:link", "ac:image"),
    )
)
#: Elements that contain blocks. In those of `_WIDE`, macros count as blocks.
_WIDE = frozenset({"", "ac:rich-text-body", "ac:layout-cell"})
#: Elements whose text the editor of the cloud puts into paragraphs.
_ITEMS = frozenset({"li", "td", "th", "ac:task-body"})
_FLOWS = _WIDE | _ITEMS | {"div", "blockquote"}
_BODIES = frozenset({"ac:rich-text-body", "ac:plain-text-body"})
_BLANKS = " \t\r\n"

_INDENT = "  "
_OWN_LINES = (
    BLOCKS
    | _WIKI_BLOCKS
    | _STRUCTURES
    | {"ac:parameter", "ac:plain-text-body", "ac:rich-text-body", "ac:layout-cell", "ac:task-body"}
    | {"ac:task-id", "ac:task-status", "col", "td", "th", "li", "dt", "dd"}
) - {"ac:link", "ac:image"}
_PLAIN = frozenset({"ac:plain-text-body", "ac:plain-text-link-body"})
_REFERENCE = re.compile(r"&#?[A-Za-z0-9]+;")
_QUOTED = re.compile(r'"[^"]*"')
# Attributes match in only one way, so matching takes linear time.
_TAG = re.compile(
    r"""<([A-Za-z_][^\s/<>"']*)(?=[\s/>])([^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*)>"""
)
_OPENING = re.compile(r"<(?=[A-Za-z_])")
_END_TAG = re.compile(r"</([^\s<>]*)\s*>")
#: A CDATA section, which is the group, or a comment. An open one reaches to the end of the source.
_SECTION = re.compile(r"(<!\[CDATA\[.*?(?:\]\]>|\Z))|<!--.*?(?:-->|\Z)|<!", re.DOTALL)


@dataclass(frozen=True)
class BodyComparison:
    """Result of a comparison. `ignored`: kinds of ignored differences, with their counts."""

    same: bool
    ignored: tuple[str, ...] = ()


def compare(current: str, wanted: str, space: str | None) -> BodyComparison:
    """Compare the stored body of a page with the wanted body.

    A body that is not well-formed is only equal to the identical string.

    :param space: key of the page's space, or None if unknown
    """
    if current == wanted:
        return BodyComparison(True)
    if not alike(current, wanted, space):
        return BodyComparison(False)
    return BodyComparison(True, _ignored(current, wanted, space))


def alike(current: str, wanted: str, space: str | None, *, flowing: bool = False) -> bool:
    """Like `compare().same`, but without collecting the ignored differences.

    :param flowing: the wanted body is from Markdown, so white space outside of code counts as one
        blank, and different forms of the same link or language of code are equal
    """
    if current == wanted:
        return True
    try:
        there, here = parse(current), parse(wanted)
    except Malformed:
        return False
    # Most changes affect the text, which is faster to compare than the trees. Equivalent bodies
    # have the same text, because `_canonical()` removes no other text.
    without = (_PARAMETER, _TASK_ID, *(("ac:task-id", "ac:link") if flowing else ()))
    if "".join(there.words(*without)) != "".join(here.words(*without)):
        return False
    there, here = _comparable(there, here, space)
    return _same(_reflowed(there), _reflowed(here)) if flowing else _same(there, here)


def readable(
    current: str, wanted: str, space: str | None, *, exact: bool = False
) -> tuple[str, str]:
    """Format both bodies for a unified diff, without ignored differences.

    Malformed bodies are only split into a line per tag. With `exact`, so are bodies without other
    than ignored differences.
    """
    lines = current.replace("><", ">\n<"), wanted.replace("><", ">\n<")
    try:
        there, here = _comparable(parse(current), parse(wanted), space)
    except Malformed:
        return lines
    # Remove what only the server has set. Elements of a kind are paired in document order.
    ours = _kinds(here)
    for kind, elements in _kinds(there).items():
        for element, partner in zip_longest(elements, ours.get(kind, [])[: len(elements)]):
            element.children = _children(element, partner)
            given = {} if partner is None else partner.attributes
            _drop_attributes(element, element.attributes, given)
    before, after = _pretty(there), _pretty(here)
    return lines if exact and before == after else (before, after)


def excerpt(name: str, old: str, new: str) -> tuple[str, str]:
    """Return the lines that differ, with a line of context, below the name of the page."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = _common_lines(before, after)
    end = _common_lines(before[start:][::-1], after[start:][::-1])
    first, last = max(start - 1, 0), max(end - 1, 0)

    def cut(lines: list[str]) -> str:
        if not lines:
            return ""
        above, below = "...\n" if first > 0 else "", "...\n" if last > 0 else ""
        inner = "".join(lines[first : len(lines) - last])
        return f"{name}\n{above}{inner}{below}"

    return cut(before), cut(after)


def _common_lines(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal lines at the start."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def joined(sides: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the diff of several pages as a single one."""
    texts = list(sides)
    return "".join(old for old, _new in texts), "".join(new for _old, new in texts)


# -- canonical trees -----------------------------------------------------------------------------


def _comparable(
    current: StorageElement, wanted: StorageElement, space: str | None
) -> tuple[StorageElement, StorageElement]:
    """Return both canonical trees, without editor attributes that the wanted body does not use.

    The server replaces a macro id that is used twice, so only the first one stays in the wanted
    body.
    """
    there, here = _canonical(current, space), _canonical(wanted, space)
    seen: set[str] = set()
    for element in here.walk():
        macro = element.attributes.get(_MACRO_ID)
        if macro in seen:
            del element.attributes[_MACRO_ID]
        elif macro is not None:
            seen.add(macro)
    used = {name for element in here.walk() for name in element.attributes}
    for element in there.walk():
        for name in list(element.attributes):
            if _is_editor_attribute(name) and name not in used:
                del element.attributes[name]
    return there, here


def _canonical(element: StorageElement, space: str | None) -> StorageElement:
    """Return a copy of a tree without the parts that the server rewrites."""
    children: list[Node] = []
    for child in _flat(element.children):
        if not isinstance(child, StorageElement):
            children.append(child)
        elif (element.name, child.name) != ("ac:task", _TASK_ID):
            children.append(_canonical(child, space))
    children = _without_blanks(element.name, children)
    if element.name in _MACROS:  # the parameters come first, sorted by name
        parts = [node for node in children if isinstance(node, StorageElement)]
        parameters = [part for part in parts if part.name == _PARAMETER]
        ids = set(map(id, parameters))
        parameters.sort(key=lambda parameter: parameter.attributes.get("ac:name", ""))
        children = [*parameters, *(node for node in children if id(node) not in ids)]
    elif element.name == "table":
        children = _in_bodies(children)
    elif element.name in _ITEMS:
        children = _in_paragraphs(children)
    while element.name == "" and children and _is_empty_paragraph(children[-1]):
        children.pop()
    attributes = {
        name: value for name, value in sorted(element.attributes.items()) if name not in _VOLATILE
    }
    if _has_own_space(element, space):
        del attributes[_SPACE_KEY]
    if element.name == "ol" and attributes.get("start") == "1":
        del attributes["start"]
    return StorageElement(element.name, attributes, children)


def _flat(nodes: Iterable[Node]) -> list[Node]:
    """Return the children without marks of inline comments and tasks, and join adjacent text."""
    flat: list[Node] = []
    for node in nodes:
        marked = isinstance(node, StorageElement) and (node.name == MARKER or is_placeholder(node))
        for part in _flat(node.children) if marked and isinstance(node, StorageElement) else [node]:
            if isinstance(part, str) and flat and isinstance(flat[-1], str):
                flat[-1] += part
            else:
                flat.append(part)
    return flat


def _without_blanks(name: str, children: list[Node]) -> list[Node]:
    """Return the children without whitespace that only formats the source."""
    if name not in _STRUCTURES and name not in _FLOWS:
        return children
    blocks = BLOCKS | _WIKI_BLOCKS if name in _WIDE else BLOCKS
    remaining: list[Node] = []
    for index, child in enumerate(children):
        if isinstance(child, str) and not child.strip(_BLANKS):
            neighbours = (*children[max(index - 1, 0) : index], *children[index + 1 : index + 2])
            at_a_block = any(
                isinstance(node, StorageElement) and node.name in blocks for node in neighbours
            )
            if name in _STRUCTURES or index in (0, len(children) - 1) or at_a_block:
                continue
        remaining.append(child)
    return _stripped(remaining, begin=True, end=True) if name == "" else remaining


def _stripped(children: list[Node], *, begin: bool, end: bool) -> list[Node]:
    """Return the children without blanks at the begin or the end."""
    nodes = list(children)
    if begin and nodes and isinstance(nodes[0], str):
        nodes[0] = nodes[0].lstrip(_BLANKS)
    if end and nodes and isinstance(nodes[-1], str):
        nodes[-1] = nodes[-1].rstrip(_BLANKS)
    return [node for node in nodes if node != ""]


def _in_paragraphs(children: list[Node]) -> list[Node]:
    """Wrap text and inline elements in paragraphs. A single empty paragraph is no content."""
    wrapped: list[Node] = []
    run: list[Node] = []
    for child in (*children, None):
        if child is not None and not _is_block(child):
            run.append(child)
            continue
        text = _stripped(run, begin=bool(wrapped), end=child is not None)
        wrapped += [StorageElement("p", {}, text)] if text else []
        wrapped += [] if child is None else [child]
        run = []
    return [] if len(wrapped) == 1 and _is_empty_paragraph(wrapped[0]) else wrapped


def _is_block(node: Node) -> bool:
    """Return whether a child of an item is a block. Macros with a body are."""
    if not isinstance(node, StorageElement):
        return False
    has_body = node.name in _MACROS and any(child.name in _BODIES for child in node.elements)
    return has_body or node.name in BLOCKS or node.name in ("ac:layout", "ac:task-list")


def _in_bodies(children: list[Node]) -> list[Node]:
    """Wrap the bare rows of a table in a `tbody`, like the server."""
    wrapped: list[Node] = []
    body: StorageElement | None = None
    for node in children:
        if not (isinstance(node, StorageElement) and node.name == "tr"):
            body = None if isinstance(node, (StorageElement, Comment)) else body
            wrapped.append(node)
            continue
        if body is None:
            body = StorageElement("tbody")
            wrapped.append(body)
        body.children.append(node)
    return wrapped


def _is_editor_attribute(attribute: str) -> bool:
    """Return whether an attribute belongs to the wiki's editor and is invisible to readers."""
    return attribute.startswith("data-") and attribute != _VISIBLE


def _is_added(element: StorageElement, attribute: str) -> bool:
    """Return whether the editor of the cloud may have added an attribute of an element."""
    if element.name != "table":
        return attribute in _ADDED.get(element.name, ())
    value = element.attributes[attribute]
    if attribute == "class":
        return value.strip() != "" and _TABLE_CLASSES.issuperset(value.split())
    return attribute == "style" and _TABLE_WIDTH.fullmatch(value) is not None


def is_placeholder(element: StorageElement) -> bool:
    """Return whether an element is the mark of the editor around the text of a task."""
    return element.name == "span" and element.attributes.get("class") == _PLACEHOLDER


def _is_empty_paragraph(node: Node) -> bool:
    if not isinstance(node, StorageElement) or node.name != "p" or node.children:
        return False
    return all(name in _VOLATILE or _is_editor_attribute(name) for name in node.attributes)


def _has_own_space(element: StorageElement, space: str | None) -> bool:
    """Return whether a link redundantly contains the key of the page's own space."""
    return (
        space is not None
        and element.name in _LINKS
        and (element.attributes.get(_SPACE_KEY) == space)
    )


# -- Markdown ------------------------------------------------------------------------------------

#: Class that the editor of the server adds to the paragraph with the cursor.
EDITED = "auto-cursor-target"
#: Elements in which all blanks count.
_EXACT = frozenset({"pre", "code", "ac:plain-text-body", _PARAMETER})
#: Elements around text, outside of which a blank has the same effect as at their edges.
_EMPHASIS = frozenset({"strong", "em", "u"})
#: Elements at whose edges blanks have no effect.
_EDGES = BLOCKS | _FLOWS | {"dt", "dd"}
_RUN_OF_BLANKS = re.compile(r"[ \t\r\n\f]+")


def _reflowed(tree: StorageElement) -> StorageElement:
    """Reduce a canonical tree to what Markdown can express, in place."""
    if tree.attributes.get("class") == EDITED:
        del tree.attributes["class"]
    if tree.name in _EXACT:
        if tree.name == _PARAMETER and tree.attributes.get("ac:name") == "language":
            tree.children = [language_of(str(child)) or child for child in tree.children]
        return tree
    nodes: list[Node] = []
    for child in tree.children:
        if not isinstance(child, StorageElement):
            nodes.append(_RUN_OF_BLANKS.sub(" ", child) if isinstance(child, str) else child)
        elif (tree.name, child.name) != ("ac:task", "ac:task-id"):
            nodes += _hoisted(_reflowed(child))
    if tree.name == "ac:link":
        nodes = _with_body(nodes, tree.attributes)
    tree.children = _trimmed(nodes, edges=tree.name in _EDGES)
    return tree


def _hoisted(element: StorageElement) -> list[Node]:
    """Return an element, with the blanks at the edges of emphasis outside of it."""
    if element.name == "p" and not element.children and not element.attributes:
        return []
    if element.name not in _EMPHASIS or element.attributes:
        return [element]
    before = after = ""
    inner = element.children
    if inner and isinstance(inner[0], str) and inner[0].startswith(" "):
        before, inner[0] = " ", inner[0][1:]
    if inner and isinstance(inner[-1], str) and inner[-1].endswith(" "):
        after, inner[-1] = " ", inner[-1][:-1]
    element.children = [node for node in inner if node != ""]
    return [before, element, after] if element.children else [before or after]


def _with_body(nodes: list[Node], attributes: dict[str, str]) -> list[Node]:
    """Return the children of a link with a body of rich text, which the wiki shows without one."""
    parts = [node for node in nodes if isinstance(node, StorageElement)]
    body = next((part for part in parts if part.name.endswith("link-body")), None)
    if body is not None and body.name == "ac:plain-text-link-body":
        text = "".join(map(str, body.children))
        new = StorageElement("ac:link-body", {}, [_RUN_OF_BLANKS.sub(" ", text)])
        return [new if part is body else part for part in parts]
    if body is None and len(parts) < 2 and not (parts and parts[0].elements):
        names = ("ri:content-title", "ri:filename")
        given = parts[0].attributes if parts else {}
        shown = next((given[name] for name in names if name in given), attributes.get("ac:anchor"))
        if shown:
            return [*parts, StorageElement("ac:link-body", {}, [shown])]
    return list(parts)


def _trimmed(nodes: list[Node], *, edges: bool) -> list[Node]:
    """Join adjacent texts, and remove blanks at line breaks, blocks and edges."""
    joined: list[Node] = []
    for node in nodes:
        if isinstance(node, str) and joined and isinstance(joined[-1], str):
            joined[-1] = _RUN_OF_BLANKS.sub(" ", joined[-1] + node)
        elif node != "":
            joined.append(node)
    for at, node in enumerate(joined):
        if not isinstance(node, str):
            continue
        before = joined[at - 1] if at else None
        after = joined[at + 1] if at + 1 < len(joined) else None
        text = node.lstrip(" ") if _is_break(before) or (edges and at == 0) else node
        is_last = _is_break(after) or (edges and after is None)
        joined[at] = text.rstrip(" ") if is_last else text
    return [node for node in joined if node != ""]


def _is_break(node: Node | None) -> bool:
    return isinstance(node, StorageElement) and (node.name == "br" or _is_block(node))


def language_of(name: str) -> str | None:
    """Return the language of the code macro for a name in Markdown, or None if it has none."""
    return LANGUAGES.get(name.strip().lower())


#: Languages in Markdown and their names in the code macro, which shows an error for other names.
LANGUAGES = {
    **{name: name for name in ("bash", "c#", "cpp", "css", "diff", "erlang", "groovy", "html")},
    **{name: name for name in ("java", "js", "perl", "php", "powershell", "py", "ruby", "scala")},
    **{name: name for name in ("sql", "vb", "xml", "yaml")},
    **dict.fromkeys(("sh", "shell", "console", "zsh"), "bash"),
    **dict.fromkeys(("c", "c++", "h", "hpp"), "cpp"),
    **dict.fromkeys(("cs", "csharp"), "c#"),
    **dict.fromkeys(("javascript", "json", "jsx", "ts", "typescript"), "js"),
    "python": "py",
    "python3": "py",
    "patch": "diff",
    "yml": "yaml",
    "rb": "ruby",
    "ps1": "powershell",
    "xhtml": "xml",
    "svg": "xml",
}


# -- members that the server adds ----------------------------------------------------------------


def _same(current: Node, wanted: Node) -> bool:
    """Return whether two canonical trees are equal, apart from members that the server adds."""
    if not isinstance(current, StorageElement) or not isinstance(wanted, StorageElement):
        return current == wanted
    if current.name != wanted.name:
        return False
    theirs, ours = dict(current.attributes), dict(wanted.attributes)
    _drop_attributes(current, theirs, ours)
    if theirs != ours:
        return False
    children = _children(current, wanted)
    return len(children) == len(wanted.children) and all(map(_same, children, wanted.children))


def _drop_attributes(element: StorageElement, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Remove the attributes of a stored element that only the server or its editor has set.

    :param theirs: attributes of the stored element
    :param ours: attributes of the wanted element
    """
    for name in list(theirs):
        if name not in ours and (name == _MACRO_ID or _is_added(element, name)):
            del theirs[name]
    if _VERSION not in ours or _VERSION not in theirs:
        theirs.pop(_VERSION, None)
        ours.pop(_VERSION, None)


def _children(current: StorageElement, wanted: StorageElement | None) -> list[Node]:
    """Return the stored children, without columns and breakout parameters that are not wanted."""
    ours = {_part(child) for child in (() if wanted is None else wanted.elements)}
    return [
        child
        for child in current.children
        if not isinstance(child, StorageElement)
        or not _is_optional(current, child)
        or _part(child) in ours
    ]


def _part(element: StorageElement) -> tuple[str, str]:
    return element.name, element.attributes.get("ac:name", "")


def _is_optional(parent: StorageElement, child: StorageElement) -> bool:
    """Return whether the server or its editor may have added a child."""
    if parent.name == "table":
        return child.name == "colgroup"
    return child.name == _PARAMETER and child.attributes.get("ac:name") in _BREAKOUT


def _kinds(tree: StorageElement) -> dict[tuple[str, str], list[StorageElement]]:
    found: dict[tuple[str, str], list[StorageElement]] = {}
    for element in tree.walk():
        found.setdefault(_part(element), []).append(element)
    return found


# -- a line per block ----------------------------------------------------------------------------


def _pretty(tree: StorageElement) -> str:
    """Return a tree as a string with a line per block. Inline elements do not start a line.

    The first paragraph of list items, cells and tasks is shown as their text.
    """
    for item in tree.walk():
        paragraphs = [child for child in item.elements if child.name == "p"]
        if item.name not in _ITEMS or len(paragraphs) != 1 or paragraphs[0].attributes:
            continue
        if item.children[0] is paragraphs[0]:
            item.children[:1] = paragraphs[0].children
    return "".join(f"{line}\n" for run in _runs(tree.children) for line in _block(run, ""))


def _runs(nodes: list[Node]) -> list[list[Node]]:
    """Group nodes into lines: each block alone, and text together with its inline elements."""
    runs: list[list[Node]] = []
    inline = False
    for node in nodes:
        block = isinstance(node, StorageElement) and node.name in _OWN_LINES
        if block or not inline:
            runs.append([node])
        else:
            runs[-1].append(node)
        inline = not block
    return runs


def _block(run: list[Node], indent: str) -> Iterator[str]:
    node = run[0]
    if (
        len(run) > 1
        or not isinstance(node, StorageElement)
        or not any(child.name in _OWN_LINES for child in node.elements)
    ):
        yield indent + "".join(map(_inline, run))
        return
    yield f"{indent}<{_tag(node)}>"
    for child in _runs(node.children):
        yield from _block(child, indent + _INDENT)
    yield f"{indent}</{node.name}>"


def _inline(node: Node) -> str:
    if isinstance(node, str):
        return escape(node)
    if isinstance(node, Comment):
        return f"<!--{node.text}-->" if node.target is None else f"<?{node.target} {node.text}?>"
    content = "".join(map(_inline, node.children))
    if node.name in _PLAIN and all(isinstance(child, str) for child in node.children):
        text = "".join(child for child in node.children if isinstance(child, str))
        content = f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
    return f"<{_tag(node)}>{content}</{node.name}>" if node.children else f"<{_tag(node)} />"


def _tag(element: StorageElement) -> str:
    attributes = [
        f'{name}="{escape(value, {chr(34): "&quot;"})}"'
        for name, value in element.attributes.items()
    ]
    return " ".join([element.name, *attributes])


# -- ignored differences -------------------------------------------------------------------------


def _ignored(current: str, wanted: str, space: str | None) -> tuple[str, ...]:
    """Return the kinds of ignored differences, for example `attribute ac:macro-id (2)`.

    The bodies must be different strings, so the result is never empty.
    """
    theirs, ours = _features(current, space), _features(wanted, space)
    counts: Counter[str] = Counter()
    for features, others in ((theirs, ours), (ours, theirs)):
        surplus: Counter[str] = Counter()
        for (kind, _detail), count in (features - others).items():
            surplus[kind] += count
        counts |= surplus
    if not counts:  # for example whitespace inside tags, or CRLF
        counts["spelling of tags and line breaks"] = 1
    return tuple(f"{kind} ({count})" for kind, count in sorted(counts.items()))


def _features(body: str, space: str | None) -> Counter[tuple[str, str]]:
    """Count the features of a body that a comparison ignores: pairs of a kind and its detail."""
    found = Counter(_spelling(body))
    for element in parse(body).walk():
        found.update(_of_element(element, space))
        found.update(_of_children(element))
    return found


def _of_element(element: StorageElement, space: str | None) -> Iterator[tuple[str, str]]:
    names = []  # of attributes that the server or its editor does not set
    for name, value in element.attributes.items():
        is_set = name in _VOLATILE or name in (_MACRO_ID, _VERSION)
        if is_set or _is_editor_attribute(name) or _is_added(element, name):
            yield f"attribute {name}", value
        else:
            names.append(name)
    if names != sorted(names):
        yield "order of attributes", " ".join(names)
    if _has_own_space(element, space):
        yield f"attribute {_SPACE_KEY} for the space of the page", ""
    if element.name in (_TASK_ID, MARKER):
        yield f"element {element.name}", repr(element.attributes)
    if element.name == "colgroup" or (element.name == "tbody" and not element.attributes):
        yield f"element {element.name}", ""
    if is_placeholder(element):
        yield "marks of the text of tasks", ""


def _of_children(element: StorageElement) -> Iterator[tuple[str, str]]:
    parts = element.elements
    for part in parts:
        if element.name in _ITEMS and part.name == "p":
            yield f"paragraphs in {element.name}", ""
        if part.name == _PARAMETER and _is_optional(element, part):
            yield f"parameter {part.attributes['ac:name']}", ""
    if element.name == "" and element.children and _is_empty_paragraph(element.children[-1]):
        yield "empty paragraph at the end", ""
    names = [part.attributes.get("ac:name", "") for part in parts]
    kinds = [part.name != _PARAMETER for part in parts]
    if element.name in _MACROS and (names != sorted(names) or kinds != sorted(kinds)):
        yield f"order of {_PARAMETER}", " ".join(names)
    holds_blocks = element.name in _STRUCTURES or any(
        part.name in BLOCKS | _WIKI_BLOCKS for part in parts
    )
    for child in element.children if holds_blocks or not element.name else ():
        if isinstance(child, str) and child != child.strip():
            yield "whitespace between blocks", child


def _spelling(text: str) -> Iterator[tuple[str, str]]:
    """Yield the features of the source that a parsed tree does not contain."""
    for section in _SECTION.finditer(text):
        if section[1]:
            yield "CDATA sections", section[1]
    bare = _SECTION.sub("", text)
    for reference in _REFERENCE.findall(bare):
        yield "entities", reference
    opening = _OPENING.search(bare)
    while opening is not None and (tag := _TAG.match(bare, opening.start())) is not None:
        name, attributes = tag[1], tag[2]
        end = _END_TAG.match(bare, tag.end())
        if "'" in _QUOTED.sub("", attributes):
            yield "quotation marks of attributes", attributes.removesuffix("/").rstrip()
        if attributes.endswith("/"):
            remaining = attributes[:-1].rstrip()
            yield "spelling of empty elements", f"{name}{attributes[len(remaining) :]}"
        elif end is not None and end[1] == name:
            yield "spelling of empty elements", f"{name}>"
        opening = _OPENING.search(bare, tag.end())
