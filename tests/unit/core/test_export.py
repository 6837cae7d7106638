# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the folder of an export (`ExportOptions`): safe names, no replaced foreign files,
reproducible content.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.operations.export_folder import (
    ExportFolder,
    FileNames,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.operations.service_export import (
    ServiceState,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    ProgressCounter,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import desired_state

HOSTILE = [
    *("../../etc/passwd", "a/b", "..", ".", "", ".git", "con", "COM1", "index", "README", "a\nb"),
    *(
        "a\0b",
        "\ud800",
        "x" * 5000,
        "ß" * 300,
        "a\u202eb",
        "-rf",
        "~",
        "$HOME",
        "a.",
        " a",
        "A",
        "a",
    ),
]


def export(folder: Path, texts: dict[str, str], *, overwrite: bool = False) -> dict[str, str]:
    """Return the actions; the key `warned` contains the warnings."""
    warned: list[str] = []
    files = ExportFolder(str(folder), "ci", overwrite=overwrite, warn=warned.append)
    changes = files.compare(texts)
    actions = {change.path: change.action for change in changes.files}
    if changes.changed:
        files.write(changes)
    return {**actions, **({"warned": "; ".join(warned)} if warned else {})}


def test_names_from_server_stay_in_their_folder() -> None:
    names = FileNames()
    found = [names.name("ci/jobs", name) for name in HOSTILE]
    assert len({name.casefold() for name in found}) == len(HOSTILE)
    for name in found:
        segments = name.split("/")
        assert segments[:2] == ["ci", "jobs"]
        assert len(segments) == 3
        assert not segments[2].startswith((".", "-"))
        assert len(segments[2].encode()) < 256
        assert segments[2].casefold() not in ("index", "readme", "con", "com1")
    assert FileNames().name("x", "Übersicht 2") == "x/Übersicht-2"


def test_file_names_are_deterministic() -> None:
    first, second = FileNames(), FileNames()
    assert [first.name("x", name) for name in HOSTILE] == [
        second.name("x", name) for name in HOSTILE
    ]


def test_export_writes_once_and_removes_its_obsolete_files(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "desired"
    texts = {"ci.yml": "a: 1\n", "ci/jobs/a/b.xml": "<a/>"}
    assert export(folder, texts) == dict.fromkeys(texts, "created")
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert export(folder, texts) == dict.fromkeys(texts, "unchanged")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == stamps
    assert export(folder, {"ci.yml": "a: 2\n"}) == {
        "ci.yml": "updated",
        "ci/jobs/a/b.xml": "deleted",
    }
    assert sorted(path.name for path in folder.iterdir()) == [".export-ci.json", "ci.yml"]


def test_choice_of_objects_is_kept_with_the_files(tmp_path: Path) -> None:
    def changed(*jobs: str) -> bool:
        chosen = {"jobs": list(jobs)} if jobs else {}
        files = ExportFolder(
            str(tmp_path), "ci", overwrite=False, warn=lambda _text: None, chosen=chosen
        )
        changes = files.compare({"ci.yml": "a: 1\n"})
        if changes.changed:
            files.write(changes)
        assert desired_state.chosen(tmp_path, "ci") == chosen
        return changes.changed

    assert [changed("team/*"), changed("team/*"), changed("other"), changed()] == [
        *(True, False, True, True),
    ]
    for text in ("{", "[]", '{"chosen": 1}', '{"chosen": {"jobs": [1]}}'):
        (tmp_path / ".export-ci.json").write_text(text, encoding="utf-8")
        assert desired_state.chosen(tmp_path, "ci") == {}


def test_foreign_files_are_not_overwritten(tmp_path: Path) -> None:
    export(tmp_path, {"ci.yml": "a: 1\n", "old.xml": "<a/>"})
    (tmp_path / "ci.yml").write_text("mine: 1\n", encoding="utf-8")
    (tmp_path / "new.xml").write_text("<mine/>", encoding="utf-8")
    (tmp_path / "old.xml").write_text("<mine/>", encoding="utf-8")
    texts = {"ci.yml": "a: 2\n", "new.xml": "<a/>"}
    with pytest.raises(ToolchainError, match=r"ci\.yml, new\.xml\. Set overwrite") as caught:
        export(tmp_path, texts)
    assert caught.value.kind == "conflict"
    assert (tmp_path / "ci.yml").read_text("utf-8") == "mine: 1\n"
    done = export(tmp_path, texts, overwrite=True)
    assert done == {
        "ci.yml": "updated",
        "new.xml": "updated",
        "warned": "old.xml was kept: it has changed since its export",
    }
    assert (tmp_path / "old.xml").read_text("utf-8") == "<mine/>"


def test_file_list_with_foreign_names_removes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "desired"
    folder.mkdir()
    listed = json.dumps({"files": {"../out": [hashlib.sha256(b"x").hexdigest()]}})
    (folder / ".export-ci.json").write_text(listed, encoding="utf-8")
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(ToolchainError, match="from the server is not safe"):
        export(folder, {"ci.yml": "a: 1\n"})
    assert (tmp_path / "out").read_text("utf-8") == "x"


@pytest.mark.parametrize("listed", ["{", "[]", '{"files": 1}', '{"files": {"ci.yml": 1}}'])
def test_unreadable_file_list_is_ignored(tmp_path: Path, listed: str) -> None:
    (tmp_path / ".export-ci.json").write_text(listed, encoding="utf-8")
    assert export(tmp_path, {"ci.yml": "a: 1\n"}) == {"ci.yml": "created"}


def test_link_out_of_the_folder_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "desired"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (folder / "ci").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolchainError, match="leads out"):
        export(folder, {"ci/a.xml": "<a/>"})
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["a\nusers: []", "a\u2028b: 1", "a\x85b", "\ud800", "\x07", "#"])
def test_names_cannot_end_the_surrounding_comment(name: str) -> None:
    state = ServiceState(values={"jobs": [{"job": "1.10"}]}, not_exported=("x",))
    state.leave_out("job", name, "no right")
    text = state.text()
    assert yaml.safe_load(text) == {"jobs": [{"job": "1.10"}]}
    assert "Left out: job" in text


def test_value_that_yaml_cannot_represent_is_rejected() -> None:
    with pytest.raises(ToolchainError, match="YAML cannot represent"):
        ServiceState(values={"a": "\ud800"}).text()


def test_only_long_exports_report_progress() -> None:
    lines: list[str] = []
    now: list[Any] = [0.0]
    count = ProgressCounter(lines.append, "reading pages", 2000, clock=lambda: float(now[0]))
    for number in range(2000):
        now[0] = number * 0.01
        count.add()
    assert lines == [
        "reading pages: 501 of 2,000",
        "reading pages: 1,001 of 2,000",
        "reading pages: 1,501 of 2,000",
    ]


def test_file_as_dest_is_rejected_before_any_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    with pytest.raises(ToolchainError, match="dest must be a folder, but is") as caught:
        export(tmp_path / "taken", {"ci.yml": "x"})
    assert caught.value.kind == "invalid"
