# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations in files: secrets that stay, and secrets that are masked. Nothing here contacts a
server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.secret import MASK, is_secret_name
from ..xml_reader import ElementSpan, UnreadableXml, XmlElement, parse, spans_of
from .configuration import SHORTEST, attribute_of, drift, secrets, text_of, without_encrypted
from .kept_secrets import with_own_secrets

_LINE = re.compile(r"[^\n]+")
_COMMENT = re.compile(r"<!--[\s\S]*?-->")
_ELEMENT = re.compile(r"(<([\w.-]+)[^<>\n]*>)([^<\n]+)(?=</\2>)")


def merged(own: str, exported: str) -> str:
    """Return an exported configuration with the secrets of a file.

    :param own: text of the file, which is returned if both have the same meaning
    """
    wanted = with_own_secrets(exported, own)
    try:
        return wanted if drift(wanted, own).found else own
    except UnreadableXml:
        return wanted


def masked(text: str) -> str:
    """Return a configuration with its secrets masked, as in the diff of a job.

    The lines stay, so that a patch can show them. Without well-formed XML the names decide.
    """
    try:
        root = parse(text)
    except UnreadableXml:
        return without_encrypted(_ELEMENT.sub(_masked_element, text))
    known = [secret for secret in secrets(text) if len(secret) >= SHORTEST]
    spans = []
    for (element, parent), place in zip(root.iterate(), spans_of(text), strict=True):
        if not element.children and text_of(element, parent).may_be_secret:
            spans.append((place.inner, place.close))
        spans += _secret_attributes(text, element, place)
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}{_LINE.sub(MASK, text[start:end])}{text[end:]}"
    text = _COMMENT.sub(lambda comment: _ELEMENT.sub(_masked_element, comment[0]), text)
    for secret in sorted(known, key=len, reverse=True):  # a secret may be repeated in a comment
        text = text.replace(secret, _LINE.sub(MASK, secret))
    return without_encrypted(text)


def _masked_element(element: re.Match[str]) -> str:
    return f"{element[1]}{MASK}" if is_secret_name(element[2]) else element[0]


def _secret_attributes(
    text: str, element: XmlElement, place: ElementSpan
) -> Iterator[tuple[int, int]]:
    for name in element.attributes:
        if attribute_of(element, name).may_be_secret:
            value = re.compile(rf"\s{re.escape(name)}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
            found = value.search(text, place.start, place.inner)
            if found is not None:
                yield found.span(found.lastindex or 0)
