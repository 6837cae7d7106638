# SPDX-License-Identifier: GPL-3.0-or-later
"""Test how the difference of two bodies is shown in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.words import (
    in_words,
)

ROW = "<tr><td><p>{}</p></td><td>{}</td></tr>"
USER = '<ac:link><ri:user ri:username="ann"/></ac:link>'


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("<p>One. Two!  Three?</p>", "<p>One. <b>2</b>! Three?</p>", ("Two!", "2!")),
        ("<p>a</p>", "<p>a</p><h2>B</h2><ul><li>c<ul><li>d</li></ul></li></ul>", ("", "B\nc\nd")),
        (
            f"<table><tbody>{ROW.format('a', '1')}{ROW.format('b', '2')}</tbody></table>",
            f"<table><tbody>{ROW.format('a', '1')}{ROW.format('b', '3')}</tbody></table>",
            ("b | 2", "b | 3"),
        ),
        (
            (
                '<ac:structured-macro ac:name="toc"><ac:parameter ac:name="maxLevel">2</ac:parameter>'
                "</ac:structured-macro>"
            ),
            (
                '<ac:structured-macro ac:name="info"><ac:rich-text-body><p>x</p></ac:rich-text-body>'
                "</ac:structured-macro>"
            ),
            ("[toc maxLevel: 2]", "[info]\nx"),
        ),
        (f"<p>Ask {USER} first</p>", "<p>Ask eve first</p>", ("Ask ann first", "Ask eve first")),
        ("<p>a<br/>b</p>", "<p>a b</p>", ("", "")),
        ("<p><b>a</b></p>", "<p><em>a</em></p>", ("", "")),
        ("", "<p>a</p>", ("", "a")),
        ("<p>not<closed>", "<p>a</p>", ("<p>not<closed>", "a")),
    ],
)
def test_changed_lines_are_shown(before: str, after: str, shown: tuple[str, str]) -> None:
    assert in_words(before, after) == shown
    assert in_words(after, before) == shown[::-1]


@given(st.lists(st.sampled_from(["<p>a</p>", "<p>b. c</p>", "<hr/>", "text"])))
def test_equal_bodies_show_nothing(parts: list[str]) -> None:
    assert in_words("".join(parts), "".join(parts)) == ("", "")
