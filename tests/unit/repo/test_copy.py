# SPDX-License-Identifier: GPL-3.0-or-later
"""Test copying and moving: differences only, file by file, and without nested folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import listing
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_copy,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

Operation = artifact_copy.ArtifactCopyOperation
LIST = "?list&deep=1"
MISSING = Reply(404, {"errors": [{"message": "Unable to find item"}]})


def digest(text: str, name: str = "sha256") -> str:
    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def head(text: str) -> Reply:
    sums = {f"X-Checksum-{name}": digest(text, name) for name in ("Sha1", "Sha256")}
    return Reply(200, text, sums)


def listed(files: Mapping[str, str | None]) -> Reply:
    """Return files with their content, and folders without content."""
    entries: list[dict[str, Any]] = []
    for path, text in files.items():
        entry: dict[str, Any] = {"uri": f"/{path}", "folder": text is None}
        if text is not None:
            entry |= {"size": len(text), "sha1": digest(text, "sha1"), "sha2": digest(text)}
        entries.append(entry)
    return Reply(body={"files": entries})


def said(level: str, message: str, status: int = 200) -> Reply:
    return Reply(status, {"messages": [{"level": level, "message": message}]})


class Store:
    """Two repositories, `r` and `s`, of a server that copies and moves."""

    def __init__(self, server: Server, **files: Mapping[str, str]) -> None:
        self.server, self.files = server, {repo: dict(found) for repo, found in files.items()}
        for repo in ("r", "s"):
            self.files.setdefault(repo, {})
            server.on[f"GET /api/repositories/{repo}"] = Reply(
                body={"key": repo, "rclass": "local"}
            )
        server.on["GET /api/repositories"] = Reply(body=json.dumps([{"key": "r"}, {"key": "s"}]))
        server.stub.response = self.response

    @property
    def sent(self) -> list[str]:
        """Return copies and moves, without dry runs."""
        return [
            name
            for name in self.server.asked
            if name.startswith(("POST", "DELETE")) and "dry=1" not in name
        ]

    def response(self, seen: Seen) -> Reply:
        name = self.server.name(seen)
        if name in self.server.on:
            return self.server.response(seen)
        method, target = name.split(" ", 1)
        path, _mark, query = target.partition("?")
        if method == "HEAD":
            repo, _slash, item = path.strip("/").partition("/")
            return head(self.files[repo][item]) if item in self.files[repo] else MISSING
        if path.startswith("/api/storage/"):
            return self.list(path.removeprefix("/api/storage/"), query)
        if method == "POST":
            return self.relocate(path, query)
        return MISSING

    def list(self, path: str, query: str) -> Reply:
        repo, _slash, folder = path.strip("/").partition("/")
        if folder in self.files[repo]:
            return Reply(400, "Expected a folder but found a file")
        inside = f"{folder}/" if folder else ""
        below = {n[len(inside) :]: t for n, t in self.files[repo].items() if n.startswith(inside)}
        if not below:
            return MISSING
        found: dict[str, str | None] = {
            name: text for name, text in below.items() if "deep" in query or "/" not in name
        }
        if "listFolders" in query:
            found |= {n.partition("/")[0]: None for n in below if "/" in n}
        return listed(found)

    def relocate(self, path: str, query: str) -> Reply:
        verb, source, item = path.removeprefix("/api/").split("/", 2)
        repo, target = query.split("&", maxsplit=1)[0].removeprefix("to=/").split("/", 1)
        if "dry=1" not in query:
            text = self.files[source][item]
            if verb == "move":
                del self.files[source][item]
            self.files[repo][target] = text
        return said("INFO", "completed")


def given(**options: Any) -> dict[str, Any]:
    return {"repo": "r", "path": "a", "target_repo": "s", "parallel": 1, **options}


def actions(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"{artifact['repo']}/{artifact['path']}", artifact["action"])
        for artifact in values["artifacts"]
    ]


def test_file_is_copied_once(server: Server) -> None:
    store = Store(server, r={"a/1;x.txt": "x"})
    options = given(path="a/1;x.txt")
    plan, values = server.run(Operation, options)
    assert plan.action == "create"
    assert values["artifacts"] == [
        {"repo": "s", "path": "a/1;x.txt", "sha256": digest("x"), "action": "copied"}
    ]
    assert store.files == {"r": {"a/1;x.txt": "x"}, "s": {"a/1;x.txt": "x"}}
    assert "/base/api/copy/r/a/1%3Bx.txt?to=%2Fs%2Fa%2F1%3Bx.txt&failFast=1" in [
        seen.target for seen in server.stub.seen
    ]
    server.stub.seen.clear()
    plan, values = server.run(Operation, options)
    assert not plan.changed
    assert actions(values) == [("s/a/1;x.txt", "unchanged")]
    assert server.asked == ["HEAD /r/a/1;x.txt", "GET /api/repositories/s", "HEAD /s/a/1;x.txt"]


def test_folder_is_merged_and_not_nested(server: Server) -> None:
    store = Store(server, r={"a/1": "x", "a/b/2": "y"}, s={"t/1": "x", "t/own": "o"})
    plan, values = server.run(Operation, given(target_path="t"))
    assert actions(values) == [("s/t/1", "unchanged"), ("s/t/b/2", "copied")]
    assert store.files["s"] == {"t/1": "x", "t/own": "o", "t/b/2": "y"}
    assert len(store.sent) == 1
    plan, _values = server.run(Operation, given(target_path="t/"))
    assert not plan.changed


def test_different_content_is_overwritten(server: Server) -> None:
    store = Store(server, r={"a/1": "new"}, s={"a/1": "old"})
    plan, _values = server.run(Operation, given())
    assert plan.action == "update"
    assert plan.before == {"s/a/1": {"size": 3, "sha256": digest("old")}}
    assert plan.after == {"s/a/1": {"size": 3, "sha256": digest("new")}}
    assert store.files["s"] == {"a/1": "new"}


def test_target_with_slash_keeps_the_name(server: Server) -> None:
    store = Store(server, r={"a/1": "x"})
    options = given(path="a/1", target_path="t/", move=True)
    server.run(Operation, options)
    assert store.files == {"r": {}, "s": {"t/1": "x"}}
    plan, values = server.run(Operation, options)
    assert not plan.changed
    assert actions(values) == [("s/t/1", "unchanged")]


def test_moved_folder_is_removed(server: Server) -> None:
    store = Store(server, r={"a/1": "x", "a/b/2": "y", "c": "z"}, s={"a/1": "x"})
    plan, values = server.run(Operation, given(move=True))
    assert actions(values) == [("s/a/1", "moved"), ("s/a/b/2", "moved")]
    assert store.files == {"r": {"c": "z"}, "s": {"a/1": "x", "a/b/2": "y"}}
    assert set(plan.before) == {"r/a/1", "r/a/b/2", "s/a/1"}
    plan, values = server.run(Operation, given(move=True))
    assert not plan.changed
    assert [action for _name, action in actions(values)] == ["unchanged", "unchanged"]


def test_source_folder_left_by_server_is_removed(server: Server) -> None:
    store = Store(server, r={"a/1": "x"})
    server.on["GET /api/storage/r/?list&listFolders=1"] = listed({"a": None})
    server.on["DELETE /r/a"] = Reply(204)
    server.run(Operation, given(move=True))
    assert store.sent[-1] == "DELETE /r/a"


def test_all_files_are_dry_run_before_the_first_copy(server: Server) -> None:
    store = Store(server, r={"a/1": "x", "a/2": "y"})
    server.on["POST /api/copy/r/a/2?to=/s/a/2&failFast=1&dry=1"] = said(
        "ERROR", "The repository 's' rejected the artifact", 409
    )
    error = server.fails(Operation, given())
    assert error.kind == "conflict"
    assert "rejected the artifact" in error.message
    assert store.sent == []


@pytest.mark.parametrize("target", ["b/1 ", " b/1", "b /1", "b/1\t"])
def test_blank_at_end_of_target_is_rejected(server: Server, target: str) -> None:
    error = server.fails(Operation, given(target_path=target))
    assert error.kind == "invalid"
    assert error.message.startswith(
        f"target_path: '{target}' contains leading or trailing blanks in a segment"
    )
    assert server.asked == []


def test_check_mode_runs_the_dry_run(server: Server) -> None:
    store = Store(server, r={"a/1": "x"})
    plan, values = server.run(Operation, given(), check=True)
    assert plan.changed
    assert actions(values) == [("s/a/1", "copied")]
    assert [name for name in server.asked if "dry=1" in name]
    assert store.sent == []


@pytest.mark.parametrize("path", ["a", "a/", "a/**"])
def test_predicted_file_next_to_folder_is_not_copied(
    server: Server, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(server, r={"a/1": "x"})
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    client = RepoClient(server.task(check=True))
    for name in ("a/2", "b/3", "ab/4"):
        listing.predict(client, "r", name, listing.StoredItem(1))
    _plan, values = server.run(Operation, given(path=path), check=True)
    assert actions(values) == [("s/a/1", "copied"), ("s/a/2", "copied")]


def test_401_of_a_move_is_a_permission_error(server: Server) -> None:
    Store(server, r={"a/1": "x"})
    server.on["POST /api/copy/r/a/1?to=/s/a/1&failFast=1&dry=1"] = said(
        "ERROR", "User doesn't have permissions to override", 401
    )
    error = server.fails(Operation, given())
    assert error.kind == "permission"
    assert error.status == 401


def test_errors_in_a_200_are_an_error(server: Server) -> None:
    Store(server, r={"a/1": "x", "a/2": "y"})
    server.on["POST /api/copy/r/a/2?to=/s/a/2&failFast=1"] = said("error", "no space")
    error = server.fails(Operation, given())
    assert error.kind == "rejected"
    assert "no space" in error.message
    assert actions(error.result) == [("s/a/1", "copied")]


def test_missing_effect_is_an_error(server: Server) -> None:
    Store(server, r={"a/1": "x"})
    server.on["POST /api/copy/r/a/1?to=/s/a/1&failFast=1"] = said("INFO", "completed")
    error = server.fails(Operation, given())
    assert error.kind == "failed"
    assert "a/1" in error.message


@pytest.mark.parametrize("acted", [True, False])
def test_lost_response_is_verified(server: Server, acted: bool) -> None:
    store = Store(server, r={"a/1": "x"})

    def lost(seen: Seen) -> Reply:
        if acted:
            store.relocate("/api/move/r/a/1", "to=/s/a/1")
        return Reply(500, "it broke")

    server.on["POST /api/move/r/a/1?to=/s/a/1&failFast=1"] = lost
    if acted:
        plan, _values = server.run(Operation, given(path="a/1", move=True))
        assert plan.changed
    else:
        error = server.fails(Operation, given(path="a/1", move=True))
        assert "nothing was changed" in error.message
    assert len(store.sent) == 1


def test_folder_at_the_target_of_a_file_is_rejected(server: Server) -> None:
    store = Store(server, r={"a/1": "x"}, s={"a/1/2": "y"})
    for path in ("a", "a/1"):
        error = server.fails(Operation, given(path=path))
        assert error.kind == "conflict"
        assert "the target is a folder" in error.message
    assert store.sent == []


@pytest.mark.parametrize("move", [True, False])
def test_missing_source_is_not_found(server: Server, move: bool) -> None:
    Store(server)
    error = server.fails(Operation, given(move=move))
    assert error.kind == "not_found"
    assert "found no file for 'a' in 'r'" in error.message


def test_missing_repositories_are_not_found(server: Server) -> None:
    Store(server, r={"a/1": "x"})
    server.on["GET /api/repositories/t"] = Reply(404)
    error = server.fails(Operation, given(target_repo="t"))
    assert error.kind == "not_found"
    assert "'t'" in error.message


def test_server_without_copy_is_rejected(server: Server) -> None:
    server.dialect = "generic"
    server.on["GET /api/repositories"] = Reply(body="[]")
    error = server.fails(Operation, given())
    assert error.kind == "rejected"
    assert "dialect" in error.message


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"path": "/"}, "path"),
        ({"path": ""}, "path"),
        ({"path": "a/../b"}, "path"),
        ({"target_path": "a?"}, "target_path"),
        ({"target_path": "../a"}, "target_path"),
        ({"repo": "r/a"}, "repo"),
        ({"parallel": 0}, "parallel"),
    ],
)
def test_invalid_copy_options_are_rejected(
    server: Server, wrong: dict[str, Any], word: str
) -> None:
    error = server.fails(Operation, given(**wrong))
    assert error.kind == "invalid"
    assert word in error.message
    assert server.asked == []


@pytest.mark.parametrize("target", ["a", "a/", "a/b"])
def test_copy_of_a_folder_into_itself_is_rejected(server: Server, target: str) -> None:
    store = Store(server, r={"a/1": "x"})
    error = server.fails(Operation, given(target_repo="r", target_path=target))
    assert error.kind == "invalid"
    assert "target_path" in error.message
    assert store.sent == []


# -- patterns and lists ---------------------------------------------------------------------------

MANY = {"a/1.txt": "1", "a/2.bin": "2", "a/b/3.txt": "3"}


def targets(store: Store) -> dict[str, str]:
    return dict(sorted(store.files["s"].items()))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"path": "a/*.txt"}, {"a/1.txt": "1"}),
        ({"path": "a/**/*.txt"}, {"a/1.txt": "1", "a/b/3.txt": "3"}),
        ({"path": "a/**", "target_path": "t"}, {"t/1.txt": "1", "t/2.bin": "2", "t/b/3.txt": "3"}),
        ({"path": "a/**", "exclude": ["**/*.txt"]}, {"a/2.bin": "2"}),
        ({"path": "a/", "exclude": ["**.txt"], "target_path": "t"}, {"t/2.bin": "2"}),
        (
            {"path": None, "artifacts": [{"path": "a/1.txt"}, {"path": "a/b/"}]},
            {"a/1.txt": "1", "a/b/3.txt": "3"},
        ),
        (
            {"path": None, "artifacts": [{"repo": "r", "path": "a/1.txt"}], "target_path": "t"},
            {"t/1.txt": "1"},
        ),
    ],
)
def test_only_selected_files_are_copied(
    server: Server, options: dict[str, Any], expected: dict[str, str]
) -> None:
    store = Store(server, r=MANY)
    chosen = {name: one for name, one in given(**options).items() if one is not None}
    server.run(Operation, chosen, check=True)
    assert store.sent == []
    plan, values = server.run(Operation, chosen)
    assert targets(store) == expected
    assert sorted(plan.after) == [f"s/{path}" for path in expected]
    assert {action for _path, action in actions(values)} == {"copied"}
    plan, values = server.run(Operation, chosen)
    assert not plan.changed
    assert {action for _path, action in actions(values)} == {"unchanged"}


@pytest.mark.parametrize("target", [None, "t"])
def test_files_of_a_pattern_are_moved_once(server: Server, target: str | None) -> None:
    store = Store(server, r=MANY)
    options = given(path="a/**/*.txt", move=True)
    if target is not None:
        options["target_path"] = target
    server.run(Operation, options)
    folder = target or "a"
    assert targets(store) == {f"{folder}/1.txt": "1", f"{folder}/b/3.txt": "3"}
    assert store.files["r"] == {"a/2.bin": "2"}
    assert not server.run(Operation, options)[0].changed


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"path": "a/*.iso"}, "not_found", "path: found no file for 'a/*.iso' in 'r'"),
        ({"path": "a/*3.txt"}, "not_found", "* does not match slashes, write 'a/**/*3.txt'"),
        ({"path": "a/*.iso", "move": True}, "not_found", "found no file"),
        ({"path": "a/**", "exclude": ["**"]}, "not_found", "check properties and exclude"),
        ({"artifacts": [{"path": "a/1.txt"}, {"path": "gone"}]}, "not_found", "artifacts[1]: "),
        ({"path": "a/**", "max_items": 2}, "invalid", "3 files match, more than max_items (2)"),
        ({"path": "a/**", "target_repo": "r"}, "invalid", "is the item itself"),
        (
            {"path": "a/**", "target_repo": "r", "target_path": "a/c"},
            "invalid",
            "also matches path",
        ),
        ({"artifacts": [{"path": ""}]}, "invalid", "artifacts[0].path is empty"),
        ({"artifacts": [{"path": "a"}], "repo": None}, "invalid", "artifacts[0].repo is missing"),
        (
            {"artifacts": [{"path": "a/1.txt"}, {"repo": "s", "path": "x/1.txt"}]}
            | {"target_path": "t"},
            "invalid",
            "would both be written to 's/t/1.txt'",
        ),
        ({"path": "a/**", "max_items": 0}, "invalid", "max_items is 0: set it to 1 or more"),
        ({"path": "a/**", "properties": {"qa": None}}, "invalid", "properties.qa is null"),
    ],
)
def test_invalid_selection_copies_nothing(
    server: Server, options: dict[str, Any], kind: str, message: str
) -> None:
    store = Store(server, r=MANY, s={"x/1.txt": "other"})
    if "artifacts" in options:
        options = {"path": None, **options}
    chosen = {name: one for name, one in given(**options).items() if one is not None}
    error = server.fails(Operation, chosen)
    assert (error.kind, store.sent) == (kind, [])
    assert message in error.message


def test_exclude_without_match_gives_a_warning(server: Server) -> None:
    Store(server, r=MANY)
    server.run(Operation, given(path="a/**", exclude=["*.iso"]))
    assert server.warnings == ["exclude: '*.iso' matches none of the selected files"]
