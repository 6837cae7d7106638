# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a recording has nothing private, and keeps the shapes that modules and tests need."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.acceptance.pseudonyms import LEFT_OUT, SERVER, Pseudonyms, interface_of
from tests.acceptance.recordings import record_of
from tools import tree

URL = "https://ci.acme-bakery.example/tools"
PREFIX = "toolchain-acceptance-0a1b2c"
SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")

#: A vowel in each word, as in names; pseudonyms have none. Digits are those of identifiers.
LETTERS = st.text(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüßñøЖ語", min_size=2, max_size=9
)
NAMES = st.builds(
    "{}Qa{}{}".format, LETTERS, LETTERS, st.sampled_from(("", "7481553", "-20", "_x"))
)


def pseudonyms(service: str) -> Pseudonyms:
    return Pseudonyms(
        interface_of(service),
        url=URL,
        own={"one", "acceptance"},
        prefix=PREFIX,
        private=["API Handbook"],
    )


def places(one: str, two: str) -> list[tuple[str, bytes]]:
    """Return bodies with names in every place, each with its media type."""
    basic = b64encode(f"{one}:{two}".encode()).decode()
    texts = [
        f"Started by {one} <{two}@{one}.example> on {two}.{one}.example:8443 (10.20.30.{len(one)})",
        f"GET /job/{quote(one)}/api/json?token={quote_plus(two)} Authorization: Basic {basic}",
        f"Set-Cookie: JSESSIONID.{one}={two}; redirect to https://{one}:{two}@{two}.example/{one}",
    ]
    document = {
        one: {two: [one, {"name": two, "status": one, "type": two, "id": one}]},
        "name": f"{one} {two}",
        "status": one,
        "_class": f"com.{one}.{two}",
        "password": one,
        "token": two,
        "url": f"https://{one}.example/{two}?{one}={two}#{one}",
        "self": f"{URL}/job/{quote(one)}/{quote(two, safe='')}/",
        "value": f"<p class='{one}'>{two} &amp; {one}</p><!-- {two} --><{one} {two}='{one}'/>",
        "json": json.dumps({"parameter": [{"name": one, "value": two}]}),
        "version": one,
        "jql": f"project = '{one}' AND text ~ {two} ORDER BY key",
        "total": one,
        "link": f'<https://{one}.example/{two}?start={one}>; rel="{two}"',
    }
    markup = (
        f"<?xml version='1.0'?><!DOCTYPE {one} [<!ENTITY {two} '{one}'>]><project {one}='{two}'>"
        f"<name>{one}</name><{two}>{one}</{two}><![CDATA[{two}]]><?{one} {two}?>"
        f"<a href='https://{one}.example/{two}'>&#65;{one}</a> {two} < {one} > {two}"
    )
    form = f"name={quote_plus(one)}&{quote_plus(one)}={quote_plus(two)}&json={quote_plus(json.dumps(document))}"
    multipart = (
        f'--{one[:1]}x\r\nContent-Disposition: form-data; name="{quote(one)}"; filename="{quote(two)}"'
        f"\r\nContent-Type: text/plain\r\n\r\n{one} {two}\r\n--{one[:1]}x--\r\n"
    )
    return [
        *(("text/plain", text.encode()) for text in texts),
        ("application/json", json.dumps(document).encode()),
        ("application/json", json.dumps(document, ensure_ascii=False).encode()),
        ("application/json", f"{json.dumps([one])}\n{json.dumps({two: one})}\n".encode()),
        ("application/xml", markup.encode()),
        ("text/html", f"<!DOCTYPE html><title>{one}</title><body {one}>{two}<br>{one}".encode()),
        ("application/x-www-form-urlencoded", form.encode()),
        (f"multipart/form-data; boundary={one[:1]}x", multipart.encode()),
        ("application/octet-stream", b"\xff" + one.encode()),
    ]


@given(service=st.sampled_from(SERVICES), one=NAMES, two=NAMES)
def test_nothing_private_is_in_a_recording(service: str, one: str, two: str) -> None:
    names = pseudonyms(service)
    basic = b64encode(f"{one}:{two}".encode()).decode()
    written = []
    for kind, body in places(one, two):
        segments = "/".join(quote(each, safe="") for each in (one, two, quote(one, safe="")))
        exchange: dict[str, Any] = {
            "method": "GET",
            "url": f"{URL}/job/{segments}/api/json?{quote_plus(one)}={quote_plus(two)}&name={quote_plus(one)}",
            "headers": {
                "Authorization": f"Basic {basic}",
                "Cookie": f"{one}={two}",
                "Content-Type": kind,
            },
            "body": body,
            "status": 302,
            "response_headers": {
                "Set-Cookie": f"{one}={two}",
                "Location": f"https://{quote(two)}@{one}.example/{segments}?{quote(one)}={quote(two)}",
                "Content-Type": f"{kind}; charset={one}",
                "Server": f"{one}/1.0",
                "X-Jenkins": two,
                "X-Error": f"No {one}",
                "Link": f"</{segments}?x={quote(two)}>; rel=next",
                "ETag": one,
                f"X-{one}": two,
            },
            "response": body,
            "begun": 1.0,
            "seconds": 0.1,
        }
        written.append(json.dumps(record_of(exchange, names, 0.0), ensure_ascii=False))
    text = "\n".join(written).lower()
    for secret in (one, two, basic, "acme", "bakery"):
        for form in (secret, quote(secret), quote(quote(secret)), json.dumps(secret)[1:-1]):
            assert form.lower() not in text, form


@pytest.mark.parametrize("service", SERVICES)
def test_shapes_are_kept_and_pseudonyms_are_stable(service: str) -> None:
    names = pseudonyms(service)
    made = names.value(
        {"key": "REL", "issue": "REL-123", "id": "10417", "number": 10417, "mail": "Ann@a.io"}
    )
    assert made == names.value(
        {"key": "REL", "issue": "REL-123", "id": "10417", "number": 10417, "mail": "Ann@a.io"}
    )
    values = list(made.values())
    assert values[1].startswith(f"{values[0]}-")
    assert values[0].isupper()
    assert (len(values[2]), int(values[2])) == (5, values[3])
    assert values[4][0].isupper()
    assert values[4].count("@") == 1
    digest = names.text("da39a3ee5e6b4b0d3255bfef95601890afd80709")
    assert len(bytes.fromhex(digest)) == 20
    different = {names.text(f"name{number}") for number in range(300)}
    assert len(different) == 300


def test_dates_move_by_one_offset() -> None:
    names = pseudonyms("ci")
    iso = names.text("2026-05-31T10:20:30.400+0200")
    assert iso.endswith("T10:20:30.400+0200")
    days = (date.fromisoformat(iso[:10]) - date(2026, 5, 31)).days
    assert days < -400
    moved = names.value({"timestamp": 1780222830400})["timestamp"]
    assert moved == 1780222830400 + days * 86_400_000
    header = names.headers({"Date": "Sun, 31 May 2026 10:20:30 GMT"})["date"]
    day = datetime(2026, 5, 31, 10, 20, 30, tzinfo=UTC) + timedelta(days=days)
    assert parsedate_to_datetime(header) == day


def test_the_interface_is_kept() -> None:
    names = pseudonyms("ci")
    path = names.string(f"{URL}/job/rye/job/{PREFIX}/12/api/json?tree=builds[number,result]{{0,1}}")
    assert path.startswith(f"{SERVER}/job/")
    assert path.endswith(f"/job/{PREFIX}/12/api/json?tree=builds%5Bnumber%2Cresult%5D%7B0%2C1%7D")
    build = {
        "_class": "hudson.model.FreeStyleBuild",
        "result": "SUCCESS",
        "building": False,
        "url": None,
    }
    assert names.value(build) == build
    assert names.headers({"X-Jenkins": "2.516.3", "Server": "Jetty(12.0.13)"}) == {
        "x-jenkins": "2.516.3",
        "server": "Jetty(12.0.13)",
    }
    assert names.value({"result": "ACME_SPECIAL"}) != {"result": "ACME_SPECIAL"}
    assert names.value({"password": "one", "apiToken": "x", "crumb": "y"}) == {
        "password": LEFT_OUT,
        names.name("apiToken"): LEFT_OUT,
        "crumb": LEFT_OUT,
    }


def test_names_of_the_user_are_replaced_in_expressions() -> None:
    names = pseudonyms("tracker")
    words = names.value({"jql": "project = API AND key = 'API-7' ORDER BY key"})["jql"].split()
    made = names.text("API")
    assert made != "API"
    assert words[:3] == ["project", "=", made]
    assert words[6].startswith(f"'{made}-")
    assert words[7:] == ["ORDER", "BY", "key"]


def test_odd_values_do_not_stop_a_recording() -> None:
    names = pseudonyms("repo")
    head = b"Content-Disposition: form-data; name*=UTF-8''a%20b; filename*=UTF-8''c"
    part = b"--x\r\n" + head + b"\r\n\r\n\xff\r\n--x--"
    assert names.body(part, "multipart/form-data; boundary=x", "")["parts"][0]["bytes"] == 1
    odd = b'{"a": NaN, "b": -1e999, "c": -0.0, "d": "\\ud800", "e": 123456789012345678901234567890}'
    assert json.dumps(names.body(odd, "", "")).isascii()
    for text in (b"", b"<", b"<a", b"&#0;<", b"%", b"{", b"2026-13-41 9999-12-31"):
        assert names.body(text, "multipart/form-data; boundary=x", "") is not None
    for url in ("http://", "https://@/?", f"{URL}?a", "//x", "/%25%25%zz"):
        assert names.string(url).count("/") == url.count("/") or url.startswith(URL)


def test_values_of_the_suite_and_their_digests_are_kept() -> None:
    names = pseudonyms("repo")
    sha1 = "fe05bcdcdc4928012781a5f1a2a77cbb5398e106"
    kept = {
        "path": f"/{PREFIX}/one",
        "name": "one",
        "size": 300,
        "sha1": sha1,
        "properties": {"acceptance": ["one"]},
    }
    assert names.value(kept) == kept
    assert "one" not in names.text("one of our secrets").split()


def test_acceptance_needs_only_the_packages_of_the_demo() -> None:
    blocked = ["pytest", "hypothesis", "jsonschema", "trustme", "jira", "mypy"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "import tests.acceptance.run, tests.acceptance.recordings"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tree.ROOT, check=True)
    recipe = (tree.ROOT / "Makefile").read_text("utf-8").partition("\nacceptance:\n")[2]
    assert recipe.startswith("\t@tools/setup demo\n")
