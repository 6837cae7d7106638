# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert MDX to Markdown: without modules, comments and the tags of components.

The result has the same lines. Code stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(?:[-*+][ \t]+|[0-9]+[.)][ \t]+)?(?P<mark>`{3,}|~{3,})")
#: The start of a module. The words alone may also begin a sentence.
_MODULE = re.compile(
    r"""import[ \t]*(?:["'{*]|(?:type[ \t]+)?[\w$]+[ \t]*(?:,|from\b))"""
    r"""|export[ \t]*(?:[{*]|(?:default|const|let|var|function|class|async|type|interface)\b)"""
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*)?")
_STRING = re.compile(r"""\{\s*(["'`])\s*\1\s*\}""")
#: Values of attributes: a string in braces, or a path that the bundler or the generator resolves.
_VALUE = re.compile(
    r"""\{\s*(?:(?:require|useBaseUrl)\(\s*)?(?:(?P<quote>["'`])(?P<text>[^"'`{}]*)(?P=quote)|(?P<number>[0-9]+))"""
    r"""\s*\)?(?:\.default)?\s*\}"""
)
#: Maximum number of characters in brackets, and of failed searches for the end of a tag: both keep
#: the time for odd documents short.
_LONGEST, _MAX_FAILURES = 20_000, 100
_PAIRS = {"{": "}", "(": ")", "[": "]"}


def without_components(source: str) -> tuple[str, dict[str, list[int]]]:
    """Return the Markdown of an MDX document, and the line numbers of the components by name."""
    reader = _Reader(source)
    reader.read()
    lines = "".join(reader.parts).split("\n")
    for begin, end in sorted(reader.blocks):  # without their common indentation
        inner = [line for line in lines[begin:end] if line.strip()]
        indent = min((len(line) - len(line.lstrip(" \t")) for line in inner), default=0)
        for number in range(begin, end):
            lines[number] = lines[number][indent:] if lines[number].strip() else ""
    return "\n".join(lines), reader.components


@dataclass
class _Reader:
    """Read a document from its start to its end.

    `parts`: the Markdown. `blocks`: first line and last line of the content of components.
    """

    source: str
    at: int = 0
    line: int = 1
    parts: list[str] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    components: dict[str, list[int]] = field(default_factory=dict)
    _open: list[tuple[str, int]] = field(default_factory=list)
    _follows_blank: bool = True
    _failures: int = 0

    def read(self) -> None:
        special = re.compile(r"[\n`<{\\]")
        starts = True
        while self.at < len(self.source):
            if starts and self._line():
                continue
            found = special.search(self.source, self.at)
            self._keep(len(self.source) if found is None else found.start())
            starts = found is not None and found[0] == "\n"
            if found is not None and not self._special(found[0]):
                self._keep(self.at + 1)

    # -- lines -----------------------------------------------------------------------------------

    def _line(self) -> bool:
        """Read code between fences, or a module, at the start of a line."""
        end = self._end_of_line(self.at)
        text = self.source[self.at : end]
        fence = _FENCE.match(text)
        if fence is not None and "`" not in text[fence.end() :]:
            mark = fence["mark"]
            closing = re.compile(rf"\n[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*(?=\n|\Z)")
            found = closing.search(self.source, end)
            end = len(self.source) if found is None else found.end()
            self._keep(min(end + 1, len(self.source)))
            self._follows_blank = False
            return True
        if not (self._follows_blank and _MODULE.match(text)):
            self._follows_blank = not text.strip()
            return False
        # a module ends with the first empty line outside of its brackets
        at, balanced = self.at, self._failures < _MAX_FAILURES
        while at < len(self.source):
            character = self.source[at]
            if character in "\"'`":
                at = _after_string(self.source, at)
            elif character in _PAIRS and balanced:
                after = _after_brackets(self.source, at)
                at, balanced = after, after > at + 1
                self._failures += not balanced
            elif self.source.startswith(("\n\n", "\n\r\n"), at):
                at += 1
                break
            else:
                at += 1
        self._drop(at)
        return True

    def _end_of_line(self, at: int) -> int:
        end = self.source.find("\n", at)
        return len(self.source) if end < 0 else end

    # -- special characters ----------------------------------------------------------------------

    def _special(self, character: str) -> bool:
        """Read what begins with a special character. Return whether it was anything."""
        if character == "\\":
            escapes = self.source[self.at + 1 : self.at + 2] not in ("", "\n")
            self._keep(self.at + (2 if escapes else 1))
            return True
        if character == "`":
            end = self.at + 1
            while self.source[end : end + 1] == "`":
                end += 1
            ticks = self.source[self.at : end]
            closing = re.compile(rf"(?<!`){ticks}(?!`)|\n[ \t\r]*\n").search(self.source, end)
            self._keep(closing.end() if closing is not None and closing[0] == ticks else end)
            return True
        if character == "{" and self.source.startswith("{/*", self.at):  # a comment
            end = self.source.find("*/", self.at)
            end = -1 if end < 0 else self.source.find("}", end)
            self._drop(len(self.source) if end < 0 else end + 1)
            return True
        if character == "{":  # a string of blanks is a blank
            found = _STRING.match(self.source, self.at)
            if found is not None:
                self._drop(found.end())
                self.parts.append(" ")
            return found is not None
        return character == "<" and self._tag()

    def _tag(self) -> bool:
        """Drop the tag of a component, or simplify the attributes of an element of HTML."""
        found = _TAG.match(self.source, self.at)
        if found is None or self._failures > _MAX_FAILURES:
            return False
        end = _end_of_tag(self.source, found.end(), is_fragment=found["name"] is None)
        if end is None:
            self._failures += 1
            return False
        name, begin, line = found["name"] or "", self.at, self.line
        if name and name[0].islower() and "." not in name:
            tag = self.source[begin:end]
            if "{" not in tag and "className" not in tag:
                return False
            self.at = end
            self.parts.append(_plain(tag))
            self.line += tag.count("\n")
            return True
        self._drop(end)
        before = self.source[self.source.rfind("\n", 0, begin) + 1 : begin]
        after = self.source[end : self._end_of_line(end)]
        is_block = not before.strip() and not after.strip()
        if found["end"]:
            self._close(name, line, is_block=is_block)
        else:
            if name:
                self.components.setdefault(name, []).append(line)
            if not self.source[begin:end].rstrip(">").endswith("/"):
                self._open.append((name, self.line if is_block else -1))
        self._follows_blank = self._follows_blank or is_block
        return True

    def _close(self, name: str, line: int, *, is_block: bool) -> None:
        while self._open:
            other, begin = self._open.pop()
            if other == name:
                if is_block and begin >= 0:
                    self.blocks.append((begin, line - 1))
                return

    # -- output ----------------------------------------------------------------------------------

    def _keep(self, end: int) -> None:
        text = self.source[self.at : end]
        self.parts.append(text)
        self.line += text.count("\n")
        self.at = end

    def _drop(self, end: int) -> None:
        """Leave out the text up to a position, except for its line breaks."""
        count = self.source.count("\n", self.at, end)
        self.parts.append("\n" * count)
        self.line += count
        self.at = end


def _plain(tag: str) -> str:
    """Return a tag of HTML with attributes that HTML knows. The line breaks stay."""
    tag = _VALUE.sub(lambda found: f'"{found["number"] or found["text"]}"', tag).replace(
        "className=", "class="
    )
    parts, at = list[str](), 0
    for found in re.finditer(r"\s+[\w:-]+=\{|\s*\{", tag):
        if found.start() >= at:
            parts.append(tag[at : found.start()])
            end = _after_brackets(tag, found.end() - 1)
            parts.append("\n" * tag.count("\n", found.start(), end))
            at = end
    return "".join(parts) + tag[at:]


def _end_of_tag(source: str, at: int, *, is_fragment: bool) -> int | None:
    """Return the end of a tag whose name ends at a position, or None if it is no tag."""
    follows = source[at : at + 1]
    if follows == "" or follows not in (">" if is_fragment else ">/ \t\r\n"):
        return None
    while at < len(source):
        character = source[at]
        if character == ">":
            return at + 1
        if character in "\"'":
            at = _after_string(source, at)
        elif character == "{":
            at = _after_brackets(source, at)
        elif character == "<" or source.startswith("\n\n", at):
            return None
        else:
            at += 1
    return None


def _after_string(source: str, at: int) -> int:
    """Return the position after a string, or after its quotation mark if it does not end."""
    end = at + 1
    while end < len(source) and source[end] != source[at]:
        if source[end] == "\n" and source[at] != "`":
            return at + 1
        end += 2 if source[end] == "\\" else 1
    return end + 1 if end < len(source) else at + 1


def _after_brackets(source: str, at: int) -> int:
    """Return the position after the closing bracket, or after the opening one without it."""
    begin, waiting = at, list[str]()
    while at < min(len(source), begin + _LONGEST):
        character = source[at]
        if character in _PAIRS:
            waiting.append(_PAIRS[character])
        elif waiting and character == waiting[-1]:
            waiting.pop()
            if not waiting:
                return at + 1
        if character in "\"'`":
            at = _after_string(source, at)
        else:
            at += 1
    return begin + 1
