# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that edits of pages in the wiki go back into the Markdown of their tree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree import wiki_tree
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import adopted_objects
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.accounts import Accounts
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.adoption import (
    Exported,
    exports,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.folder_edits import (
    FolderEdits,
)
from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.integration.wiki import test_wiki_exported_access
from tests.integration.wiki.test_wiki_exported_access import DIALECTS, MODULES

Fresh = Callable[[str], Sandbox]
FILES = {
    "index.md": "# Guidebook\n\nSee [first steps](guide/first.md#the-end).\n",
    "guide/first.md": "---\ntitle: First steps\n# a comment\nlabels: [start]\n---\n# First steps\n\n"
    "Some *text*  of mine.\n\n* one\n* two\n\n## The end\n\n[home](../index.md)\n",
    "guide/second.md": "# Second\n\n- [ ] do it\n",
}


class Wiki(test_wiki_exported_access.Wiki):
    """A wiki with a tree that was published, and the folder that describes it."""

    def __init__(self, fresh: Fresh, dialect: str, folder: Path) -> None:
        super().__init__(fresh, dialect, folder / "export")
        self.state = folder / "state"
        self.write(FILES)
        tree = {"src": "docs", "space": "REL", "parent_id": "1003"}
        (self.state / "wiki.yml").write_text(json.dumps({"trees": [tree]}), "utf-8")
        self.publish()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            file = self.state / "docs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")

    def text(self, name: str) -> str:
        return (self.state / "docs" / name).read_bytes().decode()

    def publish(self) -> Any:
        docs = str(self.state / "docs")
        return self.run("tree", src=docs, space="REL", parent_id="1003")[0]

    def edit(self, title: str, **options: Any) -> None:
        """Edit a page by hand. `old` and `new` are texts in its body."""
        old, new = options.pop("old", ""), options.pop("new", "")
        body = self.page(title)["body"]
        assert old in body
        assert self.run("page", space="REL", title=title, body=body.replace(old, new), **options)[
            0
        ].changed

    def page(self, title: str) -> Any:
        return self.run("info", space="REL", title=title)[1]["page"]

    def retitle(self, title: str, new: str, **options: Any) -> None:
        """Rename a page by hand."""
        page_id = self.page(title)["id"]
        self.run("page", page_id=page_id, space="REL", title=new, **options)

    def attach(self, title: str, name: str, content: bytes) -> None:
        """Add an attachment to a page by hand."""
        file = self.state.parent / name
        file.write_bytes(content)
        attachments = [{"src": str(file), "name": name}]
        self.run("page", space="REL", title=title, attachments=attachments)

    def adopt(self, title: str, there: str = "", *more: tuple[str, str]) -> list[dict[str, Any]]:
        """Adopt pages. Return the failures.

        :param there: the title in the wiki, if it differs from that of the file
        """
        findings: list[dict[str, Any]] = []
        for name, title_there in ((title, there), *more):
            finding: dict[str, Any] = {
                "service": "wiki",
                "kind": "page",
                "name": f"REL/{name}",
                "id": "1",
            }
            finding |= {"status": "drift", "action": "update"}
            sides = {"before": {"title": title_there}, "after": {"title": name}}
            findings.append({**finding, **(sides if title_there else {})})
        result, _state = self.export(
            trees=exports(findings)["wiki"]["trees"],
            attachments=True,
            restrictions=False,
            spaces=False,
            published=True,
            overwrite=True,
        )
        folder = Path(str(self._folder))
        exported = Exported.read(folder, {"wiki": result}, Accounts())
        edits = FolderEdits.read(self.state, None)
        work = adopted_objects.Adoption(edits, exported, deletions=False)
        for finding in findings:
            work.adopt(finding)
        self.patch = edits.patch(edits.texts())
        edits.write(edits.texts())
        return work.failures


@pytest.fixture(autouse=True)
def more_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages import (
        wiki_page,
        wiki_page_info,
    )

    monkeypatch.setitem(MODULES, "tree", (wiki_tree.WikiTreeOperation, wiki_tree.WikiTreeOptions))
    monkeypatch.setitem(MODULES, "page", (wiki_page.WikiPageOperation, wiki_page.WikiPageOptions))
    monkeypatch.setitem(
        MODULES, "info", (wiki_page_info.WikiPageInfoOperation, wiki_page_info.WikiPageInfoOptions)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_edit_goes_back_and_nothing_is_left(fresh: Fresh, dialect: str, tmp_path: Path) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    link = '<ac:link><ri:page ri:content-title="Second"/></ac:link>'
    wiki.edit("First steps", old="two", new=f"two, see {link}", labels=["start", "more"])
    assert wiki.adopt("First steps") == []
    assert wiki.text("guide/first.md") == FILES["guide/first.md"].replace(
        "* two", "* two, see [Second](second.md)"
    ).replace("labels: [start]", "labels: [more, start]")
    assert not wiki.publish().changed
    others = {name: wiki.text(name) for name in FILES if name != "guide/first.md"}
    assert all(text == FILES[name] for name, text in others.items())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_changes_of_both_sides_are_merged(fresh: Fresh, dialect: str, tmp_path: Path) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    wiki.edit("First steps", old="<li>two", new="<li>2")
    text = FILES["guide/first.md"].replace("## The end", "A line of Git.\n\n## The end")
    wiki.write({"guide/first.md": text})
    assert wiki.adopt("First steps") == []
    assert wiki.text("guide/first.md") == text.replace("* two", "* 2")
    # only what the file has changed is left
    assert wiki.publish().changed
    assert "<li>2</li>" in wiki.page("First steps")["body"]
    assert not wiki.publish().changed


def test_block_that_both_sides_changed_is_a_conflict(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.edit("First steps", old="of mine", new="of the wiki")
    text = FILES["guide/first.md"].replace("of mine", "of Git")
    wiki.write({"guide/first.md": text})
    (failure,) = wiki.adopt("First steps")
    assert failure["error"] == "conflict"
    assert (
        "guide/first.md:8: this block was changed here and in the wiki by reporter"
        in (failure["reason"])
    )
    assert wiki.text("guide/first.md") == text


def test_page_that_the_file_cannot_hold_is_left_alone(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    image = '<p>see <ac:image><ri:attachment ri:filename="new.png"/></ac:image></p>'
    wiki.edit("Guidebook", old="</p>", new=f"</p>{image}")
    (failure,) = wiki.adopt("Guidebook")
    assert "index.md cannot hold the" in failure["reason"]
    assert wiki.text("index.md") == FILES["index.md"]


def test_other_line_ends_and_marks_stay(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    text = "\ufeff" + FILES["guide/second.md"].replace("\n", "\r\n") + "\nend  of it\r\n"
    wiki.write({"guide/second.md": text})
    wiki.publish()
    wiki.edit("Second", old="do it", new="do it all")
    assert wiki.adopt("Second") == []
    assert wiki.text("guide/second.md") == text.replace("do it", "do it all")


@pytest.mark.parametrize("dialect", ["server", "cloud_v2"])
def test_new_title_goes_where_the_file_has_it(fresh: Fresh, dialect: str, tmp_path: Path) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    wiki.retitle("First steps", "All *steps*: 1")
    assert wiki.adopt("First steps", "All *steps*: 1") == []
    # the heading would be part of the page if it were not its title
    expected = FILES["guide/first.md"].replace("title: First steps", "title: 'All *steps*: 1'")
    expected = expected.replace("# First steps", "# All \\*steps\\*: 1")
    assert wiki.text("guide/first.md") == expected
    assert wiki.text("index.md") == FILES["index.md"]
    assert not wiki.publish().changed
    wiki.retitle("Second", "Third")
    wiki.edit("Third", old="do it", new="do it all")
    assert wiki.adopt("Second", "Third") == []
    assert wiki.text("guide/second.md") == "# Third\n\n- [ ] do it all\n"
    wiki.retitle("Guidebook", "Manual")
    assert wiki.adopt("Guidebook", "Manual") == []
    assert wiki.text("index.md") == FILES["index.md"].replace("Guidebook", "Manual")
    assert not wiki.publish().changed


def test_new_title_of_a_file_in_another_style(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    files = {
        "lined.md": "Lined\r\n=====\r\n\r\ntext of [me](lined.md)  \r\nand me\r\n",
        "signed.md": "## Signed ## {#there}\n\ntext\n\n# Signed too\n",
        "bare.md": "only text\n",
        "attributes.md": "# Attributes {#one .two}\n\ntext\n",
        "marked.md": "\ufeff# Marked\n\ntext\n",
        "html.md": "<h1>Html</h1>\n\ntext\n",
    }
    wiki.write(files)
    wiki.publish()
    for title in ("Lined", "Signed too", "bare", "Attributes", "Marked", "Html"):
        wiki.retitle(title, f"{title} #")
    for title in ("Lined", "Signed too", "bare", "Attributes", "Marked"):
        assert [one["reason"] for one in wiki.adopt(title, f"{title} #")] == [], title
    assert wiki.text("lined.md") == files["lined.md"].replace("Lined\r", "Lined \\#\r")
    assert wiki.text("signed.md") == files["signed.md"].replace("Signed too", "Signed too \\#")
    assert wiki.text("marked.md") == "\ufeff# Marked \\#\n\ntext\n"
    assert wiki.text("bare.md") == "---\ntitle: 'bare #'\n---\n\nonly text\n"
    attributes = files["attributes.md"].replace("Attributes", "Attributes \\#")
    assert wiki.text("attributes.md") == attributes
    (failure,) = wiki.adopt("Html", "Html #")
    assert "html.md: the heading 'Html' is its title" in failure["reason"]
    assert wiki.text("html.md") == files["html.md"]


@pytest.mark.parametrize(
    ("dialect", "name"), [("server", "new one.png"), ("cloud_v2", "new-one.png")]
)
def test_new_attachments_are_stored_beside_the_file(
    fresh: Fresh, dialect: str, name: str, tmp_path: Path
) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    image = f'<p>see <ac:image><ri:attachment ri:filename="{name}"/></ac:image></p>'
    wiki.attach("First steps", name, b"\x89PNG\0")
    wiki.attach("First steps", "unused.png", b"unused")
    wiki.edit("First steps", old=" of mine.</p>", new=f" of mine.</p>{image}")
    wiki.attach("Second", name, b"\x89PNG\0")
    wiki.edit("Second", old="do it", new=f"do it {image[7:-4]}")
    assert wiki.adopt("First steps", "", ("Second", "")) == []
    text, address = FILES["guide/first.md"], name.replace(" ", "%20")
    expected = text.replace("* one", f"see ![]({address})\n\n* one")
    assert wiki.text("guide/first.md") == expected
    assert wiki.text("guide/second.md") == f"# Second\n\n- [ ] do it ![]({address})\n"
    files = {path.name: path for path in (wiki.state / "docs").rglob("*.png")}
    assert files[name].read_bytes() == b"\x89PNG\0"
    assert [*files] == [name]
    assert f"\nBinary files /dev/null and b/docs/guide/{name} differ\n" in wiki.patch
    assert not wiki.publish().changed


@pytest.mark.parametrize("name", ["new.png", "New.PNG", "new.md"])
def test_new_attachment_replaces_no_file(name: str, fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.write({"guide/new.png": "of Git"})
    wiki.attach("First steps", name, b"of the wiki")
    image = f'<p>see <ac:link><ri:attachment ri:filename="{name}"/></ac:link></p>'
    wiki.edit("First steps", old=" of mine.</p>", new=f" of mine.</p>{image}")
    (failure,) = wiki.adopt("First steps")
    reason = "cannot hold" if name == "new.md" else f"'{name}' would replace guide/{name}"
    assert reason in failure["reason"]
    assert wiki.text("guide/first.md") == FILES["guide/first.md"]
    assert wiki.text("guide/new.png") == "of Git"
    assert len([*(wiki.state / "docs/guide").iterdir()]) == 3


@pytest.mark.parametrize("dialect", ["server", "cloud_v2"])
def test_titles_of_both_sides_are_merged(fresh: Fresh, dialect: str, tmp_path: Path) -> None:
    wiki = Wiki(fresh, dialect, tmp_path)
    files = {"guide/second.md": "# Of Git\n\n- [ ] do it\n"}
    wiki.write(files)
    wiki.edit("Second", old="do it", new="do it all")
    # the wiki did not change the title
    assert wiki.adopt("Of Git", "Second") == []
    files = {"guide/second.md": "# Of Git\n\n- [ ] do it all\n"}
    assert wiki.text("guide/second.md") == files["guide/second.md"]
    wiki.retitle("Second", "Of the wiki")
    (failure,) = wiki.adopt("Of Git", "Of the wiki")
    assert failure["error"] == "conflict"
    assert "guide/second.md: the title 'Of the wiki' was changed here and in" in failure["reason"]
    assert wiki.text("guide/second.md") == files["guide/second.md"]
    wiki.write({"guide/second.md": "# Second\n\n- [ ] do it all\n"})
    assert wiki.adopt("Second", "Of the wiki") == []
    assert wiki.text("guide/second.md") == "# Of the wiki\n\n- [ ] do it all\n"
    assert not wiki.publish().changed


def test_links_to_a_page_with_a_new_title_stay(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.retitle("First steps", "Steps")
    wiki.edit("Guidebook", old="See", new="Look at")
    text = f"{FILES['index.md']}\nmore of Git\n"
    wiki.write({"index.md": text})
    assert wiki.adopt("First steps", "Steps", ("Guidebook", "")) == []
    assert wiki.text("index.md") == text.replace("See", "Look at")
    assert wiki.text("guide/first.md") == FILES["guide/first.md"].replace("First steps", "Steps")
    assert [page["action"] for page in wiki.publish().result["pages"]].count("unchanged") == 3
    assert not wiki.publish().changed


def test_labels_of_a_file_without_front_matter(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    tree = {"src": "docs", "space": "REL", "parent_id": "1003", "labels": ["docs"]}
    (wiki.state / "wiki.yml").write_text(json.dumps({"trees": [tree]}), "utf-8")
    wiki.edit("Second", labels=["docs", "more"], old="do it", new="do it all")
    assert wiki.adopt("Second") == []
    assert (
        wiki.text("guide/second.md") == "---\nlabels:\n- more\n---\n\n# Second\n\n- [ ] do it all\n"
    )


def test_new_title_needs_the_mark_and_no_other_page(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.retitle("Second", "Third")
    wiki.write({"guide/third.md": "# Third\n"})
    (failure,) = wiki.adopt("Second", "Third")
    assert "the title 'Third' is also used by" in failure["reason"]
    (failure,) = wiki.adopt("First steps", "Third")
    assert "the mark of the page 'Third' does not name first.md" in failure["reason"]
    assert wiki.text("guide/second.md") == FILES["guide/second.md"]


def test_playbooks_adopt_a_page(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.attach("Second", "new.png", b"\x89PNG\0")
    image = '<ac:image><ri:attachment ri:filename="new.png"/></ac:image>'
    wiki.edit("Second", old="do it", new=f"do it all {image}")
    wiki.retitle("Second", "Third")
    login = connections.connection("wiki", wiki.sandbox.urls["wiki"])
    variables = {
        "desired_state_folder": "state",
        "enforce_connections": {"wiki": login},
        "drift_report": "report",
    }
    for name, *arguments in (["drift"], ["adopt", "--check"], ["adopt"], ["drift"]):
        chosen = {"adopt_report": "report", "adopt_findings": [{"name": "REL/Second"}]}
        more = chosen if name == "adopt" else {}
        play = {"import_playbook": f"delivery.toolchain.{name}", "vars": {**variables, **more}}
        run = playbook.run(tmp_path, [play], arguments=arguments, seconds=900)
        assert run.code == 0, run.output
        if arguments:
            assert "Binary files /dev/null and b/docs/guide/new.png differ" in run.output
            assert wiki.text("guide/second.md") == FILES["guide/second.md"]
            assert not (wiki.state / "docs/guide/new.png").exists()
    report = json.loads((tmp_path / "report/report.json").read_text("utf-8"))
    assert report["findings"] == []
    assert (wiki.state / "docs/guide/new.png").read_bytes() == b"\x89PNG\0"
    assert wiki.text("guide/second.md") == "# Third\n\n- [ ] do it all ![](new.png)\n"
