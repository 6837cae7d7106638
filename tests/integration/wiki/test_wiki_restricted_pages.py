# SPDX-License-Identifier: GPL-3.0-or-later
"""Test pages that are restricted before they get their content: whatever fails, nobody else can
read it, and the next run finishes the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, in_process

Fresh = Callable[[str], Sandbox]
DIALECTS: dict[str, dict[str, Any]] = {
    "server": {},
    "cloud_v1": {"deployment": "Cloud"},
    "cloud_v2": {"deployment": "Cloud", "version_2": True, "version_1_pages": 410},
}
BODY = "<p>embargoed</p>"
READER = ("reader", "reader-password")
FAULTS: dict[str, dict[str, Any]] = {
    "lost, done": {"cut": True, "after": True},
    "lost, not done": {"cut": True},
    "500, done": {"status": 500, "body": "broke", "after": True},
    "500, not done": {"status": 500, "body": "broke"},
    "403": {"status": 403, "body": "no"},
    "405": {"status": 405},
    "a page": {"status": 200, "body": "<html><p>x</p></html>", "content_type": "text/html"},
}


class Wiki:
    """A wiki whose requests are those of the account `reporter`."""

    def __init__(self, fresh: Fresh, dialect: str, folder: Path) -> None:
        self.sandbox, self._dialect, self._folder = fresh("real"), dialect, folder
        self.sandbox.settings("wiki", **DIALECTS[dialect])
        self.own = "reporter" if dialect == "server" else "account-reporter"
        for name in ("index", "next"):
            (folder / f"{name}.xml").write_text(f"---\ntitle: {name}\n---\n{BODY}", "utf-8")

    def run(self, module: str, **options: Any) -> dict[str, Any]:
        given = {"url": self.sandbox.urls["wiki"], "dialect": self._dialect, "retries": 0}
        given |= {**connections.LOGINS["wiki"], "_ansible_diff": True, **options}
        return in_process.run(module, given)

    def page(self, **options: Any) -> dict[str, Any]:
        page = {"space": "REL", "title": "Plan", "body": BODY, "parent_id": "1003"}
        return self.run("wiki_page", **{**page, "restrictions": self.restricted, **options})

    def tree(self, **options: Any) -> dict[str, Any]:
        given = {"src": str(self._folder), "space": "REL", "parent_id": "1003", "parallel": 1}
        return self.run("wiki_tree", **{**given, "restrictions": self.restricted, **options})

    @property
    def restricted(self) -> dict[str, Any]:
        return {"read": {"users": [self.own]}, "update": {"users": [self.own]}}

    def readable(self) -> bool:
        """Return whether another account can read the content of a page."""
        address = f"{self.sandbox.urls['wiki']}/rest/api/content"
        query: dict[str, Any] = {"spaceKey": "REL", "expand": "body.storage", "limit": 100}
        self.sandbox.settings("wiki", version_1_pages=200)
        found = requests.get(address, query, auth=READER, timeout=10).json()["results"]
        self.sandbox.settings("wiki", **DIALECTS[self._dialect])
        assert found
        return any("embargoed" in one["body"]["storage"]["value"] for one in found)


@pytest.fixture(params=DIALECTS)
def wiki(request: pytest.FixtureRequest, fresh: Fresh, tmp_path: Path) -> Wiki:
    return Wiki(fresh, request.param, tmp_path)


@pytest.mark.parametrize("kind", ["page", "tree"])
def test_new_page_is_restricted_before_its_content(wiki: Wiki, kind: str) -> None:
    run = wiki.page if kind == "page" else wiki.tree
    predicted = run(_ansible_check_mode=True)
    mark = wiki.sandbox.mark()
    made = run()
    assert made["changed"], made.get("msg")
    assert not wiki.readable()
    shown = [made["page"]] if kind == "page" else made["pages"]
    assert {one["version"] for one in shown} == {2}
    if kind == "page":
        assert made["restrictions"]["read"] == {"users": [wiki.own], "groups": []}
        assert made["restrictions"] == predicted["restrictions"]
    assert made["diff"] == predicted["diff"]
    assert f"read: {wiki.own}\n" in made["diff"]["after"]
    assert [one["version"] for one in shown] == [
        page["version"] for page in ([predicted["page"]] if kind == "page" else predicted["pages"])
    ]
    restricted: set[str | None] = set()
    for request in wiki.sandbox.requests("wiki", writes=True, since=mark):
        number = re.search(r"/(?:content|pages)/(\d+)", request["path"])
        if request["path"].endswith("/restriction"):
            restricted.add(number and number[1])
        assert "embargoed" not in request["body"] or (number and number[1]) in restricted
    assert len(restricted) == len(shown)
    again = run()
    assert (again["changed"], again["http"]["writes"]) == (False, 0)


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("kind", ["page", "tree"])
def test_failed_step_never_exposes_content(wiki: Wiki, kind: str, step: int) -> None:
    run = wiki.page if kind == "page" else wiki.tree
    for name, fault in FAULTS.items():
        wiki.sandbox.reset()
        wiki.sandbox.settings("wiki", **DIALECTS[wiki._dialect])
        path = (r"(content|pages)/?$", r"restriction", r"(content|pages)/\d+$")[step]
        wiki.sandbox.fault(service="wiki", write=True, path=path, **fault)
        result = run(timeout=5)
        assert wiki.sandbox.pending_faults() == [], name
        assert not wiki.readable(), name
        if "not done" in name or name in ("403", "405"):
            assert result.get("failed"), name
            assert result["changed"] is (step > 0), (name, result["msg"])
        if name == "lost, done":
            assert not result.get("failed"), result["msg"]
        wiki.sandbox.clear_faults()
        finished = run()
        assert not finished.get("failed"), (name, finished["msg"])
        assert finished["changed"] is bool(result.get("failed")), name
        assert not wiki.readable(), name
        assert run()["changed"] is False


def test_existing_page_is_restricted_before_its_new_body(wiki: Wiki) -> None:
    page = {"space": None, "title": None, "parent_id": None, "page_id": "1002"}
    wiki.sandbox.fault(service="wiki", write=True, path="restriction", status=403, body="no")
    refused = wiki.page(**page)
    assert (refused["error"]["kind"], refused["changed"]) == ("permission", False)
    assert not wiki.readable()
    alone = wiki.page(**page, body=None)
    assert (alone["changed"], alone["page"]["version"]) == (True, 3)
    assert wiki.page(**page)["changed"]
    assert not wiki.readable()
    opened = wiki.page(**page, restrictions={"read": {}})
    assert opened["restrictions"]["read"] == {"users": [], "groups": []}
    assert opened["restrictions"]["update"]["users"] == [wiki.own]
    assert wiki.readable()


def test_own_account_is_not_locked_out(wiki: Wiki) -> None:
    other = wiki.own.replace("reporter", "author")
    for name in ("read", "update"):
        for force in (False, True):
            for check in (True, False):
                given = {"restrictions": {name: {"users": [other]}}, "force": force}
                error = wiki.page(**given, _ansible_check_mode=check)
                assert error["error"]["kind"] == "invalid", error
                assert f"would lose the permission to {name}" in error["msg"]
    page = {"space": None, "title": None, "parent_id": None, "body": None, "page_id": "1002"}
    asked: dict[str, Any] = {**page, "restrictions": {"update": {"users": [other]}}}
    assert "or set force" in wiki.page(**asked)["msg"]
    assert wiki.page(**asked, force=True)["changed"]
    assert wiki.tree(restrictions={"update": {"users": [other]}})["error"]["kind"] == "invalid"
    groups = wiki.page(restrictions={"update": {"groups": ["writers"]}})
    assert groups["changed"], groups


def test_invalid_restrictions_are_rejected_before_any_request(wiki: Wiki) -> None:
    for run in (wiki.page, wiki.tree):
        assert "has no operation" in run(restrictions={})["msg"]
        assert "reed" in run(restrictions={"reed": {}})["msg"]
        assert run(restrictions={"read": "writers"})["failed"]
    assert wiki.sandbox.requests("wiki") == []
    wiki.page(restrictions={"read": {}, "update": {}})
    assert wiki.page()["page"]["version"] == 1


def test_server_without_restrictions_leaves_an_empty_page(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    wiki.sandbox.settings("wiki", restriction_address=False)
    result = wiki.page()
    assert (result["error"]["kind"], result["changed"]) == ("rejected", True)
    assert "before 8.8" in result["msg"]
    assert result["page"]["version"] == 1
    assert not wiki.readable()
