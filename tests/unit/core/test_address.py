# SPDX-License-Identifier: GPL-3.0-or-later
"""Test addresses against their interpretation by the HTTP library."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.address import (
    NOWHERE,
    Origin,
    has_valid_characters,
    origin,
    path_of,
    require_address,
    target,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)

HOME = "http://home:8080"
# Characters and strings that parsers are known to interpret differently.
_SIGN = st.sampled_from(
    [
        *"\\@/?#:;[]%.* \t\r\n\x00\x0b\x1f\x7f\xa0\xad\u202e\uff0f\uff20\u3002\u2028ßé0",
        "%2F",
        "%40",
        "%5C",
        "//",
        "@home:8080",
        "home:8080",
        "other",
        "80",
        "99999",
        "::1",
        "[::1]",
        "%25eth0",
    ]
)
_ADDRESS = st.builds(
    lambda scheme, rest: scheme + "".join(rest),
    st.sampled_from(
        ["http://", "HTTP://", "https://", "http:/", "http:", "//", "", "ftp://", "httpx://"]
    ),
    st.lists(_SIGN, max_size=8),
)


class Connected(Exception):
    """Carries the destination of a request."""


class Port:
    """Stop a request after the library has selected host and port."""

    def __init__(self, pool: Any) -> None:
        self.place: Origin = (pool.scheme, pool.host.strip("[]"), pool.port)

    def urlopen(self, **_request: Any) -> None:
        raise Connected(*self.place)


class Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        return Port(super().get_connection_with_tls_context(*args, **kwargs))


def connected(address: str) -> Origin:
    """Return the address to which `requests` connects; `NOWHERE` if it rejects the address."""
    session = requests.Session()
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter())
    try:
        session.get(
            address, auth=lambda request: request
        )  # as the collection does: ignore a login in the address
    except Connected as place:
        scheme, host, port = place.args
        return scheme, host, port or {"http": 80, "https": 443}[scheme]
    except (requests.RequestException, ValueError):
        return NOWHERE
    raise AssertionError("a request was sent")


@given(address=_ADDRESS)
@example("http://other\\@home:8080/y")
@example("http://home:8080\\@other/y")
@example("http://other:80#@home:8080/")
@example("http://home:8080:80/")
@example("http://[::1]@home:8080/")
@example("http://\u3002@home:8080/")
@example("http://a_b..c-:65535")
@example("http://home:65536/")
@example("https://010.1:0080/")
def test_origin_is_the_connected_host_or_nowhere(address: str) -> None:
    found = origin(address)
    assert found == NOWHERE or found == connected(address)
    assert found == NOWHERE or has_valid_characters(address)


@given(location=_ADDRESS)
def test_redirect_target_is_the_connected_host(location: str) -> None:
    there = target(f"{HOME}/base/x", location)
    assert origin(there) in (NOWHERE, connected(there))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Host/x", ("http", "host", 80)),
        ("HTTPS://host:8443", ("https", "host", 8443)),
        ("https://host", ("https", "host", 443)),
        ("https://[::1]:1/", ("https", "::1", 1)),
        ("http://host:", ("http", "host", 80)),
        ("http://host:0/", ("http", "host", 80)),
        ("http://host./", ("http", "host.", 80)),
        ("http://u:p@host/x@y", ("http", "host", 80)),
        ("http://host?x@other", ("http", "host", 80)),
        ("http://b\u00fccher.example/", ("http", "xn--bcher-kva.example", 80)),
        ("mailto:x", NOWHERE),
        ("httpx://host", NOWHERE),
        ("http:host", NOWHERE),
        ("http:/host", NOWHERE),
        ("http:///host", NOWHERE),
        ("host/x", NOWHERE),
        ("http://host:port/x", NOWHERE),
        ("http://host:99999/x", NOWHERE),
        ("http://host:80:80/x", NOWHERE),
        ("http://[host/x", NOWHERE),
        ("http://other\\@host/y", NOWHERE),
        ("http://host/a b", NOWHERE),
        ("http://host/a\tb", NOWHERE),
        ("http://host/\u202eb", NOWHERE),
        (" http://host/", NOWHERE),
        ("http://.host/", NOWHERE),
        ("http://\uff0f@host/", NOWHERE),
        ("http://*/", NOWHERE),
        ("http://@/", NOWHERE),
    ],
)
def test_origin_of_url(url: str, expected: Origin) -> None:
    assert origin(url) == expected


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/x", "http://host/x"),
        ("x?y", "http://host/a/x?y"),
        ("//other/x", "http://other/x"),
        ("https://other", "https://other"),
        ("http://[other", "http://[other"),
        ("/\\other/x", "/\\other/x"),
        ("/\t/other/x", "/\t/other/x"),
    ],
)
def test_target_of_location(location: str, expected: str) -> None:
    assert target("http://host/a/b", location) == expected


def test_path_of_url() -> None:
    assert path_of("http://host/a%20b?x#y") == "/a%20b"
    assert path_of("http://[host/a") == path_of("http://host\\/a") == ""


@pytest.mark.parametrize(
    "address",
    [
        "http://u:PW/x@host",
        "http://u:PW#x@host",
        "http://u:PW?x@host",
        "http://u:P W@host",
        "http://u:P@W/x@host",
        "u:PW@host/x",
        "PW@host",
        "http:/u:PW@host",
        "http:u:PW@host",
        "https:///u:PW@host",
        "http://host:8080/PW@host",
    ],
)
def test_unreadable_password_is_not_shown_in_the_error(address: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        require_address(address, "of the ci service")
    assert caught.value.kind == "invalid"
    assert "percent-encode the password" in caught.value.message
    assert "***@host" in caught.value.message
    assert not [part for part in ("u:", "PW", "P W", "P@W") if part in caught.value.message]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://ho st/", "percent-encode each space"),
        ("http://host\\x", "percent-encode each space"),
        ("http://ho\x1b[31mst", "percent-encode each space"),
        ("host/x", "must begin with http:// or https://"),
        ("http://", "must begin with http:// or https://"),
        ("http://host:99999", "correct its host or port"),
        ("http://u:PW@host:x", "correct its host or port"),
    ],
)
def test_invalid_address_is_rejected(address: str, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        require_address(address, "in source_url")
    assert "in source_url" in caught.value.message
    assert "PW" not in caught.value.message
    assert "\x1b" not in caught.value.message
