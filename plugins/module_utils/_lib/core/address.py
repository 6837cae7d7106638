# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and encode URLs (here: addresses), and determine the host that a request connects to."""

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
# Characters that no address may contain, because parsers disagree where a host with such a
# character ends: backslash, space, control characters and invisible characters.
_UNFIT = re.compile(r"[\\\s\x00-\x20\x7f-\xa0\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
#: Path segments that servers and proxies remove when they normalize a path.
REMOVED_SEGMENTS = frozenset({".", "..", ""})
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")  # nothing to encode
_BASE = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
# A base address in its usual form, which all parsers read in the same way.
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
#: Parameters of an address of an identity provider: SAML, OAuth 2 and OpenID Connect.
_SIGN_ON = (("samlrequest=",), ("response_type=", "redirect_uri="))


class UnfitRequest(ValueError):
    """An address, header or proxy address with which no request can be sent."""


def path(*segments: str, slash: bool = False) -> str:
    """Percent-encode path segments and join them with `/`.

    Raises `invalid` for an empty segment, `.` and `..`, because servers and proxies would resolve
    them.

    :param slash: end the path with a slash
    """
    if not REMOVED_SEGMENTS.isdisjoint(segments):
        raise invalid(f"'{'/'.join(segments)}' is not a path: it has an empty, '.' or '..' segment")
    encoded = [
        segment if _PLAIN.fullmatch(segment) else quote(segment, safe="") for segment in segments
    ]
    return "/".join(encoded) + ("/" if slash else "")


def require_segment(option: str, value: str | None) -> None:
    """Raise `invalid` if the value of an option is empty, `.` or `..`."""
    if value in REMOVED_SEGMENTS:
        raise invalid(f"{option} is '{value}', which is not a name: set it to a name or id")


def encode(query: Query) -> str:
    """Return a query or a form in percent-encoding. Spaces become `%20`, booleans lower case."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items() if isinstance(query, Mapping) else query:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is not None:
                pairs.append((name, str(item).lower() if isinstance(item, bool) else str(item)))
    return urlencode(pairs, quote_via=quote, safe="")


def is_login_page(url: str, requested: str = "") -> bool:
    """Return whether an address looks like that of a login page.

    Its last path segment is a common name of login pages, or its query that of a single sign-on.

    :param requested: the address that redirected to `url`; a page with the same last segment is
        the requested page, not a login page
    """
    name = _last_segment(url)
    is_named = _LOGIN_PAGE.fullmatch(name) is not None and name != _last_segment(requested)
    query = url.partition("?")[2].lower()
    return is_named or any(all(name in query for name in names) for names in _SIGN_ON)


def _last_segment(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].rstrip("/").rsplit("/", 1)[-1]


def has_valid_characters(address: str) -> bool:
    """Return whether a string has only characters that an address may contain."""
    return _UNFIT.search(address) is None


def require_address(address: str, where: str) -> None:
    """Raise `invalid` unless `address` can be parsed. The message contains no password.

    :param where: the owner of the address for the message, such as `in source_url`
    """
    subject = f"the address {printable(clean_url(address.strip(), whole=True))} {where}"
    start, end = misplaced_user_info(address, whole=True)
    if end > start:
        raise invalid(
            f"{subject} cannot be parsed: it must begin with http:// or https://, and the part"
            " before the last @ must be user:password; percent-encode the password (/ is %2F, # is"
            " %23, ? is %3F, a space is %20, @ is %40)"
        )
    if address != address.strip():
        raise invalid(f"{subject} begins or ends with a space or line break: remove it")
    if not has_valid_characters(address):
        raise invalid(
            f"{subject} cannot be parsed: percent-encode each space (%20), backslash (%5C) and"
            " control character"
        )
    if _BASE.match(address) is None:
        raise invalid(f"{subject} must begin with http:// or https:// and a host name")
    if origin(address) == NOWHERE:
        raise invalid(f"{subject} cannot be parsed: correct its host or port")


def origin(address: str) -> Origin:
    """Return the scheme, host and port that a request to `address` connects to.

    The port is the default port if the address has none. Returns :data:`NOWHERE` if the address is
    invalid or ambiguous.
    """
    base = _BASE.match(address) if has_valid_characters(address) else None
    return NOWHERE if base is None else _origin_of_base(base.group())


@lru_cache(maxsize=256)
def _origin_of_base(base: str) -> Origin:
    """Return the origin of an address without path and query.

    `requests` normalizes an unusual address: it encodes the host and drops port 0. If urllib3 and
    the standard library then find different origins, the address is ambiguous.
    """
    usual = _USUAL_BASE.fullmatch(base)
    if usual is not None and int(usual[3] or 0) <= _HIGHEST_PORT:
        return usual[1], usual[2].lower(), int(usual[3] or DEFAULT_PORTS[usual[1]])
    from urllib3.exceptions import HTTPError
    from urllib3.util import parse_url

    try:
        urlsplit(base)  # raises now, because the code for proxies parses the original address
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
    """Resolve the `Location` header of a response from `url`.

    An invalid header is returned unchanged.
    """
    if not has_valid_characters(location):
        return location
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def is_forbidden_redirect(here: str, there: str, *, foreign_hosts: bool) -> bool:
    """Return whether a redirect must not be followed.

    This is the case if `there` is an invalid address, changes https to http, or has another origin.

    :param foreign_hosts: allow other origins
    """
    old, new = origin(here), origin(there)
    downgrade = old[0] == "https" and new[0] != "https"
    return new == NOWHERE or downgrade or (new != old and not foreign_hosts)


def prepared_url(address: str) -> str:
    """Normalize an address as `requests` does.

    Only unusual addresses pass through `requests`, because its checks take as long as a small
    request.
    """
    return address if usual_target(address) else prepared(address).url or ""


def usual_target(address: str) -> str:
    """Return path and query of an address that `requests` leaves unchanged, "" for any other."""
    base = _USUAL_BASE.match(address)
    if base is None or _USUAL_TARGET.fullmatch(address, base.end()) is None:
        return ""
    return address[base.end() :]


def prepared(address: str) -> PreparedRequest:
    """Let `requests` prepare an address. Raises `UnfitRequest` if `requests` rejects it."""
    from requests import PreparedRequest, RequestException

    request = PreparedRequest()
    try:
        request.prepare_url(address, None)
    except RequestException as error:
        raise UnfitRequest(str(error)) from None
    return request


def path_of(address: str) -> str:
    """Return the percent-encoded path of an address, or "" if the address is invalid."""
    try:
        return urlsplit(address).path if has_valid_characters(address) else ""
    except ValueError:
        return ""
