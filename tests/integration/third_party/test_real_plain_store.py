# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files in a plain store: nginx, without repositories, checksums and properties.

Needs Debian's nginx. The dialect is `generic`: if the store does not report a value, the module
writes it and reports a change [C1.5].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import nginx, playbook

pytestmark = pytest.mark.skipif(
    nginx.PROGRAM is None, reason="no nginx on this machine: no plain store was asked"
)

LOGIN = {"username": nginx.USER, "password": nginx.PASSWORD, "dialect": "generic"}
FILES = {"deep/one.txt": b"one\n", "two ü+%#.bin": bytes(range(256)) * 300, "empty": b""}
ONE: dict[str, Any] = {"repo": "store", "path": "folder/one.txt"}
PROPERTY = {"properties": {"state": "tested"}}


class Played:
    """The playbook's events, the store's folder after the playbook, and the folder of the files."""

    def __init__(self, store: nginx.Store, folder: Path) -> None:
        (store.files / "store").mkdir()
        self.folder, self.stored = folder, store.files / "store"
        for name, content in FILES.items():
            path = folder / "many" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        login = {"url": store.url, **LOGIN}
        tasks = [playbook.task(module, options, name) for name, module, options in self._tasks()]
        wrong = {**ONE, **login, "password": "wrong", "content": "x"}
        tasks.append(playbook.task("artifact_deploy", wrong, "wrong login"))
        play = playbook.play(tasks, module_defaults={"group/delivery.toolchain.repo": login})
        self.run = playbook.run(folder, [play])
        self.asked = [line for line in store.asked() if " /store/" in line]

    def _tasks(self) -> list[tuple[str, str, dict[str, Any]]]:
        got = {"dest": f"{self.folder}/got.txt"}
        return [
            ("deploy", "artifact_deploy", {**ONE, "content": "first"}),
            ("replace", "artifact_deploy", {**ONE, "content": "second"}),
            ("deploy folder", "artifact_deploy", {"repo": "store", "path": "n/", "src": "many/"}),
            ("download", "artifact_download", {**ONE, **got}),
            ("download again", "artifact_download", {**ONE, **got}),
            *(
                (
                    f"download {name}",
                    "artifact_download",
                    {"repo": "store", "path": f"n/{name}", "dest": f"{self.folder}/back/{name}"},
                )
                for name in FILES
            ),
            ("deploy with a property", "artifact_deploy", {**ONE, "content": "x", **PROPERTY}),
            ("set a property", "artifact_properties", {**ONE, **PROPERTY}),
            ("missing", "artifact_download", {"repo": "store", "path": "n/no", **got}),
            ("list", "artifact_download", {"repo": "store", "path": "n/", "dest": "all"}),
            ("delete", "artifact_deploy", {**ONE, "state": "absent"}),
        ]

    def failure(self, task: str) -> tuple[str, bool]:
        event = self.run.event(task)
        assert event.status == "failed", event.result
        return event.result["error"]["kind"], event.result["changed"]


@pytest.fixture(scope="module")
def played(plain_store: nginx.Store, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(plain_store, tmp_path_factory.mktemp("play"))


def test_file_is_stored(played: Played) -> None:
    for task in ("deploy", "replace"):
        result = played.run.event(task).result
        assert (result["changed"], result["http"]["writes"]) == (True, 1), result
    assert (played.stored / "folder/one.txt").read_text(encoding="utf-8") == "second"
    assert played.asked.count("PUT /store/folder/one.txt") == 2


@pytest.mark.parametrize("name", FILES)
def test_folder_is_stored_and_downloaded(played: Played, name: str) -> None:
    assert played.run.event("deploy folder").result["changed"] is True
    assert (played.stored / "n" / name).read_bytes() == FILES[name]
    result = played.run.event(f"download {name}").result
    assert result["changed"] is True, result
    assert (played.folder / "back" / name).read_bytes() == FILES[name]


def test_unchanged_files_are_not_written(played: Played) -> None:
    assert played.run.event("download").result["changed"] is True
    assert played.run.event("download again").result["changed"] is False
    assert (played.folder / "got.txt").read_text(encoding="utf-8") == "second"


def test_unsupported_operations_are_reported(played: Played) -> None:
    """Verify the errors: the store has no listing and no list of repositories."""
    for task in ("missing", "list", "delete"):
        assert played.failure(task) == ("not_found", False), task
    assert not any(line.startswith("DELETE") for line in played.asked)


def test_properties_are_rejected_and_create_no_files(played: Played) -> None:
    for task in ("deploy with a property", "set a property"):
        assert played.failure(task) == ("rejected", False), task
        assert played.run.event(task).result["http"]["writes"] == 0
    assert not (played.stored.parent / "storage").exists()


def test_rejected_login_stores_nothing(played: Played) -> None:
    assert played.failure("wrong login") == ("auth", False)


def test_no_secret_is_shown(played: Played) -> None:
    assert played.run.shows([nginx.PASSWORD]) == []
