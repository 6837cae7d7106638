# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage format becomes Markdown that converts to the same page."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.filter.storage_format import storage_format
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import converter
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.comparison import (
    alike,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.markdown_writer import (
    Context,
    markdown_of,
)
from tests.unit.wiki.documents import BODIES, saved
from tests.unit.wiki.markdown_texts import MarkdownTexts


class _Addresses:
    """Attachments have the addresses of their names. Other pages have none."""

    def page(self, title: str, anchor: str) -> str | None:
        return None

    def file(self, name: str) -> str | None:
        return quote(name)


def _page(markdown: str) -> str:
    return converter.storage_format(markdown, lambda warning: None)


def _markdown(body: str) -> str:
    return markdown_of(body, Context(_Addresses(), keeps_relative=True))


#: More seeds can be tried with this variable, for example `MARKDOWN_SEEDS=10000`.
_SEEDS = int(os.environ.get("MARKDOWN_SEEDS", "300"))
_GROUPS = 10


@pytest.mark.parametrize("group", range(_GROUPS))
def test_any_document_goes_there_and_back(group: int) -> None:
    for seed in range(group, _SEEDS, _GROUPS):
        text = MarkdownTexts(seed).document()
        page = _page(text)
        back = _markdown(page)
        assert alike(page, _page(back), None, flowing=True), f"seed {seed}:\n{text}\n\n{back}"


#: Random choices of a server.
CHANCES = st.randoms(use_true_random=False)
_INFO = '<ac:structured-macro ac:name="info">'
_BODY = "<ac:rich-text-body><p>x</p></ac:rich-text-body></ac:structured-macro>"


@pytest.mark.parametrize(
    ("body", "markdown"),
    [
        (
            "<p>It is 2 * 3, <strong>not </strong>4_5 or [0].</p>",
            "It is 2 * 3, **not** 4_5 or [0].\n",
        ),
        (
            "<p>*a* _b_ `c` &lt;d&gt; &amp;amp; [e](f)</p>",
            "\\*a\\* \\_b\\_ \\`c\\` \\<d> \\&amp; \\[e](f)\n",
        ),
        ("<p>- a</p><p>1. b</p><p># c</p>", "\\- a\n\n1\\. b\n\n\\# c\n"),
        ("<p>a\u00a0b<br/>c</p>", "a&nbsp;b\\\nc\n"),
        ("<h2>A</h2><p> b  c </p><p /><hr/>", "## A\n\nb c\n\n---\n"),
        ("<ul><li><p>a</p><ol><li>b</li></ol></li><li>c</li></ul>", "- a\n  1. b\n- c\n"),
        ("<ul><li>a</li></ul><ul><li>b</li></ul>", "- a\n\n* b\n"),
        (
            "<table><tbody><tr><th>a</th><th>b</th></tr><tr><td>c|d</td><td/></tr></tbody></table>",
            "| a    | b   |\n| ---- | --- |\n| c\\|d |     |\n",
        ),
        (f"{_INFO}{_BODY}", "> [!NOTE]\n> x\n"),
        (
            f'{_INFO}<ac:parameter ac:name="title">T</ac:parameter>{_BODY}',
            '!!! info "T"\n    x\n',
        ),
        (
            '<p>by <ac:link><ri:user ri:username="ann"/></ac:link></p>',
            'by `<ac:link><ri:user ri:username="ann"/></ac:link>`{=storage}\n',
        ),
        (
            '<ac:structured-macro ac:name="children" ac:macro-id="1"/>',
            '```storage\n<ac:structured-macro ac:name="children"/>\n```\n',
        ),
        ('<p><a href="https://a.example">https://a.example</a>.</p>', "<https://a.example>.\n"),
        ('<p>see <a href="https://a.example">https://a.example</a></p>', "see https://a.example\n"),
        (
            '<p>a<ac:inline-comment-marker ac:ref="1">b</ac:inline-comment-marker></p>',
            "ab\n",
        ),
        (
            '<p><ac:image ac:alt="x"><ri:attachment ri:filename="a b.png"/></ac:image></p>',
            "![x](a%20b.png)\n",
        ),
    ],
)
def test_storage_format_becomes_markdown_of_a_person(body: str, markdown: str) -> None:
    assert _markdown(body) == markdown
    assert alike(body, _page(markdown), None, flowing=True)


@pytest.mark.parametrize("folder", ["docs", "roles"])
def test_documents_of_this_repository_need_no_passage(folder: str) -> None:
    root = Path(__file__).parents[3]
    for path in sorted((root / folder).rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        page = _page(text)
        back = _markdown(page)
        assert alike(page, _page(back), None, flowing=True), path
        assert back.count("{=storage}") == text.count("{=storage}"), path


def test_passages_are_inserted_unchanged() -> None:
    text = "a `<b>x</b>`{=storage}\n\n```storage\n<ac:layout>\n</ac:layout>\n```\n"
    assert storage_format(text) == "<p>a <b>x</b></p><ac:layout>\n</ac:layout>"
    assert storage_format("`a`{=html}") == "<p><code>a</code>{=html}</p>"


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        (
            "a\n\n```storage\n<p>\n<b></p>\n```\n",
            "line 5: the passage in storage format is not well",
        ),
        ("a\n`<p>`{=storage}", "line 2: the passage in storage format is not well-formed: <p>"),
        ("```storage\n<script/>\n```", "line 2: the passage contains <script>, which is not"),
        ("[^a]\n\n[^a]: `<x/>`{=storage}", "line 3: the passage contains <x>"),
    ],
)
def test_wrong_passage_is_rejected_with_its_line(markdown: str, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        storage_format(markdown)


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        ("<p>a  b\nc </p><p></p>", "<p>a b c</p>"),
        ("<p><strong>a </strong>b</p>", "<p><strong>a</strong> b</p>"),
        (
            '<p><ac:link><ri:page ri:content-title="A"/></ac:link></p>',
            '<p><ac:link><ri:page ri:content-title="A"/><ac:link-body>A</ac:link-body></ac:link></p>',
        ),
        (
            "<ac:task-list><ac:task><ac:task-id>7</ac:task-id></ac:task></ac:task-list>",
            "<ac:task-list><ac:task><ac:task-id>1</ac:task-id></ac:task></ac:task-list>",
        ),
    ],
)
def test_free_white_space_is_no_difference(current: str, wanted: str) -> None:
    assert not alike(current, wanted, None)
    assert alike(current, wanted, None, flowing=True)


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        ("<p>ab</p>", "<p>a b</p>"),
        ("<p><code>a  b</code></p>", "<p><code>a b</code></p>"),
        ("<pre>a\n b</pre>", "<pre>a b</pre>"),
        ("<p>a<strong>b</strong></p>", "<p>a <strong>b</strong></p>"),
        ("<p><br/></p>", "<p></p>"),
    ],
)
def test_other_white_space_is_a_difference(current: str, wanted: str) -> None:
    assert not alike(current, wanted, None, flowing=True)


@given(BODIES, CHANCES)
def test_any_page_of_the_wiki_goes_there_and_back(blocks: Any, chance: Random) -> None:
    page = saved(blocks, chance)
    back = _markdown(page)
    assert alike(page, _page(back), None, flowing=True), back
