# SPDX-License-Identifier: GPL-3.0-or-later
"""Test Markdown as documents of the cloud and as wiki markup of servers [tracker-25, tracker-45]."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues import markdown
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.documents import (
    same_document,
    text_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.text_format import (
    TextFormat,
)
from sandbox.tracker.fields.markup import is_document, with_local_ids

Json = dict[str, Any]


def document(text: str) -> list[Json]:
    found: list[Json] = TextFormat(True, True, print).stored(text, "description")["content"]
    return found


def markup(text: str) -> str:
    return str(TextFormat(True, False, print).stored(text, "description"))


def words(text: str, *marks: str) -> Json:
    found: Json = {"type": "text", "text": text}
    return {**found, "marks": [{"type": mark} for mark in marks]} if marks else found


def paragraph(*content: Json) -> Json:
    return {"type": "paragraph", "content": list(content)}


def link(text: str, address: str) -> Json:
    return {**words(text), "marks": [{"type": "link", "attrs": {"href": address}}]}


A = paragraph(words("a"))
DOCUMENTS: list[tuple[str, list[Json]]] = [
    ("## a", [{"type": "heading", "attrs": {"level": 2}, "content": [words("a")]}]),
    ("a\nb", [paragraph(words("a b"))]),
    (
        "a  \nb<br>c",
        [
            paragraph(
                words("a"), {"type": "hardBreak"}, words("b"), {"type": "hardBreak"}, words("c")
            )
        ],
    ),
    ("***a*** ~~b~~", [paragraph(words("a", "em", "strong"), words(" "), words("b", "strike"))]),
    ("**`a`**", [paragraph(words("a", "code"))]),
    ("[a](https://x.example)", [paragraph(link("a", "https://x.example"))]),
    (
        "see https://x.example/a.",
        [paragraph(words("see "), link("https://x.example/a", "https://x.example/a"), words("."))],
    ),
    ("![a](https://x.example/a.png)", [paragraph(link("a", "https://x.example/a.png"))]),
    ("![a](a.png)", [A]),
    (
        "```py\na\n```",
        [{"type": "codeBlock", "content": [words("a")], "attrs": {"language": "py"}}],
    ),
    ("```\n```", [{"type": "codeBlock", "content": []}]),
    ("---", [{"type": "rule"}]),
    ("> # a", [{"type": "blockquote", "content": [paragraph(words("a", "strong"))]}]),
    (
        "3. a",
        [
            {
                "type": "orderedList",
                "attrs": {"order": 3},
                "content": [{"type": "listItem", "content": [A]}],
            }
        ],
    ),
    (
        "- - a",
        [
            {
                "type": "bulletList",
                "content": [
                    {
                        "type": "listItem",
                        "content": [
                            paragraph(),
                            {
                                "type": "bulletList",
                                "content": [{"type": "listItem", "content": [A]}],
                            },
                        ],
                    }
                ],
            }
        ],
    ),
    ("<!-- a -->", []),
    ("a <b>b</b>", [paragraph(words("a <b>b</b>"))]),
    (
        "|a|\n|-|\n|a|",
        [
            {
                "type": "table",
                "content": [
                    {"type": "tableRow", "content": [{"type": "tableHeader", "content": [A]}]},
                    {"type": "tableRow", "content": [{"type": "tableCell", "content": [A]}]},
                ],
            }
        ],
    ),
]
MARKUP = [
    ("## a *b*", "h2. a _b_"),
    ("a\nb", "a b"),
    ("a  \nb", "a\nb"),
    ("**a** x**b**x", "*a* x{*}b{*}x"),
    ("`a{b}`", "{{a\\{b\\}}}"),
    ("[a|b](https://x.example/a_b)", "[a\\|b|https://x.example/a_b]"),
    ("https://x.example/a_b_c", "https://x.example/a_b_c"),
    ("<https://x.example>", "[https://x.example]"),
    ("![a](a.png)", "!a.png!"),
    ("- a\n  1. b\n- c", "* a\n*# b\n* c"),
    ("1. a\n\n   b", "# a \\\\ b"),
    ("- a\n\n  ```py\n  b\n  ```\n\n  c", "* a\n{code:python}\nb\n{code}\nc"),
    ("- [ ] a", "* \\[ \\] a"),
    ("> a\n>\n> > b", "{quote}\na\n\nb\n{quote}"),
    ("```cobol\na\n```", "{code}\na\n{code}"),
    ("```\n{code}\n```", "{noformat}\n{code}\n{noformat}"),
    ("|a|b|\n|-|-|\n|c||", "||a||b||\n|c| |"),
    ("---", "----"),
    ("a {b} [c] d\\*e* f! (x) *", "a \\{b\\} \\[c\\] d*e\\* f! \\(x) *"),
    ("snake_case - 5-10", "snake_case - 5-10"),
    ("h1. a", "h1\\. a"),
    ("a  \n\\# b", "a\n\\# b"),
    ("a\\\\b", "a&#92;b"),
]


@pytest.mark.parametrize(("text", "content"), DOCUMENTS)
def test_markdown_becomes_a_document(text: str, content: list[Json]) -> None:
    assert document(text) == content


@pytest.mark.parametrize(("text", "expected"), MARKUP)
def test_markdown_becomes_wiki_markup(text: str, expected: str) -> None:
    assert markup(text) == expected


def test_tasks_have_their_own_ids() -> None:
    first, _text, second = document("- [ ] a\n- [x] **b**\n\nc\n\n* [X] d")
    assert [item["attrs"]["state"] for item in first["content"]] == ["TODO", "DONE"]
    assert first["content"][1]["content"] == [words("b", "strong")]
    nodes = [first, second, *first["content"], *second["content"]]
    assert len({node["attrs"]["localId"] for node in nodes}) == len(nodes)
    (mixed,) = document("- [ ] a\n- b")
    assert mixed["content"][0]["content"] == [paragraph(words("[ ] a"))]


PIECES = ["# a", "- a", "  - b", "1. c", "> d", "> - e", "- > f", "```", "~~g~~", "|a|b|", "|-|-|", "|**x**|`y`|", "- [ ] t", "  > # h", "***", "[x](y)", "<div>", "<!--c-->", "`` ` ``", "", "![i](https://e.example)", "**_`k`_**", "    code", "a  ", "\\"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_every_document_is_accepted_and_equal_to_the_stored_one(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = TextFormat(True, True, print).stored(text, "description")
    if found is not None:
        assert is_document(found), found
        assert same_document(with_local_ids(found), found)
    assert isinstance(markup(text), str)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("> " * 60 + "a", "nested deeper"),
        ("[" * 3001, "brackets"),
        ("a" * 100_001, "characters"),
        ("```\n{code}{noformat}\n```", "split it"),
    ],
)
def test_text_that_cannot_be_converted_is_rejected(text: str, said: str) -> None:
    for convert in (markup, document)[: 1 if said == "split it" else 2]:
        with pytest.raises(ToolchainError, match=f"^description has .*{said}") as caught:
            convert(text)
        assert caught.value.kind == "invalid"


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MARKDOWN_MISSING", "ImportError")
    with pytest.raises(ToolchainError, match="pip install markdown-it-py"):
        document("a")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "# a",
            "text\n## a",
            "- a\n- b",
            "1. a\n2. b",
            "* a\n** b",
            "```\na\n```",
            "{code}a{code}",
        ),
        *("{code:java}", "{noformat}", "h2. a", "[a|https://x.example]", "[a](b)", "**a**"),
        *("||a||b||", "|a|b|\n|-|-|", "{quote}a{quote}"),
    ],
)
def test_markup_in_a_plain_text_of_the_cloud_gives_a_warning(text: str) -> None:
    warnings: list[str] = []
    found = TextFormat(False, True, warnings.append).stored(text, "comment")
    assert len(warnings) == 1
    assert warnings[0].startswith("comment looks like Markdown or wiki markup")
    assert "text_format" in warnings[0]
    assert text_of(found) == text
    TextFormat(False, False, warnings.append).stored(text, "comment")
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "text",
    ["plain", "a - b", "a\n- b", "#12 and a*b*c", "[a] [b]", "x = {a}", "5 * 3\n4", "a|b", "- one"],
)
def test_plain_text_gives_no_warning(text: str) -> None:
    warnings: list[str] = []
    TextFormat(False, True, warnings.append).stored(text, "comment")
    assert warnings == []
