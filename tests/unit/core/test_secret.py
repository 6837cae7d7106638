# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import traceback
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import (
    MASK,
    Secret,
    clean_url,
    mask,
    secrets_of_url,
)
from tests.unit.stub import connection_to

TEXT = "pass-word-1"


def test_a_secret_shows_itself_only_when_it_is_asked_to() -> None:
    secret = Secret(TEXT)
    assert secret.reveal() == TEXT
    shown = (str(secret), repr(secret), f"{secret}", f"{secret:>20}", "%s" % secret, f"{[secret]}")  # noqa: UP031
    assert not [text for text in shown if TEXT in text]
    assert str(secret) == MASK


def test_a_secret_is_not_shown_by_what_holds_it() -> None:
    connection = connection_to("http://host", username="u", password=Secret(TEXT))
    assert TEXT not in repr(connection) + str(asdict(connection).keys())
    error = ValueError(connection.password)
    assert TEXT not in "".join(traceback.format_exception(error))


def test_secrets_are_compared_by_what_they_hold() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2


def test_the_longest_secret_is_masked_first() -> None:
    assert mask("x abc-def y abc", [Secret("abc"), Secret("abc-def")]) == f"x {MASK} y {MASK}"
    assert mask("nothing here", [Secret("")]) == "nothing here"


@given(st.lists(st.text(min_size=1), max_size=4), st.text())
def test_no_secret_survives(secrets: list[str], rest: str) -> None:
    alphabet = set(MASK)
    hidden = [Secret(text) for text in secrets if not set(text) & alphabet]
    shown = mask(rest.join(secret.reveal() for secret in hidden), hidden)
    for secret in hidden:
        assert secret.reveal() not in shown.replace(MASK, "*")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://host/a?b=c", "https://host/a?b=c"),
        ("https://user:pw@host:8443/a", "https://host:8443/a"),
        ("https://token@host/a", "https://host/a"),
        ("https://u%40x:p%2Fw@host/", "https://host/"),
        ("http://h/x?token=abc&n=1", f"http://h/x?token={MASK}&n=1"),
        ("http://h/x?n=1&access_token=abc#f", f"http://h/x?n=1&access_token={MASK}#f"),
        ("http://h/x?X-Amz-Signature=abc", f"http://h/x?X-Amz-Signature={MASK}"),
        ("http://h/x?sig=abc&design=1", f"http://h/x?sig={MASK}&design=1"),
        ("http://h/x?jwt=a.b.c", f"http://h/x?jwt={MASK}"),
        ("http://h/x?apikey=1&api_key=2", f"http://h/x?apikey={MASK}&api_key={MASK}"),
        ("http://h/x?sourcePassword=1", f"http://h/x?sourcePassword={MASK}"),
        ("see http://u:p@h and http://v:q@i", "see http://h and http://i"),
        ("https://user:p@ss@host/a@b", "https://host/a@b"),
    ],
)
def test_addresses_are_shown_without_credentials(url: str, expected: str) -> None:
    assert clean_url(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://host/a?n=1", set()),
        ("https://u:p%2Fw@host", {"p%2Fw", "p/w"}),
        ("https://u:p@ss:x@host", {"p@ss:x"}),
        ("https://token@host", {"token"}),
        ("https://host/?token=a%20b&n=1", {"a%20b", "a b"}),
        ("http://[host", set()),
    ],
)
def test_what_of_an_address_must_not_be_shown(url: str, expected: set[str]) -> None:
    assert set(secrets_of_url(url)) == expected
