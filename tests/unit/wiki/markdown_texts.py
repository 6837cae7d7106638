# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate Markdown of every form that `wiki_tree` documents, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

_WORDS = (
    *(
        "release",
        "The",
        "server",
        "a_b",
        "snake_case_name",
        "2 * 3",
        "a*b",
        "x < y",
        "R&D",
        "&amp;",
    ),
    *("C:\\temp", "[0]", "array[1]", "#5", "1.", "-", "+ plus", "é", "ß", "\u00a0", "~", "~~", "|"),
    *(
        "`",
        "*",
        "_",
        "![",
        "]",
        "(x)",
        "{a}",
        "{#b}",
        "{{ x }}",
        "{% if %}",
        "!",
        "\\",
        '"q"',
        "'s",
    ),
    *("https://wiki.example/a_b?c=1&d=2", "(https://wiki.example/x)", "www.example.com", "<tag>"),
    *("&nbsp;", "a\\", "a--b", "===", "!!! note", ":::", "> x", "\u2003", "\u200b", "$x$", "a:b"),
)
_LANGUAGES = ("", "python", "py", "sh", "json", "yaml", "c#", "mermaid", "text", "js linenums")
_CODE = ("a", "", "  b  c", "```", "~~~~", "]]>", "<b>&amp;", "\tx", "* y", "{{ x }}", "> z", "|")
_PASSAGES = (
    '<ac:structured-macro ac:name="children"/>',
    "<p>a<br/>b</p><p>c</p>",
    '<table><tbody><tr><td colspan="2">a</td></tr></tbody></table>',
    (
        '<ac:structured-macro ac:name="panel"><ac:rich-text-body>\n<p>x</p>\n\n<p>y</p>'
        "</ac:rich-text-body></ac:structured-macro>"
    ),
)
_INLINE_PASSAGES = (
    '<ac:link><ri:user ri:username="ann"/></ac:link>',
    (
        '<ac:structured-macro ac:name="status"><ac:parameter ac:name="title">OK</ac:parameter>'
        "</ac:structured-macro>"
    ),
    '<span style="color: rgb(255,0,0);">red | blue</span>',
    "text &amp; more",
)
_BLOCK_TAGS = (
    '<p align="center">{}</p>',
    "<div>\n\n{}\n\n</div>",
    "<details><summary>{}</summary>\n\nmore\n\n</details>",
    "<table><tr><td rowspan=2>{}</td><th>b</th></tr><tr><td>c</td></tr></table>",
    "<dl><dt>{}</dt><dd>b</dd></dl>",
    "<pre>{}\n  x</pre>",
    "<blockquote>{}</blockquote>",
    "<ul><li>{}</li></ul>",
    "<!-- {} -->",
    "<h3>{}</h3>",
    '<img src="{}.png" width="20">',
)


class MarkdownTexts:
    """Markdown from a seed. `notes`: with footnotes."""

    def __init__(self, seed: int, *, notes: bool = True) -> None:
        self._random, self._has_notes = Random(seed), notes
        self._notes = 0

    def document(self) -> str:
        blocks = [self._block(3) for _ in range(self._random.randint(1, 9))]
        notes = [f"[^n{number}]: {self._line()}" for number in range(self._notes)]
        # a document that starts with dashes has front matter
        return "\n" + "\n\n".join([*blocks, *notes]) + "\n"

    # -- blocks ----------------------------------------------------------------------------------

    def _block(self, depth: int) -> str:
        forms: list[Callable[[], str]] = [
            *(self._paragraph, self._paragraph, self._heading, self._code, self._rule),
            *(self._table, self._html, self._passage, self._contents),
        ]
        if depth:
            deep = [self._list, self._list, self._quote, self._alert, self._note, self._details]
            forms += [partial(self._deep, deep, depth)] * 6
        return self._random.choice(forms)()

    def _deep(self, forms: Sequence[Callable[[int], str]], depth: int) -> str:
        return self._random.choice(forms)(depth - 1)

    def _paragraph(self) -> str:
        lines = [self._line() for _ in range(self._random.randint(1, 3))]
        return self._random.choice(["\n", "\n", "  \n", "\\\n"]).join(lines)

    def _heading(self) -> str:
        text = self._line().replace("\n", " ")
        more = self._random.choice(["", "", "", " {#own-id}", " #", " {#b .c}"])
        if self._random.random() < 0.2:
            return f"{text}{more}\n{self._random.choice('=-') * 4}"
        return f"{'#' * self._random.randint(1, 6)} {text}{more}"

    def _code(self) -> str:
        lines = [self._random.choice(_CODE) for _ in range(self._random.randint(0, 4))]
        if self._random.random() < 0.2:
            return "\n".join(f"    {line}" for line in lines) or "    x"
        fence = self._random.choice(["```", "~~~", "`````"])
        lines = [line for line in lines if not line.startswith(fence[0] * 3)]
        return "\n".join([fence + self._random.choice(_LANGUAGES), *lines, fence])

    def _rule(self) -> str:
        return self._random.choice(["---", "***", "_ _ _"])

    def _contents(self) -> str:
        return "[TOC]" if self._random.random() < 0.2 else self._paragraph()

    def _table(self) -> str:
        columns = self._random.randint(1, 4)
        rule = [self._random.choice(["---", ":-:", "--:", ":--"]) for _ in range(columns)]
        rows = [
            [self._line(short=True).replace("|", "\\|").replace("\n", " ") for _ in range(columns)]
            for _ in range(self._random.randint(1, 4))
        ]
        return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))

    def _html(self) -> str:
        return self._random.choice(_BLOCK_TAGS).replace("{}", self._random.choice(("a", "b c")))

    def _passage(self) -> str:
        return f"```storage\n{self._random.choice(_PASSAGES)}\n```"

    def _list(self, depth: int) -> str:
        mark = self._random.choice(["-", "*", "+", "1.", "7)"])
        separator = self._random.choice(["\n", "\n", "\n\n"])
        items = []
        for number in range(self._random.randint(1, 4)):
            task = self._random.choice(["", "", "", "[ ] ", "[x] "])
            blocks = [task + self._line()]
            while self._random.random() < 0.3:
                blocks.append(self._block(depth))
            prefix = f"{mark} " if len(mark) == 1 else f"{int(mark[0]) + number}{mark[1]} "
            joined = self._random.choice(["\n\n", "\n"]).join(blocks)
            items.append(prefix + joined.replace("\n", f"\n{' ' * len(prefix)}"))
        return separator.join(items)

    def _quote(self, depth: int) -> str:
        inner = "\n\n".join(self._block(depth) for _ in range(self._random.randint(1, 3)))
        return "> " + inner.replace("\n", "\n> ")

    def _alert(self, depth: int) -> str:
        kind = self._random.choice(["NOTE", "TIP", "IMPORTANT", "WARNING", "caution"])
        return f"> [!{kind}]\n{self._quote(depth)}"

    def _note(self, depth: int) -> str:
        first = self._random.choice(
            ["!!! note", '!!! warning "A *title* "', "??? tip", ":::danger Title", '=== "Tab"']
        )
        inner = self._block(depth)
        if first.startswith(":"):
            return f"{first}\n{inner}\n:::"
        return f"{first}\n    " + inner.replace("\n", "\n    ")

    def _details(self, depth: int) -> str:
        title = self._random.choice(["", "<summary>A & b</summary>", "<summary>c</summary>"])
        return f"<details>{title}\n\n{self._block(depth)}\n\n</details>"

    # -- text ------------------------------------------------------------------------------------

    def _line(self, *, short: bool = False) -> str:
        count = self._random.randint(1, 3 if short else 9)
        return self._random.choice(["", " "]).join(
            self._inline(2) + self._random.choice(["", " "]) for _ in range(count)
        )

    def _inline(self, depth: int) -> str:
        words = " ".join(self._random.choice(_WORDS) for _ in range(self._random.randint(1, 3)))
        if self._random.random() < 0.5 or not depth:
            return words
        inner = self._inline(depth - 1)
        if self._has_notes and self._random.random() < 0.1:
            self._notes += 1
            return f"a[^n{self._random.randint(0, self._notes)}]"
        return self._random.choice(
            [
                *(f"**{inner}**", f"*{inner}*", f"_{inner}_", f"~~{inner}~~", f"<u>{inner}</u>"),
                *(f"`{words}`", f"`` a`b {words} ``", f"<kbd>{inner}</kbd>", f"<sub>{inner}</sub>"),
                *(f"[{inner}](https://a.example/{depth})", f'[{inner}](#own-id "t")'),
                *(f'[{inner}](<a b.md> "T \\" x")', "<https://b.example/ä>", "[x](#release)"),
                *('![al*t*](p/logo.png "Title"){width=30 .c}', "![](https://c.example/i.png)"),
                *("[![i](b.png)](https://d.example)", '<a id="Here"></a>', "<br>", "a<br/>b"),
                *(f"<mark>{inner}</mark>", f"<s>{inner}</s>", f"<ins>{inner}</ins>", "&copy;"),
                *(f"<a href='https://e.example' title=x>{inner}</a>", "<!-- c -->", "[y](#Here)"),
                f"`{self._random.choice(_INLINE_PASSAGES)}`{{=storage}}",
            ]
        )
