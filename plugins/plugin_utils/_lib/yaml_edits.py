# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit values in the text of a YAML document, and keep every other byte.

A parser that writes the whole document again would reformat lines that nobody changed. The
positions of the nodes tell which characters to replace, so comments, order, anchors and quotes
stay.
"""

from __future__ import annotations

import copy
import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

import yaml
from ansible.module_utils.common import yaml as library

from ...module_utils._lib.core.line_ends import with_line_ends
from ...module_utils._lib.core.yaml_text import require_bounds
from .unreadable_yaml import UNREADABLE

_WIDTH = 1_000_000
#: Maximum number of passes. A second pass restores the entries that share an anchor with a change.
_PASSES = 5
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+")
_MERGE = "tag:yaml.org,2002:merge"
_QUOTES = ('"', "'")
_COMMENT = re.compile(r"[ \t]*#[^\n]*")
#: A comment behind a value, and behind the indicator of a block scalar.
_BEHIND = re.compile(r"[ \t]+#[^\n]*")
_BEHIND_INDICATOR = re.compile(r"[^\n]*?[|>][-+0-9]*([ \t]+#[^\n]*)")
#: Members that tell objects in a list apart.
_IDENTITY = ("id", "name", "key")
#: Maximum distance of two items of a list that are compared.
_NEAR = 50
_BEFORE_VALUES = (yaml.BlockEntryToken, yaml.ValueToken)


class EditError(Exception):
    """The text cannot be edited so that it has the wanted values."""


@dataclass(frozen=True)
class Tagged:
    """A value with a tag such as `!vault`, which is never decrypted here."""

    tag: str
    text: str


class _Values(library.SafeLoader):
    """Load values without decrypting vaults."""


class _Positions(yaml.SafeLoader):
    """Compose nodes; a repeated node has the position of its alias."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        events: Any = self
        alias = events.peek_event() if events.check_event(yaml.AliasEvent) else None
        node = super().compose_node(parent, index)
        if alias is None:
            return node
        repeated: Any = copy.copy(node)
        repeated.start_mark, repeated.end_mark = alias.start_mark, alias.end_mark
        repeated.is_alias = True
        return repeated


_Values.add_multi_constructor(
    "!", lambda loader, suffix, node: Tagged(f"!{suffix}", str(node.value))
)


class _Dumper(yaml.SafeDumper):
    """Write values without aliases, and strings of several lines as blocks."""

    indented = False

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, indentless and not self.indented)


class _Indenting(_Dumper):
    indented = True


_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str", value, style="|" if "\n" in value else None
    ),
)
_Dumper.add_representer(
    Tagged, lambda dumper, value: dumper.represent_scalar(value.tag, value.text, style="|")
)


def load(text: str) -> Any:
    """Return the values of a document, `{}` if it is empty. Raises `EditError`."""
    try:
        require_bounds(text)
        found = yaml.load(text, Loader=_Values)  # noqa: S506 - a subclass of SafeLoader
    except UNREADABLE as error:
        raise EditError(f"it is not valid YAML: {' '.join(str(error).split())}") from None
    return {} if found is None else found


def edited(text: str, wanted: Mapping[str, Any], keys: Collection[str] = ()) -> str:
    """Return the text of a document with the wanted values.

    :param keys: names of the options that identify an entry of a list
    :raises EditError: if the result would have other values
    """
    if "\r\n" in text:
        return with_line_ends(edited(text.replace("\r\n", "\n"), wanted, keys), text)
    found = load(text)
    for _pass in range(_PASSES):
        if canonical(found) == canonical(wanted):
            return text
        text = _Edits(text, keys).rewritten(found, wanted)
        try:
            found = load(text)
        except EditError:  # an anchor went away, or the layout is unusual
            break
    raise EditError("its anchors or its layout do not allow the change: edit it by hand")


def canonical(value: Any) -> Any:
    """Return a form of a value that is equal for equal values only: `1` and `true` differ."""
    if isinstance(value, Mapping):
        pairs = ((repr(key), canonical(each)) for key, each in value.items())
        return ("map", *sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, list | tuple):
        return ("list", *map(canonical, value))
    return (type(value).__name__, value)


@dataclass
class _Edits:
    """The changes of one pass.

    :param keys: names of the options that identify an entry of a list
    :param flows: start and end of each collection in brackets
    :param starts: index of the dash or colon before each value, sorted
    """

    text: str
    keys: Collection[str]
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    dumper: type[_Dumper] = _Dumper
    flows: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    is_json: bool = False

    def rewritten(self, old: Any, new: Any) -> str:
        """Return the text with all changes of this pass."""
        root = yaml.compose(self.text, Loader=_Positions)
        if root is None:
            return _lines_end(self.text) + self._block(new, "")
        self.dumper = _Indenting if _is_indented(root) else _Dumper
        marks = [(each.start_mark, each.end_mark) for each in _nodes(root) if _is_flow(each)]
        self.flows = [(start.index, end.index) for start, end in marks]
        tokens = yaml.scan(self.text, Loader=yaml.SafeLoader)
        self.starts = [each.start_mark.index for each in tokens if isinstance(each, _BEFORE_VALUES)]
        self.is_json = _is_json(root)
        self._change(root, old, new, 0)
        parts, place = [], 0
        for start, end, replacement in sorted(self.changes, key=lambda change: change[:2]):
            parts += [self.text[place:start], replacement]
            place = end
        return "".join([*parts, self.text[place:]])

    def _change(self, node: Any, old: Any, new: Any, indent: int) -> None:
        """Change the text of a node. `indent` is the column of its key or dash."""
        if canonical(old) == canonical(new):
            return
        is_own = not getattr(node, "is_alias", False)
        if is_own and isinstance(node, yaml.MappingNode) and _both(dict, old, new) and new:
            self._change_mapping(node, old, new, indent)
        elif is_own and isinstance(node, yaml.SequenceNode) and _both(list, old, new) and new:
            self._change_list(node, old, new)
        else:
            self._replace(node, new, indent)

    # -- mappings

    def _change_mapping(self, node: Any, old: Any, new: Any, indent: int) -> None:
        own = {key.value: (key, value) for key, value in node.value if key.tag != _MERGE}
        gone = {name for name in old if name not in new}
        # without the merge keys, the entry gets what it inherited and keeps
        drops_merge = any(name not in own for name in gone)
        rows = [
            number
            for number, (key, _value) in enumerate(node.value)
            if (drops_merge if key.tag == _MERGE else key.value in gone)
        ]
        if len(rows) == len(node.value):
            self._replace(node, new, indent)
            return
        if node.flow_style:
            self._remove_from_flow([(key, value) for key, value in node.value], rows)
        else:
            for number in rows:
                self._remove_row([pair[0] for pair in node.value], node.value[number])
        column = node.value[0][0].start_mark.column
        added = {}
        for name, value in new.items():
            if name in own and name in old:
                self._change(own[name][1], old[name], value, column)
            elif name not in old or drops_merge or canonical(old[name]) != canonical(value):
                added[name] = value
        if added:
            end = self._end(node.value[-1][1])
            if node.flow_style:
                inner = (_as_json if _is_json(node) else self._flow)(dict(added))[1:-1]
                self.changes.append((end, end, f", {inner}"))
            else:
                self._insert_line(end, self._block(dict(added), " " * column))

    def _remove_from_flow(self, parts: Sequence[tuple[Any, Any]], gone: Sequence[int]) -> None:
        """Remove members of a collection in brackets.

        :param parts: first and last node of each member
        """
        starts = [first.start_mark.index for first, _last in parts]
        ends = [self._end(last) for _first, last in parts]
        kept = [number for number in range(len(parts)) if number not in gone]
        for number in gone:
            before = self.text[ends[number - 1] : starts[number]] if number else ""
            if number < kept[-1]:  # up to the next member, so that comments before it stay
                self.changes.append((starts[number], starts[number + 1], ""))
            elif "#" in before:  # the comment is that of the member before
                begin = self.text.rfind("\n", 0, starts[number])
                behind = _BEHIND.match(self.text, ends[number])
                self.changes.append((begin, behind.end() if behind else ends[number], ""))
            else:
                self.changes.append((ends[number - 1], ends[number], ""))

    def _remove_row(self, keys: Sequence[Any], pair: tuple[Any, Any]) -> None:
        key, value = pair
        start, end = key.start_mark.index, self._line_after(self._end(value))
        begin = self.text.rfind("\n", 0, start) + 1
        if not self.text[begin:start].strip():
            start = begin
        elif any(other.start_mark.index > start for other in keys):
            # it follows the dash of its entry, which the next key or comment follows then
            end += len(self.text[end:]) - len(self.text[end:].lstrip())
        self.changes.append((start, end, ""))

    # -- lists

    def _change_list(self, node: Any, old: list[Any], new: list[Any]) -> None:
        if node.flow_style:
            self._change_flow_list(node, old, new)
            return
        dashes = [self._start(item) for item in node.value]
        column = dashes[0] - (self.text.rfind("\n", 0, dashes[0]) + 1)
        lines = map(self._lines_of, node.value, dashes)
        texts = [f"{' ' * column}{each}" for each in lines]
        moved = _Moved(zip(map(self._name, old), texts, strict=True))
        last = -1
        for number, other in self._pairs(old, new):
            if number is not None and other is not None:
                self._change(node.value[number], old[number], new[other], column)
            elif number is not None:
                self._remove_item(node.value, dashes, number)
            else:
                value = new[other or 0]
                text = moved.take(self._name(value)) or self._block([value], " " * column)
                if last >= 0:
                    self._insert_line(self._end(node.value[last]), text)
                else:
                    dash = dashes[0]  # it may follow another dash: `- - a`
                    begin = self.text.rfind("\n", 0, dash) + 1
                    if self.text[begin:dash].strip():
                        self.changes.append((dash, dash, f"{text.lstrip(' ')}{' ' * column}"))
                    else:
                        self.changes.append((begin, begin, text))
            last = last if number is None else number

    def _lines_of(self, item: Any, dash: int) -> str:
        """Return the lines of an item of a list, from its dash."""
        return _lines_end(self.text[dash : self._line_after(self._end(item))])

    def _pairs(self, old: list[Any], new: list[Any]) -> Iterator[tuple[int | None, int | None]]:
        """Yield the numbers of the items that stay, are removed (`None` second), or are new."""
        names, others = [*map(self._name, old)], [*map(self._name, new)]
        moved = {*names} & {*others}
        for kind, one, two, three, four in SequenceMatcher(
            None, names, others, False
        ).get_opcodes():
            if kind == "equal":
                yield from zip(range(one, two), range(three, four), strict=True)
                continue
            left = one
            for other in range(three, four):
                near = () if others[other] in moved else range(left, min(two, left + _NEAR))
                scores = {
                    each: _likeness(old[each], new[other])
                    for each in near
                    if names[each] not in moved
                }
                best = max(scores, key=lambda each: scores[each], default=None)
                if best is None or not scores[best]:
                    yield None, other
                    continue
                yield from ((each, None) for each in range(left, best))
                yield best, other
                left = best + 1
            yield from ((each, None) for each in range(left, two))

    def _name(self, entry: Any) -> Any:
        """Return the values that identify an entry of a list."""
        if isinstance(entry, Mapping):
            own = {key: value for key, value in entry.items() if key in self.keys and value}
            if own:
                return canonical(own)
        return canonical(entry)

    def _remove_item(self, items: Sequence[Any], dashes: Sequence[int], number: int) -> None:
        dash = dashes[number]
        begin = self.text.rfind("\n", 0, dash) + 1
        if not self.text[begin:dash].strip():
            self.changes.append((begin, self._line_after(self._end(items[number])), ""))
        elif number + 1 < len(items):  # it follows the dash of the list
            self.changes.append((dash, dashes[number + 1], ""))
        else:
            raise EditError(f"the list in line {items[0].start_mark.line + 1} cannot be edited")

    def _change_flow_list(self, node: Any, old: list[Any], new: list[Any]) -> None:
        if not node.value:
            self._replace(node, new, 0)
            return
        starts = [item.start_mark.index for item in node.value]
        ends = [self._end(item) for item in node.value]
        # items in lines of their own stay so
        gap = _COMMENT.sub("", self.text[ends[0] : starts[1]]) if len(starts) > 1 else ", "
        moved = _Moved(
            (self._name(each), self.text[starts[number] : ends[number]])
            for number, each in enumerate(old)
        )
        pairs = [*self._pairs(old, new)]
        gone = [one for one, two in pairs if one is not None and two is None]
        if len(gone) == len(old):
            self.changes.append((starts[0], ends[-1], gap.join(map(self._flow, new))))
            return
        self._remove_from_flow([(item, item) for item in node.value], gone)
        kept = None
        for number, other in pairs:
            if other is None:
                continue
            if number is not None:
                self._change(node.value[number], old[number], new[other], 0)
                kept = number
                continue
            text = moved.take(self._name(new[other])) or self._flow(new[other])
            if kept is None:
                first = next(one for one, two in pairs if one is not None and two is not None)
                self.changes.append((starts[first], starts[first], f"{text}{gap}"))
            else:
                self.changes.append((ends[kept], ends[kept], f"{gap}{text}"))

    # -- whole values

    def _replace(self, node: Any, new: Any, indent: int) -> None:
        """Replace the text of a value. An anchor stays: the next pass restores its other users."""
        start, end = node.start_mark.index, self._end(node)
        style = getattr(node, "style", None)
        anchor = _ANCHOR.match(self.text, start)
        prefix = f"{anchor[0]} " if anchor else ""
        is_collection = isinstance(new, dict | list) and bool(new)
        if any(start < node.start_mark.index < end for start, end in self.flows):
            is_quoted = isinstance(new, str) and style in _QUOTES and not self.is_json
            text = self._scalar(new, style) if is_quoted else self._flow(new)
        elif is_collection:
            is_list = isinstance(new, list)
            deeper = indent + (0 if is_list and self.dumper is _Dumper else 2)
            text = "\n" + self._block(new, " " * deeper).rstrip("\n")
            prefix = prefix.rstrip()
            while start > 0 and self.text[start - 1] in " \n" and not prefix:
                start -= 1
        else:
            is_block = isinstance(new, str) and (style in ("|", ">") or "\n" in new)
            text = self._scalar_block(new, indent) if is_block else self._scalar(new, style)
            # a list need not be indented, other values below their key must be
            fits = "\n" not in text and new and node.start_mark.column > indent
            if (
                not fits
                and isinstance(node, yaml.CollectionNode)
                and "\n" in self.text[self._start(node) : node.start_mark.index]
            ):  # remove its lines, and write the text after the key or dash
                place = self._start(node) + 1
                begin = self.text.rfind("\n", 0, node.start_mark.index) + 1
                head, _line, rest = text.partition("\n")
                self.changes.append((place, place, f" {head}"))
                self.changes.append((begin, self._line_after(self._end(node)), _lines_end(rest)))
                return
        if start == end and self.text[start - 1 : start] in (":", "-"):
            prefix = f" {prefix}" if not text.startswith("\n") else prefix
        end, text = self._with_comment(node, end, text)
        self.changes.append((start, end, f"{prefix}{text}"))

    def _with_comment(self, node: Any, end: int, text: str) -> tuple[int, str]:
        """Return the end of a value and its new text, so that the comment of its line stays."""
        if getattr(node, "style", None) in ("|", ">") and not getattr(node, "is_alias", False):
            comment = _BEHIND_INDICATOR.match(self.text, node.start_mark.index)
            behind = comment[1] if comment else ""
        elif "\n" in text and (found := _BEHIND.match(self.text, end)):
            behind, end = found[0], found.end()
        else:
            return end, text
        head, line, rest = text.partition("\n")
        return end, f"{head}{behind}{line}{rest}"

    def _scalar_block(self, value: str, indent: int) -> str:
        text = yaml.dump(value, Dumper=self.dumper, allow_unicode=True, width=_WIDTH)
        head, _line, body = text.removesuffix("...\n").partition("\n")
        if not head.startswith("|"):
            return self._scalar(value, None)
        spaces = " " * indent
        lines = [f"{spaces}{line}" if line else line for line in body.rstrip("\n").split("\n")]
        tail = "\n" * (len(body) - len(body.rstrip("\n")) - 1) if head.endswith("+") else ""
        return head + "\n" + "\n".join(lines) + tail

    def _scalar(self, value: Any, style: str | None) -> str:
        if isinstance(value, str):
            node = yaml.ScalarNode(
                "tag:yaml.org,2002:str", value, style=style if style in _QUOTES else None
            )
            text = yaml.serialize(node, Dumper=self.dumper, allow_unicode=True, width=_WIDTH)
        else:
            text = yaml.dump(
                value, Dumper=self.dumper, default_flow_style=True, allow_unicode=True, width=_WIDTH
            )
        return text.removesuffix("...\n").rstrip("\n")

    def _flow(self, value: Any) -> str:
        if self.is_json:
            return _as_json(value)
        text = yaml.dump(
            [value],
            Dumper=_FlowDumper,
            default_flow_style=True,
            allow_unicode=True,
            width=_WIDTH,
            sort_keys=False,
        )
        return text.rstrip("\n")[1:-1]

    def _block(self, value: Any, spaces: str) -> str:
        text = yaml.dump(
            value, Dumper=self.dumper, allow_unicode=True, sort_keys=False, width=_WIDTH
        )
        # a document that ends with blank lines has an end marker
        lines = re.findall(r"[^\n]*\n", text.removesuffix("...\n"))
        return "".join(f"{spaces}{line}" if line.strip() else line for line in lines)

    # -- places

    def _insert_line(self, place: int, text: str) -> None:
        """Insert whole lines after the line at a place."""
        end = self._line_after(place)
        if not self.text[:end].endswith("\n"):
            text = f"\n{text}".removesuffix("\n")
        self.changes.append((end, end, text))

    def _line_after(self, place: int) -> int:
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1

    def _start(self, node: Any) -> int:
        """Return the index of the dash or colon before a value."""
        return self.starts[bisect_left(self.starts, node.start_mark.index) - 1]

    def _end(self, node: Any) -> int:
        """Return the index after the last character of a node, without comments and blanks."""
        if getattr(node, "is_alias", False) or _is_flow(node):
            return int(node.end_mark.index)
        if isinstance(node, yaml.ScalarNode):
            end = int(node.end_mark.index)
            start = int(node.start_mark.index)
            if node.style not in ("|", ">"):
                return end
            text = self.text[start:end]
            if "+" in text.partition("\n")[0]:  # blank lines are a part of the value
                return start + len(text.removesuffix("\n"))
            return start + len(text.rstrip())
        last = node.value[-1]
        return self._end(last[1] if isinstance(last, tuple) else last)


class _Moved:
    """The texts of the items of a list, for items that move to another place.

    :param texts: name and text of each item
    """

    def __init__(self, texts: Iterable[tuple[Any, str]]) -> None:
        self._texts: dict[Any, list[str]] = {}
        for name, text in texts:
            self._texts.setdefault(name, []).append(text)

    def take(self, name: Any) -> str:
        """Return the text of an item with this name, "" if there is none left."""
        left = self._texts.get(name)
        return left.pop(0) if left else ""


def _likeness(one: Any, two: Any) -> float:
    """Return how much two items of a list have in common, 0 for different objects."""
    if _both(list, one, two):
        return 0.5
    if not _both(dict, one, two):
        return 0
    if any(one[key] != two[key] for key in _IDENTITY if key in one and key in two):
        return 0
    shared = one.keys() & two.keys()
    equal = sum(canonical(one[key]) == canonical(two[key]) for key in shared)
    return float(equal) + (0.5 if one.keys() == two.keys() else 0)


class _FlowDumper(_Dumper):
    """Write strings of several lines in quotes."""


_FlowDumper.add_representer(
    str, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:str", value)
)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_json(node: Any) -> bool:
    return isinstance(node, yaml.MappingNode) and any(
        bool(node.flow_style) and key.style == '"' for key, _value in node.value[:1]
    )


def _lines_end(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _both(kind: type, one: Any, two: Any) -> bool:
    return isinstance(one, kind) and isinstance(two, kind)


def _is_flow(node: Any) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    if getattr(node, "is_alias", False) or not isinstance(node, yaml.CollectionNode):
        return
    for each in node.value:
        for inner in each if isinstance(each, tuple) else (each,):
            yield from _nodes(inner)


def _is_indented(root: Any) -> bool:
    """Return whether the dashes of lists are further right than the key of the list."""
    for node in _nodes(root):
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            for key, value in node.value:
                if (
                    isinstance(value, yaml.SequenceNode)
                    and not _is_flow(value)
                    and not getattr(value, "is_alias", False)
                ):
                    return bool(value.start_mark.column > key.start_mark.column)
    return False
