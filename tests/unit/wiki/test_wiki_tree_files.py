# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the pages of a folder without a server: titles, attachments, targets and .xml files."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import additions
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.source_files import (
    TreeOptions,
    read_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wanted_pages import (
    WantedPage,
    WantedPages,
    unreferenced,
)


class Folder:
    """A folder with files. Calling it returns its pages by path."""

    def __init__(self, path: Path) -> None:
        self.path, self.warnings = path, list[str]()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            self.file(name, text)

    def file(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def __call__(
        self, src: str = "", *, drafts: bool = False, **more: Any
    ) -> dict[str, WantedPage]:
        folder = read_folder(str(self.path / src), [], drafts=drafts)
        pages = WantedPages(folder, TreeOptions("", "REL", **more), self.warnings.append).all()
        return {page.source.place: page for page in pages}

    def problems(self) -> list[str]:
        with pytest.raises(ToolchainError) as caught:
            self()
        return list(caught.value.result["problems"])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "docs")


@pytest.mark.parametrize(
    ("name", "text", "title", "body"),
    [
        ("x.md", "## First\n\n# Title\n\na", "Title", "<h2>First</h2><p>a</p>"),
        ("x.md", "Title\n=====\n\na", "Title", "<p>a</p>"),
        ("x.md", "## First\n\n<h1>Title</h1>\n\na", "Title", "<h2>First</h2><p>a</p>"),
        ("x.md", "a\n\n### First\n\n## Second", "First", "<p>a</p><h2>Second</h2>"),
        ("x.md", "a", "x", "<p>a</p>"),
        ("x.md", "---\ntitle: T\n---\n# A", "T", "<h1>A</h1>"),
        ("x.md", "---\ntitle:\n---\n# A", "A", ""),
        ("x.md", "---\ntitle: ' '\n---\n# A", "A", ""),
        ("x.md", "#\n\n# A", "A", ""),
        (
            "x.md",
            "# [![a](https://x.example/b.png)](https://x.example) T\n",
            "T",
            (
                '<p><a href="https://x.example"><ac:image ac:alt="a">'
                '<ri:url ri:value="https://x.example/b.png"/></ac:image></a></p>'
            ),
        ),
        ("x.md", "# ![Only](https://x.example/b.png)", "Only", None),
        ("x.xml", "<h2>A</h2><h1>T</h1><p>a</p>", "T", "<h2>A</h2><p>a</p>"),
        ("x.xml", "<h2>A</h2><p>a</p>", "A", "<p>a</p>"),
        ("x.xml", "<h1>The <b>first</b> one</h1><p>a</p>", "The first one", "<p>a</p>"),
    ],
)
def test_heading_of_the_title_is_left_out(
    folder: Folder, name: str, text: str, title: str, body: str | None
) -> None:
    folder.file(name, text)
    page = folder()[name]
    assert page.title == title
    assert body in (None, page.body)
    kept = folder(title_heading="keep")[name]
    assert kept.title == title
    assert len(kept.body) >= len(page.body)


def test_loose_link_to_the_dropped_heading_leads_to_the_page(folder: Folder) -> None:
    folder.write(**{"x.md": "# A & B\n\n[a](#a-b)"})
    assert '<ac:link><ri:page ri:content-title="A &amp; B"/>' in folder()["x.md"].body


def test_link_to_the_dropped_heading_leads_to_the_page(folder: Folder) -> None:
    folder.file("x.md", "# T <a id='top2'></a>\n\n[a](#t) [b](#Top2) [c](#top)")
    folder.file("y.md", "[d](x.md#t)")
    pages = folder()
    link = '<ac:link><ri:page ri:content-title="T"/><ac:link-body>{}</ac:link-body></ac:link>'
    assert pages["x.md"].body == f"<p>{' '.join(map(link.format, 'abc'))}</p>"
    assert pages["y.md"].body == f"<p>{link.format('d')}</p>"
    assert folder.warnings == []
    assert 'ac:anchor="t"' in folder(title_heading="keep")["y.md"].body


def test_attachments_have_different_names(folder: Folder) -> None:
    paths = ("a/logo.png", "b/Logo.png", "b_Logo.png", "c/d/LOGO.PNG", "c_d_logo.png")
    for path in paths:
        folder.file(path, path)
    folder.file(
        "x.md",
        "---\nattachments: {C_D_Logo.PNG: c_d_logo.png, kept.png: null}\n---\n"
        + "".join(f"![]({path})" for path in paths)
        + "<img src='./a/logo.png'>[e](kept.png)",
    )
    folder.file("kept.png", "")
    page = folder()["x.md"]
    assert {
        name: Path(file).relative_to(folder.path).as_posix() for name, file in page.files.items()
    } == {
        "C_D_Logo.PNG": "c_d_logo.png",
        "logo.png": "a/logo.png",
        "b_Logo.png": "b/Logo.png",
        "b_Logo-2.png": "b_Logo.png",
        "LOGO-2.PNG": "c/d/LOGO.PNG",
        "kept-2.png": "kept.png",
    }
    for name in page.files:
        assert f'ri:filename="{name}"' in page.body


@pytest.mark.parametrize(
    "files",
    [
        {"x.md": "---\nattachments: {a.png: a, A.png: b}\n---\n", "a": "", "b": ""},
        {
            "x.xml": '<p><ri:attachment ri:filename="a" /><ri:attachment ri:filename="A" /></p>',
            "a": "",
            "A": "",
        },
    ],
)
def test_given_names_that_differ_only_in_case_are_invalid(
    folder: Folder, files: dict[str, str]
) -> None:
    folder.write(**files)
    (problem,) = folder.problems()
    assert "differ only in upper and lower case" in problem


def test_two_attachments_of_one_name_in_a_task_are_invalid(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    wanted = [
        additions.PageAttachmentOptions(str(tmp_path / "a.txt"), "Plan.txt"),
        additions.PageAttachmentOptions(str(tmp_path / "b.txt"), "plan.TXT"),
    ]
    with pytest.raises(ToolchainError, match=r"'plan.TXT' is used twice \(also as 'Plan.txt'\)"):
        additions.files_of(wanted)


def test_xml_file_of_another_kind_is_a_file(folder: Folder) -> None:
    folder.write(
        **{
            "x.md": "[a](pom.xml)",
            "pom.xml": "<?xml version='1.0'?>\n<!-- <p> --><project><p/></project>",
            "broken.xml": "<project>",
            "mixed.xml": "<p>a</p><project/>",
            "page.xml": "<!-- b --><ac:image/><p>a</p>",
            "only/data.xml": "<data/>",
        }
    )
    (folder.path / "utf16.xml").write_bytes("<project/>".encode("utf-16"))
    pages = folder()
    assert set(pages) == {"./", "x.md", "page.xml"}
    assert list(pages["x.md"].files) == ["pom.xml"]
    folder.write(**{"wrong.xml": "<p>\n<b></p>", "head.xml": "---\ntitle: T\n---\n<other/>"})
    (problem,) = folder.problems()
    assert problem.startswith("wrong.xml:2: <b>")
    with pytest.raises(ToolchainError, match=r"pom.xml is no Markdown"):
        folder("pom.xml")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("src", ["", "x.md"])
def test_file_names_compare_in_nfc(folder: Folder, form: Any, src: str) -> None:
    other: Any = "NFD" if form == "NFC" else "NFC"
    folder.file(unicodedata.normalize(form, "bür.png"), "")
    folder.file(unicodedata.normalize(form, "tür.md"), "# T")
    link = "" if src else unicodedata.normalize(other, "[a](tür.md)")
    folder.file("x.md", unicodedata.normalize(other, "![](bür.png)") + link)
    page = folder(src)["x.md"]
    assert list(page.files) == [unicodedata.normalize("NFC", "bür.png")]
    assert os.path.exists(next(iter(page.files.values())))
    assert src or 'ri:content-title="T"' in page.body


def test_names_that_are_equal_in_nfc_are_a_problem(folder: Folder) -> None:
    folder.file(unicodedata.normalize("NFC", "ü.md"), "a")
    folder.file(unicodedata.normalize("NFD", "ü.md"), "b")
    assert any("differ only in their Unicode form" in problem for problem in folder.problems())


def test_titles_of_one_folder_get_the_file_names(folder: Folder) -> None:
    folder.write(**{"a/x.md": "# T", "a/y.md": "# t", "b/x.md": "# T", "c.md": "# U"})
    titles = {path: page.title for path, page in folder(unique_titles="folder").items()}
    assert (titles["a/x.md"], titles["a/y.md"]) == ("T (a/x)", "t (a/y)")
    assert (titles["b/x.md"], titles["c.md"]) == ("T (b)", "U")
    folder.write(**{"d/index.md": "# V", "d/d.md": "# V"})
    titles = {path: page.title for path, page in folder(unique_titles="folder").items()}
    assert (titles["d/index.md"], titles["d/d.md"]) == ("V (d/index)", "V (d/d)")


def test_titles_of_folders_without_a_page_get_the_folder_above(folder: Folder) -> None:
    folder.write(**{"a/http/x.md": "# X", "b/http/y.md": "# Y", "http.md": "# http"})
    titles = {path: page.title for path, page in folder(unique_titles="folder").items()}
    assert titles["a/http/"] == "http (a/http)"
    assert titles["b/http/"] == "http (b/http)"
    assert titles["http.md"] == "http (docs)"


@pytest.mark.parametrize(
    ("address", "title"),
    [("b.html", "B"), ("./b", "B"), ("../a/b/", "B"), ("index.html#x", "A"), ("c.html", None)],
)
def test_links_as_generators_of_sites_write_them_lead_to_pages(
    folder: Folder, address: str, title: str | None
) -> None:
    folder.write(
        **{
            "a/index.md": "# A\n## X",
            "a/b.md": "# B",
            "a/c.html": "",
            "a/d.md": f"# D\n[x]({address})",
        }
    )
    page = folder()["a/d.md"]
    if title is None:
        assert list(page.files) == ["c.html"]
    else:
        assert f'ri:content-title="{title}"' in page.body


def test_elements_without_equivalent_are_reported_with_file_and_line(folder: Folder) -> None:
    folder.file("a/x.md", "---\ntitle: T\n---\n\n<video>b</video>")
    folder()
    assert folder.warnings == ["a/x.md:5: the wiki has no <video>, so only its text is kept"]


def test_raw_html_is_checked_like_markdown(folder: Folder) -> None:
    folder.file("x.md", "a\n\n<img src='b.png'>\n<a href='c.md'>d</a>\n\n<a href='y.md#e'>f</a>")
    folder.file("y.md", "<h2 id='E'>g</h2>\n\n## h")
    assert folder.problems() == [
        "x.md:3: the image 'b.png' does not exist in src",
        (
            "x.md:4: the target of the link 'c.md' does not exist in src: correct it, or set broken_links"
            " to warn"
        ),
    ]
    folder.write(**{"b.png": "", "c.md": "# C"})
    body = folder()["x.md"].body
    assert '<ri:attachment ri:filename="b.png"/>' in body
    assert (
        '<ac:link><ri:page ri:content-title="C"/><ac:link-body>d</ac:link-body></ac:link>' in body
    )
    assert '<ac:link><ri:page ri:content-title="g"/>' in body  # the heading is the title of y.md


LINKS = {
    "[a](../LICENSE)": "https://git.example/main/LICENSE",
    "[a](../src/a%20b.py?raw=1#L3)": "https://git.example/main/src/a%20b.py?raw=1#L3",
    "[a](../src/?a=1&b=%20)": "https://git.example/main/src/?a=1&amp;b=%20",
    "<a href='/README.md'>a</a>": "https://git.example/main/README.md",
    "[a](/src/)": "https://git.example/main/src/",
    "[a](.hidden/b.md)": "https://git.example/main/docs/.hidden/b.md",
}


@pytest.mark.parametrize("link", LINKS)
def test_links_to_other_files_of_the_repository_get_the_base(folder: Folder, link: str) -> None:
    (folder.path.parent / ".git").mkdir()
    folder.file(".hidden/b.md", "")
    folder.file("x.md", link)
    page = folder(link_base="https://git.example/main/")["x.md"]
    assert page.body == f'<p><a href="{LINKS[link]}">a</a></p>'
    assert "does not exist in src: correct it, or set link_base" in folder.problems()[0]


def test_base_without_a_repository_is_that_of_src(folder: Folder) -> None:
    folder.file(".hidden/b.md", "")
    folder.file("x.md", "[a](.hidden/b.md)")
    page = folder(link_base="https://git.example")["x.md"]
    assert 'href="https://git.example/.hidden/b.md"' in page.body


@pytest.mark.parametrize("link", ["[a](missing.md)", "[a](../../above)", "![a](../b.png)"])
def test_broken_links_become_text_with_a_warning(folder: Folder, link: str) -> None:
    (folder.path.parent / ".git").mkdir()
    folder.file("x.md", link)
    page = folder(link_base="https://git.example", broken_links="warn")["x.md"]
    assert page.body == "<p>a</p>"
    assert len(folder.warnings) == 1
    assert folder.warnings[0].startswith("x.md:1: the ")
    assert "broken_links" not in folder.warnings[0]
    assert "does not exist in src" in folder.problems()[0]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # page of the folder: index, _index, README, the name of the folder, a file beside it
        (["a/index.md", "a/_index.md", "a/README.md"], {"a/": "a/index.md"}),
        (["a/_index.md", "a/README.mdx", "a/a.md"], {"a/": "a/_index.md"}),
        (["a/readme.markdown", "a/a.md", "a.md"], {"a/": "a/readme.markdown"}),
        (["a/a.md", "a/b.md"], {"a/": "a/a.md"}),
        (["a/b.md", "a.md"], {"a/": "a.md"}),
        (["a/b/c.md", "a/b.mdx"], {"a/": "a/", "a/b/": "a/b.mdx"}),
        (["a/x.png", "a.md"], {}),
        (["index.md", "_index.md", "docs.md"], {"./": "index.md"}),
        (["docs.md", "x.md"], {"./": "docs.md"}),
    ],
)
def test_page_of_a_folder_is_the_first_of_several_files(
    folder: Folder, files: list[str], expected: dict[str, str]
) -> None:
    for name in files:
        folder.file(name, f"# {name}")
    found = {page.source.key: page.source for page in folder().values()}
    assert {key: found[key].path for key in expected} == expected
    others = {name for name in files if name.endswith(("md", "mdx", "markdown"))}
    others -= set(expected.values())
    assert others == {source.path for key, source in found.items() if not key.endswith("/")}
    assert next(iter(found)) == "./"
    for number, source in enumerate(found.values()):
        assert source.parent is None or source.parent in list(found)[:number]


def test_files_of_a_folder_page_are_below_it(folder: Folder) -> None:
    files = {"a/README.md": "# R", "a/a.md": "# A", "a.md": "# B", "a/b.md": "# C\n\n[c](../a.md)"}
    folder.write(**files)
    pages = folder()
    assert {path: page.source.parent for path, page in pages.items() if path != "./"} == {
        "a/README.md": "./",
        "a.md": "a/",
        "a/a.md": "a/",
        "a/b.md": "a/",
    }
    assert '<ri:page ri:content-title="B"/>' in pages["a/b.md"].body


@pytest.mark.parametrize("index", ["index.md", "_index.markdown"])
def test_index_and_a_file_beside_the_folder_are_an_error(folder: Folder, index: str) -> None:
    folder.write(**{f"a/{index}": "# I", "a.md": "# A"})
    (problem,) = folder.problems()
    assert problem == (
        f"a.md: a/{index} is also the page of the folder a: rename a.md, or move it into the folder"
    )


@pytest.mark.parametrize(
    ("front", "is_draft"),
    [
        ("---\ndraft: true\n---\n", True),
        ("---\r\ntitle: x\r\ndraft: yes\r\n---\r\n", True),
        ("---\ndraft: 'True'\n---\n", True),
        ("---\npublished: false\n---\n", True),
        ("+++\ndraft = true\n+++\n", True),
        ("+++\ntitle = 'x'\npublished = false\n+++\n", True),
        ("---\ndraft: false\npublished: 2026-01-01\n---\n", False),
        ("---\ndraft:\npublished: soon\n---\n", False),
        ("+++\ndraft = false\n+++\n", False),
        ("draft: true\n", False),
        ("---\ntitle: the draft\n---\ndraft: true\n", False),
    ],
)
def test_drafts_are_left_out(folder: Folder, front: str, *, is_draft: bool) -> None:
    folder.write(**{"index.md": "# I", "x.md": f"{front}text"})
    assert ("x.md" in folder()) is not is_draft
    assert "text" in folder(drafts=True)["x.md"].body
    assert read_folder(str(folder.path), []).drafts == (["x.md"] if is_draft else [])


def test_draft_is_like_an_excluded_file(folder: Folder) -> None:
    front = "---\ndraft: true\n---\n"
    folder.write(**{"a/index.md": f"{front}# A", "a/b.md": "[x](../c.md)", "c.md": front})
    (folder.path / ".git").mkdir()
    assert folder.problems()[0].startswith("a/b.md:1: the target of the link '../c.md' does not")
    pages = folder(link_base="https://git.example")
    assert set(pages) == {"./", "a/", "a/b.md"}
    assert "https://git.example/c.md" in pages["a/b.md"].body
    assert pages["a/"].title == "a"


def test_only_drafts_are_an_error(folder: Folder) -> None:
    folder.write(**{"x.md": "---\ndraft: true\n---\n"})
    for src in ("", "x.md"):
        with pytest.raises(ToolchainError, match="set drafts to publish"):
            folder(src)
        assert set(folder(src, drafts=True)) == ({"./", "x.md"} if src == "" else {"x.md"})
    folder.write(**{"x.md": "---\ndraft: maybe\n---\n"})
    assert folder.problems() == ["x.md:1: draft in the front matter is 'maybe', not true or false"]


def test_toml_front_matter_is_read(folder: Folder) -> None:
    folder.write(**{"x.md": '+++\ntitle = "T"\nlabels = ["a"]\n[params]\nx = 1\n+++\n# t \n\n*b*'})
    page = folder()["x.md"]
    assert (page.title, page.labels, page.body) == ("T", ("a",), "<p><em>b</em></p>")
    folder.write(**{"x.md": "+++\ntitle = \n+++\n"})
    (problem,) = folder.problems()
    assert problem.startswith("x.md:2: cannot parse the front matter: Invalid value")


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\ntitle: My  page\n---\n# MY Page\n\na", "<p>a</p>"),
        ("---\ntitle: My page\n---\n## My page\n\na\n\n# B", "<p>a</p><h1>B</h1>"),
        ("---\ntitle: My page\n---\n# Other\n\n## Page", "<h1>Other</h1><h2>Page</h2>"),
        ("---\ntitle: My page\n---\na\n\n# My page", "<p>a</p>"),
    ],
)
def test_first_heading_that_equals_the_title_is_left_out(
    folder: Folder, text: str, body: str
) -> None:
    folder.write(**{"x.md": text})
    assert folder()["x.md"].body == body
    assert "My page" not in body
    assert (folder(title_heading="keep")["x.md"].body == body) is ("Other" in body)


def test_markdown_has_three_endings(folder: Folder) -> None:
    folder.write(**{"a.markdown": "# A\n\n[b](b.mdx) [c](c)", "b.mdx": "# B", "c.md": "# C"})
    pages = folder()
    assert {path: page.title for path, page in pages.items() if path != "./"} == {
        "a.markdown": "A",
        "b.mdx": "B",
        "c.md": "C",
    }
    folder.write(**{"a.markdown": "a", "b.mdx": "b", "d.MDX": "d"})
    assert {page.title for page in folder().values()} == {"docs", "a", "b", "C", "d"}


def test_text_files_that_no_page_refers_to_are_counted(folder: Folder) -> None:
    folder.write(**{"x.md": "[a](a.txt)", "a.txt": "a", "b.txt": "b", "c.rst": "\u00e9" * 3000})
    (folder.path / "d.png").write_bytes(b"\x89PNG\0")
    source = read_folder(str(folder.path), [])
    pages = WantedPages(source, TreeOptions("", "REL"), folder.warnings.append).all()
    assert unreferenced(source, pages) == {
        "unreferenced": "2 text files of src are on no page: 1 .txt, 1 .rst"
    }
    assert unreferenced(read_folder(str(folder.path / "x.md"), []), []) == {}
