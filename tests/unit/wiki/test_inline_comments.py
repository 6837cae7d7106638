# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that inline comments of readers keep their place in a new body."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.storage.inline_comments import (
    comment_counts,
    with_comments,
    without_markers,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.storage.parser import parse


def mark(text: str, ref: str = "1") -> str:
    return f'<ac:inline-comment-marker ac:ref="{ref}">{text}</ac:inline-comment-marker>'


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (f"<p>a {mark('text')} b</p>", "<p>new a text b</p>", f"<p>new a {mark('text')} b</p>"),
        (f"<p>{mark('text')}</p>", "<p>another</p>", "<p>another</p>"),
        (
            f"<p>{mark('one two')}</p>",
            "<p>one\n  two</p>",
            f"<p>{mark('one' + chr(10) + '  two')}</p>",
        ),
        (
            f"<p>{mark('R&amp;D &uuml;')}</p>",
            "<p>x R&#38;D ü</p>",
            f"<p>x {mark('R&#38;D ü')}</p>",
        ),
        (
            f"<p>first word here</p><p>second {mark('word')} there</p>",
            "<p>first word here</p><p>new</p><p>second word there</p>",
            f"<p>first word here</p><p>new</p><p>second {mark('word')} there</p>",
        ),
        (
            f"<p>{mark('a <strong>b</strong> c')}</p>",
            "<p>x a <em>b</em> c</p>",
            f"<p>x {mark('a ')}<em>{mark('b')}</em>{mark(' c')}</p>",
        ),
        (f"<p>{mark('ab')}</p>", "<p>a</p><p>b</p>", "<p>a</p><p>b</p>"),
        (
            f"<p>{mark('ab')} {mark('bc', '2')}</p>",
            "<p>abc</p>",
            f"<p>{mark('ab')}c</p>",
        ),
        (f"<p>{mark('x')}</p>", f"<p>y {mark('x')}</p>", f"<p>y {mark('x')}</p>"),
        (
            f"<p>{mark('make')}</p>",
            (
                '<ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA[make]]>'
                "</ac:plain-text-body></ac:structured-macro>"
            ),
            (
                '<ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA[make]]>'
                "</ac:plain-text-body></ac:structured-macro>"
            ),
        ),
        (f"<p>{mark('a')}</p>", "<p><!-- a -->b a</p>", "<p><!-- a -->b a</p>"),
    ],
)
def test_a_marker_goes_to_its_text(before: str, after: str, expected: str) -> None:
    found = with_comments(before, after)
    assert found == expected
    assert without_markers(found) == without_markers(after)
    parse(found)


def test_what_is_kept_and_lost_is_counted() -> None:
    before = f"<p>{mark('a')} {mark('b', '2')} {mark('c', '2')}</p>"
    assert comment_counts(before, with_comments(before, "<p>a</p>")) == (1, 1)
    assert comment_counts(before, with_comments(before, "<p>b a</p>")) == (2, 0)
    assert comment_counts("<p>a</p>", "") == (0, 0)


_PARTS = st.lists(
    st.sampled_from(
        [
            "a",
            " ",
            "b ",
            "&amp;",
            "ü",
            "\n",
            "<strong>a b</strong>",
            "<p>b a</p>",
            "<br/>",
            "<ul><li>a</li></ul>",
        ]
    ),
    max_size=12,
)


@given(_PARTS, _PARTS, _PARTS, _PARTS)
def test_any_body_stays_well_formed_and_is_changed_by_markers_only(
    first: list[str], marked: list[str], last: list[str], after: list[str]
) -> None:
    inline = [one for one in marked if not one.startswith(("<p", "<ul"))]
    before = "".join([*first, mark("".join(inline)), *last])
    found = with_comments(before, "".join(after))
    parse(found)
    assert without_markers(found) == "".join(after)
