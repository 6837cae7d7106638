# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that pages are compared as a reader sees them: server rewrites are ignored, every edit by a
user is a difference.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.comparison import (
    compare,
    readable,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    parse,
)
from sandbox.wiki.rewrite import rewrite
from tests.unit.wiki.documents import BODIES, SPACE, Writer, as_seen, edited, plain, saved

CHANCES = st.integers(0, 2**32).map(random.Random)


@given(BODIES, CHANCES)
def test_server_rewrites_are_not_a_difference(blocks: list[Any], chance: random.Random) -> None:
    current, wanted = saved(blocks, chance), Writer(chance).body(blocks)
    verdict = compare(current, wanted, SPACE)
    assert verdict.same, (current, wanted)
    assert bool(verdict.ignored) is (current != wanted)
    before, after = readable(current, wanted, SPACE)
    assert before == after


@given(BODIES, CHANCES)
def test_sandbox_rewrites_are_not_a_difference(blocks: list[Any], chance: random.Random) -> None:
    wanted = Writer(chance).body(blocks)
    assert compare(rewrite(wanted, SPACE), wanted, SPACE).same


@given(BODIES, CHANCES)
def test_every_edit_is_a_difference(blocks: list[Any], chance: random.Random) -> None:
    changed = edited(blocks, chance)
    assume(as_seen(changed) != as_seen(blocks))
    current, wanted = saved(blocks, chance), Writer(chance).body(changed)
    assert not compare(current, wanted, SPACE).same, (current, wanted)
    assert not compare(rewrite(plain(blocks), SPACE), wanted, SPACE).same
    before, after = readable(current, wanted, SPACE)
    assert before != after


@pytest.mark.parametrize(
    ("current", "wanted", "ignored"),
    [
        ("<p />", "<p></p>", "spelling of empty elements (1)"),
        ("<p>\u2013</p>", "<p>&ndash;</p>", "entities (1)"),
        ("<p>a</p>", "<p>a</p>\n", "whitespace between blocks (1)"),
        ("<p>a</p>", "<p >a</p\n>", "spelling of tags and line breaks (1)"),
        ("<p>a\nb</p>", "<p>a\r\nb</p>", "spelling of tags and line breaks (1)"),
        ('<p b="1" a="2" />', '<p a="2" b="1" />', "order of attributes (1)"),
        ("<p a='1' />", '<p a="1" />', "quotation marks of attributes (1)"),
        (
            '<ac:structured-macro ac:name="x" ac:macro-id="1" ac:schema-version="1" />',
            '<ac:structured-macro ac:name="x" />',
            "attribute ac:macro-id (1)",
        ),
        ('<p local-id="1" />', '<p ac:local-id="2" />', "attribute local-id (1)"),
        (
            '<ri:page ri:version-at-save="2" />',
            '<ri:page ri:space-key="REL" />',
            "attribute ri:space-key for the space of the page (1)",
        ),
        ("<table><tbody><tr /></tbody></table>", "<table><tr /></table>", "element tbody (1)"),
        (
            "<table><colgroup><col /></colgroup><tbody><tr /></tbody></table>",
            "<table><tbody><tr /></tbody></table>",
            "element colgroup (1)",
        ),
        ('<table data-layout="default" />', "<table />", "attribute data-layout (1)"),
        (
            '<div><ac:structured-macro ac:name="x" /></div>',
            '<div>\n  <ac:structured-macro ac:name="x" />\n</div>',
            "whitespace between blocks (2)",
        ),
        (
            "<ac:task><ac:task-uuid>1</ac:task-uuid></ac:task>",
            "<ac:task></ac:task>",
            "element ac:task-uuid (1)",
        ),
        (
            '<p>a<ac:inline-comment-marker ac:ref="1"> <b>b</b></ac:inline-comment-marker>c</p>',
            "<p>a <b>b</b>c</p>",
            "element ac:inline-comment-marker (1)",
        ),
        (
            '<ac:macro><ac:parameter ac:name="a" /><ac:parameter ac:name="b" /></ac:macro>',
            '<ac:macro><ac:parameter ac:name="b" /><ac:parameter ac:name="a" /></ac:macro>',
            "order of ac:parameter (1)",
        ),
        (
            "<ac:plain-text-body><![CDATA[ab]]></ac:plain-text-body>",
            "<ac:plain-text-body><![CDATA[a]]><![CDATA[b]]></ac:plain-text-body>",
            "CDATA sections (2)",
        ),
    ],
)
def test_ignored_differences_are_named(current: str, wanted: str, ignored: str) -> None:
    verdict = compare(current, wanted, SPACE)
    assert verdict.same
    assert ignored in verdict.ignored


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        ("<p>Release</p>", "<p>release</p>"),
        ("<p>a b</p>", "<p>a  b</p>"),
        ("<p>a</p>", "<p>a </p>"),
        ("<p>a</p>", "<p>a&nbsp;</p>"),
        ("<p><b>a</b> <b>b</b></p>", "<p><b>a</b><b>b</b></p>"),
        ("<pre> a</pre>", "<pre>a</pre>"),
        ("<ac:plain-text-body><![CDATA[ ]]></ac:plain-text-body>", "<ac:plain-text-body />"),
        ('<td class="x" />', "<td />"),
        ('<td data-highlight-colour="red" />', "<td />"),
        ('<table data-layout="wide" />', '<table data-layout="default" />'),
        ("<table />", '<table data-layout="wide" />'),
        ("<td><br /> <br /></td>", "<td><br /><br /></td>"),
        ('<ac:structured-macro ac:macro-id="1" />', '<ac:structured-macro ac:macro-id="2" />'),
        (
            '<ac:structured-macro ac:schema-version="1" />',
            '<ac:structured-macro ac:schema-version="2" />',
        ),
        ('<ri:page ri:space-key="REL" />', '<ri:page ri:space-key="OTHER" />'),
        ("<ul><li>a</li><li>b</li></ul>", "<ul><li>b</li><li>a</li></ul>"),
        (
            '<table><colgroup><col style="width: 1px" /></colgroup><tr /></table>',
            '<table><colgroup><col style="width: 2px" /></colgroup><tr /></table>',
        ),
        ("<table><tr /></table>", "<table><colgroup><col /></colgroup><tr /></table>"),
        ("<li><p>a</p><p>b</p></li>", "<li>ab</li>"),
        ("<li><p>a</p><p>b</p></li>", "<li><p>ab</p></li>"),
        ('<td><p style="text-align: center;">a</p></td>', "<td>a</td>"),
        ("<li>a<ul><li>b</li></ul></li>", "<li>a</li><li>b</li>"),
        ("<p /><p>a</p>", "<p>a</p>"),
        ("<p>a</p><p> </p>", "<p>a</p>"),
        ('<ol start="2"><li>a</li></ol>', "<ol><li>a</li></ol>"),
        ('<ac:image ac:width="2" />', '<ac:image ac:width="1" />'),
        ("<ac:image />", '<ac:image ac:width="1" />'),
        ('<ac:image ac:border="true" />', "<ac:image />"),
        ('<table style="color: red;"><tr /></table>', "<table><tr /></table>"),
        ('<table class="mine"><tr /></table>', "<table><tr /></table>"),
        ('<p style="width: 1px;">a</p>', "<p>a</p>"),
        ("<p><span>a</span></p>", "<p>a</p>"),
        (
            "<table><tbody><tr /></tbody><tbody><tr /></tbody></table>",
            "<table><tbody><tr /><tr /></tbody></table>",
        ),
        ("<p>a<!-- b --></p>", "<p>a</p>"),
        ("<p>a</p>", "<p>a"),
        ("<p>a", "<p>a</p>"),
    ],
)
def test_real_difference_is_found(current: str, wanted: str) -> None:
    verdict = compare(current, wanted, SPACE)
    assert not verdict.same
    assert verdict.ignored == ()
    before, after = readable(current, wanted, SPACE)
    assert before != after


_TASK = (
    "<ac:task-list{}><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>"
    "<ac:task-body>{}</ac:task-body></ac:task></ac:task-list>"
)
_MACRO = '<ac:structured-macro ac:name="code"{}>{}<ac:plain-text-body /></ac:structured-macro>'
_TABLE = (
    '<table data-layout="default" data-table-width="760" style="width: 50.0%;"'
    ' class="relative-table wrapped" ac:local-id="1"><colgroup><col style="width: 9px;" />'
    "</colgroup><tbody><tr /></tbody></table>"
)
_IMAGE = (
    '<ac:image ac:align="center" ac:layout="center" ac:original-height="2"'
    ' ac:original-width="3" ac:custom-width="true" ac:width="760" ac:alt="x" />'
)
_PARAMETER = '<ac:parameter ac:name="{}">wide</ac:parameter>'


@pytest.mark.parametrize(
    ("current", "wanted", "ignored"),
    [
        ("<ul><li><p>a</p></li></ul>", "<ul><li>a</li></ul>", "paragraphs in li (1)"),
        (
            "<ul><li><p>a <b>b</b></p><ul><li><p>c</p></li></ul></li></ul>",
            "<ul><li>a <b>b</b>\n<ul><li>c</li></ul></li></ul>",
            "paragraphs in li (2)",
        ),
        (
            f"<ul><li><p>a</p>{_MACRO.format('', '')}<p>b</p></li></ul>",
            f"<ul><li>a {_MACRO.format('', '')} b</li></ul>",
            "paragraphs in li (2)",
        ),
        ("<table><tr><td><p /></td></tr></table>", "<table><tr><td /></tr></table>", None),
        ("<table><tr><th><p>a</p></th></tr></table>", "<table><tr><th>a</th></tr></table>", None),
        (_TABLE, "<table><tr /></table>", "element colgroup (1)"),
        (_IMAGE, '<ac:image ac:alt="x" />', "attribute ac:width (1)"),
        ('<ac:image ac:width="5" ac:height="3" />', '<ac:image ac:width="5" />', None),
        (
            _TASK.format(
                ' ac:task-list-id="7"', '<span class="placeholder-inline-tasks">a <b>b</b></span>'
            ),
            _TASK.format("", "a <b>b</b>"),
            "marks of the text of tasks (1)",
        ),
        (
            _MACRO.format(' data-layout="wide"', _PARAMETER.format("breakoutMode")),
            _MACRO.format("", ""),
            "parameter breakoutMode (1)",
        ),
        (
            '<ac:layout-section ac:type="single" ac:breakout-mode="wide" ac:breakout-width="9" />',
            '<ac:layout-section ac:type="single" />',
            None,
        ),
        ('<p>a</p><p local-id="1" />', "<p>a</p>", "empty paragraph at the end (1)"),
        ('<ol start="1"><li>a</li></ol>', "<ol><li>a</li></ol>", None),
        (
            '<ac:link ac:card-appearance="inline"><ri:page ri:version-at-save="1" /></ac:link>',
            "<ac:link><ri:page /></ac:link>",
            None,
        ),
    ],
)
def test_rewrites_of_the_editor_of_the_cloud_are_no_difference(
    current: str, wanted: str, ignored: str | None
) -> None:
    verdict = compare(current, wanted, SPACE)
    assert verdict.same
    assert ignored is None or ignored in verdict.ignored
    before, after = readable(current, wanted, SPACE)
    assert before == after


def test_malformed_body_equals_itself() -> None:
    assert compare("<p>", "<p>", SPACE).same


def test_diff_has_a_line_per_block() -> None:
    body = (
        "<h1>A &amp; B</h1><p>one<br/>two</p><ul><li>x</li></ul>"
        '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">sh</ac:parameter>'
        "<ac:plain-text-body><![CDATA[a\n]]]]><![CDATA[>b]]></ac:plain-text-body>"
        "</ac:structured-macro><!-- c -->"
    )
    before, after = readable(body, body.replace("two", "Two"), SPACE)
    assert before.splitlines() == [
        "<h1>A &amp; B</h1>",
        "<p>one<br />two</p>",
        "<ul>",
        "  <li>x</li>",
        "</ul>",
        '<ac:structured-macro ac:name="code">',
        '  <ac:parameter ac:name="language">sh</ac:parameter>',
        "  <ac:plain-text-body><![CDATA[a",
        "]]]]><![CDATA[>b]]></ac:plain-text-body>",
        "</ac:structured-macro>",
        "<!-- c -->",
    ]
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert changed == ["<p>one<br />Two</p>"]


def test_diff_omits_additions_of_the_server() -> None:
    row = "<tbody><tr><td>{}</td></tr></tbody>"
    current = f"<table data-layout='default'><colgroup><col /></colgroup>{row.format('a')}</table>"
    before, after = readable(current, f"<table>{row.format('b')}</table>", SPACE)
    assert before.replace("<td>a</td>", "<td>b</td>") == after


@given(BODIES, CHANCES)
def test_diff_sides_are_well_formed(blocks: list[Any], chance: random.Random) -> None:
    for shown in readable(saved(blocks, chance), plain(blocks), SPACE):
        parse(shown)
