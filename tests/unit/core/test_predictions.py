# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the predictions of a run in check mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.predictions import (
    Predictions,
)

URL = "https://ci.example.com"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    return tmp_path / "predictions"


def checking(url: str = URL) -> Predictions:
    return Predictions(url, check_mode=True)


@pytest.mark.usefixtures("folder")
def test_later_task_gets_predictions_of_earlier_task() -> None:
    checking().add("job", "a/b", value={"jobs": []})
    assert checking(f"{URL}/").get("job", "a/b") == {"jobs": []}
    assert checking().get("job", "a") is None
    assert checking().get("view", "a/b") is None
    assert checking("https://other.example.com").get("job", "a/b") is None
    checking().remove("job", "a/b")
    checking().remove("job", "a/b")
    assert checking().get("job", "a/b") is None


@pytest.mark.usefixtures("folder")
def test_names_split_differently_are_different_objects() -> None:
    checking().add("item", "a", "b/c")
    assert checking().get("item", "a/b", "c") is None


@pytest.mark.usefixtures("folder")
def test_all_objects_of_a_location_are_returned() -> None:
    checking().add("item", "r", "a/1", value={"size": 1})
    checking().add("item", "r", "a/2", value=None)
    checking().add("item", "s", "a/3")
    checking().add("properties", "r", "a/1")
    assert checking().all("item", "r") == {"a/1": {"size": 1}, "a/2": None}
    assert checking("https://other.example.com").all("item", "r") == {}
    assert Predictions(URL).all("item", "r") == {}


def test_write_ends_all_predictions(folder: Path) -> None:
    checking().add("job", "a")
    writing = Predictions(URL)
    assert not writing.active
    assert writing.get("job", "a") is None
    writing.add("job", "b")
    checking("https://other.example.com").add("job", "a")
    writing.clear()
    assert checking().get("job", "a") is None
    assert checking("https://other.example.com").get("job", "a") is True
    assert len(list(folder.iterdir())) == 1


def test_parallel_worker_never_reads_half_of_a_prediction(folder: Path) -> None:
    value = ["x" * 1000] * 200
    checking().add("job", "a", value=value)
    worker = os.fork()
    if worker == 0:
        try:
            for _time in range(200):
                checking().add("job", "a", value=value)
        finally:
            os._exit(0)
    found = []
    while os.waitpid(worker, os.WNOHANG) == (0, 0):
        found.append(checking().get("job", "a") == value)
    assert found
    assert all(found)
    (of_server,) = folder.iterdir()
    assert len(list(of_server.iterdir())) == 1


def test_prediction_file_is_private(folder: Path) -> None:
    checking().add("job", "a")
    (of_server,) = folder.iterdir()
    assert of_server.stat().st_mode & 0o077 == 0


def test_nothing_is_predicted_without_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(run_folder.VARIABLE, raising=False)
    checking().add("job", "a")
    checking().remove("job", "a")
    Predictions(URL).clear()
    assert not checking().active
    assert checking().get("job", "a") is None


def test_unreadable_prediction_is_ignored(folder: Path) -> None:
    folder.write_text("no folder", encoding="utf-8")
    checking().add("job", "a")
    assert checking().get("job", "a") is None
    folder.unlink()
    checking().add("job", "a")
    (of_server,) = folder.iterdir()
    (file,) = of_server.iterdir()
    file.write_text("{", encoding="utf-8")
    assert checking().get("job", "a") is None


@pytest.mark.usefixtures("folder")
def test_planned_objects_are_predicted() -> None:
    checking().follow("group", "A", "create")
    checking().follow("group", "b", "none")
    assert checking().get("group", "a") is True
    assert checking().get("group", "b") is None
    checking().follow("group", "a", "delete")
    assert checking().get("group", "a") is None
