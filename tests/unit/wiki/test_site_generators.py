# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the syntax of site generators: template tags, included files, attributes and MDX [C8.9]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import mdx
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.converter import (
    storage_format,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.dialects import (
    part_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.source_files import (
    TreeOptions,
    read_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wanted_pages import (
    WantedPages,
)


class Converted:
    """A folder with files. Calling it returns the bodies of its pages by path, without `./`."""

    def __init__(self, path: Path) -> None:
        self.path, self.warnings = path / "docs", list[str]()

    def __call__(self, files: dict[str, str], exclude: Any = (), **more: Any) -> dict[str, str]:
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        self.warnings.clear()
        folder = read_folder(str(self.path), exclude)
        pages = WantedPages(folder, TreeOptions("", "REL", **more), self.warnings.append).all()
        return {page.source.path: page.body for page in pages if page.source.path != "./"}

    def problems(self, files: dict[str, str], **more: Any) -> list[str]:
        with pytest.raises(ToolchainError) as caught:
            self(files, **more)
        return list(caught.value.result["problems"])


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    return Converted(tmp_path)


def _code(text: str) -> str:
    body = f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"
    return f'<ac:structured-macro ac:name="code">{body}</ac:structured-macro>'


@pytest.mark.parametrize(
    ("markdown", "body", "lines"),
    [
        # a line of dashes below is no heading, a list or a paragraph ends
        ("a\n{{< figure x >}}\n---\nb", "<p>a</p><p>{{&lt; figure x &gt;}}</p><hr/><p>b</p>", [2]),
        ("a\n{% include x %}\n===\n", "<p>a</p><p>{% include x %}</p><p>===</p>", [2]),
        (
            "- a\n{{% note %}}\n*b*\n{{% /note %}}\n- c",
            (
                "<ul><li>a</li></ul><p>{{% note %}}</p><p><em>b</em></p><p>{{% /note %}}</p>"
                "<ul><li>c</li></ul>"
            ),
            [2],
        ),
        ("> a\n{{ content }}", "<blockquote><p>a</p></blockquote><p>{{ content }}</p>", [2]),
        ("<div>\n{% x %}\n</div>\n", "<p>{% x %}</p>", [2]),
        ("|a|\n|-|\n|b|\n{% x %}", None, [4]),
        # never code, unless there is other code
        ("a\n\n    {{< tabs >}}\n\nb", "<p>a</p><p>{{&lt; tabs &gt;}}</p><p>b</p>", [3]),
        ("    {% if x %}\n    {{ y }}", "<p>{% if x %}</p><p>{{ y }}</p>", [1, 2]),
        ("    {% if x %}\n    <li>", _code("{% if x %}\n<li>"), []),
        ("```\n{{< x >}}\n{% y %}\n```", _code("{{< x >}}\n{% y %}"), []),
        ("`{{< x >}}`", "<p><code>{{&lt; x &gt;}}</code></p>", []),
        # in a line of other text, over several lines, without markup
        ("see {{< p a_b_c >}} *b*", "<p>see {{&lt; p a_b_c &gt;}} <em>b</em></p>", [1]),
        ("{{< f\n a_b_c\n>}}\n# H", "<p>{{&lt; f\na_b_c\n&gt;}}</p><h1>H</h1>", [1]),
        ("the {{ x }} here", "<p>the {{ x }} here</p>", []),
        ("{{< a >}}\n\n{{< a >}}{{< /a >}}", None, [1]),
        ('--8<-- "x.md"', '<p>--8&lt;-- "x.md"</p>', [1]),
        ("a <<EOF > b\nEOF", "<p>a &lt;&lt;EOF &gt; b\nEOF</p>", []),
    ],
)
def test_template_tags_stay_text(markdown: str, body: str | None, lines: list[int]) -> None:
    warnings: list[str] = []
    assert storage_format(markdown, warnings.append) == body or body is None
    assert [int(one.partition(":")[0].removeprefix("line ")) for one in warnings] == lines
    assert all("syntax of a site generator" in one for one in warnings)


def test_references_are_links(converted: Converted) -> None:
    files = {
        "a.md": '[t]({{< ref "b.md#one" >}}) <a href="{{% relref "sub/c" %}}">u</a> {{< ref d >}}\n\n'
        "`{{< ref x >}}` [v]({{< ref path=/sub/c.md >}})",
        "b.md": "# B\n\n## One",
        "sub/c.md": "# C",
        "sub/deep/d.md": "# D",
    }
    body = converted(files)["a.md"]
    titles = [part.partition('"')[0] for part in body.split('ri:content-title="')[1:]]
    assert titles == ["B", "C", "D", "C"]
    assert '<ac:link ac:anchor="one">' in body
    assert "<code>{{&lt; ref x &gt;}}</code>" in body
    assert converted.warnings == []
    files["a.md"] = '[t]({{< ref "none.md" >}})'
    assert converted.problems(files)[0].startswith("a.md:1: the target of the link 'none.md' does")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# A\n\nTerm\n: Definition\n\nOther\nterm\n:   Definition\n", "4; also in line 8"),
        ("Term\n\n: Definition\n", "3"),
        ("Term\n\n- x\n\n: no definition\n\n:no blank\n\n`a`\n    : code\n", "10"),
        ("A\n\n    : code\n\n: b", ""),
        ("```\nA\n: b\n```\n\n> : b\n\nA :\n:smile:\n", ""),
    ],
)
def test_list_of_definitions_is_reported(converted: Converted, text: str, lines: str) -> None:
    converted({"a.md": text})
    cure = "write it as <dl> with <dt> and <dd>, or as a list"
    first, _more, others = lines.partition("; ")
    more = f"; {others}" if others else ""
    wanted = [f"a.md:{first}: a list of definitions is shown as text: {cure}{more}"]
    assert converted.warnings == (wanted if lines else [])


def test_files_are_included(converted: Converted) -> None:
    files = {
        "a.md": 'a\n--8<-- "parts/b.md"\n- c\n\n--8<--\nparts/d.txt:one\nparts/d.txt:4:4\n--8<--\n',
        "parts/b.md": "---\ntitle: B\n---\n*b* {{< x >}}\n",
        "parts/d.txt": "0\n# --8<-- [start:one]\n1\n3\n# --8<-- [end:one]\n",
    }
    body = converted(files, exclude=["parts"])["a.md"]
    assert body == (
        "<p>a</p><p><em>b</em> {{&lt; x &gt;}}</p><ul><li>c</li></ul><p>1\n3</p><p>3</p>"
    )
    assert converted.warnings == [
        "a.md:2: '{{< x >}}' is syntax of a site generator, so it is shown as text"
    ]


@pytest.mark.parametrize("name", ["none.md", "../secret.txt", "b.md:nowhere", "link.txt"])
def test_missing_included_file_is_an_error(converted: Converted, name: str) -> None:
    secret = converted.path.parent / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    converted.path.mkdir()
    (converted.path / "link.txt").symlink_to(secret)
    files = {"a.md": f'--8<-- "{name}"', "b.md": "b"}
    exclude = ["link.txt"]
    expected = f"a.md:1: the included file '{name}' does not exist in src"
    assert converted.problems(files, exclude=exclude) == [expected]
    body = converted(files, exclude=exclude, broken_links="warn")["a.md"]
    assert body == f'<p>--8&lt;-- "{name}"</p>'
    assert converted.warnings == [expected]


def test_files_that_include_each_other_are_an_error(converted: Converted) -> None:
    files = {"a.md": '--8<-- "b.md"', "b.md": '--8<-- "a.md"'}
    assert converted.problems(files)[0] == "a.md:1: the file 'b.md' includes itself"
    twice = {f"n{n}.md": f'--8<-- "n{n + 1}.md"\n' * 2 for n in range(12)}
    assert "includes more than 1000 files" in converted.problems({**twice, "n12.md": "x"})[-1]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("", "a\nb\nc\n"),
        ("1", "a\n"),
        ("3:4", "b\nc\n"),
        ("4:", "c\n"),
        (":2", "a\n"),
        ("x", "b\n"),
    ],
)
def test_part_of_a_file(part: str, text: str) -> None:
    source = "a\n<!-- --8<-- [start:x] -->\nb\nc\n"
    source = source.replace("c\n", "--8<-- [ end: x ]\nc\n") if part == "x" else source
    assert part_of(source, part) == text


_ANCHOR = (
    '<ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">x</ac:parameter>'
    "</ac:structured-macro>"
)
_IMAGE = '<ri:url ri:value="https://x.example/b.png"/></ac:image>'


@pytest.mark.parametrize(
    ("markdown", "body"),
    [
        (
            "![a](https://x.example/b.png){ width=300 align=Right .c loading=lazy } t",
            f'<p><ac:image ac:alt="a" ac:align="right" ac:width="300">{_IMAGE} t</p>',
        ),
        (
            "![a](https://x.example/b.png){: height=\"20px\" width='50%' align=middle}",
            f'<p><ac:image ac:alt="a" ac:height="20">{_IMAGE}</p>',
        ),
        (
            "<img src=https://x.example/b.png align=left>",
            f'<p><ac:image ac:align="left">{_IMAGE}</p>',
        ),
        (
            "[a](https://x.example){ .button target=_blank }",
            '<p><a href="https://x.example">a</a></p>',
        ),
        ("## H { .c align=center }", '<h2 style="text-align: center;">H</h2>'),
        (
            "a *b*\n{ .annotate #x }\n\nc",
            "<p>a <em>b</em></p><p>c</p>".replace("<p>a", f"<p>{_ANCHOR}a"),
        ),
        ("{.lead}\n\na", "<p>a</p>"),
        ("## H {a b}\n\n[a](https://x.example) {b}", None),
    ],
)
def test_attributes_are_taken_from_the_text(markdown: str, body: str | None) -> None:
    found = storage_format(markdown, pytest.fail)
    assert found == body or (body is None and "{a b}" in found and "{b}" in found)


def test_id_of_an_image_is_a_target() -> None:
    body = storage_format(
        "![a](b.png){#one width=3}\n\n## H {#two .x}\n\n[c](#ONE) [d](#two)", print
    )
    assert body.count('<ac:parameter ac:name="">one</ac:parameter>') == 1
    assert '<ac:link ac:anchor="one">' in body
    assert '<ac:link ac:anchor="two">' in body


_MDX = """import A from './a';
import {
  B,

  C
} from "c";

export const x = {
  y: `1

2`,
};

# Title

{/* a comment
over lines */}
<Tabs values={[{a: 1}, {b: '>'}]}>
  <TabItem label="A">

    Use **bold** and `<Foo>`:

    ```js
    import x from 'y';
    ```

  </TabItem>
  <TabItem>
    - one
        - two
  </TabItem>
</Tabs>

import the <Badge onClick={() => go(1 > 2)} /> text{' '}
a < b, <B>c</B> <img src={require('./a.png').default} style={{a: 1}} width={20} />
<>d</> \\<Foo> {props.x}
"""


def test_mdx_keeps_the_content_of_components(converted: Converted) -> None:
    body = converted({"x.mdx": _MDX, "a.png": ""}, title_heading="keep")["x.mdx"]
    javascript = '<ac:parameter ac:name="language">js</ac:parameter>'
    assert body == (
        "<h1>Title</h1><p>Use <strong>bold</strong> and <code>&lt;Foo&gt;</code>:</p>"
        + _code("import x from 'y';").replace("<ac:plain", f"{javascript}<ac:plain", 1)
        + "<ul><li>one<ul><li>two</li></ul></li></ul>"
        + "<p>import the  text\na &lt; b, c "
        + '<ac:image ac:width="20"><ri:attachment ri:filename="a.png"/></ac:image>'
        + "\nd &lt;Foo&gt; {props.x}</p>"
    )
    assert converted.warnings == [
        f"x.mdx:{line}: the wiki has no component <{name}>, so only its content is kept{more}"
        for name, line, more in (
            ("Tabs", 18, ""),
            ("TabItem", 19, "; also in line 28"),
            ("Badge", 34, ""),
            ("B", 35, ""),
        )
    ]


@pytest.mark.parametrize(
    "text", ["<A {", "<A b='", "{/*", "`", "<A ", "import {\n", "export const x = `", "</A>", "<>"]
)
def test_odd_mdx_keeps_its_lines(text: str) -> None:
    """Without bounds, this takes minutes."""
    assert (
        mdx.without_components(f"{text}\n" * 1000)[0].count("\n") == 1000 * text.count("\n") + 1000
    )


def test_modules_are_only_those_of_mdx(converted: Converted) -> None:
    assert converted({"x.md": "import A from 'a'\n"})["x.md"] == "<p>import A from 'a'</p>"
