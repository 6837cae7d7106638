# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a page in the wiki go back into its Markdown, and everything else keeps its bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import converter
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.comparison import (
    alike,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.converter import (
    StorageRenderer,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.document import (
    parse_markdown,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.markdown_merge import (
    Conflict,
    Merger,
    is_merge,
    segments_of,
    style_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.markdown_writer import (
    Context,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.markup import (
    SingleText,
)
from tests.unit.wiki.page_edits import edited

#: More seeds can be tried with this variable, for example `MARKDOWN_EDITS=500`.
_EDITS = int(os.environ.get("MARKDOWN_EDITS", "50"))
_GROUPS = 5
_DOCUMENTS = sorted((Path(__file__).parents[3] / "docs").glob("*.md"))
_LINK = re.compile(r"\]\(#[^)]*\)")


class _Addresses:
    def page(self, title: str, anchor: str) -> str | None:
        return None

    def file(self, name: str) -> str | None:
        return quote(name)


def _pieces(text: str) -> Sequence[tuple[int, str]]:
    document = parse_markdown(text)
    resolver = SingleText(document.targets, lambda warning: None)
    return StorageRenderer(document, resolver, []).pieces()


def _page(text: str) -> str:
    return converter.storage_format(text, lambda warning: None)


def _merged(text: str, page: str, base: str | None = None) -> str:
    style = style_of(text)
    context = Context(_Addresses(), keeps_relative=True, begins=False, style=style)
    return Merger(_pieces, context).merged(text, page, base)


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a b\n\nc  *d*  e\n", "a b", "a e", "a e\n\nc  *d*  e\n"),
        ("# T\n- a\n- b\n\nend\n", "<li>b", "<li>c", "# T\n- a\n- c\n\nend\n"),
        ("* a\n\n  x\n* b\n", "x</p>", "y</p>", "* a\n\n  y\n* b\n"),
        ("1. a\n1. b\n", "</ol>", "<li>c</li></ol>", "1. a\n1. b\n3. c\n"),
        ("+ a\n  + b\n  + c\n", "<li>b</li>", "", "+ a\n  + c\n"),
        ("- [ ] a\n- [x] b\n", "incomplete", "complete", "- [x] a\n- [x] b\n"),
        ("|a|b|\n|-|-|\n|c|d|\n|e|f|\n", "<td>e", "<td>g", "|a|b|\n|-|-|\n|c|d|\n| g | f |\n"),
        ("> a\n>\n> b\n", "<p>b", "<p>c", "> a\n>\n> c\n"),
        ("> [!TIP]\n> a\n>\n> - b\n", "<p>a", "<p>c", "> [!TIP]\n> c\n>\n> - b\n"),
        ("_a_ b\n\nc\n", "<p>c", "<p><em>x</em>", "_a_ b\n\n_x_\n"),
        ("~~~ py\na\n~~~\n", "[a]", "[b]", "~~~python\nb\n~~~\n"),
        ("A\n===\n\nb\n", "<p>b</p>", "<p>b</p><h2>C</h2>", "A\n===\n\nb\n\nC\n---\n"),
        ("a\n\n[r]: https://x.example\n", "<p>a</p>", "<p>b</p>", "b\n\n[r]: https://x.example\n"),
        ("a\n\nb\n\nc\n", "<p>b</p>", "", "a\n\nc\n"),
        ("a\n\nb\n", "<p>b</p>", "", "a\n"),
        ("a\n", "<p>a</p>", "<p>b</p><p>a</p>", "b\n\na\n"),
        ("a   b\n\nc\n", "<p>a   b</p><p>c</p>", "<p>c</p><p>a b</p>", "c\n\na   b\n"),
        (
            "a\n",
            "<p>a</p>",
            "<ac:layout></ac:layout><p>a</p>",
            "```storage\n<ac:layout></ac:layout>\n```\n\na\n",
        ),
    ],
)
def test_only_changed_parts_are_written(text: str, old: str, new: str, result: str) -> None:
    page = _page(text)
    changed = page.replace(old, new, 1)
    assert changed != page
    assert _merged(text, changed) == result
    assert alike(changed, _page(result), None, flowing=True)


def test_new_text_is_wrapped_like_the_file() -> None:
    line = "word " * 15
    text = f"{line.strip()}\n{line.strip()}\n\n{line.strip()}\nend\n"
    new = _merged(text, _page(text) + f"<p>{line * 3}</p>").removeprefix(text)
    assert [len(one) for one in new.strip().split("\n")] == [74, 74, 74]


def test_changes_of_both_sides_are_merged() -> None:
    base = _page("a\n\nb\n\nc\n\nd\n")
    file, page = "a\n\nb\n\nC of the file\n\nd\n", base.replace("<p>a", "<p>A of the wiki")
    text = _merged(file, page, base)
    assert text == "A of the wiki\n\nb\n\nC of the file\n\nd\n"
    assert is_merge(_page(file), base, page, _page(text), None)
    assert not is_merge(_page(file), base, page, _page(file), None)
    # the same change on both sides
    assert _merged("a\n\nx\n\nc\n\nd\n", base.replace("<p>b", "<p>x"), base) == (
        "a\n\nx\n\nc\n\nd\n"
    )


@pytest.mark.parametrize(
    ("file", "page", "result"),
    [
        ("a\n\nx\n\nc\n", "a\n\nx\n\nY\n", "a\n\nx\n\nY\n"),
        ("a\n\nx\n\nc\n", "Y\n\nx\n\nc\n", "Y\n\nx\n\nc\n"),
        ("x\n\nb\n\nz\n", "x\n\nY\n\nz\n", "x\n\nY\n\nz\n"),
        ("a\n\nb\n\nc\n\nn\n", "a\n\nb\n\nc\n\nn\n\nY\n", "a\n\nb\n\nc\n\nn\n\nY\n"),
        ("a\n\nn\n\nb\n\nc\n", "a\n\nY\n\nn\n\nb\n\nc\n", "a\n\nY\n\nn\n\nb\n\nc\n"),
        ("a\n\nx\n\nF\n", "a\n\nx\n\nc\n", "a\n\nx\n\nF\n"),
    ],
)
def test_adopted_changes_do_not_conflict_with_later_ones(file: str, page: str, result: str) -> None:
    base = _page("a\n\nb\n\nc\n")
    assert _merged(file, _page(page), base) == result
    assert is_merge(_page(file), base, _page(page), _page(result), None)


@pytest.mark.parametrize(
    ("file", "page", "line"),
    [
        ("x\n\nF\n\nc\n", "<p>x</p><p>Y</p><p>c</p>", 3),
        ("a\n\nX\n\nc\n", "<p>a</p><p>Y</p><p>c</p>", 3),
        ("a\n\nb\n\nX\n\nc\n", "<p>a</p><p>b</p><p>Y</p><p>c</p>", 5),
        ("a\n\nc\n", "<p>a</p><p>Y</p><p>c</p>", 3),
    ],
)
def test_block_that_both_sides_changed_is_a_conflict(file: str, page: str, line: int) -> None:
    with pytest.raises(Conflict) as raised:
        _merged(file, page, _page("a\n\nb\n\nc\n"))
    assert raised.value.line == line


@pytest.mark.parametrize("group", range(_GROUPS))
def test_random_edits_go_back(group: int) -> None:
    for seed in range(group, _EDITS, _GROUPS):
        document = _DOCUMENTS[seed % len(_DOCUMENTS)]
        # an anchor to which no link leads any more cannot be written
        text = _LINK.sub("](https://a.example)", document.read_text(encoding="utf-8"))
        page = edited(_page(text), seed)
        merged = _merged(text, page)
        assert alike(page, _page(merged), None, flowing=True), f"{document.name}, seed {seed}"
        lines = text.split("\n")
        for segment in segments_of(text, _pieces(text)):
            kept = "\n".join(lines[segment.begin : segment.end])
            if all(block.source in page for block in segment.blocks):
                assert kept in merged, f"{document.name}, seed {seed}: {kept}"
