# SPDX-License-Identifier: GPL-3.0-or-later
"""Test sections: the content under a heading, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    find_section,
    require_inside,
)
from tests.unit.wiki.documents import BODIES, Writer

PAGE = (
    "<p>Ä&nbsp;before</p>\r\n<h1>One</h1> <p>1</p><h2>Two &amp; <b>a</b>  half</h2>\n<p>2</p>"
    "<h3>Deep</h3><p>3</p><h2>Three</h2><p>4</p><h1>Four</h1>"
)


@pytest.mark.parametrize(
    ("heading", "content"),
    [
        (
            "One",
            PAGE[PAGE.index(" <p>1</p>") : PAGE.index("<h1>Four")],
        ),
        (" Two & a\nhalf", "\n<p>2</p><h3>Deep</h3><p>3</p>"),
        ("Deep", "<p>3</p>"),
        ("Three", "<p>4</p>"),
        ("Four", ""),
    ],
)
def test_section_ends_at_the_next_heading_of_its_level(heading: str, content: str) -> None:
    section = find_section(PAGE, heading)
    assert section.content == content
    assert section.replaced(content) == PAGE
    assert section.before.endswith(("</h1>", "</h2>", "</h3>"))


def test_section_ends_at_its_cell() -> None:
    page = (
        "<ac:layout><ac:layout-section><ac:layout-cell><h2>A</h2><p>1</p></ac:layout-cell>"
        "<ac:layout-cell><p>2</p></ac:layout-cell></ac:layout-section></ac:layout>"
    )
    assert find_section(page, "A").content == "<p>1</p>"


def macro(content: str, name: str = "expand") -> str:
    return (
        f'<ac:structured-macro ac:name="{name}"><ac:parameter ac:name="title">t</ac:parameter>'
        f"<ac:rich-text-body>{content}</ac:rich-text-body></ac:structured-macro>"
    )


@pytest.mark.parametrize(
    "neighbour",
    [
        *(macro("<h2>B</h2><p>2</p>", name) for name in ("excerpt", "expand", "panel")),
        macro("<p>0</p><h1>B</h1><p>2</p>"),
        macro(macro("<h2>B</h2>")),
        (
            "<ac:layout><ac:layout-section><ac:layout-cell><p>0</p></ac:layout-cell>"
            "<ac:layout-cell><h2>B</h2></ac:layout-cell></ac:layout-section></ac:layout>"
        ),
        "<table><tbody><tr><td><h2>B</h2></td></tr></tbody></table>",
        "<div><h2>B</h2></div>",
    ],
)
def test_section_ends_before_an_element_with_a_heading(neighbour: str) -> None:
    page = f"<h2>A</h2><p>1</p>{macro('<h3>a</h3>')}{neighbour}<p>3</p><h2>C</h2>"
    section = find_section(page, "A")
    assert section.content == f"<p>1</p>{macro('<h3>a</h3>')}"
    assert section.replaced("<p>x</p>") == f"<h2>A</h2><p>x</p>{neighbour}<p>3</p><h2>C</h2>"


@pytest.mark.parametrize(
    ("page", "content"),
    [
        (macro("<h2>A</h2><p>1</p>") + "<p>2</p>", "<p>1</p>"),
        (macro("<h2>A</h2>") + "\n<p><br/></p><!-- x --><h2>B</h2><p>2</p>", ""),
        (macro("<h2>A</h2>") + macro("<h2>B</h2>"), ""),
        (macro("<h2>A</h2>"), ""),
        (f"<table><tr><td>{macro('<h2>A</h2>')}</td><td>2</td></tr></table>", ""),
    ],
)
def test_section_inside_a_macro_ends_with_it(page: str, content: str) -> None:
    assert find_section(page, "A").content == content


@pytest.mark.parametrize("after", ["<p>1</p><h2>B</h2>", "1", macro("<p>1</p>"), "<h3>a</h3>"])
def test_section_that_goes_on_after_its_macro_is_a_conflict(after: str) -> None:
    for before in (
        macro("<p>0</p><h2>A</h2>"),
        macro(macro("<h2>A</h2>\n")),
        "<div><h2>A</h2></div>",
    ):
        with pytest.raises(ToolchainError, match="move the heading out of the macro") as caught:
            find_section(before + after, "A")
        assert caught.value.kind == "conflict"


def test_anchor_is_not_part_of_the_heading() -> None:
    page = (
        '<h1><ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">x</ac:parameter>'
        "</ac:structured-macro>Notes</h1><p>1</p>"
    )
    assert find_section(page, "Notes").content == "<p>1</p>"


@pytest.mark.parametrize(
    ("page", "heading", "kind"),
    [
        (PAGE, "one", "not_found"),
        (PAGE, "Five", "not_found"),
        ("<h1>A</h1><h2>A</h2>", "A", "invalid"),
        ("<pre>&lt;h1&gt;A&lt;/h1&gt;</pre>", "A", "not_found"),
        ("<h1>A</h1><p>a & b<br>", "A", "protocol"),
    ],
)
def test_missing_or_repeated_heading_is_an_error(page: str, heading: str, kind: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        find_section(page, heading)
    assert caught.value.kind == kind


def test_content_that_ends_its_section_is_rejected() -> None:
    section = find_section(PAGE, "Three")
    require_inside("<p>a</p><h3>b</h3><div><h4>c</h4></div>", section)
    for level in (1, 2):
        heading = f"<h{level}>b</h{level}>"
        for body in (f"<p>a</p>{heading}", f"<p>a</p><div>{heading}</div>"):
            with pytest.raises(ToolchainError, match="would end a section of level 2") as caught:
                require_inside(body, section)
            assert caught.value.kind == "invalid"


@given(BODIES, BODIES, st.integers(0, 2**32).map(random.Random))
def test_rest_of_the_page_is_kept_exactly(
    before: list[Any], after: list[Any], chance: random.Random
) -> None:
    writer = Writer(chance)
    head, tail = writer.body(before), writer.body(after)
    heading = "<h1>The section: \u00e9&nbsp;&amp;</h1>"
    page = f"{head}{heading}<p>old</p><h1>The end of it</h1>{tail}"
    section = find_section(page, "The section: \u00e9\u00a0&")
    new = section.replaced("<p>new</p>")
    assert new == f"{head}{heading}<p>new</p><h1>The end of it</h1>{tail}"
    assert find_section(new, "The section: \u00e9 &").content == "<p>new</p>"
