# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the export of spaces and restrictions, on servers and in the cloud: the modules find no
difference to it, one for each edit, and bring the server back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    typed_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    resolve,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.pages import (
    wiki_restriction,
    wiki_space,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.tree import wiki_export
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import connections

Fresh = Callable[[str], Sandbox]
DIALECTS: dict[str, dict[str, Any]] = {
    "server": {},
    "cloud_v1": {"deployment": "Cloud"},
    "cloud_v2": {"deployment": "Cloud", "version_2": True, "version_1_pages": 410},
}
MODULES: dict[str, tuple[Any, Any]] = {
    "export": (wiki_export.WikiExportOperation, wiki_export.WikiExportOptions),
    "spaces": (wiki_space.WikiSpaceOperation, wiki_space.WikiSpaceOptions),
    "restrictions": (
        wiki_restriction.WikiRestrictionOperation,
        wiki_restriction.WikiRestrictionOptions,
    ),
}


class Wiki:
    """A wiki with a restricted page."""

    def __init__(self, fresh: Fresh, dialect: str, folder: Path) -> None:
        self.sandbox, self._dialect, self._folder = fresh("real"), dialect, folder
        self.sandbox.settings("wiki", **DIALECTS[dialect])
        self.prefix = "" if dialect == "server" else "account-"
        page = {"space": "REL", "title": "Secret", "parent": "1002", "body": "<p>s</p>"}
        groups = {"restricted_groups": {"update": ["writers"]}}
        restrictions = {"restrictions": {"read": ["reporter", "author"], "update": ["reporter"]}}
        self.sandbox.seed({"wiki": {"pages": [{"id": "1700", **page, **restrictions, **groups}]}})

    def run(self, name: str, **options: Any) -> Any:
        """Return the plan and the return values."""
        make, kind = MODULES[name]
        login = connections.LOGINS["wiki"]
        given: dict[str, Any] = {
            "url": self.sandbox.urls["wiki"],
            "dialect": self._dialect,
            **login,
        }
        given |= {"timeout": 10.0, "retries": 0, "retry_max_wait": 0.0}
        task = Task(
            resolve(SERVICES["wiki"], given.get, environ={}), lambda text: None, read_only=False
        )
        operation = make(task, typed_options.parse(kind, options))
        plan = operation.plan()
        applied = operation.apply(plan) if plan.changed else {}
        return plan, {**plan.result, **applied}

    def export(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Return the result and the content of the file."""
        options = {"trees": [{"space": "REL"}], **options}
        plan, result = self.run("export", dest=str(self._folder), **options)
        assert plan.changed is any(file["action"] != "unchanged" for file in result["files"])
        return result, yaml.safe_load((self._folder / "wiki.yml").read_text("utf-8"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_export_contains_spaces_and_restrictions(
    fresh: Fresh, dialect: str, tmp_path: Path
) -> None:
    wiki = Wiki(fresh, dialect, tmp_path / "state")
    result, state = wiki.export()
    (space,) = state["spaces"]
    assert (space["key"], space["home_page"], space["description"]) == ("REL", "Releases", "")
    own = [{"user": "reporter", "operations": ["space:administer", "space:read"]}]
    if dialect == "cloud_v2":
        own = [{**own[0], "user": "account-reporter"}]
    if dialect != "cloud_v1":
        assert (space["permissions"], result["left_out"]) == (own, [])
    else:
        assert "permissions" not in space
        (left,) = result["left_out"]
        assert (left["kind"], left["name"]) == ("permissions", "REL")
        assert "in the cloud they require version 2 of the interface" in left["reason"]
    found = {restriction["title"]: restriction for restriction in state["restrictions"]}
    users = [f"{wiki.prefix}{name}" for name in ("author", "reporter")]
    assert found["Secret"] == {
        "space": "REL",
        "title": "Secret",
        "read": {"users": users},
        "update": {"users": users[1:], "groups": ["writers"]},
    }
    assert found["Releases"] == {"space": "REL", "title": "Releases", "read": {}, "update": {}}
    assert {file["action"] for file in wiki.export()[0]["files"]} == {"unchanged"}

    for name in ("spaces", "restrictions"):
        assert not wiki.run(name, entries=state[name])[0].changed
    edits: dict[str, dict[str, Any]] = {
        "spaces": {"key": "REL", "description": "by hand", "home_page": "Handbook"},
        "restrictions": {"space": "REL", "title": "Releases", "update": {"users": users}},
    }
    for name, edit in edits.items():
        assert wiki.run(name, **edit)[0].changed
        plan, values = wiki.run(name, entries=state[name])
        changed = [one for one in values["results"] if one["action"] != "unchanged"]
        assert [one["name"] for one in changed] == ["REL" if name == "spaces" else "REL/Releases"]
        assert plan.changed
        assert not wiki.run(name, entries=state[name])[0].changed
    assert {file["action"] for file in wiki.export()[0]["files"]} == {"unchanged"}


def test_kinds_can_be_excluded(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "cloud_v2", tmp_path)
    result, state = wiki.export(spaces=False, restrictions=False)
    assert list(state) == ["trees"]
    assert "Spaces, restrictions, comments and the order" in result["not_exported"][0]
    assert result["left_out"] == []
    asked = [request["path"] for request in wiki.sandbox.requests("wiki")]
    assert not [path for path in asked if "/restriction" in path]


def test_permissions_with_an_unknown_user_are_not_exported(fresh: Fresh, tmp_path: Path) -> None:
    """The other permissions alone would take the right of that user away."""
    wiki = Wiki(fresh, "server", tmp_path)
    gone = {"user:key-reporter": ["space:administer"], "user:key-gone": ["space:read"]}
    space = {"key": "REL", "name": "R", "home": "1001"}
    wiki.sandbox.seed({"wiki": {"spaces": [{**space, "permissions": gone}]}})
    result, state = wiki.export()
    assert "permissions" not in state["spaces"][0]
    ((kind, reason),) = [(one["kind"], one["reason"]) for one in result["left_out"]]
    assert (kind, "key-gone" in reason) == ("permissions", True)


def test_large_tree_takes_no_additional_requests(fresh: Fresh, tmp_path: Path) -> None:
    wiki = Wiki(fresh, "server", tmp_path)
    more = [
        {"id": str(5000 + number), "space": "REL", "title": f"P {number}", "parent": "1002"}
        for number in range(30)
    ]
    wiki.sandbox.seed({"wiki": {"pages": more}})
    counts = []
    for number, restrictions in enumerate((False, True)):
        mark = wiki.sandbox.mark()
        tree = {"space": "REL", "title": "Handbook"}
        options = {"trees": [tree], "dest": str(tmp_path / str(number))}
        wiki.run("export", **options, restrictions=restrictions)
        counts.append(len(wiki.sandbox.requests("wiki", since=mark)))
    assert counts[0] == counts[1]
