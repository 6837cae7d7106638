# SPDX-License-Identifier: GPL-3.0-or-later
"""A type for secrets that tracebacks and f-strings do not print, a list of secrets to mask, and how
to recognise secrets by a name and in an address [C12].
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
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
#: Names of options that are addresses.
_ADDRESS_OPTION = re.compile(r"(^|_)url$")
# The hexadecimal digits of escapes in addresses and JSON.
_HEX_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
# Shorter secrets, and these words, occur in too many other strings to be masked there.
_SHORTEST_TEXT, _SHORTEST_NUMBER = 4, 6
_WORDS = frozenset({"true", "false", "none", "null"})
# Minimum lengths of base64 forms and of single lines of a secret: shorter strings may occur in
# other strings by chance.
_SHORTEST_BASE64 = 8
_SHORTEST_LINE = 16
# A name is secret by its last word. A prefix may be part of that word (`PGPASSWORD`), and numbers
# and the words of `_NO_LAST_WORD` may follow it (`token_2`, `secretText`).
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NO_LAST_WORD = frozenset({"value", "text", "base", "b"})
_SECRET_WORD = re.compile(
    r"(.*(passw(or)?d|passphrase|pwd|psw|secret|token|(api|private|secret|access)key)|jwt|pin|pat"
    r"|(.*(pg|store|key))?pass|cookie)s?",
    re.DOTALL,
)
# Words before `key` that make it a secret; `project_key` or `sortKey` are none.
_SECRET_KEY = re.compile(
    "access|account|api|auth|aws|client|deploy|encryption|gpg|master|pgp|private|rsa|secret|shared"
    "|signing|ssh|storage"
)
_TOKEN_SHAPE = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w.~+=-]{16,}")


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
    """Return whether the last word of a name says that its value is a secret [C12].

    `DB_PASSWORD`, `apiKey` and `GH_PAT` are such names; `tokenId` and `passwordStrategy` are not.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    while words[1:] and words[-1] in _NO_LAST_WORD:
        words.pop()
    last = words[-1] if words else ""
    if last in ("key", "keys"):
        return len(words) > 1 and _SECRET_KEY.fullmatch(words[-2]) is not None
    # a variable of the environment; in other names it is the id of stored credentials
    if last == "credentials":
        return name.isupper()
    return _SECRET_WORD.fullmatch(last) is not None


def is_token(user: str) -> bool:
    """Return whether a user name without a password is probably a token."""
    return _TOKEN_SHAPE.fullmatch(user) is not None


def members_of(value: Mapping[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield key, name and value of the members of an object.

    The name decides whether the value is a secret. For the value of a variable it is the name of
    the variable, and "secret" if the variable is marked as sensitive, such as a header.
    """
    variable = next((value[key] for key in ("key", "name", "id") if key in value), None)
    is_variable = "value" in value and isinstance(variable, str)
    for key, item in value.items():
        named = {"key": "", "value": "secret" if value.get("sensitive") else variable}
        member = named.get(key, str(key)) if is_variable else str(key)
        yield key, str(member), item


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
        for line in map(str.strip, lines):
            if len(line) >= _SHORTEST_LINE and not line.startswith("-----"):
                yield line


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

    These are the password, a user without password that looks like a token, the values of secret
    parameters, and misplaced user info.
    """
    found = []
    for user_info in _USER_INFO.findall(url):
        user, colon, password = user_info[:-1].partition(":")
        found.append(password if colon or not is_token(user) else user)
    found += [value for name, value in _QUERY_PAIR.findall(url) if _SECRET_PARAMETER.search(name)]
    start, end = misplaced_user_info(url)
    found += _secrets_of_misplaced(url[start:end])
    return [text for value in found if value for text in dict.fromkeys((value, unquote(value)))]


def _secrets_of_misplaced(user_info: str) -> tuple[str, ...]:
    """Return the secrets in misplaced user info, which may end at another `@` than the user meant.

    A user name without a password is no secret, for example in `git@host:group/repository`.
    """
    if re.fullmatch(r"[\w.-]*", user_info) and not is_token(user_info):
        return ()
    return user_info, user_info.partition(":")[2]


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


def can_be_masked(text: str) -> bool:
    """Return whether a secret is long enough to be masked in every output."""
    shortest = _SHORTEST_NUMBER if text.isdigit() else _SHORTEST_TEXT
    return len(text) >= shortest and text.lower() not in _WORDS


def secrets_in_addresses(name: str, value: object) -> Iterator[str]:
    """Yield the secrets that can be masked in all addresses in the value of an option.

    :param name: name of the option
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in_addresses(str(key), item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in_addresses(name, item)
    elif isinstance(value, str) and "@" in value:
        yield from filter(can_be_masked, _secrets_in_text(name, value))


def _secrets_in_text(name: str, text: str) -> Iterator[str]:
    if _ADDRESS_OPTION.search(name) is not None:
        start, end = misplaced_user_info(text, whole=True)
        yield from filter(None, _secrets_of_misplaced(text[start:end]))
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
