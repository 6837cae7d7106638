# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the modules of the wiki with version 2 of the cloud, at a site and at the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page import (
    WikiPageOperation,
    WikiPageOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages.wiki_page_info import (
    WikiPageInfoOperation,
    WikiPageInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree.wiki_export import (
    WikiExportOperation,
    WikiExportOptions,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections
from tests.helpers.options import build
from tests.integration.wiki.test_wiki_tree import FILES, Tree

ID = "1f2e-site"
CLOUD = {"deployment": "Cloud", "version_2": True, "version_1_pages": 410, "cloud_id": ID}
#: Pages in folders, in the archive, and far down.
SEED: dict[str, Any] = {
    "wiki": {
        "pages": [
            {
                "id": "1801",
                "space": "REL",
                "title": "Old",
                "status": "archived",
                "body": "<p>o</p>",
            },
            {"id": "1802", "space": "REL", "title": "Drawer", "type": "folder", "parent": "1003"},
            {"id": "1803", "space": "REL", "title": "In it", "parent": "1802", "body": "<p>i</p>"},
            *(
                {"id": f"{1810 + n}", "space": "REL", "title": f"L{n}", "parent": f"{1809 + n}"}
                for n in range(1, 13)
            ),
            {"id": "1810", "space": "REL", "title": "L0", "parent": "1803"},
        ]
    }
}


class Cloud:
    """Tasks on a wiki of the cloud."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.connection: dict[str, Any] = {"dialect": "cloud_v2"}
        self.http: dict[str, Any] = {}
        self.warnings: list[str] = []

    def run(self, make: Any, kind: Any, *, check: bool = False, **options: Any) -> Any:
        """Run a task. Return whether it changed something, and its return values."""
        login, times = connections.LOGINS["wiki"], {"timeout": 10.0, "retries": 0}
        given = {"url": self.sandbox.urls["wiki"], **login, **times, "retry_max_wait": 0.0}
        connection = resolve(SERVICES["wiki"], {**given, **self.connection}.get, environ={})
        task = Task(connection, self.warnings.append, read_only=check)
        try:
            operation: Operation = make(task, build(kind, **options))
            plan = operation.plan()
            result = dict(plan.result)
            if plan.changed and not check:
                result |= operation.apply(plan)
        finally:
            self.http = task.accounting.as_dict()
        return plan.changed, result

    def page(self, **options: Any) -> Any:
        return self.run(WikiPageOperation, WikiPageOptions, **options)

    def info(self, **options: Any) -> Any:
        return self.run(WikiPageInfoOperation, WikiPageInfoOptions, **options)[1]["page"]

    def fails(self, **options: Any) -> ToolchainError:
        with pytest.raises(ToolchainError) as caught:
            self.page(**options)
        return caught.value


@pytest.fixture(scope="module")
def shared(fresh: Callable[[str], Sandbox]) -> Sandbox:
    return fresh("real")


@pytest.fixture
def cloud(shared: Sandbox) -> Iterator[Cloud]:
    shared.settings("wiki", **CLOUD)
    shared.seed(SEED)
    yield Cloud(shared)
    shared.reset()


@pytest.fixture
def tree(cloud: Cloud, tmp_path: Path) -> Tree:
    found = Tree(cloud.sandbox, tmp_path / "docs")
    found.connection = cloud.connection
    found.write(FILES)
    return found


def gateway(cloud: Cloud) -> dict[str, Any]:
    """Return the options of a connection through the gateway, with the id of the site."""
    base = cloud.sandbox.urls["wiki"].removesuffix("/wiki")
    return {"url": base, "dialect": "auto", "cloud_id": "auto", "cloud_gateway": base}


@pytest.mark.parametrize("refusal", [410, 401])
def test_page_is_managed_through_the_gateway(cloud: Cloud, refusal: int) -> None:
    cloud.sandbox.settings("wiki", version_1_pages=refusal)
    cloud.connection = gateway(cloud)
    page = {"space": "REL", "title": "Notes", "parent_id": "1003", "labels": ["x"]}
    changed, made = cloud.page(body="<p>new</p>", **page)
    assert changed
    assert made["page"]["url"].startswith(cloud.sandbox.urls["wiki"] + "/spaces/REL/")
    assert not cloud.page(body="<p>new</p>", **page)[0]
    paths = {
        request["path"]
        for request in cloud.sandbox.requests("wiki")
        if "rest/api" in request["path"]
    }
    assert {path.rpartition("/")[2] for path in paths} == {"label"}
    assert cloud.page(space="REL", title="Notes", state="absent")[0]
    assert not cloud.page(space="REL", title="Notes", state="absent")[0]


def test_unchanged_page_takes_two_requests(cloud: Cloud) -> None:
    cloud.connection = gateway(cloud)
    page = {"page_id": "1003", "labels": ["x"], "body": "<p>x</p>"}
    cloud.page(**page)
    assert not cloud.page(**page)[0]
    assert cloud.http["requests"] <= 1
    named = {"space": "REL", "title": "Release notes", "labels": ["x"], "body": "<p>x</p>"}
    assert not cloud.page(**named)[0]
    assert cloud.http["requests"] <= 2


def test_removed_version_1_falls_back_to_version_2(cloud: Cloud) -> None:
    cloud.connection = {"dialect": "auto"}
    assert cloud.info(page_id="1003")["title"] == "Release notes"
    # the read that was refused, the probe, the page and its space
    assert cloud.http["requests"] <= 4
    assert cloud.info(page_id="1003")["space"] == "REL"
    assert cloud.http["requests"] <= 1


@pytest.mark.parametrize("dialect", ["server", "cloud_v1"])
def test_explicit_dialect_is_kept(cloud: Cloud, dialect: str) -> None:
    cloud.connection = {"dialect": dialect}
    error = cloud.fails(page_id="1003", body="<p>x</p>")
    assert (error.kind, error.status) == ("not_found", 410)
    assert "set dialect to auto or cloud_v2" in error.message


GALLERY = '<ac:structured-macro ac:name="gallery" /><p><ri:user ri:userkey="ff80" /></p>'


def test_parts_that_the_cloud_cannot_hold_are_returned(cloud: Cloud, tree: Tree) -> None:
    expected = [
        "Confluence Cloud has no macro gallery: write the images in the page",
        "Confluence Cloud has no user keys: add ff80 to desired_state_accounts",
    ]
    page = {"space": "REL", "title": "Legacy", "body": GALLERY}
    for changed in (True, False):
        found = cloud.page(**page)
        assert (found[0], found[1]["unsupported"]) == (changed, expected)
    (row,) = cloud.page(pages=[{**page, "accounts": {"ff80": "account-x"}}])[1]["pages"]
    assert row["unsupported"] == expected[:1]
    assert "unsupported" not in cloud.page(space="REL", title="Legacy", body="<p>x</p>")[1]
    tree.write({"old.xml": GALLERY})
    tree()
    rows = {row["path"]: row.get("unsupported") for row in tree.pages}
    assert rows == {**dict.fromkeys(rows), "old.xml": expected}
    cloud.sandbox.reset()
    cloud.connection = {"dialect": "server"}
    assert "unsupported" not in cloud.page(**page)[1]


def test_page_is_created_at_the_top_of_a_space(cloud: Cloud) -> None:
    cloud.sandbox.settings("wiki", orphans_below_home=True)
    made = cloud.page(space="REL", title="Top", body="<p>x</p>")[1]["page"]
    assert cloud.info(page_id=made["id"])["parent_id"] is None


def test_folder_is_accepted_as_parent(cloud: Cloud) -> None:
    made = cloud.page(space="REL", title="New", parent_id="1802", body="<p>x</p>")[1]["page"]
    assert cloud.info(page_id=made["id"])["parent_id"] == "1802"
    assert cloud.page(page_id="1003", parent_id="1001")[0] is False
    assert cloud.page(page_id="1002", parent_id="1802")[0]
    assert cloud.info(page_id="1002")["parent_id"] == "1802"
    assert cloud.fails(page_id="1003", parent_id="1802").kind == "rejected"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"space": "REL", "title": "Old"}, "conflict", "archived"),
        ({"page_id": "1801"}, "conflict", "archived"),
        ({"page_id": "9999"}, "not_found", "404"),
        ({"space": "NONE", "title": "X"}, "not_found", "no space NONE"),
        (
            {"space": "REL", "title": "X", "parent_id": "9999"},
            "not_found",
            "the parent page 9999 does not exist",
        ),
        ({"space": "ARC", "title": "X", "parent_id": "1003"}, "conflict", "in the space REL"),
        ({"page_id": "1001", "parent_id": "1003"}, "rejected", "below it"),
        ({"page_id": "1003", "title": "Handbook"}, "conflict", "already"),
    ],
)
def test_unwritable_pages_are_rejected(
    cloud: Cloud, options: dict[str, str], kind: str, words: str
) -> None:
    error = cloud.fails(body="<p>x</p>", **options)
    assert error.kind == kind
    assert words in error.message


def test_archived_page_is_not_found(cloud: Cloud) -> None:
    with pytest.raises(ToolchainError) as caught:
        cloud.info(space="REL", title="Old")
    assert caught.value.kind == "not_found"
    assert cloud.page(space="REL", title="Old", state="absent")[0] is False


def test_home_page_and_page_with_children_are_not_deleted(cloud: Cloud) -> None:
    assert "home page" in cloud.fails(page_id="1001", state="absent").message
    assert "child pages" in cloud.fails(page_id="1003", state="absent").message


def test_concurrent_edit_is_a_conflict(cloud: Cloud) -> None:
    cloud.sandbox.settings("wiki", edits_before_put=1, edit_body="<p>other</p>")
    assert cloud.fails(page_id="1003", body="<p>x</p>").kind == "conflict"
    cloud.sandbox.settings("wiki", edits_before_put=1, edit_body=None)
    assert cloud.page(page_id="1003", body="<p>y</p>", on_conflict="retry")[0]


def test_minor_edit_is_not_sent_and_reported(cloud: Cloud) -> None:
    for check in (True, False):
        cloud.warnings.clear()
        assert cloud.page(page_id="1003", body="<p>m</p>", minor_edit=True, check=check)[0]
        assert [warning for warning in cloud.warnings if "minor_edit has no effect" in warning]
    sent = cloud.sandbox.requests("wiki", writes=True)
    assert sent
    assert "minorEdit" not in str(sent)


def test_attachments_and_labels_use_version_1(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    files = [{"src": str(tmp_path / "a.txt"), "name": "a b.txt"}]
    page: dict[str, Any] = {"page_id": "1003", "attachments": files, "labels": ["one", "two"]}
    assert cloud.page(**page)[0]
    assert not cloud.page(**page)[0]
    assert cloud.http["requests"] <= 2
    (tmp_path / "a.txt").write_text("two", encoding="utf-8")
    changed, result = cloud.page(**{**page, "labels": ["two"]})
    assert changed
    assert [attachment["action"] for attachment in result["attachments"]] == ["updated"]
    assert not cloud.page(**{**page, "labels": ["two"]})[0]


def test_tree_is_published_through_the_gateway(tree: Tree, cloud: Cloud) -> None:
    tree.connection = gateway(cloud)
    changed, actions = tree(labels=["docs"])
    assert (changed, set(actions.values())) == (True, {"created"})
    changed, actions = tree(labels=["docs"])
    assert (changed, set(actions.values())) == (False, {"unchanged"})
    # root by title, descendants, each page, and the files of three pages; probe, id and space
    # were read before
    assert tree.http["requests"] <= len(actions) + 3 + 3
    tree.write({"old.xml": None, "guide/second.md": "# 2nd"})
    assert tree(labels=["docs"], prune=True)[1]["guide/second.md"] == "renamed"
    assert not tree(labels=["docs"], prune=True)[0]


def test_many_pages_are_listed_completely(tree: Tree) -> None:
    tree.write({f"more/{number}.md": f"# Page {number}\n" for number in range(260)})
    assert tree()[0]
    changed, actions = tree()
    assert not changed
    assert tree.http["requests"] <= len(actions) + 6 + 3


def test_created_page_without_mark_is_adopted(tree: Tree) -> None:
    tree.sandbox.fault(service="wiki", method="POST", path="properties", status=403, body="no")
    assert tree.fails(parallel=1).kind == "permission"
    assert tree()[0]
    assert not tree()[0]


def test_archived_title_is_a_conflict(tree: Tree) -> None:
    tree.write({"index.md": "# Old\n"})
    error = tree.fails()
    assert error.kind == "conflict"
    assert "archived" in error.message


def test_export_includes_folders_and_deep_levels(cloud: Cloud, tmp_path: Path) -> None:
    trees = [{"page_id": "1003"}]
    dest = str(tmp_path / "desired")
    cloud.run(WikiExportOperation, WikiExportOptions, dest=dest, trees=trees)
    texts = [path.read_text(encoding="utf-8") for path in Path(dest).rglob("*.xml")]
    titles = {text.split("title: ", 1)[1].splitlines()[0] for text in texts}
    assert titles == {"Release notes", "In it", *(f"L{number}" for number in range(13))}


@pytest.mark.parametrize(
    ("page", "parent"), [("1003", {"parent_title": "Releases"}), ("1803", {"parent_id": "1802"})]
)
def test_export_names_a_parent_by_title_but_a_folder_by_id(
    cloud: Cloud, tmp_path: Path, page: str, parent: dict[str, str]
) -> None:
    trees = [{"page_id": page, "children": False}]
    cloud.run(WikiExportOperation, WikiExportOptions, dest=str(tmp_path), trees=trees)
    (entry,) = yaml.safe_load((tmp_path / "wiki.yml").read_text("utf-8"))["trees"]
    assert {name: entry[name] for name in entry if name.startswith("parent")} == parent


@pytest.mark.parametrize("after", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/pages$", {"space": "REL", "title": "New", "parent_id": "1003"}),
        ("PUT", "/pages/1003", {"page_id": "1003"}),
        ("DELETE", "/pages/1803", {"page_id": "1803", "state": "absent", "force": True}),
        ("POST", "/label", {"page_id": "1003", "labels": ["x"]}),
    ],
)
def test_lost_response_to_a_write_is_verified(
    cloud: Cloud, method: str, path: str, options: dict[str, Any], *, after: bool
) -> None:
    if "state" not in options and "labels" not in options:
        options = {**options, "body": "<p>new</p>"}
    cloud.sandbox.fault(service="wiki", method=method, path=path, cut=True, after=after)
    if after:
        assert cloud.page(**options)[0]
        assert not cloud.page(**options)[0]
        return
    error = cloud.fails(**options)
    assert "nothing was changed" in error.message or "is not known" in error.message
    assert cloud.page(**options)[0]


def test_mark_saved_concurrently_is_read_again(tree: Tree) -> None:
    tree()
    tree.write({"guide/second.md": "# Second\n\nnew\n"})
    tree.sandbox.fault(service="wiki", method="PUT", path="/properties/", cut=True, after=True)
    assert tree()[1]["guide/second.md"] == "updated"
    assert not tree()[0]
