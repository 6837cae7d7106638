# SPDX-License-Identifier: GPL-3.0-or-later
"""A type for secrets, so that no traceback, log line or f-string can print one by accident, and the
one list of what no output may show.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
# Query parameters whose values are credentials in at least one of the five services or their
# storage back ends.
_SECRET_PARAMETER = re.compile(
    r"token|password|passwd|secret|signature|api_?key|^sig$|^jwt$|^jsessionid$", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/?#\\\s]*@")
# Pairs also stand in fragments and behind semicolons. A value may hold a semicolon itself.
_QUERY_PAIR = re.compile(r"(?<=[?&#;])([^=&?\s#;]+)=((?:[^&\s#;]|;(?![^=&?\s#;]+=))*)")
_BEGINNING = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*:/+)?")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%]+[^\]]*\]|[^:@]+)(:[0-9]*)?")
#: Options that are addresses: there a name before the host is taken for a token.
_ADDRESS_OPTION = re.compile(r"(^|_)url$")
# As JSON and addresses escape a character.
_HEX_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
# What is shorter in base64 than this may be a part of any other text.
_SHORTEST_BASE64 = 8
# So does a shorter line of a secret that has several.
_SHORTEST_LINE = 16
_SECRET_NAME = re.compile(r"passw|passphrase|pwd|psw|secret|token|credential|key", re.IGNORECASE)


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


def is_secret_name(name: str) -> bool:
    """Whether the name of a parameter or an argument says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


class Hidden:
    """What no output of the task may show, in every form in which a server may show it again.

    There is one list in a process (:data:`hidden`): whoever cuts a text must mask it first, also
    where nothing else is known of the task.
    """

    def __init__(self) -> None:
        self._forms: dict[str, None] = {}  # the longest first, so that no tail of one survives

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(self._forms)

    def add(self, *texts: str) -> None:
        whole = {text for text in texts if text and text not in self._forms}
        new = {form for text in whole for part in (text, *_lines(text)) for form in forms(part)}
        if new:
            known = sorted({*self._forms, *new}, key=lambda form: (-len(form), form))
            self._forms = dict.fromkeys(known)  # in one step, for the threads that mask meanwhile

    def clear(self) -> None:
        self._forms = {}

    def mask(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, MASK)
        return text


#: The secrets of the task that runs in this process.
hidden = Hidden()


def _lines(text: str) -> Iterator[str]:
    """The lines of a secret that has several, as a key: whoever shows it may break it elsewhere."""
    lines = text.split("\n")
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if _is_telling(line))


def _is_telling(line: str) -> bool:
    return len(line) >= _SHORTEST_LINE and not line.startswith("-----")


def forms(text: str) -> set[str]:
    """A secret as servers and proxies write it: bare, percent-encoded, in JSON, in HTML, in base64
    (the header of HTTP basic, whoever the user is).
    """
    percent = {
        quote(text, safe=safe, errors="replace") for safe in ("", "/", "!*'()", ":@/!$&'()*+,;=")
    }
    percent |= {
        quote_plus(text, errors="replace"),
        quote_plus(text, safe="*", errors="replace").replace("~", "%7E"),
    }
    in_json = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    in_json |= {form.replace("/", "\\/") for form in in_json}
    in_html = {html.escape(text, quote=quoted) for quoted in (True, False)}
    in_html |= {form.replace("&#x27;", "&#39;").replace("&quot;", "&#34;") for form in in_html}
    found = {text, *in_html, *_base64(text.encode("utf-8", "surrogatepass"))}
    for form in (*percent, *in_json):
        found |= {
            form,
            _HEX_DIGITS.sub(lambda digits: digits.group().lower(), form),
            _HEX_DIGITS.sub(lambda digits: digits.group().upper(), form),
        }
    return found


def _base64(data: bytes) -> Iterator[str]:
    """What of the base64 form is the same whatever stands before and behind, for each place in the
    groups of three bytes.
    """
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        whole = b64encode(bytes(offset) + data).decode("ascii")
        form = whole[first : (offset + len(data)) * 8 // 6]
        if len(form) >= _SHORTEST_BASE64:
            yield from (form, form.replace("+", "-").replace("/", "_"))


def secrets_of_url(url: str) -> list[str]:
    """What must not be shown of an address, as it is written and decoded.

    That is its password (or a user without one, which may be a token), the values of secret
    parameters, and all before the last C(@) where that cannot be told from the host.
    """
    found = [user_info[:-1].split(":", 1)[-1] for user_info in _USER_INFO.findall(url)]
    found += [value for name, value in _QUERY_PAIR.findall(url) if _SECRET_PARAMETER.search(name)]
    start, end = misplaced_user_info(url)
    found += [url[start:end], url[start:end].partition(":")[2]]
    return [text for value in found if value for text in dict.fromkeys((value, unquote(value)))]


def misplaced_user_info(address: str, *, whole: bool = False) -> tuple[int, int]:
    """Where in an address something stands before the last C(@) that is no user info to a parser,
    but may be meant so (C(u:p/w@host), C(http:/u:p@host)); an empty range where nothing does.

    :param whole: no path of such an address has an C(@), and no host is given alone
    """
    beginning = _BEGINNING.match(address)
    start = 0 if beginning is None else beginning.end()
    scheme = "" if beginning is None else beginning[1] or ""
    end = address.rfind("@")
    if end < start:
        return start, start
    authority = re.split(r"[/?#\\\s]", address[start:], maxsplit=1)[0]
    if not scheme:
        suspicious = whole or (":" in authority and "@" in address)
    elif not scheme.endswith("://") or scheme.endswith(":///"):
        suspicious = True
    elif start + len(authority) > end:  # all of it is user info that can be read
        return start, start
    else:
        unclear = _HOST_AND_PORT.fullmatch(authority) is None or "\\" in address[start:end]
        suspicious = whole or unclear
    return (start, end) if suspicious else (start, start)


def secrets_in_addresses(name: str, value: object) -> Iterator[str]:
    """The secrets in the addresses that an option holds, at any depth."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from secrets_in_addresses(str(key), each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from secrets_in_addresses(name, each)
    elif isinstance(value, str) and "@" in value:
        yield from _secrets_in_text(name, value)


def _secrets_in_text(name: str, text: str) -> Iterator[str]:
    if _ADDRESS_OPTION.search(name) is not None:
        start, end = misplaced_user_info(text, whole=True)
        yield from filter(None, (text[start:end], text[start:end].partition(":")[2]))
        yield from secrets_of_url(text)
    elif name == "job" or re.match(r"\s*[A-Za-z][A-Za-z0-9+.-]*:/", text) is not None:
        user_info = _USER_INFO.search(text)
        if name == "job" or user_info is None or ":" in user_info.group():
            yield from secrets_of_url(text)


def without_user_info(url: str) -> str:
    """C(url) as it is, without its user info."""
    return _USER_INFO.sub("", url)


def clean_url(url: str, *, whole: bool = False) -> str:
    """C(url) without user info and with the values of secret query parameters masked; what cannot
    be told from user info is masked, too (C(whole): see :func:`misplaced_user_info`).
    """

    def pair(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{name}={MASK if _SECRET_PARAMETER.search(name) else value}"

    start, end = misplaced_user_info(url, whole=whole)
    if end > start:
        url = f"{url[:start]}{MASK}{url[end:]}"
        return _QUERY_PAIR.sub(pair, url)
    return _QUERY_PAIR.sub(pair, without_user_info(url))
