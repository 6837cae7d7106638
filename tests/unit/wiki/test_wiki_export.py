# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the export of pages as files: `wiki_tree` reads the same pages from them; other pages are
left out by name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.operations.export_folder import (
    FileNames,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.operations.service_export import (
    ServiceState,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.page import Page
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.existing_pages import (
    ExistingTree,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.markdown_export import (
    natural_names,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.source_files import (
    TreeOptions,
    read_folder,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wanted_pages import (
    WantedPages,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wiki_export import (
    ExportedTree,
    TreeLayout,
    WikiExportOperation,
    WikiExportOptions,
    file_name,
    page_file,
)
from tests.unit.stub import Reply, Seen, Stub, connection_to
from tests.unit.wiki import server

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


def layout(pages: list[Page]) -> tuple[dict[str, Any], list[str]]:
    """Return the files, and the names of pages that are left out."""
    state = ServiceState()
    texts = {one.id: page_file(one, ("a",), state) for one in pages}
    tree = ExistingTree(pages[0], {one.id: one for one in pages})
    files = TreeLayout(tree, texts, FileNames(), state).files("wiki/home")
    return files, [one["name"] for one in state.left_out]


@pytest.mark.parametrize("body", BODIES)
def test_exported_pages_can_be_read_again(tmp_path: Path, body: str) -> None:
    pages = [page(n, title, None if n == 0 else n // 3, body) for n, title in enumerate(TITLES)]
    files, left_out = layout(pages)
    assert left_out == []
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    read = WantedPages(
        read_folder(str(tmp_path / "wiki/home"), []), TreeOptions("", "REL"), lambda text: None
    )
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
def test_unexportable_page_is_omitted_with_its_children(odd: Page) -> None:
    pages = [page(1, "Home"), odd, page(3, "Below", 2), page(4, "Beside", 1)]
    files, left_out = layout(pages)
    assert sorted(files) == ["wiki/home/Beside.xml", "wiki/home/index.xml"]
    assert len(left_out) == 2
    assert "Below" in left_out


def test_hidden_labels_are_not_managed() -> None:
    state = ServiceState()
    assert page_file(page(1, "Home"), None, state) == "---\ntitle: Home\n---\n<p>x</p>"
    assert [one["kind"] for one in state.left_out] == ["labels"]
    with pytest.raises(ToolchainError, match="does not send the body"):
        page_file(Page("1", "Home", "REL", 1, "url"), (), state)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (ExportedTree(), r"trees\[0\]: page_id or space is missing: set one of them"),
        (
            ExportedTree(page_id="1", space="A"),
            r"trees\[0\]: space cannot be combined with page_id",
        ),
        (ExportedTree(page_id="1", title="A"), r"trees\[0\]: title requires space"),
    ],
)
def test_trees_without_a_page_are_rejected(tree: ExportedTree, said: str) -> None:
    with pytest.raises(ToolchainError, match=said):
        typed_options.check(WikiExportOptions(dest="x", trees=[tree]))


NAMES = [
    *("plan.png", "plan.PNG", "plan.jpg", "Plan.png", "plan", "..", "../x.png", ".git", "CON.txt"),
    *("notes.md", "notes.xml", "wiki.yml", "a.yaml", "a.json", "index.html", "README", "x" * 300),
    *("a b.tar.gz", "\ud800.png", "ü%2f..%2f#?.png", "a.sh -c", "-rf.png", "é" * 200 + ".png"),
]


def test_attachment_names_differ_from_each_other_and_from_pages() -> None:
    names = FileNames()
    files = [file_name(names, "1003", name) for name in NAMES]
    assert len({file.casefold() for file in files}) == len(NAMES)
    for file in files:
        assert file.startswith("1003-")
        assert "/" not in file
        assert len(file.encode()) < 256
        assert file.count(".") == 1
        assert file.rpartition(".")[2] not in ("md", "xml", "yml", "yaml", "json", "")
    assert files[:2] == ["1003-plan.png", files[1]]
    assert "/" not in file_name(FileNames(), "../../x", "plan.png")


BODY = (
    '<p><ac:image><ri:attachment ri:filename="plan.png"/></ac:image>'
    '<ac:image><ri:attachment ri:filename="gone.png"/></ac:image></p>'
)
FILES = {
    "plan.png": (1, b"\x89PNG\x00\xff", ""),
    "notes.md": (2, b"# no page\n", ""),
    "big.bin": (1, b"x" * 100, ""),
    "../../evil.png": (1, b"evil", ""),
}


def export(stub: Stub, dest: Path, **options: Any) -> tuple[dict[str, Any], bool]:
    """Run the export once; return its result, and whether something was written."""
    connection = connection_to(stub.url, "wiki", settings={"retries": 0})
    task = Task(connection, lambda text: None, read_only=False)
    given = {"max_size": 99, "spaces": False, "restrictions": False, **options}
    trees = [ExportedTree(page_id="7")]
    operation = WikiExportOperation(task, WikiExportOptions(dest=str(dest), trees=trees, **given))
    plan = operation.plan()
    assert plan.make_diff is not None
    plan.make_diff()
    if plan.changed:
        operation.apply(plan)
    return dict(plan.result), plan.changed


def test_attachments_are_exported_next_to_their_page_and_restored(tmp_path: Path) -> None:
    dest = tmp_path / "a" / "b"
    wiki = server.Wiki(server.page(BODY, files=dict(FILES)))
    with Stub(response=wiki) as stub:
        result, changed = export(stub, dest)
        asked = [seen.path for seen in stub.seen]
        again = export(stub, dest)
    assert [changed, again[1]] == [True, False]
    assert {one["action"] for one in again[0]["files"]} == {"unchanged"}
    left_out = {one["name"]: one["reason"] for one in result["left_out"]}
    assert left_out == {
        "../../evil.png of the page Notes": (
            "'../../evil.png' is not a valid attachment name: use a file name without slashes,"
            " quotation marks, control characters and outer blanks"
        ),
        "big.bin of the page Notes": "it has 100 bytes, more than max_size",
    }
    assert len([path for path in asked if "/download/" in path]) == 2
    (tree,) = yaml.safe_load((dest / "wiki.yml").read_text("utf-8"))["trees"]
    assert tree["attachments"] is True
    (page,) = WantedPages(
        read_folder(str(dest / tree["src"]), []), TreeOptions("", "REL"), lambda text: None
    ).all()
    read = {name: Path(file).read_bytes() for name, file in page.files.items()}
    assert read == {name: FILES[name][1] for name in ("notes.md", "plan.png")}
    assert page.body == BODY
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("again", "kept"),
    [
        ('<p ac:local-id="2b">One</p><table><tbody><tr><td><p>a</p></td></tr></tbody></table>', 1),
        ("<p>Two</p><table><tr><td>a</td></tr></table>", 0),
    ],
)
def test_second_export_keeps_pages_that_only_the_wiki_rewrote(
    tmp_path: Path, again: str, kept: int
) -> None:
    first = '<p ac:local-id="1a">One</p><table><tr><td>a</td></tr></table>'
    found = []
    for body in (first, again):
        with Stub(response=server.Wiki(server.page(body, files={}))) as stub:
            _result, changed = export(stub, tmp_path)
        (file,) = tmp_path.rglob("index.xml")
        found.append((changed, file.read_text("utf-8")))
    assert found[1] == ((False, found[0][1]) if kept else (True, found[0][1].replace(first, again)))


def test_attachments_that_differ_only_in_case_are_reported(tmp_path: Path) -> None:
    """Verify that `wiki_tree` reads the exported folder: it rejects two such names."""
    files = {"Plan.png": (1, b"a", ""), "plan.PNG": (1, b"b", "")}
    with Stub(response=server.Wiki(server.page(files=files))) as stub:
        result, _changed = export(stub, tmp_path)
    (left_out,) = result["left_out"]
    assert left_out["name"] == "plan.PNG of the page Notes"
    assert left_out["reason"] == "its name equals 'Plan.png' without regard to case"
    (tree,) = yaml.safe_load((tmp_path / "wiki.yml").read_text("utf-8"))["trees"]
    folder = read_folder(str(tmp_path / tree["src"]), [])
    (page,) = WantedPages(folder, TreeOptions("", "REL"), lambda text: None).all()
    assert list(page.files) == ["Plan.png"]


class Broken(server.Wiki):
    """A wiki whose downloads break off, or that sends another file than it announced."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(server.page(files={"plan.png": (1, b"x" * 1000, "")}))
        self.reply = reply

    def _download(self, seen: Seen) -> Reply:
        return self.reply


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(body=b"x" * 1000, truncate=500), "network"),
        (Reply(body=b"x" * 500), "protocol"),
        (Reply(body=b"x" * 1001), "protocol"),
        (Reply(500, "broken"), "server"),
    ],
)
def test_truncated_download_changes_nothing(tmp_path: Path, reply: Reply, kind: str) -> None:
    dest = tmp_path / "desired"
    with Stub(response=Broken(reply)) as stub, pytest.raises(ToolchainError) as caught:
        export(stub, dest, max_size=10**6)
    assert caught.value.kind == kind
    assert not dest.exists()


@pytest.mark.parametrize("status", [403, 404])
def test_unreadable_attachment_is_reported(tmp_path: Path, status: int) -> None:
    with Stub(response=Broken(Reply(status, "no"))) as stub:
        result, _changed = export(stub, tmp_path, max_size=10**6)
    ((name, reason),) = [(one["name"], one["reason"]) for one in result["left_out"]]
    assert name == "plan.png of the page Notes"
    assert str(status) in reason


def test_attachments_can_be_excluded(tmp_path: Path) -> None:
    with Stub(response=server.Wiki(server.page(BODY, files=dict(FILES)))) as stub:
        result, _changed = export(stub, tmp_path, attachments=False)
        assert not [seen for seen in stub.seen if "attachment" in seen.target]
    assert result["left_out"] == []
    assert result["not_exported"][0].startswith("Spaces, attachments, restrictions, comments and")
    (tree,) = yaml.safe_load((tmp_path / "wiki.yml").read_text("utf-8"))["trees"]
    assert tree["attachments"] is False


def test_negative_limit_is_rejected() -> None:
    options = WikiExportOptions(dest="x", trees=[ExportedTree(page_id="1")], max_size=-1)
    with pytest.raises(ToolchainError, match="max_size is -1: set it to 0 or more"):
        typed_options.check(options)


@pytest.mark.parametrize("path", ["gone.png", "../out.png", "index.xml"])
def test_missing_listed_file_is_reported(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (tmp_path / "out.png").write_bytes(b"not of the folder")
    text = f"---\ntitle: Home\nattachments:\n  a.png: {path}\n  b.png: null\n---\n<p>x</p>"
    (folder / "index.xml").write_text(text, encoding="utf-8")
    reported = f"index.xml:1: attachments: the file '{path}' does not exist"
    with pytest.raises(ToolchainError, match=re.escape(reported)):
        WantedPages(read_folder(str(folder), []), TreeOptions("", "REL"), lambda text: None).all()
    left = WantedPages(
        read_folder(str(folder), []), TreeOptions("", "REL", attachments=False), lambda text: None
    ).all()
    assert [page.files for page in left] == [{}]


@pytest.mark.parametrize(
    "name", ["../a.png", "CON.png", "nul.tar.gz", "lpt1.txt", "notes.md", ".a.png", "a.", "a\n.png"]
)
def test_attachment_with_an_unsafe_name_has_another_file(name: str) -> None:
    assert natural_names({name: "x.bin", "console.png": "y.png"}, set()) == {"y.png": "console.png"}
