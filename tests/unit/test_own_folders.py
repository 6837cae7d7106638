# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that reports and desired states are never written to the installed collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import writing
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


def test_folder_below_playbooks_of_the_collection_is_not_created(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(PLAYBOOKS)
    for folder in (PLAYBOOKS, PLAYBOOKS / "report", PLAYBOOKS / "x/../report", link / "report"):
        assert "it is in the installed collection" in writing.problem(folder)
        assert "inventory_dir" in writing.problem(folder)
        with pytest.raises(OSError, match="it is in the installed collection"):
            writing.write(folder, Contents())
    assert not (PLAYBOOKS / "report").exists()


def test_folder_of_a_user_is_created(tmp_path: Path) -> None:
    assert writing.problem(tmp_path / "playbooks/report") == ""
    assert (tmp_path / "playbooks/report").is_dir()


@pytest.mark.parametrize("installed", [True, False])
def test_folders_of_an_installed_collection_are_rejected(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_PLAYBOOKS", tmp_path / "playbooks")
    if installed:
        (tmp_path / "MANIFEST.json").touch()
    assert writing.is_in_collection(tmp_path / "report") is installed
