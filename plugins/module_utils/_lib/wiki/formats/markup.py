# SPDX-License-Identifier: GPL-3.0-or-later
"""Write elements of storage format."""

from __future__ import annotations

import html
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import unquote

from .comparison import language_of
from .dialects import REFERENCE
from .document import target_key


def attachment_key(name: str) -> str:
    """Return the key of a name: names compare in Unicode NFC and without regard to case."""
    return unicodedata.normalize("NFC", name).casefold()


class AttachmentNames:
    """Names of the attachments of a page, by path of the file."""

    def __init__(self) -> None:
        #: Path of each attached file, by attachment name.
        self.files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()

    def reserve(self, name: str, path: str | None) -> str | None:
        """Reserve a fixed name, also for an attachment without a local file.

        :return: the name of another file that is the same without regard to case, or None
        """
        other = self._taken.setdefault(attachment_key(name), name)
        if path is not None:
            if other != name and other in self.files:
                return other
            self.files[name] = path
            self._names.setdefault(path, name)
        return None

    def name(self, path: str) -> str:
        """Return the name of a file: its file name, or a free name if another file has it."""
        known = self._names.get(path)
        if known is not None:
            return known
        file = name = posixpath.basename(path)
        if attachment_key(name) in self._taken:
            name = path.replace("/", "_")
        stem, extension = posixpath.splitext(file)
        while attachment_key(name) in self._taken:
            self._numbers[attachment_key(file)] += 1
            name = f"{stem}-{self._numbers[attachment_key(file)] + 1}{extension}"
        self.reserve(name, path)
        return name


_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|//)")


@dataclass(frozen=True)
class LinkTarget:
    """Target of a link or an image.

    `kind`: `text` has no target. `anchor`: target on the page.
    `name`: an address, the title of a page ("" is the same page), or the name of an attachment.
    """

    kind: Literal["address", "page", "file", "text"]
    name: str
    anchor: str = ""


class LinkResolver(Protocol):
    """Resolve the addresses of links and images."""

    def link(self, address: str, line: int) -> LinkTarget:
        """Return the target of a link."""

    def image(self, address: str, line: int) -> LinkTarget:
        """Return the source of an image."""

    def warn(self, problem: str, line: int) -> None:
        """Report content that is not converted."""


@dataclass
class SingleText:
    """Resolver for a single document: keep links, and resolve images to attachments.

    :param targets: the targets on the page
    :param report: reports a warning with its line
    """

    targets: Mapping[str, str]
    report: Callable[[str], None]
    names: AttachmentNames = field(default_factory=AttachmentNames)

    def link(self, address: str, line: int) -> LinkTarget:
        address = address.removeprefix(REFERENCE)
        if not address.startswith("#"):
            return LinkTarget("address", address)
        fragment = unquote(address[1:])
        known = self.targets.get(target_key(fragment))
        if known is None and fragment:
            self.warn(f"{no_target(fragment)} top of the page instead", line)
        return LinkTarget("page", "", known or "")

    def image(self, address: str, line: int) -> LinkTarget:
        path = posixpath.normpath(unquote(address.partition("?")[0]).lstrip("/"))
        if is_external(address) or posixpath.basename(path) in ("", ".", ".."):
            return LinkTarget("address", address)
        return LinkTarget("file", self.names.name(path))

    def warn(self, problem: str, line: int) -> None:
        """Report content that is not converted."""
        self.report(f"line {line}: {problem}")


def no_target(fragment: str) -> str:
    """Return the start of the warning about a link to a missing heading or id."""
    return f"there is no heading or id '#{fragment}'; the link leads to the"


def is_external(address: str) -> bool:
    """Return whether an address has a scheme or a host."""
    return _SCHEME.match(address) is not None and not address.startswith(REFERENCE)


#: Characters that XML does not allow, and unpaired surrogates.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
#: A bare address. Some languages put no blank between an address and their punctuation.
_ADDRESS = re.compile(
    r"(?<![\w@/.-])https?://[^\W_][^\s<>\"`\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f]*", re.I
)
_PUNCTUATION = "?!.,:;*_~'"
_BRACKETS = {")": "(", "]": "["}
#: Languages of diagrams, which the wiki cannot render.
DIAGRAMS = frozenset({"mermaid", "plantuml", "puml", "dot", "graphviz", "d2", "ditaa"})


def escaped(text: str) -> str:
    """Escape a string for use between tags."""
    return html.escape(_NO_XML.sub("\ufffd", text), quote=False)


def attribute(text: str) -> str:
    """Escape a string for use as an attribute value."""
    return html.escape(_NO_XML.sub("\ufffd", text))


def bare_addresses(text: str) -> Iterator[tuple[int, str]]:
    """Yield the bare addresses in a text, with their positions."""
    for found in _ADDRESS.finditer(text):
        yield found.start(), _trimmed(found[0])


def with_links(text: str) -> str:
    """Escape a string, and make its bare addresses links."""
    parts, at = [], 0
    for begin, address in bare_addresses(text):
        parts.append(escaped(text[at:begin]))
        parts.append(f'<a href="{attribute(address)}">{escaped(address)}</a>')
        at = begin + len(address)
    return "".join(parts) + escaped(text[at:])


def _trimmed(address: str) -> str:
    """Return an address without the punctuation and the unpaired brackets after it."""
    surplus = {close: address.count(close) - address.count(_BRACKETS[close]) for close in _BRACKETS}
    end = len(address)
    while address[end - 1] in _PUNCTUATION or surplus.get(address[end - 1], 0) > 0:
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return address[:end]


def macro(name: str, content: str) -> str:
    return f'<ac:structured-macro ac:name="{name}">{content}</ac:structured-macro>'


def macro_with_body(name: str, body: str, title: str = "") -> str:
    parameter = f'<ac:parameter ac:name="title">{escaped(title)}</ac:parameter>' if title else ""
    return macro(name, f"{parameter}<ac:rich-text-body>{body}</ac:rich-text-body>")


def anchor(name: str) -> str:
    return macro("anchor", f'<ac:parameter ac:name="">{escaped(name)}</ac:parameter>')


def jump(name: str, text: str) -> str:
    """Return a link to an anchor of the same page."""
    return f'<ac:link ac:anchor="{name}"><ac:link-body>{text}</ac:link-body></ac:link>'


def code(source: str, info: str) -> str:
    """Return the code macro. `info`: the language and other words after the fence."""
    name = (info.split() or [""])[0]
    language = language_of(name)
    parameter = f'<ac:parameter ac:name="language">{language}</ac:parameter>' if language else ""
    if name.lower() in DIAGRAMS:
        shown = f"{escaped(name)} diagram, shown as source"
        parameter = f'<ac:parameter ac:name="title">{shown}</ac:parameter>'
    text = _NO_XML.sub("\ufffd", source.removesuffix("\n")).replace("]]>", "]]]]><![CDATA[>")
    body = f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"
    return macro("code", parameter + body)


def link(target: LinkTarget, content: str, title: str = "") -> str:
    """Return a link. `title`: shown by browsers; only links to addresses can have one."""
    if target.kind == "address":
        more = f' title="{attribute(title)}"' if title.strip() else ""
        return f'<a href="{attribute(target.name)}"{more}>{content}</a>'
    if target.kind == "text" or (target.kind, target.name, target.anchor) == ("page", "", ""):
        return content  # no target, or the top of the same page
    position = f' ac:anchor="{attribute(target.anchor)}"' if target.anchor else ""
    inner = ""
    if target.kind == "file":
        inner = _attachment(target.name)
    elif target.name:
        inner = f'<ri:page ri:content-title="{attribute(target.name)}"/>'
    return f"<ac:link{position}>{inner}<ac:link-body>{content}</ac:link-body></ac:link>"


def image(target: LinkTarget, properties: dict[str, str]) -> str:
    """Return an image, or its alternative text. `properties`: attributes such as `alt`."""
    if target.kind == "text":
        return escaped(properties.get("alt", ""))
    shown = "".join(f' ac:{name}="{attribute(text)}"' for name, text in properties.items())
    source = f'<ri:url ri:value="{attribute(target.name)}"/>'
    source = source if target.kind == "address" else _attachment(target.name)
    return f"<ac:image{shown}>{source}</ac:image>"


def _attachment(name: str) -> str:
    return f'<ri:attachment ri:filename="{attribute(name)}"/>'
