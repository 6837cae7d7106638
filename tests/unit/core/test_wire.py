# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import address
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http import messages

UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
NOW = 1_700_000_000.0
REQUEST = messages.Request("reading x", "GET", "http://u:p@host/x?token=abc", reads=True)


def response(body: str | bytes, status: int = 200) -> messages.Response:
    raw = body.encode() if isinstance(body, str) else body
    return messages.Response(status, {}, raw, REQUEST, REQUEST.url)


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        (("a", "b"), "a/b"),
        (("a/b", "ä ö"), "a%2Fb/%C3%A4%20%C3%B6"),
        (("100%", "a?b#c;d=e&f+g:h"), "100%25/a%3Fb%23c%3Bd%3De%26f%2Bg%3Ah"),
        (("...", "~x_y-z.1"), ".../~x_y-z.1"),
    ],
)
def test_path_segments_are_encoded(segments: tuple[str, ...], expected: str) -> None:
    assert address.path(*segments) == expected
    assert address.path(*segments, slash=True) == f"{expected}/"


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_unsafe_path_segments_are_rejected(segment: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        address.path("a", segment, "b")
    assert caught.value.kind == "invalid"


@given(st.lists(UNICODE.filter(lambda text: text not in ("", ".", "..")), min_size=1))
def test_path_can_be_decoded(segments: list[str]) -> None:
    assert [unquote(part) for part in address.path(*segments).split("/")] == segments


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ""),
        ({"a": "b c", "d": None, "e": ""}, "a=b%20c&e="),
        ({"on": True, "off": False, "n": 0}, "on=true&off=false&n=0"),
        ({"x": ["1", None, True]}, "x=1&x=true"),
        ([("b", "2"), ("a", "1"), ("b", "/+&=")], "b=2&a=1&b=%2F%2B%26%3D"),
        ({"ü": "ß"}, "%C3%BC=%C3%9F"),
    ],
)
def test_query_is_encoded(query: Any, expected: str) -> None:
    assert address.encode(query) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [('{"a": 1}', {"a": 1}), (b"[]", []), ("null", None), ("", None), ("[" * 100_000, None)],
)
def test_invalid_json_is_none(body: str | bytes, expected: Any) -> None:
    assert messages.json_or_none(body) == expected


@given(st.lists(st.tuples(UNICODE.filter(bool), UNICODE)))
def test_query_can_be_decoded(pairs: list[tuple[str, str]]) -> None:
    assert parse_qsl(address.encode(pairs), keep_blank_values=True) == pairs


@pytest.mark.parametrize(
    ("url", "is_login"),
    [
        ("http://h/login", True),
        ("http://h/ctx/login.action?os_destination=x", True),
        ("http://h/login.jsp", True),
        ("http://h/securityRealm/commenceLogin?from=%2F", True),
        ("http://h/sign_in", True),
        ("http://h/signin/", True),
        ("http://h/log-in.php", True),
        ("http://h/blogin", False),
        ("http://h/login/x.txt", False),
        ("http://h/catalogin.html", False),
        ("http://h/", False),
        ("http://[h/login", True),
    ],
)
def test_login_page_is_recognized_by_address(url: str, is_login: bool) -> None:
    assert address.is_login_page(url) is is_login


@pytest.mark.parametrize("name", ["login", "login.html", "sign-in"])
def test_requested_file_named_login_is_not_a_login_page(name: str) -> None:
    assert not address.is_login_page(f"http://cdn/x/{name}?a=b", f"http://h/repo/{name}#c")
    assert address.is_login_page(f"http://h/sso/{name}", "http://h/repo/app.txt")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Date": ""}, None),
        ({"Date": "yesterday"}, None),
        ({"Date": "Tue, 14 Nov 2023 22:13:20 GMT"}, NOW),
        ({"Date": "Tue, 14 Nov 2023 23:13:20 +0100"}, NOW),
        ({"Date": "Tue, 14 Nov 2023 22:13:20 -0000"}, NOW),
    ],
)
def test_date_of_response(headers: dict[str, str], expected: float | None) -> None:
    date = messages.Response(200, headers, b"", REQUEST, REQUEST.url).date
    assert (None if date is None else date.timestamp()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("", None),
    ],
)
def test_retry_after_is_parsed(
    value: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    assert messages.retry_after(value) == expected


def test_json_is_decoded() -> None:
    assert response('{"a": "ü"}').json() == {"a": "ü"}
    assert response("null").json() is None


def test_unpaired_surrogate_is_replaced() -> None:
    found = response(r'{"cut \ud83d": ["\uDE80", "\ud83d\ude80", "\\ud83d", 1, null]}').json()
    assert found == {"cut \ufffd": ["\ufffd", "\U0001f680", r"\ud83d", 1, None]}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("", "protocol", "empty body"),
        (" \n", "protocol", "empty body"),
        (
            "<html><title>Hello</title></html>",
            "protocol",
            "HTML instead of JSON: check url",
        ),
        ('<html><form><input type="password"></form></html>', "auth", "login page"),
        # the page that a browser submits at once, and one that it follows
        (
            '<html><form method="post"><input type="hidden" name="SAMLRequest" value="PHNh"></form>',
            "auth",
            "with a page for a single sign-on in a browser: check the credentials",
        ),
        (
            '<html><meta http-equiv="refresh" content="0;url=https://idp/x/openid-connect/auth?a=b">',
            "auth",
            "single sign-on",
        ),
        (
            "<html><script>window.location='/securityRealm/commenceLogin?from=%2F'</script></html>",
            "auth",
            "single sign-on",
        ),
        ("OK", "protocol", "other text"),
        ('{"cut": ', "protocol", "other text"),
        (b'{"a": "\xff"}', "protocol", "other text"),
        ("[" * 100_000, "protocol", "deeper than 200 levels"),
    ],
)
def test_invalid_json_is_a_protocol_error(body: str | bytes, kind: str, words: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        response(body).json()
    error = caught.value
    assert error.kind == kind
    assert words in str(error)
    assert str(error).startswith("reading x: ")
    assert error.url == "http://host/x?token=***"
