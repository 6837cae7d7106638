# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import html
import json
import re
import time
import traceback
from base64 import b64encode
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import (
    MASK,
    Hidden,
    Secret,
    clean_url,
    hidden,
    is_secret_name,
    secrets_in_addresses,
    secrets_of_url,
)
from tests.unit.stub import connection_to

TEXT = "pass-word-1"


def test_secret_is_shown_only_by_reveal() -> None:
    secret = Secret(TEXT)
    assert secret.reveal() == TEXT
    shown = (str(secret), repr(secret), f"{secret}", f"{secret:>20}", "%s" % secret, f"{[secret]}")  # noqa: UP031
    assert not [text for text in shown if TEXT in text]
    assert str(secret) == MASK


def test_objects_containing_a_secret_do_not_show_it() -> None:
    connection = connection_to("http://host", username="u", password=Secret(TEXT))
    assert TEXT not in repr(connection) + str(asdict(connection).keys())
    error = ValueError(connection.password)
    assert TEXT not in "".join(traceback.format_exception(error))


def test_secrets_compare_by_value() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4), st.text()
)
def test_no_secret_survives_masking(secrets: list[str], rest: str) -> None:
    hidden = Hidden()
    texts = [text for text in secrets if not set(text) & set(MASK)]
    hidden.add(*texts)
    shown = hidden.mask(rest.join(texts))
    for text in texts:
        assert text not in shown.replace(MASK, "*")


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
        ("https://user:p@ss@host/a@b", f"https://{MASK}@b"),
        ("https://user:pass@host/a", "https://host/a"),
        ("https://host/a@b", "https://host/a@b"),
        ("https://u:PW/x@host/y", f"https://{MASK}@host/y"),
        ("https://u:PW#x@host", f"https://{MASK}@host"),
        ("https://u:P W@host", f"https://{MASK}@host"),
        ("http:/u:PW@host", f"http:/{MASK}@host"),
        ("http:///u:PW@host", f"http:///{MASK}@host"),
        ("u:PW@host/x", f"{MASK}@host/x"),
        ("http://other\\@home/y", f"http://{MASK}@home/y"),
    ],
)
def test_addresses_are_shown_without_credentials(url: str, expected: str) -> None:
    assert clean_url(url) == expected


@pytest.mark.parametrize("text", ["tok/en+1 é\"<&>'~*", "päss\nwörd:long", "plain-token-1234"])
def test_every_spelling_of_secret_is_masked(text: str) -> None:
    hidden.add(text)
    spelt = [
        text,
        quote(text, safe=""),
        quote(text),
        re.sub("%..", lambda sign: sign.group().lower(), quote(text, safe="")),
        quote_plus(text),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1].replace("/", "\\/"),
        html.escape(text),
        html.escape(text, quote=False),
        b64encode(f"ann:{text}".encode()).decode().rstrip("="),
        b64encode(f"somebody-else:{text}".encode()).decode().rstrip("="),
    ]
    for form in spelt:
        shown = hidden.mask(f"<{form}>")
        assert MASK in shown
        assert text not in shown
        assert len(shown.replace(MASK, "")) < len("<somebody-else:>") * 2


def test_hidden_values_belong_to_one_task() -> None:
    hidden.add("abc", "", "abc-def")
    assert hidden.mask("x abc-def y abc") == f"x {MASK} y {MASK}"
    assert "" not in hidden.forms
    hidden.clear()
    assert hidden.mask("abc") == "abc"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"url": "git@host:group/repository.git"}, set()),
        ({"url": "ssh://git@host/repository.git"}, set()),
        ({"url": "0123456789abcdef@host"}, {"0123456789abcdef"}),
        ({"ci_url": "http://host/x@y"}, {"host/x"}),
        ({"job": "u:PASS@host/job/x"}, {"u:PASS", "PASS"}),
        ({"job": "folder/a@2"}, set()),
        ({"job": ["folder", "http://u:PW/x@host"]}, {"u:PW/x", "PW/x"}),
        ({"a": {"b": [{"any": "https://u:PASS@host"}]}}, {"PASS"}),
        # a shorter secret would be masked in every word
        ({"a": "https://u:PW@host"}, set()),
        ({"url": "http://u:p@ss/x@host"}, {"u:p@ss/x", "p@ss/x"}),
        ({"scm": "ssh://git@host/x"}, set()),
        ({"script": "println('https://u:PW@host')"}, set()),
        ({"title": "ann@example.com", "n": 1, "none": None}, set()),
    ],
)
def test_secrets_in_addresses_of_options(params: Any, expected: set[str]) -> None:
    assert set(secrets_in_addresses("", params)) == expected


@pytest.mark.parametrize("unit", ["?", "&", "://", "@", "http://", "a=", "u:"])
def test_addresses_are_cleaned_in_linear_time(unit: str) -> None:
    begun = time.process_time()
    clean_url("http://host/" + unit * (200_000 // len(unit)))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://host/a?n=1", set()),
        ("https://u:p%2Fw@host", {"p%2Fw", "p/w"}),
        ("https://u:p@ss:x@host", {"p@ss:x"}),
        ("https://git@host", set()),
        ("https://ghp_0123456789abcdef@host", {"ghp_0123456789abcdef"}),
        ("https://host/?token=a%20b&n=1", {"a%20b", "a b"}),
        ("http://[host", set()),
        ("http://u:PW/x@host", {"u:PW/x", "PW/x"}),
        ("http:/u:PW@host", {"u:PW", "PW"}),
        ("u:PW@host/x", {"u:PW", "PW"}),
        ("http://u:P@W/x@host", {"P", "u:P@W/x", "P@W/x"}),
        ("http://host:8080/job/a@2/", set()),
        ("http://[::1]:80/job/a@2/", set()),
        ("folder/job@2", set()),
    ],
)
def test_secrets_of_url(url: str, expected: set[str]) -> None:
    assert set(secrets_of_url(url)) == expected


def test_single_line_of_a_secret_is_masked() -> None:
    key = "-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\r\n-----END X-----\n"
    hidden = Hidden()
    hidden.add(key)
    assert hidden.mask("a MIIEvQIBADANBgkqhkiG9w0B b short -----BEGIN X-----") == (
        "a *** b short -----BEGIN X-----"
    )


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "DB_PASSWORD",
        "dbPassword",
        "PGPASSWORD",
        "mysql_pwd",
        "passphrase",
        "tokens",
        "token2",
        "accessToken",
        "apiKey",
        "api_key",
        "API-KEY",
        "APIKEY",
        "privateKey",
        "sshPrivateKey",
        "secret_pin",
        "AWS_SECRET_ACCESS_KEY",
        "SIGNING_KEY",
        "GH_PAT",
        "JWT",
        "COOKIE",
        "PGPASS",
        "DB_PASS",
        "storepass",
        "passwd",
        "clientSecret",
        "secretText",
        "x.password",
        "PASSWORD_1",
        "passwordValue",
        "secretBase64",
        "GOOGLE_CREDENTIALS",
    ],
)
def test_name_is_secret_by_its_last_word(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "tokenId",
        "credentialsId",
        "apiTokenIdCredential",
        "passwordStrategy",
        "PASSWORD_FILE",
        "tokenUrl",
        "key",
        "projectKey",
        "issue.key",
        "sortKey",
        "repo_key",
        "publicKey",
        "PATH",
        "path",
        "pattern",
        "bypass",
        "compass",
        "monkey",
        "credentials",
        "author",
        "spin",
    ],
)
def test_other_names_are_not_secret(name: str) -> None:
    assert not is_secret_name(name)
