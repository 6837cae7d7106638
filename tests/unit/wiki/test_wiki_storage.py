# SPDX-License-Identifier: GPL-3.0-or-later
"""Test parsing storage format: positions in the source, and readable error messages."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    Malformed,
    StorageElement,
    parse,
)
from tests.unit.wiki.documents import BODIES, Writer


@pytest.mark.parametrize(
    ("body", "line", "column", "words"),
    [
        ("<p>R & D</p>", 1, 6, "write it as &amp;"),
        ("<p>ok</p>\n<p>x &amp; R&D</p>", 2, 13, "write it as &amp;"),
        ('<a href="x?a=1&b=2">x</a>', 1, 15, "write it as &amp;"),
        ("a &", 1, 3, "write it as &amp;"),
        ("<p>a<br>b</p>", 1, 5, "write <br /> instead of <br>"),
        ("<p>a</p>\n<hr>\n<p>b</p>", 2, 1, "write <hr />"),
        ('<p>\n <img src="x"></p>', 2, 2, "write <img />"),
        ("<p>x]]>y</p>", 1, 5, "write ]]&gt;"),
        ("<![CDATA[ a ]]> b ]]>", 1, 19, "split it into two sections: ]]]]><![CDATA[>"),
        ("<p>&check;</p>", 1, 4, "&check; is unknown"),
        ("<p>ü &foo;</p>", 1, 6, "&foo; is unknown"),
        ("<p title='&foo;'/>", 1, 11, "&foo; is unknown"),
        ("<p>a < b</p>", 1, 6, "write it as &lt;"),
        ("<!-- a -- b -->", 1, 10, "inside a comment"),
        ("<p><b>x</p>", 1, 8, "<b> from line 1, column 4 is not closed"),
        ("<ul>\n<li>a\n</ul>", 3, 1, "<li> from line 2, column 1 is not closed"),
        ("<p>a", 1, 5, "<p> from line 1, column 1 is not closed"),
        ("a</p>", 1, 2, "has no matching start tag"),
        ("a</storage-format>", 1, 2, "has no matching start tag"),
        ("<p a='1' a='2'/>", 1, 10, "duplicate attribute"),
        ("<p>\x01</p>", 1, 4, "not well-formed"),
        ("<p>\ud800</p>", 1, 4, "surrogate"),
        ("<![CDATA[ a", 1, 12, "unclosed CDATA"),
        ("<b>" * 201 + "</b>" * 201, 1, 601, "deeper than 200 levels"),
    ],
)
def test_error_is_reported_with_its_position(body: str, line: int, column: int, words: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse(body)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert words in str(caught.value)
    assert f"line {line}, column {column}" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "text",
        "<p>&nbsp;&ndash;&hearts;&amp;&#8212;&#x1F600;</p>",
        '<ac:link><ri:page ri:content-title="a"/></ac:link><foo:bar/>',
        "<p>a</p><!-- c --><?target data?>",
    ],
)
def test_valid_storage_format_is_accepted(body: str) -> None:
    assert parse(body).end == len(body.encode())


def test_entities_and_sections_become_text() -> None:
    root = parse('<p title="a&nbsp;&amp;b">&ouml;<![CDATA[<x>]]>]]&gt;</p>')
    (paragraph,) = root.elements
    assert paragraph.attributes == {"title": "a\u00a0&b"}
    assert paragraph.children == ["ö<x>]]>"]


@given(BODIES, st.integers(0, 2**32).map(random.Random))
def test_every_element_has_its_source_position(blocks: list[Any], chance: random.Random) -> None:
    body = Writer(chance).body(blocks)
    source = body.encode()
    root = parse(body)
    for element in root.walk():
        if element is root:
            continue
        chunk = source[element.begin : element.end].decode()
        assert chunk.startswith(f"<{element.name}")
        assert chunk.endswith(">")
        (again,) = parse(chunk).elements
        assert _shape(again) == _shape(element)
        inside = parse(source[element.inner : element.outer].decode())
        assert _shape(inside)[2] == _shape(element)[2]


def _shape(element: StorageElement) -> tuple[str, dict[str, str], list[Any]]:
    children = [
        _shape(child) if isinstance(child, StorageElement) else child for child in element.children
    ]
    return (element.name, element.attributes, children)
