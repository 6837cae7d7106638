# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the table of the steps: it names every step, and every variable that the steps read."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import role_variables
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.steps import table
from tools import tree

FOLDER = Path(table.__file__).parent
ROLES = {name for name in role_variables.owners() if role_variables.is_role(name)}
PLAYBOOKS = role_variables.owners() - ROLES


def variables_in(file: Path) -> set[str]:
    """Return the variables of playbooks that a file names."""
    names = re.findall(r'"(\w+)"', file.read_text("utf-8"))
    of_playbooks, of_roles = (tuple(f"{one}_" for one in each) for each in (PLAYBOOKS, ROLES))
    return {
        name for name in names if name.startswith(of_playbooks) and not name.startswith(of_roles)
    }


@pytest.mark.parametrize("subject", table.SUBJECTS)
def test_subject_declares_the_variables_that_it_reads(subject: str) -> None:
    steps, reads = table.SUBJECTS[subject]
    module = import_module(f"{table.__package__}.{subject}")
    assert all(callable(getattr(module, step)) for step in steps)
    assert variables_in(FOLDER / f"{subject}.py") - {*steps} == {*reads}


def test_table_contains_each_file_and_each_step_of_the_tasks_once() -> None:
    assert {file.stem for file in FOLDER.glob("*.py")} == {"run", "table", *table.SUBJECTS}
    listed = [step for subject in table.SUBJECTS.values() for step in subject.steps]
    files = [*(tree.ROOT / "playbooks").rglob("*.yml"), *(tree.ROOT / "roles").rglob("tasks/*.yml")]
    named = {
        step
        for file in files
        for step in re.findall(
            r"toolchain\.bookkeeping:\n(?: +\w+:.*\n)*? +step: (\w+)", file.read_text("utf-8")
        )
    }
    assert sorted(listed) == sorted(named)
