# SPDX-License-Identifier: GPL-3.0-or-later
"""Test Markdown to storage format: every element, escaping, and that any text becomes a body."""

from __future__ import annotations

import re
from time import process_time

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.filter.storage_format import storage_format
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import (
    dialects,
    document,
    front_matter,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.parser import (
    parse,
)


def _macro(name: str, content: str) -> str:
    return f'<ac:structured-macro ac:name="{name}">{content}</ac:structured-macro>'


def _code(text: str, language: str = "") -> str:
    parameter = f'<ac:parameter ac:name="language">{language}</ac:parameter>' if language else ""
    body = f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"
    return _macro("code", parameter + body)


def _note(text: str) -> str:
    return f"<ac:rich-text-body>{text}</ac:rich-text-body>"


def _title(text: str) -> str:
    return f'<ac:parameter ac:name="title">{text}</ac:parameter>'


def _anchor(name: str) -> str:
    return _macro("anchor", f'<ac:parameter ac:name="">{name}</ac:parameter>')


def _jump(anchor: str, text: str) -> str:
    return f'<ac:link ac:anchor="{anchor}"><ac:link-body>{text}</ac:link-body></ac:link>'


def _again(number: int) -> str:
    return f"<sup>{_jump(f'footnote-{number}', str(number))}</sup>"


def _ref(number: int) -> str:
    mark = _anchor(f"footnote-{number}-from")
    return _again(number).replace("<sup>", f"<sup>{mark}")


def _notes(first: str, second: str) -> str:
    back = _jump("footnote-1-from", "\u21a9")
    text = f"<p><em>{first}</em>\n{second}</p>"
    return f"<hr/><ol><li>{_anchor('footnote-1')}{text}<p>{back}</p></li></ol>"


def _task(number: int, status: str, text: str) -> str:
    return (
        f"<ac:task><ac:task-id>{number}</ac:task-id><ac:task-status>{status}</ac:task-status>"
        f"<ac:task-body>{text}</ac:task-body></ac:task>"
    )


@pytest.mark.parametrize(
    ("markdown", "body"),
    [
        ("# A *b*\n\ntext", "<h1>A <em>b</em></h1><p>text</p>"),
        ("a\nb  \nc", "<p>a\nb<br/>c</p>"),
        (
            "**a** ~~b~~ `c<d`",
            (
                '<p><strong>a</strong> <span style="text-decoration: line-through;">'
                "b</span> <code>c&lt;d</code></p>"
            ),
        ),
        ("H<sub>2</sub>O<SUP>*+*</SUP>", "<p>H<sub>2</sub>O<sup><em>+</em></sup></p>"),
        ("a<sub>b<sup>c</sub>d</sup>", "<p>a<sub>b<sup>c</sup></sub>d</p>"),
        ("a</sub>b<sub>c", "<p>ab<sub>c</sub></p>"),
        (
            "<details>\n<summary>More *of* it</summary>\nfirst\n\n- a\n\n</details>\n\nend",
            (
                _macro("expand", _title("More *of* it") + _note("<p>first</p><ul><li>a</li></ul>"))
                + "<p>end</p>"
            ),
        ),
        (
            "<details>\n\na\n\n<details><summary>b</summary>\n\nc\n\n</details>\n\n</details>",
            _macro(
                "expand",
                _note("<p>a</p>" + _macro("expand", _title("b") + _note("<p>c</p>"))),
            ),
        ),
        ("<details>\n\na", _macro("expand", _note("<p>a</p>"))),
        ("a\n\n</details>", "<p>a</p>"),
        (
            "<details><summary>a</summary>b</details>",
            _macro("expand", _title("a") + _note("<p>b</p>")),
        ),
        (
            "```mermaid\na\n```",
            _macro(
                "code",
                _title("mermaid diagram, shown as source")
                + "<ac:plain-text-body><![CDATA[a]]></ac:plain-text-body>",
            ),
        ),
        ("a[^1] [^2]", "<p>a[^1] [^2]</p>"),
        (
            "a[^n]b[^n]\n\n[^n]: *c*\n    d\n[^m]: e",
            f"<p>a{_ref(1)}b{_again(1)}</p>{_notes('c', 'd')}",
        ),
        ("- a\n- b\n  1. c", "<ul><li>a</li><li>b<ol><li>c</li></ol></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
        ("> a\n\n---", "<blockquote><p>a</p></blockquote><hr/>"),
        ("R&D < 2 > 1 &copy;", "<p>R&amp;D &lt; 2 &gt; 1 ©</p>"),
        ("```python\nif a < b:\n    c\n```", _code("if a < b:\n    c", "py")),
        ("```bash\nx\n```", _code("x", "bash")),
        ("~~~ brainfuck\nx\n~~~", _code("x")),
        ("    a]]>b", _code("a]]]]><![CDATA[>b")),
        ("```\na\x08\n```", _code("a\ufffd")),
        ("> [!NOTE]\n> Mind *this*.", _macro("info", _note("<p>Mind <em>this</em>.</p>"))),
        ("> [!tip]\n>\n> - a", _macro("tip", _note("<ul><li>a</li></ul>"))),
        ("> [!WARNING]\n> a", _macro("warning", _note("<p>a</p>"))),
        ("> [!IMPORTANT]\n> a", _macro("note", _note("<p>a</p>"))),
        ("> [!NOTE] a", "<blockquote><p>[!NOTE] a</p></blockquote>"),
        ("> [!OTHER]\n> a", "<blockquote><p>[!OTHER]\na</p></blockquote>"),
        (
            "| a | b |\n|---|--:|\n| 1 | 2 \\| 3 |",
            (
                "<table><tbody><tr><th>a</th>"
                '<th style="text-align: right;">b</th></tr><tr><td>1</td>'
                '<td style="text-align: right;">2 | 3</td></tr></tbody></table>'
            ),
        ),
        (
            "- [ ] a **b**\n- [x] c\n  - [X] d",
            "<ac:task-list>"
            + _task(1, "incomplete", "a <strong>b</strong>")
            + _task(
                2, "complete", "c<ac:task-list>" + _task(3, "complete", "d") + "</ac:task-list>"
            )
            + "</ac:task-list>",
        ),
        (
            "- a\n- [ ] b\n- c",
            (
                f"<ul><li>a</li></ul><ac:task-list>{_task(1, 'incomplete', 'b')}"
                "</ac:task-list><ul><li>c</li></ul>"
            ),
        ),
        (
            '[a *b*](https://x.example/?a=1&b="c")',
            ('<p><a href="https://x.example/?a=1&amp;b=%22c%22">a <em>b</em></a></p>'),
        ),
        ("<https://x.example>", '<p><a href="https://x.example">https://x.example</a></p>'),
        ("[a](javascript:alert)", "<p>[a](javascript:alert)</p>"),
        ("[a](#)", "<p>a</p>"),
        ("[a](other.md#b)", '<p><a href="other.md#b">a</a></p>'),
        (
            "[a](#b-c)\n\n## B c\n\n## B c",
            '<p><ac:link ac:anchor="b-c"><ac:link-body>a</ac:link-body>'
            "</ac:link></p><h2>"
            + _macro("anchor", '<ac:parameter ac:name="">b-c</ac:parameter>')
            + "B c</h2><h2>B c</h2>",
        ),
        (
            '![a & b](img/c%20d.png "e")',
            (
                '<p><ac:image ac:alt="a &amp; b" ac:title="e">'
                '<ri:attachment ri:filename="c d.png"/></ac:image></p>'
            ),
        ),
        (
            "![](https://x.example/a.png)",
            ('<p><ac:image><ri:url ri:value="https://x.example/a.png"/></ac:image></p>'),
        ),
        ("a <b>c</b><br>d<!-- e -->", "<p>a <strong>c</strong><br/>d</p>"),
        ("<div class='x'>a &lt; b<p>c</div>\n\nd", "<p>a &lt; b</p><p>c</p><p>d</p>"),
        ("<script>\nalert(1)\n</script>\n", ""),
        ("<style>p {}</style>\n\na", "<p>a</p>"),
        ("---\ntitle: T\n---\n# A", "<h1>A</h1>"),
        ("---\n\na\n\n---\n", "<hr/><p>a</p><hr/>"),
        ("", ""),
    ],
)
def test_markdown_element_becomes_storage_format(markdown: str, body: str) -> None:
    assert storage_format(markdown) == body
    parse(body)


_PIECES = st.sampled_from(
    [
        *("# ", "- ", "- [ ] ", "1. ", "> ", "> [!NOTE]\n> ", "```\n", "~~~ xml\n", "    ", "\n"),
        *(
            "| a | b |\n|---|:-:|\n| c | d |\n",
            "**",
            "_",
            "~~",
            "`",
            "[a](b)",
            "![c](d.png)",
            "---\n",
        ),
        *(
            "<b>",
            "</b>",
            "<br>",
            "<!--",
            "-->",
            "<script>",
            "]]>",
            "<![CDATA[",
            "&",
            "&amp;",
            "<",
            '"',
        ),
        *("\x00", "\x1b", "\ufffe", "é", "\u2028", "\\", "[", "](", ")", "text", " ", "\t", "\r\n"),
    ]
)


_TEXTS = st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60)


# text that starts with dashes may be front matter, which is rejected if it is not YAML
@given(_TEXTS.filter(lambda text: not text.startswith("---")))
def test_any_markdown_becomes_a_well_formed_body(markdown: str) -> None:
    body = storage_format(markdown)
    tree = parse(body)
    names = {element.name for element in tree.walk()}
    assert not names & {"script", "b", "iframe", "form", "style", "img", "details"}


def test_unpaired_surrogates_are_replaced() -> None:
    assert storage_format("a\ud800b") == "<p>a\ufffdb</p>"


def test_too_deep_nesting_is_rejected() -> None:
    with pytest.raises(
        AnsibleFilterError, match="line 1: elements are nested deeper than 60 levels"
    ):
        storage_format("> " * 70 + "a")
    assert "<p>a</p>" in storage_format("> [!NOTE]\n" + "> " * 40 + "a")
    parse(storage_format("".join("  " * depth + f"- [ ] {depth}\n" for depth in range(25))))


def test_too_long_markdown_is_rejected() -> None:
    """Verify a limit: the library takes tens of seconds for some texts of this length, and hours
    for longer texts.
    """
    assert storage_format("a" + " " * (dialects.LONGEST - 1)) == "<p>a</p>"
    with pytest.raises(
        AnsibleFilterError, match=r"has 1000001 characters, but the maximum is 1000000"
    ):
        storage_format("[" * (dialects.LONGEST + 1))


def test_opening_brackets_take_little_time() -> None:
    """Verify that brackets without a pair are text, and that too many others are rejected."""
    begin = process_time()
    assert storage_format("![" * 60_000) == f"<p>{'![' * 60_000}</p>"
    assert storage_format("[0m [a](https://a) [0m") == ('<p>[0m <a href="https://a">a</a> [0m</p>')
    assert storage_format("[" * 3010 + "]") == f"<p>{'[' * 3010}]</p>"
    for text in ("a\n\n" + "![" * 60_000 + "]", "a\n\n" + ("[" * 3000 + "]\n\n") * 40):
        with pytest.raises(AnsibleFilterError, match=r"line [35]: the file has more than 3000"):
            storage_format(text)
    assert process_time() - begin < 5


@pytest.mark.parametrize("value", [1.1, None, ["a"], True])
def test_non_string_is_rejected(value: object) -> None:
    with pytest.raises(AnsibleFilterError, match="the Markdown must be a string"):
        storage_format(value)


def test_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MARKDOWN_MISSING", "Traceback")
    with pytest.raises(AnsibleFilterError, match="pip install markdown-it-py"):
        storage_format("a")


#: Lines of which each repeats the line before ten times.
REPEATED = [f"{n}: &a{n} [{f'*a{n - 1}, ' * 10}]" for n in range(1, 9)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "title: 1.10",
            "title in the front matter is 1.1, not a string: put it in quotation marks",
        ),
        ("title: no", "title in the front matter is False"),
        ("labels: {a: b}", "must be a list of strings"),
        ("labels: [a, 1.5]", re.escape("labels[1] in the front matter is 1.5")),
        (
            "attachments: [a.png]",
            "attachments in the front matter must be a mapping of names to files",
        ),
        ("attachments: {a.png: 1.5}", re.escape("attachments['a.png'] in the front matter is 1.5")),
        ("a: [b", "line 3: cannot parse the front matter"),
        ("title: &a [*a]", "line 2: cannot parse the front matter: a value contains itself"),
        ("labels: &a\n- *a", "line 3: cannot parse the front matter: a value contains itself"),
        (f"labels: {'[' * 1500}{']' * 1500}", "it is nested deeper than 100 levels"),
        (f"title: [{'x, ' * 500}]", r"is \['x', .{150,220}, not a string"),
        ("0: &a0 [1]\n" + "\n".join(REPEATED), "line 8: .* its aliases stand for more than"),
    ],
)
def test_invalid_front_matter_is_rejected(text: str, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        storage_format(f"---\n{text}\n---\n")


def test_front_matter_is_read_and_line_numbers_are_kept() -> None:
    found = front_matter.split_front_matter("---\ntitle: 2026\nlabels: a, b\ndate: x\n---\ntext")
    assert (found.title, found.labels, found.text) == ("2026", ["a", "b"], "\n\n\n\n\ntext")


def test_footnotes_may_be_nested_and_have_several_paragraphs() -> None:
    body = storage_format("a[^x]\n\n[^x]: b[^y]\n\n    c\n\n[^y]: # d[^x]\n\nend")
    assert "<p>c</p>" in body
    assert body.count("<li>") == 2
    assert body.index("<p>end</p>") < body.index("<hr/>")
    assert "<h1>d" in body
    parse(body)


@given(
    st.lists(
        st.sampled_from(
            [
                *"[^a]: *\n",
                "[^a]",
                "\n\n[^a]: ",
                "    ",
                *("<sub>", "</sub>", "<sup>", "</sup>", "\n\n<details>\n\n", "\n\n</details>\n\n"),
                *("<summary>", "</summary>", "<p>", "</p>", "<div>", "</div>", "<h1>", "</h1>"),
                *("\n\n<table>", "<tr>", "<td>", "</td>", "</table>", "<caption>", "<ul>", "<li>"),
                *("</li>", "</ul>", '<a href="b">', "</a>", '<img src="c.png">', "<pre>", "</pre>"),
                *("<dl>", "<dt>", "<dd>", "</dl>", "<blockquote>", "</blockquote>", "# ", "text"),
                *(
                    "> ",
                    "- ",
                    "**",
                    "\n\n",
                    "<video>",
                    "<b>",
                    "</b>",
                    "[d](e)",
                    "https://x.example",
                ),
            ]
        )
    )
)
def test_any_mixture_of_footnotes_and_tags_becomes_a_body(parts: list[str]) -> None:
    parse(storage_format("".join(parts)))
