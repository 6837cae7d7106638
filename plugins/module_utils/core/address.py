# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the host that an address leads to, as the HTTP library reads it, however else it may be
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, urlencode, urljoin, urlsplit

from .errors import invalid, printable
from .secret import clean_url, misplaced_user_info

if TYPE_CHECKING:
    from requests import PreparedRequest

#: Scheme, host and port.
Origin: TypeAlias = "tuple[str, str, int | None]"

#: The origin of an invalid or ambiguous address.
NOWHERE: Origin = ("", "", None)

DEFAULT_PORTS = {"http": 80, "https": 443}
# No address has a backslash, a blank, a control character or a mark of writing direction: parsers
# disagree about the end of a host with such characters.
_UNFIT = re.compile(r"[\\\s\x00-\x20\x7f-\xa0\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
#: Path segments that servers and proxies resolve, or leave out.
LEADING_ELSEWHERE = frozenset({".", "..", ""})
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")  # nothing to encode
_BASE = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
# A base address in its usual form, which all parsers read alike.
_USUAL_BASE = re.compile(r"(https?)://([A-Za-z0-9_-][A-Za-z0-9._-]*)(?::([1-9][0-9]{0,4}))?")
_HIGHEST_PORT = 65535

# Only characters that are valid in a path or a query, no segment that is empty or begins with a
# dot, and no unnecessary percent-encoding.
_CHARACTER = (
    r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]"
    r"|%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]))"
)
_USUAL_TARGET = re.compile(rf"(?:/(?![/.]){_CHARACTER}*)+(?:\?(?:{_CHARACTER}|[/?])+)?")

Pairs: TypeAlias = Iterable[tuple[str, Any]]
#: A query or a form: a mapping or pairs; lists repeat the name, `None` is left out.
Query: TypeAlias = "Mapping[str, Any] | Pairs"
_LOGIN_PAGE = re.compile(
    r"(commence)?(log|sign)[-_]?[io]n(\.(action|jsp|do|html?|php|aspx?))?", re.IGNORECASE
)


class UnfitRequest(ValueError):
    """An address, a header or the address of a proxy with which nothing can be sent."""


def path(*segments: str, slash: bool = False) -> str:
    """Percent-encode path segments, and join them. A segment `.` or `..` is rejected: servers and
    proxies resolve it.
    """
    if not LEADING_ELSEWHERE.isdisjoint(segments):
        raise invalid(f"'{'/'.join(segments)}' is not a path: it has an empty, '.' or '..' segment")
    encoded = [
        segment if _PLAIN.fullmatch(segment) else quote(segment, safe="") for segment in segments
    ]
    return "/".join(encoded) + ("/" if slash else "")


def require_segment(option: str, value: str | None) -> None:
    """Raise `invalid` for an option that cannot be a segment of a path."""
    if value in LEADING_ELSEWHERE:
        raise invalid(f"{option} is '{value}', which is not a name: set it to a name or id")


def encode(query: Query) -> str:
    """Percent-encode a query or a form (blank as `%20`); booleans are lower case."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items() if isinstance(query, Mapping) else query:
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return urlencode(pairs, quote_via=quote, safe="")


def is_login_page(url: str, asked: str = "") -> bool:
    """Return whether an address is that of a login page, by the names that servers and
    single-sign-on proxies use.

    :param asked: the address that led there: a page of the requested name is not a login page
    """
    name = _last_segment(url)
    return _LOGIN_PAGE.fullmatch(name) is not None and name != _last_segment(asked)


def _last_segment(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].rstrip("/").rsplit("/", 1)[-1]


def is_fit(address: str) -> bool:
    """Return whether a string could be an address."""
    return _UNFIT.search(address) is None


def require_address(address: str, where: str) -> None:
    """Raise `invalid` unless `address` can be read. The message contains its place (`of the ci
    service`), but no password.
    """
    shown = f"the address {printable(clean_url(address, whole=True))} {where}"
    start, end = misplaced_user_info(address, whole=True)
    if end > start:
        raise invalid(
            f"{shown} cannot be parsed: it must begin with http:// or https://, and the part"
            " before the last @ must be user:password; percent-encode the password (/ is %2F, # is"
            " %23, ? is %3F, a blank %20, @ %40)"
        )
    if not is_fit(address):
        raise invalid(
            f"{shown} cannot be parsed: it contains a blank, a backslash or a control character;"
            " percent-encode it (a blank is %20)"
        )
    if _BASE.match(address) is None:
        raise invalid(f"{shown} must begin with http:// or https:// and name a host")
    if origin(address) == NOWHERE:
        raise invalid(f"{shown} cannot be parsed: correct its host or port")


def origin(address: str) -> Origin:
    """Return scheme, host and port that a request to `address` connects to, with the default port
    made explicit; :data:`NOWHERE` if the address is invalid.
    """
    base = _BASE.match(address) if is_fit(address) else None
    return NOWHERE if base is None else _connected(base.group())


@lru_cache(maxsize=256)
def _connected(base: str) -> Origin:
    """Return the origin of an address that has nothing but scheme, user info, host and port.

    The library prepares an unusual address: it encodes the host, and drops a port 0. Then its
    parser and that of the standard library have to agree.
    """
    usual = _USUAL_BASE.fullmatch(base)
    if usual is not None and int(usual[3] or 0) <= _HIGHEST_PORT:
        return usual[1], usual[2].lower(), int(usual[3] or DEFAULT_PORTS[usual[1]])
    from urllib3.exceptions import HTTPError
    from urllib3.util import parse_url

    try:
        urlsplit(base)  # code that looks up a proxy or user info parses the unprepared address
        address = prepared(f"{base}/").url or ""
        parts, theirs = urlsplit(address), parse_url(address)
        host, port = parts.hostname or "", parts.port
    except (HTTPError, ValueError):
        return NOWHERE
    same = (theirs.scheme, _bare(theirs.host), theirs.port) == (parts.scheme, _bare(host), port)
    if not same or not host or parts.scheme not in DEFAULT_PORTS:
        return NOWHERE
    return parts.scheme, host, port or DEFAULT_PORTS[parts.scheme]


def _bare(host: str | None) -> str:
    """Return a host without the brackets of an IPv6 address."""
    return (host or "").strip("[]").lower()


def target(url: str, location: str) -> str:
    """Return the address that a `Location` header in a response from `url` names; an invalid header
    is returned unchanged.
    """
    if not is_fit(location):
        return location
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def leads_elsewhere(here: str, there: str, *, foreign_hosts: bool) -> bool:
    """Return whether a redirect must not be followed: to an invalid address, from https to http,
    or, unless `foreign_hosts`, to another origin.
    """
    old, new = origin(here), origin(there)
    downgrade = old[0] == "https" and new[0] != "https"
    return new == NOWHERE or downgrade or (new != old and not foreign_hosts)


def prepared_url(address: str) -> str:
    """Return an address in the form that is sent. The library prepares only unusual addresses: its
    checks take as long as a small request.
    """
    base = _USUAL_BASE.match(address)
    if base is not None and _USUAL_TARGET.fullmatch(address, base.end()):
        return address
    return prepared(address).url or ""


def prepared(address: str) -> PreparedRequest:
    """Let `requests` prepare an address; `UnfitRequest` if it rejects it."""
    from requests import PreparedRequest, RequestException

    found = PreparedRequest()
    try:
        found.prepare_url(address, None)
    except RequestException as error:
        raise UnfitRequest(str(error)) from None
    return found


def path_of(address: str) -> str:
    """Return the path of an address, still encoded; empty for an invalid address."""
    try:
        return urlsplit(address).path if is_fit(address) else ""
    except ValueError:
        return ""
