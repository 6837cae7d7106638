# SPDX-License-Identifier: GPL-3.0-or-later
"""A type for secrets that tracebacks and f-strings do not print, and a list of secrets to mask."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
# Names of query parameters that contain credentials in at least one service or storage back end.
_SECRET_PARAMETER = re.compile(
    r"token|password|passwd|secret|signature|api_?key|^sig$|^jwt$|^jsessionid$", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/?#\\\s]*@")
# Fragments contain pairs too, and semicolons may separate pairs or be a part of a value.
_QUERY_PAIR = re.compile(r"(?<=[?&#;])([^=&?\s#;]+)=((?:[^&\s#;]|;(?![^=&?\s#;]+=))*)")
_BEGINNING = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*:/+)?")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%]+[^\]]*\]|[^:@]+)(:[0-9]*)?")
#: Names of options that are addresses. A user without a password in them may be a token.
_ADDRESS_OPTION = re.compile(r"(^|_)url$")
# The hexadecimal digits of escapes in addresses and JSON.
_HEX_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
# Minimum lengths of base64 forms and of single lines of a secret: shorter strings may occur in
# other strings by chance.
_SHORTEST_BASE64 = 8
_SHORTEST_LINE = 16
_SECRET_NAME = re.compile(r"passw|passphrase|pwd|psw|secret|token|credential|key", re.IGNORECASE)


class Secret:
    """A string that is printed as `***`; only `reveal` returns it."""

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
    """Return whether the name of a parameter suggests that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


class Hidden:
    """The secrets that output must not contain, in every encoding in which a server may echo them.

    The list is global (`hidden`), because all code that truncates a string must mask it first.
    """

    def __init__(self) -> None:
        # longest first: a secret may be the beginning of another secret
        self._forms: dict[str, None] = {}

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
    """Yield the long lines of a multi-line secret, such as a key, because output may re-wrap it."""
    lines = text.split("\n")
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if _is_secret_line(line))


def _is_secret_line(line: str) -> bool:
    return len(line) >= _SHORTEST_LINE and not line.startswith("-----")


def forms(text: str) -> set[str]:
    """Return a secret in all encodings that servers and proxies use: plain, percent-encoding, JSON,
    HTML, and base64 as in the header of basic authentication.
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
    """Yield the base64 encoding of a secret inside other data, for each offset modulo three.

    Characters that depend on the adjacent bytes are left out.
    """
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        encoded = b64encode(bytes(offset) + data).decode("ascii")
        form = encoded[first : (offset + len(data)) * 8 // 6]
        if len(form) >= _SHORTEST_BASE64:
            yield from (form, form.replace("+", "-").replace("/", "_"))


def secrets_of_url(url: str) -> list[str]:
    """Return the secrets in an address, both encoded and decoded.

    These are the password, a user without password (it may be a token), the values of secret
    parameters, and misplaced user info.
    """
    found = [user_info[:-1].split(":", 1)[-1] for user_info in _USER_INFO.findall(url)]
    found += [value for name, value in _QUERY_PAIR.findall(url) if _SECRET_PARAMETER.search(name)]
    start, end = misplaced_user_info(url)
    found += [url[start:end], url[start:end].partition(":")[2]]
    return [text for value in found if value for text in dict.fromkeys((value, unquote(value)))]


def misplaced_user_info(address: str, *, whole: bool = False) -> tuple[int, int]:
    """Return the range before the last `@` of an address if it may contain a password, but is not
    valid user info, as in `u:p/w@host` or `http:/u:p@host`. The range is empty otherwise.

    :param whole: treat every `@` as the end of user info, even after a path or without a scheme
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
    """Yield the secrets in all addresses in the value of an option, at any depth.

    :param name: name of the option
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in_addresses(str(key), item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in_addresses(name, item)
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
    """Return an address without user info, with secret query parameters masked.

    Misplaced user info is masked; for `whole` see :func:`misplaced_user_info`.
    """

    def pair(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{name}={MASK if _SECRET_PARAMETER.search(name) else value}"

    start, end = misplaced_user_info(url, whole=whole)
    if end > start:
        url = f"{url[:start]}{MASK}{url[end:]}"
        return _QUERY_PAIR.sub(pair, url)
    return _QUERY_PAIR.sub(pair, without_user_info(url))
