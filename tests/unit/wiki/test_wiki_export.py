# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages as files: `wiki_tree` reads from them what the server has, or they are left out by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.core.export.file_names import (
    FileNames,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.export.service_export import (
    ServiceState,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.page import Page
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree.existing_pages import (
    ExistingTree,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree.source_files import (
    read_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree.wanted_pages import (
    WantedPages,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.wiki.tree.wiki_export import (
    ExportedTree,
    TreeLayout,
    WikiExportOptions,
    page_file,
)

TITLES = [
    "Home",
    "../../evil",
    "README",
    "a: b",
    "1.10",
    "yes",
    "'\"",
    "Größe  & more",
    "# x",
    "---",
]
BODIES = ["", "<p>x</p>", "---\ntitle: y\n---\n<h1>other</h1>", "<ac:link/>", "<p>\r\n\u2028é</p>"]


def page(number: int, title: str, parent: int | None = None, body: str = "<p>x</p>") -> Page:
    above = None if parent is None else str(parent)
    return Page(str(number), title, "REL", 1, "url", body=body, parent=above)


def layout(pages: list[Page]) -> tuple[dict[str, str], list[str]]:
    """The files, and the names of what is left out."""
    state = ServiceState()
    texts = {one.id: page_file(one, ("a",), state) for one in pages}
    tree = ExistingTree(pages[0], {one.id: one for one in pages})
    files = TreeLayout(tree, texts, FileNames(), state).files("wiki/home")
    return files, [one["name"] for one in state.left_out]


@pytest.mark.parametrize("body", BODIES)
def test_what_is_written_is_read_again(tmp_path: Path, body: str) -> None:
    pages = [page(n, title, None if n == 0 else n // 3, body) for n, title in enumerate(TITLES)]
    files, left_out = layout(pages)
    assert left_out == []
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    read = WantedPages(read_folder(str(tmp_path / "wiki/home"), []), "", None, lambda text: None)
    wanted = {one.title: one for one in read.all()}
    assert set(wanted) == {" ".join(title.split()) for title in TITLES}
    assert {one.body for one in wanted.values()} == {body.lstrip("\n")}
    assert {one.labels for one in wanted.values()} == {("a",)}
    above = {one.source.key: one.title for one in wanted.values()}
    for one in pages[1:]:
        found = wanted[" ".join(one.title.split())].source
        assert above[str(found.parent)] == " ".join(pages[int(str(one.parent))].title.split())


@pytest.mark.parametrize(
    "odd",
    [
        page(2, "Odd", 1, "<p>"),
        page(2, "x" * 300, 1),
        page(2, "\x07", 1),
        page(2, "\ud800", 1),
        page(2, "HOME", 1),
        page(2, "Odd", 1, "<p>\ud800</p>"),
    ],
)
def test_a_page_that_cannot_be_a_file_goes_with_what_is_below(odd: Page) -> None:
    pages = [page(1, "Home"), odd, page(3, "Below", 2), page(4, "Beside", 1)]
    files, left_out = layout(pages)
    assert sorted(files) == ["wiki/home/Beside.xml", "wiki/home/index.xml"]
    assert len(left_out) == 2
    assert "Below" in left_out


def test_labels_that_are_not_told_are_not_managed() -> None:
    state = ServiceState()
    assert page_file(page(1, "Home"), None, state) == "---\ntitle: Home\n---\n<p>x</p>"
    assert [one["kind"] for one in state.left_out] == ["labels"]
    with pytest.raises(ToolchainError, match="does not send the body"):
        page_file(Page("1", "Home", "REL", 1, "url"), (), state)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (ExportedTree(), r"trees\[0\]: give page_id, or space"),
        (ExportedTree(page_id="1", space="A"), r"trees\[0\]: give page_id, or space"),
        (ExportedTree(page_id="1", title="A"), r"trees\[0\]\.title goes with space"),
    ],
)
def test_trees_that_name_no_page_are_refused(tree: ExportedTree, said: str) -> None:
    with pytest.raises(ToolchainError, match=said):
        WikiExportOptions(dest="x", trees=[tree]).require_sense()
