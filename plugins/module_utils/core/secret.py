# SPDX-License-Identifier: GPL-3.0-or-later
"""A type for secrets that no traceback, log line or f-string prints, and the secrets to mask."""

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
#: Options that are addresses: a user name in them counts as a token.
_ADDRESS_OPTION = re.compile(r"(^|_)url$")
# Hexadecimal digits of escapes in JSON and in addresses.
_HEX_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
# A shorter base64 form may occur in any other string.
_SHORTEST_BASE64 = 8
# So may a shorter line of a secret with several lines.
_SHORTEST_LINE = 16
_SECRET_NAME = re.compile(r"passw|passphrase|pwd|psw|secret|token|credential|key", re.IGNORECASE)


class Secret:
    """A string that only `reveal` returns; printed, it is `***`."""

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
    """Return whether the name of a parameter marks its value as a secret."""
    return _SECRET_NAME.search(name) is not None


class Hidden:
    """The secrets that output must not show, in every form in which a server may repeat them.

    A process has a single list, `hidden`: code that cuts a string must mask it first, even if it
    knows nothing else of the task.
    """

    def __init__(self) -> None:
        self._forms: dict[str, None] = {}  # longest first, so that no tail of a secret is left

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(self._forms)

    def add(self, *texts: str) -> None:
        whole = {text for text in texts if text and text not in self._forms}
        new = {form for text in whole for part in (text, *_lines(text)) for form in forms(part)}
        if new:
            known = sorted({*self._forms, *new}, key=lambda form: (-len(form), form))
            # a single assignment, because other threads mask at the same time
            self._forms = dict.fromkeys(known)

    def clear(self) -> None:
        self._forms = {}

    def mask(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, MASK)
        return text


#: The secrets of the task that runs in this process.
hidden = Hidden()


def _lines(text: str) -> Iterator[str]:
    """Yield the long lines of a multi-line secret, such as a key: output may wrap it elsewhere."""
    lines = text.split("\n")
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if _is_secret_line(line))


def _is_secret_line(line: str) -> bool:
    return len(line) >= _SHORTEST_LINE and not line.startswith("-----")


def forms(text: str) -> set[str]:
    """Return the forms in which servers and proxies write a secret: plain, percent-encoded, in
    JSON, in HTML, in base64 (as in a basic authorization header with any user).
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
    """Yield the part of the base64 form that does not depend on the bytes around the secret, for
    every offset in a group of three bytes.
    """
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        encoded = b64encode(bytes(offset) + data).decode("ascii")
        form = encoded[first : (offset + len(data)) * 8 // 6]
        if len(form) >= _SHORTEST_BASE64:
            yield from (form, form.replace("+", "-").replace("/", "_"))


def secrets_of_url(url: str) -> list[str]:
    """Return the secrets of an address, as written and decoded.

    These are its password (or a user without password, which may be a token), the values of secret
    parameters, and everything before the last `@` if it cannot be distinguished from the host.
    """
    found = [user_info[:-1].split(":", 1)[-1] for user_info in _USER_INFO.findall(url)]
    found += [value for name, value in _QUERY_PAIR.findall(url) if _SECRET_PARAMETER.search(name)]
    start, end = misplaced_user_info(url)
    found += [url[start:end], url[start:end].partition(":")[2]]
    return [text for value in found if value for text in dict.fromkeys((value, unquote(value)))]


def misplaced_user_info(address: str, *, whole: bool = False) -> tuple[int, int]:
    """Return the range of an address before the last `@` that a parser does not read as user info,
    although it may be meant as such (`u:p/w@host`, `http:/u:p@host`); an empty range without it.

    :param whole: the paths of such addresses contain no `@`, and hosts are not given alone
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
    elif start + len(authority) > end:  # user info that can be read
        return start, start
    else:
        unclear = _HOST_AND_PORT.fullmatch(authority) is None or "\\" in address[start:end]
        suspicious = whole or unclear
    return (start, end) if suspicious else (start, start)


def secrets_in_addresses(name: str, value: object) -> Iterator[str]:
    """Yield the secrets of all addresses in an option, at any depth."""
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
    """Return the address without its user info."""
    return _USER_INFO.sub("", url)


def clean_url(url: str, *, whole: bool = False) -> str:
    """Return the address without user info, with secret query parameters masked.

    A part that may be user info is masked, too; for `whole` see :func:`misplaced_user_info`.
    """

    def pair(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{name}={MASK if _SECRET_PARAMETER.search(name) else value}"

    start, end = misplaced_user_info(url, whole=whole)
    if end > start:
        url = f"{url[:start]}{MASK}{url[end:]}"
        return _QUERY_PAIR.sub(pair, url)
    return _QUERY_PAIR.sub(pair, without_user_info(url))
