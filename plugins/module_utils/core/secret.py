# SPDX-License-Identifier: GPL-3.0-or-later
"""A type for secrets, so that no traceback, log line or f-string can print one by accident."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

MASK = "***"
# Query parameters whose values are credentials in at least one of the five services or their
# storage back ends.
_SECRET_PARAMETER = re.compile(
    r"token|password|passwd|secret|signature|api_?key|^sig$|^jwt$", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY_PAIR = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]*)")


class Secret:
    """A text that only C(reveal) gives away; everything else prints C(***)."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def mask(text: str, secrets: Iterable[Secret]) -> str:
    """Replace every occurrence of the secrets in C(text), the longest first so that no tail of one
    survives.
    """
    for secret in sorted({s.reveal() for s in secrets if s.reveal()}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def secrets_of_url(url: str) -> list[str]:
    """What must not be shown of an address, as it is written and decoded.

    That is its password (or a user without one, which may be a token) and the values of secret
    parameters.
    """
    found = [user_info[:-1].split(":", 1)[-1] for user_info in _USER_INFO.findall(url)]
    found += [value for name, value in _QUERY_PAIR.findall(url) if _SECRET_PARAMETER.search(name)]
    return [text for value in found if value for text in (value, unquote(value))]


def clean_url(url: str) -> str:
    """C(url) without user info and with the values of secret query parameters masked."""

    def pair(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{name}={MASK if _SECRET_PARAMETER.search(name) else value}"

    return _QUERY_PAIR.sub(pair, _USER_INFO.sub("", url))
