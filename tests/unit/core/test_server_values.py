# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the record of values that a server keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    server_values,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.server_values import (
    ServerValues,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(server_values.FOLDER, str(tmp_path / "report/values"))
    return tmp_path / "report/values"


def test_values_are_kept_by_server_kind_and_name(folder: Path) -> None:
    ServerValues("http://ci.example/").remember("job", "a/b", {"x": "1"})
    ServerValues("http://ci.example").remember("job", "a/b", {"y": "2"})
    assert ServerValues("http://ci.example").known("job", "a/b") == {"x": "1", "y": "2"}
    for server, kind, name in (
        ("http://other.example", "job", "a/b"),
        ("http://ci.example", "view", "a/b"),
        ("http://ci.example", "job", "a"),
    ):
        assert ServerValues(server).known(kind, name) == {}
    assert ServerValues().known("job", "a/b") == {}
    assert len([*folder.iterdir()]) == 1


def test_tasks_that_add_values_at_the_same_time_lose_none(folder: Path) -> None:
    workers = []
    for worker in "ab":
        pid = os.fork()
        if pid == 0:
            try:
                for number in range(100):
                    record = ServerValues("http://ci.example")
                    record.remember("job", "x", {f"{worker}{number}": "1"})
            finally:
                os._exit(0)
        workers.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in workers] == [0, 0]
    assert len(ServerValues("http://ci.example").known("job", "x")) == 200
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"values": []}', "\x00"])
def test_unreadable_record_is_replaced(folder: Path, text: str) -> None:
    record = ServerValues("http://ci.example")
    record.remember("job", "x", {"a": "1"})
    (file,) = folder.iterdir()
    file.write_text(text)
    assert record.known("job", "x") == {}
    record.remember("job", "x", {"a": "2"})
    assert record.known("job", "x") == {"a": "2"}


def test_record_that_cannot_be_written_is_left_out(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    record = ServerValues("http://ci.example")
    record.remember("job", "x", {"a": "1"})
    assert record.known("job", "x") == {}
