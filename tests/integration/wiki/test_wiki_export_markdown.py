# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that pages that people wrote become Markdown, and that publishing it writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree import wiki_tree
from sandbox.client import Sandbox
from tests.integration.wiki import test_wiki_exported_access
from tests.integration.wiki.test_wiki_exported_access import DIALECTS, MODULES

Fresh = Callable[[str], Sandbox]
PAGES = {
    "2000": ("1002", "Guide", '<p>All: <ac:link><ri:page ri:content-title="Setup"/></ac:link></p>'),
    "2001": (
        "2000",
        "Setup",
        (
            '<h2>Before you start</h2><p>Ask <ac:link><ri:user ri:username="author"/></ac:link>, or see'
            ' <ac:link ac:anchor="faq"><ri:page ri:content-title="Q &amp; A"/><ac:plain-text-link-body>'
            "<![CDATA[the answers]]></ac:plain-text-link-body></ac:link>.</p><p><br/></p>"
            "<ul><li><p>one</p></li><li><p>two <strong>bold </strong>text</p></li></ul>"
            '<ac:structured-macro ac:name="code" ac:schema-version="1" ac:macro-id="m1">'
            '<ac:parameter ac:name="language">py</ac:parameter><ac:plain-text-body><![CDATA[a = 1]]>'
            "</ac:plain-text-body></ac:structured-macro>"
        ),
    ),
    "2002": (
        "2000",
        "Q & A",
        (
            '<h2><ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">faq</ac:parameter>'
            "</ac:structured-macro>FAQ</h2><table><colgroup><col/><col/></colgroup><tbody><tr><th>a</th>"
            "<th>b</th></tr><tr><td><p>c</p></td><td>d</td></tr></tbody></table>"
            '<table><tbody><tr><td colspan="2">x</td></tr></tbody></table>'
        ),
    ),
    "2003": (
        "2001",
        "1.10",
        (
            '<ac:layout><ac:layout-section ac:type="single"><ac:layout-cell>'
            "<p>x</p></ac:layout-cell></ac:layout-section></ac:layout>"
        ),
    ),
    "2004": ("2000", "# Odd: title *", "<p>- no list</p><h1>Odd</h1><hr/>"),
}


class Wiki(test_wiki_exported_access.Wiki):
    """A wiki with pages that people wrote, of which the tree `Guide` is exported."""

    def __init__(self, fresh: Fresh, dialect: str, folder: Path) -> None:
        super().__init__(fresh, dialect, folder)
        pages: list[dict[str, Any]] = [
            {"id": key, "space": "REL", "title": title, "parent": parent, "body": body}
            for key, (parent, title, body) in PAGES.items()
        ]
        pages[1]["labels"] = ["start"]
        self.sandbox.seed({"wiki": {"pages": pages}})
        self.folder = folder

    def markdown(self, **options: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """Export the tree. Return the result, and the files of pages by their path."""
        tree = {"space": "REL", "title": "Guide"}
        result, state = self.export(format="markdown", trees=[tree], spaces=False, **options)
        self.tree = state["trees"][0]
        home = self.folder / self.tree["src"]
        files = [file for file in home.rglob("*") if file.suffix in (".md", ".xml")]
        return result, {str(file.relative_to(home)): file.read_text("utf-8") for file in files}

    def publish(self) -> Any:
        options = {**self.tree, "src": str(self.folder / self.tree["src"])}
        return self.run("tree", **options)[0]


@pytest.fixture(autouse=True)
def tree_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "tree", (wiki_tree.WikiTreeOperation, wiki_tree.WikiTreeOptions))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_exported_markdown_is_published_without_a_write(
    fresh: Fresh, dialect: str, tmp_path: Path
) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    result, files = wiki.markdown()
    assert result["left_out"] == []
    assert set(files) == {
        "index.md",
        "Setup/index.md",
        "Q-A-1.md",
        "Setup/110.md",
        "Odd.md",
    } or all(name.endswith(".md") for name in files)
    assert not wiki.publish().changed
    assert {file["action"] for file in wiki.markdown()[0]["files"]} == {"unchanged"}


def test_markdown_is_that_of_a_person(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    _result, files = wiki.markdown()
    (answers,) = (name for name, text in files.items() if text.startswith("# Q &"))
    assert files["index.md"] == "# Guide\n\nAll: [Setup](Setup/index.md)\n"
    assert files["Setup/index.md"] == (
        "---\nlabels:\n- start\n---\n\n# Setup\n\n## Before you start\n\n"
        'Ask `<ac:link><ri:user ri:username="author"/></ac:link>`{=storage}, or see [the'
        f" answers](../{answers}#faq).\n\n<br>\n\n- one\n- two **bold** text\n\n```python\na = 1\n```\n"
    )
    assert files[answers] == (
        "# Q & A\n\n## FAQ\n\n| a   | b   |\n| --- | --- |\n| c   | d   |\n\n```storage\n"
        '<table><tbody><tr><td colspan="2">x</td></tr></tbody></table>\n```\n'
    )


def test_page_that_markdown_cannot_hold_stays_in_storage_format(
    fresh: Fresh, tmp_path: Path
) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    hidden = (
        '<table><tbody><tr><td colspan="2"><ac:link ac:anchor="deep-end"><ri:page'
        ' ri:content-title="Far"/></ac:link></td></tr></tbody></table>'
    )
    anchor = (
        '<ac:structured-macro ac:name="anchor"><ac:parameter ac:name="">deep-end</ac:parameter>'
        "</ac:structured-macro>"
    )
    pages = {"2101": ("Near", hidden), "2102": ("Far", f"<h2>{anchor}Deep end</h2>")}
    wiki.sandbox.seed(
        {
            "wiki": {
                "pages": [
                    {"id": key, "space": "REL", "parent": "2000", "title": title, "body": body}
                    for key, (title, body) in pages.items()
                ]
            }
        }
    )
    result, files = wiki.markdown()
    assert {name for name in files if name.endswith(".xml")} == {"Far.xml"}
    assert "Near.md" in files
    (left,) = result["left_out"]
    assert (left["kind"], left["name"]) == ("markdown", "Far")
    assert "Markdown cannot hold its body" in left["reason"]
    assert not wiki.publish().changed


def test_attachments_keep_their_names_next_to_their_page(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    _result, _files = wiki.markdown()
    home = tmp_path / wiki.tree["src"]
    (home / "index.md").write_text(
        "# Guide\n\n![logo](logo.png){width=30}\n\n[data](a%20b.csv)\n", encoding="utf-8"
    )
    (home / "Setup/index.md").write_text("# Setup\n\n![logo](logo.png)\n", encoding="utf-8")
    for name, content in {"logo.png": "1", "a b.csv": "x", "Setup/logo.png": "2"}.items():
        (home / name).write_text(content, encoding="utf-8")
    options = {**wiki.tree, "src": str(home)}
    assert wiki.run("tree", **options)[0].changed
    wiki.folder = tmp_path / "again"
    wiki._folder = wiki.folder
    result, files = wiki.markdown()
    assert result["left_out"] == []
    assert files["index.md"] == "# Guide\n\n![logo](logo.png){width=30}\n\n[data](a%20b.csv)\n"
    assert (tmp_path / "again" / wiki.tree["src"] / "a b.csv").read_text("utf-8") == "x"
    assert "![logo](2001-logo.png)" in files["Setup/index.md"]
    assert "logo.png: 2001-logo.png" in files["Setup/index.md"]
    assert not wiki.publish().changed
