# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the permissions of all modules.

Without a permission, the task fails and reports its completed changes. With the permission, the
next run finishes. No other permission is needed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.faults.permissions import OPERATIONS, play, without
from tests.faults.writes import WRITERS
from tests.helpers.cases import module_of
from tools.descriptors import DESCRIPTORS

CELLS = [(name, right) for name, operation in OPERATIONS.items() for right in operation.needs]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the tasks send."""
    made = tmp_path_factory.mktemp("permissions")
    (made / "a.txt").write_text("a", encoding="utf-8")
    with zipfile.ZipFile(made / "a.zip", "w") as archive:
        archive.writestr("a", "a")
    tree = made / "tree"
    tree.mkdir()
    (tree / "index.md").write_text("# A manual\n\n![a](a.png)\n", encoding="utf-8")
    (tree / "next.md").write_text("# The next page\n\ntext\n", encoding="utf-8")
    (tree / "a.png").write_bytes(b"a")
    return made


@pytest.mark.parametrize(("name", "right"), CELLS)
def test_missing_permission_is_predicted_and_reported(
    fresh: Callable[[str], Sandbox], folder: Path, name: str, right: str
) -> None:
    sandbox, operation = fresh("real"), OPERATIONS[name]
    granted, kind = without(operation, right), operation.needs[right]
    partial = operation.row.get("partial", {})
    foreseen = play(sandbox, folder, operation, granted, check=True).result
    told = (foreseen.get("error") or {"kind": ""})["kind"]
    assert told == ("" if right in operation.unforeseen else kind), foreseen.get("msg", foreseen)
    ended = play(sandbox, folder, operation, granted, again=True)
    result = ended.result
    assert (result.get("error") or {"kind": ""})["kind"] == kind, result.get("msg", result)
    assert result["changed"] is bool(ended.effects), result["msg"]
    assert bool(ended.effects) is False or right in partial, result["msg"]
    wanted = partial.get(right, {})
    assert _part(result, wanted) == wanted
    # If nothing was changed, the next run starts from scratch: one such run per task is enough.
    if ended.effects or right == next(iter(operation.needs)):
        more = operation.row.get("again", ()) if ended.effects else ()
        finished = play(sandbox, folder, operation, [*operation.needs, *more], again=True)
        assert finished.result.get("failed") is None, finished.result["msg"]
        assert finished.result["changed"] is (right not in operation.row.get("complete", ()))


def test_every_writing_operation_is_run_without_its_permissions() -> None:
    run = {
        (operation.module, access)
        for operation in OPERATIONS.values()
        for access in map(
            DESCRIPTORS[operation.module].operations.__getitem__, operation.row["operations"]
        )
    }
    declared = {
        (module_of(case), access)
        for case in WRITERS
        for access in DESCRIPTORS[module_of(case)].operations.values()
        if access.writes and (access.needs or access.unforeseen)
    }
    assert declared - run == set()


def _part(found: Any, wanted: Any) -> Any:
    """Return the parts of `found` that `wanted` names."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: _part(found.get(name), each) for name, each in wanted.items()}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_part(one, each) for one, each in zip(found, wanted, strict=True)]
    return found
