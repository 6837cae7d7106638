# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that inline comments of readers keep their place in a new body."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.inline_comments import (
    aligned,
    comment_counts,
    with_comments,
    without_markers,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    parse,
)


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
def test_marker_is_moved_to_its_text(before: str, after: str, expected: str) -> None:
    found = with_comments(before, after)
    assert found == expected
    assert without_markers(found) == without_markers(after)
    parse(found)


def rows(count: int, marked: int | None = None, text: str = "Check the value.") -> str:
    """Return equal paragraphs.

    :param marked: number of the paragraph in which the word `value` has a comment
    """
    with_comment = text.replace("value", mark("value"))
    return "".join(
        f"<p>{with_comment if number == marked else text}</p>" for number in range(count)
    )


@pytest.mark.parametrize(("count", "marked"), [(300, 20), (300, 250), (3000, 2500)])
@pytest.mark.parametrize(
    "change",
    [
        lambda body: body + "<p>new</p>",
        lambda body: "<p>new</p>" + body,
        lambda body: f"<h1>new</h1>{body}<p>new</p>",
        lambda body: body.replace("<p>", "<ul><li>").replace("</p>", "</li></ul>"),
    ],
)
def test_comment_on_one_of_many_equal_passages_keeps_its_place(
    count: int, marked: int, change: Callable[[str], str]
) -> None:
    found = with_comments(rows(count, marked), change(rows(count)))
    assert found == change(rows(count, marked))


@pytest.mark.parametrize("marked", [1, 20, 280])
def test_edits_next_to_equal_passages_move_no_comment(marked: int) -> None:
    edited = "<p>Check the value again!</p>"
    after = rows(marked - 1) + edited + rows(1) + edited + rows(298 - marked)
    found = with_comments(rows(300, marked), after)
    assert found == rows(marked - 1) + edited + rows(1, 0) + edited + rows(298 - marked)


def items(numbers: Iterable[int], version: str, marked: int = -1) -> str:
    """Return a list of equal states. Item `marked` has a comment on its state."""
    states = {marked: mark("open")}
    return "".join(
        f"<li>Item {number} in {version} is {states.get(number, 'open')} now</li>"
        for number in numbers
    )


@pytest.mark.parametrize("marked", [1, 3, 7])
def test_comment_stays_in_its_item_if_all_items_change(marked: int) -> None:
    for left in (range(8), range(1, 8), [number for number in range(8) if number != 2]):
        found = with_comments(items(range(8), "1.0", marked), items(left, "1.1"))
        assert found == items(left, "1.1", marked)


def test_comment_does_not_move_to_the_item_of_another_passage() -> None:
    left = [number for number in range(8) if number != 3]
    new = items(left, "1.1")
    assert with_comments(items(range(8), "1.0", 3), new) == new


def test_every_comment_on_many_equal_passages_is_kept() -> None:
    parts = [f"<p>Check the {mark('value', str(number))}. Old</p>" for number in range(100)]
    before = "<p>a</p>" + "".join(parts) + "<p>b</p>"
    for after in (without_markers(before), without_markers(before).replace("Old", "New")):
        found = with_comments(before, f"<p>c</p>{after}<p>d</p>")
        assert re.findall(r'ac:ref="(\d+)"', found) == [str(number) for number in range(100)]


def test_comment_never_moves_into_another_unchanged_block() -> None:
    other = "<p>the same word</p>"
    before = f"{other}<p>one {mark('word')} here</p>{other}"
    assert with_comments(before, other * 2) == other * 2
    after = f"{other}{other}<p>a word here</p>"
    assert with_comments(before, after) == f"{other}{other}<p>a {mark('word')} here</p>"


_LETTERS = st.lists(st.sampled_from("abc"), max_size=20)


@given(_LETTERS, _LETTERS)
def test_aligned_items_are_equal_and_in_order(old: list[str], new: list[str]) -> None:
    pairs = sorted(aligned(old, new))
    assert [old[one] for one, _other in pairs] == [new[other] for _one, other in pairs]
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    longest = [[0] * (len(new) + 1) for _row in range(len(old) + 1)]
    for row, one in enumerate(old, 1):
        for column, other in enumerate(new, 1):
            above = max(longest[row - 1][column], longest[row][column - 1])
            longest[row][column] = longest[row - 1][column - 1] + 1 if one == other else above
    assert len(pairs) == longest[-1][-1]


def test_kept_and_lost_comments_are_counted() -> None:
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
def test_any_body_stays_well_formed_and_only_markers_are_added(
    first: list[str], marked: list[str], last: list[str], after: list[str]
) -> None:
    inline = [one for one in marked if not one.startswith(("<p", "<ul"))]
    before = "".join([*first, mark("".join(inline)), *last])
    found = with_comments(before, "".join(after))
    parse(found)
    assert without_markers(found) == "".join(after)


#: Blocks of words, each with its tag or "", and the number of the comment on it or 0.
_Word = tuple[str, str, int]
_TAGS = st.sampled_from(["", "strong", "em", "code"])


@st.composite
def _commented(draw: st.DrawFn) -> list[list[_Word]]:
    """Return blocks of different words; a comment is on words next to each other, at most two
    times.
    """
    numbers, refs = iter(range(1000)), iter(range(1, 1000))
    blocks = []
    for _block in range(draw(st.integers(1, 4))):
        block: list[_Word] = []
        ref = 0
        for size in draw(st.lists(st.integers(1, 4), max_size=4)):
            kind = draw(st.sampled_from(["none", "new", "same"]))
            ref = next(refs) if kind == "new" or (kind == "same" and ref == 0) else ref
            own = 0 if kind == "none" else ref
            block += [(f"w{next(numbers)}.", draw(_TAGS), own) for _word in range(size)]
            block.append((f"w{next(numbers)}.", "", 0))  # markers do not touch
        blocks.append(block)
    return blocks


def _body(blocks: list[list[_Word]], *, markers: bool) -> str:
    found = ""
    for block in blocks:
        parts: list[tuple[int, list[str]]] = []
        for word, tag, ref in block:
            shown = f"<{tag}>{word}</{tag}>" if tag else word
            if parts and parts[-1][0] == ref:
                parts[-1][1].append(shown)
            else:
                parts.append((ref, [shown]))
        texts = [
            mark(" ".join(words), str(ref)) if ref and markers else " ".join(words)
            for ref, words in parts
        ]
        found += f"<p>{' '.join(texts)}</p>"
    return found


def _marked(body: str) -> dict[str, str]:
    """Return the texts of all comments, without blanks."""
    found: dict[str, str] = {}
    for element in parse(body).walk():
        if element.name == "ac:inline-comment-marker":
            text = body.encode()[element.inner : element.outer].decode()
            ref = element.attributes["ac:ref"]
            found[ref] = found.get(ref, "") + re.sub(r"<[^>]*>|\s", "", text)
    return found


@given(_commented(), st.data())
def test_edits_around_a_comment_keep_it(blocks: list[list[_Word]], data: st.DataObject) -> None:
    """Words without a comment go and come, tags change, blocks move; some commented words go."""
    before = _body(blocks, markers=True)
    refs = {ref for block in blocks for _word, _tag, ref in block if ref}
    gone = data.draw(st.sets(st.sampled_from(sorted(refs)))) if refs else set()
    after: list[list[_Word]] = []
    for block in data.draw(st.permutations(blocks)):
        words: list[_Word] = []
        for word, _tag, ref in block:
            inside = bool(words) and ref != 0 and words[-1][2] == ref
            if not inside and data.draw(st.booleans()):
                words.append(("new", "", 0))
            if ref in gone or (ref == 0 and data.draw(st.booleans())):
                continue
            words.append((word, data.draw(_TAGS), ref))
        after.append(words)
    wanted = _body(after, markers=False)
    found = with_comments(before, wanted)
    assert without_markers(found) == wanted
    assert comment_counts(before, found) == (len(refs - gone), len(gone))
    kept = {ref: text for ref, text in _marked(before).items() if int(ref) not in gone}
    assert _marked(found) == kept


@pytest.mark.parametrize("step", [1, 7])
def test_comments_move_with_whole_blocks(step: int) -> None:
    """The halves of a page were swapped, and in the second case also some of its paragraphs."""
    texts = [f"Step {number}: press the button and wait" for number in range(1000)]
    commented = range(3, 1000, 25)
    body = "".join(
        f"<p>{text.replace('the button', mark('the button', str(number)))}</p>"
        if number in commented
        else f"<p>{text}</p>"
        for number, text in enumerate(texts)
    )
    order = [*range(500, 1000), *range(500)]
    order[step::50] = reversed(order[step::50])
    found = with_comments(body, "".join(f"<p>{texts[number]}</p>" for number in order))
    assert comment_counts(body, found) == (40, 0)
    assert dict(re.findall(r'Step (\d+): press <[^>]*ac:ref="(\d+)"', found)) == {
        str(number): str(number) for number in commented
    }


def test_equal_blocks_keep_their_comments_by_their_neighbours() -> None:
    one = f"<p>one</p><p>Press {mark('OK', 'a')}.</p><p>two</p>"
    other = f"<p>three</p><p>Press {mark('OK', 'b')}.</p><p>four</p>"
    swapped = with_comments(one + other, without_markers(other + one))
    assert swapped == other + one
