# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations in files: secrets that stay, and secrets that are masked. Nothing here contacts a
server.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import zip_longest

from ...core.line_ends import with_line_ends
from ...core.secret import MASK, is_secret_name
from ..xml_reader import (
    UnreadableXml,
    XmlElement,
    child_of,
    parse,
    spans_of,
    written,
    written_in_lines,
)
from . import configuration
from .kept_secrets import with_own_secrets

_LINE = re.compile(r"[^\n]+")
_COMMENT = re.compile(r"<!--[\s\S]*?-->")
_ELEMENT = re.compile(r"(<([\w.-]+)[^<>\n]*>)([^<\n]+)(?=</\2>)")


def merged(own: str, exported: str) -> str:
    """Return the text of a file with the meaning of an exported configuration.

    Elements that are equal keep their text, with comments and layout, and elements keep the secrets
    of the file. If its layout does not allow that, the text is that of the export.

    :param own: text of the file
    """
    wanted = with_own_secrets(exported, own)
    text = own.replace("\r\n", "\n")
    try:
        if not configuration.drift(wanted, own).found:
            return own
        edited = _XmlEdits(text).edited(parse(wanted))
        if configuration.drift(wanted, edited).found:
            return wanted
    except UnreadableXml:
        return wanted
    return with_line_ends(edited, own)


class _XmlEdits:
    """Changes the elements of a document that differ, and no other text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = parse(text)
        elements = [element for element, _parent in self._root.iterate()]
        self._spans = dict(zip(map(id, elements), spans_of(text), strict=True))
        self._changes: list[tuple[int, int, str]] = []

    def edited(self, wanted: XmlElement) -> str:
        """Return the text with the meaning of another configuration."""
        self._change(self._root, wanted)
        text, place, parts = self._text, 0, []
        for start, end, replacement in sorted(self._changes, key=lambda change: change[:2]):
            parts += [text[place:start], replacement]
            place = end
        return "".join([*parts, text[place:]])

    def _change(self, own: XmlElement, wanted: XmlElement) -> None:
        span = self._spans[id(own)]
        same_kind = own.name == wanted.name and _attributes_of(own) == _attributes_of(wanted)
        if same_kind and own.children and wanted.children:
            self._change_children(own, wanted)
        elif same_kind and not own.children and not wanted.children and span.inner < span.end:
            text = written(XmlElement("x", text=wanted.text))
            self._changes.append((span.inner, span.close, text[3:-4]))
        else:
            text = written_in_lines(wanted, self._indent_of(own)).strip()
            self._changes.append((span.start, span.end, text))

    def _change_children(self, own: XmlElement, wanted: XmlElement) -> None:
        one, two = own.children, wanted.children
        in_list = configuration.is_list(one) or configuration.is_list(two)
        pairs: list[configuration.Pair]
        if in_list:
            mine, theirs = map(_name_of, one), map(_name_of, two)
            codes = SequenceMatcher(None, [*mine], [*theirs], autojunk=False).get_opcodes()
            pairs = [
                pair
                for _kind, first, last, other, end in codes
                for pair in zip_longest(one[first:last], two[other:end])
            ]
        else:
            pairs = [(child, child_of(wanted, child.name)) for child in one]
            pairs += [(None, child) for child in two if child_of(own, child.name) is None]
        place = self._spans[id(own)].inner
        for old, new in pairs:
            if old is not None and new is not None:
                if not _is_same(own, old, new):
                    self._change(old, new)
            elif not in_list and _is_same(own, old, new):
                pass  # only one of them has a default
            elif old is not None:
                span = self._spans[id(old)]
                following = self._text[span.end : span.end + 1]
                is_line = self._begins_line(old) and following in ("", "\n")
                start = span.start - len(self._indent_of(old)) - 1 if is_line else span.start
                self._changes.append((start, span.end, ""))
            elif new is not None:
                text = written(new)
                if self._begins_line(one[0]):
                    lines = written_in_lines(new, self._indent_of(one[0]))
                    text = "\n" + lines.removesuffix("\n")
                self._changes.append((place, place, text))
            place = place if old is None else self._spans[id(old)].end

    def _indent_of(self, element: XmlElement) -> str:
        """Return the blanks before an element that begins its line, else ""."""
        start = self._spans[id(element)].start
        head = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        return head if not head.strip() else ""

    def _begins_line(self, element: XmlElement) -> bool:
        start = self._spans[id(element)].start
        return "\n" in self._text[:start][-1 - len(self._indent_of(element)) :]


def _name_of(element: XmlElement) -> tuple[str, ...]:
    """Return the kind of an item of a list, with its name or id if it has one."""
    members = (child_of(element, name) for name in ("name", "id"))
    names = [member.text.strip() for member in members if member is not None]
    return element.name, configuration.class_of(element), *names


def _attributes_of(element: XmlElement) -> dict[str, str]:
    """Return the attributes without the version of a plugin, and the class of an object."""
    others = {key: text for key, text in element.attributes.items() if key != "plugin"}
    return {**others, "class": configuration.class_of(element)}


def _is_same(parent: XmlElement, one: XmlElement | None, two: XmlElement | None) -> bool:
    """Return whether two members have the same meaning; `None` for a missing one."""
    own, wanted = (
        XmlElement(parent.name, dict(parent.attributes), [] if child is None else [child])
        for child in (one, two)
    )
    return not configuration.drift(wanted, own).found


def masked(text: str) -> str:
    """Return a configuration with its secrets masked, as in the diff of a job.

    The lines stay, so that a patch can show them. Without well-formed XML the names decide.
    """
    try:
        root = parse(text)
    except UnreadableXml:
        return configuration.without_encrypted(_ELEMENT.sub(_masked_element, text))
    known = [
        secret for secret in configuration.secrets(text) if len(secret) >= configuration.SHORTEST
    ]
    spans = []
    for (element, parent), place in zip(root.iterate(), spans_of(text), strict=True):
        if not element.children and configuration.text_value(element, parent).may_be_secret:
            spans.append((place.inner, place.close))
        for name in element.attributes:
            if configuration.attribute_of(element, name).may_be_secret:
                value = re.compile(rf"\s{re.escape(name)}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
                found = value.search(text, place.start, place.inner)
                if found is not None:
                    spans.append(found.span(found.lastindex or 0))
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}{_LINE.sub(MASK, text[start:end])}{text[end:]}"
    text = _COMMENT.sub(lambda comment: _ELEMENT.sub(_masked_element, comment[0]), text)
    for secret in sorted(known, key=len, reverse=True):  # a secret may be repeated in a comment
        text = text.replace(secret, _LINE.sub(MASK, secret))
    return configuration.without_encrypted(text)


def _masked_element(element: re.Match[str]) -> str:
    return f"{element[1]}{MASK}" if is_secret_name(element[2]) else element[0]
