# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of jobs that leave their secrets on the server: a mark replaces each secret, and
saving inserts the secret that the job has there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..xml_reader import XmlElement, parse, written_in_lines
from .configuration import class_of, drift, is_list, secret_texts, short_root

#: Replaces a secret.
KEPT = "(kept by the server)"
#: Secrets within a longer text: encrypted values [ci-15], and the password in an address, unless it
#: is a variable.
_WITHIN = re.compile(
    r"(?P<before>://[^\s/@:\"'<>]*:)(?P<password>[^\s/@$\"'{}<>]+)(?=@)"
    r"|(?P<sealed>\{AQAA[A-Za-z0-9+/]{8,}={0,2}\})"
)
_STARS = re.compile(r"\*{4,}")


def without_secrets(text: str) -> tuple[str, int]:
    """Return a configuration with marks instead of its secrets, and their number."""
    root = parse(text)
    count = _taken_out(root)
    return (written_in_lines(root), count) if count else (text, 0)


def with_secrets(live: str, text: str) -> tuple[str, list[str]]:
    """Return a configuration with the server's secrets instead of the marks, and the names of
    elements without a matching secret.
    """
    if KEPT not in text:
        return text, []
    server, wanted = parse(live), parse(text)
    missing: list[str] = []
    if short_root(server.name) == short_root(wanted.name):
        _fill(server, wanted, None, missing)
    else:
        missing = [element.name for element in _marked(wanted)]
    return written_in_lines(wanted), missing


def with_kept_secrets(live: str, text: str) -> str:
    """Return a configuration with the server's secrets instead of its own.

    A secret without an unambiguous counterpart stays: that of a new entry of a list.
    """
    wanted = parse(text)
    secrets = [element for element, holder in wanted.iterate() if is_secret(element, holder)]
    texts = [element.text for element in secrets]
    if not secrets:
        return text
    for element in secrets:
        element.text = KEPT
    _fill(parse(live), wanted, None, [])
    for element, original in zip(secrets, texts, strict=True):
        if element.text == KEPT:
            element.text = original
    return written_in_lines(wanted)


def has_secret(name: str, text: str) -> bool:
    """Return whether the text of an element of this name has a secret."""
    return _taken_out(XmlElement(name, text=text)) > 0


def marked(text: str) -> list[str]:
    """Return the names of the elements with a mark."""
    return [element.name for element in _marked(parse(text))] if KEPT in text else []


def _marked(root: XmlElement) -> Iterator[XmlElement]:
    return (element for element, _holder in root.iterate() if KEPT in element.text)


def _taken_out(root: XmlElement) -> int:
    count = 0
    for element, holder in list(root.iterate()):
        if is_secret(element, holder):
            element.text, found = KEPT, 1
        else:
            element.text, found = _WITHIN.subn(
                lambda secret: f"{secret['before'] or ''}{KEPT}", element.text
            )
        count += found
    return count


def is_secret(element: XmlElement, holder: XmlElement | None) -> bool:
    """Return whether the whole text of an element is a secret."""
    text = element.text.strip()
    return bool(text) and list(secret_texts(element, holder)) == [text]


def _fill(
    server: XmlElement, wanted: XmlElement, holder: XmlElement | None, missing: list[str]
) -> None:
    if KEPT in wanted.text:
        text = _filled(server, wanted.text, holder)
        if text is None:
            missing.append(wanted.name)
        else:
            wanted.text = text
    in_list = is_list(server.children) or is_list(wanted.children)
    left = list(server.children)
    for child in wanted.children:
        if not any(_marked(child)):
            continue
        other = _counterpart(left, child, wanted.children, in_list=in_list)
        if other is None:
            missing += [element.name for element in _marked(child)]
        else:
            left = [each for each in left if each is not other]
            _fill(other, child, server, missing)


def _filled(server: XmlElement, text: str, holder: XmlElement | None) -> str | None:
    """Return the text with the secrets of the server's text; `None` if their numbers differ."""
    if text.strip() == KEPT:
        there = server.text.strip()
        usable = is_secret(server, holder) and _STARS.fullmatch(there) is None
        return there if usable else None
    secrets = [match["password"] or match["sealed"] for match in _WITHIN.finditer(server.text)]
    parts = text.split(KEPT)
    if len(parts) != len(secrets) + 1:
        return None
    return parts[0] + "".join(map("".join, zip(secrets, parts[1:], strict=True)))


def _counterpart(
    there: list[XmlElement], child: XmlElement, siblings: list[XmlElement], *, in_list: bool
) -> XmlElement | None:
    """Return the server's element for a wanted element with marks, of the same class. In a list the
    two are equal except for the secret, or the only elements of their kind: a secret never moves
    to another entry.
    """
    kind = (child.name, class_of(child))
    equal = [each for each in there if (each.name, class_of(each)) == kind]
    if not in_list:
        return equal[0] if equal else None
    text = _marked_text(child)
    same = next((each for each in equal if not drift(_marked_text(each), text).found), None)
    if same is not None:
        return same
    only = len(equal) == 1 and [sibling.name for sibling in siblings].count(child.name) == 1
    return equal[0] if only else None


def _marked_text(element: XmlElement) -> str:
    """Return an element with marks instead of its secrets, also of those in addresses."""
    return without_secrets(written_in_lines(element))[0]
