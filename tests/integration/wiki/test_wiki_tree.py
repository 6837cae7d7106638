# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `wiki_tree` with the sandbox: pages match the folder after changes on either side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import document
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.existing_pages import (
    KEY,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wiki_tree import (
    WikiTreeOperation,
    WikiTreeOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections
from tests.helpers.options import build

LOGIN = ("reporter", "reporter-password")
CONTENT = "/rest/api/content"
FILES = {
    "index.md": "# Guidebook\n\nSee [first steps](guide/first.md#the-end) and [all](guide/).\n",
    "guide/first.md": "---\ntitle: First steps\nlabels: [start]\n---\n# Begin\n\n"
    "![plan](../img/plan.png)\n\n## The end\n\n[home](../index.md) [data](data.csv)\n",
    "guide/second.md": "# Second\n\n- [ ] do it\n",
    "guide/data.csv": "a,b\n",
    "img/plan.png": "not really an image",
    "old.xml": '<h2>Old &amp; new</h2><p>x</p><ac:image><ri:attachment ri:filename="a.txt" /></ac:image>',
    "a.txt": "a",
}
TITLES = {"Guidebook": "index.md", "guide": "guide/", "First steps": "guide/first.md"}


class Tree:
    """A folder, and tasks that publish it below the page 1003."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.warnings: list[str] = []
        self.connection: dict[str, Any] = {}
        self.http: dict[str, Any] = {"writes": 0, "requests": 0}
        self.diff: tuple[str, str] = ("", "")

    def write(self, files: Mapping[str, str | None]) -> None:
        for name, text in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text, encoding="utf-8")

    def __call__(self, *, check: bool = False, **more: Any) -> tuple[bool, dict[str, str]]:
        """Run the task. Return whether it changed something, and the actions by path."""
        login = {**connections.LOGINS["wiki"], **more.pop("login", {})}
        settings = {"timeout": 10.0, "retries": 0, "retry_max_wait": 0.0}
        given = {"url": self.sandbox.urls["wiki"], **login, **settings, **self.connection}
        task = Task(
            resolve(SERVICES["wiki"], given.get, environ={}),
            self.warnings.append,
            read_only=check,
            diff=more.pop("diff", False),
        )
        options = {"src": str(self.folder), "space": "REL", "parent_id": "1003", **more}
        operation = WikiTreeOperation(task, build(WikiTreeOptions, **options))
        try:
            plan = operation.plan()
            self.diff = plan.diff()
            result = dict(plan.result)
            if plan.changed and not check:
                result |= operation.apply(plan)
            elif plan.failure is not None:
                raise plan.failure
            elif plan.changed:
                operation.preflight(plan)
        finally:
            self.http = task.accounting.as_dict()
        self.pages, self.comments = result["pages"], result["comments"]
        self.drafts, self.edited = result["drafts"], result["edited"]
        self.without_file = result["without_file"]
        return plan.changed, {page["path"]: page["action"] for page in result["pages"]}

    def fails(self, **more: Any) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self(**more)
        return caught.value

    def page(self, title: str, **query: str) -> dict[str, Any]:
        expand = "body.storage,version,ancestors,metadata.labels,children.attachment"
        query = {"spaceKey": "REL", "title": title, "expand": f"{expand},metadata.properties.{KEY}"}
        address = self.sandbox.urls["wiki"] + CONTENT
        found = requests.get(address, params=query, auth=LOGIN, timeout=10).json()["results"]
        return dict(found[0]) if found else {}

    def body(self, title: str) -> str:
        return str(self.page(title)["body"]["storage"]["value"])

    def above(self, title: str) -> str:
        return str(self.page(title)["ancestors"][-1]["title"])

    def send(self, method: str, path: str, members: Any = None) -> Any:
        address = f"{self.sandbox.urls['wiki']}{CONTENT}{path}"
        response = requests.request(method, address, json=members, auth=LOGIN, timeout=10)
        assert response.ok, response.text
        return response.json() if response.content else None

    def make(self, title: str, parent: str = "1003", body: str = "<p>own</p>") -> str:
        """Create a page outside of the tree, like another user."""
        members = {
            "type": "page",
            "title": title,
            "space": {"key": "REL"},
            "ancestors": [{"id": parent}],
            "body": {"storage": {"value": body, "representation": "storage"}},
        }
        return str(self.send("POST", "", members)["id"])


@pytest.fixture(scope="module")
def shared(fresh: Callable[[str], Sandbox]) -> Sandbox:
    return fresh("real")


@pytest.fixture
def tree(shared: Sandbox, tmp_path: Path) -> Iterator[Tree]:
    found = Tree(shared, tmp_path / "docs")
    found.write(FILES)
    yield found
    shared.reset()


def test_folder_becomes_a_tree_of_pages(tree: Tree) -> None:
    changed, actions = tree(labels=["Docs"])
    assert changed
    assert actions == dict.fromkeys(
        ["index.md", "guide/", "old.xml", "guide/first.md", "guide/second.md"], "created"
    )
    assert [tree.above(each) for each in ("Guidebook", "guide", "First steps", "Old & new")] == [
        *("Release notes", "Guidebook", "guide", "Guidebook"),
    ]
    assert 'ac:name="children"' in tree.body("guide")
    home = tree.body("Guidebook")
    assert '<ac:link ac:anchor="the-end"><ri:page ri:content-title="First steps"' in home
    assert '<ri:page ri:content-title="guide"' in home
    first = tree.page("First steps")
    names = [result["title"] for result in first["children"]["attachment"]["results"]]
    assert sorted(names) == ["data.csv", "plan.png"]
    assert [result["name"] for result in first["metadata"]["labels"]["results"]] == [
        "docs",
        "start",
    ]
    assert '<ac:parameter ac:name="">the-end</ac:parameter>' in tree.body("First steps")
    assert [
        result["title"] for result in tree.page("Old & new")["children"]["attachment"]["results"]
    ] == ["a.txt"]
    mark = first["metadata"]["properties"][KEY]["value"]
    assert (mark["tree"], mark["file"]) == (tree.page("Guidebook")["id"], "guide/first.md")
    assert {page["title"] for page in tree.pages} >= set(TITLES)
    assert all(page["id"] and page["url"] and page["version"] == 1 for page in tree.pages)


def test_unchanged_tree_takes_few_requests_and_no_write(tree: Tree) -> None:
    tree(labels=["Docs"])
    changed, actions = tree(labels=["Docs"])
    assert (changed, set(actions.values())) == (False, {"unchanged"})
    assert tree.http["writes"] == 0
    assert (
        tree.http["requests"] <= 3
    )  # the root by title, the pages below it, and the pages below guide
    assert tree.diff == ("", "")


def test_check_mode_predicts_and_writes_nothing(tree: Tree) -> None:
    predicted, foreseen = tree(check=True)
    assert tree.http["writes"] == 0
    before = tree.diff
    assert (predicted, foreseen) == tree()
    assert tree.diff == before
    tree.write({"guide/second.md": "# Third\n\ntext", "guide/first.md": None})
    tree.write({"index.md": "# Guidebook\n\n"})
    predicted, foreseen = tree(check=True, prune=True)
    before = tree.diff
    assert (predicted, foreseen) == tree(prune=True)
    assert tree.diff == before
    assert foreseen == {
        "index.md": "updated",
        "guide/": "unchanged",
        "old.xml": "unchanged",
        "guide/second.md": "renamed",
        "guide/first.md": "deleted",
    }


def test_only_differences_are_written(tree: Tree) -> None:
    tree()
    tree.write({"guide/second.md": "# Second\n\nother"})
    changed, actions = tree()
    assert [path for path, action in actions.items() if action != "unchanged"] == [
        "guide/second.md"
    ]
    assert changed
    assert tree.http["writes"] == 2  # the page and its mark
    assert tree.page("Second")["version"]["number"] == 2
    assert "+" not in tree.diff[0]
    assert "<p>other</p>" in tree.diff[1]
    tree.write({"img/plan.png": "another image"})
    assert tree()[1]["guide/first.md"] == "updated"
    assert tree.http["writes"] == 1
    assert "plan.png, 19 bytes" in tree.diff[0]
    assert "plan.png, 13 bytes" in tree.diff[1]
    assert "<p>" not in "".join(tree.diff)
    tree.write({"guide/2.md": "# Second\n\nother", "guide/second.md": None})
    assert tree()[1]["guide/2.md"] == "updated"
    assert tree.http["writes"] == 1  # the mark
    assert ("file: guide/second.md" in tree.diff[0], "file: guide/2.md" in tree.diff[1]) == (
        *(True, True),
    )
    assert not tree()[0]


def test_manual_edit_is_reverted(tree: Tree) -> None:
    tree()
    page = tree.page("Second")
    members = {
        "type": "page",
        "title": "Second",
        "version": {"number": 2},
        "body": {"storage": {"value": "<p>by hand</p>", "representation": "storage"}},
    }
    tree.send("PUT", f"/{page['id']}", members)
    assert tree()[1]["guide/second.md"] == "updated"
    assert "by hand" not in tree.body("Second")
    assert not tree()[0]


def test_new_title_renames_and_new_folder_moves(tree: Tree) -> None:
    tree()
    ids = {title: tree.page(title)["id"] for title in ("First steps", "Second", "Guidebook")}
    tree.write({"guide/second.md": "# 2nd\n", "guide/first.md": None})
    tree.write({"index.md": "[first](steps/first.md)\n\n# Guidebook\n"})
    tree.write({"steps/first.md": FILES["guide/first.md"].replace("data.csv", "../guide/data.csv")})
    _changed, actions = tree()
    assert actions["guide/second.md"] == "renamed"
    assert actions["steps/first.md"] == "moved"
    assert ids == {
        "First steps": tree.page("First steps")["id"],
        "Second": tree.page("2nd")["id"],
        "Guidebook": tree.page("Guidebook")["id"],
    }
    assert tree.above("First steps") == "steps"
    assert not tree()[0]


def test_root_is_recognized_by_the_files_below_it(tree: Tree, tmp_path: Path) -> None:
    tree()
    root = tree.page("Guidebook")["id"]
    tree.write({"index.md": "# Manual\n\n[all](guide)"})
    assert tree()[1]["index.md"] == "renamed"
    assert tree.page("Manual")["id"] == root
    assert not tree()[0]
    other = Tree(tree.sandbox, tmp_path / "another product")
    other.write({**FILES, "index.md": "# Other\n"})
    for name in ("guide/first.md", "guide/second.md", "old.xml"):
        other.write({name: FILES[name].replace("it", "that").replace("Begin", "Start") + "\n"})
    assert other.fails().kind == "conflict"
    assert other.http["writes"] == 0


def test_parent_is_found_by_title(tree: Tree) -> None:
    where: dict[str, Any] = {"parent_id": None, "parent_title": " releases"}
    assert tree(check=True, **where)[0]
    assert tree(**where)[0]
    assert (tree(**where)[0], tree.above("Guidebook")) == (False, "Releases")
    assert tree(parent_id=None, parent_title="Handbook")[0]
    assert tree.above("Guidebook") == "Handbook"
    error = tree.fails(parent_id=None, parent_title="Nowhere")
    assert (error.kind, error.message) == (
        "not_found",
        ("parent_title: there is no page 'Nowhere' in the space REL, or the account cannot see it"),
    )
    assert tree.http["writes"] == 0
    assert "parent_id" in tree.fails(parent_title="Handbook").message
    assert "empty" in tree.fails(parent_id=None, parent_title=" ").message


def test_same_files_in_another_folder_do_not_take_the_pages(tree: Tree) -> None:
    tree()
    tree.write({"index.md": "# Manual\n\n[all](guide)"})
    error = tree.fails(parent_id="1001")
    assert (error.kind, tree.http["writes"]) == ("conflict", 0)
    assert tree(parent_id="1001", title_prefix="Copy of ")[0]
    assert "line break" in tree.fails(parent_id="1001", title_prefix="Copy\nof ").message
    assert tree.above("First steps") == "guide"


def test_links_to_pages_and_headings_are_converted(tree: Tree) -> None:
    links = "[a](x.md) [b](#More) [c](x.md#no) [d](index.md#guidebook) [e](#x)"
    tree.write({"x.md": f"# X\n\n{links}\n\n## More"})
    tree()
    body = tree.body("X")
    assert body.count('ri:content-title="X"') == 3
    assert 'ri:content-title="Guidebook"' in body
    assert body.count("ac:anchor=") == body.count('ac:anchor="more"') == 1
    assert tree.warnings == [
        "x.md:3: there is no heading or id '#no'; the link leads to the page instead"
    ]


def test_tree_with_deleted_root_is_restored(tree: Tree) -> None:
    tree()
    first = tree.page("First steps")["id"]
    tree.send("DELETE", f"/{tree.page('Guidebook')['id']}")
    assert tree()[1]["index.md"] == "created"
    assert tree.page("First steps")["id"] == first
    assert tree.above("guide") == "Guidebook"
    assert not tree()[0]


def test_titles_may_be_exchanged(tree: Tree) -> None:
    tree.write({"a.md": "# A\n\n1", "b.md": "# B\n\n2", "c.md": "# C\n\n3"})
    tree()
    known = {title: tree.page(title)["id"] for title in "ABC"}
    tree.write({"a.md": "# B\n\n1", "b.md": "# A\n\n2", "c.md": "# C\n\n3"})
    tree()
    # exchanged titles are handled as exchanged files, so no page needs a temporary title
    assert {title: tree.page(title)["id"] for title in "ABC"} == known
    assert ("1" in tree.body("B"), "2" in tree.body("A")) == (True, True)
    assert not tree()[0]
    tree.write({"a.md": "# C\n\n1", "b.md": "# B\n\n2", "c.md": "# D\n\n3"})
    tree()
    bodies = [tree.body(title) for title in "BCD"]
    assert ["2" in bodies[0], "1" in bodies[1], "3" in bodies[2]] == [True] * 3
    assert not tree()[0]
    assert [title for title in "ABCD" if tree.page(title)] == ["B", "C", "D"]


def test_only_own_removed_pages_are_pruned(tree: Tree) -> None:
    tree()
    own = tree.make("Somebody's", tree.page("Guidebook")["id"])
    below = tree.make("Below", tree.page("Second")["id"])
    tree.write({"guide/second.md": None, "guide/first.md": None, "old.xml": None})
    tree.write({"index.md": "# Guidebook\n"})
    assert tree()[1] == {"index.md": "updated"}
    assert tree.page("Second")
    error = tree.fails(prune=True, max_deletions=1)
    assert error.kind == "invalid"
    assert tree.page("Old & new")
    changed, actions = tree(prune=True)
    assert (changed, actions) == (
        True,
        {"index.md": "unchanged", "guide/first.md": "deleted", "old.xml": "deleted"},
    )
    assert any("'Second'" in warning and "'Below'" in warning for warning in tree.warnings)
    assert tree.page("Somebody's")["id"] == own
    assert tree.page("Below")["id"] == below
    assert tree.above("Below") == "Second"
    assert not tree(prune=True)[0]


@pytest.mark.parametrize(
    ("granted", "denied"),
    [
        (["view", "add"], "deleting old.xml: the account is not allowed to delete"),
        (["view", "delete"], "saving index.md: the account is not allowed to update"),
    ],
)
def test_check_mode_names_the_unwritable_page(tree: Tree, granted: list[str], denied: str) -> None:
    tree()
    tree.write({"old.xml": None, "index.md": "# Guidebook\n\nshort\n"})
    login = {"token": "ann-token-1", "username": None, "password": None}
    accounts = {
        "tokens": {login["token"]: "ann"},
        "users": {"ann": {"permissions": {"REL": granted}}},
    }
    tree.sandbox.seed({"wiki": {"credentials": accounts}})
    error = tree.fails(check=True, prune=True, login=login)
    assert (error.kind, error.message[: len(denied)]) == ("permission", denied)
    assert tree.http["writes"] == 0
    seen = tree.http["requests"]
    tree(check=True, prune=True)
    assert tree.http["requests"] == seen


def test_foreign_pages_are_a_conflict_unless_adopted(tree: Tree) -> None:
    tree()
    other = tree.make("Mine", tree.page("guide")["id"])
    far = tree.make("Far", "1001")
    tree.write({"guide/mine.md": "# Mine\n\nour text\n"})
    error = tree.fails()
    assert error.kind == "conflict"
    assert other in error.message
    assert ">own</p>" in tree.body("Mine")
    assert tree(adopt=True)[1]["guide/mine.md"] == "adopted"
    assert tree.page("Mine")["id"] == other
    assert ">our text</p>" in tree.body("Mine")
    assert not tree()[0]
    tree.write({"guide/far.md": "# Far\n"})
    assert far in tree.fails(adopt=True).message
    assert tree.http["writes"] == 0


def test_other_tree_is_not_taken_over(tree: Tree, tmp_path: Path) -> None:
    tree()
    other = Tree(tree.sandbox, tmp_path / "other")
    other.write({"index.md": "# Another\n", "guide/second.md": "# Second\n"})
    error = other.fails()
    assert error.kind == "conflict"
    assert f"belongs to the tree of the page {tree.page('Guidebook')['id']}" in error.message
    assert other.http["writes"] == 0
    assert other(title_prefix="Other: ")[0]
    assert not tree()[0]
    assert tree.page("Other: Second")


def test_copied_page_with_mark_is_not_part_of_the_tree(tree: Tree) -> None:
    tree()
    mark = tree.page("Second")["metadata"]["properties"][KEY]["value"]
    copy = tree.make("Copy of Second", tree.page("guide")["id"])
    tree.send("POST", f"/{copy}/property", {"key": KEY, "value": mark})
    assert not tree(prune=True)[0]
    assert tree.page("Copy of Second")["id"] == copy


PROBLEMS: dict[str, tuple[dict[str, str], list[str]]] = {
    "links": (
        {"x.md": "# X\n\n[a](no.md)\n[b](../../etc/passwd)\n\n![c](no.png) [d](/etc/passwd)"},
        [
            "x.md:3: the target of the link 'no.md' does not exist in src",
            "x.md:4: the target of the link '../../etc/passwd' does not exist in src",
            "x.md:6: the image 'no.png' does not exist in src",
            "x.md:6: the target of the link '/etc/passwd' does not exist in src",
        ],
    ),
    "titles": (
        {"x.md": "# SECOND", "y.md": "---\ntitle: 1.10\n---\n", "z.md": f"# {'z' * 256}"},
        [
            "guide/second.md:1: the title 'Second' is also used by x.md: give one of them",
            "y.md:1: title in the front matter is 1.1",
            "z.md:1: the title has 256 characters",
        ],
    ),
    "storage format": (
        {"x.xml": "<p>\n<b></p>", "y.xml": '<p>\n<ri:attachment ri:filename="../../a" /></p>'},
        ["x.xml:2: <b> from line 2", "y.xml:2: the attachment '../../a' does not exist"],
    ),
    "folder pages": (
        {"more/index.md": "# R", "more.md": "# M"},
        ["more.md: more/index.md is also the page of the folder more: rename more.md"],
    ),
    "labels": (
        {"x.md": "---\nlabels: [a b]\n---\n"},
        ["x.md:1: 'a b' is not a valid label: it is empty or contains a blank"],
    ),
    "names": (
        {'"q".txt': "", "x.md": "# X\n\n[a](%22q%22.txt)"},
        ["is not a valid attachment name"],
    ),
    "a text without end": ({"long.md": "a " * 500_001}, ["long.md:1: the file has 1000002"]),
}


def test_equal_titles_get_their_folder_as_suffix(tree: Tree) -> None:
    tree.write({"a/x.md": "# Overview", "b/x.md": "# OVERVIEW", "x.md": "# Overview"})
    tree(unique_titles="folder")
    for title in ("Overview (a)", "OVERVIEW (b)", f"Overview ({tree.folder.name})"):
        assert tree.page(title)["title"] == title
    assert not tree(unique_titles="folder")[0]
    tree.write({"a/y.md": "# Overview"})
    tree(unique_titles="folder")
    for title in ("Overview (a/x)", "Overview (a/y)", "OVERVIEW (b)"):
        assert tree.page(title)["title"] == title
    tree.write({"d/a/x.md": "# Overview", "d/a/y.md": "# Overview"})
    error = tree.fails(unique_titles="folder")
    assert "d/a/x.md:1: the title 'Overview (a/x)' is also used by a/x.md" in error.message
    tree.write({"a/y.md": "# Z", "guide2/index.md": "# Guide"})
    error = tree.fails(src=str(tree.folder / "nowhere"))
    assert "is neither a file nor a folder" in error.message


def test_folder_without_page_is_reported_with_a_solution(tree: Tree) -> None:
    tree.write({"a/same/x.md": "# 1", "b/same/x.md": "# 2"})
    error = tree.fails()
    assert "give the folder an index.md with a title (b/same/index.md)" in error.message


def test_single_file_becomes_a_tree(tree: Tree) -> None:
    files = {"alone.md": "# Alone\n\n![a](p.png) [b](x/other.md) c[^1]", "p.png": "png"}
    tree.write({**files, "x/other.md": "# Other"})
    src = str(tree.folder / "alone.md")
    changed, pages = tree(src=src)[:2]
    assert changed
    assert "no heading" not in str(pages)
    assert "footnote-1" not in tree.page("Alone")["body"]["storage"]["value"]
    assert not tree(src=src)[0]
    tree.write({"alone.md": "# Alone\n\n[b](../../../etc/passwd)"})
    assert "does not exist" in tree.fails(src=src).message
    assert "is no Markdown" in tree.fails(src=str(tree.folder / "p.png")).message


def test_page_of_a_folder_stays_if_another_file_has_it(tree: Tree) -> None:
    tree.write({"more/README.md": "# More", "more/x.md": "# X"})
    tree(prune=True)
    page_id = tree.page("More")["id"]
    for gone, new in (("more/README.md", "more/_index.md"), ("more/_index.md", "more.md")):
        tree.write({gone: None, new: "# More"})
        assert tree(prune=True)[1][new] == "updated"
        assert tree.page("More")["id"] == page_id
        assert not tree(prune=True)[0]
    tree.write({"more/index.md": "# First", "more.md": None, "more/README.md": "# Read"})
    assert tree(prune=True)[1]["more/README.md"] == "created"
    assert (tree.page("First")["id"], tree.above("Read")) == (page_id, "First")


def test_page_that_becomes_a_draft_is_a_removed_file(tree: Tree) -> None:
    tree.write({"more.md": "# More\n"})
    tree(prune=True)
    tree.write({"more.md": "---\ndraft: true\n---\n# More\n"})
    for check in (True, False):
        tree.warnings.clear()
        assert tree(prune=True, check=check)[1]["more.md"] == "deleted"
        assert tree.drafts == ["more.md"]
        assert tree.warnings == [
            "1 draft is left out (more.md): set drafts to publish to include them"
        ]
    assert not tree.page("More")
    assert tree(drafts="publish")[1]["more.md"] == "created"
    assert tree.drafts == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_problems_are_reported_before_any_request(tree: Tree, name: str) -> None:
    files, problems = PROBLEMS[name]
    tree.write(files)
    error = tree.fails()
    assert error.kind == "invalid"
    assert [problem for problem in problems if problem not in error.message] == []
    assert tree.http["writes"] == 0


def test_link_out_of_the_folder_is_rejected(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tree.folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tree.folder / "more").symlink_to(tmp_path)
    (tree.folder / "fifo.md").unlink(missing_ok=True)
    os.mkfifo(tree.folder / "pipe.txt")
    error = tree.fails()
    assert "link.txt: the symbolic link leads to a file outside the folder" in error.message
    assert "more: symbolic links to folders are not followed" in error.message
    assert tree.http["requests"] == 0
    assert tree(exclude=["link.txt", "more", "drafts/*"])[0]
    assert "exclude: 'drafts/*' matches nothing in src" in tree.warnings


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"parent_id": "99"}, "not_found", "the parent page 99 does not exist"),
        ({"parent_id": None, "space": "NO"}, "not_found", "no space NO"),
        ({"parent_id": "1101"}, "conflict", "is in the space ARC"),
        ({"src": "/nowhere"}, "invalid", "/nowhere is neither a file nor a folder"),
        ({"parallel": 0}, "invalid", "parallel"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_missing_parent_or_space_is_reported(
    tree: Tree, options: dict[str, Any], kind: str, words: str, check: bool
) -> None:
    error = tree.fails(check=check, **options)
    assert error.kind == kind
    assert words in error.message
    assert tree.http["writes"] == 0


@pytest.mark.parametrize(("parent", "kind"), [("99", "not_found"), ("1101", "conflict")])
def test_existing_tree_is_not_moved_to_a_missing_parent(tree: Tree, parent: str, kind: str) -> None:
    tree()
    for check in (True, False):
        assert tree.fails(check=check, parent_id=parent).kind == kind
        assert tree.http["writes"] == 0


def test_missing_library_is_reported_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MARKDOWN_MISSING", "Traceback")
    error = tree.fails()
    assert (error.kind, error.message.count("pip install markdown-it-py")) == ("invalid", 1)
    assert tree.http["requests"] == 0


MARKER = '<ac:inline-comment-marker ac:ref="{}">{}</ac:inline-comment-marker>'


def commented(tree: Tree, title: str, text: str) -> None:
    """Replace the body of a page, as another user, by a commented passage."""
    page = tree.page(title)
    number = page["version"]["number"] + 1
    value = f"<h1>{title}</h1><p>{MARKER.format(number, text)}</p>"
    body = {"storage": {"value": value, "representation": "storage"}}
    members = {"type": "page", "title": title, "version": {"number": number}, "body": body}
    tree.send("PUT", f"/{page['id']}", members)


@pytest.mark.parametrize(
    "consent",
    [
        {"allow_orphaned_comments": True},
        {"allow_orphaned_comments_in": ["guide/second.md"]},
        {"allow_orphaned_comments_in": ["*/sec*"]},
    ],
)
def test_inline_comments_are_kept_unless_disabled(tree: Tree, consent: dict[str, Any]) -> None:
    tree()
    for text, lost in (("do it", 0), ("gone", 1)):
        commented(tree, "Second", text)
        if lost:
            error = tree.fails(allow_orphaned_comments_in=["index.md"])
            assert error.kind == "conflict"
            assert "guide/second.md: 1 inline comments of readers" in error.message
            assert tree.http["writes"] == 0
        done = tree(**(consent if lost else {}))[1]
        assert done["guide/second.md"] == "updated"
        assert tree.comments == {"kept": 1 - lost, "lost": lost}
        assert (text in tree.body("Second")) is not bool(lost)
        assert not tree()[0]


def test_page_that_would_lose_comments_does_not_stop_the_others(tree: Tree) -> None:
    tree()
    commented(tree, "Second", "gone")
    tree.write({"index.md": "# Guidebook\n\nnew\n", "guide/third.md": "# Third\n"})
    rows = []
    for check in (True, False):
        error = tree.fails(check=check, diff=True)
        assert error.kind == "conflict"
        assert "1 of 6 pages failed, the first: guide/second.md: 1 inline comment" in error.message
        found = {row["path"]: row["action"] for row in error.result["pages"]}
        rows.append(found)
        assert [change["field"] for change in row_of(error, "guide/second.md")["changes"]] == [
            "body"
        ]
        assert error.result["comments"] == {"kept": 0, "lost": 0}
        assert error.result.get("changed") is (None if check else True)
    assert rows[0] == rows[1]
    assert rows[0]["index.md"] == "updated"
    assert rows[0]["guide/third.md"] == "created"
    assert rows[0]["guide/second.md"] == "failed"
    assert "new" in tree.body("Guidebook")
    assert "gone" in tree.body("Second")
    assert tree.fails().result.get("changed") is None
    assert tree.http["writes"] == 0


def test_page_waits_for_the_title_of_a_page_that_is_left(tree: Tree) -> None:
    tree()
    commented(tree, "Second", "gone")
    tree.write({"guide/second.md": "# Other\n", "guide/third.md": "# Second\n"})
    error = tree.fails()
    assert "2 of 6 pages failed" in error.message
    assert "depends on a page that is left" in row_of(error, "guide/third.md")["error"]["msg"]
    assert tree.page("Other") == {}
    tree(allow_orphaned_comments_in=["guide/second.md"])
    assert not tree()[0]


def row_of(error: ToolchainError, path: str) -> dict[str, Any]:
    return next(row for row in error.result["pages"] if row["path"] == path)


def edited(tree: Tree, title: str, body: str) -> None:
    page = tree.page(title)
    content = {"storage": {"value": body, "representation": "storage"}}
    number = page["version"]["number"] + 1
    members = {"type": "page", "title": title, "version": {"number": number}, "body": content}
    tree.send("PUT", f"/{page['id']}", members)


def test_pages_that_somebody_edited_are_named(tree: Tree) -> None:
    assert tree()[0]
    assert tree.edited == []
    edited(tree, "Second", "<p>by hand</p>")
    edited(tree, "guide", tree.body("guide"))  # a save without a change
    tree.write({"index.md": "# Guidebook\n\nnew\n"})
    for check in (True, False):
        tree.warnings.clear()
        assert tree(check=check, on_edit="warn" if check else "overwrite")[0]
        (entry,) = tree.edited
        assert (entry["path"], entry["title"]) == ("guide/second.md", "Second")
        assert entry["author"] == "reporter"
        assert entry["time"].endswith("Z")
        words = "guide/second.md: the page 'Second'"
        assert [words in each for each in tree.warnings] == ([True] if check else [])
    assert "by hand" not in tree.body("Second")
    assert not tree(on_edit="fail")[0]
    assert tree.edited == []


def test_edited_pages_are_left_and_the_others_are_written(tree: Tree) -> None:
    tree()
    edited(tree, "Second", "<p>by hand</p>")
    edited(tree, "First steps", "<p>by hand</p>")
    tree.write({"index.md": "# Guidebook\n\nnew\n", "guide/first.md": None})
    for check in (True, False):
        error = tree.fails(on_edit="fail", prune=True, check=check)
        assert error.kind == "conflict"
        assert "was edited by reporter at" in error.message
        assert {entry["title"] for entry in error.result["edited"]} == {"Second", "First steps"}
    assert "new" in tree.body("Guidebook")
    assert "by hand" in tree.body("Second")
    assert "by hand" in tree.body("First steps")
    tree(prune=True)
    assert not tree(on_edit="fail", prune=True)[0]


def test_pages_without_a_file_are_counted_in_one_line(tree: Tree) -> None:
    tree()
    tree.write({"index.md": "# Guidebook\n", "guide/first.md": None, "old.xml": None})
    tree.warnings.clear()
    for _run in range(2):
        tree()
        (line,) = tree.warnings
        assert "2 pages of the tree without a file stay on the wiki (" in line
        assert "set prune" in line
        assert {page["title"] for page in tree.without_file} == {"First steps", "Old & new"}
        tree.warnings.clear()
    tree.make("Of others", tree.page("guide")["id"])
    tree(mark=False)
    titles = {page["title"] for page in tree.without_file}
    assert titles == {"First steps", "Old & new", "Of others"}
    assert tree.warnings == []
    tree(prune=True)
    assert tree.without_file == []


def test_diff_has_the_titles_of_the_parents(tree: Tree) -> None:
    tree(check=True)
    assert "parent: Release notes" in tree.diff[1]
    tree()
    other = tree.make("Elsewhere")
    number = tree.page("Second")["version"]["number"] + 1
    members: dict[str, Any] = {"type": "page", "title": "Second", "version": {"number": number}}
    members["ancestors"] = [{"id": other}]
    content = {"value": tree.body("Second"), "representation": "storage"}
    tree.send("PUT", f"/{tree.page('Second')['id']}", {**members, "body": {"storage": content}})
    tree(check=True)
    assert "parent: Elsewhere" in tree.diff[0]
    assert "parent: guide" in tree.diff[1]


def test_permission_lost_midway_is_reported_with_the_completed_pages(tree: Tree) -> None:
    author = {"token": "author-wiki-token-1234567890"}
    other = tree.make("guide", "1003")
    assert tree.fails(login=author).kind == "conflict"
    tree.send("DELETE", f"/{other}")
    tree.sandbox.fault(service="wiki", method="POST", path="attachment", status=403, body="no")
    error = tree.fails(login=author, parallel=1)
    assert error.kind == "permission"
    done = {page["path"]: page["action"] for page in error.result["pages"]}
    assert done["index.md"] == "created"
    assert "guide/first.md" not in done
    assert tree(login=author)[0]
    assert not tree()[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"deployment": "Cloud"},
        {"omit_ancestors_moves": True, "empty_ancestors_moves": True},
        {"rewrite_on_save": False, "rename_rewrites_links": False},
        {"trash_blocks_titles": True, "duplicate_attachment_status": 409},
        {"require_xsrf": True},
    ],
)
def test_server_variants_are_supported(tree: Tree, settings: dict[str, Any]) -> None:
    tree.sandbox.settings("wiki", **settings)
    assert tree(labels=["docs"])[0]
    assert not tree(labels=["docs"], prune=True)[0]
    tree.write({"guide/first.md": None, "index.md": "# Guidebook", "guide/second.md": "# 2nd"})
    assert tree(labels=["docs"], prune=True)[1] == {
        "index.md": "updated",
        "guide/": "unchanged",
        "old.xml": "unchanged",
        "guide/second.md": "renamed",
        "guide/first.md": "deleted",
    }
    assert not tree(labels=["docs"], prune=True)[0]


def test_server_without_title_search_is_reported(tree: Tree) -> None:
    tree.sandbox.settings("wiki", flavour="written")
    error = tree.fails()
    assert error.kind == "not_found"
    assert "cannot find pages by title" in error.message


def test_many_pages_and_files_are_listed_completely(tree: Tree) -> None:
    images = {f"img/{number}.png": f"{number}" for number in range(30)}
    links = "".join(f"![x](img/{number}.png)\n" for number in range(30))
    tree.write({**images, "index.md": f"# Guidebook\n\n{links}"})
    tree.write({f"more/{number}.md": f"# Page {number}\n" for number in range(230)})
    assert tree()[0]
    assert not tree()[0]
    assert tree.http["requests"] <= len(tree.pages) + 4


def test_empty_folder_is_reported(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        "no Markdown (.md, .markdown, .mdx) and no .xml file"
        in tree.fails(src=str(tmp_path / "empty")).message
    )


def test_tree_is_created_at_the_top_of_a_space(tree: Tree) -> None:
    assert tree(parent_id=None)[0]
    assert not tree(parent_id=None)[0]
    assert tree.page("Guidebook")["ancestors"] == []


FAULTS: dict[str, dict[str, Any]] = {
    "lost": {"cut": True, "after": True},
    "cut before": {"cut": True},
    "denied": {"status": 403, "body": "no"},
}


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("fault", FAULTS)
def test_next_run_completes_after_a_failure_at_any_write(
    tree: Tree, fault: str, method: str
) -> None:
    """Fail the task at the first write, then restart and fail at the second write, and so on."""
    number = 0
    while True:
        tree.sandbox.reset()
        tree.sandbox.fault(service="wiki", method=method, skip=number, **FAULTS[fault])
        failed = False
        try:
            tree(parallel=1, labels=["docs"])
        except ToolchainError:
            failed = True
        if tree.sandbox.pending_faults():
            break
        assert failed is (fault != "lost"), number
        tree(parallel=1, labels=["docs"])
        assert not tree(labels=["docs"])[0], number
        assert len(tree.pages) == 5
        number += 1
    assert number >= 5


def test_manually_created_pages_are_adopted_without_marks(tree: Tree) -> None:
    root = tree.make("Team", body="<p>team</p>")
    tree.make("Rota  of", root, '<p><ac:image><ri:attachment ri:filename="x.png"/></ac:image></p>')
    rota = '<p><ac:image><ri:attachment ri:filename="x.png"/></ac:image></p>'
    tree.write(dict.fromkeys(FILES))
    tree.write({"index.xml": "---\ntitle: Team\nlabels: []\n---\n<p>team</p>"})
    tree.write({"Rota/index.xml": f"---\ntitle: Rota of\n---\n{rota}"})
    options: dict[str, Any] = {"mark": False, "attachments": False}
    assert tree(**options) == (False, {"index.xml": "unchanged", "Rota/index.xml": "unchanged"})
    assert tree.http["writes"] == 0
    tree.write({"Rota/new/index.xml": "---\ntitle: New\n---\n<p>new</p>"})
    tree.send("DELETE", f"/{tree.page('Rota  of')['id']}")
    done = {"index.xml": "unchanged", "Rota/index.xml": "created", "Rota/new/index.xml": "created"}
    assert tree(**options) == (True, done)
    assert tree(**options)[0] is False
    assert tree.page("New")["metadata"]["properties"] == {}
    assert "prune" in tree.fails(**options, prune=True).message


def test_title_heading_is_kept_and_broken_link_becomes_text(tree: Tree) -> None:
    tree.write({"index.md": "# Guidebook\n\nSee [more](missing.md).\n"})
    with pytest.raises(ToolchainError, match=r"missing\.md"):
        tree()
    changed, _actions = tree(title_heading="keep", broken_links="warn")
    assert changed
    assert any("missing.md" in warning for warning in tree.warnings)
    assert "<h1>Guidebook</h1>" in tree.diff[1]
    assert "See more." in tree.diff[1]
    assert tree(title_heading="keep", broken_links="warn")[0] is False
