# SPDX-License-Identifier: GPL-3.0-or-later
"""Test raw HTML in Markdown: elements, links, images, anchors, and bounds for hostile input."""

from __future__ import annotations

import time

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import converter
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    parse,
)

_STRUCK = '<span style="text-decoration: line-through;">'
_MARKED = '<span style="background-color: rgb(255,240,179);">'


def _converted(markdown: str) -> tuple[str, list[str]]:
    warnings: list[str] = []
    body = converter.storage_format(markdown, warnings.append)
    parse(body)
    return body, warnings


def _anchor(name: str) -> str:
    parameter = f'<ac:parameter ac:name="">{name}</ac:parameter>'
    return f'<ac:structured-macro ac:name="anchor">{parameter}</ac:structured-macro>'


def _image(source: str, more: str = "") -> str:
    return f"<ac:image{more}>{source}</ac:image>"


def _file(name: str) -> str:
    return f'<ri:attachment ri:filename="{name}"/>'


@pytest.mark.parametrize(
    ("markdown", "body"),
    [
        (
            "<b>a</b> <i>b</i> <u>c</u> <ins>d</ins> <code>e</code> <kbd>f</kbd>",
            "<p><strong>a</strong> <em>b</em> <u>c</u> <u>d</u> <code>e</code> <code>f</code></p>",
        ),
        (
            "<s>a</s><del>b</del><mark>c</mark>",
            f"<p>{_STRUCK}a</span>{_STRUCK}b</span>{_MARKED}c</span></p>",
        ),
        (
            '<p align="center">\n  <img src="a/b.png" alt="c" width="200px" height="10%">\n</p>',
            '<p style="text-align: center;">'
            + _image(_file("b.png"), ' ac:alt="c" ac:width="200"')
            + "</p>",
        ),
        (
            '<p align="center">\n\n![a](https://x.example/b.png)\n\n</p>',
            '<p><ac:image ac:alt="a"><ri:url ri:value="https://x.example/b.png"/></ac:image></p>',
        ),
        (
            '<a href="https://x.example" title="t"><img src="b.png"></a>',
            f'<p><a href="https://x.example" title="t">{_image(_file("b.png"))}</a></p>',
        ),
        (
            '<a href="b.md">\n\n# c\n\ntext *d*\n\n</a>',
            '<h1><a href="b.md">c</a></h1><p><a href="b.md">text <em>d</em></a></p>',
        ),
        (
            '<div align="center"><picture><source srcset="x.webp"><img src="b.png"/></picture></div>',
            f"<p>{_image(_file('b.png'))}</p>",
        ),
        (
            "<ul><li>a<li><p>b</p><ol start=3><li>c</ol></ul>",
            '<ul><li>a</li><li><p>b</p><ol start="3"><li>c</li></ol></li></ul>',
        ),
        ("<ul>\n\n**a**\n\n</ul>", "<ul><li><p><strong>a</strong></p></li></ul>"),
        (
            "<dl><dt>a<dd>b<p>c</dl>",
            "<dl><dt>a</dt><dd>b<p>c</p></dd></dl>",
        ),
        (
            (
                "<table><caption>a</caption><colgroup><col width=20%><col></colgroup><thead><tr>"
                "<th colspan=2>b<tbody><tr><td rowspan=2 align=right>c<td>d</table>"
            ),
            (
                '<p>a</p><table><colgroup><col style="width: 20%;"/><col/></colgroup><tbody><tr>'
                '<th colspan="2">b</th></tr><tr><td rowspan="2" style="text-align: right;">c</td>'
                "<td>d</td></tr></tbody></table>"
            ),
        ),
        (
            "<table>\n<tr><td>\n\n- a\n\n</td></tr>\n</table>",
            "<table><tbody><tr><td><ul><li>a</li></ul></td></tr></tbody></table>",
        ),
        ("<pre>\n a <b>b</b>\n  <code>c</code></pre>", "<pre> a <strong>b</strong>\n  c</pre>"),
        ("<blockquote>a</blockquote>", "<blockquote><p>a</p></blockquote>"),
        (
            "<figure><img src='b.png'><figcaption>a</figcaption></figure>",
            f"<p>{_image(_file('b.png'))}</p><p>a</p>",
        ),
        ("<h2>a</h2>\n<hr>\nb<br>c", "<h2>a</h2><hr/><p>b<br/>c</p>"),
        ("a <!-- b --> c <span>d</span>", "<p>a  c d</p>"),
        ("<a name='b'>c", f"<p>{_anchor('b')}c</p>"),
        ("[**<a href='b'>c</a>**](d)", '<p><a href="d"><strong>c</strong></a></p>'),
        ("<p>a</p>\n<p>b <b>c</p>\n\nd</b>", "<p>a</p><p>b <strong>c</strong></p><p>d</p>"),
    ],
)
def test_raw_html_becomes_storage_format(markdown: str, body: str) -> None:
    assert _converted(markdown) == (body, [])


def test_text_outside_of_cells_is_kept() -> None:
    body, _warnings = _converted("<table><tr><td>a</td>b</tr>c</table>")
    assert body == "<p>c</p><table><tbody><tr><td>a</td><td>b</td></tr></tbody></table>"


def test_summary_is_the_title_and_keeps_its_images() -> None:
    body, _warnings = _converted(
        '<details id="x"><summary><b>a</b> <img src="b.png"></summary>c</details>'
    )
    assert body == (
        f'<p>{_anchor("x")}</p><ac:structured-macro ac:name="expand">'
        '<ac:parameter ac:name="title">a</ac:parameter><ac:rich-text-body>'
        f"<p>{_image(_file('b.png'))}</p><p>c</p></ac:rich-text-body></ac:structured-macro>"
    )


def test_other_elements_keep_their_text_with_a_warning() -> None:
    body, warnings = _converted(
        "a\n\n<video src='b'>c</video>\n\nd <small>e</small>\n<video></video>"
    )
    assert body == "<p>a</p><p>c</p><p>d e</p>"
    assert warnings == [
        "line 3: the wiki has no <video>, so only its text is kept; also in line 6",
        "line 5: the wiki has no <small>, so only its text is kept",
    ]
    body, warnings = _converted("a\n\n<script>\n\nb()\n</script>\n\nc")
    assert body == "<p>a</p><p>c</p>"
    assert warnings == ["line 3: the wiki has no <script>, so it is left out"]


def test_unknown_names_are_kept_as_text() -> None:
    names = ("code-block", "tight", "break", "footnote-reference")
    body, warnings = _converted("".join(f"<{name}>a</{name}>" for name in names))
    assert body == "<p>aaaa</p>"
    assert len(warnings) == len(names)


def test_unsafe_addresses_are_left_out() -> None:
    body, warnings = _converted("<a href='javascript:b()'>a</a><img src='vbscript:c' alt='d'>")
    assert body == "<p>ad</p>"
    assert [warning.split(":")[0] for warning in warnings] == ["line 1", "line 1"]


def test_two_images_of_one_name_are_two_attachments() -> None:
    images = (
        "![](a/logo.png) ![](b/Logo.png) <img src='c/LOGO.png'> ![](./a/logo.png) ![](c_LOGO.png)"
    )
    body, _warnings = _converted(images)
    names = [
        element.attributes["ri:filename"]
        for element in parse(body).walk()
        if "ri:filename" in element.attributes
    ]
    assert names == ["logo.png", "b_Logo.png", "c_LOGO.png", "logo.png", "c_LOGO-2.png"]


@pytest.mark.parametrize(
    ("markdown", "target"),
    [
        ("<a id='Here'></a>x\n\n[a](#here)", "Here"),
        ("<a name='here'></a>x\n\n[a](#HERE)", "here"),
        ("<span id='here'>x</span>\n\n[a](#here)", "here"),
        ("## Setup {#here}\n\n[a](#here)", "here"),
        ("## Setup {#here}\n\n[a](#setup)", "setup"),
        ("## Setup { .wide #here }\n\n[a](#here)", "here"),
        ("## A & B\n\n[a](#a--b)", "a--b"),
        ("## A & B\n\n[a](#a-b)", "a--b"),
        ("## A & B\n\n## A b\n\n[a](#a-b)", "a-b"),
        ("<h2>First <i>step</i></h2>\n\n[a](#first-step)", "first-step"),
        ("# A\n\n# A\n\n# A-1\n\n[a](#a-1)", "a-1"),
        ("# A\n\n# A\n\n# A-1\n\n[a](#a-1-1)", "a-1-1"),
        ("# A\n\n<a id='a'></a>\n\n# A\n\n[a](#a-1)", "a-1"),
        ("# footnote-1\n\n[a](#footnote-1)[^n]\n\n[^n]: b", "footnote-1"),
    ],
)
def test_ids_and_headings_are_targets(markdown: str, target: str) -> None:
    body, warnings = _converted(markdown)
    assert warnings == []
    assert body.count(f'ac:anchor="{target}"') == 1
    assert body.count(_anchor(target)) == 1
    assert "{#" not in body


def test_missing_target_is_reported() -> None:
    body, warnings = _converted("a\n\n[b](#c)")
    assert body == "<p>a</p><p>b</p>"
    assert warnings == [
        "line 3: there is no heading or id '#c'; the link leads to the top of the page instead"
    ]


@pytest.mark.parametrize(
    ("text", "address", "rest"),
    [
        ("see https://x.example/a?b=c&d.", "https://x.example/a?b=c&amp;d", "."),
        ("(https://x.example/a_(b))", "https://x.example/a_(b)", ")"),
        ("HTTP://x.example:8080, then", "HTTP://x.example:8080", ", then"),
        ("*http://x.example*", "http://x.example", "</em>"),
        ("http://x.example\u3002a", "http://x.example", "\u3002a"),
    ],
)
def test_bare_addresses_are_links(text: str, address: str, rest: str) -> None:
    assert f'<a href="{address}">{address}</a>{rest}' in _converted(text)[0]


@pytest.mark.parametrize(
    "text",
    ["`http://x.example`", "[http://x.example](b)", "a@http://x.example", "http://", "https:// a"],
)
def test_other_addresses_are_no_links(text: str) -> None:
    assert 'href="http' not in _converted(text)[0]


@pytest.mark.parametrize(
    "markdown",
    [
        "<details>\n\n" * 3_000 + "a" + "\n\n</details>" * 3_000,
        "<sub>" * 20_000 + "a" + "</sub>" * 20_000,
        "<div>\n" + "<b>" * 100_000,
    ],
)
def test_too_deep_html_is_rejected(markdown: str) -> None:
    with pytest.raises(ToolchainError, match=r"^line \d+: elements are nested deeper than 60"):
        _converted(markdown)


@pytest.mark.parametrize(
    "part",
    [
        *("<div>", "<p>", "<li>", "<a id=b>", "<!--", "<a ", "<a \"'", "<?", "</b>", "<script>"),
        *("<b>x</b>", "&", "https://x.example/(", "<table><tr><td>x</table>"),
    ],
)
def test_html_takes_linear_time(part: str) -> None:
    """Compare two lengths, because the speed of machines differs."""

    def seconds(length: int) -> float:
        begin = time.process_time()
        _converted("<div>\n" + part * (length // len(part)))
        return time.process_time() - begin

    assert seconds(40_000) < 40 * seconds(5_000) + 0.5


@pytest.mark.parametrize("text", ["[TOC]", "[[_TOC_]]"])
def test_table_of_contents_becomes_a_macro(text: str) -> None:
    toc = '<ac:structured-macro ac:name="toc"></ac:structured-macro>'
    assert _converted(f"{text}\n\na") == (f"{toc}<p>a</p>", [])


@pytest.mark.parametrize(
    "text", ["!!! note\n  a", "???+ a\na", ":::note\na", "::: other\na\n:::", '+++\nb = "a"\n+++\n']
)
def test_notes_of_other_dialects_without_equivalent_are_reported(text: str) -> None:
    body, warnings = _converted(f"\n\n{text}")
    assert len(warnings) == 1
    assert warnings[0].startswith("line 3: ")
    assert "is not converted" in warnings[0]
    assert "a" in body


def _note(name: str, title: str, body: str) -> str:
    shown = f'<ac:parameter ac:name="title">{title}</ac:parameter>' if title else ""
    return (
        f'<ac:structured-macro ac:name="{name}">{shown}<ac:rich-text-body>{body}'
        "</ac:rich-text-body></ac:structured-macro>"
    )


_TABS = "<p><strong>A</strong></p><p>a</p><p><strong>B</strong></p><p>b</p>"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("!!! note\n    a", _note("info", "", "<p>a</p>")),
        ("!!!note\n\n    a\n\n    b\nc", _note("info", "", "<p>a</p><p>b</p>") + "<p>c</p>"),
        ("x\n!!! danger 'T `b` *c*'\n    a", "<p>x</p>" + _note("warning", "T b c", "<p>a</p>")),
        ("!!! example inline end\n    a", _note("info", "Example", "<p>a</p>")),
        ('!!! other ""\n    a', _note("info", "", "<p>a</p>")),
        ('!!! important "only a title"\n\na', _note("note", "", "<p>only a title</p>") + "<p>a</p>"),
        ("??? tip\n    a", _note("expand", "Tip", "<p>a</p>")),
        ('???+ note "T"\n    !!! tip\n        a', _note("expand", "T", _note("tip", "", "<p>a</p>"))),
        ("- x\n\n    !!! note\n        a\n- b", None),
        ('=== "A"\n    a\n=== "B"\n    b', _TABS),
        (":::note\na\n:::\nb", _note("info", "", "<p>a</p>") + "<p>b</p>"),
        ("::: tip T\na\n:::", _note("tip", "T", "<p>a</p>")),
        (":::tip[T]\na\n:::", _note("tip", "T", "<p>a</p>")),
        ("::: {.callout-tip}\na\n:::", _note("tip", "", "<p>a</p>")),
        ("::::warning\n:::details T\na\n:::\n::::",
         _note("warning", "", _note("expand", "T", "<p>a</p>"))),
        (":::note\n```\n:::\n```\n:::", None),
        ("/// note | T\na\n///", _note("info", "T", "<p>a</p>")),
    ],
)  # fmt: skip
def test_notes_of_other_dialects_become_macros(text: str, body: str | None) -> None:
    made, warnings = _converted(text)
    assert warnings == []
    assert body in (None, made)
    assert "!!!" not in made


@pytest.mark.parametrize("text", ["::: note\n", "/// note\n", "!!! note\n", '=== "a"\n'])
def test_notes_without_content_take_linear_time(text: str) -> None:
    begin = time.process_time()
    _converted(text * 8000 + ":::\n")
    assert time.process_time() - begin < 5
