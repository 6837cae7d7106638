# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep secrets out of exported job configurations.

An exported configuration contains the placeholder `(kept by the server)` instead of each secret.
Before the configuration is saved, the current secret of the job replaces the placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..xml_reader import XmlElement, parse, written_in_lines
from .configuration import class_of, drift, is_list, secret_texts, short_root

#: Placeholder for a secret.
KEPT = "(kept by the server)"
#: Secrets in a longer text: encrypted values [ci-15] and passwords in URLs, except variables.
_EMBEDDED_SECRET = re.compile(
    r"(?P<before>://[^\s/@:\"'<>]*:)(?P<password>[^\s/@$\"'{}<>]+)(?=@)"
    r"|(?P<sealed>\{AQAA[A-Za-z0-9+/]{8,}={0,2}\})"
)
_STARS = re.compile(r"\*{4,}")


def without_secrets(text: str) -> tuple[str, int]:
    """Return a configuration with placeholders for its secrets, and the number of secrets."""
    root = parse(text)
    count = _remove_secrets(root)
    return (written_in_lines(root), count) if count else (text, 0)


def with_secrets(live: str, text: str) -> tuple[str, list[str]]:
    """Replace the placeholders in a configuration by the server's secrets.

    Returns the configuration, and the names of elements for which the server has no secret.

    :param live: XML of the server
    :param text: XML of the task
    """
    if KEPT not in text:
        return text, []
    server, wanted = parse(live), parse(text)
    missing: list[str] = []
    if short_root(server.name) == short_root(wanted.name):
        _insert_secrets(server, wanted, None, missing)
    else:
        missing = [element.name for element in _marked(wanted)]
    return written_in_lines(wanted), missing


def with_kept_secrets(live: str, text: str) -> str:
    """Replace the secrets in a configuration by the server's secrets.

    A secret that has no unambiguous counterpart on the server is left unchanged, for example the
    secret of a new list item.

    :param live: XML of the server
    :param text: XML of the task
    """
    wanted = parse(text)
    secrets = [element for element, parent in wanted.iterate() if is_secret(element, parent)]
    texts = [element.text for element in secrets]
    if not secrets:
        return text
    for element in secrets:
        element.text = KEPT
    _insert_secrets(parse(live), wanted, None, [])
    for element, original in zip(secrets, texts, strict=True):
        if element.text == KEPT:
            element.text = original
    return written_in_lines(wanted)


def has_secret(name: str, text: str) -> bool:
    """Return whether the text of an element with this name contains a secret."""
    return _remove_secrets(XmlElement(name, text=text)) > 0


def marked(text: str) -> list[str]:
    """Return the names of the elements that contain a placeholder."""
    return [element.name for element in _marked(parse(text))] if KEPT in text else []


def _marked(root: XmlElement) -> Iterator[XmlElement]:
    return (element for element, _holder in root.iterate() if KEPT in element.text)


def _remove_secrets(root: XmlElement) -> int:
    count = 0
    for element, parent in list(root.iterate()):
        if is_secret(element, parent):
            element.text, found = KEPT, 1
        else:
            element.text, found = _EMBEDDED_SECRET.subn(
                lambda secret: f"{secret['before'] or ''}{KEPT}", element.text
            )
        count += found
    return count


def is_secret(element: XmlElement, parent: XmlElement | None) -> bool:
    """Return whether the whole text of an element is a secret."""
    text = element.text.strip()
    return bool(text) and list(secret_texts(element, parent)) == [text]


def _insert_secrets(
    server: XmlElement, wanted: XmlElement, parent: XmlElement | None, missing: list[str]
) -> None:
    if KEPT in wanted.text:
        text = _text_with_secrets(server, wanted.text, parent)
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
            left = [element for element in left if element is not other]
            _insert_secrets(other, child, server, missing)


def _text_with_secrets(server: XmlElement, text: str, parent: XmlElement | None) -> str | None:
    """Return the text with the server's secrets, or `None` if the number of secrets differs."""
    if text.strip() == KEPT:
        server_text = server.text.strip()
        usable = is_secret(server, parent) and _STARS.fullmatch(server_text) is None
        return server_text if usable else None
    secrets = [
        match["password"] or match["sealed"] for match in _EMBEDDED_SECRET.finditer(server.text)
    ]
    parts = text.split(KEPT)
    if len(parts) != len(secrets) + 1:
        return None
    return parts[0] + "".join(map("".join, zip(secrets, parts[1:], strict=True)))


def _counterpart(
    candidates: list[XmlElement], child: XmlElement, siblings: list[XmlElement], *, in_list: bool
) -> XmlElement | None:
    """Return the server's element that corresponds to an element with placeholders.

    Both have the same name and class. List items must also be equal except for the secret, or be
    the only items of their kind. A secret is never moved to another list item.
    """
    kind = (child.name, class_of(child))
    equal = [element for element in candidates if (element.name, class_of(element)) == kind]
    if not in_list:
        return equal[0] if equal else None
    text = _marked_text(child)
    same = next(
        (element for element in equal if not drift(_marked_text(element), text).found), None
    )
    if same is not None:
        return same
    only = len(equal) == 1 and [sibling.name for sibling in siblings].count(child.name) == 1
    return equal[0] if only else None


def _marked_text(element: XmlElement) -> str:
    """Return the XML of an element with placeholders for its secrets."""
    return without_secrets(written_in_lines(element))[0]
