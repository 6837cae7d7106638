# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a secret in a server's response never shows, wherever it is cut and however it is
encoded.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import errors
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import hidden

#: Letters that no other part of a page has, and the characters of encodings and markup.
_LETTERS = st.sampled_from("QZXKJ§ßé<>&'\"/\\%+=; \u202e")
SECRETS = st.tuples(st.text("QZXKJ", min_size=4, max_size=4), st.text(_LETTERS, max_size=30)).map(
    lambda parts: "".join(parts) + "QZXK"
)
FORMS = st.sampled_from(
    [
        str,
        html.escape,
        quote,
        quote_plus,
        lambda text: quote(text, safe=""),
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: base64.b64encode(text.encode()).decode(),
    ]
)
PAGES = st.sampled_from(
    [
        "<html><h1>Error</h1><p>{}</p></html>",
        "<html><title>{}</title><body>x</body></html>",
        "<html><pre>{}</pre></html>",
        "{}",
    ]
)
_SHOWN = 8


@pytest.fixture(autouse=True)
def _nothing_hidden() -> Iterator[None]:
    yield
    hidden.clear()


def pieces(secret: str, form: Any) -> set[str]:
    """Return the pieces of a secret, plain and encoded, that would be of use to a reader."""
    texts = (secret, str(form(secret)))
    return {
        text[at : at + _SHOWN] for text in texts for at in range(max(1, len(text) - _SHOWN + 1))
    }


@given(
    secret=SECRETS, form=FORMS, page=PAGES, before=st.integers(0, 1200), after=st.integers(0, 90)
)
def test_no_part_of_a_secret_is_shown(
    secret: str, form: Any, page: str, before: int, after: int
) -> None:
    hidden.clear()
    hidden.add(secret)
    body = page.replace("{}", f"{'a' * before} {form(secret)} {'b' * after}")
    for shown in (errors.error_text(body), errors.shorten(body), errors.printable(body)):
        assert not [chunk for chunk in pieces(secret, form) if chunk in shown], shown


@pytest.mark.parametrize("middle", ["<x>", "  ", " \t ", "&nbsp;", "<!-- -->", "</h1>"])
def test_secret_that_looks_like_markup_is_masked_completely(middle: str) -> None:
    hidden.add(f"firsthalf{middle}secondhalf")
    shown = errors.error_text(f"<html><h1>wrong: firsthalf{middle}secondhalf</h1></html>")
    assert "half" not in shown


@given(secret=SECRETS, form=FORMS, before=st.integers(0, 1200))
def test_no_part_of_a_secret_in_json_is_shown(secret: str, form: Any, before: int) -> None:
    hidden.clear()
    hidden.add(secret)
    text = f"{'a' * before} {form(secret)}"
    for body in ({"errorMessages": [text]}, {"errors": [{"status": 400, "message": text}]}):
        shown = errors.error_text(json.dumps(body))
        assert not [chunk for chunk in pieces(secret, form) if chunk in shown], shown
